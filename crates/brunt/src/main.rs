//! The binary: arguments in, exit code out. Everything else is wiring between crates.
//!
//! Not a place for decisions about measuring. Invariant: this is the only file that ends the process, and every way to
//! end it has a row in [`exit::Exit`].

#![forbid(unsafe_code)]

// The command line, and what is told before a run.
mod cli;
mod exit;
mod help;
mod input;
mod plan_flags;
mod screen;
mod usage_error;

// Commands.
mod agent;
mod campaign;
mod compare;
mod doctor;
mod fleet;
mod report;
mod run;
mod serve;
mod tool;
mod trace;

// From a specification to a measured run.
mod asking;
mod calibrations;
mod host;
mod host_share;
mod interrupt;
mod journal;
mod measurement;

// Results, and where they go.
mod destination;
mod line_stream;
mod output;
mod presentation;
mod terminal;

// Those who watch a run.
mod background_thread;
mod http;
mod observers;
mod progress;
mod tui;

// Tests.
#[cfg(test)]
mod cases;

use crate::cli::{Arguments, Command};
use crate::exit::{Exit, Failure};
use crate::presentation::{is_coloured, variable};
use brunt_compat::tools;
use clap::{ColorChoice, FromArgMatches};
use std::io::{self, IsTerminal};
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: brunt_engine::memory::Allocator = brunt_engine::memory::Allocator;

fn main() -> ExitCode {
    brunt_engine::memory::settle();
    interrupt::outlive_file_size_limit();
    // A link named after another tool is that tool.
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let program = words.first().map_or("brunt", String::as_str);
    if let Some(tool) = program.rsplit('/').next().and_then(tools::find) {
        return tool::carry_out(tool, program, &words[1..]);
    }
    if let [_, help, name] = &words[..]
        && help == "help"
    {
        if cli::command().find_subcommand(name).is_none() {
            return explain(name);
        }
        // A key of the plan may have the name of a command.
        help::of_key(name).inspect(|text| terminal::show(text, false));
    }
    let matches = match cli::command().after_help(help::behind_all()).try_get_matches_from(&words) {
        Ok(matches) => matches,
        Err(error) => return refused(&words, error),
    };
    if let Some((tool, arguments)) = cli::tool_of(&matches) {
        return tool::carry_out(tool, tool.name, &arguments);
    }
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let ended = match arguments.command {
        Command::Run(run) => campaign::run(&run),
        Command::Scan(scan) => campaign::scan(&scan),
        Command::Search(search) => campaign::search(&search),
        Command::Compare(flags) => compare::compare(&flags),
        Command::Report(flags) => report::report(&flags),
        Command::Load(load) => run::load(&load),
        Command::Doctor(doctor) => doctor::doctor(&doctor),
        Command::Calibrate(search) => campaign::calibrate(&search),
        Command::Agent(flags) => agent::agent(&flags),
        Command::Fleet(flags) => fleet::fleet(&flags),
        Command::Serve(serve) => serve::serve(&serve),
        Command::Trace(flags) => trace::trace(&flags),
        Command::Man(flags) => help::man(&flags),
        Command::Completions(flags) => Ok(help::completions(&flags)),
    };
    match ended {
        Ok(exit) => ExitCode::from(exit as u8),
        Err(Failure { exit, error }) => {
            terminal::say(format_args!("error: {error:#}"));
            ExitCode::from(exit as u8)
        }
    }
}

/// `brunt help` of what is no command.
fn explain(name: &str) -> ExitCode {
    match help::topic(name) {
        Some(text) => {
            terminal::show(text, false);
            ExitCode::from(Exit::Done as u8)
        }
        None => told(&help::unknown(name)),
    }
}

/// Ends with what is wrong with the command line, or with the help that it asks for.
fn refused(words: &[String], error: clap::Error) -> ExitCode {
    match usage_error::of_value(&error, &cli::command()) {
        Some(message) => told(&format!("error: {message}")),
        None => told(&parsers_words(usage_error::corrected(error, cli::command(), words))),
    }
}

/// What the parser says of a mistake, coloured as reports are. Help that was asked for goes to standard output, and ends the process.
fn parsers_words(error: clap::Error) -> String {
    if !error.use_stderr() {
        error.exit();
    }
    let text = error.render();
    let is_coloured = is_coloured(ColorChoice::Auto, io::stderr().is_terminal(), &variable);
    if is_coloured { text.ansi().to_string() } else { text.to_string() }
}

/// Ends with an answer to a command line that is wrong.
fn told(answer: &str) -> ExitCode {
    terminal::say(format_args!("{}", answer.trim_end()));
    ExitCode::from(Exit::Usage as u8)
}
