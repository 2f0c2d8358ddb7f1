//! The window against the original's rules, walked through op by op; expected shares are computed from their definitions.

use super::*;
use crate::rng::Purpose;
use brunt_plan::outcome::ReplyKind;
use brunt_plan::popularity::{ObjectWindow as Distribution, Popularity};
use std::collections::HashMap;

const STORED: Outcome = Outcome { class: OutcomeClass::Done, reply: ReplyKind::Stored };
const LOST: Outcome = Outcome::without_reply(OutcomeClass::Lost);
const HIT: Outcome = Outcome { class: OutcomeClass::Hit, reply: ReplyKind::Value };

fn class(popularity: &str, mix: &str, multiget: u16) -> Class {
    crate::tests::class(&format!(
        "connections = 1\nclient-connections = 1\nkey-form = 'memaslap'\nprefix = ''\nkey-size = 64\nvalue-size = 1024\nttl = '60s'\n\
         popularity = '{popularity}'\nmix = '{mix}'\nmultiget = {multiget}"
    ))
}

fn window_of(class: &Class, client: (u32, u32), verify: f64) -> ClientWindow {
    let part = StreamPart { index: client.0, of: client.1 };
    ClientWindow::new(class, part, Rng::for_stream(1, Purpose::Ops, 0, client.0), 1, verify).unwrap()
}

fn window(popularity: &str, mix: &str) -> ClientWindow {
    window_of(&class(popularity, mix, 1), (0, 1), 0.0)
}

fn id(op: &Op) -> u64 {
    op.only_id().unwrap()
}

/// The place and the number of an op's object.
fn object(op: &Op) -> (u32, u64) {
    (Distribution::place_of(id(op)), Distribution::number_of(id(op)))
}

/// The next op, which a server that is always there carries out.
fn step(window: &mut ClientWindow) -> Op {
    let op = window.next_of(0, u64::MAX);
    window.record_outcome(op.key, if op.kind == OpKind::Set { STORED } else { HIT });
    op
}

#[test]
fn sets_and_gets_follow_memaslap() {
    // Window of 4, one set for nine gets: numbers of the objects that are set, and how many may be requested by then.
    let mut window = window("window:4", "set=1,get=9");
    for set in 0..1_000 {
        let op = step(&mut window);
        assert_eq!(
            (op.kind, object(&op), op.value),
            (OpKind::Set, ((set % 4) as u32, set), ValueRef::Version(0))
        );
        let oldest = (set + 1).saturating_sub(4);
        for _ in 0..9 {
            let op = step(&mut window);
            let (place, number) = object(&op);
            assert_eq!((op.kind, u64::from(place)), (OpKind::Get, number % 4));
            assert!((oldest..=set).contains(&number), "{number} behind set {set}");
        }
    }
}

#[test]
fn set_fractions_hold_and_gets_are_even() {
    for (sets, gets) in [(1, 9), (3, 7), (1, 1), (9, 1), (333, 667), (1, 0)] {
        let mix = format!("set={sets},get={gets}");
        let mut window = window("window:8", &mix);
        let mut places = [0u32; 8];
        let (mut set_count, mut get_count) = (0u64, 0u64);
        for _ in 0..40_000 {
            let op = step(&mut window);
            match op.kind {
                OpKind::Set => set_count += 1,
                _ => {
                    get_count += 1;
                    places[object(&op).0 as usize] += 1;
                }
            }
            // Never further from the share than an op of each.
            assert!((set_count * gets).abs_diff(get_count * sets) <= sets + gets, "{mix}");
        }
        let mean = get_count as f64 / 8.0;
        // Five standard deviations, and what the filling takes.
        let off = places.iter().map(|count| (f64::from(*count) - mean).abs()).fold(0.0, f64::max);
        assert!(off <= 5.0 * mean.sqrt() + 20.0, "{mix}: {places:?}");
    }
}

#[test]
fn clients_never_share_an_object() {
    let class = class("window:16", "set", 1);
    let mut numbers = Vec::new();
    for client in 0..3 {
        let mut window = window_of(&class, (client, 3), 0.0);
        numbers.extend((0..500).map(|_| object(&step(&mut window)).1));
    }
    numbers.sort_unstable();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]));
    // Each client's first objects lie behind those of the client before it, then they take turns.
    assert_eq!(numbers[..48], (0..48).collect::<Vec<_>>());
    assert!(numbers.into_iter().eq(0..1_500));
}

#[test]
fn overwrites_have_their_share() {
    for overwrite in [0.1, 0.2, 0.5, 1.0] {
        let mut window = window(&format!("window:100,overwrite={overwrite}"), "set=1,get=1");
        let mut versions: HashMap<u64, u32> = HashMap::new();
        let (mut overwritten, mut sets) = (0u64, 0u64);
        for _ in 0..20_000 {
            let op = step(&mut window);
            if op.kind != OpKind::Set {
                continue;
            }
            let ValueRef::Version(version) = op.value else { panic!("{op:?}") };
            match versions.insert(id(&op), version) {
                // The next version of what is there.
                Some(before) => {
                    assert_eq!(version, before + 1);
                    overwritten += 1;
                }
                None => assert_eq!(version, 0),
            }
            sets += 1;
            // The first set has nothing that it could overwrite.
            assert!(
                (overwritten as f64 - sets as f64 * overwrite).abs() <= 2.0,
                "{overwrite} {overwritten} {sets}"
            );
        }
        assert_eq!(versions.len() as u64, sets - overwritten);
    }
}

#[test]
fn the_miss_rate_follows_from_the_window() {
    // A server that holds only the objects that were stored last: the others of a window are misses.
    for (objects, held) in [(100u64, 100u64), (100, 70), (100, 20), (64, 1_000)] {
        let mut window = window(&format!("window:{objects}"), "set=1,get=4");
        let (mut gets, mut misses, mut stored) = (0u64, 0u64, 0u64);
        for op_index in 0..200_000 {
            let op = step(&mut window);
            if op.kind == OpKind::Set {
                stored += 1;
            } else if op_index > 50_000 {
                gets += 1;
                misses += u64::from(object(&op).1 + held < stored);
            }
        }
        let expected = 1.0 - held.min(objects) as f64 / objects as f64;
        let rate = misses as f64 / gets as f64;
        // Five standard deviations.
        let most_off = 5.0 * (expected * (1.0 - expected) / gets as f64).sqrt();
        assert!((rate - expected).abs() <= most_off, "{objects} {held}: {rate} is not {expected}");
    }
}

#[test]
fn a_refused_set_is_tried_again() {
    let mut window = window("window:4", "set=1,get=9");
    for _ in 0..37 {
        step(&mut window);
    }
    let refused = Outcome::of_reply(OpKind::Set, ReplyKind::ServerError);
    while window.next_of(0, u64::MAX).kind == OpKind::Get {}
    // Whatever it was, the place that is new now stays so.
    let first = Distribution::id(0, 4);
    window.record_outcome(KeyRef::Id(first), refused);
    for _ in 0..50 {
        let op = window.next_of(0, u64::MAX);
        assert_eq!((op.kind, id(&op)), (OpKind::Set, first));
        window.record_outcome(op.key, refused);
    }
    let op = step(&mut window);
    assert_eq!((op.kind, id(&op)), (OpKind::Set, first));
    assert_eq!(window.next_of(0, u64::MAX).kind, OpKind::Get);
}

#[test]
fn windows_without_sets_are_full() {
    let class = class("window:50,expire=0.1", "get", 1);
    for client in 0..2 {
        let mut window = window_of(&class, (client, 2), 1.0);
        for _ in 0..1_000 {
            let op = step(&mut window);
            let (place, number) = object(&op);
            assert_eq!((op.kind, number), (OpKind::Get, u64::from(client * 50 + place)));
            let expires = matches!(place, 1 | 11 | 21 | 31 | 41);
            let check = if expires { Check::Life { stored_ms: 0 } } else { Check::Value { version: 0 } };
            assert_eq!(
                (op.expectation, window.take_check(op.key, id(&op))),
                (Expectation::Present, Some(check))
            );
        }
    }
}

#[test]
fn checks_know_versions_and_times() {
    // A server that never forgets: what a check expects is what was stored last, and every object is checked as it should be.
    let class = class("window:20,overwrite=0.5,expire=0.25", "set=1,get=3", 1);
    for verify in [0.0, 0.3, 1.0] {
        let mut window = window_of(&class, (0, 1), verify);
        let mut server: HashMap<u64, (u32, u32)> = HashMap::new();
        let (mut gets, mut values, mut lives) = (0u64, 0u64, 0u64);
        for at_ms in 0..20_000u32 {
            let op = window.next_of(u64::from(at_ms) * 1_000_000, u64::MAX);
            if let ValueRef::Version(version) = op.value {
                assert_eq!(op.ttl_s > 0, window.distribution.expires(object(&op).0), "{op:?}");
                server.insert(id(&op), (version, at_ms));
                window.record_outcome(op.key, STORED);
                continue;
            }
            gets += 1;
            let (version, stored_ms) = server[&id(&op)];
            if op.expectation == Expectation::Present {
                match window.take_check(op.key, id(&op)).unwrap() {
                    Check::Value { version: expected } => {
                        assert_eq!(version, expected);
                        values += 1;
                    }
                    Check::Life { stored_ms: expected } => {
                        assert_eq!(stored_ms, expected);
                        lives += 1;
                    }
                }
            }
            window.record_outcome(op.key, HIT);
        }
        // A quarter of the places; the others as often as was requested, of all gets.
        assert!((lives as f64 / gets as f64 - 0.25).abs() < 0.02, "{lives} of {gets}");
        let expected = verify.min(1.0 - lives as f64 / gets as f64) * gets as f64;
        assert!((values as f64 - expected).abs() <= 1.0, "{values} of {gets}");
    }
}

#[test]
fn uncertain_writes_are_not_checked() {
    let mut window = window_of(&class("window:1,overwrite=1", "set=1,get=1", 1), (0, 1), 1.0);
    step(&mut window);
    assert_eq!(window.next_of(0, u64::MAX).expectation, Expectation::Present);
    let lost = window.next_of(0, u64::MAX);
    assert_eq!((lost.kind, lost.value), (OpKind::Set, ValueRef::Version(1)));
    window.record_outcome(lost.key, LOST);
    let again = window.next_of(0, u64::MAX);
    assert_eq!(again, lost, "it is due as before");
    window.record_outcome(again.key, LOST);
    window.get_count = 0;
    assert_eq!(window.next_of(0, u64::MAX).expectation, Expectation::Any);
    let again = window.next_of(0, u64::MAX);
    window.record_outcome(again.key, STORED);
    let get = window.next_of(0, u64::MAX);
    assert_eq!(window.take_check(get.key, id(&get)), Some(Check::Value { version: 1 }));
}

#[test]
fn gets_gather_until_they_are_as_many_as_a_multi_get_has() {
    let class = class("window:50", "set=1,mget=9", 4);
    let mut window = window_of(&class, (0, 1), 1.0);
    let (mut sets, mut keys) = (0u64, 0u64);
    let mut server: HashMap<u64, u32> = HashMap::new();
    for left in (1..=10_001u64).rev() {
        let done = 10_001 - left;
        if done < sets + keys {
            continue;
        }
        let op = window.next_of(0, left);
        match op.value {
            ValueRef::Version(version) => {
                server.insert(id(&op), version);
                sets += 1;
                window.record_outcome(op.key, STORED);
            }
            _ => {
                assert!(op.count == 4 || u64::from(op.count) == left, "{op:?} of {left}");
                keys += u64::from(op.count);
                let KeyRef::Drawn(place) = op.key else { panic!("{op:?}") };
                let ids: Vec<u64> = window.ids(place).to_vec();
                assert_eq!(ids.len(), usize::from(op.count));
                for id in ids {
                    assert_eq!(window.take_check(op.key, id), Some(Check::Value { version: server[&id] }));
                }
                assert!(!window.has_next(), "its keys have the only place");
                window.record_outcome(op.key, HIT);
            }
        }
    }
    assert_eq!(sets + keys, 10_001);
    assert!(sets.abs_diff(1_000) <= 2, "{sets}");
}

#[test]
fn writes_under_way_are_of_different_objects() {
    let class = class("window:8,overwrite=0.5", "set=3,get=1", 1);
    let mut window = window_of(&class, (0, 1), 0.0);
    let mut under_way: Vec<Op> = Vec::new();
    for turn in 0..5_000usize {
        if window.has_next() && under_way.len() < 12 {
            let op = window.next_of(0, u64::MAX);
            assert!(
                op.kind == OpKind::Get
                    || under_way.iter().all(|other| other.kind == OpKind::Get || other.key != op.key)
            );
            under_way.push(op);
        } else {
            let op = under_way.swap_remove(turn * 7 % under_way.len());
            let stored = if turn % 11 == 0 { LOST } else { STORED };
            window.record_outcome(op.key, if op.kind == OpKind::Set { stored } else { HIT });
        }
        let sets = under_way.iter().filter(|op| op.kind == OpKind::Set).count() as u64;
        assert_eq!(window.writing, sets);
    }
}

#[test]
fn a_slot_is_a_word() {
    assert_eq!(size_of::<ObjectState>(), 8);
    let number = Distribution::NUMBERS_MAX - 1;
    let slot = ObjectState::new(number)
        .stored((1 << ObjectState::VERSION_BITS) - 1)
        .with(ObjectState::DOUBTFUL)
        .with(ObjectState::WRITING);
    assert_eq!((slot.number(), slot.version(), slot.next_version()), (number, (1 << 21) - 1, 0));
    assert!(slot.is(ObjectState::STORED) && !ObjectState::new(number).is(ObjectState::STORED));
    assert!(matches!("window:5".parse(), Ok(Popularity::Window(_))));
}

/// Whatever becomes of them, and with a schedule that says when, too: what is chosen depends on what became of the last.
#[test]
fn in_flight_ops_are_bounded_by_depth() {
    for (depth, mix, multiget) in [(1, "set=1,get=9", 1), (3, "set=1,get=1", 1), (2, "set=1,mget=1", 2)] {
        let class = Class { depth, ..class("window:64", mix, multiget) };
        let part = StreamPart { index: 0, of: 1 };
        let rng = Rng::for_stream(1, Purpose::Ops, 0, 0);
        let mut window = ClientWindow::new(&class, part, rng, depth as usize, 0.0).unwrap();
        for outcome in [STORED, LOST, STORED, STORED] {
            let mut ops = Vec::new();
            while window.has_next() {
                ops.push(window.next_of(0, u64::MAX));
            }
            assert_eq!(ops.len(), depth as usize, "{mix}");
            ops.iter().for_each(|op| window.record_outcome(op.key, outcome));
        }
    }
}
