//! `--assert` and `--junit`: what a pipeline sees of a run.

use crate::measured::Measured;
use crate::server::{Server, beside_others, unique};

/// Closed loop, so that nothing of a busy host can convict the run; what is asserted does not depend on the host.
#[test]
fn a_run_exits_with_4_unless_everything_holds() {
    let _beside = beside_others();
    let server = Server::reference(&["--service", "fixed:500", "--script-after", "1000"]);
    let junit = std::env::temp_dir().join(format!("brunt-junit-{}-{}.xml", std::process::id(), unique()));
    let flags =
        ["-c", "1", "-t", "500ms", "--warmup", "0", "--keys", "1000", "--mix", "get", "--allow-untrusted"];
    let table: &[(&[&str], i32, &[&str])] = &[
        (&["get.p50 >= 500us", "hit >= 100%", "errors <= 0", "unsent <= 0"], 0, &["holds"; 4]),
        (&["p50 < 500us", "hit >= 100%"], 4, &["fails", "holds"]),
        (&["rate < 2001", "p99.99 < 1h"], 4, &["holds", "unknown"]),
    ];
    for (asserted, exit, statuses) in table {
        let mut flags = flags.to_vec();
        asserted.iter().for_each(|objective| flags.extend(["--assert", objective]));
        flags.extend(["--junit", junit.to_str().unwrap()]);
        let run = Measured::run(&server.address, &flags);
        assert_eq!(run.exit, *exit, "{}", run.text);
        let found =
            run.at("assertions").as_array().unwrap().iter().map(|held| held["status"].as_str().unwrap());
        assert_eq!(found.collect::<Vec<_>>(), *statuses, "{}", run.text);
        let xml = std::fs::read_to_string(&junit).unwrap();
        let unmet = statuses.iter().filter(|status| **status != "holds").count();
        let cases = format!("<testsuite name=\"brunt.assertions\" tests=\"{}\"", statuses.len());
        assert!(xml.contains(&cases), "{xml}");
        assert_eq!(xml.matches("<failure").count() + xml.matches("<error").count(), unmet, "{xml}");
    }
    std::fs::remove_file(junit).unwrap();
}
