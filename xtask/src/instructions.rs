//! `cargo xtask instructions`: instructions of the worker per get, the Io left out, beside the committed baseline.
//!
//! Not a time: instructions repeat to the last digit where times wander, and say nothing of caches (docs/method.md).
//! The binary of `brunt-bench` runs under callgrind with two numbers of gets; what the longer run spent more, divided by
//! what it did more, is free of start-up and preload. Invariant: on the machine and with the toolchain of the baseline the count
//! repeats, so that the growth that the gate allows is for changes that are meant; elsewhere more is allowed, and said.

mod baseline;

use crate::bench::table::grid;
use crate::{cargo, parallel, programs};
use anyhow::{Context, ensure};
use baseline::Baseline;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Connections × depth, and in the second case one completion per wait: the loop at its least and at its most per get. In the last one
/// sends have their results from the next wait, as those of io_uring.
const SHAPES: [&str; 4] = ["16x1", "16x1/1", "64x32", "16x1,uring"];
/// Gets of the two runs: enough that what happens once in a while (a full interval, a page of histograms) has its share.
const GETS: [u64; 2] = [20_000, 100_000];
/// Every iteration of the worker goes through this function.
const ROOT: &str = "brunt_engine::run::in_process_run::run_one_iteration";
/// Part of the name of every function of the Io, whose instructions are none of the worker's.
const IO: &str = "canned::Canned";
/// Workers of the first shape. Nothing is shared between them but what is only read, so that a get must cost the same for any number.
const WORKERS: [u32; 3] = [1, 2, 4];
/// Keys of data sets, and popularities, of which the first must cost the same for any number of keys: nothing is stored per key, and keys
/// are written at one price. Zipf draws the ranks that its table holds at another price than the others.
const KEYS: [u64; 3] = [1_000, 1_000_000, 1_000_000_000];
const POPULARITIES: [&str; 2] = ["uniform", "zipf"];
/// One get of a session without worker.
const DRAW_ROOT: &str = "brunt_bench::draw::Client::get";
/// How much the most of equal counts may be above the least.
const SPREAD_MAX: f64 = 0.01;
/// What a change may add to a shape unasked.
const GROWTH_MAX: f64 = 0.03;
/// Allowed growth if compiler, C library, valgrind or CPU are others than the baseline's: such a difference alone has
/// been seen to move a total by several per cent.
const GROWTH_ELSEWHERE_MAX: f64 = 0.10;

/// What was counted per get.
struct Counts {
    /// Of [`SHAPES`].
    shapes: Vec<(&'static str, f64)>,
    /// By [`WORKERS`].
    workers: Vec<f64>,
    /// By [`POPULARITIES`] and [`KEYS`].
    keys: Vec<f64>,
}

/// Counts, compares, and records.
///
/// # Errors
/// A program is missing, the build or a run fails, or the profile cannot be read.
pub(crate) fn run(record: bool) -> anyhow::Result<()> {
    ready()?;
    let counts = Counts::of(&build()?)?;
    counts.show(&Baseline::read()?)?;
    if record {
        let today = programs::first_line("date", &["--utc", "+%F"])?;
        Baseline::of(today, machine()?, &counts.shapes)?.write()?;
    }
    Ok(())
}

/// Can instructions be counted here? valgrind does not know every CPU and every kernel, and some containers keep it from what it needs.
///
/// # Errors
/// A program is missing and cannot be installed, or callgrind does not run.
pub(crate) fn ready() -> anyhow::Result<()> {
    programs::ensure_all(programs::PROFILER)?;
    let mut trial = Command::new("valgrind");
    trial.args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "true"]);
    let is_possible = trial.output().is_ok_and(|output| output.status.success());
    ensure!(is_possible, "callgrind cannot run here");
    Ok(())
}

/// Is everything that would be counted as it was when the baseline was recorded?
///
/// # Errors
/// The baseline or a source file cannot be read.
pub(crate) fn is_unchanged() -> anyhow::Result<bool> {
    let baseline = Baseline::read()?;
    let is_unchanged = baseline.is_of_this_source()?;
    if is_unchanged {
        println!("    no change of what is counted since the baseline ({})", baseline.origin());
    }
    Ok(is_unchanged)
}

/// Counts, and compares with what is allowed.
///
/// # Errors
/// A shape takes more than it may, the build or a run fails, or the profile cannot be read.
pub(crate) fn gate() -> anyhow::Result<()> {
    let (counts, before, machine) = (Counts::of(&build()?)?, Baseline::read()?, machine()?);
    counts.show(&before)?;
    let is_elsewhere = before.machine != machine;
    let growth_max = if is_elsewhere { GROWTH_ELSEWHERE_MAX } else { GROWTH_MAX };
    if is_elsewhere {
        let percent = 100.0 * growth_max;
        println!("counted elsewhere than the baseline ({machine}): a shape may take {percent:.0} % more");
    }
    let [exceeded, outdated] = judge(&counts.shapes, &before, growth_max);
    for row in outdated {
        println!(
            "far below the baseline, and may grow unnoticed: {row}; `cargo xtask instructions --record`"
        );
    }
    ensure!(
        exceeded.is_empty(),
        "more than {:.0} % above the baseline: {}\n  see the table above; `cargo xtask instructions --record` if it is meant, \
         and say why in the commit",
        100.0 * growth_max,
        exceeded.join("; ")
    );
    Ok(())
}

/// The shapes that take more, and those that take so much less that as much again could be added and pass.
fn judge(counted: &[(&str, f64)], before: &Baseline, growth_max: f64) -> [Vec<String>; 2] {
    let mut rows = [Vec::new(), Vec::new()];
    for (shape, is) in counted {
        // A shape that the baseline does not have is new, and passes.
        let Some(was) = before.shapes.get(*shape) else { continue };
        let growth = is / was - 1.0;
        if growth.abs() > growth_max {
            let row = format!("{shape}: {is:.1} instead of {was:.1}, {:+.1} %", 100.0 * growth);
            rows[usize::from(growth < 0.0)].push(row);
        }
    }
    rows
}

impl Counts {
    fn of(binary: &Path) -> anyhow::Result<Self> {
        let shapes = SHAPES.map(|shape| (shape, WORKERS[0])).into_iter();
        let loads: Vec<_> = shapes.chain(WORKERS[1..].iter().map(|workers| (SHAPES[0], *workers))).collect();
        let counts = parallel::map(loads, parallel::cpus(), |(shape, workers)| {
            let count = |gets| {
                count(binary, ROOT, &format!("worker --shape {shape} --threads {workers} --ops {gets}"))
            };
            anyhow::Ok((count(GETS[1])? - count(GETS[0])?) / (GETS[1] - GETS[0]) as f64)
        });
        let counts = counts.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
        let draws = POPULARITIES.into_iter().flat_map(|popularity| KEYS.map(|keys| (popularity, keys)));
        let keys = parallel::map(draws.collect(), parallel::cpus(), |(popularity, keys)| {
            let gets = GETS[0];
            let options = format!("draw --keys {keys} --popularity {popularity} --ops {gets}");
            anyhow::Ok(count(binary, DRAW_ROOT, &options)? / gets as f64)
        });
        Ok(Self {
            workers: counts[..1].iter().chain(&counts[SHAPES.len()..]).copied().collect(),
            shapes: SHAPES.into_iter().zip(counts).collect(),
            keys: keys.into_iter().collect::<anyhow::Result<_>>()?,
        })
    }

    /// Prints all tables.
    ///
    /// # Errors
    /// A get costs more in one column than in another, where it must not.
    fn show(&self, before: &Baseline) -> anyhow::Result<()> {
        println!("instructions per get, beside the baseline ({})", before.origin());
        println!("{}", table(&self.shapes, before));
        let (workers, keys) = (WORKERS.map(|workers| workers.to_string()), KEYS.map(|keys| keys.to_string()));
        let decimals = |counts: &[f64]| counts.iter().map(|count| format!("{count:.1}")).collect::<Vec<_>>();
        let row = |name: &str, cells: &[String]| [name, &cells[0], &cells[1], &cells[2]].map(str::to_owned);
        let rows = [row("number of workers", &workers), row(SHAPES[0], &decimals(&self.workers))];
        println!("{}", grid(&rows));
        println!("of the workload alone:");
        let mut rows = vec![row("number of keys", &keys)];
        let by_popularity = POPULARITIES.into_iter().zip(self.keys.chunks(KEYS.len()));
        rows.extend(by_popularity.map(|(popularity, counts)| row(popularity, &decimals(counts))));
        println!("{}", grid(&rows));
        for (name, counts) in [(SHAPES[0], &self.workers[..]), (POPULARITIES[0], &self.keys[..KEYS.len()])] {
            let percent = 100.0 * spread(counts);
            ensure!(
                percent <= 100.0 * SPREAD_MAX,
                "{name}: a get costs {percent:.1} % more in one column than in another"
            );
        }
        Ok(())
    }
}

/// How much the most is above the least.
fn spread(counts: &[f64]) -> f64 {
    let most = counts.iter().copied().fold(0.0, f64::max);
    most / counts.iter().copied().fold(f64::INFINITY, f64::min) - 1.0
}

fn table(counted: &[(&str, f64)], before: &Baseline) -> String {
    let heading = ["shape", "instructions", "change"].map(str::to_owned);
    let row = |(shape, now): &(&str, f64)| {
        let change = |was| format!("{:+.1} %", 100.0 * (now / was - 1.0));
        let change = before.shapes.get(*shape).map_or_else(|| "new".to_owned(), change);
        [(*shape).to_owned(), format!("{now:.1}"), change]
    };
    grid(&[heading].into_iter().chain(counted.iter().map(row)).collect::<Vec<_>>())
}

/// Builds the benchmark as released, with the names of its functions.
fn build() -> anyhow::Result<PathBuf> {
    let target = cargo::target_folder()?;
    cargo::build(&target, "profiling", &["--package", "brunt-bench"], &[])?;
    Ok(target.join("profiling/brunt-bench"))
}

/// Runs the benchmark with these options under callgrind. Returns what `root` and all below it spent, the Io left out.
fn count(binary: &Path, root: &str, options: &str) -> anyhow::Result<f64> {
    let written = binary.with_file_name(options.replace([' ', '/'], "_") + ".callgrind");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--dump-line=no", "--compress-strings=no", "--compress-pos=no"])
        .arg(format!("--toggle-collect={root}"))
        .arg(format!("--callgrind-out-file={}", written.display()))
        .arg(binary)
        .args(options.split(' '))
        .output()
        .context("cannot run valgrind")?;
    ensure!(output.status.success(), "{options}: {}", String::from_utf8_lossy(&output.stderr));
    let spent = spent(&std::fs::read_to_string(&written)?).filter(|spent| *spent > 0);
    Ok(spent.with_context(|| format!("{root} was not called"))? as f64)
}

/// All instructions of a profile less those of the Io, which calls of it from elsewhere add up.
fn spent(profile: &str) -> Option<u64> {
    let (mut caller, mut called, mut io, mut total) = ("", "", 0, None);
    let number = |line: &str| line.rsplit_once(' ')?.1.parse::<u64>().ok();
    let mut lines = profile.lines().map(str::trim_end);
    while let Some(line) = lines.next() {
        match line.split_once('=').unwrap_or((line, "")) {
            ("fn", name) => caller = name,
            ("cfn", name) => called = name,
            // Behind it a line with the place of the call and what it spent.
            ("calls", _) if called.contains(IO) && !caller.contains(IO) => io += number(lines.next()?)?,
            _ if line.starts_with("totals: ") => total = number(line),
            _ => {}
        }
    }
    total?.checked_sub(io)
}

/// What the numbers depend on beside the source: the compiler, and the machine by whose abilities the C library picks
/// its copying and comparing.
fn machine() -> anyhow::Result<String> {
    let line = |program| programs::first_line(program, &["--version"]);
    Ok([programs::cpu_model(), line("rustc")?, line("ldd")?, line("valgrind")?].join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_io_is_left_out() {
        let profile = "\
fn=worker
0 100
cfn=<canned::Canned as Io>::wait
calls=3 0
0 70
cfn=memcpy
calls=1 0
0 5

fn=<canned::Canned as Io>::wait
0 50
cfn=<canned::Canned as Io>::submit
calls=3 0
0 20

totals: 175
";
        assert_eq!(spent(profile), Some(105));
        assert_eq!(spent("fn=worker\n0 100\n"), None);
    }

    #[test]
    fn tables_show_what_changed() {
        let before = toml::from_str("source = ''\nrecorded = ''\nmachine = ''\n16x1 = 200.0\n").unwrap();
        let text = table(&[("16x1", 210.0), ("9x9", 1.0)], &before);
        let rows = ["| 16x1  | 210.0        | +5.0 % |", "| 9x9   | 1.0          | new    |"];
        assert_eq!(text.lines().skip(2).collect::<Vec<_>>(), rows, "{text}");
    }

    #[test]
    fn a_shape_may_grow_by_a_part() {
        let before = toml::from_str("source = ''\nrecorded = ''\nmachine = ''\n16x1 = 1000.0\n").unwrap();
        let table: [(f64, [&[&str]; 2]); 4] = [
            (1029.9, [&[], &[]]),
            (1030.1, [&["16x1: 1030.1 instead of 1000.0, +3.0 %"], &[]]),
            (970.1, [&[], &[]]),
            (500.0, [&[], &["16x1: 500.0 instead of 1000.0, -50.0 %"]]),
        ];
        for (total, expected) in table {
            // A shape that the baseline does not have passes.
            let counted = [("16x1", total), ("9x9", 9e9)];
            assert_eq!(judge(&counted, &before, GROWTH_MAX), expected, "{total}");
        }
    }

    #[test]
    fn spreads_are_parts_of_the_least() {
        assert!((spread(&[200.0, 202.0, 201.0]) - 0.01).abs() < 1e-12);
    }
}
