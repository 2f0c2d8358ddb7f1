//! Campaigns from the outside: what is measured how often and in which order, what is stored again, how they end.
//!
//! Not of how fast anything is: the machine may be busy. The capacity of a known queue is in `experiments/accuracy.rs`.

use crate::measured::Measured;
use crate::server::{Server, begin, brunt, ended, file, temporary};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};

/// Ends a campaign's command and takes in its result.
fn campaign(arguments: &str) -> Measured {
    let common = "-o json:- --keys 500 --allow=BROKEN,LOAD,CLIENT,DATA --warmup 0s";
    Measured::of(brunt(&format!("{arguments} {common}")))
}

fn runs(measured: &Measured) -> &Vec<Value> {
    let runs = measured.json["runs"].as_array().unwrap();
    for run in runs {
        assert_eq!(run["result"]["schema"], "brunt.result.v1");
    }
    runs
}

/// One server for all settings, and the data set is stored once.
#[test]
fn a_scan_measures_every_setting() {
    let measured = campaign("scan --over connections=1,2..3:1 --ordered -n 2000 --mix get --seed 7");
    assert_eq!(measured.json["schema"], "brunt.campaign.v1");
    let runs = runs(&measured);
    assert_eq!(measured.json["labels"], runs[0]["result"]["labels"]);
    for (index, run) in runs.iter().enumerate() {
        assert_eq!(run["step"]["setting"].as_f64(), Some(index as f64 + 1.0));
        let run = &run["result"];
        assert_eq!(run["plan"]["class"][0]["connections"], index as u64 + 1);
        assert_eq!(run["plan"]["seed"], 7 + index as u64);
        assert_eq!(run["host"]["server"], runs[0]["result"]["host"]["server"]);
        // Every value is there, and compared as strictly as after a preload.
        assert_eq!(run["counts"]["keys"]["hit"], 2_000);
        assert_eq!(run["events"]["values_foreign"], 0);
        let preload = &run["counts"]["phases"]["preload"];
        let stored = if index == 0 { 500 } else { 0 };
        assert_eq!(
            (&preload["requests"]["sent"], &preload["stored"]["confirmed"]),
            (&stored.into(), &500.into())
        );
        assert_eq!(preload["stored"]["is_earlier"], index > 0);
        // The plan of a run is whole: it runs the same when it is run alone.
        assert_eq!(run["plan"]["preload"], true);
    }
    assert_eq!(runs.len(), 3);
    for word in ["scan          over connections, 3 settings · 3 runs", "\nconnections "] {
        assert!(measured.text.contains(word), "{word}");
    }
}

/// Drift of a host is not read as load: passes have orders of their own, the same with the same seed, and results ascend.
#[test]
fn the_order_of_settings_is_random_unless_it_is_kept() {
    let order = |flags: &str| {
        let scan = "scan --over connections=1..6:1 --repeat 2 -n 200 --seed 7";
        let measured = campaign(&format!("{scan} {flags}"));
        let settings: Vec<u64> =
            runs(&measured).iter().map(|run| run["step"]["setting"].as_f64().unwrap() as u64).collect();
        let points = measured.json["finding"]["points"].as_array().unwrap();
        let points: Vec<f64> = points.iter().map(|point| point["setting"].as_f64().unwrap()).collect();
        assert_eq!(points, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        (settings[..6].to_vec(), settings[6..].to_vec())
    };
    let kept: Vec<u64> = (1..=6).collect();
    assert_eq!(order("--ordered"), (kept.clone(), kept.clone()));
    let (first, second) = order("");
    assert!(first != kept && second != kept && first != second, "{first:?} {second:?}");
    assert_eq!(order(""), (first, second));
}

/// Their requests are counted together: each run alone has too few.
#[test]
fn assertions_about_repetitions_count_all_requests() {
    let run = "run --repeat 3 -n 200 --mix get --assert 'p99 < 10s'";
    let measured = campaign(run);
    let of_run =
        |run: &Value| run["result"]["status"]["assertions"][0]["outcome"].as_str().unwrap().to_owned();
    assert_eq!(runs(&measured).iter().map(of_run).collect::<Vec<_>>(), ["undecided"; 3]);
    let together = &measured.json["assertions"][0];
    assert_eq!((&together["outcome"], &together["requests"]), (&"holds".into(), &600.into()));
    assert!(measured.text.contains("holds         p99 < 10s: "));
    let measured = campaign("run --repeat 2 -n 2000 --mix get --assert 'p50 > 10s'");
    assert_eq!((measured.exit, &measured.json["assertions"][0]["outcome"]), (4, &"fails".into()));
}

/// A data set that a run changes is stored again for the next one; larger values find room.
#[test]
fn consumed_data_sets_are_stored_again() {
    for flags in ["--over depth=1,2 --mix get=1,delete=1", "--over value-size=100,100KiB --mix get"] {
        let measured = campaign(&format!("scan -n 1000 {flags}"));
        for run in runs(&measured) {
            let run = &run["result"];
            assert_eq!(run["counts"]["phases"]["preload"]["requests"]["sent"], 500, "{flags:?}");
            let is_read_only = run["ops"].as_object().unwrap().len() == 1;
            assert!(!is_read_only || run["counts"]["keys"]["hit"] == 1_000, "{flags:?}");
        }
    }
}

#[test]
fn repetitions_have_seeds_of_their_own_and_a_command_between_them() {
    let trace = temporary("trace");
    let command = format!("echo restarted >> '{trace}'");
    let measured = campaign(&format!("run --repeat 3 --between '{command}' -n 1000 --seed 40 -c 2"));
    assert_eq!(trace.text(), "restarted\nrestarted\n");
    let seeds: Vec<u64> =
        runs(&measured).iter().map(|run| run["result"]["plan"]["seed"].as_u64().unwrap()).collect();
    assert_eq!(seeds, [40, 41, 42]);
    // It is not known what the command did to the data set.
    let stored =
        |run: &Value| run["result"]["counts"]["phases"]["preload"]["requests"]["sent"].as_u64().unwrap();
    assert_eq!(runs(&measured).iter().map(stored).collect::<Vec<_>>(), [500; 3]);
    let spread = &measured.json["finding"]["completed_per_s"];
    assert_eq!((&spread["runs"], &spread["coverage"]), (&3.into(), &0.75.into()));
    let of = |key: &str| spread[key].as_f64().unwrap();
    assert!(of("min") <= of("median") && of("median") <= of("max"));
    assert_eq!(measured.json["status"]["checks"][0]["id"], "REPEAT");
}

#[test]
fn a_command_that_fails_ends_the_campaign() {
    let measured = campaign("run --repeat 3 --between 'exit 7' -n 1000");
    assert_eq!(measured.exit, 1);
    assert_eq!(runs(&measured).len(), 1, "what was measured is reported");
    assert_eq!(measured.json["interrupted"], true, "it is one of three runs");
    for word in ["--between 'exit 7'", "exit status: 7", "1 run of one plan", "partial results"] {
        assert!(measured.text.contains(word), "{word}");
    }
    assert!(!measured.text.contains("bracket the median"), "one run has none");
}

/// Was the client the limit of a run, and does the campaign say so? Then it is right to blame nothing else, and there is nothing to see of
/// the server.
fn is_limited_by_the_client(measured: &Measured) -> bool {
    let capacity = &measured.json["finding"]["capacity"]["result"];
    let is_so = measured.json["limit"]["bottleneck"] == "client" || capacity == "client";
    if is_so {
        assert!(measured.text.contains("the client"));
        eprintln!("NOT JUDGED: the client was the limit\n{}", measured.text);
    }
    is_so
}

/// Four times what the server can do: its limit, not ours, however late a busy machine makes us.
#[test]
fn scans_name_the_bottleneck() {
    let server = Server::reference("--service fixed:1000 --script-after 500");
    let flags = "--over rate=100,4k -t 2s --set drain=100ms --depth 1024";
    let measured = campaign(&format!("scan -s {server} {flags}"));
    if is_limited_by_the_client(&measured) {
        return;
    }
    let limit = &measured.json["limit"];
    assert_eq!((&limit["bottleneck"], &limit["setting"]), (&"server".into(), &4e3.into()));
    let run = &runs(&measured)[limit["run"].as_u64().unwrap() as usize]["step"];
    assert_eq!((&run["limited"], &run["limit"]), (&true.into(), &"server".into()));
    assert!(measured.text.contains("limit         the server"));
}

/// The step in hand drains, the table so far is reported.
#[test]
fn an_interrupted_campaign_reports_what_it_has() {
    let scan = "scan --over connections=1..100:1 -t 1s --warmup 0s --keys 500 -o json:- --progress 100ms";
    let mut child = begin(brunt(scan));
    // Read beside: a result is larger than what a pipe holds, and who writes to a full one waits for ever.
    let mut out = child.stdout.take().unwrap();
    let result = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        out.read_to_end(&mut bytes).unwrap();
        bytes
    });
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let second = lines.find(|line| line.as_ref().unwrap().contains("step 2 of 100, "));
    second.expect("progress says which step it is").unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let json: Value = serde_json::from_slice(&result.join().unwrap()).unwrap();
    let runs = json["runs"].as_array().unwrap();
    assert!((1..=3).contains(&runs.len()), "{}", runs.len());
    assert_eq!(json["interrupted"], true);
    assert_eq!(runs[0]["result"]["window"]["interrupted"], false);
    assert!(rest.iter().any(|line| line.contains("partial results")), "{rest:?}");
}

/// A plan that is printed is one that runs; what makes it a campaign is in a remark.
#[test]
fn printed_plans_match_campaign_steps() {
    for (arguments, remark) in [
        ("scan --over rate=5k,10k --print-plan", "# the first of 2 settings: rate=5000/s"),
        ("scan --print-plan", "# the closed loop that a scan begins with"),
        ("run --repeat 4 --print-plan", "# the first of 4 runs; the seed of each is one more"),
        ("search --assert 'p99 < 1ms' --from 3k --print-plan", "# a step of a search"),
    ] {
        let output = ended(arguments);
        let printed = &output.out;
        assert!(printed.starts_with(remark));
        let path = file("plan.toml", printed);
        let again = ended(&format!("run {path} --print-plan"));
        let plan =
            |text: &str| text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n");
        assert_eq!(plan(&again.out), plan(printed));
    }
}

/// Bounds that hold on any machine: a service time of 200 us is never below 100 us, and never near a second at a tenth of
/// the load.
#[test]
fn searches_end_at_unreachable_or_trivial_objectives() {
    let server = Server::reference("--service fixed:200 --script-after 500");
    let search = |slo: &str| {
        let flags = "--from 500 --to 1k --depth 1024 --mix get --wait sleep";
        campaign(&format!("search -s {server} --assert '{slo}' {flags}"))
    };
    let table = [
        ("p90 < 1s", "at_least", 1e3.into(), 0, "the highest rate tried meets p90 < 1s"),
        ("get.p90 < 100us", "below", Value::Null, 4, "the lowest rate tried does not meet get.p90 < 100us"),
    ];
    for (slo, result, passed, exit, said) in table {
        let measured = search(slo);
        if is_limited_by_the_client(&measured) {
            continue;
        }
        let capacity = &measured.json["finding"]["capacity"];
        assert_eq!((&capacity["result"], &capacity["passed_per_s"]), (&result.into(), &passed));
        assert_eq!(measured.exit, exit);
        let words = measured.text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(said));
    }
}

/// A FIFO server of 2 ms: below 500/s everything is answered within a second, above it the backlog grows. The rates tried are an eighth and more
/// away from that limit, so none of them holds in one run and fails in the next.
#[test]
fn searches_confirm_both_rates_in_turns() {
    let server = Server::reference("--service fixed:2000 --script-after 500");
    let flags = "--assert 'p50 < 200ms' --from 310 -t 600ms --depth 1024 --resolution 50%";
    let measured = campaign(&format!("search -s {server} {flags}"));
    if is_limited_by_the_client(&measured) {
        return;
    }
    let capacity = &measured.json["finding"]["capacity"];
    assert_eq!(capacity["result"], "confirmed");
    let rate = |key: &str| capacity[key].as_f64().unwrap();
    assert!(rate("passed_per_s") <= 550.0 && rate("not_passed_per_s") >= 450.0);
    let pairs = runs(&measured).iter().map(|run| &run["step"]).filter(|step| step["purpose"] == "pair");
    let pairs: Vec<f64> = pairs.map(|step| step["setting"].as_f64().unwrap()).collect();
    assert!((6..=12).contains(&pairs.len()), "{pairs:?}");
    assert!(pairs[0] < pairs[1], "in turns, the lower one first: {pairs:?}");
    // A rate at the capacity may fail one of its runs, so that a lower one takes its place: the lowest has held in all of its three.
    let made = |rate: f64| pairs.iter().filter(|held| **held == rate).count();
    let [lowest, highest] = [f64::min, f64::max].map(|pick| pairs.iter().copied().reduce(pick).unwrap());
    assert!(made(lowest) == 3 && made(highest) >= 2, "{pairs:?}");
    let last = measured.text.lines().find(|line| line.contains("holds, 3 of 3"));
    assert!(last.is_some());
}

/// A dozen requests lie above no p99: that is nothing known, and not a rate that fails.
#[test]
fn searches_without_enough_time_are_undecided() {
    let measured = campaign("search --assert 'p99 < 10s' --from 100 -t 1s --until max=1s --mix get");
    if is_limited_by_the_client(&measured) {
        return;
    }
    let capacity = &measured.json["finding"]["capacity"];
    let found = (&capacity["result"], &capacity["not_passed_per_s"]);
    assert_eq!(found, (&"undecided".into(), &100.0.into()));
    assert_eq!(measured.exit, 3);
    let words: Vec<&str> = measured.text.split_whitespace().collect();
    assert!(words.join(" ").contains("takes longer steps -> --until max="));
}
