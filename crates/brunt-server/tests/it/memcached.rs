//! The real memcached answers every shared transcript byte for byte as this server does. Where the two differ, the
//! reference server is wrong.

use crate::real::{Real, converse};
use crate::transcripts::{fresh, shared};
use crate::{Random, check_real, drain};
use std::io::{Read, Write};
use std::time::Duration;

#[test]
fn answers_match_memcached() {
    check_real(shared(), |sent| Some(Real::memcached(&[])?.converse(sent)));
}

/// Keys that meet often, words of the protocol and numbers among them, and the longest.
fn key(random: &mut Random) -> String {
    match random.below(12) {
        0 => "noreply".to_owned(),
        1 => "0".to_owned(),
        2 => "k".repeat(250),
        number => format!("k{number}"),
    }
}

/// Never, long ago, far away, and Unix times on both sides of now: nothing that a second more or less would change.
fn exptime(random: &mut Random) -> &'static str {
    let times = ["0", "0", "0", "100", "2592000", "2592001", "2147483647", "-1", "-2592001"];
    times[random.below(times.len() as u64) as usize]
}

/// Numbers stay below 2⁶³: from there memcached looks for a minus behind the end of the value, in what the memory held
/// before.
fn value(random: &mut Random) -> String {
    match random.below(4) {
        0 => random.below(120).to_string(),
        1 => {
            let numbers = ["4294967296", "18446744073709551616", " 7", "-1", "-0", "+5 x", "007"];
            format!("{:1$}", numbers[random.below(numbers.len() as u64) as usize], random.below(90) as usize)
        }
        2 => format!("get {}\r\n", random.below(10)),
        _ => "v".repeat(random.below(300) as usize),
    }
}

/// One command, right or wrong, of those that both servers have.
fn command(random: &mut Random) -> String {
    let verbs = ["set", "set", "set", "add", "replace", "append", "prepend", "cas"];
    let verb = verbs[random.below(verbs.len() as u64) as usize];
    let noreply = if random.below(4) == 0 { " noreply" } else { "" };
    let key_here = key(random);
    match random.below(25) {
        20.. => meta_command(random, &key_here),
        0..6 => {
            let (flags, exptime, value) = (random.next() as u32, exptime(random), value(random));
            let unique = if verb == "cas" { format!(" {}", random.below(2000)) } else { String::new() };
            format!("{verb} {key_here} {flags} {exptime} {}{unique}{noreply}\r\n{value}\r\n", value.len())
        }
        6..10 => {
            let verb = if random.below(2) == 0 { "get" } else { "gets" };
            let more: String = (0..random.below(5)).map(|_| format!(" {}", key(random))).collect();
            format!("{verb} {key_here}{more}\r\n")
        }
        10..14 => {
            let verb = if random.below(2) == 0 { "incr" } else { "decr" };
            let delta = if random.below(8) == 0 { random.next() >> 32 } else { random.below(200) };
            format!("{verb} {key_here} {delta}{noreply}\r\n")
        }
        14..16 => format!("delete {key_here}{noreply}\r\n"),
        16..18 => format!("touch {key_here} {}{noreply}\r\n", exptime(random)),
        18 => {
            let mistakes = [
                "get",
                "gat",
                "incr k5",
                "incr k5 x",
                "touch k5",
                "touch k5 y",
                "delete k5 7",
                "set k5 0 0",
                "nonsense",
                "set k5 0 0 1\r\nlong",
                "verbosity 1",
                "cas k5 0 0 1 x\r\ny",
                "append k5 0 0 -1",
                "decr k5 -1",
                "incr k5 -0",
                "",
            ];
            format!("{}\r\n", mistakes[random.below(mistakes.len() as u64) as usize])
        }
        _ if random.below(10) == 0 => format!("flush_all{noreply}\r\n"),
        _ => format!("gets {key_here}\r\n"),
    }
}

/// A meta command, with flags that tell nothing of the clock. (A touch of a missing key is a miss to memcached's get.)
fn meta_command(random: &mut Random, key: &str) -> String {
    let mut flags: String =
        [" k", " q", " Oab", " c"].iter().filter(|_| random.below(3) == 0).copied().collect();
    if random.below(6) == 0 {
        flags += &format!(" C{}", random.below(2000));
    }
    match random.below(8) {
        0..3 => {
            let more: String = [" v", " f"].iter().filter(|_| random.below(3) == 0).copied().collect();
            format!("mg {key}{flags}{more}\r\n")
        }
        3..5 => {
            let (value, exptime) = (value(random), exptime(random));
            let mode = ["", "", " MS", " ME", " MA", " MP", " MR", " MX"][random.below(8) as usize];
            format!("ms {key} {} T{exptime} F{}{flags}{mode}\r\n{value}\r\n", value.len(), random.below(9))
        }
        5 => format!("md {key}{flags}\r\n"),
        6 => {
            let more = [" v", " MD", " D70", " T0"];
            let more: String = more.iter().filter(|_| random.below(3) == 0).copied().collect();
            format!("ma {key}{flags}{more}\r\n")
        }
        _ => "mn\r\n".to_owned(),
    }
}

/// The counters that must agree, from the reply to `stats`.
fn counted(stats: &[u8]) -> Vec<String> {
    let prefixes = ["cmd_", "get_", "delete_", "incr_", "decr_", "cas_", "touch_", "total_items"];
    // What memcached counts of hits and misses beyond ours: expired and flushed ones apart, and meta commands.
    let theirs = ["get_expired", "get_flushed", "cmd_meta"];
    let lines = String::from_utf8_lossy(stats).into_owned();
    lines
        .lines()
        .filter_map(|line| line.strip_prefix("STAT "))
        .filter(|line| prefixes.iter().any(|prefix| line.starts_with(prefix)))
        .filter(|line| !theirs.iter().any(|name| line.starts_with(name)))
        .map(str::to_owned)
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .collect()
}

#[test]
fn random_scripts_match_memcached() {
    for seed in 1..=3 {
        let Some(memcached) = Real::memcached(&[]) else { return };
        let (mut ours, mut theirs) = (fresh(), memcached.connect());
        theirs.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut random = Random(seed);
        let mut history = Vec::new();
        for _ in 0..3000 {
            // One at a time: an incr of an item whose get is not yet on the wire writes a new item, which is not
            // padded, and whether it is depends on packets. What always answers comes behind, for those that do not.
            let mut sent = command(&mut random);
            sent.push_str("verbosity x\r\n");
            ours.receive(0, sent.as_bytes(), 0);
            let expected = drain(&mut ours, 0, 0);
            theirs.write_all(sent.as_bytes()).unwrap();
            let mut answered = vec![0; expected.len()];
            let read = theirs.read_exact(&mut answered);
            history.push(sent);
            assert!(
                read.is_ok() && answered == expected,
                "seed {seed}: {:?}\nours {:?}\ntheirs {:?}",
                &history[history.len().saturating_sub(5)..],
                String::from_utf8_lossy(&expected),
                String::from_utf8_lossy(&answered)
            );
        }
        ours.receive(0, b"stats\r\n", 0);
        let counted_here = counted(&drain(&mut ours, 0, 0));
        assert_eq!(counted_here, counted(&converse(&mut theirs, b"stats\r\n")), "seed {seed}");
        assert_eq!(counted_here.len(), 18);
    }
}
