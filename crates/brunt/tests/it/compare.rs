//! `brunt compare` of real results and of live servers: which runs are compared, and when nothing is concluded.
//!
//! Not its statistics, which have tests of their own. A host that loses its processors for whole runs may double a median, so nothing is
//! asserted of servers that are the same.

use crate::report::change_record;
use crate::schema::reader::errors;
use crate::server::{Directory, Server, beside_others, undisturbed};
use serde_json::Value;

/// One connection: the service time is nearly all of what there is to measure. No process has to be woken, so little of it may be the client's.
pub(crate) const LOAD: [&str; 12] =
    ["-c", "1", "-t", "300ms", "--warmup", "0", "--keys", "50", "--mix", "get", "--wait", "spin"];

/// As many requests as a test needs that looks at no times.
pub(crate) const COUNTED: &[&str] =
    &["-c", "1", "-n", "150", "--warmup", "0", "--keys", "50", "--mix", "get"];

/// Measures into a file.
pub(crate) fn measured(
    directory: &Directory,
    name: &str,
    server: &Server,
    load: &[&str],
    flags: &[&str],
) -> String {
    let path = directory.path(name);
    let allowed = "--allow=BROKEN,LOAD,CLIENT,DATA";
    let mut command = undisturbed(&["run", "-q", allowed, "-s", &server.address, "-o", &path]);
    let output = command.args(load).args(flags).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    path
}

/// Every run stores its few keys first, at this pace from the second one on.
pub(crate) fn of_service(us: &str) -> Server {
    Server::reference(&["--service", &format!("fixed:{us}"), "--script-after", "50"])
}

/// Exit code, JSON and text of a comparison.
pub(crate) fn compared(arguments: &[&str]) -> (i32, Value, String) {
    let output = undisturbed(&["compare", "-o", "json:-"]).args(arguments).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    let json: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    assert!(json.is_null() || errors(&json).is_empty(), "{:?}", errors(&json));
    (output.status.code().unwrap(), json, text)
}

/// The same of eight runs of each of two live servers, of which this is asserted.
pub(crate) fn live(
    a: &Server,
    b: &Server,
    load: &[&str],
    assert: &str,
    more: &[&str],
) -> (i32, Value, String) {
    let flags = ["--repeat", "8", "--seed", "7", "--allow=BROKEN,LOAD,CLIENT,DATA", "--assert", assert];
    compared(&[&["--live", &a.address, &b.address], load, &flags, more].concat())
}

pub(crate) fn quantity<'a>(json: &'a Value, name: &str) -> &'a Value {
    let all = json["quantities"].as_array().unwrap();
    all.iter().find(|held| held["quantity"] == name).unwrap()
}

/// A server that is gone after its first runs: what was measured is reported before the error.
#[test]
fn stored_results_are_compared() {
    let _beside = beside_others();
    // Counted from its first request; from then on it refuses every client.
    let (one, gone) = (of_service("500"), Server::reference(&["--outage", "1500ms:600s"]));
    let flags = [
        "--repeat",
        "20",
        "--timeout",
        "1s",
        "--allow=BROKEN,LOAD,CLIENT,DATA",
        "--live",
        &one.address,
        &gone.address,
    ];
    let (exit, json, text) = compared(&[&flags[..], &LOAD].concat());
    assert_eq!((exit, &json["interrupted"]), (5, &true.into()), "{text}");
    assert!(!json["b"].as_array().unwrap().is_empty(), "{text}");
    let failure = json["failure"].as_str().unwrap_or_default();
    assert!(failure.contains(&gone.address), "{failure}: {text}");
    // Lines are broken between words.
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(&format!("ENDED EARLY: not all of the runs were made: {failure} ")), "{text}");
}

#[test]
fn live_servers_take_turns() {
    let _beside = beside_others();
    let one = of_service("300");
    let (exit, json, text) = live(&one, &one, COUNTED, "p50 <= +100000%", &["--strict"]);
    assert_eq!((exit, &json["assertions"][0]["status"]), (0, &"holds".into()), "{text}");
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
    assert_eq!(json["plan_differences"].as_array().map(Vec::len), Some(0), "{text}");
}

/// A URL says what is spoken and where; both sides speak the same.
#[test]
fn live_servers_are_named_by_urls() {
    let _beside = beside_others();
    let (one, other) = (of_service("100"), of_service("100"));
    let url = |server: &Server, scheme: &str, rest: &str| format!("{scheme}://{}{rest}", server.address);
    let live = |a: &str, b: &str| {
        compared(
            &[&["--repeat", "2", "--allow=BROKEN,LOAD,CLIENT,DATA", "--live", a, b][..], COUNTED].concat(),
        )
    };
    let (exit, json, text) = live(&url(&one, "redis", "/3"), &url(&other, "redis", "/3"));
    assert_eq!((exit, &json["design"]), (0, &"pairs".into()), "{text}");
    assert!(text.contains("note: 4 runs, each as long as its requests take\n"), "{text}");
    let seeds = ["a", "b"].map(|side| {
        let runs = json[side].as_array().unwrap();
        runs.iter().map(|run| run["result"]["plan"]["seed"].as_u64().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(seeds[0], seeds[1], "the runs of a pair share their seed");
    for (side, server) in [("a", &one), ("b", &other)] {
        assert_eq!(json[side][0]["result"]["plan"]["protocol"], "resp2", "{text}");
        assert_eq!(json[side][0]["result"]["plan"]["database"], 3, "{text}");
        let runs = json[side].as_array().unwrap();
        assert!(
            runs.len() == 2 && runs.iter().all(|run| run["result"]["host"]["server"] == server.address),
            "{runs:?}"
        );
    }
    let (exit, json, text) = live(&url(&one, "memcached", ""), &url(&other, "memcached", ""));
    assert_eq!((exit, &json["a"][0]["result"]["plan"]["protocol"]), (0, &"memcached-text".into()), "{text}");
    // Two that are not spoken to alike are no pair.
    let (exit, _, text) = live(&url(&one, "redis", ""), &url(&other, "memcached", ""));
    assert!(exit == 2 && !text.is_empty(), "{exit} {text}");
}

#[test]
fn incomparable_results_are_rejected() {
    let _beside = beside_others();
    let (directory, server) = (Directory::new(), of_service("100"));
    let one = measured(&directory, "one.json", &server, COUNTED, &[]);
    let other = measured(&directory, "other.json", &server, COUNTED, &["--depth", "2", "--timeout", "5s"]);
    let (exit, _, text) = compared(&[&one, &other]);
    assert_eq!(exit, 2, "{text}");
    for word in ["depth: A has 1, B has 2", "timeout: A has 10s, B has 5s", "--allow-different-plans"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let (exit, json, text) = compared(&["--allow-different-plans", &one, &other]);
    assert_eq!(exit, 0, "{text}");
    assert!(json["plan_differences"].as_array().unwrap().iter().any(|held| held["key"] == "depth"), "{text}");

    let text_of = |path: &str| std::fs::read_to_string(path).unwrap();
    let write = |name: &str, text: &str| {
        let path = directory.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let broken = write("broken.json", &text_of(&one)[..200]);
    let (exit, _, text) = compared(&[&one, &broken]);
    assert!(exit == 2 && text.contains(&broken) && text.contains("no JSON"), "{text}");
    for judged in [&["--strict"][..], &["--allow", "LOAD"]] {
        let (exit, _, text) = compared(&[judged, &[&one, &other]].concat());
        assert!(exit == 2 && text.contains("judged when they were measured"), "{text}");
    }
    let (exit, _, text) = compared(&["--a", &one, &one, "--b", &one]);
    assert!(exit == 2 && text.contains("hold the same run"), "{text}");

    let mut value: Value = serde_json::from_str(&text_of(&one)).unwrap();
    let judged = [("/run/host/clock/backwards", 1.into()), ("/judgement/allowed", serde_json::json!([]))];
    change_record(&mut value, &judged);
    value["plan"]["seed"] = 1.into();
    let invalid = write("invalid.json", &value.to_string());
    let (exit, json, text) = compared(&[&one, &invalid]);
    assert!(
        exit == 3 && text.contains("INVALID: 1 of 2 runs are INVALID, so nothing is concluded"),
        "{text}"
    );
    assert_eq!(json["has_conclusion"], false);
    // Up to a third of the runs may be.
    let more = measured(&directory, "more.json", &server, COUNTED, &[]);
    let (exit, json, text) = compared(&["--a", &one, "--b", &more, &invalid]);
    assert_eq!((exit, &json["has_conclusion"]), (0, &true.into()), "{text}");
    let (exit, _, text) = compared(&[&one, &one]);
    assert!(exit == 2 && text.contains("hold the same run"), "{text}");
}
