//! `brunt man`: manual pages from the table of options, as troff with the macros of man(7).
//!
//! What options mean is said where they are declared. Invariant: every command and every option of the help is on a page, with the same words.

use crate::cli;
use crate::destination::write_whole;
use crate::exit::{Exit, Failure};
use crate::help;
use crate::terminal::show;
use brunt_compat::tools;
use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use std::fs;
use std::io::{self, Write};
use std::iter;

/// Commands that users give.
const SECTION: &str = "1";

/// Prints the page of a command, or writes all pages into a directory.
pub(crate) fn man(flags: &cli::Man) -> Result<Exit, Failure> {
    let pages = pages();
    let Some(directory) = &flags.dir else {
        let name = flags.command.as_ref().map_or("brunt".to_owned(), |name| format!("brunt-{name}"));
        let page = pages.into_iter().find(|page| page.name == name).ok_or_else(|| unknown(&name))?;
        show(page.text, false);
        return Ok(Exit::Done);
    };
    let refused = |error: io::Error| {
        let directory = directory.display();
        Failure::usage(format!(
            "invalid value '{directory}' for --dir ({error}): expected a directory where files can be made, such as ~/.local/share/man/man1"
        ))
    };
    fs::create_dir_all(directory).map_err(refused)?;
    for Page { name, text } in pages {
        let path = directory.join(format!("{name}.{SECTION}"));
        write_whole(&path, |out| out.write_all(&text)).map_err(refused)?;
    }
    Ok(Exit::Done)
}

fn unknown(name: &str) -> Failure {
    let name = name.strip_prefix("brunt-").unwrap_or(name);
    let command = cli::command();
    let known: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
    Failure::usage(format!("invalid value '{name}' for COMMAND: expected {}", known.join(", ")))
}

/// A page.
struct Page {
    /// `brunt`, `brunt-run`.
    name: String,
    text: Vec<u8>,
}

/// That of all commands first, then that of each.
fn pages() -> Vec<Page> {
    let mut program = cli::command().after_help(help::behind_all()).disable_help_subcommand(true);
    program.build();
    let page = |command: &Command| Page {
        name: command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned(),
        text: text(command),
    };
    iter::once(&program).chain(program.get_subcommands()).map(page).collect()
}

fn text(command: &Command) -> Vec<u8> {
    let mut text = Vec::new();
    // Memory takes everything.
    let _ = write(command, &mut text);
    text
}

fn write(command: &Command, out: &mut dyn Write) -> io::Result<()> {
    // A hundred options are a list, and no line that tells how a command is called.
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").to_owned();
    let page = Man::new(command.clone().override_usage(usage)).section(SECTION);
    let page = page.source(concat!("brunt ", env!("CARGO_PKG_VERSION"))).manual("brunt");
    page.render_title(out)?;
    page.render_name_section(out)?;
    page.render_synopsis_section(out)?;
    page.render_description_section(out)?;
    page.render_options_section(out)?;
    if command.has_subcommands() {
        page.render_subcommands_section(out)?;
    }
    let mut rest = Roff::new();
    if let Some(notes) = command.get_after_help() {
        rest.control("SH", ["NOTES"]);
        notes.to_string().split("\n\n").for_each(|block| write_block(&mut rest, block));
    }
    // Other tools' command lines end as those do.
    if tools::find(command.get_name()).is_none() {
        rest.control("SH", ["EXIT STATUS"]);
        for (exit, means) in Exit::MEANINGS {
            rest.control("TP", []);
            rest.text([bold((exit as u8).to_string())]);
            rest.text([roman(means)]);
        }
    }
    rest.to_writer(out)
}

/// A paragraph, or lines that stay as they are where some of them are indented.
fn write_block(page: &mut Roff, block: &str) {
    page.control("PP", []);
    let is_table = block.lines().any(|line| line.starts_with(' '));
    if is_table {
        page.control("nf", []);
    }
    block.lines().for_each(|line| {
        page.text([roman(line)]);
    });
    if is_table {
        page.control("fi", []);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page as `man` shows it, but for fonts and lines.
    fn words(text: &[u8]) -> String {
        let text = String::from_utf8(text.to_vec()).unwrap();
        text.replace("\\-", "-")
            .replace("\\*(Aq", "'")
            .replace("\\fB", "")
            .replace("\\fI", "")
            .replace("\\fR", "")
            .replace("\\\\", "\\")
    }

    #[test]
    fn every_command_and_option_of_the_help_has_its_place() {
        let pages = pages();
        let mut program = cli::command();
        program.build();
        let mut options = 0;
        let page_of = |name: &str| pages.iter().find(|page| page.name == name).map(|page| words(&page.text));
        let all = page_of("brunt").unwrap();
        for command in program.get_subcommands().filter(|command| command.get_name() != "help") {
            let name = format!("brunt-{}", command.get_name());
            assert!(all.contains(&format!("{name}(1)")), "{name}");
            let page = page_of(&name).unwrap_or_else(|| panic!("{name} has no page"));
            assert!(page.contains(&format!("{name} - {}", command.get_about().unwrap())), "{name}");
            for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
                let Some(long) = argument.get_long() else { continue };
                let help = argument.get_help().unwrap().to_string();
                assert!(
                    page.contains(&format!("--{long}")) && page.contains(&help),
                    "{name} --{long}: {help}"
                );
                options += 1;
            }
        }
        assert!(options > 400, "{options}");
        assert_eq!(pages.len(), 1 + program.get_subcommands().count() - 1);
    }
}
