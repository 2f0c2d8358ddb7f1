//! `brunt completions`: what a shell completes behind `brunt`, from the table of options.
//!
//! A script for the shell, without a call of ours when a key is pressed. Invariant: every command and every option of the help is in it, with the
//! words that a value is one of.

use crate::cli::{self, CompletionShell};
use crate::exit::Exit;
use crate::help;
use crate::terminal::show;
use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, ValueHint};
use clap_complete::aot::{Bash, Fish, Zsh, generate};

/// Prints the script of a shell.
pub(crate) fn completions(flags: &cli::Completions) -> Exit {
    show(script(flags.shell), false);
    Exit::Done
}

fn script(shell: CompletionShell) -> Vec<u8> {
    // The generator for bash would complete the names of files for a host.
    let host = if matches!(shell, CompletionShell::Bash) { ValueHint::Other } else { ValueHint::Hostname };
    let (mut program, mut text) = (completed(cli::command(), host), Vec::new());
    match shell {
        CompletionShell::Bash => generate(Bash, &mut program, "brunt", &mut text),
        CompletionShell::Zsh => generate(Zsh, &mut program, "brunt", &mut text),
        CompletionShell::Fish => {
            generate(Fish, &mut program, "brunt", &mut text);
            text.extend(fish_arguments(&program).bytes());
        }
    }
    text
}

/// The program as shells complete it.
fn completed(program: Command, host: ValueHint) -> Command {
    let commands: Vec<String> =
        program.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    let topics = commands.iter().cloned().chain(help::names().map(str::to_owned));
    let topic = Arg::new("TOPIC").value_parser(PossibleValuesParser::new(topics));
    let help = Command::new("help").about("Print the help of a command, or what a topic is");
    let commands = PossibleValuesParser::new(commands);
    program
        .disable_help_subcommand(true)
        .mut_subcommand("man", |man| man.mut_arg("command", |argument| argument.value_parser(commands)))
        .mut_subcommands(|command| command.mut_args(|argument| hinted(argument, host)))
        .subcommand(help.disable_help_flag(true).arg(topic))
}

/// The words of arguments, which the generator for fish leaves out.
fn fish_arguments(program: &Command) -> String {
    let line = |command: &Command| {
        let values = command.get_positionals().flat_map(Arg::get_possible_values);
        let words: Vec<String> = values.map(|value| value.get_name().to_owned()).collect();
        let (name, words) = (command.get_name(), words.join(" "));
        let condition = format!("__fish_brunt_using_subcommand {name}");
        (!words.is_empty()).then(|| format!("complete -c brunt -n \"{condition}\" -f -a \"{words}\"\n"))
    };
    program.get_subcommands().filter_map(line).collect()
}

/// An option with what its value is, by its name, where neither its parser nor its row says it.
fn hinted(argument: Arg, host: ValueHint) -> Arg {
    let has_words = !argument.get_possible_values().is_empty();
    let hint = match (argument.get_value_hint(), argument.get_value_names()) {
        // With what a shell knows of files: a directory is gone on with.
        (ValueHint::AnyPath, _) => ValueHint::FilePath,
        (ValueHint::Unknown, Some([name, ..])) if !argument.is_positional() && !has_words => {
            match name.as_str() {
                "FILE" => ValueHint::FilePath,
                "ADDRESS" | "HOST[:PORT]" | "A" => host,
                "COMMAND" => ValueHint::CommandString,
                _ => ValueHint::Other,
            }
        }
        _ => return argument,
    };
    argument.value_hint(hint)
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
