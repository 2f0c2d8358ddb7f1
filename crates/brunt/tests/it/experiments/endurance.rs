//! A long run against a real memcached: memory stays, every operation counts, every file is whole.
//!
//! Ten minutes at full length. A short one judges no memory; a late client does not matter at either length.

use super::is_full;
use crate::http::Shown;
use crate::measured::Measured;
use crate::results::check_whole;
use crate::server::{Directory, Ended, Server, alone, wait};
use std::time::{Duration, Instant};

/// Buffers reach their size, and pages are touched for the first time, before that.
const HEAD_S: f64 = 300.0;
/// Of memory behind the head, in bytes per second: 2 MB an hour.
const GROWTH_MAX: f64 = 2e6 / 3600.0;
const SAMPLES: u32 = 60;

#[test]
fn long_runs_keep_memory_counts_and_files() {
    alone();
    let Some(server) = Server::memcached("") else { return };
    let (rate, run_s) = if is_full() { (20_000, 600) } else { (2_000, 4) };
    let (files, before) = (Directory::new(), server.statistics());
    let paths = ["x.html", "x.csv", "x.ndjson", "x.hlog"].map(|name| files.path(name));
    let mix = "--mix get=60,mget=10,set=15,delete=4,incr=6,touch=5 --keys 20000 --value-size uniform:20,400";
    let outputs: String = paths.iter().map(|path| format!(" -o {path}")).collect();
    // A host that is busy for 10 s is no difference in the counts.
    let run = Shown::start(&server, &format!("-r {rate} -n {} {mix} --timeout 60s{outputs}", rate * run_s));
    let start = Instant::now();
    // What writing the files takes is no part of it: the last sample is taken before the window ends.
    let sample = |number| {
        let due = Duration::from_secs(run_s) * number / SAMPLES;
        wait(due.saturating_sub(start.elapsed()));
        let sample = (start.elapsed().as_secs_f64(), run.resident_kib() as f64 * 1024.0);
        // What these take is given back before the next one.
        for path in ["/metrics", "/summary.json"] {
            run.body(path);
        }
        sample
    };
    let samples: Vec<(f64, f64)> = (1..SAMPLES).map(sample).collect();
    let out = run.end().to_string();
    let measured = Measured::of(Ended { exit: 0, out, said: String::new() });
    check_counts(&server, &before, &measured);
    paths.iter().for_each(|path| check_whole(path));
    let growth = growth(&samples[samples.partition_point(|(at_s, _)| *at_s < HEAD_S)..]);
    eprintln!("memory grows by {:.2} MB an hour: {samples:?}", growth * 3600.0 / 1e6);
    assert!(growth <= GROWTH_MAX || !is_full());
}

/// Every operation, by kind, in all phases, is one of the server's.
fn check_counts(server: &Server, before: &std::collections::BTreeMap<String, u64>, measured: &Measured) {
    let after = server.statistics();
    let table: [(&[&str], &str); 8] = [
        (&["cmd_get"], "keys.requested"),
        (&["get_hits"], "keys.hit"),
        (&["get_misses"], "keys.miss"),
        (&["cmd_set"], "ops.set"),
        (&["incr_hits", "incr_misses"], "ops.incr"),
        (&["delete_hits", "delete_misses"], "ops.delete"),
        (&["cmd_touch"], "ops.touch"),
        (&["touch_hits", "touch_misses"], "ops.touch"),
    ];
    for (names, path) in table {
        let counted: u64 = names.iter().map(|name| after[*name] - before[*name]).sum();
        assert_eq!(measured.over_phases(path), counted, "{path}");
        assert!(counted > 0, "{path}");
    }
    let [sent, completed] = ["sent", "completed"].map(|key| measured.over_phases(&format!("requests.{key}")));
    assert_eq!(sent, completed);
    assert_ne!(measured.check("BROKEN").0, "invalid");
}

/// How fast these samples (s, bytes) grow, in bytes per second. One step, wherever it is, lies in one half at most; what goes on goes on in
/// both. The slope is the median of those of all pairs (Theil 1950, Sen 1968): up to 29 % of the samples may be anything.
fn growth(samples: &[(f64, f64)]) -> f64 {
    let (first, second) = samples.split_at(samples.len() / 2);
    let slope = |samples: &[(f64, f64)]| {
        let pairs =
            samples.iter().enumerate().flat_map(|(at, a)| samples[at + 1..].iter().map(move |b| (a, b)));
        let mut slopes: Vec<f64> = pairs.map(|(a, b)| (b.1 - a.1) / (b.0 - a.0)).collect();
        slopes.sort_by(f64::total_cmp);
        slopes.get(slopes.len() / 2).copied().unwrap_or(0.0)
    };
    [samples, first, second].map(slope).into_iter().fold(f64::INFINITY, f64::min)
}

#[test]
fn only_what_goes_on_is_growth() {
    let noise = |at_s: f64| 4096.0 * ((at_s / 10.0 * 7.0) % 5.0 - 2.0);
    let is_growth = |bytes_at: &dyn Fn(f64) -> f64| {
        let samples = (31..60).map(|number| f64::from(number) * 10.0).map(|at_s| (at_s, bytes_at(at_s)));
        growth(&samples.collect::<Vec<_>>()) > GROWTH_MAX
    };
    let step = |from_s: f64| move |at_s: f64| if at_s < from_s { 0.0 } else { 5e6 } + noise(at_s);
    assert!(!is_growth(&noise) && !is_growth(&|at_s| -100.0 * at_s));
    assert!([310.0, 340.0, 445.0, 580.0].iter().all(|from_s| !is_growth(&step(*from_s))));
    assert!(!is_growth(&|at_s| 1e6 * (at_s / 60.0).fract()));
    assert!(!is_growth(&|at_s| 1.9e6 * at_s / 3600.0) && is_growth(&|at_s| 2.1e6 * at_s / 3600.0));
    assert!(is_growth(&|at_s| 5e5 * (at_s / 50.0).floor()));
    assert!(is_growth(&|at_s| 1e6 * (at_s / 60.0).fract() + 2e3 * at_s));
}
