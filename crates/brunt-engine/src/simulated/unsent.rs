//! Requests that were due and never sent: by whom they were kept, the client or the connections.

use super::*;

/// The schedule begins with the first operation.
const START_NS: u64 = EPOCH_NS + START_AHEAD_NS;

/// Service time, the client's stop (from the start of the schedule), more of the plan → unsent requests, and the client's of them.
fn unsent(service_ns: u64, stop: Option<(u64, u64)>, plan: &str) -> [u64; 2] {
    let outcome = simulate(
        &format!(
            "rate = 2000\narrival = 'uniform'\ntime = '1s'\nwarmup = '0s'\nkeys = 10\npreload = false\n{plan}"
        ),
        SimOptions {
            server: CoreOptions { service: Service::Fixed(service_ns), ..CoreOptions::default() },
            others: vec![CoreOptions { service: Service::Fixed(service_ns), ..CoreOptions::default() }; 7],
            pause: stop.map(|(at_ns, for_ns)| (START_NS + at_ns, for_ns)),
            ..SimOptions::default()
        },
    );
    check_books(&outcome);
    let requests = outcome.book(Phase::Measure).requests;
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
