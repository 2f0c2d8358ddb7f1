//! From a summary to memaslap's counters, and to what they have no place for.
//!
//! Not their layout, which is [`super::report`]'s. Invariant: the counters are of all commands, as there, those that filled the windows
//! beforehand among them; the last line is of the measured window alone.

use super::command_line::CommandLine;
use super::report::Counters;
use super::tally::GETS;
use crate::remarks;
use brunt_plan::op::OpKind;
use brunt_plan::phase::Phase;
use brunt_stats::request_counts::CountEntry;
use brunt_stats::summary::Summary;

/// What is counted of a run.
pub fn of(summary: &Summary, line: &CommandLine) -> Counters {
    let mut counters = Counters::default();
    for phase in &summary.phases {
        counters.written_bytes += phase.bytes.tx;
        counters.read_bytes += phase.bytes.rx;
        if matches!(phase.phase, Phase::Measure | Phase::Drain) {
            counters.window_bytes += phase.bytes.tx + phase.bytes.rx;
        }
        for entry in &phase.ops {
            let (requests, keys) = (&entry.counts.requests, &entry.counts.keys);
            let commands = if entry.op.kind() == OpKind::Mget { keys.requested } else { requests.sent };
            counters.get_misses += keys.miss;
            if GETS.contains(&entry.op.kind()) {
                counters.cmd_get += commands;
            } else {
                counters.cmd_set += commands;
            }
            if phase.phase == Phase::Measure {
                counters.ops += commands;
            }
        }
    }
    let counts = summary.counts();
    let windows = &counts.windows;
    counters.verified = (line.verify > 0.0).then_some([windows.verify_misses, windows.verify_failed]);
    counters.expired = (line.exp_verify > 0.0).then_some([windows.expired_get, windows.unexpired_unget]);
    counters.object_bytes = windows.object_bytes;
    let datagrams = &counts.datagrams;
    counters.datagrams = (line.udp || line.facebook).then_some([
        datagrams.packet_disorder,
        datagrams.packet_drop,
        datagrams.udp_timeout,
    ]);
    counters.seconds = seconds(summary);
    counters
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
    let book = &summary.total.requests;
    if book.failed() + book.in_flight > 0 {
        let failed = book.failed() + book.in_flight;
        let of = book.scheduled;
        remarks.push(format!("warning: {failed} of {of} operations have no valid reply"));
    }
    remarks.extend(crate::remarks::unsent(summary, "operations"));
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
        remarks.extend(remarks::said(summary).map(|said| format!("warning: a server sent {said}")));
    }
    remarks.extend(remarks::status(summary));
    remarks
}

/// Why nothing was done.
pub fn nothing_done(summary: &Summary) -> String {
    if summary.total.requests.scheduled == 0 {
        return "nothing was asked for".to_owned();
    }
    let said = remarks::said(summary).map_or(String::new(), |said| format!("; it sent {said}"));
    format!("{} gave no valid reply to any operation{said}", summary.record.server)
}

#[cfg(test)]
mod tests {
    use super::super::invocation::tests::invocation;
    use super::*;
    use brunt_plan::op::{KeyRef, Op};
    use brunt_plan::outcome::{Outcome, OutcomeClass, ReplyKind};
    use brunt_plan::resolve::{Host, resolve};
    use brunt_stats::recorder::{Layout, RecorderSet};
    use brunt_stats::run_record::{RunData, RunRecord};
    use brunt_stats::sample::{Sample, Times};
    use brunt_stats::store::IntervalStore;
    use brunt_stats::verification::ObjectCounts;
    use brunt_stats::window::RunTimes;
    use brunt_stats::worker_counts::{DatagramCounts, WorkerCounts};

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
        let host = Host { allowed_cpus: vec![0, 1], random_seed: 1 };
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
            let found = super::of(&summary, &options);
            assert_eq!(found.cmd_get, of(&is_get, &commands_of), "{line}");
            assert_eq!(found.cmd_set, of(&|done| !is_get(done), &commands_of), "{line}");
            assert_eq!(found.get_misses, of(&is_get, &|done| u64::from(done.keys - done.hits)), "{line}");
            assert_eq!(found.ops, of(&in_window, &commands_of), "{line}");
            assert_eq!(found.written_bytes, of(&|_| true, &|done| done.tx), "{line}");
            assert_eq!(found.read_bytes, of(&|_| true, &|done| done.rx), "{line}");
            assert_eq!(found.window_bytes, of(&in_window, &|done| done.tx + done.rx), "{line}");
            assert_eq!((found.object_bytes, found.seconds), (5, seconds), "{line}");
            let [verified, expired, datagrams] = has;
            assert_eq!(found.verified, verified.then_some([2, 1]), "{line}");
            assert_eq!(found.expired, expired.then_some([3, 4]), "{line}");
            assert_eq!(found.datagrams, datagrams.then_some([6, 7, 8]), "{line}");
        }
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
}
