//! Outages in virtual time: who is cut off when, what is lost, and what is there afterwards.

use crate::{connected, departures, departures_until, drain};
use brunt_server::core::{Core, CoreOptions, End};
use brunt_server::log::FLAG_LOST;
use brunt_server::{Outage, Service, Stall};

const GET: &[u8] = b"get a\r\n";

/// Origin 1000 at the first request; gone in [1100, 1150) and [1300, 1400).
fn options() -> CoreOptions {
    let outages = vec![Outage { at_ns: 100, for_ns: 50 }, Outage { at_ns: 300, for_ns: 100 }];
    CoreOptions { outages, record: true, ..CoreOptions::default() }
}

fn row(connection: u32, departure_ns: u64, text: &str, end: End) -> (u32, u64, String, End) {
    (connection, departure_ns, text.to_owned(), end)
}

#[test]
fn outages_reset_connections_and_drop_replies() {
    let mut core = Core::new(CoreOptions { service: Service::Fixed(40), ..options() });
    (0..4).for_each(|id| core.connect(id));
    core.disconnect(3);
    assert_eq!((core.next_departure_ns(), core.next_outage_ns(0)), (None, None), "no origin yet");
    core.receive(0, &GET.repeat(4), 1000);
    core.receive(1, b"get a", 1050);
    assert_eq!(core.next_outage_ns(1050), Some(1100));
    // 1040 and 1080 leave, 1120 and 1160 do not; connection 2 sent nothing and is reset all the same.
    let expected = [
        row(0, 1040, "END\r\n", End::Stays),
        row(0, 1080, "END\r\n", End::Stays),
        row(0, 1100, "", End::Resets),
        row(1, 1100, "", End::Resets),
        row(2, 1100, "", End::Resets),
    ];
    assert_eq!(departures_until(&mut core, 1120), expected);
    let flags: Vec<_> = core.take_records().map(|record| record.flags).collect();
    assert_eq!(flags, [0, 0, FLAG_LOST, FLAG_LOST]);
    assert!(core.is_gone(1120));
    assert_eq!(core.next_outage_ns(1120), Some(1150));
    core.receive(1, b"\r\n", 1130);
    core.receive_end(2, 1130);
    assert_eq!(core.take_records().count(), 0, "no request is taken");
    (0..3).for_each(|id| core.disconnect(id));
    // Back with an empty queue: the two that were lost take no time any more.
    core.connect(1);
    core.receive(1, GET, 1150);
    assert_eq!(departures_until(&mut core, 1189), []);
    assert_eq!(departures_until(&mut core, 1190), [row(1, 1190, "END\r\n", End::Stays)]);
    assert_eq!(departures(&mut core), [row(1, 1300, "", End::Resets)], "the second outage");
    assert_eq!((core.next_departure_ns(), core.next_outage_ns(1400)), (None, None));
}

#[test]
fn outage_bounds_are_exact() {
    let mut core = connected(options());
    for now_ns in [1000, 1099, 1100] {
        core.receive(0, GET, now_ns);
    }
    let expected = [
        row(0, 1000, "END\r\n", End::Stays),
        row(0, 1099, "END\r\n", End::Stays),
        row(0, 1100, "", End::Resets),
    ];
    assert_eq!(departures_until(&mut core, 1100), expected, "what arrives at the begin is lost");
    assert_eq!([1099, 1100, 1149, 1150].map(|now_ns| core.is_gone(now_ns)), [false, true, true, false]);
    // What departs at the begin is answered.
    let mut core = connected(CoreOptions { service: Service::Fixed(100), ..options() });
    core.receive(0, GET, 1000);
    let expected = [row(0, 1100, "END\r\n", End::Stays), row(0, 1100, "", End::Resets)];
    assert_eq!(departures_until(&mut core, 1100), expected);
    assert_eq!(core.take_records().next().unwrap().flags, 0);
}

#[test]
fn late_polling_does_not_change_outages() {
    let mut core = connected(options());
    core.receive(0, GET, 1000);
    core.receive(0, GET, 1120);
    core.receive(0, GET, 1200);
    // Both outages are over, and this connection did not outlive the first.
    let expected = [row(0, 1000, "END\r\n", End::Stays), row(0, 1100, "", End::Resets)];
    let seen = departures_until(&mut core, 1250);
    assert_eq!(seen, expected);
    assert_eq!(core.take_records().count(), 1);
}

#[test]
fn items_survive_outages_unless_forgotten() {
    for (outage_forgets, answered) in [(false, "VALUE a 0 1\r\nx\r\nEND\r\n"), (true, "END\r\n")] {
        let mut core = connected(CoreOptions { outage_forgets, ..options() });
        core.receive(0, b"set a 0 0 1\r\nx\r\n", 1000);
        assert_eq!(departures_until(&mut core, 1150).len(), 2);
        core.disconnect(0);
        core.connect(0);
        core.receive(0, GET, 1160);
        assert_eq!(drain(&mut core, 0, 1160), answered.as_bytes());
        let counters = core.counters();
        assert_eq!(
            (counters.cmd_set, counters.cmd_get, counters.total_connections),
            (1, 1, 2),
            "counters go on"
        );
    }
}

#[test]
fn a_script_counts_from_its_first_request_and_stalls_go_on() {
    let stalls = vec![Stall { at_ns: 160, for_ns: 20 }];
    let service = Service::Fixed(30);
    let mut core = connected(CoreOptions { script_after: 1, service, stalls, ..options() });
    core.receive(0, GET, 10);
    assert_eq!((core.next_outage_ns(10), core.is_gone(120)), (None, false), "a preload has no outage");
    // Ten requests are 300 of work, past the outage and the stall; then the server is back at 1150 without work.
    core.receive(0, &GET.repeat(10), 1000);
    assert_eq!(departures_until(&mut core, 1150).len(), 1 + 3 + 1);
    core.disconnect(0);
    core.connect(0);
    core.receive(0, GET, 1150);
    assert_eq!(core.next_departure_ns(), Some(1200), "10 before the stall [1160, 1180), 20 after it");
}
