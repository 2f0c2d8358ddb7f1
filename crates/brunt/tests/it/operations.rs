//! Every operation against a real memcached: what each came to is what the server counted.

use crate::measured::Measured;
use crate::server::{Server, beside_others};

/// All thirteen kinds, so weighted that every outcome of every kind is met.
const EVERY_KIND: &str =
    "get=20,gets=8,mget=4,set=8,add=4,replace=4,append=2,prepend=2,cas=6,incr=4,decr=4,delete=3,touch=4";

/// A million of them: hits, misses and refusals of every kind equal the server's own statistics, and so do all bytes.
///
/// memcached counts a store, of whatever kind, once it has taken in the value, stored or not; a retrieval by its keys.
#[test]
fn a_million_mixed_operations_are_counted_alike() {
    let _beside = beside_others();
    let Some(server) = Server::memcached(&["-m", "512"]) else { return };
    let (before, told_bytes) = server.statistics_and_len();
    let measured =
        Measured::run(
            &server.address,
            &[
                &[
                    "-n",
                    "1M",
                    "--warmup",
                    "0s",
                    "-c",
                    "16",
                    "-T",
                    "2",
                    "-d",
                    "8",
                    "--popularity",
                    "zipf:0.99",
                ][..],
                &["--keys", "20000", "--value-size", "uniform:20,400", "--mix", EVERY_KIND, "--seed", "42"],
            ]
            .concat(),
        );
    let after = server.statistics();
    assert_eq!(measured.exit, 0, "{}", measured.text);
    measured.check_books();
    let ended = ["scheduled", "completed"].map(|key| measured.count(&format!("requests.{key}")));
    assert_eq!(ended, [1_000_000; 2], "{}", measured.text);

    let reply = |op: &str, reply: &str| measured.count_or_0(&format!("ops.{op}.requests.replies.{reply}"));
    let sent = |op: &str| measured.over_phases(&format!("ops.{op}"));
    let stores = ["set", "add", "replace", "append", "prepend", "cas"].map(sent).iter().sum();
    // What the server counts → what we say.
    let table = [
        ("cmd_get", measured.over_phases("keys.asked")),
        ("get_hits", measured.over_phases("keys.hit")),
        ("get_misses", measured.over_phases("keys.miss")),
        ("cmd_set", stores),
        ("cas_hits", reply("cas", "stored")),
        ("cas_badval", reply("cas", "exists")),
        ("cas_misses", reply("cas", "not_found")),
        ("incr_hits", reply("incr", "number")),
        ("incr_misses", reply("incr", "not_found")),
        ("decr_hits", reply("decr", "number")),
        ("decr_misses", reply("decr", "not_found")),
        ("delete_hits", reply("delete", "deleted")),
        ("delete_misses", reply("delete", "not_found")),
        ("cmd_touch", sent("touch")),
        ("touch_hits", reply("touch", "touched")),
        ("touch_misses", reply("touch", "not_found")),
        // Each question for the statistics is 7 bytes, and the first answer went out behind what it says.
        ("bytes_read", measured.over_phases("bytes.tx") + 7),
        ("bytes_written", measured.over_phases("bytes.rx") + told_bytes),
    ];
    for (name, ours) in table {
        assert_eq!(after[name] - before[name], ours, "{name}\n{}", measured.text);
    }
    // Nothing above holds because nothing happened. Only counters are never missing: nobody deletes them.
    let unmet = table.iter().filter(|(_, ours)| *ours == 0).map(|(name, _)| *name).collect::<Vec<_>>();
    assert_eq!(unmet, ["incr_misses", "decr_misses"]);
    for (op, replies) in [("add", "not_stored"), ("replace", "not_stored"), ("append", "not_stored")] {
        assert!(reply(op, replies) > 0 && reply(op, "stored") > 0, "{op}");
    }
}
