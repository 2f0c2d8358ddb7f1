//! `brunt compare` of real results and of live servers: which runs are compared, and when nothing is concluded.
//!
//! Not its statistics, which have tests of their own. A host that loses its processors for whole runs may double a median, so nothing is
//! asserted of servers that are the same.

use crate::measured::{ALL, Measured};
use crate::report::change_record;
use crate::schema::reader::errors;
use crate::server::{Directory, Ended, Server, undisturbed};
use serde_json::Value;

/// One connection: the service time is nearly all of what there is to measure. No process has to be woken, so little of it may be the client's.
pub(crate) const LOAD: &str = "-c 1 -t 300ms --warmup 0 --keys 50 --mix get --wait spin";

/// As many requests as a test needs that looks at no times.
pub(crate) const COUNTED: &str = "-c 1 -n 150 --warmup 0 --keys 50 --mix get";

/// Measures into a file.
pub(crate) fn measured(
    directory: &Directory,
    name: &str,
    server: &Server,
    load: &str,
    flags: &str,
) -> String {
    let path = directory.path(name);
    let line = format!("run -q --allow=BROKEN,LOAD,CLIENT,DATA -s {server} -o {path} {load} {flags}");
    Ended::from(undisturbed(&line)).is(0, &[]);
    path
}

/// Every run stores its few keys first, at this pace from the second one on.
pub(crate) fn of_service(us: &str) -> Server {
    Server::reference(&format!("--service fixed:{us} --script-after 50"))
}

/// A comparison, at its end.
pub(crate) fn compared(arguments: &str) -> Measured {
    let compared = Measured::of(undisturbed(&format!("compare -o json:- {arguments}")));
    let json = &compared.json;
    assert!(json.is_null() || errors(json).is_empty(), "{:?}", errors(json));
    compared
}

/// The same of eight runs of each of two live servers, of which this is asserted.
pub(crate) fn live(a: &Server, b: &Server, load: &str, assert: &str, more: &str) -> Measured {
    let flags = format!("--repeat 8 --seed 7 --allow={ALL} --assert '{assert}'");
    compared(&format!("--live {a} {b} {load} {flags} {more}"))
}

pub(crate) fn quantity<'a>(json: &'a Value, name: &str) -> &'a Value {
    let all = json["quantities"].as_array().unwrap();
    all.iter().find(|held| held["quantity"] == name).unwrap()
}

/// A server that is gone after its first runs: what was measured is reported before the error.
#[test]
fn stored_results_are_compared() {
    // Counted from its first request; from then on it refuses every client.
    let (one, gone) = (of_service("500"), Server::reference("--outage 1500ms:600s"));
    let compared = compared(&format!("--repeat 20 --timeout 1s --allow={ALL} --live {one} {gone} {LOAD}"));
    let (json, text) = (&compared.json, &compared.text);
    assert_eq!((compared.exit, &json["interrupted"]), (5, &true.into()));
    assert!(!json["b"].as_array().unwrap().is_empty());
    let failure = json["failure"].as_str().unwrap_or_default();
    assert!(failure.contains(&gone.address), "{failure}");
    // Lines are broken between words.
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(&format!("ENDED EARLY: not all of the runs were made: {failure} ")));
}

#[test]
fn live_servers_take_turns() {
    let one = of_service("300");
    let compared = live(&one, &one, COUNTED, "p50 <= +100000%", "--strict");
    let json = &compared.json;
    assert_eq!((compared.exit, &json["assertions"][0]["status"]), (0, &"holds".into()));
    let of_side = |side: &str, pointer: &str| -> Vec<String> {
        let runs = json[side].as_array().unwrap().iter();
        runs.map(|run| run.pointer(pointer).unwrap().to_string()).collect()
    };
    let turns = ["turn 1", "turn 4", "turn 6", "turn 7", "turn 10", "turn 11", "turn 13", "turn 16"];
    assert_eq!(of_side("a", "/source"), turns.map(|turn| format!("\"{turn}\"")));
    // Both runs of a pair have one seed.
    let seeds: Vec<String> = (7..15).map(|seed| seed.to_string()).collect();
    assert_eq!(
        (of_side("a", "/result/plan/seed"), of_side("b", "/result/plan/seed")),
        (seeds.clone(), seeds)
    );
    assert_eq!(json["plan_differences"].as_array().map(Vec::len), Some(0));
}

/// A URL says what is spoken and where; both sides speak the same.
#[test]
fn live_servers_are_named_by_urls() {
    let (one, other) = (of_service("100"), of_service("100"));
    let url = |server: &Server, scheme: &str, rest: &str| format!("{scheme}://{server}{rest}");
    let live = |a: &str, b: &str| compared(&format!("--repeat 2 --allow={ALL} --live {a} {b} {COUNTED}"));
    let by_resp = live(&url(&one, "redis", "/3"), &url(&other, "redis", "/3"));
    let json = &by_resp.json;
    assert_eq!((by_resp.exit, &json["design"]), (0, &"pairs".into()));
    assert!(by_resp.text.contains("note: 4 runs, each as long as its requests take\n"));
    let seeds = ["a", "b"].map(|side| {
        let runs = json[side].as_array().unwrap();
        runs.iter().map(|run| run["result"]["plan"]["seed"].as_u64().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(seeds[0], seeds[1], "the runs of a pair share their seed");
    for (side, server) in [("a", &one), ("b", &other)] {
        assert_eq!(json[side][0]["result"]["plan"]["protocol"], "resp2");
        assert_eq!(json[side][0]["result"]["plan"]["database"], 3);
        let runs = json[side].as_array().unwrap();
        assert!(runs.len() == 2 && runs.iter().all(|run| run["result"]["host"]["server"] == server.address));
    }
    let by_text = live(&url(&one, "memcached", ""), &url(&other, "memcached", ""));
    let protocol = &by_text.json["a"][0]["result"]["plan"]["protocol"];
    assert_eq!((by_text.exit, protocol), (0, &"memcached-text".into()));
    // Two that are not spoken to alike are no pair.
    let refused = live(&url(&one, "redis", ""), &url(&other, "memcached", ""));
    assert!(refused.exit == 2 && !refused.text.is_empty());
}

#[test]
fn incomparable_results_are_rejected() {
    let (directory, server) = (Directory::new(), of_service("100"));
    let one = measured(&directory, "one.json", &server, COUNTED, "");
    let other = measured(&directory, "other.json", &server, COUNTED, "--depth 2 --timeout 5s");
    let refused = |results: &str, words: &[&str]| {
        let compared = compared(results);
        assert_eq!(compared.exit, 2);
        words.iter().for_each(|word| assert!(compared.text.contains(word), "{word}"));
    };
    refused(
        &format!("{one} {other}"),
        &["depth: A has 1, B has 2", "timeout: A has 10s, B has 5s", "--allow-different-plans"],
    );
    let allowed = compared(&format!("--allow-different-plans {one} {other}"));
    assert_eq!(allowed.exit, 0);
    let differences = allowed.json["plan_differences"].as_array().unwrap();
    assert!(differences.iter().any(|held| held["key"] == "depth"));

    let broken = directory.with("broken.json", &directory.text("one.json")[..200]);
    refused(&format!("{one} {broken}"), &[&broken, "no JSON"]);
    for judged in ["--strict", "--allow LOAD"] {
        refused(&format!("{judged} {one} {other}"), &["judged when they were measured"]);
    }
    refused(&format!("--a {one} {one} --b {one}"), &["hold the same run"]);

    let mut value: Value = serde_json::from_str(&directory.text("one.json")).unwrap();
    let judged = [("/run/host/clock/backwards", 1.into()), ("/judgement/allowed", serde_json::json!([]))];
    change_record(&mut value, &judged);
    value["plan"]["seed"] = 1.into();
    let invalid = directory.with("invalid.json", &value.to_string());
    let half = compared(&format!("{one} {invalid}"));
    assert!(half.text.contains("INVALID: 1 of 2 runs are INVALID, so nothing is concluded"));
    assert_eq!((half.exit, &half.json["has_conclusion"]), (3, &false.into()));
    // Up to a third of the runs may be.
    let more = measured(&directory, "more.json", &server, COUNTED, "");
    let third = compared(&format!("--a {one} --b {more} {invalid}"));
    assert_eq!((third.exit, &third.json["has_conclusion"]), (0, &true.into()));
    refused(&format!("{one} {one}"), &["hold the same run"]);
}
