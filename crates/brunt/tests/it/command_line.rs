//! What a user types wrong, and what the shell sees: messages, exit codes, plans that print and read back.

use crate::measured::{ALL, Measured};
use crate::server::{
    Ended, Server, begin, brunt, by_shell, ended, file, listening, plain, side_by_side, silent, temporary,
    unserved,
};
use crate::whole_window::columns;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// A run that comes to nothing leaves the results of an earlier one as they were, and no empty files.
#[test]
fn a_run_without_a_result_leaves_nothing() {
    let (earlier, fresh) = (file("earlier.json", "{\"old\": 1}"), temporary("fresh.csv"));
    ended(&format!("run -s {} -o {earlier} -o {fresh}", unserved())).is(5, &[]);
    assert_eq!(earlier.text(), "{\"old\": 1}");
    assert!(!std::path::Path::new(&*fresh).exists());
}

/// Every message names the option, what was given and what is accepted, and never a password; the exit code is 2, before any connection.
#[test]
fn usage_errors_are_named() {
    let rows: Vec<&str> = include_str!("refusals.txt").lines().filter(|row| !row.starts_with('#')).collect();
    assert_eq!(rows.len(), 242);
    for (line, parts) in rows.into_iter().map(|row| row.split_once(" => ").unwrap()) {
        let refused = Ended::from(plain(line));
        refused.is(2, &parts.replace(r"\n", "\n").split(" | ").collect::<Vec<_>>());
        assert!(!refused.said.contains("hunter2"), "{line}");
    }
}

#[test]
fn plan_errors_have_line_and_column() {
    for (text, words) in [
        ("rate = 1000\nrat = 5\n", &["line 2, column 1", "unknown field `rat`"][..]),
        (
            "threads = 1\n[[class]]\nname = 'a'\nvalue-size = 'big'\n",
            &["line 4, column 14", "expected a size"],
        ),
        ("[[class]]\nthreads = 5\n", &["line 2, column 1", "unknown field `threads`"]),
        ("rate = \n", &["line 1"]),
    ] {
        let path = file("plan.toml", text);
        ended(&format!("run {path}")).is(2, &[&path]).is(2, words);
    }
    let two = file("two.toml", "[[class]]\nname='a'\n[[class]]\nname='b'\n");
    ended(&format!("run {two} --rate 5")).is(2, &["--rate", "[[class]]"]);
}

/// A printed plan runs the same again, and prints the same again.
#[test]
fn printed_plans_can_be_run() {
    let printed = |arguments: &str| {
        let mut output = ended(arguments);
        assert_eq!(output.exit, 0);
        std::mem::take(&mut output.out)
    };
    let first = printed("run --print-plan -r 1.5k -s [::1]:7000 --popularity zipf -n 10k --seed 7");
    assert!(first.contains("rate = \"1500/s\"") && first.contains("server = [\"[::1]:7000\"]"), "{first}");
    let path = file("printed.toml", &first);
    assert_eq!(printed(&format!("run --print-plan {path}")), first);
    // The limit of a preload over the network is that of runs, not one that a user gave.
    assert!(!printed("run --print-plan -s redis://192.0.2.1").contains("preload-rate"));
    // Flags win over the file.
    assert!(printed(&format!("run --print-plan {path} -r 7")).contains("rate = \"7/s\""));
}

/// `@FILE` beside a flag is relative to where we are, in a plan to where the plan is; the printed plan holds what the
/// file said.
#[test]
fn option_values_can_come_from_files() {
    let profile = file("profile.csv", "# ramp\n0s=1k\n5s=2k\n");
    let name = profile.rsplit('/').next().unwrap();
    let plan = profile.beside("from-file.toml", &format!("rate-profile = '@{name}'\n"));
    for arguments in
        [&format!("run --print-plan --rate-profile @{profile}"), &format!("run --print-plan {plan}")]
    {
        let output = ended(arguments);
        assert!(output.out.contains("rate-profile = \"0s=1000/s,5s=2000/s\""), "{arguments:?}");
    }
    let plan = file("missing.toml", "keys = 5\nvalue-size = '@no-such-sizes'\n");
    ended(&format!("run {plan}")).is(2, &[&plan, "value-size", "'@no-such-sizes'", "expected"]);
}

/// What `load` stores for a mix that counts, a run of that mix finds: every counter, too.
#[test]
fn load_stores_counters_for_a_mix_that_counts() {
    let server = Server::reference("");
    let output = ended(&format!("load -s {server} --keys 100 --mix get=1,incr=1 --ttl 1h"));
    assert!(output.out.starts_with("stored       200 of 200 keys in "));
    assert_eq!(server.statistics()["curr_items"], 200);
}

/// What sets store without a preload is removed by the plan that stores it; there is nothing to store of such a plan.
#[test]
fn keys_of_sets_are_removed_by_their_plan() {
    let server = Server::reference("");
    let text = format!("server = 'memcached://{server}'\nkeys = 100\npreload = false\nmix = 'set'\n");
    let plan = file("sets.toml", &text);
    ended(&format!("run {plan} -n 500 --allow=BROKEN,LOAD,CLIENT,DATA,STEADY")).is(0, &[]);
    assert!(server.statistics()["curr_items"] > 0);
    ended(&format!("load --delete {plan}")).is(0, &[]);
    assert_eq!(server.statistics()["curr_items"], 0);
    ended(&format!("load {plan}")).is(2, &["preload = false"]);
}

/// The same plan with the same seeds asks for the same keys in the same order.
#[test]
fn a_seed_repeats_a_run() {
    let server = Server::reference("");
    let flags = "-n 2000 -r 20k --seed 42 --keys 500 --popularity zipf --warmup 0s";
    let counts = |seed_again: &str| {
        let measured = Measured::run(&server, &format!("{flags} {seed_again}"));
        (
            measured.count("plan.seed"),
            measured.count("ops.get.counts.requests.sent"),
            measured.count("counts.phases.measure.bytes.tx"),
        )
    };
    assert_eq!(counts(""), counts(""));
    assert_eq!(counts("").0, 42);
}

#[test]
fn closed_ports_are_unreachable() {
    let free = unserved();
    ended(&format!("run -s {free}")).is(5, &[free, "refused"]);
    ended("run -s no-such-host.invalid").is(5, &["no-such-host.invalid:11211"]);
}

/// A server that speaks another language: counted, quoted, exit 5, no panic.
#[test]
fn garbage_is_quoted() {
    let address = listening(|mut connection, _| {
        if connection.read(&mut [0; 4096]).is_ok() {
            let _ = connection.write_all(b"\x00\xffSSH-2.0-OpenSSH\r\n");
        }
    });
    let flags = "-c 2 -t 300ms --warmup 0s --no-preload --set drain=100ms --protocol=memcached-text";
    let measured = Measured::run(&address, flags);
    assert_eq!(measured.exit, 5);
    assert!(measured.requests("error") > 0);
    assert!(measured.at("events.first_malformed").to_string().contains("SSH-2.0"));
    assert!(measured.text.contains("SSH-2.0") && measured.text.contains("no valid reply"));
    // A preload that is not confirmed.
    ended(&format!("run -s memcached://{address} -c 1")).is(5, &["0 of 100000 keys confirmed", "SSH-2.0"]);
}

/// A server that takes connections and never answers is named long before its requests have timed out again and again.
#[test]
fn silent_servers_are_named() {
    // What is promised is ten seconds; the rest is for a host that others use.
    const NAMED: Duration = Duration::from_secs(30);
    let address = silent();
    side_by_side(["load", "run"], |command| {
        let begun = Instant::now();
        let ended = ended(&format!("{command} -s memcached://{address} --keys 1000"));
        ended.is(5, &[&format!("no reply from {address} to any request for 8s")]);
        assert!(begun.elapsed() < NAMED, "{command} took {:?}", begun.elapsed());
    });
}

/// Ctrl-C drains, reports what was measured, and exits with 130.
#[test]
fn an_interrupt_ends_with_a_report() {
    let server = Server::reference("");
    let child = begin(brunt(&format!("run -s {server} -t 60s --warmup 0s -r 2k -o json:-")));
    // The server's own count says when the schedule runs: more gets than the preload sends, which is none.
    server.await_gets(200);
    // timeout(1) sends its signal twice: to the command, and to the group that the command is in. Two of one kind may come as one.
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::TERM] {
        rustix::process::kill_process(rustix::process::Pid::from_child(&child), signal).unwrap();
    }
    let measured = Measured::of(child);
    assert_eq!(measured.exit, 130);
    assert_eq!(measured.json["window"]["interrupted"], true);
    assert!(measured.requests("completed") > 100);
    assert_eq!(measured.requests("in_flight"), 0, "drained");
    assert!(measured.count("window.duration_ns") < 60_000_000_000);
}

/// Who does not want to wait for replies presses Ctrl-C again.
#[test]
fn a_later_interrupt_ends_at_once() {
    let server = Server::reference("--drop-every 1");
    let run = format!("run -s {server} -t 60s --warmup 0s --timeout 60s --no-preload");
    let mut child = brunt(&run).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    server.await_gets(1);
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT)
            .unwrap();
        std::thread::yield_now();
    }
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    let output = Ended::from(child);
    assert_eq!((output.exit, &*output.out), (130, ""), "no report");
}

/// Without a server the reference server is started, measured, and gone afterwards.
#[test]
fn the_embedded_server_is_measured() {
    let measured = Measured::of(brunt("run -t 500ms --warmup 100ms --keys 1000 -o json:-"));
    measured.check_exit();
    assert!(measured.requests("completed") > 100);
    assert_eq!(measured.count("counts.phases.preload.ops.set"), 1000);
    let server = measured.json["host"]["server"].as_str().unwrap();
    let address = server.rsplit(' ').next().unwrap();
    assert!(std::net::TcpStream::connect(address).is_err(), "the server ended with the run");
}

/// More than the host has room for is refused before anything begins, with the numbers.
#[test]
fn host_limits_are_checked_before_the_run() {
    // The shell lowers the limit for the command alone.
    let limited =
        |files: u32, line: &str| Ended::from(by_shell(&format!("ulimit -n {files} && exec \"$@\""), line));
    let refused = limited(100, "run -s memcached://127.0.0.1:9 -T 1 -c 65");
    refused.is(2, &["--connections 65 exceeds 64: open-file limit 100", "36 of them reserved"]);
    let server = Server::reference("");
    let doctor = limited(100, &format!("doctor -s {server} -T 1 -c 65"));
    assert!(doctor.exit == 1 && doctor.out.contains("fail  open files     101 needed, hard limit 100"));
    limited(100, &format!("doctor -s {server} -T 1 -c 64")).is(0, &[]);
    let doctor = limited(1_000, "doctor -s 127.0.0.1:1");
    let expected = "fail  server         127.0.0.1:1 accepts no connection: Connection refused";
    assert!(doctor.exit == 1 && doctor.out.starts_with(expected) && doctor.out.contains("\nNOT FIT for "));

    // No host has so many ports; 192.0.2.1 is reserved for documentation.
    let churn = "-s memcached://192.0.2.1 --connect-rate 100k --calls-per-connection 1";
    let reasons = ["--connect-rate 100000/s exceeds ", "TIME_WAIT", "local ports", "sysctl"];
    ended(&format!("run {churn}")).is(2, &reasons);
    let doctor = ended(&format!("doctor {churn}"));
    assert!(doctor.exit == 1 && doctor.out.lines().any(|line| line.starts_with("fail  local ports ")));
    let doctor = limited(1_000, "doctor -s no-such-host.invalid");
    let expected = "fail  server         cannot resolve no-such-host.invalid:11211";
    assert!(doctor.exit == 1 && doctor.out.starts_with(expected));
}

/// A command line of `run` with one word changed: the plan is judged, the mistakes are the same, and no result is written.
#[test]
fn doctor_judges_the_command_line_of_a_run() {
    let kept = file("kept.json", "{\"old\": 1}");
    let server = Server::reference("");
    let line = format!("-s {server} -T 1 -c 8 --depth 4 -r 20k --arrival uniform -t 5s");
    let results = format!("-o html:{kept} --assert 'get.p99 < 1ms' --mix get=9,set=1 --until p99=5%");
    let doctor = |flags: &str| ended(&format!("doctor {line} {results} {flags}"));
    let report = doctor("");
    assert_eq!((report.exit, &*report.said), (0, ""));
    assert!(report.out.contains("open files"));
    assert_eq!(kept.text(), "{\"old\": 1}");
    let quiet = doctor("-q");
    assert_eq!((quiet.exit, &*quiet.out), (0, ""));
    let plan = doctor("--print-plan");
    assert!(plan.exit == 0 && plan.out.contains("arrival = \"uniform\""));
    let table = [
        ("--think 1ms", "--think cannot be used with --rate"),
        ("--assert 'incr.p99 < 1ms'", "invalid value 'incr.p99 < 1ms' for --assert: "),
        ("-o /no/such/dir/x.csv", "invalid value '/no/such/dir/x.csv' for -o csv (No such file or directory"),
        ("--between true", "--between 'true' requires --repeat of 2 or more"),
    ];
    for (flags, message) in table {
        doctor(flags).is(2, &[message]);
    }
}

/// What is found is for programs, too: the text then goes to standard error, and the exit code is the same.
#[test]
fn findings_of_doctor_are_written_as_json() {
    let path = file("host.json", "");
    let doctor = |path: &str| ended(&format!("doctor -s 127.0.0.1:1 -o {path}"));
    let shown = doctor(&path);
    let text = &shown.out;
    assert!(shown.exit == 1 && text.contains("\nNOT FIT for 16 connections") && shown.said.is_empty());
    let written = doctor("json:-");
    written.is(1, &["\nNOT FIT for 16 connections"]);
    for found in [&written.out, &path.text()] {
        let found: Value = serde_json::from_str(found).unwrap();
        assert_eq!(
            [&found["schema"], &found["fit"], &found["connections"]],
            [&json!("brunt.doctor.v1"), &json!(false), &json!(16)]
        );
        let findings = found["findings"].as_array().unwrap();
        let of = |check: &str| findings.iter().find(|finding| finding["check"] == check).unwrap();
        assert_eq!(
            *of("server"),
            json!({
                "check": "server",
                "status": "fail",
                "value": "127.0.0.1:1 accepts no connection: Connection refused (os error 111)",
                "fix": "start it, or correct --server"
            })
        );
        let files = of("open files");
        assert_eq!((&files["status"], &files["fix"]), (&json!("ok"), &Value::Null));
        // Each line of the text is one of them.
        let lines =
            text.lines().filter(|line| ["ok ", "care", "fail"].iter().any(|word| line.starts_with(word)));
        assert_eq!(findings.len(), lines.count());
    }
}

/// Progress goes to standard error, in lines of its own where it was asked for, and not at all into a pipe otherwise.
#[test]
fn progress_is_a_line_at_a_time() {
    let server = Server::reference("");
    let said = |flags: &str| {
        let run = format!("-t 1s --think 1ms --warmup 0s --keys 100 -q --allow={ALL}");
        ended(&format!("run -s {server} {run} {flags}"))
    };
    assert_eq!(said("").said, "");
    let shown = said("--progress 200ms");
    let text = &shown.said;
    let lines: Vec<&str> = text.lines().collect();
    let measured = || lines.iter().filter(|line| line.starts_with("brunt: measure "));
    assert!((2..=5).contains(&measured().count()));
    assert!(measured().all(|line| line.contains(" failed 0")));
    assert!(lines.iter().all(|line| line.starts_with("brunt: ")));
    assert!(text.contains("/1.0s [") && text.contains("/s ") && text.contains(" left"));
}

/// A line for every second of the schedule, whose sums are the result's.
#[test]
fn seconds_are_written() {
    let server = Server::reference("");
    let path = file("seconds.csv", "");
    let flags = format!("-t 1500ms -r 2k --keys 50 --warmup 200ms --wait sleep -o {path}");
    let measured = Measured::run(&server, &flags);
    let rows = columns(&path.text(), ["phase", "completed"]);
    let of_phase = |name: &str| rows.iter().filter(|row| row[0] == name).count();
    assert_eq!((of_phase("warmup"), of_phase("measure")), (1, 2));
    let sum: u64 = rows.iter().map(|row| row[1].parse::<u64>().unwrap()).sum();
    let counted = measured.over_phases("requests.completed")
        - measured.count("counts.phases.preload.requests.completed");
    // Those that ended in the drain are in no second: few, unless the host let the end wait.
    assert!(sum <= counted && sum * 10 >= counted * 9, "{sum} of {counted}");
}

/// A request for no reply gets none: that is no server without a valid reply.
#[test]
fn requests_without_replies_are_no_failure() {
    let server = Server::reference("");
    let measured = Measured::run(&server, "--mix set --noreply --no-preload --keys 50 -n 1500 --warmup 0s");
    measured.check_exit();
    assert_eq!(measured.requests("completed") + measured.requests("unacknowledged"), 1_500);
}

/// Raw samples hold the six times of every measured request, in order.
#[test]
fn samples_are_written() {
    let server = Server::reference("");
    let path = file("samples.csv", "");
    let flags = format!("-n 1500 --keys 50 --depth 4 --warmup 0s -o samples:{path}");
    let measured = Measured::run(&server, &flags);
    measured.check_exit();
    let rows = columns(&path.text(), ["intended_ns", "picked_ns", "sent_ns", "first_byte_ns", "done_ns"]);
    assert_eq!(rows.len(), 1_500);
    for row in rows {
        assert!(row.each_ref().map(|time| time.parse::<i64>().unwrap()).is_sorted(), "{row:?}");
    }
}
