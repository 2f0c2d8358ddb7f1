//! `cargo xtask instructions`: instructions of the worker per get, the Io left out, beside the committed baseline.
//!
//! Not a time: instructions repeat to the last digit where times wander, and say nothing of caches (docs/method.md).
//! The binary of `brunt-bench` runs under callgrind with two numbers of gets; what the longer run spent more, divided by
//! what it did more, is free of start-up and preload. Invariant: on the machine and with the toolchain of the baseline the count
//! repeats, so that the growth that the gate allows is for changes that are meant; elsewhere more is allowed, and said.

mod baseline;
mod profile;

use crate::bench::table::grid;
use crate::{cargo, parallel, programs};
use anyhow::{Context, ensure};
use baseline::Baseline;
use profile::{Division, PARTS, Profile};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Connections × depth, and in the second case one completion per wait: the loop at its least and at its most per get. In the last one
/// sends have their results from the next wait, as those of io_uring.
const SHAPES: [&str; 4] = ["16x1", "16x1/1", "64x32", "16x1,uring"];
/// Gets of the two runs: enough that what happens once in a while (a full interval, a page of histograms) has its share.
const GETS: [u64; 2] = [20_000, 100_000];
/// Every iteration of the worker goes through this function.
const ROOT: &str = "brunt_engine::run::in_process_run::run_one_iteration";
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
/// What a change may add to a shape unasked: to its total, because work may move from one part to another.
const GROWTH_MAX: f64 = 0.03;
/// Allowed growth if compiler, C library, valgrind or CPU are others than the baseline's: such a difference alone has
/// been seen to move a total by several per cent.
const GROWTH_ELSEWHERE_MAX: f64 = 0.10;

/// What was counted per get.
struct Counts {
    /// Of [`SHAPES`].
    shapes: Vec<(&'static str, Division)>,
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
fn judge(counted: &[(&str, Division)], before: &Baseline, growth_max: f64) -> [Vec<String>; 2] {
    let mut rows = [Vec::new(), Vec::new()];
    for (shape, division) in counted {
        // A shape that the baseline does not have is new, and passes.
        let Some(was) = before.instructions(shape, "total") else { continue };
        let is = division.total();
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
        let divisions = parallel::map(loads, parallel::cpus(), |(shape, workers)| {
            let [shorter, longer] = GETS.map(|gets| divide(binary, shape, workers, gets));
            anyhow::Ok(longer?.per_get(&shorter?, GETS[1] - GETS[0]))
        });
        let mut divisions = divisions.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
        let more_workers = divisions.split_off(SHAPES.len());
        let draws = POPULARITIES.into_iter().flat_map(|popularity| KEYS.map(|keys| (popularity, keys)));
        let keys = parallel::map(draws.collect(), parallel::cpus(), |(popularity, keys)| {
            let gets = GETS[0];
            let options = format!("draw --keys {keys} --popularity {popularity} --ops {gets}");
            let profile = callgrind(binary, DRAW_ROOT, &options)?;
            let total = profile.lines().find_map(|line| line.strip_prefix("totals: ")?.trim().parse().ok());
            let total = total.filter(|total: &f64| *total > 0.0);
            anyhow::Ok(total.with_context(|| format!("{DRAW_ROOT} was not called"))? / gets as f64)
        });
        Ok(Self {
            workers: divisions[..1].iter().chain(&more_workers).map(Division::total).collect(),
            shapes: SHAPES.into_iter().zip(divisions).collect(),
            keys: keys.into_iter().collect::<anyhow::Result<_>>()?,
        })
    }

    /// Prints all tables.
    ///
    /// # Errors
    /// A get costs more in one column than in another, where it must not.
    fn show(&self, before: &Baseline) -> anyhow::Result<()> {
        println!("instructions per get, in brackets the change against the baseline ({})", before.origin());
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

/// A row for each part and the total, a column for each shape.
fn table(counted: &[(&str, Division)], before: &Baseline) -> String {
    let cell = |part: &str, (shape, division): &(&str, Division)| {
        // As the baseline has it: to one decimal.
        let now = (division.of(part) * 10.0).round() / 10.0;
        match before.instructions(shape, part) {
            Some(before) if before > 0.0 => format!("{now:.1} ({:+.1} %)", 100.0 * (now - before) / before),
            _ => format!("{now:.1} (new)"),
        }
    };
    let line = |name: &str, cells: &dyn Fn(&(&str, Division)) -> String| {
        let mut line: [String; 1 + SHAPES.len()] = Default::default();
        name.clone_into(&mut line[0]);
        line[1..].iter_mut().zip(counted).for_each(|(to, counted)| *to = cells(counted));
        line
    };
    let parts = PARTS.into_iter().chain(["total"]);
    let lines = parts.map(|part| line(part, &|counted| cell(part, counted)));
    grid(&[line("part", &|(shape, _)| (*shape).to_owned())].into_iter().chain(lines).collect::<Vec<_>>())
}

/// Builds the benchmark as released, but with the names of inlined functions. In a target folder of its own, because
/// the other setting would else build everything anew each time.
fn build() -> anyhow::Result<PathBuf> {
    let target = cargo::target_folder()?.join("instructions");
    let variables = [("CARGO_PROFILE_RELEASE_DEBUG", "limited")];
    cargo::build_release(&target, &["--package", "brunt-bench"], &variables)?;
    Ok(target.join("release/brunt-bench"))
}

/// Runs the benchmark with these options under callgrind. Returns the profile of what `root` and all below it spent.
fn callgrind(binary: &Path, root: &str, options: &str) -> anyhow::Result<String> {
    let written = binary.with_file_name(options.replace([' ', '/'], "_") + ".callgrind");
    let output = Command::new("valgrind")
        .args(profile::OPTIONS)
        .arg(format!("--toggle-collect={root}"))
        .arg(format!("--callgrind-out-file={}", written.display()))
        .arg(binary)
        .args(options.split(' '))
        .output()
        .context("cannot run valgrind")?;
    ensure!(output.status.success(), "{options}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(std::fs::read_to_string(&written)?)
}

/// Profiles one run of the worker.
fn divide(binary: &Path, shape: &str, workers: u32, gets: u64) -> anyhow::Result<Division> {
    let options = format!("worker --shape {shape} --threads {workers} --ops {gets}");
    let profile = Profile::parse(&callgrind(binary, ROOT, &options)?)?;
    let parts = profile::parts_of(binary, &profile.addresses(&binary.display().to_string()))?;
    profile.divide(ROOT, &binary.display().to_string(), &parts)
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

    fn division(total: f64) -> Division {
        Division::from_iter([("loop", total)])
    }

    #[test]
    fn tables_show_what_changed() {
        let parts = PARTS.into_iter().zip([10.0, 20.0, 30.0, 40.0, 50.0, 60.0]).chain([("io", 7.0)]);
        let text = table(&[("16x1", parts.collect())], &Baseline::default());
        assert!(text.lines().last().unwrap().contains("210.0 (new)"), "{text}");
        assert_eq!(text.lines().count(), 3 + PARTS.len());
    }

    #[test]
    fn a_shape_may_grow_by_a_part() {
        let before =
            toml::from_str("source = \"\"\nrecorded = \"\"\nmachine = \"a\"\n[\"16x1\"]\ntotal = 1000.0\n")
                .unwrap();
        let table: [(f64, [&[&str]; 2]); 4] = [
            (1029.9, [&[], &[]]),
            (1030.1, [&["16x1: 1030.1 instead of 1000.0, +3.0 %"], &[]]),
            (970.1, [&[], &[]]),
            (500.0, [&[], &["16x1: 500.0 instead of 1000.0, -50.0 %"]]),
        ];
        for (total, expected) in table {
            // A shape that the baseline does not have passes.
            let counted = [("16x1", division(total)), ("9x9", division(9e9))];
            assert_eq!(judge(&counted, &before, GROWTH_MAX), expected, "{total}");
        }
    }

    #[test]
    fn spreads_are_parts_of_the_least() {
        assert!((spread(&[200.0, 202.0, 201.0]) - 0.01).abs() < 1e-12);
    }
}
