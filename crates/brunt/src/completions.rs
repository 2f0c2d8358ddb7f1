//! `brunt completions`: what a shell completes behind `brunt`, from the table of options.
//!
//! A script for the shell, without a call of ours when a key is pressed. Invariant: every command and every option of the help is in it.

use crate::cli::{self, CompletionShell};
use crate::exit::Exit;
use crate::terminal::show;
use clap_complete::aot::{Bash, Fish, Zsh, generate};

/// Prints the script of a shell.
pub(crate) fn completions(flags: &cli::Completions) -> Exit {
    show(script(flags.shell), false);
    Exit::Done
}

fn script(shell: CompletionShell) -> Vec<u8> {
    let (mut program, mut text) = (cli::command(), Vec::new());
    match shell {
        CompletionShell::Bash => generate(Bash, &mut program, "brunt", &mut text),
        CompletionShell::Zsh => generate(Zsh, &mut program, "brunt", &mut text),
        CompletionShell::Fish => generate(Fish, &mut program, "brunt", &mut text),
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_and_option_of_the_help_is_completed() {
        let mut program = cli::command();
        program.build();
        for (shell, prefix) in
            [(CompletionShell::Bash, "--"), (CompletionShell::Zsh, "--"), (CompletionShell::Fish, "-l ")]
        {
            let text = String::from_utf8(script(shell)).unwrap();
            let words: Vec<&str> =
                text.split([' ', '\n', '"', '\'', '[', '=', '{', '}', '(', ')', ',', '|', '*']).collect();
            for command in program.get_subcommands() {
                let name = command.get_name();
                assert!(words.contains(&name), "{shell:?}: {name}");
                for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
                    let Some(long) = argument.get_long() else { continue };
                    let is_there = match prefix {
                        "--" => words.contains(&format!("--{long}").as_str()),
                        prefix => text.contains(&format!("{prefix}{long} ")),
                    };
                    assert!(is_there, "{shell:?}: {name} --{long}");
                }
            }
        }
    }
}
