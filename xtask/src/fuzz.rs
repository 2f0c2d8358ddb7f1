//! `cargo xtask fuzz`: looks for bytes that break a decoder, as many targets at a time as there are CPUs.
//!
//! Not what must hold (that is in crates/brunt-fuzz). The test command shows the decoders the committed corpus, what once broke one, and
//! what is made of these, without a fuzzer. The installed stable compiler does it: coverage is LLVM's, libFuzzer is linked in, and decoders
//! have no unsafe code that an address sanitizer could watch. Invariant: bytes that break something are left behind, and named.

use crate::{cargo, parallel, programs, top};
use anyhow::{Context, bail, ensure};
use clap::{Args, value_parser};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Longer inputs find nothing that these do not: the longest unit of a decoder has 2 KiB.
const INPUT_BYTES_MAX: u32 = 8192;
/// Of one input; a decoder takes microseconds.
const INPUT_MAX_S: u32 = 5;
/// What libFuzzer needs to see of a program: which edges it took, and what it compared.
const COVERAGE: &str = "-Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Ccodegen-units=1 -Coverflow-checks=yes -Cdebug-assertions=yes";

/// Options of the command.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Of all targets together [as many as there are targets, by CPUs]
    #[arg(long, value_name = "N", value_parser = minutes)]
    minutes: Option<f64>,
    /// Inputs to try instead, of all targets together
    #[arg(long, value_name = "N", conflicts_with = "minutes", value_parser = value_parser!(u64).range(1..))]
    executions: Option<u64>,
    /// Which decoders; all where none is given
    targets: Vec<String>,
}

fn minutes(text: &str) -> Result<f64, &'static str> {
    let minutes = text.parse().ok().filter(|minutes: &f64| minutes.is_finite() && *minutes > 0.0);
    minutes.ok_or("expected a number above 0, e.g. 30 or 0.5")
}

impl Options {
    /// The option of libFuzzer that ends each of `targets` targets, of which `at_once` run at a time.
    fn limit(&self, targets: usize, at_once: usize) -> String {
        if let Some(sum) = self.executions {
            return format!("-runs={}", sum.div_ceil(targets as u64));
        }
        let minutes_each = self.minutes.map_or(1.0, |minutes| minutes * at_once as f64 / targets as f64);
        format!("-max_total_time={}", (60.0 * minutes_each).ceil())
    }
}

/// Fuzzes the targets.
///
/// # Errors
/// There is no such target; or one was broken, with the file that did it.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let all = targets()?;
    if let Some(unknown) = options.targets.iter().find(|target| !all.contains(target)) {
        bail!("invalid value '{unknown}' for TARGET: expected {}", all.join(", "));
    }
    let chosen = if options.targets.is_empty() { all } else { options.targets.clone() };
    let target = cargo::target_folder()?.join("fuzz");
    let host = programs::first_line("rustc", &["--print", "host-tuple"])?;
    let programs =
        chosen.iter().map(|name| build(&target, &host, name)).collect::<anyhow::Result<Vec<_>>>()?;
    let at_once = parallel::cpus().min(chosen.len());
    let limit = options.limit(chosen.len(), at_once);
    println!("{} targets, {at_once} at a time, each {limit}", chosen.len());
    let reports = parallel::map(chosen.into_iter().zip(programs).collect(), at_once, |(name, program)| {
        let report = fuzz(&program, &target.join("found").join(&name), &name, &limit)?;
        println!("{name}: {}", report.text);
        anyhow::Ok((name, report))
    });
    let reports = reports.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
    let broken = reports.iter().filter(|(_, report)| report.is_broken);
    let broken: Vec<&str> = broken.map(|(name, _)| name.as_str()).collect();
    ensure!(broken.is_empty(), "broken: {}", broken.join(", "));
    Ok(())
}

/// The names of all targets: each has a folder of inputs.
fn targets() -> anyhow::Result<Vec<String>> {
    let folder = package().join("corpus");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

fn package() -> PathBuf {
    top().join("crates/brunt-fuzz")
}

/// Builds the program of a target, with coverage. For a named platform, so that the flags are for the program and not for what builds
/// it. Apart, because the flags would else build everything anew each time.
fn build(target: &Path, host: &str, name: &str) -> anyhow::Result<PathBuf> {
    let arguments = ["--package", "brunt-fuzz", "--features", "target", "--bins", "--target", host];
    let variables =
        [("RUSTFLAGS", COVERAGE), ("CARGO_PROFILE_RELEASE_LTO", "off"), ("BRUNT_FUZZ_TARGET", name)];
    cargo::build(target, "release", &arguments, &variables).context("a C++ compiler is needed")?;
    let program = target.join(name);
    std::fs::copy(target.join(host).join("release/target"), &program)?;
    Ok(program)
}

/// What became of a target.
#[derive(Debug, PartialEq)]
struct Report {
    /// The last line of libFuzzer's about its progress: executions (behind `#`), edges (`cov`), inputs (`corp`), executions per second; or what
    /// it and the target said, if something broke.
    text: String,
    is_broken: bool,
}

impl Report {
    /// Takes what libFuzzer says apart.
    fn of(said: &str, is_broken: bool) -> Self {
        let is_told =
            |line: &&str| !["#", "INFO:", "WARNING:", "stat::"].iter().any(|head| line.starts_with(head));
        let text = match is_broken {
            true => format!("BROKEN\n{}", said.lines().filter(is_told).collect::<Vec<_>>().join("\n")),
            false => said.lines().rfind(|line| line.starts_with('#')).unwrap_or_default().to_owned(),
        };
        Self { text, is_broken }
    }
}

/// Fuzzes a target. What widens the coverage is written to `grown`; what breaks it to the crate's `crashes`, which its tests show it again.
fn fuzz(program: &Path, grown: &Path, target: &str, limit: &str) -> anyhow::Result<Report> {
    let crashes = package().join("crashes").join(target);
    for folder in [grown, &crashes] {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let output = Command::new(program)
        .arg(grown)
        .arg(package().join("corpus").join(target))
        .arg(limit)
        .arg(format!("-max_len={INPUT_BYTES_MAX}"))
        .arg(format!("-timeout={INPUT_MAX_S}"))
        .arg(format!("-artifact_prefix={}/", crashes.display()))
        .arg("-print_funcs=0")
        .output()
        .with_context(|| format!("cannot run {target}"))?;
    // Nothing is left of a folder without a crash.
    let _ = std::fs::remove_dir(&crashes);
    let said = String::from_utf8_lossy(&output.stderr);
    let mut report = Report::of(&said, !output.status.success());
    if report.is_broken {
        let file = said.rsplit_once("Test unit written to ").and_then(|(_, rest)| rest.lines().next());
        let replay = format!("{} {}", program.display(), file.unwrap_or("FILE"));
        report.text += &format!("\nto replay: {replay}\nafter a repair: cargo xtask test fuzz");
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::tests::parsed;

    #[test]
    fn limits_are_divided_among_targets() {
        let table: [(&[&str], &str); 4] = [
            (&[], "-max_total_time=60"),
            (&["resp", "fleet"], "-max_total_time=60"),
            (&["--minutes", "0.5", "resp"], "-max_total_time=6"),
            (&["--executions", "100000001"], "-runs=10000001"),
        ];
        for (words, limit) in table {
            assert_eq!(parsed::<Options>(words).unwrap().limit(10, 2), limit, "{words:?}");
        }
        for words in [&["--minutes"][..], &["--minutes", "0"], &["--executions", "-1"], &["--seconds", "3"]] {
            assert!(parsed::<Options>(words).is_err(), "{words:?}");
        }
    }

    #[test]
    fn what_libfuzzer_says_is_taken_apart() {
        let done = "#900\tDONE   cov: 61 ft: 99 corp: 17/1Kb lim: 8 exec/s: 300 rss: 41Mb";
        let said = format!(
            "INFO: Seed: 1\n#2\tINITED cov: 40 rss: 40Mb\n{done}\nthread panicked\nstat::peak_rss_mb: 41\n"
        );
        assert_eq!(Report::of(&said, false), Report { text: done.to_owned(), is_broken: false });
        let text = "BROKEN\nthread panicked".to_owned();
        assert_eq!(Report::of(&said, true), Report { text, is_broken: true });
    }
}
