//! Dripping in virtual time: the same bytes in the same order, in pieces at known times.

use crate::{Random, departures, departures_until};
use brunt_server::core::{Core, CoreOptions, End};
use brunt_server::faults::{Every, Faults};
use brunt_server::{Outage, Service};

fn dripping(drip: &str, options: CoreOptions) -> Core {
    let mut core = Core::new(CoreOptions { drip: Some(drip.parse().unwrap()), ..options });
    (0..3).for_each(|id| core.connect(id));
    core
}

/// (connection, departure, bytes, end)
type Row = (u32, u64, &'static str, End);

fn check(core: &mut Core, until_ns: u64, expected: &[Row]) {
    let expected: Vec<_> =
        expected.iter().map(|(id, at_ns, text, end)| (*id, *at_ns, (*text).to_owned(), *end)).collect();
    assert_eq!(departures_until(core, until_ns), expected);
}

#[test]
fn pieces_leave_one_after_the_other() {
    let mut core = dripping("3:1", CoreOptions { service: Service::Fixed(100), ..CoreOptions::default() });
    core.receive(0, b"get a\r\n", 0);
    core.receive(1, b"get a\r\n", 0);
    core.receive(0, b"get a\r\nquit\r\n", 0);
    assert_eq!(core.next_departure_ns(), Some(100));
    check(&mut core, 99, &[]);
    // The queue goes on while replies drip: 100, 200, 300. The second reply of connection 0 waits for the first.
    let expected = [
        (0, 100, "END", End::Stays),
        (1, 200, "END", End::Stays),
        (0, 1100, "\r\n", End::Stays),
        (1, 1200, "\r\n", End::Stays),
        (0, 2100, "END", End::Stays),
        (0, 3100, "\r\n", End::Stays),
        (0, 4100, "", End::Closes),
    ];
    check(&mut core, u64::MAX, &expected);
    assert_eq!(core.counters().bytes_written, 15);
}

#[test]
fn without_a_pause_every_byte_is_alone() {
    let mut core = dripping("1:0", CoreOptions::default());
    core.receive(0, b"get a\r\nget a\r\n", 7);
    let left = departures(&mut core);
    assert!(left.iter().all(|(id, at_ns, text, _)| (*id, *at_ns, text.len()) == (0, 7, 1)));
    assert_eq!(left.into_iter().map(|(_, _, text, _)| text).collect::<String>(), "END\r\nEND\r\n");
}

#[test]
fn faults_and_outages_meet_a_dripping_reply() {
    let faults = Faults { cut_every: Every::new(2), reset_every: Every::new(3), ..Faults::default() };
    let outages = vec![Outage { at_ns: 5000, for_ns: 100 }];
    let mut core = dripping("4:1", CoreOptions { faults, outages, ..CoreOptions::default() });
    core.receive(0, b"get a\r\ndelete abc\r\n", 0);
    core.receive(1, b"get a\r\n", 0);
    let expected = [
        (0, 0, "END\r", End::Stays),
        (1, 0, "", End::Resets),
        (0, 1000, "\n", End::Stays),
        (0, 2000, "NOT_", End::Stays),
        (0, 3000, "F", End::Closes),
    ];
    check(&mut core, 4000, &expected);
    core.disconnect(0);
    core.disconnect(1);
    // The piece at the begin leaves, the one after it is lost.
    core.receive(2, b"version\r\n", 3000);
    let left = departures(&mut core);
    let pieces: Vec<_> = left.iter().map(|(_, at_ns, text, end)| (*at_ns, text.len(), *end)).collect();
    assert_eq!(
        pieces,
        [(4000 - 1000, 4, End::Stays), (4000, 4, End::Stays), (5000, 4, End::Stays), (5000, 0, End::Resets)]
    );
    core.disconnect(2);
    core.connect(0);
    core.receive(0, b"get a\r\n", 6000);
    check(&mut core, u64::MAX, &[(0, 6000, "EN", End::Closes)]);
}

#[test]
fn a_preload_does_not_drip() {
    let mut core = dripping("1:1000", CoreOptions { script_after: 2, ..CoreOptions::default() });
    core.receive(0, b"get a\r\nget a\r\nversion\r\n", 5);
    let left = departures_until(&mut core, 5);
    assert_eq!(left.len(), 1);
    assert!(left[0].2.starts_with("END\r\nEND\r\nVERSION "));
    core.receive(0, b"get a\r\n", 6);
    check(&mut core, 6, &[(0, 6, "E", End::Stays)]);
}

/// Random requests of three connections, dripped and not: every connection reads the same bytes; pieces are in bounds,
/// never go back in time, and are the pause apart.
#[test]
fn dripping_changes_only_times() {
    let mut random = Random(9);
    for round in 0..50 {
        let (piece_bytes, pause_us) = (1 + random.below(40), random.below(3));
        let drip = format!("{piece_bytes}:{pause_us}");
        let service = Service::Exponential(2_000);
        let options = CoreOptions { service, seed: round, ..CoreOptions::default() };
        let mut cores = [Core::new(options.clone()), dripping(&drip, options)];
        (0..3).for_each(|id| cores[0].connect(id));
        let mut now_ns = 0;
        let mut read: [[String; 3]; 2] = Default::default();
        let mut last_ns = [None::<u64>; 3];
        let mut latest_ns = 0;
        for request in 0..200 {
            now_ns += random.below(3_000);
            let (id, key) = (random.below(3) as u32, random.below(5));
            let sent = match random.below(3) {
                0 => format!("set k{key} 0 0 {0}\r\n{1}\r\n", key * 9, "v".repeat(key as usize * 9)),
                1 => format!("get k{key} k0\r\n"),
                _ => format!("get k{key}\r\nverbosity 1\r\n"),
            };
            let until_ns = if request == 199 { u64::MAX } else { now_ns };
            for (which, core) in cores.iter_mut().enumerate() {
                core.receive(id, sent.as_bytes(), now_ns);
                for (id, at_ns, text, _) in departures_until(core, until_ns) {
                    read[which][id as usize].push_str(&text);
                    if which == 1 {
                        assert!(text.len() as u64 <= piece_bytes && !text.is_empty());
                        assert!(at_ns >= latest_ns, "time goes back");
                        latest_ns = at_ns;
                        let free_ns = last_ns[id as usize].map_or(0, |last_ns| last_ns + pause_us * 1000);
                        assert!(at_ns >= free_ns, "{at_ns} is before {free_ns}");
                        last_ns[id as usize] = Some(at_ns);
                    }
                }
            }
        }
        assert_eq!(read[0], read[1], "{drip}");
        assert_eq!(cores[0].counters().bytes_written, cores[1].counters().bytes_written);
    }
}
