//! Slots against the specification of Redis Cluster and against a server; maps as redis-server 7.0.15 writes them.

use super::*;
use crate::resp::reply::WholeReply;

#[test]
fn crc16_matches_the_specification() {
    // The check value of the specification's appendix, and of every catalogue of checksums.
    assert_eq!(crc16(b"123456789"), 0x31c3);
    assert_eq!(crc16(b""), 0);
}

#[test]
fn slots_match_the_server() {
    // As CLUSTER KEYSLOT says; the keys with braces are those of the specification.
    let table: [(&[u8], u16); 15] = [
        (b"123456789", 12_739),
        (b"foo", 12_182),
        (b"bar", 5_061),
        (b"hello", 866),
        (b"", 0),
        (b"{user1000}.following", 3_443),
        (b"{user1000}.followers", 3_443),
        (b"user1000", 3_443),
        (b"foo{}{bar}", 8_363),
        (b"foo{{bar}}zap", 4_015),
        (b"{bar", 4_015),
        (b"foo{bar}{zap}", 5_061),
        (b"}foo{bar}", 5_061),
        (b"000000000000000000000000012345", 2_014),
        (b"\xff\x00\r\n", 7_349),
    ];
    for (key, slot) in table {
        assert_eq!(slot_of(key), slot, "{}", key.escape_ascii());
    }
}

#[test]
fn eight_byte_crc_matches_bitwise_crc() {
    let bytes: Vec<u8> = (0..200u32).map(|at| (at * at % 251) as u8).collect();
    for len in 0..bytes.len() {
        let plain = bytes[..len].iter().fold(0u16, |crc, byte| {
            (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| {
                let shifted = u32::from(crc) << 1;
                (if shifted > 0xffff { shifted ^ 0x1021 } else { shifted }) as u16
            })
        });
        assert_eq!(crc16(&bytes[..len]), plain, "{len} bytes");
    }
}

/// A reply with `|` for line ends.
fn gathered(reply: &str) -> WholeReply {
    let mut whole = WholeReply::default();
    assert_eq!(whole.take(reply.replace('|', "\r\n").as_bytes()), Ok(true), "{reply}");
    whole
}

/// What a map says, as text.
fn shown(map: Result<SlotMap, SlotMapError>) -> String {
    let map = match map {
        Ok(map) => map,
        Err(why) => return why.to_string(),
    };
    let range = |range: &SlotRange| {
        let node = &map.nodes()[usize::from(range.node)];
        format!("{}-{} {} port {}", range.first, range.last, node.host, node.port)
    };
    map.ranges.iter().map(range).collect::<Vec<_>>().join(", ")
}

fn of_slots(reply: &str) -> String {
    shown(SlotMap::of_slots(&gathered(reply).value().expect("it is whole"), "asked"))
}

fn of_shards(reply: &str, by_tls: bool) -> String {
    shown(SlotMap::of_shards(&gathered(reply).value().expect("it is whole"), "asked", by_tls))
}

const THREE_NODES: &str =
    "0-5460 127.0.0.1 port 22401, 5461-10922 127.0.0.1 port 22402, 10923-16383 127.0.0.1 port 22403";

#[test]
fn maps_of_slots() {
    let node = |host: &str, port: u16, rest: &str| {
        format!("*4|{host}|:{port}|$40|4041e49041f8fdca44a58f7eca075f6dabf05ef0|{rest}|")
    };
    let three = |host: &str, rest: &str| {
        format!(
            "*3|*3|:0|:5460|{}*3|:5461|:10922|{}*3|:10923|:16383|{}",
            node(host, 22401, rest),
            node(host, 22402, rest),
            node(host, 22403, rest)
        )
    };
    // Both versions; then a cluster told to leave hosts out, and one that is to give host names and whose nodes have none.
    assert_eq!(of_slots(&three("$9|127.0.0.1", "*0")), THREE_NODES);
    assert_eq!(of_slots(&three("$9|127.0.0.1", "%0")), THREE_NODES);
    let asked = THREE_NODES.replace("127.0.0.1", "asked");
    for host in ["$-1", "_", "$0|"] {
        assert_eq!(of_slots(&three(host, "*2|$2|ip|$9|127.0.0.1")), asked, "{host}");
    }
    assert_eq!(of_slots(&three("$1|?", "*2|$2|ip|$9|127.0.0.1")), THREE_NODES);
    assert_eq!(of_slots(&three("$1|?", "*0")), asked);
    // Before Redis 4 a node was two words, and before 7 three. Replicas are behind the node that they copy.
    let old = "*2|*4|:100|:200|*2|$3|::1|:1|*2|$3|::2|:2|*3|:5|:5|*3|$3|::1|:1|$2|id|";
    assert_eq!(of_slots(old), "5-5 ::1 port 1, 100-200 ::1 port 1");
}

#[test]
fn maps_of_shards() {
    let node = |endpoint: &str, port: u16, tls_port: u16, role: &str, health: &str| {
        let role = format!("${}|{role}|", role.len());
        let health = format!("${}|{health}|", health.len());
        format!(
            "*16|$2|id|$2|id|$4|port|:{port}|$8|tls-port|:{tls_port}|$2|ip|$9|127.0.0.1|$8|endpoint|{endpoint}|\
             $4|role|{role}$18|replication-offset|:0|$6|health|{health}"
        )
    };
    let shard = |slots: &str, nodes: &[String]| {
        format!("*4|$5|slots|{slots}$5|nodes|*{}|{}", nodes.len(), nodes.concat())
    };
    let local = "$9|127.0.0.1";
    let master = |port: u16| node(local, port, port + 10_000, "master", "online");
    let three = format!(
        "*3|{}{}{}",
        shard("*2|:10923|:16383|", &[master(22403)]),
        shard("*2|:0|:5460|", &[master(22401)]),
        shard("*2|:5461|:10922|", &[master(22402)])
    );
    assert_eq!(of_shards(&three, false), THREE_NODES);
    assert_eq!(of_shards(&three.replace("*16", "%8").replace("*4", "%2"), false), THREE_NODES);
    assert_eq!(of_shards(&three, true), THREE_NODES.replace(" 22", " 32"));
    let with_endpoint =
        |endpoint| three.replace("$8|endpoint|$9|127.0.0.1", &format!("$8|endpoint|{endpoint}"));
    for endpoint in ["$0|", "$-1", "_"] {
        let asked = THREE_NODES.replace("127.0.0.1", "asked");
        assert_eq!(of_shards(&with_endpoint(endpoint), false), asked, "{endpoint}");
    }
    assert_eq!(of_shards(&with_endpoint("$1|?"), false), THREE_NODES);

    // A failed node beside the one that took over; a replica before its master; several ranges; a shard without slots.
    let failed = node(local, 1, 1, "master", "fail");
    let replica = node(local, 2, 2, "replica", "online");
    let taken = shard("*4|:0|:9|:20|:29|", &[failed.clone(), replica.clone(), master(3)]);
    let empty = shard("*0|", &[master(4)]);
    let headless = shard("*2|:40|:49|", &[replica]);
    let down = shard("*2|:50|:59|", &[failed]);
    let reply = format!("*4|{taken}{empty}{headless}{down}");
    assert_eq!(
        of_shards(&reply, false),
        "0-9 127.0.0.1 port 3, 20-29 127.0.0.1 port 3, 50-59 127.0.0.1 port 1"
    );
    // A node that is there may be given slots, and one that is not may not.
    let gone = shard("*0|", &[node(local, 6, 6, "master", "fail")]);
    let reply = format!("*3|{taken}{empty}{gone}");
    let map = SlotMap::of_shards(&gathered(&reply).value().expect("it is whole"), "asked", false);
    let map = map.expect("a map");
    let idle: Vec<u16> = map.idle().map(|node| node.port).collect();
    assert_eq!((map.nodes().len(), idle), (2, vec![4]));
}

#[test]
fn slots_resolve_to_nodes() {
    let reply = "*2|*3|:100|:200|*2|$1|b|:2|*3|:5|:5|*2|$1|a|:1|";
    let map = SlotMap::of_slots(&gathered(reply).value().expect("it is whole"), "asked").expect("a map");
    let names: Vec<&str> = map.nodes().iter().map(|node| node.host.as_str()).collect();
    assert_eq!(names, ["b", "a"]);
    let table = [
        (0, None),
        (4, None),
        (5, Some(1)),
        (6, None),
        (99, None),
        (100, Some(0)),
        (200, Some(0)),
        (201, None),
        (SLOTS - 1, None),
    ];
    for (slot, node) in table {
        assert_eq!(map.node_of(slot), node, "{slot}");
    }
    assert_eq!(map.uncovered(), SLOTS - 102);
}

#[test]
fn replies_that_are_no_map() {
    let table = [
        (
            "-ERR This instance has cluster support disabled|",
            "it answers \"ERR This instance has cluster support disabled\"",
        ),
        ("+OK|", "its reply is built otherwise than a map of slots"),
        ("*0|", "it knows of no node that has slots"),
        ("*1|:1|", "its reply is built otherwise than a map of slots"),
        ("*1|*2|:0|:1|", "its reply is built otherwise than a map of slots"),
        ("*1|*3|:0|:1|*1|$1|a|", "its reply is built otherwise than a map of slots"),
        ("*1|*3|:0|:16384|*2|$1|a|:1|", "its reply is built otherwise than a map of slots"),
        ("*1|*3|:-1|:1|*2|$1|a|:1|", "its reply is built otherwise than a map of slots"),
        ("*1|*3|:2|:1|*2|$1|a|:1|", "its reply is built otherwise than a map of slots"),
        ("*1|*3|:0|:1|*2|$1|a|:0|", "its reply is built otherwise than a map of slots"),
        ("*1|*3|:0|:1|*2|:1|:1|", "its reply is built otherwise than a map of slots"),
        ("*2|*3|:0|:5|*2|$1|a|:1|*3|:5|:9|*2|$1|b|:1|", "it says of two nodes that they have slot 5"),
    ];
    for (reply, expected) in table {
        assert_eq!(of_slots(reply), expected, "{reply}");
    }
    let shards = [
        (
            "-ERR Unknown subcommand or wrong number of arguments for 'SHARDS'. Try CLUSTER HELP.|",
            "Try CLUSTER HELP.",
        ),
        ("*1|*4|$5|slots|*1|:1|$5|nodes|*1|*4|$4|port|:1|$4|role|$6|master|", "otherwise than a map"),
        ("*1|*4|$5|slots|*2|:1|:1|$5|nodes|*1|*2|$4|role|$6|master|", "otherwise than a map"),
        ("*1|*2|$5|slots|*2|:1|:1|", "otherwise than a map"),
        ("*0|", "no node that has slots"),
    ];
    for (reply, expected) in shards {
        assert!(of_shards(reply, false).contains(expected), "{reply}: {}", of_shards(reply, false));
    }
}
