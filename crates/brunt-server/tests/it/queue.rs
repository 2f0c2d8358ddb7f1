//! The queue in virtual time: paths computed by hand or by Lindley's recursion, and the distributions they must follow.

use crate::m_d_1;
use crate::{Random, connected, departures};
use brunt_server::core::{Core, CoreOptions, End};
use brunt_server::{Service, Stall};

const GET: &[u8] = b"get k\r\n";

fn row(connection: u32, departure_ns: u64, bytes: &str, closes: bool) -> (u32, u64, String, End) {
    (connection, departure_ns, bytes.to_owned(), if closes { End::Closes } else { End::Stays })
}

#[test]
fn one_line_for_all_connections() {
    let mut core = connected(CoreOptions { service: Service::Fixed(100), ..CoreOptions::default() });
    core.connect(7);
    core.receive(0, b"set k 0 0 1\r\nx\r\nget k\r\nge", 1000);
    core.receive(7, b"get k\r\nverbosity 1\r\n", 1050);
    core.receive(0, b"t k\r\nset k 0 0 1 noreply\r\ny\r\nquit\r\n", 1500);
    assert_eq!(core.next_departure_ns(), Some(1100));
    assert_eq!(core.pop_due(1099), None);
    let value = "VALUE k 0 1\r\nx\r\nEND\r\n";
    assert_eq!(
        departures(&mut core),
        [
            row(0, 1100, "STORED\r\n", false),
            row(0, 1200, value, false),
            // Control takes no service time: it leaves with the reply before it.
            row(7, 1300, &format!("{value}OK\r\n"), false),
            row(0, 1600, value, false),
            // The silent write took its time all the same.
            row(0, 1700, "", true),
        ]
    );
    assert_eq!(core.next_departure_ns(), None);
}

#[test]
fn batches_leave_as_one_without_service() {
    let mut core = connected(CoreOptions::default());
    core.connect(1);
    core.receive(0, &GET.repeat(3), 5);
    core.receive(1, GET, 5);
    core.receive(1, GET, 6);
    let expected =
        [row(0, 5, "END\r\nEND\r\nEND\r\n", false), row(1, 5, "END\r\n", false), row(1, 6, "END\r\n", false)];
    assert_eq!(departures(&mut core), expected);
}

#[test]
fn a_lost_connection_keeps_its_time_and_loses_its_replies() {
    let mut core = connected(CoreOptions { service: Service::Fixed(100), ..CoreOptions::default() });
    core.receive(0, &GET.repeat(2), 0);
    core.disconnect(0);
    core.connect(0);
    core.receive(0, GET, 10);
    assert_eq!(departures(&mut core), [row(0, 300, "END\r\n", false)]);
    assert_eq!((core.counters().curr_connections, core.counters().total_connections), (1, 2));
}

#[test]
fn half_closed_connections_are_still_answered() {
    let mut core = connected(CoreOptions { service: Service::Fixed(100), ..CoreOptions::default() });
    core.receive(0, &GET.repeat(2), 0);
    core.receive_end(0, 50);
    assert_eq!(departures(&mut core), [row(0, 100, "END\r\n", false), row(0, 200, "END\r\n", true)]);
}

#[test]
fn stalls_count_from_the_first_scripted_request() {
    let options = CoreOptions {
        service: Service::Fixed(10),
        stalls: vec![Stall { at_ns: 100, for_ns: 50 }],
        script_after: 2,
        ..CoreOptions::default()
    };
    let mut core = connected(options);
    // Two before the script: no service. Then the origin, 10 000; frozen in [10 100, 10 150).
    for now_ns in [1000, 2000, 10_000, 10_095, 10_120, 10_200] {
        core.receive(0, GET, now_ns);
    }
    let times: Vec<_> = departures(&mut core).into_iter().map(|(_, departure_ns, ..)| departure_ns).collect();
    assert_eq!(times, [1000, 2000, 10_010, 10_155, 10_165, 10_210]);
}

/// Serves `count` requests with these gaps and gives every sojourn time, after checking it against Lindley's recursion
/// for waiting times, W' = max(0, W + s − gap), which is another formula than the server's.
fn sojourns(service: Service, count: u64, mut gap_ns: impl FnMut() -> u64) -> Vec<u64> {
    let seed = 11;
    let mut core = Core::new(CoreOptions { service, seed, record: true, ..CoreOptions::default() });
    (0..4).for_each(|id| core.connect(id));
    let (mut now_ns, mut waiting_ns, mut all) = (0u64, 0u64, Vec::with_capacity(count as usize));
    for number in 0..count {
        core.receive((number % 4) as u32, GET, now_ns);
        let service_ns = service.service_ns(seed, number);
        let record = core.take_records().next().unwrap();
        let sojourn_ns = record.departure_ns - record.arrival_ns;
        assert_eq!((record.number, record.arrival_ns), (number, now_ns));
        assert_eq!(sojourn_ns, waiting_ns + service_ns, "request {number}");
        all.push(sojourn_ns);
        let gap_ns = gap_ns();
        waiting_ns = (waiting_ns + service_ns).saturating_sub(gap_ns);
        now_ns += gap_ns;
        while core.pop_due(now_ns).is_some() {}
    }
    all
}

fn mean(times: &[u64]) -> f64 {
    times.iter().sum::<u64>() as f64 / times.len() as f64
}

fn quantile(times: &mut [u64], p: f64) -> f64 {
    let rank = (p * times.len() as f64).ceil() as usize - 1;
    *times.select_nth_unstable(rank).1 as f64
}

#[test]
fn m_m_1_has_the_mean_and_the_tail_of_the_law() {
    // μ = 10 000/s, λ = 5 000/s: mean 1/(μ − λ) = 200 µs, p99 = −ln(0.01)/(μ − λ) = 921.0 µs.
    let mut random = Random(3);
    let mut times =
        sojourns(Service::Exponential(100_000), 1_000_000, || random.exponential(200_000.0).round() as u64);
    assert!((mean(&times) / 200_000.0 - 1.0).abs() < 0.02, "mean {}", mean(&times));
    let p99 = quantile(&mut times, 0.99);
    assert!((p99 / 921_034.0 - 1.0).abs() < 0.03, "p99 {p99}");
}

#[test]
fn m_d_1_has_the_mean_of_the_law() {
    // Pollaczek and Khinchine: 1/μ + ρ/(2μ(1 − ρ)) = 150 µs.
    let mut random = Random(4);
    let times = sojourns(Service::Fixed(100_000), 300_000, || random.exponential(200_000.0).round() as u64);
    assert!((mean(&times) / 150_000.0 - 1.0).abs() < 0.02, "mean {}", mean(&times));
}

#[test]
fn overload_grows_as_a_line() {
    // Offered 20 000/s for 10 s, served 10 000/s: request k waits k · 50 µs and is served in 100 µs.
    let times = sojourns(Service::Fixed(100_000), 200_000, || 50_000);
    for (number, sojourn_ns) in times.iter().enumerate() {
        assert_eq!(*sojourn_ns, number as u64 * 50_000 + 100_000);
    }
}

#[test]
fn one_stall_is_a_ramp() {
    // 1 000/s for 20 s, no service time, frozen for 1 s at 5 s: the requests of that second leave at its end.
    let stalls = vec![Stall { at_ns: 5_000_000_000, for_ns: 1_000_000_000 }];
    let mut core = connected(CoreOptions { stalls, record: true, ..CoreOptions::default() });
    for number in 0..20_000 {
        core.receive(0, GET, 77 + number * 1_000_000);
    }
    let mut times: Vec<_> =
        core.take_records().map(|record| record.departure_ns - record.arrival_ns).collect();
    assert_eq!(times.iter().filter(|time| **time > 0).count(), 1000);
    assert_eq!(times.iter().sum::<u64>(), (1..=1000).map(|millis| millis * 1_000_000).sum::<u64>());
    // S − (1 − p) · D = 0.8 s, within the spacing of the arrivals.
    assert!((quantile(&mut times, 0.99) - 0.8e9).abs() <= 1e6);
    let leaving_together = departures(&mut core).iter().map(|(_, _, bytes, _)| bytes.len()).max();
    assert_eq!(
        leaving_together,
        Some(1001 * "END\r\n".len()),
        "those held, and the one that comes as it ends"
    );
}

#[test]
fn replies_that_wait_are_bounded() {
    let options = CoreOptions { service: Service::Fixed(1_000_000), ..CoreOptions::default() };
    let mut core = connected(options);
    core.receive(0, format!("set k 0 0 1000000\r\n{}\r\n", "v".repeat(1_000_000)).as_bytes(), 0);
    core.receive(0, &GET.repeat(300), 1);
    let (mut values, mut refusals) = (0, 0);
    while let Some(due) = core.pop_due(u64::MAX) {
        values += usize::from(due.bytes.starts_with(b"VALUE"));
        refusals += usize::from(due.bytes == b"SERVER_ERROR out of memory writing get response\r\n");
    }
    // 256 MiB hold 268 replies of 1 000 026 bytes.
    assert_eq!((values, refusals), (268, 32));
}

/// Computed with sixty digits.
#[test]
fn the_law_of_m_d_1_to_sixty_digits() {
    for (utilisation, expected) in [(0.3, 2.891), (0.5, 4.336), (0.7, 7.485), (0.8, 11.356), (0.85, 15.209)] {
        let found = m_d_1::p99(utilisation);
        assert!((found - expected).abs() < 0.001, "{utilisation}: {found}");
        assert!((m_d_1::utilisation_at_p99(found) - utilisation).abs() < 1e-6, "{utilisation}");
    }
}
