//! Comparisons whose finding depends on the times that were measured: a client that is kept waiting cannot tell the sides apart.

use crate::compare::{LOAD, compared, live, measured, of_service, quantity};
use crate::server::{Directory, alone};

#[test]
fn tenfold_service_time_compares_as_slower() {
    alone();
    let (directory, fast, slow) = (Directory::new(), of_service("300"), of_service("3000"));
    let [a, b] = [("a.json", &fast), ("b.json", &slow)]
        .map(|(name, server)| measured(&directory, name, server, LOAD, "--repeat 8"));
    let asserted = compared(&format!("--assert 'p50 <= +20%' {a} {b}"));
    let (json, text) = (&asserted.json, &asserted.text);
    assert_eq!(asserted.exit, 4);
    let p50 = quantity(json, "p50");
    assert_eq!((&p50["finding"], json["a"].as_array().unwrap().len()), (&"SLOWER".into(), 8));
    assert_eq!(json["b"][7]["source"], format!("{b}, run 8"));
    let change = p50["change"].as_f64().unwrap();
    assert!((1.0..20.0).contains(&change));
    assert!(text.contains("B IS SLOWER: p50 +") && text.contains("FAILS "));
    // Without a requirement the same finding fails nothing.
    let bare = compared(&format!("{a} {b}"));
    assert_eq!((bare.exit, &quantity(&bare.json, "p50")["finding"]), (0, &"SLOWER".into()));
    // One result each: the same numbers, and no claim, of B alone neither.
    let [a, b] = [("a1.json", &fast), ("b1.json", &slow)]
        .map(|(name, server)| measured(&directory, name, server, LOAD, ""));
    let junit = directory.path("junit.xml");
    let few = compared(&format!("--assert 'p50 < 10s' --assert 'p50 < 1us' -o {junit} {a} {b}"));
    let p50 = quantity(&few.json, "p50");
    assert_eq!((few.exit, &p50["message"]), (3, &"UNDECIDED (too few runs)".into()));
    // Lines are broken between words.
    let text = few.text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("1 run each") && text.contains("--repeat 8 (at least 5 of each side)"));
    for assertion in few.json["assertions"].as_array().unwrap() {
        assert_eq!(
            (&assertion["status"], &assertion["reason"]),
            (&"undecided".into(), &"needs 6 runs of B".into())
        );
    }
    let junit = directory.text("junit.xml");
    assert!(junit.contains(r#"tests="4" failures="0" errors="2""#), "{junit}");
}

#[test]
fn live_servers_compare_as_slower() {
    alone();
    let (one, slow) = (of_service("300"), of_service("3000"));
    let live = live(&one, &slow, LOAD, "p50 <= +20%", "");
    assert_eq!((live.exit, &quantity(&live.json, "p50")["finding"]), (4, &"SLOWER".into()));
    assert!(live.text.lines().any(|line| line.starts_with("p50,") && line.ends_with("SLOWER")));
}
