//! `cargo xtask fuzz`: looks for bytes that break a decoder, as many targets at a time as there are processors.
//!
//! Not what must hold (that is in crates/brunt-fuzz). The test command shows the decoders the committed corpus, what once broke one, and
//! what is made of these, without a fuzzer. The installed stable compiler does it: coverage is LLVM's, libFuzzer is linked in, and decoders
//! have no unsafe code that an address sanitizer could watch. Invariant: bytes that break something are left behind, and named.

use crate::{release_build, top};
use anyhow::{Context, bail, ensure};
use std::fmt::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

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

/// How long all targets are fuzzed together.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Budget {
    Minutes(f64),
    Executions(u64),
}

/// Fuzzes what `words` name: all targets where none is named.
///
/// # Errors
/// A word that is no option and no target; a target that was broken, with the file that did it.
pub(crate) fn run(words: &[&str]) -> anyhow::Result<()> {
    let all = targets()?;
    let (budget, wanted) = parse(words)?;
    if let Some(unknown) = wanted.iter().find(|word| !all.iter().any(|target| target == *word)) {
        bail!("invalid value '{unknown}' for TARGET: expected {}", all.join(", "));
    }
    let target = release_build::target_folder()?.join("fuzz");
    let programs = build(&target)?;
    let mut chosen = all;
    chosen.retain(|target| wanted.is_empty() || wanted.contains(&target.as_str()));
    let jobs = std::thread::available_parallelism().map_or(1, |count| count.get().min(chosen.len()));
    let limit = match budget.unwrap_or(Budget::Minutes(chosen.len() as f64 / jobs as f64)) {
        Budget::Minutes(minutes) => {
            let seconds = minutes * 60.0 * jobs as f64 / chosen.len() as f64;
            format!("-max_total_time={}", seconds.ceil())
        }
        Budget::Executions(sum) => format!("-runs={}", sum.div_ceil(chosen.len() as u64)),
    };
    println!("{} targets, {jobs} at a time, each {limit}", chosen.len());
    println!("{:<22} {:>13} {:>9} {:>9} {:>7}", "target", "executions", "per s", "edges", "inputs");
    // The targets that are left, and what was found.
    let (left, found) = (Mutex::new(chosen.iter()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                // The lock is given back before the target is fuzzed.
                let next = || left.lock().expect("nothing panics while it is held").next();
                while let Some(name) = next() {
                    let report = fuzz(&programs, &target.join("found").join(name), name, &limit);
                    if let Ok(report) = &report {
                        println!("{report}");
                    }
                    found.lock().expect("nothing panics while it is held").push(report);
                }
            });
        }
    });
    let reports = found.into_inner().expect("nothing panics while it is held");
    let reports = reports.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
    println!("{:<22} {:>13}", "in all", reports.iter().map(|report| report.executions).sum::<u64>());
    let broken: Vec<&str> = reports
        .iter()
        .filter(|report| report.broken.is_some())
        .map(|report| report.target.as_str())
        .collect();
    ensure!(broken.is_empty(), "broken: {}", broken.join(", "));
    Ok(())
}

/// Options, then targets.
fn parse<'a>(words: &'a [&'a str]) -> anyhow::Result<(Option<Budget>, &'a [&'a str])> {
    let given = |option: &str, value: &str, accepted: &str| {
        format!("invalid value '{value}' for {option}: expected {accepted}")
    };
    Ok(match words {
        [option @ "--minutes", value, targets @ ..] => {
            let minutes = value.parse().ok().filter(|minutes: &f64| minutes.is_finite() && *minutes > 0.0);
            let minutes =
                minutes.with_context(|| given(option, value, "a number above 0, e.g. 30 or 0.5"))?;
            (Some(Budget::Minutes(minutes)), targets)
        }
        [option @ "--executions", value, targets @ ..] => {
            let sum = value.parse().ok().filter(|sum| *sum > 0);
            let sum = sum.with_context(|| given(option, value, "a whole number from 1, e.g. 100000000"))?;
            (Some(Budget::Executions(sum)), targets)
        }
        [option, ..] if option.starts_with('-') => {
            bail!("'{option}' is no option, or has no value: expected --minutes N or --executions N")
        }
        targets => (None, targets),
    })
}

/// The names of all targets, from the files that define them.
fn targets() -> anyhow::Result<Vec<String>> {
    let folder = package().join("targets");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry?.path();
        names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
    }
    names.sort();
    Ok(names)
}

fn package() -> PathBuf {
    top().join("crates/brunt-fuzz")
}

/// The compiler's own platform.
fn host() -> anyhow::Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("cannot run rustc")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc -vV does not name its host")
}

/// Builds all targets with coverage; where they lie. Apart, because the flags would else build everything anew each time.
fn build(target: &Path) -> anyhow::Result<PathBuf> {
    // For a named target, so that the flags are for the programs and not for what builds them.
    let host = host()?;
    let arguments = ["--package", "brunt-fuzz", "--features", "targets", "--bins", "--target", &host];
    let variables = [("RUSTFLAGS", COVERAGE), ("CARGO_PROFILE_RELEASE_LTO", "off")];
    release_build::build(target, &arguments, &variables).context("a C++ compiler is needed")?;
    Ok(target.join(host).join("release"))
}

/// What became of a target.
#[derive(Debug, Default, PartialEq)]
struct Report {
    target: String,
    executions: u64,
    per_s: u64,
    edges: u64,
    inputs: u64,
    /// What libFuzzer and the target said, if something broke.
    broken: Option<String>,
}

impl Report {
    /// Takes what libFuzzer says apart.
    fn of(target: &str, said: &str, is_broken: bool) -> Self {
        let number = |text: &str| {
            let digits = text.trim_start().split(|letter: char| !letter.is_ascii_digit()).next();
            digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
        };
        let after = |name: &str| said.rsplit_once(name).map_or(0, |(_, text)| number(text));
        let is_told =
            |line: &&str| !["#", "INFO:", "WARNING:", "stat::"].iter().any(|head| line.starts_with(head));
        Self {
            target: target.to_owned(),
            executions: after("stat::number_of_executed_units:"),
            per_s: after("stat::average_exec_per_sec:"),
            edges: after(" cov:"),
            inputs: after(" corp:"),
            broken: is_broken.then(|| said.lines().filter(is_told).collect::<Vec<_>>().join("\n")),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { target, executions, per_s, edges, inputs, broken } = self;
        write!(formatter, "{target:<22} {executions:>13} {per_s:>9} {edges:>9} {inputs:>7}")?;
        broken.as_ref().map_or(Ok(()), |said| write!(formatter, "  BROKEN\n{said}"))
    }
}

/// Fuzzes a target. What widens the coverage is written to `grown`; what breaks it to the crate's `crashes`, which its tests show it again.
fn fuzz(programs: &Path, grown: &Path, target: &str, limit: &str) -> anyhow::Result<Report> {
    let crashes = package().join("crashes").join(target);
    for folder in [grown, &crashes] {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let program = programs.join(target);
    let output = Command::new(&program)
        .arg(grown)
        .arg(package().join("corpus").join(target))
        .arg(limit)
        .arg(format!("-max_len={INPUT_BYTES_MAX}"))
        .arg(format!("-timeout={INPUT_MAX_S}"))
        .arg(format!("-artifact_prefix={}/", crashes.display()))
        .args(["-print_final_stats=1", "-print_funcs=0"])
        .output()
        .with_context(|| format!("cannot run {target}"))?;
    // Nothing is left of a folder without a crash.
    let _ = std::fs::remove_dir(&crashes);
    let said = String::from_utf8_lossy(&output.stderr);
    let mut report = Report::of(target, &said, !output.status.success());
    if let Some(broken) = &mut report.broken {
        let file = said.rsplit_once("Test unit written to ").and_then(|(_, rest)| rest.lines().next());
        let replay = format!("{} {}", program.display(), file.unwrap_or("FILE"));
        write!(broken, "\nto replay: {replay}\nafter a repair: cargo xtask test fuzz")?;
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_come_before_targets() {
        let table: [(&[&str], Option<Budget>, &[&str]); 4] = [
            (&[], None, &[]),
            (&["resp", "fleet"], None, &["resp", "fleet"]),
            (&["--minutes", "0.5", "resp"], Some(Budget::Minutes(0.5)), &["resp"]),
            (&["--executions", "100000000"], Some(Budget::Executions(100_000_000)), &[]),
        ];
        for (words, budget, targets) in table {
            assert_eq!(parse(words).unwrap(), (budget, targets), "{words:?}");
        }
        for words in [&["--minutes"][..], &["--minutes", "0"], &["--executions", "-1"], &["--seconds", "3"]] {
            assert!(parse(words).is_err(), "{words:?}");
        }
    }

    #[test]
    fn what_libfuzzer_says_is_taken_apart() {
        let said = "INFO: Seed: 1\n#2\tINITED cov: 40 ft: 50 corp: 3/90b exec/s: 0 rss: 40Mb\n\
                    #900\tDONE   cov: 61 ft: 99 corp: 17/1Kb lim: 8 exec/s: 300 rss: 41Mb\n\
                    thread panicked\nstat::number_of_executed_units: 900\nstat::average_exec_per_sec:     300\n";
        let report = Report {
            target: "resp".to_owned(),
            executions: 900,
            per_s: 300,
            edges: 61,
            inputs: 17,
            broken: None,
        };
        assert_eq!(Report::of("resp", said, false), report);
        let broken = Some("thread panicked".to_owned());
        assert_eq!(Report::of("resp", said, true), Report { broken, ..report });
    }
}
