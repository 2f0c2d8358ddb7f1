//! Runs tests, each as a process of its own, and says how long each took.
//!
//! A process for each, because the standard test harness tells no times on a stable compiler, and because programs then share the
//! processors: where one waits, another computes. Starting one takes three milliseconds. Invariant: a test has passed only where
//! its program says that one test has.

use super::in_tree;
use super::suite::Test;
use crate::{programs, top};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long one test may take in continuous integration: many times what the longest needs on a slow machine.
const TEST_MAX_S: u64 = 600;
/// The module of an integration program whose tests measure time: nothing runs beside one of them.
const ALONE: &str = "experiments::";
/// Tests that start programs and run at once, for each CPU: they wait most of the time.
const WAITING_PER_PROCESSOR: usize = 4;
/// Other tests that run at once beyond the number of CPUs: a few of them wait for sockets as well.
const COMPUTING_BESIDE: usize = 1;
/// What those that take longest begin with, longest first. They begin before the others, so that none is left over at the end while
/// processors are idle.
const LONGEST: [&str; 8] = [
    "schema::results_are",
    "report::",
    "recorded_cases::",
    "command_line::silent_servers",
    "scripted::requests_are_counted",
    "connection_limits::ten_thousand",
    "campaigns::scans_name",
    "cluster::",
];

/// What became of a test.
#[derive(Debug)]
pub(super) struct EndedTest {
    pub(super) test: Test,
    pub(super) took: Duration,
    pub(super) passed: bool,
}

/// Runs all of them, and shows what became of each as it ends: those that compute, those that wait, those that measure.
pub(super) fn run(tests: Vec<Test>) -> Vec<EndedTest> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let (alone, others): (Vec<Test>, Vec<Test>) =
        tests.into_iter().partition(|test| test.program.is_integration && test.name.starts_with(ALONE));
    let (mut waiting, computing): (Vec<Test>, Vec<Test>) =
        others.into_iter().partition(|test| test.program.is_integration);
    let place = |test: &Test| LONGEST.iter().position(|name| test.name.starts_with(name));
    waiting.sort_by_key(|test| place(test).unwrap_or(LONGEST.len()));
    let stages = [
        (computing, processors + COMPUTING_BESIDE),
        (waiting, WAITING_PER_PROCESSOR * processors),
        (alone, 1),
    ];
    stages.into_iter().flat_map(|(tests, at_once)| run_at_once(tests, at_once)).collect()
}

/// Runs them, `at_once` at a time.
pub(super) fn run_at_once(tests: Vec<Test>, at_once: usize) -> Vec<EndedTest> {
    let (queue, ended) = (Mutex::new(VecDeque::from(tests)), Mutex::new(Vec::new()));
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let work = || {
        while let Some(test) = next() {
            let began = Instant::now();
            let (passed, output) = run_one(&test);
            let took = began.elapsed();
            let mut ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
            let word = if passed { "ok" } else { "FAILED" };
            println!("{word:6} {:6.2} s  {test}", took.as_secs_f64());
            print!("{output}");
            ended.push(EndedTest { test, took, passed });
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(work);
        }
    });
    ended.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Runs one; what it says is worth showing where it failed.
fn run_one(test: &Test) -> (bool, String) {
    let mut command = if programs::in_continuous_integration() {
        // A test that waits for ever would else end only when the run is given up, and not be named. `timeout` is of the
        // coreutils, and ends what the test has started, too. A person has Ctrl-C, which would not reach a test behind it.
        let mut command = in_tree("timeout");
        command.args(["--kill-after=10", &TEST_MAX_S.to_string()]).arg(&test.program.executable);
        command
    } else {
        in_tree(&test.program.executable)
    };
    let output = command
        .args(["--exact", &test.name])
        .current_dir(&test.program.directory)
        .env("CARGO_MANIFEST_DIR", &test.program.directory)
        // Else every snapshot test asks cargo for it.
        .env("INSTA_WORKSPACE_ROOT", top())
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) => return (false, format!("cannot run it: {error}\n")),
    };
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let passed = output.status.success() && said.contains("\ntest result: ok. 1 passed; 0 failed;");
    let shown = if passed { String::new() } else { format!("{said}    ended with {}\n", output.status) };
    (passed, shown)
}
