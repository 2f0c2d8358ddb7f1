//! The binary: arguments in, exit code out. Everything else is wiring between crates.
//!
//! Not a place for decisions about measuring. Invariant: this is the only file that ends the process, and every way to
//! end it has a row in [`Exit`].

#![forbid(unsafe_code)]
#![allow(clippy::print_stderr, reason = "telling the user what went wrong is this program's job")]

mod agent;
mod calibrate;
mod calibrations;
mod campaign;
mod cli;
mod compare;
mod doctor;
mod embedded;
mod environment;
mod exit;
mod facts;
mod interrupt;
mod limits;
mod measurement;
mod mutilate;
mod option_file;
mod output;
mod progress;
mod run;
mod serve;

use crate::cli::{Arguments, Command};
use crate::exit::{Exit, Failure};
use brunt_compat::mutilate::Generation;
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    // A link named after another tool is that tool.
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let name = words.first().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
    if let Some(generation) = mutilate::generation_of(name) {
        return mutilate::mutilate(&words[1..], generation);
    }
    let arguments = Arguments::parse();
    let ended = match arguments.command {
        Command::Mutilate(legacy) => return mutilate::mutilate(&legacy.arguments, Generation::First),
        Command::MutilateG2(legacy) => return mutilate::mutilate(&legacy.arguments, Generation::Second),
        Command::Run(run) => campaign::run(&run),
        Command::Scan(scan) => campaign::scan(&scan),
        Command::Search(search) => campaign::search(&search),
        Command::Compare(flags) => compare::compare(&flags),
        Command::Load(load) => run::load(&load),
        Command::Doctor(doctor) => doctor::doctor(&doctor),
        Command::Calibrate(calibrate) => calibrate::calibrate(&calibrate),
        Command::Agent(flags) => agent::agent(&flags),
        Command::Serve(serve) => serve::serve(&serve),
    };
    match ended {
        Ok(exit) => ExitCode::from(exit as u8),
        // Whoever read our output has gone away: the usual end of a pipe into `head`.
        Err(failure) if failure.is_broken_pipe() => ExitCode::from(Exit::Done as u8),
        Err(Failure { exit, error }) => {
            eprintln!("brunt: {error:#}");
            ExitCode::from(exit as u8)
        }
    }
}
