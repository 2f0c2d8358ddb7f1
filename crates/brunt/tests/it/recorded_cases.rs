//! Other load generators' command lines: what the real tools were seen to print is what we print, but for the numbers; and
//! data sets that they and we store are the same.

use crate::mutilated::{mutilate, report};
use crate::server::{Directory, Ended, PROGRAM, Server, alone, begin, plain, temporary, words};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The cases that were recorded of a tool. A host that stops a run for a tenth of a second makes a number one digit wider than its
/// column, as it would in the real tool: what fails is tried again, with the machine to itself.
fn check_recorded(folder: &str, options: &str) {
    // Whether tests may run without real servers is asked for in one place.
    let Some(_server) = Server::memcached("") else { return };
    let legacy = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/legacy");
    let (succeeded, text) = shape(&legacy, &format!("--all {folder} -j 8 {options}"));
    let failed: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("FAIL ")).collect();
    assert!(text.ends_with(" failed\n") && succeeded == failed.is_empty() && !text.starts_with("0 passed"));
    if !failed.is_empty() {
        alone();
    }
    for case in failed {
        let again =
            (0..3).map(|_| shape(&legacy, &format!("{case} {options}"))).find(|(succeeded, _)| *succeeded);
        assert!(again.is_some());
    }
}

/// Runs the comparison: did all pass, and what does it say? It takes free ports, which another that runs beside it may have taken since
/// then: it is run again until none has.
fn shape(legacy: &Path, arguments: &str) -> (bool, String) {
    (0..10)
        .map(|_| shape_once(legacy, arguments))
        .find(|(succeeded, text)| *succeeded || !text.contains("Address already in use"))
        .expect("free ports")
}

fn shape_once(legacy: &Path, arguments: &str) -> (bool, String) {
    // Ahead of whatever else wants a processor, where that is allowed.
    let line = format!("shape.py {arguments} --cmd 'nice -n -20 {PROGRAM} {{gen}}'");
    let mut shape = Command::new("python3");
    let ended = Ended::from(shape.current_dir(legacy).args(words(&line)).stdin(Stdio::null()));
    (ended.exit == 0, format!("{}{}", ended.out, ended.said))
}

#[test]
fn recorded_cases_of_mutilate() {
    check_recorded("mutilate", "");
}

#[test]
fn recorded_cases_of_the_second_generation_of_mutilate() {
    check_recorded("mutilate-g2", "");
}

#[test]
fn recorded_cases_of_memaslap() {
    // How many gets and sets there are is known beforehand.
    check_recorded("memaslap", "--strict");
}

#[test]
fn recorded_cases_of_mcperf() {
    // Totals, sizes, types of responses and errors are known beforehand.
    check_recorded("mcperf", "--strict");
}

#[test]
fn recorded_cases_of_rpc_perf() {
    check_recorded("rpc-perf", "");
}

/// The first records' keys as mutilate was seen to store them, for `-K fb_key`.
fn facebook_keys() -> [String; 6] {
    let mut id = 0..;
    [38, 35, 51, 43, 26, 22].map(|len| format!("{:0len$}", id.next().unwrap_or(0)))
}

#[test]
fn mutilate_finds_keys_loaded_by_brunt() {
    let Some(server) = Server::memcached("") else { return };
    let loaded = mutilate(&server, "--loadonly -K fb_key -V fixed:64 -r 6");
    assert_eq!(loaded.out, "");
    for key in facebook_keys() {
        let reply = server.says(&format!("get {key}\r\n"), "END\r\n");
        assert!(reply.starts_with(&format!("VALUE {key} 0 64\r\n")), "{key}: {reply}");
    }
    let counts = server.statistics();
    // Ours above, and none of its own.
    assert_eq!((counts["curr_items"], counts["cmd_set"], counts["cmd_get"]), (6, 6, 6));
    assert_eq!(report(&server, "--loadonly --noload").out, "");
    assert_eq!(server.statistics()["cmd_get"], 6);
}

#[test]
fn brunt_finds_keys_loaded_by_mutilate() {
    let Some(server) = Server::memcached("") else { return };
    // Lengths of values are drawn anew by mutilate, so that none has to be the one that we would give it.
    for (number, key) in facebook_keys().iter().enumerate() {
        let value = "lorem ipsum ".repeat(number * 7);
        server.says(&format!("set {key} 0 0 {}\r\n{value}\r\n", value.len()), "STORED\r\n");
    }
    let run = report(&server, "--noload -K fb_key -V fb_value -r 6 -N 600");
    let text = &run.out;
    assert!(text.contains("\nTotal QPS = ") && text.contains(" (600 / "));
    assert!(text.contains("\nMisses = 0 (0.0%)\n"));
}

#[test]
fn report_columns_match_server_counts() {
    let Some(server) = Server::memcached("") else { return };
    let run = report(&server, "--getset --noload -N 500 -r 100 --prefix p: -q 20000");
    let text = &run.out;
    let stored = server.statistics()["cmd_set"];
    // Every miss is followed by a set, and both count.
    assert!(text.contains(&format!(" ({} / ", 500 + stored)), "{stored} stored");
    assert!(text.contains(&format!("\nMisses = {stored} (")), "{stored} stored");
    assert!(stored >= 90 && server.says("get p:7\r\n", "END\r\n").len() < 10, "keys are padded");
}

/// The latencies that were saved, computed another way, are those of the row.
#[test]
fn rows_are_those_of_the_saved_samples() {
    let Some(server) = Server::memcached("") else { return };
    let path = temporary("samples");
    let run = report(&server, &format!("-q 4000 -u 0.1 -c 4 -d 4 -w 1 -t 1 -r 100 --save {path}"));
    let (text, said) = (&run.out, &run.said);
    let saved = path.text();
    let mut latencies: Vec<f64> =
        saved.lines().map(|line| line.split_once(' ').unwrap().1.parse().unwrap()).collect();
    latencies.sort_by(f64::total_cmp);
    let row: Vec<f64> = text
        .lines()
        .find_map(|line| line.strip_prefix("read"))
        .map_or(Vec::new(), |row| row.split_whitespace().map(|number| number.parse().unwrap()).collect());
    assert!(latencies.len() > 2_000 && row.len() == 8);
    // What had not settled is in the file, and not in the row.
    if said.contains("the rows leave out the first") {
        return;
    }
    let mean = latencies.iter().sum::<f64>() / latencies.len() as f64;
    let at = |part: f64| latencies[(part * latencies.len() as f64).ceil() as usize - 1];
    for (found, expected) in
        [(row[0], mean), (row[2], latencies[0]), (row[3], at(0.05)), (row[5], at(0.9)), (row[7], at(0.99))]
    {
        assert!((found - expected).abs() <= 0.06 + expected * 0.001, "{found}, not {expected}");
    }
}

#[test]
fn misses_are_reported_by_window() {
    let Some(server) = Server::memcached("") else { return };
    // One connection, and a key is missed once: every window of one key after the first has none.
    let run = report(&server, "--getset --noload -N 50 -m 10 -r 1");
    let windows: Vec<&str> =
        run.said.lines().filter_map(|line| line.strip_prefix("note: misswindow ")).collect();
    assert_eq!(windows, ["10,0.1000", "20,0.0000", "30,0.0000", "40,0.0000", "50,0.0000"]);
}

#[test]
fn failed_requests_are_not_reported() {
    let Some(server) = Server::memcached("") else { return };
    let run = report(&server, "--successful --noload -N 300 -r 100");
    let text = &run.out;
    assert!(text.contains("\nTotal QPS = 0.0 (0 / ") && text.contains("\nMisses = 300 (100.0%)\n"));
    let run = report(&server, "--successful -N 300 -r 100");
    let text = &run.out;
    assert!(text.contains(" (300 / ") && text.contains("\nMisses = 0 (0.0%)\n"));
}

#[test]
fn symlinks_select_the_tool() {
    let directory = Directory::new();
    for (name, argument, code, said) in [
        ("mutilate", "--version", 0, "mutilate 0.1\n"),
        ("mutilate-g2", "-h", 0, "brunt mutilate: takes the command line"),
        ("mutilate", "-loadonly", 1, "mutilate: invalid value 'oadonly' for --lambda_mul"),
        ("mutilate", "-a", 1, "mutilate: -a needs a value"),
        ("memaslap", "-V", 0, "memaslap v1.0\n"),
        ("rpc-perf", "--version", 0, "rpc-perf 2.1.0-pre\n"),
        ("memcaslap", "--bogus", 1, "memaslap: '--bogus' is no option; --help lists them"),
        ("mcperf", "-V", 0, "This is mcperf-0.1.1\r\n\n"),
        (
            "mcperf",
            "--noload",
            1,
            "mcperf: '--noload' is no option; --help lists them; it is one of memcache-perf,",
        ),
    ] {
        let link = directory.join(name);
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(PROGRAM, &link).unwrap();
        let output = Ended::from(Command::new(&link).arg(argument).stdin(Stdio::null()));
        let text = format!("{}{}", output.out, output.said);
        assert!(output.exit == code && text.starts_with(said), "{name} {argument}");
    }
}

/// The list is taken as it is: thread i loads server i mod N.
#[test]
fn servers_named_twice_get_twice_the_load() {
    let (Some(first), Some(second)) = (Server::memcached(""), Server::memcached("")) else { return };
    for (servers, options, expected) in [
        ("aab", "-T 3 -c 3 -x 300", (200, 100)),
        ("aab", "-T 2 -c 2 -x 300", (300, 0)),
        ("ab", "-T 3 -c 3 -x 300", (200, 100)),
        ("aa", "-T 2 -c 2 -x 300", (300, 0)),
    ] {
        let address = |letter: char| if letter == 'a' { &first.address } else { &second.address };
        let list: Vec<String> = servers.chars().map(|letter| address(letter).to_string()).collect();
        let operations = |server: &Server| {
            let counts = server.statistics();
            counts["cmd_get"] + counts["cmd_set"]
        };
        let before = (operations(&first), operations(&second));
        let ended = Ended::from(memaslap(&first, &format!("{options} -s {}", list.join(","))));
        let loaded = (operations(&first) - before.0, operations(&second) - before.1);
        assert_eq!((ended.exit, loaded), (0, expected), "{servers} {options}");
    }
}

/// A memcached closes the connections that are too many for it, with a line that was not asked for.
#[test]
fn reasons_of_lost_connections_are_reported() {
    let Some(server) = Server::memcached("-c 20") else { return };
    let ended = Ended::from(memaslap(&server, "-c 4 -n 20 -t 1s"));
    let said = &ended.said;
    assert!(said.contains(" connections were lost and stayed away\n"));
    // An error where a request was out, and else no reply.
    let sent = said.lines().find(|line| line.starts_with("warning: a server sent "));
    assert!(sent.is_some_and(|line| line.contains("Too many open connections")));
}

/// As after `| head -1`: a reader that reads no more has read enough.
#[test]
fn closed_pipes_end_a_run_quietly() {
    let Some(server) = Server::memcached("") else { return };
    let mut running = begin(memaslap(&server, "-t 20s -S 1s -c 1 -P 1k --seed 1"));
    let mut line = String::new();
    let mut out = BufReader::new(running.stdout.take().unwrap());
    out.read_line(&mut line).unwrap();
    drop(out);
    let began = Instant::now();
    let ended = Ended::from(running);
    assert_eq!(line, format!("servers: {server}\n"));
    let said = &ended.said;
    // The real memaslap leaves a file in the home directory of the user who runs it.
    let other = said.lines().find(|line| !line.starts_with("note: sizes and shares are those of "));
    assert_eq!((ended.exit, other), (0, None));
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
}

#[test]
fn output_errors_are_reported_once() {
    let Some(server) = Server::memcached("") else { return };
    for (options, name, code) in [
        ("memaslap -t 20s -S 1s", "memaslap", 1),
        ("memaslap -h", "memaslap", 1),
        ("mutilate --version", "mutilate", 1),
        ("mutilate -t 1 -r 100", "mutilate", 255),
    ] {
        let (tool, options) = options.split_once(' ').unwrap();
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = tool_of(tool, &server, options);
        let ended = Ended::from(command.stdout(full));
        let lost = ended.said.lines().filter(|line| line.contains("standard output")).collect::<Vec<_>>();
        let expected = format!("{name}: cannot write standard output: No space left on device (os error 28)");
        assert_eq!((ended.exit, lost), (code, vec![expected.as_str()]));
    }
}

fn memaslap(server: &Server, options: &str) -> Command {
    tool_of("memaslap", server, options)
}

fn tool_of(tool: &str, server: &Server, options: &str) -> Command {
    plain(&format!("{tool} -s {server} {options}"))
}

/// Where no request has a valid reply nothing was measured, and what came instead is told.
#[test]
fn servers_of_another_kind_are_an_error() {
    let Some(server) = Server::memcached("") else { return };
    let output = mutilate(&server, "--redis --noload -t 1");
    assert_eq!((output.exit, &*output.out), (255, ""));
    let told = format!("mutilate: {server} gave no valid reply to any request; of what came: ");
    assert!(output.said.contains(&told));
}
