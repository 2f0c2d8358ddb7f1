//! The binary: arguments in, exit code out. Everything else is wiring between crates.
//!
//! Not a place for decisions about measuring. Invariant: this is the only file that ends the process, and every way to
//! end it has a row in [`exit::Exit`].

#![forbid(unsafe_code)]

mod agent;
mod calibrate;
mod calibrations;
mod campaign;
mod cli;
mod compare;
mod destination;
mod doctor;
mod embedded;
mod environment;
mod exit;
mod facts;
mod input;
mod interrupt;
mod limits;
mod measurement;
mod mutilate;
mod observers;
mod option_file;
mod output;
mod progress;
mod run;
mod serve;
mod terminal;

use crate::cli::{Arguments, Command};
use crate::exit::Failure;
use brunt_compat::mutilate::Generation;
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    interrupt::outlive_file_size_limit();
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
        Err(Failure { exit, error }) => {
            terminal::say(format_args!("brunt: {error:#}"));
            ExitCode::from(exit as u8)
        }
    }
}
