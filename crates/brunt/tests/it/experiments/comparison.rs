//! Comparisons whose finding depends on the times that were measured: a client that is kept waiting cannot tell the sides apart.

use crate::compare::{COUNTED, LOAD, compared, measured, of_service, quantity};
use crate::server::{Directory, Server, alone};

#[test]
fn tenfold_service_time_compares_as_slower() {
    let _alone = alone();
    let (directory, fast, slow) = (Directory::new(), of_service("300"), of_service("3000"));
    let mut arguments = vec!["--assert=p50 <= +20%".to_owned()];
    for (flag, server) in [("--a", &fast), ("--b", &slow)] {
        arguments.push(flag.to_owned());
        let file = |run| measured(&directory, &format!("{}{run}.json", &flag[2..]), server, &LOAD, &[]);
        arguments.extend((0..8).map(file));
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (exit, json, text) = compared(&arguments);
    assert_eq!(exit, 4, "{text}");
    let p50 = quantity(&json, "p50");
    assert_eq!((&p50["finding"], json["a"].as_array().unwrap().len()), (&"SLOWER".into(), 8), "{text}");
    let change = p50["change"].as_f64().unwrap();
    assert!((1.0..20.0).contains(&change), "{text}");
    assert!(text.contains("B IS SLOWER: p50 +") && text.contains("FAILS "), "{text}");
    // One result each: the same numbers, and no claim, of B alone neither.
    let junit = directory.path("junit.xml");
    let flags = ["--assert", "p50 < 10s", "--assert", "p50 < 1us", "-o", &junit];
    let (exit, json, text) = compared(&[&flags[..], &[arguments[2], arguments[11]]].concat());
    let p50 = quantity(&json, "p50");
    assert_eq!((exit, &p50["message"]), (3, &"UNDECIDED (too few runs)".into()), "{text}");
    for words in ["1 run each", "--repeat 8 (at least 5 of each side)"] {
        // Lines are broken between words.
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(words), "{words}: {text}");
    }
    for assertion in json["assertions"].as_array().unwrap() {
        assert_eq!(
            (&assertion["status"], &assertion["reason"]),
            (&"undecided".into(), &"needs 6 runs of B".into())
        );
    }
    let junit = std::fs::read_to_string(junit).unwrap();
    assert!(junit.contains(r#"tests="4" failures="0" errors="2""#), "{junit}");
}

#[test]
fn campaigns_count_as_several_runs() {
    let _alone = alone();
    let (directory, fast, slow) = (Directory::new(), of_service("300"), of_service("3000"));
    let a = measured(&directory, "a.json", &fast, &LOAD, &["--repeat", "8"]);
    let b = measured(&directory, "b.json", &slow, &LOAD, &["--repeat", "8"]);
    let (exit, json, text) = compared(&[&a, &b]);
    assert_eq!((exit, &quantity(&json, "p50")["finding"]), (0, &"SLOWER".into()), "{text}");
    assert_eq!(json["b"][7]["source"], format!("{b}, run 8"));
}

#[test]
fn live_servers_take_turns() {
    let _alone = alone();
    let (one, slow) = (of_service("300"), of_service("3000"));
    let live = |b: &Server, load: &[&str], assert: &str, more: &[&str]| {
        let flags = ["--repeat", "8", "--seed", "7", "--allow=BROKEN,LOAD,CLIENT,DATA", "--assert", assert];
        let flags = [&flags[..], more].concat();
        let sides = ["--live", &one.address, &b.address];
        compared(&[&sides[..], load, &flags].concat())
    };
    let (exit, json, text) = live(&one, COUNTED, "p50 <= +100000%", &["--strict"]);
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
    let (exit, json, text) = live(&slow, &LOAD, "p50 <= +20%", &[]);
    assert_eq!((exit, &quantity(&json, "p50")["finding"]), (4, &"SLOWER".into()), "{text}");
    assert!(text.lines().any(|line| line.starts_with("p50,") && line.ends_with("SLOWER")), "{text}");
}
