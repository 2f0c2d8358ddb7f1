//! More due operations than queues hold: those behind a full one wait in the schedule, and for a connection. The client's are only
//! those that it did not come to while there was room. Of requests that were due and never sent: by whom they were kept.

use crate::simulated::*;
use brunt_plan::quantile::Quantile;

/// The schedule begins with the first operation.
const START_NS: u64 = EPOCH_NS + START_AHEAD_NS;

fn run(load: &str, service_ns: u64, pause: Option<(u64, u64)>) -> Outcome {
    let outcome = simulate(
        &format!("{load}\narrival = 'uniform'\nconnections = 4\ndrain = '20s'\nkeys = 10\npreload = false"),
        SimOptions { pause, ..SimOptions::of(serving(service_ns)) },
    );
    let requests = outcome.requests();
    assert_eq!((requests.completed(), requests.unsent), (requests.scheduled, 0));
    outcome
}

/// Fifteen times what the server does: up to 280 000 wait, where queues hold 131 072.
#[test]
fn operations_behind_full_queues_wait_for_a_connection() {
    let outcome = run("rate = 1500000\ntime = '200ms'", 10 * US, None);
    assert_eq!(outcome.samples.len(), 300_000);
    for (number, sample) in (1..).zip(&outcome.samples) {
        let times = &sample.times;
        assert_eq!(times.done_ns, outcome.samples[0].times.sent_ns + number * 10 * US);
        assert!(times.client_lag_ns() <= US, "{number}: {times:?}");
        assert!(sample.busy_lag_ns.unwrap() <= US, "{number}: {sample:?}");
    }
}

/// A stopped client finds more due than its queues hold, although there was room for all of it.
#[test]
fn operations_that_a_stop_made_late_are_the_clients() {
    let stop = START_NS + 100 * MS..START_NS + 1_100 * MS;
    let outcome = run("rate = 150000\ntime = '2s'", 2 * US, Some((stop.start, SECOND)));
    assert_eq!(outcome.samples.len(), 300_000);
    for sample in &outcome.samples {
        let times = &sample.times;
        let late_ns =
            if times.intended_ns > stop.start { stop.end.saturating_sub(times.intended_ns) } else { 0 };
        assert!((late_ns..=late_ns + US).contains(&times.client_lag_ns()), "{times:?}");
    }
}

/// The client is stopped while its queue is full: it would not have come to what became due meanwhile, had there been room.
#[test]
fn operations_due_in_a_stop_behind_full_queues_are_the_clients() {
    let stop = START_NS + 150 * MS..START_NS + 1_150 * MS;
    let outcome = run("rate = 1500000\ntime = '200ms'", 10 * US, Some((stop.start, SECOND)));
    let mut due_in_stop = 0;
    for sample in &outcome.samples {
        let times = &sample.times;
        let (late_ns, lag_ns) = (stop.end - times.intended_ns, times.client_lag_ns());
        if times.intended_ns > stop.start && lag_ns > US {
            assert!((late_ns..=late_ns + US).contains(&lag_ns), "{times:?}");
            due_in_stop += 1;
        } else {
            assert!(lag_ns <= US, "{times:?}");
        }
    }
    // The stop shows when the sleep outlasts its timer, after 20 ms at most.
    assert!((45_000..=75_000).contains(&due_in_stop), "{due_in_stop}");
}

/// The server answers nothing any more: what waits in the schedule at the end of the drain is abandoned, and has waited for it.
#[test]
fn operations_behind_full_queues_of_a_down_server_wait_for_it() {
    let outcome = simulate(
        "rate = 1500000\narrival = 'uniform'\nconnections = 4\ntime = '200ms'\ndrain = '100ms'\n\
         timeout = '240ms'\nkeys = 10\npreload = false",
        SimOptions::of(stalled(50 * MS, 100 * SECOND)),
    );
    let requests = outcome.requests();
    assert_eq!((requests.scheduled, requests.unsent), (300_000, requests.abandoned));
    assert!(requests.abandoned > 200_000, "{requests:?}");
    // A quarter was answered at once, the others have waited for 100 to 240 ms.
    let (_, _, row) = outcome.store.rows().next().unwrap();
    let median_ns = row.latencies.least.quantile(Quantile::P50).unwrap();
    assert!(median_ns >= 149 * MS, "{median_ns}");
}

/// Service time, the client's stop (from the start of the schedule), more of the plan → unsent requests, and the client's of them.
fn unsent(service_ns: u64, stop: Option<(u64, u64)>, plan: &str) -> [u64; 2] {
    let outcome = simulate(
        &format!("rate = 2000\narrival = 'uniform'\ntime = '1s'\nkeys = 10\npreload = false\n{plan}"),
        SimOptions {
            others: vec![serving(service_ns); 7],
            pause: stop.map(|(at_ns, for_ns)| (START_NS + at_ns, for_ns)),
            ..SimOptions::of(serving(service_ns))
        },
    );
    let requests = outcome.requests();
    assert_eq!((requests.scheduled, requests.abandoned), (2_000, 0));
    assert_eq!(requests.unsent_connection() + requests.unsent_client, requests.unsent);
    [requests.unsent, requests.unsent_client]
}

/// A connection carries 100/s, for the window and the drain.
#[test]
fn in_overload_all_wait_for_a_connection() {
    let one = "connections = 1\ndrain = '100ms'";
    assert_eq!(unsent(10 * MS, None, one), [2_000 - 111, 0]);
    // A stop that is short beside the wait changes nothing.
    let [unsent_beside_stop, of_client] = unsent(10 * MS, Some((300 * MS, 20 * MS)), one);
    assert!(unsent_beside_stop >= 2_000 - 111, "{unsent_beside_stop}");
    assert_eq!(of_client, 0);
}

/// The last reply comes before the stop, which outlasts window and drain.
#[test]
fn a_client_that_is_stopped_to_the_end_has_no_time() {
    for plan in ["connections = 1\ndrain = '100ms'", "connections = 4\ndrain = '0s'"] {
        let [unsent, of_client] = unsent(100 * US, Some((500 * MS, 2 * SECOND)), plan);
        assert!((900..=1_000).contains(&unsent), "{plan}: {unsent}");
        assert_eq!(of_client, unsent, "{plan}");
    }
}

/// Requests that are due after a stop wait behind those that it made late.
#[test]
fn what_waits_behind_a_stop_is_the_clients() {
    let stop = Some((100 * MS, 850 * MS));
    let [unsent, of_client] = unsent(400 * US, stop, "connections = 1\ndrain = '100ms'");
    assert!(unsent > 1_000, "{unsent}");
    assert_eq!(of_client, unsent);
}
