//! `--assert` and `-o junit:`: what a pipeline sees of a run.

use super::is_full;
use crate::measured::{ALL, HOST_DISTURBED, Measured};
use crate::server::{Directory, Server, alone};

/// With more of its time taken by others, nothing is known of the client's part in a closed loop, and no percentile is decided.
const DELAYED_MAX: f64 = 0.05;

/// Closed loop and 20 ms a request, beside which a host is small. Too few requests for any number of the run, which is no matter here; but
/// a run that waits for a processor a twentieth of its time fails nothing.
#[test]
fn the_exit_code_is_that_of_the_worst_assertion() {
    alone();
    let table: &[(&[&str], i32, &[&str])] = &[
        (&["get.p50 >= 1ms", "hit >= 100%", "errors <= 0", "unsent <= 0"], 0, &["holds"; 4]),
        (&["p50 < 1ms", "hit >= 100%"], 4, &["fails", "holds"]),
        (&["rate < 100", "p99.99 < 1h"], 3, &["holds", "undecided"]),
        (&["p50 < 1ms", "p99.99 < 1h"], 4, &["fails", "undecided"]),
    ];
    // Beside each other: fifty requests a second each.
    std::thread::scope(|scope| {
        for (asserted, exit, statuses) in table {
            scope.spawn(|| check(asserted, *exit, statuses));
        }
    });
}

fn check(asserted: &[&str], exit: i32, statuses: &[&str]) {
    let server = Server::reference("--service fixed:20000 --script-after 50");
    let directory = Directory::new();
    let flags = "-c 1 -t 1500ms --warmup 0 --keys 50 --mix get --io epoll";
    let asserted: String = asserted.iter().map(|objective| format!(" --assert '{objective}'")).collect();
    let flags = format!("{flags} --allow={ALL} -o {}{asserted}", directory.path("junit.xml"));
    let run = Measured::run_undisturbed(&server, &flags);
    if run.delayed() > DELAYED_MAX {
        assert!(!is_full(), "{HOST_DISTURBED}");
        return eprintln!("NOT JUDGED: the worker waited for a processor\n{}", run.text);
    }
    assert_eq!(run.exit, exit);
    let assertions = run.at("status.assertions").as_array().unwrap();
    let found: Vec<_> = assertions.iter().map(|held| held["outcome"].as_str().unwrap()).collect();
    assert_eq!(found, statuses);
    let xml = directory.text("junit.xml");
    let count_of = |status: &str| statuses.iter().filter(|found| **found == status).count();
    let cases = format!("<testsuite name=\"brunt.assertions\" tests=\"{}\"", statuses.len());
    assert!(xml.contains(&cases), "{xml}");
    assert_eq!(xml.matches("<failure type=\"assertion\"").count(), count_of("fails"), "{xml}");
    assert_eq!(xml.matches("<error type=\"undecided\"").count(), count_of("undecided"), "{xml}");
}
