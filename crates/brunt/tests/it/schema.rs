//! Live results against docs/*.schema.json: every key is there, with a value that it may have.
//!
//! Not what the keys mean, and not made-up runs, which have everything (`brunt-report/src/tests/schema.rs`).

#[path = "../../../brunt-report/src/tests/schema/reader.rs"]
pub(crate) mod reader;

use crate::fleet::Agent;
use crate::server::{Directory, Server, beside_others, brunt};
use serde_json::Value;

/// Holds a result against its schema; how many runs it has.
pub(crate) fn check_result(name: &str, text: &str) -> usize {
    let result: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(reader::errors(&result), Vec::<String>::new(), "{name}");
    result["runs"].as_array().map_or(1, Vec::len)
}

/// Runs this, which makes so many runs; a search more, where the host keeps the client from its rate.
fn check(name: &str, words: &[&str], runs: usize) {
    let output =
        brunt(&[words, &["-o", "json:-", "--progress=none", "--allow=BROKEN,LOAD,CLIENT,DATA"]].concat())
            .output()
            .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.stdout.is_empty(), "{name}: {said}");
    let found = check_result(name, &String::from_utf8(output.stdout).unwrap());
    assert!(found == runs || words[0] == "search" && found > runs, "{name}: {found}: {said}");
}

#[test]
fn results_are_as_the_schema_says() {
    let _beside = beside_others();
    let directory = Directory::new();
    let plan = directory.join("plan.toml");
    let classes = "keys = 300\nwait = 'sleep'\n[[class]]\nname = 'open'\nrate = '2k'\nmix = 'get=8,set=1,mget=1'\n\
                   [[class]]\nname = 'closed'\nthink = '2ms'\n";
    std::fs::write(&plan, classes).unwrap();
    let server = Server::reference(&[]);
    let base = ["-s", &server.address, "-t", "400ms", "--warmup", "100ms"];
    let short = [&base[..], &["--keys", "300", "--wait", "sleep"]].concat();
    let with = |words: &[&'static str]| [&["run"], words, &short].concat();
    let plain = [
        "run",
        "-n",
        "2000",
        "--keys",
        "300",
        "--think",
        "2ms",
        "--warmup",
        "auto",
        "--set",
        "meter=request-size",
    ];
    check("plain", &plain, 1);
    check(
        "strict",
        &with(&[
            "--think",
            "2ms",
            "--strict",
            "--verify",
            "--set",
            "timestamps=kernel",
            "--assert",
            "p50 < 1ns",
        ]),
        1,
    );
    check("several classes", &[&["run", plan.to_str().unwrap()], &base[..]].concat(), 1);
    check("until", &with(&["-r", "3k", "--until", "p50=20%,max=2s"]), 1);
    check("repeated", &with(&["--think", "2ms", "--repeat", "2"]), 2);
    check("scan", &[&["scan", "--over", "rate=1k,2k"], &short[..]].concat(), 2);
    check(
        "search",
        &[&["search", "--assert", "p99 < 1s", "--from", "1k", "--to", "1k"], &short[..]].concat(),
        1,
    );
    let faulty = Server::reference(&["--reset-every=500", "--script-after=1000"]);
    check(
        "resets",
        &["run", "-s", &faulty.address, "--keys", "100", "-n", "5000", "-c", "3", "--warmup", "0s"],
        1,
    );
    let agent = Agent::wait(&["-T", "1"]);
    check("agent", &[&["run", "--agent", &agent.address, "--think", "2ms"], &short[..]].concat(), 1);
}
