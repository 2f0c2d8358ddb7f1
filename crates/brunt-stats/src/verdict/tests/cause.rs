//! What explains what was found: evidence, and the first line and the causes that come of it. `check` asks of a run that is otherwise
//! without fault; here several things go wrong at once, as they do.

use super::trust::ordinary;
use super::*;
use crate::check::CHECKS;
use crate::fault::FirstError;
use crate::outage_span::{OutageKind, OutageKinds};
use crate::server_stats::{CounterReset, Growth, ServerSpan, ServerStat};
use crate::steady::{Series, Steadiness};

const SECOND: u64 = 1_000_000_000;
const MEASURE_NS: u64 = 3 * SECOND;

type Change = fn(&mut Evidence<'_>);

/// An outage of 1.57 s, four seconds into a window of 10 s.
fn outage() -> MeasuredOutage {
    let at = 7 * SECOND..8_570_000_000;
    MeasuredOutage {
        server: "127.0.0.1:17112".to_owned(),
        length_ns: at.end - at.start,
        is_over: true,
        disturbed: at.start..9 * SECOND,
        at,
        kinds: OutageKinds::NONE.with(OutageKind::Stalled).with(OutageKind::TimedOut),
        failed: 90,
        weight: 1.0,
    }
}

fn stopped(evidence: &mut Evidence<'_>) {
    evidence.outages = vec![outage()];
}

fn lost_agent(after_ns: Option<u64>) -> LostAgent {
    let reason = "no heartbeat for 4 s".to_owned();
    LostAgent { name: "load2".to_owned(), reason, after_ns, after_interruption: false }
}

/// This share of the client in a percentile of all requests.
fn late(evidence: &mut Evidence<'_>, quantile: Quantile, error_ns: u64) {
    let errors = &mut evidence.lag_rows[0].errors;
    errors.iter_mut().find(|error| error.quantile == quantile).unwrap().error_ns = error_ns;
}

fn fire(steady: &mut Steadiness, series: Series, at_s: u64) {
    let held = steady.series.iter_mut().find(|held| held.series == series).unwrap();
    let (drift, shift) = held.course.as_mut().unwrap();
    (drift.fires, drift.z, drift.change) = (true, 9.0, 0.5);
    (shift.fires, shift.p, shift.change, shift.at_ns) = (true, 0.0001, 0.5, at_s * SECOND);
}

fn workers(evidence: &mut Evidence<'_>, workers: Vec<WorkerUsage>) {
    evidence.run.to_mut().usage.workers = workers;
}

/// A stop of a second, of which a worker was ready to run for so long.
fn stall(run_delay_ns: u64) -> StallCounts {
    StallCounts {
        count: 1,
        total_ns: SECOND,
        longest_ns: SECOND,
        longest_at_ns: 2 * SECOND,
        longest_run_delay_ns: Some(run_delay_ns),
    }
}

fn thin(evidence: &mut Evidence<'_>) {
    evidence.intervals = vec![interval(3, 1_000, None)];
}

fn saturated(evidence: &mut Evidence<'_>) {
    evidence.last_half = Some(LastHalf { offered: 50_000.0, answered: 20_000.0, seconds: 5.0 });
}

fn filling(evidence: &mut Evidence<'_>) {
    let window =
        ServerSpan { hits: Some(500), misses: Some(500), evictions: Some(0), ..ServerSpan::default() };
    let growth = vec![Growth { of: ServerStat::CurrItems, from: 1_000, to: 13_572, rises: 9, steps: 9 }];
    evidence.servers.cache = Some(CacheEvidence { window, growth, preload: None });
}

/// What to do about the first cause.
fn fix(change: Change) -> String {
    let mut evidence = Evidence { measure_ns: MEASURE_NS, ..ordinary() };
    change(&mut evidence);
    Verdict::of(&evidence).causes()[0].fix.to_string()
}

/// The first line, and each cause as its name, the checks that show it, and those that follow from it.
fn told(change: Change) -> (String, Vec<String>) {
    let mut evidence = Evidence { measure_ns: MEASURE_NS, ..ordinary() };
    evidence.steady_beside = evidence.steady.clone();
    change(&mut evidence);
    let verdict = Verdict::of(&evidence);
    let mut ids: Vec<&str> = verdict.causes().iter().flat_map(Cause::ids).collect();
    let found: Vec<&str> =
        verdict.checks.iter().filter(|check| check.status > Ok).map(|check| check.id).collect();
    ids.sort_by_key(|id| CHECKS.iter().position(|known| known == id));
    assert_eq!(ids, found, "each finding has one cause: {verdict:#?}");
    // A check has no fix beside that of its cause.
    let lag = verdict.checks.iter().find(|check| check.id == "LAG").unwrap();
    let of_lag = verdict.causes().iter().find(|cause| cause.ids().any(|id| id == "LAG"));
    assert_eq!(lag.fix, of_lag.map_or("", |cause| &cause.fix));
    let name = |cause: &Cause| {
        format!("{}: {} > {}", cause.kind.name(), cause.checks.join(" "), cause.follows.join(" "))
    };
    (verdict.sentence(), verdict.causes().iter().map(name).collect())
}

fn check_table(table: &[(Change, &str, &[&str])]) {
    for (index, (change, sentence, causes)) in table.iter().enumerate() {
        let found = told(*change);
        assert_eq!(
            (found.0.as_str(), found.1),
            (*sentence, causes.iter().map(|cause| (*cause).to_owned()).collect::<Vec<_>>()),
            "row {index}"
        );
    }
}

#[test]
fn an_outage_explains_what_falls_in_its_time() {
    check_table(&[
        (stopped, "outage of 1.57 s at 127.0.0.1:17112 · TRUSTED up to p99.9", &["outage:  > "]),
        // All that one stop of a node was told as.
        (
            |evidence| {
                stopped(evidence);
                evidence.open_loop = Some(OpenLoop { scheduled: 100_000, unsent: 400, abandoned: 390 });
                late(evidence, Quantile::P999, 300_000);
                evidence.timeouts = 90;
                evidence.abandoned = 390;
                thin(evidence);
                fire(&mut evidence.steady, Series::P99, 1);
                evidence.run.to_mut().usage.workers[0].colocation = Colocation { looks: 500, shared: 380 };
            },
            "outage of 1.57 s at 127.0.0.1:17112 · TRUSTED up to p90 · CAUTION p99: drift · CAUTION p99.9: client",
            &["outage:  > RATE LAG COLO CI-THIN DRIFT SHIFT ERR"],
        ),
        // What has another reason stands for itself: the median, a drift that goes on beside it, failures at other times.
        (
            |evidence| {
                stopped(evidence);
                late(evidence, Quantile::P50, 150_000);
                evidence.run.to_mut().host.wake_up_ns = 0;
                fire(&mut evidence.steady, Series::P50, 1);
                fire(&mut evidence.steady_beside, Series::P50, 1);
                evidence.timeouts = 200;
            },
            "outage of 1.57 s at 127.0.0.1:17112 · CAUTION p50: client · CAUTION p90: drift · CAUTION: SHIFT ERR",
            &["outage:  > ", "finding: LAG > ", "finding: DRIFT > ", "finding: SHIFT > ", "finding: ERR > "],
        ),
        // A server that comes back with an empty cache answers otherwise from then on.
        (
            |evidence| {
                stopped(evidence);
                fire(&mut evidence.steady, Series::HitRatio, 6);
                fire(&mut evidence.steady_beside, Series::HitRatio, 6);
                evidence.servers.counter_resets =
                    vec![("127.0.0.1:17112".to_owned(), CounterReset::Restarted)];
            },
            "outage of 1.57 s at 127.0.0.1:17112 · CAUTION p50 p90 p99 p99.9: drift",
            &["outage:  > DRIFT SHIFT SERVER"],
        ),
        (
            |evidence| {
                let of = |start_ns: u64, length_ns| MeasuredOutage {
                    at: start_ns..start_ns + length_ns,
                    length_ns,
                    is_over: false,
                    ..outage()
                };
                let second = MeasuredOutage { server: "b:2".to_owned(), ..of(8 * SECOND, SECOND / 20) };
                evidence.outages = vec![of(7 * SECOND, SECOND / 10), second];
            },
            "outage of 100 ms at 127.0.0.1:17112, not over, the longest of 2 (150 ms in all) · TRUSTED up to p99.9",
            &["outage:  > "],
        ),
        // What lies at the same time is counted once.
        (
            |evidence| {
                let other = MeasuredOutage { length_ns: SECOND, server: "b:2".to_owned(), ..outage() };
                evidence.outages = vec![outage(), other];
            },
            "outage of 1.57 s at 127.0.0.1:17112, the longest of 2 (1.57 s in all) · TRUSTED up to p99.9",
            &["outage:  > "],
        ),
        // A saturated server stands still, too.
        (
            |evidence| {
                stopped(evidence);
                saturated(evidence);
            },
            "saturated server: 4000 of 10000 requests/s answered in the last half of the window, the busiest worker worked for 30.0 % · NOT TRUSTED: SAT",
            &["saturated_server: SAT > ", "outage:  > "],
        ),
        // One that no percentile shows explains what failed in it, and does not lead.
        (
            |evidence| {
                evidence.window_ns = 100 * SECOND;
                let at = 7 * SECOND..7_015_000_000;
                let length_ns = at.end - at.start;
                evidence.outages = vec![MeasuredOutage { length_ns, disturbed: at.clone(), at, ..outage() }];
                evidence.timeouts = 90;
            },
            "TRUSTED up to p99.9 · CAUTION: ERR",
            &["short_outage:  > ERR"],
        ),
        // A server that answers with errors is there.
        (
            |evidence| {
                let kinds = OutageKinds::NONE.with(OutageKind::Error);
                evidence.outages = vec![MeasuredOutage { kinds, ..outage() }];
                evidence.errors = 90;
            },
            "TRUSTED up to p99.9 · CAUTION: ERR",
            &["finding: ERR > "],
        ),
        // What a lost agent had in flight is unknown, and breaks no book.
        (
            |evidence| {
                evidence.lost_agent = Some(lost_agent(Some(4_120_000_000)));
                evidence.books = vec![super::unbalanced_entry()];
            },
            "agent load2 was lost after 4.12 s of the window (no heartbeat for 4 s) · TRUSTED up to p99.9",
            &["lost_agent:  > "],
        ),
        // No agent is lost after the end of the window: it ends with what was recorded.
        (
            |evidence| {
                let after_window_ns = evidence.window_ns + 4 * SECOND;
                evidence.lost_agent = Some(lost_agent(Some(after_window_ns)));
            },
            "agent load2 was lost after 10.0 s of the window, noticed at 14.0 s (no heartbeat for 4 s) · TRUSTED up to p99.9",
            &["lost_agent:  > "],
        ),
        (
            |evidence| {
                let lost = lost_agent(Some(4_120_000_000));
                evidence.lost_agent = Some(LostAgent { after_interruption: true, ..lost });
            },
            "the run was interrupted, and agent load2 did not send the end of its part (no heartbeat for 4 s) · TRUSTED up to p99.9",
            &["lost_agent:  > "],
        ),
        // The rate falls when it is gone.
        (
            |evidence| {
                stopped(evidence);
                saturated(evidence);
                evidence.lost_agent = Some(lost_agent(None));
                evidence.open_loop = Some(OpenLoop { scheduled: 100_000, unsent: 400, abandoned: 0 });
                fire(&mut evidence.steady, Series::Throughput, 4);
            },
            "agent load2 was lost while it measured (no heartbeat for 4 s) · NOT TRUSTED: SAT",
            &["lost_agent:  > RATE SAT DRIFT SHIFT", "outage:  > "],
        ),
        // Bytes that are no reply come first: they made the server look gone.
        (
            |evidence| {
                let kinds = OutageKinds::NONE.with(OutageKind::Malformed);
                evidence.outages = vec![MeasuredOutage { kinds, ..outage() }];
                evidence.faults.sent = 100_000;
                evidence.faults.table.record(Phase::Measure, FaultKind::Malformed, 7 * SECOND);
                evidence.run.to_mut().counts.datagrams.malformed = 2_000;
                evidence.errors = 2_000;
            },
            "malformed bytes for 2.00 % of 100000 requests sent · NOT TRUSTED: FAULT",
            &["malformed: FAULT > ERR"],
        ),
        // A command that the server does not know: nothing completes, because all is answered with an error.
        (
            |evidence| {
                (evidence.sent, evidence.completed, evidence.errors) = (100_000, 0, 100_000);
                evidence.run.to_mut().counts.first_error =
                    Some(FirstError::new(b"ERR unknown command 'HGETT'"));
            },
            "error replies to 100 % of 100000 requests: ERR unknown command 'HGETT' · NOT TRUSTED: SAMPLES",
            &["error_replies: ERR > SAMPLES"],
        ),
        // Where most requests fail, nothing else is worth reading first.
        (
            |evidence| {
                (evidence.sent, evidence.errors) = (100_000, 60_000);
                evidence.run.to_mut().counts.first_error = Some(FirstError::new(b"MOVED 1 h:1"));
                filling(evidence);
                fire(&mut evidence.steady, Series::HitRatio, 4);
            },
            "error replies to 60.0 % of 100000 requests: MOVED 1 h:1 · CAUTION p50 p90 p99 p99.9: drift · CAUTION: SHIFT CACHE",
            &["error_replies: ERR > ", "cache: CACHE > DRIFT SHIFT"],
        ),
        (
            |evidence| {
                (evidence.sent, evidence.errors) = (100_000, 50_000);
                workers(evidence, vec![shared(0.55)]);
                closed(evidence);
            },
            "error replies to 50.0 % of 100000 requests · TRUSTED up to p99.9",
            &["error_replies: ERR > ", "shared_processor: STEAL COLO > CPU"],
        ),
        // More requests were lost than answered with errors.
        (
            |evidence| (evidence.lost, evidence.errors) = (3_000, 2_000),
            "TRUSTED up to p99.9 · CAUTION: ERR",
            &["finding: ERR > "],
        ),
    ]);
}

/// A worker that found the server on its processor in every look, and was kept from it.
fn shared(delayed: f64) -> WorkerUsage {
    WorkerUsage { colocation: Colocation { looks: 500, shared: 500 }, ..worker(0.3, delayed) }
}

/// What the processors did, theirs and the server's part in it.
fn processors(evidence: &mut Evidence<'_>, busy_s: u64, ours_s: u64, servers_s: u64) {
    let run = evidence.run.to_mut();
    run.host.busy_ns = Some(busy_s * SECOND);
    run.usage.cpu_user_ns = ours_s * SECOND;
    let window = ServerSpan {
        end_ns: 10 * SECOND,
        cpu_ns: Some(servers_s * SECOND),
        thread_ns: Some(servers_s * SECOND),
        evictions: Some(0),
        ..ServerSpan::default()
    };
    evidence.servers.cache = Some(CacheEvidence { window, ..CacheEvidence::default() });
}

fn closed(evidence: &mut Evidence<'_>) {
    (evidence.open_loop, evidence.last_half) = (None, None);
    evidence.lag_rows.iter_mut().for_each(|row| row.is_closed_loop = true);
}

#[test]
fn causes_of_a_late_client() {
    check_table(&[
        (
            |evidence| {
                workers(evidence, vec![shared(0.41)]);
                late(evidence, Quantile::P99, 90_000);
            },
            "client and server on one processor, that of worker 1, in 100 % of 500 samples · TRUSTED up to p90 · CAUTION p99: client",
            &["shared_processor: STEAL COLO > LAG"],
        ),
        // A client error of a wake-up or two is the shared processor's, too, which --wait spin would take from the server.
        (
            |evidence| {
                workers(evidence, vec![shared(0.001)]);
                late(evidence, Quantile::P999, 90_000);
            },
            "client and server on one processor, that of worker 1, in 100 % of 500 samples · TRUSTED up to p99 · CAUTION p99.9: client",
            &["shared_processor: COLO > LAG"],
        ),
        // In a closed loop it is the load that suffers, and nothing is late.
        (
            |evidence| {
                workers(evidence, vec![shared(0.55)]);
                closed(evidence);
            },
            "client and server on one processor, that of worker 1, in 100 % of 500 samples · TRUSTED up to p99.9",
            &["shared_processor: STEAL COLO > CPU"],
        ),
        // The socket says nothing of it, but no other process had the time that the worker lacked.
        (
            |evidence| {
                workers(evidence, vec![worker(0.3, 0.41)]);
                processors(evidence, 10, 3, 6);
                late(evidence, Quantile::P99, 300_000);
            },
            "client and server share 2 processors: worker 1 waited for one for 41.0 % of the window · TRUSTED up to p90 · \
             CAUTION p99: client",
            &["shared_processor: STEAL > LAG"],
        ),
        (
            |evidence| {
                workers(evidence, vec![worker(0.3, 0.38)]);
                processors(evidence, 14, 3, 1);
                late(evidence, Quantile::P90, 300_000);
                thin(evidence);
            },
            "busy neighbour: worker 1 waited for its processor for 38.0 % of the window, others used 1.00 processors · \
             TRUSTED up to p50 · CAUTION p90: client",
            &["busy_neighbour: STEAL > LAG CI-THIN"],
        ),
        (
            |evidence| {
                evidence.run.to_mut().host.stolen_ns = Some(2 * SECOND);
                late(evidence, Quantile::P99, 300_000);
            },
            "busy neighbour: the hypervisor gave 10.0 % of 2 processors to others · TRUSTED up to p90 · CAUTION p99: client",
            &["busy_neighbour: STEAL > LAG"],
        ),
        (
            |evidence| {
                workers(evidence, vec![worker(0.3, 0.2)]);
                evidence.run.to_mut().host.throttled_ns = Some(2 * SECOND);
                late(evidence, Quantile::P99, 300_000);
            },
            "cpu quota: that of the client's control group was used up for 2.00 s · TRUSTED up to p90 · CAUTION p99: client",
            &["cpu_quota: STEAL > LAG"],
        ),
        (
            |evidence| {
                workers(evidence, vec![worker(0.3, 0.4); 4]);
                late(evidence, Quantile::P99, 300_000);
            },
            "4 workers on 2 processors: worker 1 waited for one for 40.0 % of the window · TRUSTED up to p90 · CAUTION p99: client",
            &["too_many_threads: STEAL > LAG"],
        ),
        // Workers that hardly work do not keep each other waiting.
        (
            |evidence| {
                workers(evidence, vec![worker(0.04, 0.4); 4]);
                processors(evidence, 20, 2, 1);
                late(evidence, Quantile::P99, 300_000);
            },
            "busy neighbour: worker 1 waited for its processor for 40.0 % of the window, others used 1.70 processors · \
             TRUSTED up to p90 · CAUTION p99: client",
            &["busy_neighbour: STEAL > LAG"],
        ),
        (
            |evidence| {
                workers(evidence, vec![worker(0.97, 0.001)]);
                late(evidence, Quantile::P999, 90_000);
            },
            "busy client: worker 1 worked for 97.0 % of the window · TRUSTED up to p99 · CAUTION p99.9: client",
            &["busy_client: CPU > LAG"],
        ),
        (
            |evidence| {
                workers(evidence, vec![WorkerUsage { stalls: stall(0), ..worker(0.02, 0.0) }]);
                late(evidence, Quantile::P99, 390_000);
            },
            "the client was stopped for 1.00 s at +2.00 s · TRUSTED up to p90 · CAUTION p99: client",
            &["client_stop: STALL > LAG"],
        ),
        // In an open loop it is first where it reaches down to every percentile that is late, however much others took…
        (
            |evidence| {
                workers(evidence, vec![WorkerUsage { stalls: stall(0), ..worker(0.2, 0.12) }]);
                late(evidence, Quantile::P99, 390_000);
            },
            "the client was stopped for 1.00 s at +2.00 s · TRUSTED up to p90 · CAUTION p99: client",
            &["client_stop: STALL > LAG", "finding: STEAL > "],
        ),
        // …and where it took more of the window than they did.
        (
            |evidence| {
                workers(evidence, vec![WorkerUsage { stalls: stall(0), ..worker(0.2, 0.06) }]);
                late(evidence, Quantile::P50, 90_000);
                late(evidence, Quantile::P99, 390_000);
            },
            "the client was stopped for 1.00 s at +2.00 s · CAUTION p50 p99: client",
            &["client_stop: STALL > LAG", "finding: STEAL > "],
        ),
        (
            |evidence| {
                workers(evidence, vec![WorkerUsage { stalls: stall(0), ..worker(0.2, 0.6) }]);
                late(evidence, Quantile::P50, 90_000);
                late(evidence, Quantile::P99, 390_000);
            },
            "busy neighbour: worker 1 waited for its processor for 60.0 % of the window · CAUTION p50 p99: client",
            &["busy_neighbour: STEAL > LAG STALL"],
        ),
        // In a closed loop it is first, whatever share of the time its processor was another's…
        (
            |evidence| {
                closed(evidence);
                workers(evidence, vec![WorkerUsage { stalls: stall(SECOND / 10), ..worker(0.2, 0.3) }]);
            },
            "the client was stopped for 1.00 s at +2.00 s · TRUSTED up to p99.9",
            &["client_stop: STALL > ", "busy_neighbour: STEAL > "],
        ),
        // …unless it was ready to run and had none.
        (
            |evidence| {
                closed(evidence);
                workers(evidence, vec![WorkerUsage { stalls: stall(SECOND * 95 / 100), ..worker(0.2, 0.3) }]);
            },
            "busy neighbour: worker 1 waited for its processor for 30.0 % of the window · TRUSTED up to p99.9",
            &["busy_neighbour: STEAL > STALL"],
        ),
        // Nothing took the worker's time: it sleeps, and is woken late. Where it does not sleep, nothing explains it.
        (
            |evidence| {
                workers(evidence, vec![worker(0.02, 0.0)]);
                late(evidence, Quantile::P999, 90_000);
            },
            "TRUSTED up to p99 · CAUTION p99.9: client",
            &["wake_ups: LAG > "],
        ),
        (
            |evidence| {
                workers(evidence, vec![worker(0.02, 0.0)]);
                evidence.run.to_mut().usage.wait = "spin".to_owned();
                late(evidence, Quantile::P999, 90_000);
            },
            "TRUSTED up to p99 · CAUTION p99.9: client",
            &["finding: LAG > "],
        ),
        // Much more than a wake-up, and the worker was kept from its processor for no more than that: preemption.
        (
            |evidence| {
                workers(evidence, vec![worker(0.02, 0.003)]);
                late(evidence, Quantile::P999, 390_000);
            },
            "TRUSTED up to p99 · CAUTION p99.9: client",
            &["busy_neighbour:  > LAG"],
        ),
        // Where others set the load of a closed loop, it is unknown how long replies lay unread, and no wake-up is first.
        (
            |evidence| {
                workers(evidence, vec![worker(0.05, 0.13)]);
                processors(evidence, 12, 1, 1);
                closed(evidence);
                late(evidence, Quantile::P50, 150_000);
            },
            "busy neighbour: worker 1 waited for its processor for 13.0 % of the window, others used 1.00 processors · CAUTION p50: client",
            &["busy_neighbour: STEAL > LAG"],
        ),
        // Others were there before the schedule, and made the sleeps by which a wake-up is measured as late.
        (
            |evidence| {
                workers(evidence, vec![worker(0.05, 0.73)]);
                processors(evidence, 14, 3, 1);
                late(evidence, Quantile::P50, 150_000);
                evidence.run.to_mut().host.wake_up_ns = 1_000_000;
            },
            "busy neighbour: worker 1 waited for its processor for 73.0 % of the window, others used 1.00 processors · CAUTION p50: client",
            &["busy_neighbour: STEAL > LAG"],
        ),
        // What the host did without consequence is last.
        (
            |evidence| {
                workers(evidence, vec![shared(0.001)]);
                evidence.timeouts = 1;
            },
            "TRUSTED up to p99.9 · CAUTION: ERR",
            &["finding: ERR > ", "finding: COLO > "],
        ),
    ]);
}

#[test]
fn the_fix_fits_the_cause() {
    let table: [(Change, &str); 9] = [
        (
            |evidence| {
                workers(evidence, vec![worker(0.97, 0.001)]);
                processors(evidence, 12, 10, 2);
            },
            "processors are free: use more --threads",
        ),
        (
            |evidence| {
                workers(evidence, vec![worker(0.97, 0.001)]);
                processors(evidence, 19, 10, 9);
            },
            "no processor is free for another thread",
        ),
        // Without an account of the processors, the server's is taken to be one.
        (
            |evidence| {
                workers(evidence, vec![worker(0.97, 0.001)]);
                evidence.run.to_mut().host.busy_ns = None;
            },
            "no processor is free for another thread",
        ),
        (
            |evidence| {
                workers(evidence, vec![worker(0.02, 0.0)]);
                processors(evidence, 2, 1, 1);
                late(evidence, Quantile::P999, 90_000);
            },
            "a worker that does not sleep need not be woken: --wait spin",
        ),
        (
            |evidence| {
                workers(evidence, vec![worker(0.02, 0.0)]);
                processors(evidence, 19, 1, 18);
                late(evidence, Quantile::P999, 90_000);
            },
            "use a client host of its own: no processor is free here",
        ),
        // In a closed loop, workers with --wait spin wait as those with --wait hybrid do.
        (
            |evidence| {
                workers(evidence, vec![worker(0.02, 0.0)]);
                processors(evidence, 2, 1, 1);
                closed(evidence);
                evidence.run.to_mut().usage.wait = "sleep".to_owned();
                late(evidence, Quantile::P999, 90_000);
            },
            "let workers poll where replies are expected: --wait hybrid",
        ),
        (
            |evidence| {
                workers(evidence, vec![worker(0.02, 0.0)]);
                processors(evidence, 2, 1, 1);
                closed(evidence);
                evidence.run.to_mut().usage.wait = "spin".to_owned();
                late(evidence, Quantile::P999, 90_000);
            },
            "use an idle client host",
        ),
        (
            |evidence| {
                workers(evidence, vec![shared(0.41)]);
                late(evidence, Quantile::P99, 90_000);
            },
            "put them on different processors: --cpus",
        ),
        (
            |evidence| {
                workers(evidence, vec![worker(0.02, 0.003)]);
                late(evidence, Quantile::P999, 390_000);
            },
            "stop what else runs on these processors, or pin",
        ),
    ];
    for (index, (change, expected)) in table.into_iter().enumerate() {
        assert!(fix(change).starts_with(expected), "row {index}: {}", fix(change));
        // More threads help only a worker that is busy, where there is room for them.
        assert_eq!(fix(change).contains("more --threads"), index == 0, "row {index}");
    }
}

/// A backlog is the server's unless a worker had no time left, and with it goes the lateness that it makes.
#[test]
fn a_backlog_is_the_clients_or_the_servers() {
    check_table(&[
        (
            |evidence| {
                saturated(evidence);
                late(evidence, Quantile::P50, 390_000);
                evidence.open_loop = Some(OpenLoop { scheduled: 100_000, unsent: 60_000, abandoned: 0 });
                fire(&mut evidence.steady, Series::P50, 5);
            },
            "saturated server: 4000 of 10000 requests/s answered in the last half of the window, the busiest worker worked for 30.0 % · NOT TRUSTED: RATE SAT LAG",
            &["saturated_server: SAT > RATE LAG DRIFT SHIFT"],
        ),
        (
            |evidence| {
                saturated(evidence);
                workers(evidence, vec![worker(0.97, 0.001)]);
                late(evidence, Quantile::P50, 390_000);
            },
            "busy client: worker 1 worked for 97.0 % of the window · NOT TRUSTED: SAT LAG",
            &["busy_client: CPU > SAT LAG"],
        ),
        (
            |evidence| {
                saturated(evidence);
                workers(evidence, vec![shared(0.66)]);
                late(evidence, Quantile::P50, 390_000);
            },
            "client and server on one processor, that of worker 1, in 100 % of 500 samples · NOT TRUSTED: SAT LAG",
            &["shared_processor: STEAL COLO > SAT LAG CPU"],
        ),
        // One that idled for a fifth of the window had nothing to do, however long it waited for a CPU.
        (
            |evidence| {
                saturated(evidence);
                workers(evidence, vec![worker(0.03, 0.7)]);
                late(evidence, Quantile::P50, 390_000);
                evidence.completed = 0;
            },
            "saturated server: 4000 of 10000 requests/s answered in the last half of the window, the busiest worker worked for 3.00 % \
             and waited for a CPU for up to 70.0 % · NOT TRUSTED: SAMPLES SAT LAG",
            &["saturated_server: SAT > SAMPLES LAG", "finding: STEAL > "],
        ),
        // Neither had much of the one processor that they shared.
        (
            |evidence| {
                saturated(evidence);
                workers(evidence, vec![WorkerUsage { busy_ns: 2 * SECOND, ..shared(0.5) }]);
                late(evidence, Quantile::P50, 390_000);
                processors(evidence, 20, 3, 2);
            },
            "client and server on one processor, that of worker 1, in 100 % of 500 samples · NOT TRUSTED: SAT LAG",
            &["shared_processor: STEAL COLO > SAT LAG"],
        ),
        // A server that has its processor and does not use it may wait for something else.
        (
            |evidence| {
                saturated(evidence);
                workers(evidence, vec![shared(0.02)]);
                processors(evidence, 10, 3, 2);
            },
            "the server did not keep up: 4000 of 10000 requests/s answered in the last half of the window, the server worked for 20.0 %, the busiest worker worked for 30.0 % \
             and waited for a CPU for up to 2.00 % · NOT TRUSTED: SAT",
            &["saturated_server: SAT > ", "finding: STEAL > ", "finding: COLO > "],
        ),
        // Others had its processor for so long that the server is accused of nothing.
        (
            |evidence| {
                saturated(evidence);
                workers(evidence, vec![worker(0.5, 0.31)]);
                late(evidence, Quantile::P50, 390_000);
                processors(evidence, 14, 3, 1);
            },
            "busy neighbour: worker 1 waited for its processor for 31.0 % of the window, others used 1.00 processors · \
             NOT TRUSTED: SAT LAG",
            &["busy_neighbour: STEAL > SAT LAG CPU"],
        ),
    ]);
}

/// Of a backlog the one leads that had less time left, and the other is named behind it with the same measure.
#[test]
fn of_client_and_server_the_busier_one_leads() {
    let (client, server) = ("busy_client", "saturated_server");
    let table = [
        // Worked, waited for a CPU, the server worked: who leads.
        (0.79, 0.0, Some(0.1), server),
        (0.81, 0.0, Some(0.1), client),
        (0.81, 0.0, Some(0.82), server),
        (0.90, 0.0, Some(0.89), client),
        (0.90, 0.0, Some(0.91), server),
        (0.96, 0.0, Some(0.99), server),
        (0.99, 0.0, Some(0.96), client),
        // Of one load, twice in a row: 92 % and 95 % without time left, beside a server of four threads.
        (0.81, 0.11, Some(0.45), client),
        (0.81, 0.14, Some(0.45), client),
        // A server that tells nothing of its processor.
        (0.94, 0.0, None, server),
        (0.95, 0.0, None, client),
        (0.81, 0.13, None, server),
        (0.81, 0.15, None, client),
    ];
    for row in table {
        let (busy, denied, servers, expected) = row;
        let mut evidence = Evidence { measure_ns: MEASURE_NS, ..ordinary() };
        saturated(&mut evidence);
        workers(&mut evidence, vec![worker(busy, denied)]);
        if let Some(servers) = servers {
            let ns = Some((servers * 10.0 * SECOND as f64) as u64);
            let window = ServerSpan {
                end_ns: 10 * SECOND,
                cpu_ns: ns,
                thread_ns: ns,
                evictions: Some(0),
                ..ServerSpan::default()
            };
            evidence.servers.cache = Some(CacheEvidence { window, ..CacheEvidence::default() });
        }
        let verdict = Verdict::of(&evidence);
        let first = &verdict.causes()[0];
        assert_eq!(first.kind.name(), expected, "{row:?}: {:#?}", verdict.causes());
        let both = [Some(busy), servers].into_iter().flatten().map(percent);
        for number in both {
            assert!(first.sentence.contains(&number), "{row:?}: {}", first.sentence);
        }
        // A worker that is as good as busy is second, with the check that shows it.
        let second = verdict.causes().iter().find(|cause| cause.kind.name() == client);
        assert_eq!(second.is_some(), busy > 0.8, "{row:?}: {:#?}", verdict.causes());
    }
}

/// Of several threads the mean counts, or what a server of this host had of its processors.
#[test]
fn servers_are_as_busy_as_their_threads_or_this_host() {
    let table = [
        // Processor time of the server and of a thread, is it here: the fraction of 10 s.
        (8, 8, false, 0.8),
        (8, 2, false, 0.2),
        (8, 2, true, 0.4),
        (18, 5, true, 0.9),
        (30, 11, false, 1.0),
    ];
    for (cpu_s, thread_s, is_here, expected) in table {
        let mut evidence = ordinary();
        evidence.run.to_mut().host.listen_drops = is_here.then_some(0);
        let window = ServerSpan {
            end_ns: 10 * SECOND,
            cpu_ns: Some(cpu_s * SECOND),
            thread_ns: Some(thread_s * SECOND),
            ..ServerSpan::default()
        };
        evidence.servers.cache = Some(CacheEvidence { window, ..CacheEvidence::default() });
        assert_eq!(lateness::server_busy(&evidence), Some(expected), "{cpu_s} {thread_s} {is_here}");
    }
}

#[test]
fn a_cache_that_changes_explains_what_moves() {
    check_table(&[
        (
            |evidence| {
                filling(evidence);
                fire(&mut evidence.steady, Series::HitRatio, 4);
                fire(&mut evidence.steady, Series::P50, 4);
            },
            "filling cache: curr_items rose from 1000 to 13572 · CAUTION p50 p90 p99 p99.9: drift",
            &["cache: CACHE > DRIFT SHIFT"],
        ),
        (
            |evidence| {
                let window =
                    ServerSpan { evictions: Some(12_345), end_ns: 10 * SECOND, ..ServerSpan::default() };
                evidence.servers.cache = Some(CacheEvidence { window, ..CacheEvidence::default() });
                fire(&mut evidence.steady, Series::P99, 4);
            },
            "full cache: 12345 items evicted in the window (1235/s) · TRUSTED up to p90 · CAUTION p99 p99.9: drift",
            &["cache: CACHE > DRIFT SHIFT"],
        ),
        // The server says nothing, but what is found of what is asked for moves.
        (
            |evidence| {
                fire(&mut evidence.steady, Series::HitRatio, 4);
                fire(&mut evidence.steady, Series::P50, 4);
            },
            "hit ratio in motion: it changed by +0.500 within the window · CAUTION p50 p90 p99 p99.9: drift",
            &["cache: DRIFT SHIFT > "],
        ),
        // A latency that moves by itself is no matter of the cache.
        (
            |evidence| fire(&mut evidence.steady, Series::P50, 4),
            "CAUTION p50 p90: drift · CAUTION: SHIFT",
            &["finding: DRIFT > ", "finding: SHIFT > "],
        ),
        // An outage is first, whatever else is found.
        (
            |evidence| {
                filling(evidence);
                stopped(evidence);
                fire(&mut evidence.steady, Series::HitRatio, 1);
                fire(&mut evidence.steady_beside, Series::HitRatio, 1);
            },
            "outage of 1.57 s at 127.0.0.1:17112 · CAUTION p50 p90 p99 p99.9: drift · CAUTION: SHIFT CACHE",
            &["outage:  > ", "cache: CACHE > DRIFT SHIFT"],
        ),
    ]);
}
