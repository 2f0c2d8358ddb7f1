//! What a request costs (docs/performance.md): the production worker over canned replies, for a profiler to count, and a
//! client that makes the system calls and nothing else, for others to be compared with.
//!
//! Nothing here is part of the product. Invariant: a verb fails unless every operation was answered correctly, so
//! that only real work is counted.

#![deny(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "saying what was done is the job")]

mod cost;
mod draw;
mod scale;
mod shape;
mod syscall_client;
mod worker;

use cost::Cost;
use draw::Draw;
use scale::Scale;
use std::process::ExitCode;
use syscall_client::SyscallClient;
use worker::Worker;

const USAGE: &str = "\
usage: brunt-bench worker --shape CONNECTIONSxDEPTH[/COMPLETIONS][,uring] --ops N [--threads N] [--protocol NAME] [--verify yes]
       brunt-bench draw --keys N [--popularity LAW] --ops N
       brunt-bench scale [--shape CONNECTIONSxDEPTH] [--rounds N] [--time-ms N] [--cpus A,B]
       brunt-bench floor --server HOST:PORT [OPTIONS]
       brunt-bench cost --to FILE -- COMMAND...

worker: takes the production worker through gets over canned replies
  --shape    connections of a worker and the requests in flight on each, as in 64x32; after a slash, how many
             completions a wait brings at most, as in 16x1/1 [without one: all that there are]; ',uring' behind it
             lets the wait tell what became of sends, as io_uring does
  --ops      how many gets to measure, by all workers
  --threads  how many workers, which take their turns one after the other [1]
  --protocol as in a plan [memcached-text]
  --verify   yes: check every key in full, as --verify of a run does

draw: takes a session through gets without a worker, for data sets of any size
  --keys        how many keys there are
  --popularity  as in a plan [uniform]
  --ops         how many gets

scale: lets one worker and two, pinned, run over canned replies in real time
  --shape    of each worker [64x32]
  --rounds   of both [9]
  --time-ms  for how long in each round [500]
  --cpus     which two processors [0,1]

floor: makes the system calls of gets in closed loop, all hits, and nothing else
  --server       a memcached that holds the keys, zero-padded to 30 bytes, with values of one length
  --connections  how many [16]
  --depth        requests in flight on each [1]
  --io           epoll or uring [epoll]
  --refill       eager: a request for every reply that came; batch: a whole pipeline for a whole one [eager]
  --gather       completions that a wait brings at least, with uring [1]
  --keys         how many keys there are [10000]
  --time-ms      for how long [3000]
  --requests     how many instead

cost: runs a command and writes the processor time that it took as JSON";

/// What was asked for.
#[derive(Clone, Debug)]
enum Verb {
    Worker(Worker),
    Draw(Box<Draw>),
    Scale(Scale),
    SyscallClient(SyscallClient),
    Cost(Cost),
    Help,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match parse(&words) {
        Ok(Verb::Worker(worker)) => worker.run().map(|said| show(&said)),
        Ok(Verb::Draw(draw)) => draw.run().map(|said| show(&said)),
        Ok(Verb::Scale(scale)) => scale.run().map(|said| show(&said)),
        Ok(Verb::SyscallClient(floor)) => floor.run().map(|taken| show(&taken.json())),
        Ok(Verb::Cost(cost)) => cost.run(),
        Ok(Verb::Help) => Ok(show(USAGE)),
        Err(message) => {
            eprintln!("brunt-bench: {message}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    outcome.unwrap_or_else(|message| {
        eprintln!("brunt-bench: {message}");
        ExitCode::FAILURE
    })
}

fn show(said: &str) -> ExitCode {
    println!("{said}");
    ExitCode::SUCCESS
}

/// A whole number from 1 to `max`.
fn number(option: &str, given: &str, max: u64) -> Result<u64, String> {
    let accepted = || format!("{option}: '{given}' was given; accepted: a whole number from 1 to {max}");
    given.parse().ok().filter(|number| (1..=max).contains(number)).ok_or_else(accepted)
}

/// The error of an unknown option or a missing value.
fn unknown(option: &str) -> String {
    format!("'{option}' is no option, or has no value")
}

fn parse(words: &[String]) -> Result<Verb, String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        // Options behind `cost` may be the command's.
        [verb, ..] if *verb != "cost" && words.contains(&"--help") => Ok(Verb::Help),
        ["worker", options @ ..] => Worker::parse(options).map(Verb::Worker),
        ["draw", options @ ..] => Draw::parse(options).map(|draw| Verb::Draw(Box::new(draw))),
        ["scale", options @ ..] => Scale::parse(options).map(Verb::Scale),
        ["floor", options @ ..] => SyscallClient::parse(options).map(Verb::SyscallClient),
        ["cost", options @ ..] => Cost::parse(options).map(Verb::Cost),
        _ => Err("the verbs are worker, draw, scale, floor and cost".to_owned()),
    }
}
