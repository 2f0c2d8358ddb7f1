//! The project's own commands: `cargo xtask VERB`.
//!
//! Each verb has its file; this one only picks. Nothing here is part of the product, and no product crate is used: the
//! tests and the tidy check must work while the product does not compile.

#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "talking to the person who typed the command is the job"
)]

mod accuracy;
mod bench;
mod browser;
mod fuzz;
mod instructions;
mod peers;
mod pictures;
mod programs;
mod recorded_text;
mod reference_server;
mod release_build;
mod soak;
mod terminal_picture;
mod test;
mod tidy;
mod web_test;

use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask VERB

  test          everything that must pass: programs, format, clippy, tidy, tests, documentation
  test CRATE    the tests of one crate: stats or brunt-stats
  accuracy      known stalls, queues and packet captures live, at full length; wants an idle machine;
                --io epoll or --io uring makes all of them there, else they take turns
                accuracy wire: what brunt and other tools print beside packet captures; accuracy wire --help
  replications  intervals, steady states and queues in virtual time, at full length
  bench         brunt, its floor and every peer that is there, side by side on this machine; bench --help
  instructions  instructions of the worker per get, beside the baseline; --record makes them the baseline,
                --gate fails where they have grown, as test does
  fuzz          [--minutes N | --executions N] [TARGET ...]: random and hostile bytes for every decoder, N for all
                of them together; a minute each where nothing is said
  soak          [MINUTES]: 20 000 operations per second against memcached, 10 minutes: memory, accounting, files
  peers         one known truth beside what other load generators on the PATH print
  web-test      HTML pages of runs in a headless Chromium, which is installed where it is missing
  pictures      docs/img/ from real runs of a release build, or of the brunt at this path: [BRUNT]
  tidy          the rules of CONTRIBUTING.md that a program can check";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["test"] => test::run(),
        ["test", package] if !package.starts_with('-') => test::run_crate(package),
        ["accuracy"] => accuracy::live(None),
        ["accuracy", "--io", io @ ("epoll" | "uring")] => accuracy::live(Some(io)),
        ["accuracy", "wire", "--help"] => {
            println!("{}", accuracy::wire::USAGE);
            return ExitCode::SUCCESS;
        }
        ["accuracy", "wire", options @ ..] => accuracy::wire::run(options),
        ["replications"] => accuracy::replications(),
        ["instructions"] => instructions::run(false),
        ["instructions", "--record"] => instructions::run(true),
        ["instructions", "--gate"] => instructions::gate().map(|reason| {
            if let Some(reason) = reason {
                println!("NOT COUNTED: {reason}");
            }
        }),
        ["bench", "--help"] => {
            println!("{}", bench::USAGE);
            return ExitCode::SUCCESS;
        }
        ["bench", options @ ..] => bench::run(options),
        ["fuzz", words @ ..] => fuzz::run(words),
        ["soak", words @ ..] => soak::run(words),
        ["peers"] => peers::run(),
        ["web-test"] => web_test::run(),
        ["pictures"] => pictures::run(None),
        ["pictures", brunt] if !brunt.starts_with('-') => pictures::run(Some(brunt)),
        ["tidy"] => tidy::run(),
        ["help" | "--help" | "-h"] | [_, "--help"] => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        [] => return usage_error("no verb given"),
        _ => return usage_error(&format!("'{}' is no verb", words.join(" "))),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask {}: {error:#}", words.join(" "));
            ExitCode::FAILURE
        }
    }
}

fn usage_error(message: &str) -> ExitCode {
    eprintln!("xtask: {message}\n\n{USAGE}");
    ExitCode::from(2)
}

/// The top of the source tree, whatever directory the command was typed in.
fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this package is a folder of the workspace")
}
