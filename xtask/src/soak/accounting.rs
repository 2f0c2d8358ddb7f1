//! The accounting of a run beside the server's own counters: every operation, by kind, to the last one.
//!
//! Invariant: nothing is compared with itself. One side is brunt's result, the other what the server counted meanwhile.

use crate::process::Counters;
use anyhow::{Context, ensure};
use serde_json::Value;

/// Kinds of operations, with weights.
pub(super) const MIX: &str = "get=60,mget=10,set=15,delete=4,incr=6,touch=5";
const KINDS: [&str; 6] = ["get", "mget", "set", "delete", "incr", "touch"];

/// Compares a result with what the server has counted since `before`, and prints both.
///
/// # Errors
/// They differ, operations did not end well, a kind is missing, or the exit code is not the one of the status.
pub(super) fn check(
    result: &Value,
    before: &Counters,
    after: &Counters,
    exit: Option<i32>,
) -> anyhow::Result<()> {
    println!("{:<28} {:>14} {:>14}", "counted by", "brunt", "the server");
    let rows = rows(result, before, after)?;
    for (name, ours, servers) in &rows {
        println!("{name:<28} {ours:>14} {servers:>14}{}", if ours == servers { "" } else { "  DIFFERS" });
    }
    ensure!(rows.iter().all(|(_, ours, servers)| ours == servers), "the accounting differs");
    let [sent, completed] = ["requests.sent", "requests.completed"].map(|path| over_phases(result, path));
    println!("operations in all: {sent}");
    ensure!(sent == completed, "{sent} operations were sent, and {completed} completed");
    for kind in KINDS {
        ensure!(over_phases(result, &format!("ops.{kind}")) > 0, "no {kind} was sent");
    }
    check_status(result, exit)
}

/// The number is that of the status, and what speaks against the run speaks of the host.
fn check_status(result: &Value, exit: Option<i32>) -> anyhow::Result<()> {
    let checks = result["status"]["checks"].as_array().context("a result has checks")?;
    let invalid = checks.iter().filter(|check| check["status"] == "invalid");
    let invalid: Vec<&str> = invalid.filter_map(|check| check["id"].as_str()).collect();
    let expected = if invalid.is_empty() { 0 } else { 3 };
    println!("exit code {exit:?}; checks that say INVALID: {invalid:?}");
    ensure!(exit == Some(expected), "expected exit code {expected}");
    ensure!(!invalid.contains(&"BROKEN"), "the run itself says that it is wrong");
    Ok(())
}

/// What is counted on both sides: its name, brunt's number, the server's.
fn rows(
    result: &Value,
    before: &Counters,
    after: &Counters,
) -> anyhow::Result<Vec<(&'static str, u64, u64)>> {
    // The server's counters, whose sum it is, and where a result has it.
    let table: [(&'static str, &[&str], &str); 8] = [
        ("keys asked for", &["cmd_get"], "keys.requested"),
        ("keys found", &["get_hits"], "keys.hit"),
        ("keys missed", &["get_misses"], "keys.miss"),
        ("set", &["cmd_set"], "ops.set"),
        ("incr", &["incr_hits", "incr_misses"], "ops.incr"),
        ("delete", &["delete_hits", "delete_misses"], "ops.delete"),
        ("touch", &["cmd_touch"], "ops.touch"),
        ("touch, by its outcomes", &["touch_hits", "touch_misses"], "ops.touch"),
    ];
    let mut rows = Vec::new();
    for (name, of_server, path) in table {
        let mut servers = 0;
        for counter in of_server {
            let of = |counters: &Counters| {
                counters.get(*counter).copied().with_context(|| format!("the server has no {counter}"))
            };
            servers += of(after)? - of(before)?;
        }
        rows.push((name, over_phases(result, path), servers));
    }
    Ok(rows)
}

/// Sums an integer over all phases, the preload among them.
fn over_phases(result: &Value, path: &str) -> u64 {
    let of = |phase| path.split('.').fold(phase, |value: &Value, key| &value[key]).as_u64().unwrap_or(0);
    result["counts"]["phases"].as_object().map_or(0, |phases| phases.values().map(of).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn counted(gets: u64) -> Counters {
        let table = [
            ("cmd_get", gets),
            ("get_hits", gets - 1),
            ("get_misses", 1),
            ("cmd_set", 7),
            ("incr_hits", 2),
            ("incr_misses", 1),
            ("delete_hits", 1),
            ("delete_misses", 1),
            ("cmd_touch", 2),
            ("touch_hits", 1),
            ("touch_misses", 1),
        ];
        table.map(|(name, count)| (name.to_owned(), count)).into()
    }

    #[test]
    fn accounting_that_is_off_by_one_fails() {
        let ops = json!({ "get": 3, "mget": 1, "set": 3, "delete": 2, "incr": 3, "touch": 2 });
        let keys = json!({ "requested": 9, "hit": 8, "miss": 1 });
        let result = |completed: u64, status: &str| {
            json!({
                "counts": { "phases": {
                    "preload": { "ops": { "set": 4 }, "requests": { "sent": 4, "completed": 4 } },
                    "measure": { "ops": ops, "keys": keys, "requests": { "sent": 14, "completed": completed } },
                } },
                "status": { "checks": [{ "id": "LOAD", "status": status }, { "id": "BROKEN", "status": "ok" }] },
            })
        };
        let before = counted(1).into_keys().map(|name| (name, 0)).collect();
        // (result, gets of the server, exit code, what is wrong)
        let table = [
            (result(14, "ok"), 9, Some(0), ""),
            (result(14, "invalid"), 9, Some(3), ""),
            (result(14, "ok"), 10, Some(0), "the accounting differs"),
            (result(13, "ok"), 9, Some(0), "18 operations were sent, and 17 completed"),
            (result(14, "ok"), 9, Some(3), "expected exit code 0"),
            (result(14, "invalid"), 9, None, "expected exit code 3"),
        ];
        for (result, gets, exit, wrong) in table {
            let said = check(&result, &before, &counted(gets), exit).err();
            assert_eq!(said.map(|error| error.to_string()).unwrap_or_default(), wrong);
        }
    }
}
