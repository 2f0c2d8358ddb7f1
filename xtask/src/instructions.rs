//! `cargo xtask instructions`: instructions of the worker per get, the Io left out, beside the committed baseline.
//!
//! Not a time: instructions repeat to the last digit where times wander, and say nothing of caches (docs/performance.md).
//! The binary of `brunt-bench` runs under callgrind with two numbers of gets; what the longer run spent more, divided by
//! what it did more, is free of start-up and preload.

mod baseline;
mod gate;
mod keys;
mod part;
mod profile;
mod source;
mod threads;

use crate::{programs, release_build};
use anyhow::{Context, bail, ensure};
use baseline::Baseline;
use part::Part;
use profile::{Division, Profile};
use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Connections × depth, and in the second case one completion per wait: the loop at its least and at its most per get. In the last one
/// sends have their results from the next wait, as those of io_uring.
const SHAPES: [&str; 4] = ["16x1", "16x1/1", "64x32", "16x1,uring"];
/// Gets of the two runs: enough that what happens once in a while (a full interval, a page of histograms) has its share.
const OPS: [u64; 2] = [20_000, 100_000];
/// Every turn of the worker goes through this function.
const ROOT: &str = "brunt_engine::run::in_process_run::run_one_iteration";
/// Part of the name of every function of the Io.
const IO: &str = "canned::Canned";

/// How much the most of equal counts may be above the least.
const SPREAD_MAX: f64 = 0.01;
/// How long the counting may take in the test command, building left out: three times what two busy processors need.
const GATE_MAX: Duration = Duration::from_secs(90);
/// What `timeout` ends with when it had to end its command.
const TIMED_OUT: i32 = 124;

/// Counts, compares, and records where that was asked for.
///
/// # Errors
/// A program is missing, the build or a run fails, or the profile cannot be read.
pub(crate) fn run(record: bool) -> anyhow::Result<()> {
    programs::ensure_profiler()?;
    let binary = build()?;
    let Some(counted) = count_all(&binary, None)? else { bail!("no time to count") };
    show(&counted, &Baseline::read(&baseline::path())?);
    keys::show(&binary)?;
    threads::show(&binary)?;
    if record {
        let recorded = first_line("date", &["--utc", "+%F"])?;
        std::fs::write(baseline::path(), baseline::text(&recorded, &machine()?, &counted)?)?;
        println!("recorded in {}", baseline::path().display());
    }
    Ok(())
}

/// As `gate`, unless everything that would be counted is as it was when the baseline was recorded.
///
/// # Errors
/// As `gate`, or a source file cannot be read.
pub(crate) fn gate_if_changed() -> anyhow::Result<Option<String>> {
    let baseline = Baseline::read(&baseline::path())?;
    if baseline.is_of_this_source()? {
        println!("    nothing that is counted has changed since the baseline was ({})", baseline.origin());
        return Ok(None);
    }
    gate()
}

/// Counts, and compares with what is allowed. Returns why nothing was counted, where that is so.
///
/// # Errors
/// A shape takes more than it may, the build or a run fails, or the profile cannot be read.
pub(crate) fn gate() -> anyhow::Result<Option<String>> {
    if let Err(error) = programs::ensure_profiler() {
        return Ok(Some(format!("{error:#}").replace('\n', ";")));
    }
    // valgrind does not know every processor and every kernel, and some containers keep it from what it needs.
    let trial = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "true"])
        .output();
    if !trial.is_ok_and(|output| output.status.success()) {
        return Ok(Some("callgrind cannot run here".to_owned()));
    }
    let binary = build()?;
    let Some(counted) = count_all(&binary, Some(Instant::now() + GATE_MAX))? else {
        return Ok(Some(format!("callgrind took longer than {} s", GATE_MAX.as_secs())));
    };
    let before = Baseline::read(&baseline::path())?;
    show(&counted, &before);
    let machine = machine()?;
    let judgement = gate::judge(&counted, &before, &machine);
    if judgement.is_elsewhere {
        println!(
            "counted elsewhere than the baseline ({machine}): a shape may take {:.0} % more",
            100.0 * judgement.growth_max
        );
    }
    for row in &judgement.outdated {
        println!(
            "far below the baseline, which holds nothing any more: {row}; `cargo xtask instructions --record`"
        );
    }
    ensure!(
        judgement.exceeded.is_empty(),
        "more than {:.0} % above the baseline: {}\n  see the table above; `cargo xtask instructions --record` if it is meant, \
         and say why in the commit",
        100.0 * judgement.growth_max,
        judgement.exceeded.join("; ")
    );
    keys::show(&binary)?;
    threads::show(&binary)?;
    Ok(None)
}

/// Every shape; nothing where the time is up before all are counted.
fn count_all(
    binary: &Path,
    deadline: Option<Instant>,
) -> anyhow::Result<Option<Vec<(&'static str, Division)>>> {
    let mut counted = Vec::new();
    for shape in SHAPES {
        let division = count(binary, shape, 1, deadline).with_context(|| format!("shape {shape}"))?;
        let Some(division) = division else { return Ok(None) };
        counted.push((shape, division));
    }
    Ok(Some(counted))
}

fn show(counted: &[(&str, Division)], before: &Baseline) {
    println!("instructions per get, in brackets the change against the baseline ({})", before.origin());
    print!("{}", table(counted, before));
}

/// Builds the benchmark as released, but with the names of inlined functions. In a target directory of its own, because
/// the other setting would else build everything anew each time.
fn build() -> anyhow::Result<PathBuf> {
    let target = release_build::target_folder()?.join("instructions");
    let variables = [("CARGO_PROFILE_RELEASE_DEBUG", "limited")];
    release_build::build(&target, &["--package", "brunt-bench"], &variables)?;
    Ok(target.join("release/brunt-bench"))
}

/// Instructions per get of one shape, by number of workers.
fn count(
    binary: &Path,
    shape: &str,
    threads: u32,
    deadline: Option<Instant>,
) -> anyhow::Result<Option<Division>> {
    let mut divisions = Vec::new();
    for ops in OPS {
        let Some(division) = divide(binary, shape, threads, ops, deadline)? else { return Ok(None) };
        divisions.push(division);
    }
    Ok(Some(divisions[1].slope(&divisions[0], OPS[1] - OPS[0])))
}

/// Profiles one run; nothing where the time is up before it ends.
fn divide(
    binary: &Path,
    shape: &str,
    threads: u32,
    ops: u64,
    deadline: Option<Instant>,
) -> anyhow::Result<Option<Division>> {
    let written = binary.with_file_name(format!("{}-{threads}-{ops}.callgrind", shape.replace('/', "-")));
    // `timeout 0` is no bound.
    let left =
        deadline.map_or(0, |deadline| deadline.saturating_duration_since(Instant::now()).as_secs() + 1);
    let output = Command::new("timeout")
        .args([&left.to_string(), "valgrind"])
        .args(profile::OPTIONS)
        .arg(format!("--toggle-collect={ROOT}"))
        .arg(format!("--callgrind-out-file={}", written.display()))
        .arg(binary)
        .args(["worker", "--shape", shape, "--threads", &threads.to_string(), "--ops", &ops.to_string()])
        .output()
        .context("cannot run valgrind")?;
    if deadline.is_some() && output.status.code() == Some(TIMED_OUT) {
        return Ok(None);
    }
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let profile = Profile::parse(&std::fs::read_to_string(&written)?)?;
    let object = binary.display().to_string();
    let parts = parts_of(binary, &profile.addresses(&object))?;
    let part_of = |address: u64| parts.get(&address).copied().unwrap_or(Part::Loop);
    profile.divide(ROOT, &object, |name| name.contains(IO), part_of).map(Some)
}

/// The part of every address, by the functions that were inlined there.
fn parts_of(binary: &Path, addresses: &[u64]) -> anyhow::Result<HashMap<u64, Part>> {
    let mut child = Command::new("addr2line")
        .args(["--addresses", "--functions", "--inlines", "--demangle", "--exe"])
        .arg(binary)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run addr2line")?;
    let mut input = child.stdin.take().expect("stdin is piped");
    let lines: String = addresses.iter().map(|address| format!("{address:#x}\n")).collect();
    // From a thread of its own: it answers while it reads, and either pipe may be full.
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = child.wait_with_output()?;
    writer.join().expect("writing does not panic")?;
    ensure!(output.status.success(), "addr2line ended with {}", output.status);
    Ok(parse_places(&String::from_utf8_lossy(&output.stdout)))
}

/// For each address a line with it, then function and place by turns, innermost first.
fn parse_places(text: &str) -> HashMap<u64, Part> {
    let mut parts = HashMap::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(address) = line.strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok()) else {
            continue;
        };
        let mut functions = Vec::new();
        while let Some(function) = lines.next_if(|line| !line.starts_with("0x")) {
            functions.push(function);
            lines.next();
        }
        parts.insert(address, Part::of(functions.into_iter()));
    }
    parts
}

fn table(counted: &[(&str, Division)], before: &Baseline) -> String {
    let mut text = format!("{:10}", "");
    counted.iter().for_each(|(shape, _)| text.push_str(&format!("{shape:>20}")));
    text.push('\n');
    for part in Part::ALL.into_iter().map(Some).chain([None]) {
        text.push_str(&format!("{:10}", part.map_or("total", Part::name)));
        for (shape, division) in counted {
            let now = part.map_or_else(|| division.worker(), |part| division.parts[part as usize]);
            // As the baseline has it: to one decimal.
            let now = (now * 10.0).round() / 10.0;
            let change = match before.instructions(shape, part) {
                Some(before) if before > 0.0 => format!("({:+.1} %)", 100.0 * (now - before) / before),
                _ => "(new)".to_owned(),
            };
            text.push_str(&format!("{now:>9.1} {change:>10}"));
        }
        text.push('\n');
    }
    text
}

/// Prints a row of counts, and fails where the most is more than 1 % above the least.
fn show_equal(name: &str, counts: &[f64]) -> anyhow::Result<()> {
    show_row(name, counts);
    let spread = spread(counts);
    ensure!(
        spread <= SPREAD_MAX,
        "{name}: a get costs {:.1} % more in one column than in another",
        100.0 * spread
    );
    Ok(())
}

fn show_row(name: &str, counts: &[f64]) {
    let cells: String = counts.iter().map(|count| format!("{count:>14.1}")).collect();
    println!("{name:10}{cells}");
}

/// How much the most is above the least.
fn spread(counts: &[f64]) -> f64 {
    let most = counts.iter().copied().fold(0.0, f64::max);
    let least = counts.iter().copied().fold(f64::INFINITY, f64::min);
    most / least - 1.0
}

/// What the numbers depend on beside the source: the compiler, and the machine by whose abilities the C library picks
/// its copying and comparing.
fn machine() -> anyhow::Result<String> {
    let processors = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = processors.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or(": unknown");
    let words = [
        model.trim_start_matches([' ', '\t', ':']).to_owned(),
        first_line("rustc", &["--version"])?,
        first_line("ldd", &["--version"])?,
        first_line("valgrind", &["--version"])?,
    ];
    Ok(words.join(", "))
}

/// The first line that a program prints.
pub(crate) fn first_line(program: &str, arguments: &[&str]) -> anyhow::Result<String> {
    let output =
        Command::new(program).args(arguments).output().with_context(|| format!("cannot run {program}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inlined_functions_are_resolved() {
        let text = "\
0x0000000000000010
core::slice::index
/rustc/index.rs:3
brunt_workload::keys::KeyGenerator::write_key
crates/brunt-workload/src/keys.rs:7
brunt_engine::traffic::Traffic<C>::place
crates/brunt-engine/src/traffic.rs:9
0x0000000000000018
??
??:0
";
        let parts = parse_places(text);
        assert_eq!((parts.len(), parts[&0x10], parts[&0x18]), (2, Part::Schedule, Part::Loop));
    }

    #[test]
    fn tables_show_what_changed() {
        let division = Division { parts: [10.0, 20.0, 30.0, 40.0, 50.0, 60.0], io: 7.0 };
        let text = table(&[("16x1", division)], &Baseline::default());
        assert!(text.lines().last().unwrap().ends_with("210.0      (new)"), "{text}");
        assert_eq!(text.lines().count(), 2 + Part::COUNT);
    }
}
