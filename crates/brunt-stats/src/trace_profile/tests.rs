//! Profiles of traces whose content is known.

use super::*;
use brunt_plan::split_mix::output;

fn profile(cache_bytes: &[u64], top: usize, requests: &[RecordedRequest<'_>]) -> ProfileSummary {
    let mut profile = TraceProfile::new(cache_bytes, top);
    requests.iter().for_each(|request| profile.add(request));
    profile.summary()
}

fn get(key: &[u8], value_len: u64) -> RecordedRequest<'_> {
    RecordedRequest { value_len: Some(value_len), ..RecordedRequest::of(OpKind::Get, key) }
}

/// The seventh test of the specification of traces: a made-up trace whose misses of every size were counted by other programs.
#[test]
fn misses_of_an_lru_are_exact() {
    let expected = [
        (500, 54_123),
        (1_000, 48_653),
        (2_000, 38_740),
        (3_000, 30_294),
        (3_540, 26_331),
        (4_000, 23_220),
        (5_000, 17_412),
    ];
    let mut state = 1;
    let mut next = || {
        // splitmix64 of Steele, Lea and Flood.
        state = u64::wrapping_add(state, 0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    let ids: Vec<u64> = (0..60_000)
        .map(|_| {
            let drawn = next();
            ((drawn >> 32) % 10_000) * ((drawn & 0xffff_ffff) % 10_000) / 10_000
        })
        .collect();
    assert_eq!(ids[..7], [1171, 4497, 5004, 3530, 47, 3877, 2313]);
    let sizes: Vec<u64> = expected.iter().map(|(objects, _)| objects * 900).collect();
    let mut profile = TraceProfile::new(&sizes, 0);
    for id in ids {
        profile.add(&get(format!("key-{id:08}").as_bytes(), 900));
    }
    let summary = profile.summary();
    assert_eq!((summary.requests, summary.keys, summary.object_bytes), (60_000, 8_540, 8_540 * 900));
    for (cache, (objects, expected)) in summary.lru.into_iter().zip(expected) {
        assert_eq!((cache.hits + cache.misses, cache.misses), (60_000, expected), "{objects}");
    }
}

/// The same against a list that is searched from its end, with all operations and many sizes.
#[test]
fn an_lru_is_what_a_list_is() {
    let kinds =
        [OpKind::Get, OpKind::Get, OpKind::Gets, OpKind::Set, OpKind::Delete, OpKind::Replace, OpKind::Incr];
    let capacity = 1_000;
    let (mut lru, mut list, mut hits, mut misses) = (Lru::new(capacity), Vec::<(u32, u64)>::new(), 0, 0);
    for draw in 0..20_000 {
        let drawn = output(7, draw);
        let (id, kind) = ((drawn % 60) as u32, kinds[(drawn >> 8) as usize % kinds.len()]);
        let (bytes, repeats) = ((drawn >> 16) % 120 * (1 + u64::from(id == 7) * 20), 1 + (drawn >> 32) % 3);
        lru.ask(id, kind, bytes, repeats);
        for _ in 0..repeats {
            let at = list.iter().position(|(held, _)| *held == id);
            let old = at.map(|at| list.remove(at));
            if kind.is_retrieval() {
                *if old.is_some() { &mut hits } else { &mut misses } += 1;
            }
            let stays = match kind {
                OpKind::Delete => None,
                OpKind::Incr => old,
                OpKind::Replace => old.map(|_| (id, bytes)),
                _ => Some((id, bytes)),
            };
            if let Some(object) = stays.filter(|(_, bytes)| *bytes <= capacity) {
                list.push(object);
                while list.iter().map(|(_, bytes)| bytes).sum::<u64>() > capacity {
                    list.remove(0);
                }
            }
        }
    }
    assert_eq!(lru.counted, CacheHits { bytes: capacity, hits, misses });
    assert_eq!(lru.held, list.iter().map(|(_, bytes)| bytes).sum::<u64>());
}

/// A law of known exponent, drawn by bisection in its cumulative weights.
#[test]
fn the_exponent_of_a_zipf_law_is_found() {
    for (exponent, keys) in [(0.7, 2_000), (0.9, 100_000), (1.0, 100_000), (1.3, 100_000)] {
        let mut sum = 0.0;
        let cumulative: Vec<f64> = (1..=keys)
            .map(|rank| {
                sum += f64::from(rank).powf(-exponent);
                sum
            })
            .collect();
        let mut profile = TraceProfile::new(&[], 3);
        for draw in 0..1_000_000 {
            let drawn = output(3, draw) as f64 / 2_f64.powi(64) * sum;
            let rank = cumulative.partition_point(|below| *below <= drawn);
            profile.add(&get(rank.to_string().as_bytes(), 1));
        }
        let summary = profile.summary();
        let found = summary.zipf.unwrap().exponent;
        assert!((found / exponent - 1.0).abs() < 0.01, "{exponent}: {found}");
        let top: Vec<&str> = summary.top.iter().map(|hot| &hot.key[..]).collect();
        assert_eq!(top, ["0", "1", "2"], "{exponent}");
        for HotKeys { keys: number, requests } in &summary.hottest {
            let expected = cumulative[*number as usize - 1] / sum;
            let share = *requests as f64 / 1e6;
            assert!((share / expected - 1.0).abs() < 0.02 || *number > 1_000, "{number}: {share} {expected}");
        }
    }
    assert_eq!(profile(&[], 0, &[get(b"a", 1)]).zipf, None);
}

#[test]
fn rates_are_told_over_the_span() {
    let at = |time_ns: u64| RecordedRequest { time_ns: Some(time_ns as i64), ..get(b"k", 1) };
    let rate = |times: &[u64]| profile(&[], 0, &times.iter().map(|time| at(*time)).collect::<Vec<_>>()).rate;
    let whole = rate(&[0, 0, SECOND_NS, 2 * SECOND_NS, SECOND_NS, 2 * SECOND_NS]).unwrap();
    assert_eq!((whole.span_ns, whole.mean_per_s, whole.busiest_second), (3 * SECOND_NS, 2.0, 3));
    assert_eq!((whole.part_ns, whole.parts_per_s, whole.falling_times), (SECOND_NS, vec![2.0, 1.0, 3.0], 1));
    let early = profile(&[], 0, &[at(0), RecordedRequest { time_ns: Some(-1), ..at(0) }]).rate.unwrap();
    assert_eq!((early.falling_times, early.busiest_second), (1, 2));
    let fine = rate(&[0, 500_000_000, 1_600_000_000]).unwrap();
    assert_eq!((fine.span_ns, fine.mean_per_s, fine.parts_per_s.len()), (1_600_000_000, 1.875, 32));
    assert_eq!((fine.part_ns, fine.parts_per_s[0], fine.parts_per_s[31]), (50_000_000, 20.0, 20.0));
    // A week, of which every second has as many: bins become longer many times.
    let mut long = TraceProfile::new(&[], 0);
    for second in 0..604_800 {
        long.add(&RecordedRequest { repeats: 3, ..at(second * SECOND_NS) });
    }
    let long = long.summary().rate.unwrap();
    assert_eq!((long.mean_per_s, long.busiest_second, long.span_ns), (3.0, 3, 604_800 * SECOND_NS));
    assert!(
        long.parts_per_s.len() <= PARTS_MAX
            && long.parts_per_s.iter().all(|rate| (rate / 3.0 - 1.0).abs() < 0.03)
    );
    assert_eq!(profile(&[], 0, &[get(b"k", 1)]).rate, None);
    assert_eq!(rate(&[0]).unwrap().mean_per_s, 1.0);
}

#[test]
fn sizes_are_told_to_a_thousandth_whatever_they_are() {
    let mut sizes = Histogram::new();
    (1..=100_000).for_each(|size| sizes.record(size));
    let told = SizeSummary::of(&sizes, 10).unwrap();
    assert_eq!((told.count, told.max, told.mean), (100_000, 1_000_000, 500_005.0));
    for (exact, told) in [(500_000, told.p50), (900_000, told.p90), (990_000, told.p99), (999_000, told.p999)]
    {
        assert!(told >= exact && told - exact <= exact / 1000, "{exact}: {told}");
    }
    let mut extreme = Histogram::new();
    extreme.record_many(u64::MAX, 2);
    let told = SizeSummary::of(&extreme, 2).unwrap();
    assert_eq!((told.p50, told.max, told.count), (u64::MAX, u64::MAX, 2));
    assert_eq!(SizeSummary::of(&Histogram::new(), 1), None);
}

#[test]
fn keys_keep_the_size_that_was_told_last() {
    let request = |kind, key: &'static [u8], value_len, repeats| RecordedRequest {
        value_len,
        key_len: Some(1),
        repeats,
        ttl_ns: Some(SECOND_NS),
        ..RecordedRequest::of(kind, key)
    };
    let summary = profile(
        &[12],
        2,
        &[
            request(OpKind::Get, b"a", None, 2),
            request(OpKind::Set, b"a", Some(10), 1),
            request(OpKind::Get, b"a", None, 1),
            request(OpKind::Append, b"a", Some(5), 1),
            request(OpKind::Get, b"b", None, 1),
            request(OpKind::Get, b"a", Some(3), 1),
            request(OpKind::Delete, b"c", None, 1),
        ],
    );
    assert_eq!((summary.keys, summary.keys_once, summary.keys_without_size), (3, 2, 2));
    assert_eq!((summary.object_bytes, summary.retrievals_without_value, summary.stores), (4, 4, 2));
    let expected = [("append", 1), ("delete", 1), ("get", 5), ("set", 1)];
    assert!(summary.operations.into_iter().eq(expected));
    // The first get misses, its repeat hits; so does every other but that of b.
    assert_eq!(summary.lru, [CacheHits { bytes: 12, hits: 3, misses: 2 }]);
    let second = SECOND_NS;
    let [p50, p90, p99, p999, max] = [second; 5];
    assert_eq!(summary.ttl_ns, Some(SizeSummary { count: 2, mean: 1e9, p50, p90, p99, p999, max }));
    assert_eq!(summary.hottest, [HotKeys { keys: 1, requests: 6 }]);
    assert_eq!((&summary.top[0].key[..], summary.top[0].requests, summary.top.len()), ("a", 6, 2));
}
