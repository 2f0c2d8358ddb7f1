//! What a request costs (docs/method.md): the production worker over canned replies, for a profiler to count, and a
//! client that makes the system calls and nothing else, for others to be compared with.
//!
//! Nothing here is part of the product. Invariant: a verb fails unless every operation was answered correctly, so
//! that only real work is counted.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "saying what was done is the job")]

mod draw;
mod shape;
mod syscall_client;
mod worker;

use clap::Parser;
use draw::Draw;
use std::process::ExitCode;
use syscall_client::SyscallClient;
use worker::Worker;

/// What a request costs
#[derive(Debug, Parser)]
#[command(name = "brunt-bench", max_term_width = 110)]
enum Verb {
    /// Takes the production worker through gets over canned replies
    Worker(Worker),
    /// Takes a session through gets without a worker, for data sets of any size
    Draw(Draw),
    /// Makes the system calls of gets in closed loop, all hits, and nothing else
    Floor(SyscallClient),
}

fn main() -> ExitCode {
    let outcome = match Verb::parse() {
        Verb::Worker(worker) => worker.run(),
        Verb::Draw(draw) => draw.run(),
        Verb::Floor(floor) => floor.run().map(|measured| measured.json()),
    };
    match outcome {
        Ok(said) => {
            println!("{said}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

/// The options of a verb; the error as a user sees it.
#[cfg(test)]
fn parsed<T: clap::Args>(words: &str) -> Result<T, String> {
    let command = T::augment_args(clap::Command::new("verb").no_binary_name(true));
    let matches = command.try_get_matches_from(words.split_whitespace());
    matches.and_then(|matches| T::from_arg_matches(&matches)).map_err(|error| error.to_string())
}
