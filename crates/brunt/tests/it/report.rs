//! Results reported again: what a live run printed, from the file that it wrote.
//!
//! Not what is printed. Every kind of run is made once, and its text, its tables, its JSON and its exit code are compared to the byte.

use crate::cluster::Cluster;
use crate::compare::{COUNTED, measured, of_service};
use crate::fleet::Agent;
use crate::schema::check_result;
use crate::server::{Directory, Server, beside_others, brunt};
use crate::tls::{Certificates, redis_over_tls};
use brunt_report::json::{packed, unpacked};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::process::{Command, Output, Stdio};

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Every kind of result of a run that `brunt report` writes again, by the ending of its file.
const RESULTS: [&str; 7] = ["json", "html", "csv", "xml", "hgrm", "hlog", "md"];

/// Options that write results with these endings into files of this name.
fn results(files: &Directory, name: &str, endings: &[&str]) -> Vec<String> {
    endings.iter().flat_map(|ending| ["-o".to_owned(), files.path(&format!("{name}.{ending}"))]).collect()
}

/// Ends a command in this way, reports its result, and compares everything; how many runs the result has, and the files.
fn check_again(
    name: &str,
    words: &[&str],
    endings: &[&str],
    carry_out: impl FnOnce(&mut Command) -> Output,
) -> (usize, Directory) {
    let files = Directory::new();
    let run = carry_out(brunt(words).args(results(&files, "run", endings)).arg("--progress=none"));
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(!text(&run).is_empty(), "{name}: {said}");
    let mut report = brunt(&["report", &files.path("run.json")]);
    let again = report.args(results(&files, "again", endings)).output().unwrap();
    assert_eq!(text(&again), text(&run), "{name}: {said}{}", String::from_utf8_lossy(&again.stderr));
    assert_eq!(again.status.code(), run.status.code(), "{name}: {said}");
    for ending in endings {
        let (first, second) = (files.text(&format!("run.{ending}")), files.text(&format!("again.{ending}")));
        assert!(first == second, "{name}: run.{ending} and again.{ending} differ");
    }
    (check_result(name, &files.text("run.json")), files)
}

/// Waits for the end.
fn whole(command: &mut Command) -> Output {
    command.output().unwrap()
}

/// Ends a command with a signal when something has happened.
fn interrupted(command: &mut Command, await_something: impl FnOnce()) -> Output {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    await_something();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    child.wait_with_output().unwrap()
}

/// Runs this, reports its result, and compares everything.
fn check(name: &str, words: &[&str]) {
    check_run(name, words, whole);
}

/// The same of a run that ends in this way.
fn check_run(name: &str, words: &[&str], carry_out: impl FnOnce(&mut Command) -> Output) {
    let (runs, files) = check_again(name, words, &RESULTS, carry_out);
    assert!(files.text("run.json").len() < 2_000_000, "{name}");
    assert_eq!(runs, 1, "{name}");
}

#[test]
fn reports_of_runs_match_snapshots() {
    let _beside = beside_others();
    let server = Server::reference(&[]);
    let base = ["run", "-s", &server.address, "--keys", "500", "-t", "600ms", "--warmup", "200ms", "-c", "4"];
    // A report is as long whatever the rate.
    let with = |more: &[&'static str]| [&base[..], &["--wait", "sleep"], more].concat();
    check("closed loop", &with(&["--think", "1ms"]));
    check(
        "open loop",
        &with(&["-r", "5k", "--mix", "get=8,set=1,mget=1", "--allow=BROKEN,LOAD,CLIENT,DATA"]),
    );
    check(
        "asserted",
        &with(&["-r", "3k", "--assert", "p99 < 1s", "--assert", "get.p50 < 1ns", "--allow", "CLIENT"]),
    );
    let stamps = ["--set", "timestamps=kernel", "--assert", "p50 < 1ns"];
    let strict = ["--think", "1ms", "--strict", "--verify", "--set", "samples-max=0"];
    check("strict", &[&with(&strict)[..], &stamps].concat());
    let plan = Directory::new();
    let classes = plan.path("classes.toml");
    let text = "keys = 500\nwait = 'sleep'\n[[class]]\nname = 'open'\nrate = '2k'\nmix = 'get=8,set=1,mget=1'\n\
                [[class]]\nname = 'closed'\nthink = '2ms'\n";
    fs::write(&classes, text).unwrap();
    let words = ["run", &classes, "-s", &server.address, "-t", "600ms", "--warmup", "200ms"];
    check("several classes", &[&words[..], &["--allow=BROKEN,LOAD,CLIENT,DATA"]].concat());
    check("until", &with(&["-r", "3k", "--until", "p50=20%,max=2s"]));
    check("misses", &with(&["--think", "1ms", "--no-preload", "--on-miss", "set"]));
    check(
        "its own server",
        &[
            &["run", "-n", "2000", "--keys", "500", "--think", "2ms", "--warmup", "auto"][..],
            &["--set", "meter=request-size", "--allow=BROKEN,LOAD,CLIENT,DATA"],
        ]
        .concat(),
    );
}

#[test]
fn reports_of_other_transports_and_ends_match_snapshots() {
    let _beside = beside_others();
    let datagrams = Server::reference(&["--udp", "--udp-drop-every=50"]);
    let words = [
        "--set",
        "transport=udp",
        "--timeout",
        "20ms",
        "--keys",
        "200",
        "-n",
        "3000",
        "--allow=BROKEN,LOAD,CLIENT,DATA",
    ];
    check(
        "datagrams",
        &[&["run", "-s", &datagrams.address, "--no-preload", "--warmup", "0s"], &words[..]].concat(),
    );
    // One server that is spoken to in two ways is asked for its statistics once.
    let plan = Directory::new();
    let path = plan.path("routes.toml");
    let address = &datagrams.address;
    let text = format!(
        "server = '{address}'\nkeys = 200\nrequests = 3000\nwarmup = '0s'\ntimeout = '20ms'\n[[class]]\n[[class.route]]\nops = ['get']\n\
         transport = 'udp'\n"
    );
    fs::write(&path, text).unwrap();
    check("routes", &["run", &path, "--allow=BROKEN,LOAD,CLIENT,DATA"]);
    let faulty = Server::reference(&["--reset-every=500", "--script-after=1000"]);
    let words =
        ["--keys", "100", "-n", "5000", "-c", "3", "--warmup", "0s", "--allow=BROKEN,LOAD,CLIENT,DATA"];
    check("resets", &[&["run", "-s", &faulty.address], &words[..]].concat());
    let server = Server::reference(&[]);
    let words = ["run", "-s", &server.address, "-t", "60s", "--keys", "100", "--warmup", "0s"];
    check_run("interrupted", &words, |run| interrupted(run, || server.await_gets(3_000)));
}

#[test]
fn reports_of_tls_runs_match_snapshots() {
    let _beside = beside_others();
    let Some(papers) = Certificates::issue() else { return };
    let Some((_server, address)) = redis_over_tls(&papers, &["--tls-auth-clients", "no"]) else { return };
    let (url, ca) = (format!("rediss://{address}"), papers.path("ca.pem"));
    let load =
        ["--keys", "200", "-n", "3000", "-c", "3", "--warmup", "0s", "--allow=BROKEN,LOAD,CLIENT,DATA"];
    check("verified", &[&["run", "-s", &url, "--tls-ca", &ca], &load[..]].concat());
    check("insecure", &[&["run", "-s", &url, "--tls-insecure"], &load[..]].concat());
}

#[test]
fn reports_of_cluster_runs_match_snapshots() {
    let _beside = beside_others();
    let Some(cluster) = Cluster::start() else { return };
    let load =
        ["--protocol", "resp3", "-t", "60s", "--warmup", "0s", "-c", "9", "--depth", "4", "--wait", "sleep"];
    let keys = ["--keys", "6000", "--mix", "get=6,set=2,mget=2", "--multiget", "4"];
    let words = [&["run", "--cluster", "-s", &cluster.nodes[1].address], &load[..], &keys].concat();
    let move_slots = || {
        cluster.await_keys(6_000);
        cluster.move_slots(&(0..200).collect::<Vec<_>>(), 0, 1);
    };
    check_run("slots that move", &words, |run| interrupted(run, move_slots));
}

#[test]
fn reports_of_agent_runs_match_snapshots() {
    let _beside = beside_others();
    let server = Server::reference(&[]);
    let (one, two) = (Agent::wait(&["-T", "2"]), Agent::wait(&["-T", "1"]));
    let led = ["run", "-s", &server.address, "--agent", &one.address, "--agent", &two.address];
    let load = [
        "-t",
        "1s",
        "-c",
        "9",
        "--keys",
        "600",
        "--warmup",
        "200ms",
        "--wait",
        "sleep",
        "--allow=BROKEN,LOAD,CLIENT,DATA",
    ];
    check("closed loop", &[&led[..], &load].concat());
    let open = [
        "-r",
        "4k",
        "--mix",
        "get=8,set=1,mget=1",
        "--measure-rate",
        "200",
        "--set",
        "measure-connections=3",
    ];
    check("beside the controller", &[&led[..], &load, &open].concat());
}

#[test]
fn reports_of_campaigns_match_snapshots() {
    let _beside = beside_others();
    let server = Server::reference(&[]);
    let step =
        ["-s", &server.address, "--keys", "200", "-t", "300ms", "--warmup", "100ms", "--wait", "sleep"];
    // With the number of runs; a search may make more or fewer, where the host keeps the client from its rate.
    let table: [(&str, &[&str], usize); 4] = [
        ("scan", &["--over", "rate=2k,4k,3.5k"], 3),
        ("scan", &["--over", "connections=1,2", "--repeat", "2", "--think", "1ms"], 4),
        ("search", &["--assert", "p99 < 1s", "--from", "1k", "--to", "4k"], 2),
        ("run", &["--repeat", "3", "--think", "1ms", "--allow", "CLIENT"], 3),
    ];
    for (command, flags, runs) in table {
        let words = [&[command], &step[..], flags].concat();
        let (found, _) = check_again(command, &words, &["json", "html", "csv"], whole);
        assert!(found == runs || command == "search" && found > 0, "{command} {flags:?}: {found}");
    }
}

/// The same result with other values in its record.
fn with(result: &str, values: &[(&str, serde_json::Value)]) -> String {
    let mut result: serde_json::Value = serde_json::from_str(result).unwrap();
    change_record(&mut result, values);
    result.to_string()
}

/// Puts values in these places of a result's record.
pub(crate) fn change_record(result: &mut serde_json::Value, values: &[(&str, serde_json::Value)]) {
    let mut record = unpacked(result["record"].as_str().unwrap()).unwrap();
    for (place, value) in values {
        *record.pointer_mut(place).unwrap() = value.clone();
    }
    result["record"] = packed(&record).unwrap().into();
}

#[test]
fn reports_of_comparisons_match_snapshots() {
    let _beside = beside_others();
    let files = Directory::new();
    let (fast, slow) = (of_service("100"), of_service("1000"));
    let a: Vec<String> =
        (0..4).map(|run| measured(&files, &format!("a{run}.json"), &fast, COUNTED, &[])).collect();
    let b: Vec<String> =
        (0..4).map(|run| measured(&files, &format!("b{run}.json"), &slow, COUNTED, &[])).collect();
    let [a, b] = [&a, &b].map(|side| side.iter().map(String::as_str).collect::<Vec<_>>());
    let assertions = ["--assert", "p99 <= +5%", "--assert", "p50 < 1ns"];
    check_comparison("files", &[&["--a"], &a[..], &["--b"], &b[..], &assertions].concat(), whole);
    check_comparison("one each", &[a[0], b[0]], whole);
    let live = ["--repeat", "2", "--allow=BROKEN,LOAD,CLIENT,DATA", "--live", &fast.address, &slow.address];
    check_comparison("live", &[&live[..], COUNTED].concat(), whole);
    // Ended in the second run of B, which had 150 gets in its first.
    let slower = of_service("1000");
    let live =
        ["--repeat", "20", "--allow=BROKEN,LOAD,CLIENT,DATA", "--live", &fast.address, &slower.address];
    let files = check_comparison("interrupted", &[&live[..], COUNTED].concat(), |compare| {
        interrupted(compare, || slower.await_gets(200))
    });
    let table = [
        (["--assert", "p99 < 1s"], "--assert: it is of one run"),
        (
            ["-o", "again.csv"],
            "for -o csv: csv is of a run, or repeated runs, or a scan or search, not of a comparison",
        ),
        (
            ["-o", "again.ndjson"],
            "for -o ndjson: ndjson is of a run, or repeated runs, or a scan or search, not of a comparison",
        ),
    ];
    for (option, expected) in table {
        let refused = brunt(&[&["report", &files.path("run.json")], &option[..]].concat()).output().unwrap();
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains(expected), "{said}");
    }
}

/// Compares, reports the result, and compares everything; the files.
fn check_comparison(name: &str, words: &[&str], carry_out: impl FnOnce(&mut Command) -> Output) -> Directory {
    check_again(name, &[&["compare"], words].concat(), &["json", "html", "xml"], carry_out).1
}

#[test]
fn invalid_result_files_are_rejected() {
    let files = Directory::new();
    let _beside = beside_others();
    let json = files.path("run.json");
    let words = ["run", "-n", "200", "--warmup", "0s", "--allow=BROKEN,LOAD,CLIENT,DATA", "-o", &json];
    assert_eq!(brunt(&words).output().unwrap().status.code(), Some(0));
    let whole = files.text("run.json");
    // Text, with what begins the sentence behind the name of the file.
    let table = [
        (String::new(), "no JSON: EOF"),
        (whole[..whole.len() / 2].to_owned(), "no JSON: EOF"),
        ("[1]".to_owned(), "schema: 'nothing' was found; accepted"),
        (r#"{"schema": "memtier.v2"}"#.to_owned(), "schema: 'memtier.v2' was found; accepted"),
        (whole.replacen("\"record\"", "\"recorder\"", 1), "record: missing"),
        (whole.replacen("\"record\": \"eJ", "\"record\": \"eK", 1), "record: damaged"),
        (with(&whole, &[("/values_checked", 7.into())]), "record: invalid type"),
        (
            with(&whole, &[("/run/host/clock/backwards", 99_999_999_999_999_999_u64.into())]),
            "record: 99999999999999999",
        ),
        (
            with(
                &whole,
                &[
                    ("/run/times/end_ns", (1_u64 << 55).into()),
                    ("/run/times/drained_ns", (1_u64 << 55).into()),
                ],
            ),
            "record: a run that is longer than its slices of time",
        ),
        (
            with(&whole, &[("/run/server_records/0/snapshots/0/at_ns", (1_u64 << 55).into())]),
            "record: statistics of a server that are in no order",
        ),
        (
            with(&whole, &[("/intervals/totals/rows/0/latencies/response/1", [1].into())]),
            "record: a histogram",
        ),
        (
            with(&whole, &[("/intervals/request_counts/0/class", 9.into())]),
            "record: counts of a class or a command that does not exist",
        ),
        (whole.replacen("\"threads\": 1", "\"threads\": 0", 1), "plan: "),
    ];
    let path = files.path("other.json");
    for (text, expected) in table {
        fs::write(&path, &text).unwrap();
        let output = brunt(&["report", &path]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        let sentence = said.strip_prefix(&format!("error: {path}: "));
        assert!(sentence.is_some_and(|sentence| sentence.starts_with(expected)), "{expected}: {said}");
        assert_eq!((said.lines().count(), output.status.code()), (1, Some(2)), "{said}");
    }
    // A dash is standard input.
    let from_file = brunt(&["report", &json]).output().unwrap();
    let from_stdin = brunt(&["report", "-"]).stdin(fs::File::open(&json).unwrap()).output().unwrap();
    assert!(!text(&from_file).is_empty() && text(&from_stdin) == text(&from_file), "{from_stdin:?}");
    let several = brunt(&["report", &json, &json]).output().unwrap();
    assert!(
        String::from_utf8_lossy(&several.stderr).contains("2 results given: expected one"),
        "{several:?}"
    );
}

#[test]
fn several_results_lie_side_by_side_and_figures_are_drawn() {
    let files = Directory::new();
    let _beside = beside_others();
    let (one, two) = (files.path("one.json"), files.path("two.json"));
    for json in [&one, &two] {
        let words = ["run", "-n", "3000", "--warmup", "0s", "--allow=BROKEN,LOAD,CLIENT,DATA", "-o", json];
        assert_eq!(brunt(&words).output().unwrap().status.code(), Some(0));
    }
    let report = |words: &[&str]| brunt(&[&["report"], words].concat()).output().unwrap();
    let (page, figure) = (files.path("both.html"), files.path("both.svg"));
    let both = report(&[&one, &two, "-o", &page, "-o", &figure]);
    let lines: Vec<String> = text(&both).lines().map(str::to_owned).collect();
    assert!(
        lines.len() == 2 && lines[0].starts_with("one: status=") && lines[1].starts_with("two: "),
        "{both:?}"
    );
    assert_eq!(files.text("both.html").matches("class=\"heat\"").count(), 2);
    let drawn = files.text("both.svg");
    assert!(drawn.contains("<desc>one: brunt ") && drawn.ends_with("</svg>\n"), "{drawn}");
    let (svg, png) = (format!("timeline:{}", files.path("one.svg")), files.path("one.png"));
    assert_eq!(report(&[&one, "-o", &svg, "-o", &png]).status.code(), Some(0));
    assert!(fs::read(files.path("one.png")).unwrap().starts_with(b"\x89PNG"));
    let first = files.text("one.svg");
    for (width, is_same) in [("column", true), ("page", false)] {
        assert_eq!(report(&[&one, "-o", &svg, "--figure-width", width]).status.code(), Some(0));
        assert_eq!(files.text("one.svg") == first, is_same, "{width}");
    }

    let curve = format!("curve:{}", files.path("curve.svg"));
    let table: [(&[&str], &str); 6] = [
        (&[&one, "-o", &curve], "for -o curve: curve is of a scan or search, not of a run"),
        (&[&one, "-o", "spectrum"], "invalid value 'spectrum' for --output: 'spectrum' has no known ending"),
        (&[&one, "-o", "a.pdf"], "expected [TYPE:]PATH, such as result.json, json:- or spectrum:p99.svg"),
        (&[&one, "-o", &svg, "-o", &svg], "-o timeline, -o timeline: "),
        (&[&one, &two], "2 results given: expected one; with -o PATH.html or .svg up to 6, side by side"),
        (
            &[&one, &two, "-o", &page, "-o", "csv:-"],
            "for -o csv: csv is of a run, or repeated runs, or a scan or search, not of several results",
        ),
    ];
    for (words, expected) in table {
        let refused = report(words);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains(expected), "{expected}: {said}");
    }
    assert!(!fs::exists(files.path("curve.svg")).unwrap());
}
