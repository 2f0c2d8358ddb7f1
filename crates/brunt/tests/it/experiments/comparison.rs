//! Comparisons whose finding depends on the times that were measured: a client that is kept waiting cannot tell the sides apart.

use crate::compare::{LOAD, compared, live, measured, of_service, quantity};
use crate::server::{Directory, alone};

#[test]
fn tenfold_service_time_compares_as_slower() {
    let _alone = alone();
    let (directory, fast, slow) = (Directory::new(), of_service("300"), of_service("3000"));
    let [a, b] = [("a.json", &fast), ("b.json", &slow)]
        .map(|(name, server)| measured(&directory, name, server, &LOAD, &["--repeat", "8"]));
    let (exit, json, text) = compared(&["--assert=p50 <= +20%", &a, &b]);
    assert_eq!(exit, 4, "{text}");
    let p50 = quantity(&json, "p50");
    assert_eq!((&p50["finding"], json["a"].as_array().unwrap().len()), (&"SLOWER".into(), 8), "{text}");
    assert_eq!(json["b"][7]["source"], format!("{b}, run 8"));
    let change = p50["change"].as_f64().unwrap();
    assert!((1.0..20.0).contains(&change), "{text}");
    assert!(text.contains("B IS SLOWER: p50 +") && text.contains("FAILS "), "{text}");
    // Without a requirement the same finding fails nothing.
    let (exit, json, text) = compared(&[&a, &b]);
    assert_eq!((exit, &quantity(&json, "p50")["finding"]), (0, &"SLOWER".into()), "{text}");
    // One result each: the same numbers, and no claim, of B alone neither.
    let [a, b] = [("a1.json", &fast), ("b1.json", &slow)]
        .map(|(name, server)| measured(&directory, name, server, &LOAD, &[]));
    let junit = directory.path("junit.xml");
    let (exit, json, text) =
        compared(&["--assert", "p50 < 10s", "--assert", "p50 < 1us", "-o", &junit, &a, &b]);
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
fn live_servers_compare_as_slower() {
    let _alone = alone();
    let (one, slow) = (of_service("300"), of_service("3000"));
    let (exit, json, text) = live(&one, &slow, &LOAD, "p50 <= +20%", &[]);
    assert_eq!((exit, &quantity(&json, "p50")["finding"]), (4, &"SLOWER".into()), "{text}");
    assert!(text.lines().any(|line| line.starts_with("p50,") && line.ends_with("SLOWER")), "{text}");
}
