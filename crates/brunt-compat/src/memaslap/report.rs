//! memaslap's text, to the column: the banner, periodic tables, the statistics at the end, counters and the last line.
//!
//! The layout is memaslap's, the numbers are brunt's. Invariant: fields that scripts extract keep their place; anything else is a
//! remark for standard error.

use super::command_line::CommandLine;
use super::tally::{GETS, Tallies, Tally};
use crate::front_end::{first_error, status_remarks, unsent_remark};
use brunt_plan::op::OpKind;
use brunt_plan::phase::Phase;
use brunt_plan::quantile::Quantile;
use brunt_stats::request_counts::CountEntry;
use brunt_stats::summary::Summary;
use brunt_stats::verification::{ObjectFault, ObjectFaultKind, ObjectFaults, SHOWN_MAX};
use std::fmt::Write as _;

/// Clears a terminal and goes to its upper left corner.
const CLEAR: &str = "\x1b[1;1H\x1b[2J";
const MEBIBYTE: f64 = 1_048_576.0;
/// Powers of two per row of `Log2 Dist`.
const COLUMNS: usize = 4;
const PERCENTILES: [Quantile; 4] = [Quantile::P50, Quantile::P95, Quantile::P99, Quantile::P999];

/// The lines before the first connection. `shares` are the fractions of sets and of gets, in thousandths.
pub fn banner(line: &CommandLine, shares: [u32; 2]) -> String {
    let length = match line.execute_number {
        Some(operations) => format!("execute number: {operations}"),
        None => format!("run time: {}s", line.time_s),
    };
    let [sets, gets] = shares.map(|thousandths| f64::from(thousandths) / 1e3);
    format!(
        "servers: {}\nthreads count: {}\nconcurrency: {}\n{length}\nwindows size: {}k\n\
         set proportion: set_prop={sets:.2}\nget proportion: get_prop={gets:.2}\n",
        line.servers,
        line.threads,
        line.concurrency,
        line.win_size / 1024
    )
}

/// One of the two rows of a table: a part of the run and the operations in it.
pub struct Stretch<'a> {
    /// Length as it is printed.
    pub whole_seconds: u64,
    /// Exact length, which rates are computed from.
    pub seconds: f64,
    /// Operations in it.
    pub tallies: &'a Tallies,
}

/// The tables of a period: per kind of operation a row for the period and one for the run so far. `object_bytes` is the mean size of an object.
pub fn periodic(period: &Stretch<'_>, global: &Stretch<'_>, object_bytes: u64, is_terminal: bool) -> String {
    let mut text = if is_terminal { format!("{CLEAR}\n") } else { "\n".to_owned() };
    for ((title, latest), (_, all)) in period.tallies.titled().iter().zip(global.tallies.titled()) {
        if all.events() == 0 {
            continue;
        }
        // Writing into a string cannot fail.
        let _ = writeln!(text, "{title} Statistics");
        let _ = writeln!(
            text,
            "{:<8} {:<8} {:<12} {:<12} {:<10} {:<10} {:<8} {:<10} {:<10} {:<10} {:<10}",
            "Type",
            "Time(s)",
            "Ops",
            "TPS(ops/s)",
            "Net(M/s)",
            "Get_miss",
            "Min(us)",
            "Max(us)",
            "Avg(us)",
            "Std_dev",
            "Geo_dist"
        );
        text.push_str(&row("Period", period, latest, object_bytes));
        text.push_str(&row("Global", global, &all, object_bytes));
        text.push('\n');
    }
    text
}

fn row(name: &str, stretch: &Stretch<'_>, tally: &Tally, object_bytes: u64) -> String {
    let per_second = |count: f64| if stretch.seconds > 0.0 { count / stretch.seconds } else { 0.0 };
    format!(
        "{name:<8} {:<8} {:<12} {:<12.0} {:<10.1} {:<10} {:<8} {:<10} {:<10} {:<10.2} {:.2}\n",
        stretch.whole_seconds,
        tally.events(),
        per_second(tally.events() as f64),
        per_second((tally.objects * object_bytes) as f64 / MEBIBYTE),
        tally.misses,
        tally.min_us(),
        tally.max_us(),
        tally.mean_us() as u64,
        tally.deviation_us(),
        tally.geometric_us(),
    )
}

/// The statistics of the whole run, with the distribution of response times by powers of two.
pub fn statistics(tallies: &Tallies) -> String {
    let mut text = String::new();
    for (title, tally) in tallies.titled().iter().filter(|(_, tally)| tally.events() > 0) {
        let _ = writeln!(text, "{title} Statistics ({} events)", tally.events());
        let (min, max, mean) = (tally.min_us(), tally.max_us(), tally.mean_us() as u64);
        let _ = writeln!(text, "   Min:  {min:>8}\n   Max:  {max:>8}\n   Avg:  {mean:>8}");
        let _ = writeln!(text, "   Geo:  {:>8.2}", tally.geometric_us());
        if tally.events() > 1 {
            let _ = writeln!(text, "   Std:  {:>8.2}", tally.deviation_us());
        }
        let _ = writeln!(text, "   Log2 Dist:");
        let powers = tally.powers();
        for (first, counts) in rows(&powers) {
            let _ = write!(text, "      {first:>2}:");
            for count in counts {
                let _ = write!(text, "   {count:>6}");
            }
            text.push('\n');
        }
        text.push('\n');
    }
    text
}

/// The rows of `Log2 Dist`, from the first with a count that is not 0, each with the number of its first column. The last row may be
/// shorter and is always shown; if it alone has counts, all rows are shown, as memaslap does.
fn rows(powers: &[u64]) -> impl Iterator<Item = (usize, &[u64])> {
    let last = powers.len().saturating_sub(1);
    let mut whole = powers.chunks(COLUMNS).enumerate().filter(|(row, _)| (row + 1) * COLUMNS <= last);
    let begin = whole.find(|(_, counts)| counts.iter().any(|count| *count > 0)).map_or(0, |(row, _)| row);
    powers.chunks(COLUMNS).enumerate().skip(begin).map(|(row, counts)| (row * COLUMNS, counts))
}

/// Percentiles, which memaslap does not have.
pub fn percentiles(tallies: &Tallies) -> String {
    let mut text = format!(
        "{:<16}{:>12}{:>12}{:>12}{:>12}{:>12}\n",
        "Percentiles(us)", "P50", "P95", "P99", "P999", "Max"
    );
    for (title, tally) in tallies.titled().iter().filter(|(_, tally)| tally.events() > 0) {
        let _ = write!(text, "{title:<16}");
        for quantile in PERCENTILES {
            let _ = write!(text, "{:>12.1}", tally.percentile_us(quantile).unwrap_or(0.0));
        }
        let _ = writeln!(text, "{:>12}", tally.max_us());
    }
    text.push('\n');
    text
}

/// The counters of a run: a line for each, then the line with run time and rates.
pub fn counters(summary: &Summary, line: &CommandLine) -> String {
    let [mut gets, mut sets, mut misses, mut ops, mut written, mut read, mut window_bytes] = [0; 7];
    for phase in &summary.phases {
        written += phase.bytes.tx;
        read += phase.bytes.rx;
        if matches!(phase.phase, Phase::Measure | Phase::Drain) {
            window_bytes += phase.bytes.tx + phase.bytes.rx;
        }
        for entry in &phase.ops {
            let (requests, keys) = (&entry.counts.requests, &entry.counts.keys);
            let commands = if entry.op.kind() == OpKind::Mget { keys.requested } else { requests.sent };
            misses += keys.miss;
            *(if GETS.contains(&entry.op.kind()) { &mut gets } else { &mut sets }) += commands;
            ops += if phase.phase == Phase::Measure { commands } else { 0 };
        }
    }
    let counts = summary.counts();
    let (windows, datagrams) = (&counts.windows, &counts.datagrams);
    let (verifies, expires, is_udp) = (line.verify > 0.0, line.exp_verify > 0.0, line.udp || line.facebook);
    let lines = [
        ("cmd_get", gets, true),
        ("cmd_set", sets, true),
        ("get_misses", misses, true),
        ("verify_misses", windows.verify_misses, verifies),
        ("verify_failed", windows.verify_failed, verifies),
        ("expired_get", windows.expired_get, expires),
        ("unexpired_unget", windows.unexpired_unget, expires),
        ("written_bytes", written, true),
        ("read_bytes", read, true),
        ("object_bytes", windows.object_bytes, true),
        ("packet_disorder", datagrams.packet_disorder, is_udp),
        ("packet_drop", datagrams.packet_drop, is_udp),
        ("udp_timeout", datagrams.udp_timeout, is_udp),
    ];
    let mut text = String::new();
    for (name, count, _) in lines.iter().filter(|(_, _, is_printed)| *is_printed) {
        let _ = writeln!(text, "{name}: {count}");
    }
    let seconds = seconds(summary);
    let per_second = |number: f64| if seconds > 0.0 { number / seconds } else { 0.0 };
    let (tps, net) = (per_second(ops as f64), per_second(window_bytes as f64 / MEBIBYTE));
    let _ = writeln!(text, "\nRun time: {seconds:.1}s Ops: {ops} TPS: {tps:.0} Net_rate: {net:.1}M/s");
    text
}

/// From the beginning of the window to its end; of a run that ends after a number of operations, to when the last had its reply.
fn seconds(summary: &Summary) -> f64 {
    let window = &summary.window;
    let end_ns = if summary.record.plan.stop.time.is_none() { window.drained_ns } else { window.end_ns };
    end_ns.saturating_sub(window.measure_ns) as f64 / 1e9
}

/// What the counters have no place for, each line with what it is: the status, failures, and what they were.
pub fn remarks(summary: &Summary) -> Vec<String> {
    let mut remarks = Vec::new();
    let counts = &summary.total.requests;
    if counts.failed() + counts.in_flight > 0 {
        let failed = counts.failed() + counts.in_flight;
        let of = counts.scheduled;
        remarks.push(format!("warning: {failed} of {of} operations have no valid reply"));
    }
    remarks.extend(unsent_remark(summary, "operations"));
    let counts = summary.counts();
    // A value that came behind the end of its reply is a datagram of no use.
    let is_multiget = |entry: &&CountEntry| entry.op.kind() == OpKind::Mget;
    let multigets = summary.phases.iter().flat_map(|phase| &phase.ops).filter(is_multiget);
    let misses: u64 = multigets.map(|entry| entry.counts.keys.miss).sum();
    let behind = misses.min(counts.datagrams.duplicate + counts.datagrams.late);
    if behind > 0 {
        remarks.push(format!(
            "note: up to {behind} of {misses} misses are of values that came behind the end of their reply"
        ));
    }
    for (count, what) in [
        (counts.connections_abandoned, "connections were lost and stayed away"),
        (counts.replicas_missed, "parts of sets went to no replica, because it was gone"),
    ] {
        if count > 0 {
            remarks.push(format!("warning: {count} {what}"));
        }
    }
    if summary.total.requests.completed() > 0 {
        remarks.extend(first_error(summary).map(|said| format!("warning: a server sent {said}")));
    }
    remarks.extend(status_remarks(summary));
    remarks
}

/// Why nothing was done.
pub fn nothing_done(summary: &Summary) -> String {
    if summary.total.requests.scheduled == 0 {
        return "nothing was asked for".to_owned();
    }
    let said = first_error(summary).map_or(String::new(), |said| format!("; it sent {said}"));
    format!("{} gave no valid reply to any operation{said}", summary.record.server)
}

/// The bytes of a key that number the object.
const NUMBER_BYTES: usize = 8;

/// The lines of all faults of an interval.
pub fn object_faults(faults: &ObjectFaults) -> String {
    let mut text: String = faults.rows().map(|(fault, bytes)| lines(fault, bytes)).collect();
    if faults.overflow > 0 {
        text.push_str(&format!("warning: {} more objects were not as they should be\n", faults.overflow));
    }
    text
}

fn lines(fault: &ObjectFault, [key, expected, received]: [&[u8]; 3]) -> String {
    let (head, age_ms) = match fault.kind {
        ObjectFaultKind::Value | ObjectFaultKind::Missing => ("data verification failed", None),
        ObjectFaultKind::Expired { age_ms } => {
            ("expire time verification failed, object expired but get it now", Some(age_ms))
        }
        ObjectFaultKind::Gone { age_ms } => {
            ("expire time verification failed, object doesn't expire but can't get it now", Some(age_ms))
        }
    };
    let shown = String::from_utf8_lossy;
    let (number, suffix) = key.split_at(key.len().min(NUMBER_BYTES));
    let number = number.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte));
    let age = age_ms.map_or(String::new(), |age_ms| {
        format!("\tdiff time: {} expire time: {}\n", age_ms / 1_000, fault.ttl_s)
    });
    let is_cut = fault.expected_len.max(fault.received_len) as usize > SHOWN_MAX;
    let from = if is_cut { format!("\tdata from byte: {}\n", fault.from) } else { String::new() };
    format!(
        "\n<{} {head}\n\tkey len: {}\n\tkey: {number:x} {}\n{age}{from}\texpected data len: {}\n\texpected data: {}\n\
         \treceived data len: {}\n\treceived data: {}\n",
        fault.connection,
        key.len(),
        shown(suffix),
        fault.expected_len,
        shown(expected),
        fault.received_len,
        shown(received),
    )
}

#[cfg(test)]
mod tests {
    use super::super::invocation::tests::invocation;
    use super::super::tally::tests::tally;
    use super::*;
    use brunt_plan::op::{KeyRef, Op};
    use brunt_plan::outcome::{Outcome, OutcomeClass, ReplyKind};
    use brunt_plan::resolve::{Host, resolve};
    use brunt_stats::recorder::{Layout, RecorderSet};
    use brunt_stats::run_record::RunData;
    use brunt_stats::run_record::RunRecord;
    use brunt_stats::sample::{Sample, Times};
    use brunt_stats::store::IntervalStore;
    use brunt_stats::verification::ObjectCounts;
    use brunt_stats::window::RunTimes;
    use brunt_stats::worker_counts::DatagramCounts;
    use brunt_stats::worker_counts::WorkerCounts;

    #[test]
    fn banner_has_memaslaps_layout() {
        let line = CommandLine {
            servers: "127.0.0.1:11211,b".to_owned(),
            threads: 2,
            time_s: 120,
            win_size: 40_960,
            ..CommandLine::default()
        };
        assert_eq!(
            banner(&line, [100, 900]),
            "servers: 127.0.0.1:11211,b\nthreads count: 2\nconcurrency: 16\nrun time: 120s\nwindows size: 40k\n\
             set proportion: set_prop=0.10\nget proportion: get_prop=0.90\n"
        );
        let counted = CommandLine { execute_number: Some(250_000_000), ..line };
        assert!(banner(&counted, [100, 900]).contains("\nexecute number: 250000000\nwindows"));
    }

    const HEAD: &str = "Type     Time(s)  Ops          TPS(ops/s)   Net(M/s)   Get_miss   Min(us)  Max(us)    Avg(us)    Std_dev    Geo_dist  \n";

    #[test]
    fn tables_have_memaslaps_columns() {
        let latest = Tallies { get: tally(&[100_000; 1000]), set: Tally::default() };
        let mut all = Tallies { set: tally(&[12_000, 48_000]), ..latest.clone() };
        all.get.misses = 3;
        let period = Stretch { whole_seconds: 1, seconds: 1.0, tallies: &latest };
        let global = Stretch { whole_seconds: 2, seconds: 2.0, tallies: &all };
        let text = periodic(&period, &global, 1_048_576, true);
        let expected = format!(
            "\x1b[1;1H\x1b[2J\nGet Statistics\n{HEAD}\
             Period   1        1000         1000         1000.0     0          100      100        100        0.00       100.00\n\
             Global   2        1000         500          500.0      3          100      100        100        0.00       100.00\n\n\
             Set Statistics\n{HEAD}\
             Period   1        0            0            0.0        0          0        0          0          0.00       0.00\n\
             Global   2        2            1            1.0        0          12       48         30         25.46      24.00\n\n\
             Total Statistics\n{HEAD}\
             Period   1        1000         1000         1000.0     0          100      100        100        0.00       100.00\n\
             Global   2        1002         501          501.0      3          12       100        99         3.23       99.70\n\n"
        );
        assert_eq!(text, expected);
        assert_eq!(periodic(&period, &global, 1_048_576, false), expected[CLEAR.len()..]);
        // Kinds without operations have no table.
        assert!(!periodic(&period, &period, 1, false).contains("Set"));
    }

    #[test]
    fn statistics_have_memaslaps_layout() {
        let tallies =
            Tallies { get: tally(&[14_500, 17_000, 17_100, 70_000, 3_117_000]), set: tally(&[9_000]) };
        let text = statistics(&tallies);
        let expected = "\
Get Statistics (5 events)
   Min:        14
   Max:      3117
   Avg:       647
   Geo:     62.04
   Std:   1380.90
   Log2 Dist:
       4:        1        2        0        1
       8:        0        0        0        0
      12:        1

Set Statistics (1 events)
   Min:         9
   Max:         9
   Avg:         9
   Geo:      9.00
   Log2 Dist:
       0:        0        0        0        0
       4:        1

Total Statistics (6 events)
";
        assert!(text.starts_with(expected), "{text}");
        assert_eq!(statistics(&Tallies::default()), "");
    }

    #[test]
    fn powers_are_printed_four_a_row() {
        let shown = |powers: &[u64]| {
            let rows = rows(powers).map(|(first, counts)| format!("{first}{counts:?}"));
            rows.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(shown(&[1]), "0[1]");
        assert_eq!(shown(&[0, 0, 0, 0, 1]), "0[0, 0, 0, 0] 4[1]");
        assert_eq!(shown(&[0, 0, 0, 0, 1, 0, 0, 0, 2]), "4[1, 0, 0, 0] 8[2]");
        assert_eq!(shown(&[0, 0, 0, 0, 0, 0, 0, 0, 2]), "0[0, 0, 0, 0] 4[0, 0, 0, 0] 8[2]");
    }

    #[test]
    fn percentiles_have_memaslaps_layout() {
        let times_ns: Vec<u64> = (1..=1000).map(|us| us * 1_000).collect();
        let text = percentiles(&Tallies { get: tally(&times_ns), set: Tally::default() });
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[0], ["Percentiles(us)", "P50", "P95", "P99", "P999", "Max"]);
        assert_eq!((rows[1][0], rows[2][0], rows.len()), ("Get", "Total", 4));
        for (found, expected) in rows[1][1..].iter().zip([500.0, 950.0, 990.0, 999.0, 1000.0]) {
            let found: f64 = found.parse().unwrap();
            assert!((expected..=expected * 1.001).contains(&found), "{found}, not {expected}");
        }
    }

    const MS: u64 = 1_000_000;
    const START_NS: u64 = 1_000 * MS;

    /// A command, with how many keys it has and how many of them are found; and its bytes.
    struct Done {
        phase: Phase,
        kind: OpKind,
        keys: u32,
        hits: u32,
        tx: u64,
        rx: u64,
    }

    /// Commands of every phase, one each millisecond.
    fn commands() -> Vec<Done> {
        let one = |nth: u64| {
            let phase = if nth < 300 { Phase::Preload } else { Phase::Measure };
            let kind = if nth < 300 || nth.is_multiple_of(4) { OpKind::Set } else { OpKind::Mget };
            let keys = if kind == OpKind::Set { 0 } else { 20 - u32::from(nth == 1_299) * 7 };
            let hits = keys - (nth % 3) as u32 * u32::from(keys > 0);
            Done { phase, kind, keys, hits, tx: 50 + nth % 11, rx: 8 + u64::from(hits) * 100 }
        };
        (0..1_300).map(one).collect()
    }

    fn summary(line: &str, done: &[Done], counts: WorkerCounts) -> (Summary, CommandLine) {
        let invocation = invocation(line).unwrap();
        let host = Host::of(vec![0, 1], 1);
        let plan = resolve(&invocation.spec, &host).unwrap();
        let layout = Layout::of(&plan);
        let mut store = IntervalStore::new(&layout);
        let end_ns = START_NS + 1_000 * MS;
        store.align(START_NS);
        store.set_schedule(START_NS..end_ns);
        let mut set = RecorderSet::new(&layout);
        set.set_window(START_NS, end_ns);
        let preset = done.iter().filter(|done| done.phase == Phase::Preload).count() as u64;
        for (nth, done) in (0..).zip(done) {
            let op = Op { count: done.keys.max(1) as u16, ..Op::of(done.kind, KeyRef::Id(0)) };
            let at_ns = START_NS + nth * MS - preset * MS;
            let times = Times {
                intended_ns: at_ns,
                picked_ns: at_ns,
                sent_ns: at_ns,
                polled_ns: at_ns + 9,
                first_byte_ns: at_ns + 9,
                done_ns: at_ns + 9,
            };
            let (class, reply) = match (done.kind, done.hits) {
                (OpKind::Set, _) => (OutcomeClass::Done, ReplyKind::Stored),
                _ => (OutcomeClass::Hit, ReplyKind::Value),
            };
            set.scheduled(done.phase, &op);
            set.sent(done.phase, &op, 1, at_ns);
            let sample = Sample {
                op: done.kind.into(),
                class: 0,
                outcome: Outcome { class, reply },
                busy_lag_ns: None,
                times,
            };
            set.record(done.phase, &sample, done.keys, done.hits);
            set.transmitted(done.phase, done.tx);
            set.received(done.phase, done.rx);
        }
        store.push(&set.take_interval(0, START_NS, end_ns));
        let drained_ns = end_ns + 250 * MS;
        let times = RunTimes {
            start_ns: START_NS,
            measure_ns: START_NS,
            end_ns,
            drained_ns,
            prepare_ns: 0,
            epoch_us: None,
        };
        let summary = Summary::build(RunRecord {
            run: RunData { intervals: store, times, counts, ..RunData::default() },
            server: "h".to_owned(),
            ..RunRecord::of(plan)
        });
        (summary, invocation.line)
    }

    fn counts() -> WorkerCounts {
        WorkerCounts {
            windows: ObjectCounts {
                verify_failed: 1,
                verify_misses: 2,
                expired_get: 3,
                unexpired_unget: 4,
                object_bytes: 5,
            },
            datagrams: DatagramCounts {
                packet_disorder: 6,
                packet_drop: 7,
                udp_timeout: 8,
                ..DatagramCounts::default()
            },
            ..WorkerCounts::default()
        }
    }

    #[test]
    fn counters_are_those_of_the_commands() {
        let done = commands();
        let of = |is: &dyn Fn(&&Done) -> bool, number: &dyn Fn(&Done) -> u64| -> u64 {
            done.iter().filter(|done| is(done)).map(number).sum()
        };
        let commands_of = |done: &Done| u64::from(done.keys.max(1));
        let is_get = |done: &&Done| done.kind == OpKind::Mget;
        let in_window = |done: &&Done| done.phase == Phase::Measure;
        // (command line, length, whether it has the counters of -v, -e and datagrams)
        for (line, seconds, has) in [
            ("-s h -F small -d 20 -t 1s -U", 1.0, [false, false, true]),
            ("-s h -F small -d 20 -t 1s -v 0.1 -e 0.1", 1.0, [true, true, false]),
            ("-s h -F small -d 20 -a -x 1000", 1.25, [false, false, true]),
        ] {
            let (summary, options) = summary(line, &done, counts());
            let [verified, expired, datagrams] = has;
            let shown = |is: bool, lines: &str| if is { lines.to_owned() } else { String::new() };
            let ops = of(&in_window, &commands_of);
            let bytes = of(&in_window, &|done| done.tx + done.rx);
            let expected = [
                format!("cmd_get: {}\n", of(&is_get, &commands_of)),
                format!("cmd_set: {}\n", of(&|done| !is_get(done), &commands_of)),
                format!("get_misses: {}\n", of(&is_get, &|done| u64::from(done.keys - done.hits))),
                shown(verified, "verify_misses: 2\nverify_failed: 1\n"),
                shown(expired, "expired_get: 3\nunexpired_unget: 4\n"),
                format!("written_bytes: {}\n", of(&|_| true, &|done| done.tx)),
                format!("read_bytes: {}\nobject_bytes: 5\n", of(&|_| true, &|done| done.rx)),
                shown(datagrams, "packet_disorder: 6\npacket_drop: 7\nudp_timeout: 8\n"),
                format!("\nRun time: {seconds:.1}s Ops: {ops} TPS: {:.0} ", ops as f64 / seconds),
                format!("Net_rate: {:.1}M/s\n", bytes as f64 / MEBIBYTE / seconds),
            ];
            assert_eq!(counters(&summary, &options), expected.concat(), "{line}");
        }
        let (mut summary, options) = summary("-s h -F small -d 20 -t 1s", &done, counts());
        summary.window.end_ns = summary.window.measure_ns;
        assert!(
            counters(&summary, &options).ends_with(" TPS: 0 Net_rate: 0.0M/s\n"),
            "a run without a window"
        );
    }

    /// Values behind the end of their reply are datagrams of no use, and there are no more of them than misses.
    #[test]
    fn ambiguous_misses_get_a_remark() {
        let done = commands();
        let misses: u64 = done.iter().map(|done| u64::from(done.keys - done.hits)).sum();
        for (duplicate, late, expected) in [(0, 0, None), (3, 2, Some(5)), (0, 1 << 40, Some(misses))] {
            let datagrams = DatagramCounts { duplicate, late, ..DatagramCounts::default() };
            let counts = WorkerCounts { datagrams, ..WorkerCounts::default() };
            let (summary, _) = summary("-s h -F small -d 20 -t 1s -U", &done, counts);
            let said: Vec<_> =
                remarks(&summary).into_iter().filter(|remark| remark.contains("behind the end")).collect();
            let expected = expected.map(|count| {
                format!("note: up to {count} of {misses} misses are of values that came behind the end of their reply")
            });
            assert_eq!(said, Vec::from_iter(expected));
        }
    }

    /// Made from its JSON, for only workers note faults.
    fn faults(kind: &str, bytes: &[u8], lens: [u32; 2], ends: [u32; 3], overflow: u64) -> ObjectFaults {
        let [expected_len, received_len] = lens;
        let text = format!(
            "{{\"faults\":[{{\"kind\":{kind},\"at_ns\":5,\"connection\":3,\"ttl_s\":60,\"expected_len\":{expected_len},\
             \"received_len\":{received_len},\"from\":6000,\"ends\":{ends:?}}}],\
             \"bytes\":{bytes:?},\"overflow\":{overflow}}}"
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn faults_are_shown_with_their_bytes() {
        let bytes = b"\x10\x11\x10\x10\x10\x10\x10\x10abcwantother";
        assert_eq!(
            object_faults(&faults("\"Value\"", bytes, [4, 5], [11, 15, 20], 0)),
            "\n<3 data verification failed\n\tkey len: 11\n\tkey: 1010101010101110 abc\n\texpected data len: 4\n\
             \texpected data: want\n\treceived data len: 5\n\treceived data: other\n"
        );
        let long = object_faults(&faults("\"Value\"", bytes, [6_004, 6_005], [11, 15, 20], 0));
        assert!(
            long.ends_with(
                " abc\n\tdata from byte: 6000\n\texpected data len: 6004\n\texpected data: want\n\
                 \treceived data len: 6005\n\treceived data: other\n"
            ),
            "{long}"
        );
        let gone = object_faults(&faults("{\"Gone\":{\"age_ms\":12345}}", bytes, [4, 0], [11, 15, 15], 2));
        assert!(gone.starts_with(
            "\n<3 expire time verification failed, object doesn't expire but can't get it now\n"
        ));
        assert!(gone.contains(" abc\n\tdiff time: 12 expire time: 60\n\texpected data len: 4\n"), "{gone}");
        assert!(
            gone.ends_with("\treceived data: \nwarning: 2 more objects were not as they should be\n"),
            "{gone}"
        );
    }
}
