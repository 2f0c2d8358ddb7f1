//! Rates of the window under overload, by the law of the queue: what happens in it counts, whatever was due before it.

use super::*;
use brunt_stats::window::WindowCounts;

/// 30 000/s for a server of 10 000/s that does one request after the other, over a connection that takes ten at a time.
const OVERLOAD: &str = "rate = 30000\narrival = 'uniform'\nconnections = 1\ndepth = 10\npreload = false\ntimeout = '60s'\n\
                        drain = '10ms'\nmix = 'get=1,set=1'";

fn run(more: &str) -> Outcome {
    let server = CoreOptions { service: Service::Fixed(100 * US), ..CoreOptions::default() };
    let outcome = simulate(&format!("{OVERLOAD}\n{more}"), SimOptions { server, ..SimOptions::default() });
    check_books(&outcome);
    outcome
}

/// The counts of all operations, and how many were due in the window.
fn counts(outcome: &Outcome) -> (WindowCounts, u64) {
    let mut sum = WindowCounts::default();
    outcome.store.books().entries().for_each(|entry| sum.merge(&entry.in_window()));
    (sum, outcome.book(Phase::Measure).requests.scheduled)
}

/// By when they were due none of the window's requests was even sent in it: 30 000 wait from the first second, and the
/// server needs two for the 20 000 that it cannot do.
#[test]
fn an_overloaded_server_is_seen_at_its_pace() {
    let outcome = run("warmup = '1s'\ntime = '1s'");
    let book = outcome.book(Phase::Measure);
    assert_eq!((book.requests.scheduled, book.requests.sent, book.requests.unsent), (30_000, 0, 30_000));
    let (window, _) = counts(&outcome);
    assert_eq!((window.completed(), window.failed(), window.sent), (10_000, 0, 10_000));
    assert_eq!((window.in_flight_at_start, window.in_flight_at_end), (10, 10));
    // Of the 30 000 of the warm-up the server has done 10 000, but for those that were on their way to it at first.
    assert!(window.waiting_at_start.abs_diff(20_000 - 10) <= 10, "{window:?}");
    assert_eq!(window.waiting_at_end, window.waiting_at_start + 20_000);
}

/// One window after the other they are what one window over all of them is, and each begins with what the last one left.
#[test]
fn consecutive_windows_add_up() {
    let parts = [0, 1, 2].map(|warmup| counts(&run(&format!("warmup = '{warmup}s'\ntime = '1s'"))));
    let (whole, due) = counts(&run("warmup = '0s'\ntime = '3s'"));
    assert_eq!(parts.map(|(_, due)| due).iter().sum::<u64>(), due);
    for pair in parts.windows(2) {
        let [(one, _), (next, _)] = pair else { unreachable!("pairs") };
        assert_eq!(one.in_flight_at_end, next.in_flight_at_start);
        assert_eq!(one.waiting_at_end, next.waiting_at_start);
    }
    let mut sum = WindowCounts::default();
    parts.iter().for_each(|(part, _)| sum.merge(part));
    assert_eq!((sum.sent, sum.outcomes), (whole.sent, whole.outcomes));
    assert_eq!((parts[0].0.in_flight_at_start, parts[2].0.in_flight_at_end), (0, whole.in_flight_at_end));
    assert_eq!(parts[2].0.waiting_at_end, whole.waiting_at_end);
}

/// Ended by hand in the warm-up, the window is empty; in the window, it ends at the instant of the wish, and all that
/// happens at this very instant is inside.
#[test]
fn windows_that_are_cut_short_balance() {
    for (at_ns, is_empty) in [(500 * MS, true), (1_500 * MS, false), (1_700 * MS + 7, false)] {
        for defers_sends in [false, true] {
            let server = CoreOptions { service: Service::Fixed(100 * US), ..CoreOptions::default() };
            let options = SimOptions { server, defers_sends, ..SimOptions::default() };
            let plan = plan(&format!("{OVERLOAD}\non-miss = 'set'\nwarmup = '1s'\ntime = '1s'"));
            let outcome = simulate_observed(plan, options, VIRTUAL_NS_MAX, &mut |observed| match observed {
                RunEvent::Tick { now_ns, .. } if now_ns >= EPOCH_NS + at_ns => RunDecision::Finish,
                _ => RunDecision::Continue,
            });
            check_books(&outcome);
            let (window, _) = counts(&outcome);
            assert_eq!(window.completed() == 0, is_empty, "{window:?}");
        }
    }
}
