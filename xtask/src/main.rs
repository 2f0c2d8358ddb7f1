//! The project's own commands: `cargo xtask VERB`.
//!
//! Each verb has its file; this one only picks. Invariant: no product crate is used, so that the test command and tidy work
//! while the product does not compile.

#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "talking to the person who typed the command is the job"
)]

mod accuracy;
mod bench;
mod browser;
mod cargo;
mod dependencies;
mod fleet_test;
mod fuzz;
mod instructions;
mod package;
mod parallel;
mod pictures;
mod process;
mod programs;
mod test;
mod tidy;
mod web_test;

use clap::Parser;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The project's own commands
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", max_term_width = 110)]
enum Verb {
    /// Everything that must pass: programs, format, clippy, tidy, tests, documentation
    Test {
        /// Only the tests of this crate, e.g. stats or brunt-stats
        #[arg(value_name = "CRATE")]
        package: Option<String>,
    },
    /// Known stalls, queues, packet captures and a long run live, at full length; needs an idle machine
    Accuracy {
        /// Make all of them on this interface to the kernel [by turns]
        #[arg(long, value_parser = ["epoll", "uring"])]
        io: Option<String>,
    },
    /// Confidence intervals, steady states and queues in virtual time, at full length
    Replications,
    /// brunt, its floor and every peer that is found, side by side on this machine
    Bench(bench::Options),
    /// Instructions of the worker per get, beside the baseline
    Instructions {
        /// Make them the baseline
        #[arg(long)]
        record: bool,
        /// Fail if they have grown, as the test command does
        #[arg(long, conflicts_with = "record")]
        gate: bool,
    },
    /// Random and hostile bytes for every decoder
    Fuzz(fuzz::Options),
    /// HTML pages of runs in a headless Chromium, which is installed if it is missing
    WebTest,
    /// What `brunt fleet` prints, read by shellcheck, the schemas of Kubernetes, and a Slurm of four virtual nodes
    FleetTest,
    /// docs/img/ from real runs
    Pictures {
        /// Of this program [a release build of the tree]
        brunt: Option<PathBuf>,
    },
    /// Packages for those who do not build it: an archive, Debian packages, a wheel, an image, crates
    Package(package::Options),
    /// Each package installed in a bare root file system, tried and removed; needs root
    TryPackages,
    /// The rules of CONTRIBUTING.md that a program can check
    Tidy,
}

fn main() -> ExitCode {
    let outcome = match Verb::parse() {
        Verb::Test { package } => test::run(package.as_deref()),
        Verb::Accuracy { io } => accuracy::live(io.as_deref()),
        Verb::Replications => accuracy::replications(),
        Verb::Bench(options) => bench::run(&options),
        Verb::Instructions { gate: true, .. } => instructions::ready().and_then(|()| instructions::gate()),
        Verb::Instructions { record, .. } => instructions::run(record),
        Verb::Fuzz(options) => fuzz::run(&options),
        Verb::WebTest => web_test::run(),
        Verb::FleetTest => fleet_test::run(),
        Verb::Pictures { brunt } => pictures::run(brunt.as_deref()),
        Verb::Package(options) => package::run(&options),
        Verb::TryPackages => package::try_out(),
        Verb::Tidy => tidy::run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The top of the source tree, whatever directory the command was typed in.
fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this package is a folder of the workspace")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn verbs_and_options_fit_together() {
        super::Verb::command().debug_assert();
    }
}
