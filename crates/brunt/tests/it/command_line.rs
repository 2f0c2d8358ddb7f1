//! What a user types wrong, and what the shell sees: messages, exit codes, plans that print and read back.

use crate::measured::Measured;
use crate::server::{Server, beside_others, brunt, file, no_state};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Exit code and stderr of a command.
fn ended(arguments: &[&str]) -> (i32, String) {
    let output = brunt(arguments).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

/// A run that comes to nothing leaves the results of an earlier one as they were, and no empty files.
#[test]
fn a_run_without_a_result_leaves_nothing() {
    let _beside = beside_others();
    let (earlier, fresh) = (file("earlier.json", "{\"old\": 1}"), file("fresh.csv", ""));
    std::fs::remove_file(&fresh).unwrap();
    // A port on which no server listens: it was ours a moment ago.
    let unserved = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().to_string();
    let (code, error) = ended(&["run", "-s", &unserved, "-o", &earlier, "-o", &fresh]);
    assert_eq!(code, 5, "{error}");
    assert_eq!(std::fs::read_to_string(&earlier).unwrap(), "{\"old\": 1}");
    assert!(!std::path::Path::new(&fresh).exists());
}

/// Every message names the option, what was given and what is accepted; the exit code is 2, before any connection.
#[test]
#[allow(clippy::too_many_lines, reason = "a table of cases")]
fn usage_errors_are_named() {
    let _beside = beside_others();
    // A command line, and parts of what is said of it.
    let table = "
run --rate fast => --rate:  | 'fast' | 200k
run -r 0 => --rate:  | '0' | above 0
run -t 10 => --time:  | '10' | 10s
run --interval 0s => --interval | '0s' | a multiple of 100ms | 500ms
run --interval 50ms => --interval | '50ms' | a multiple of 100ms
run --interval 150ms => --interval | '150ms' | a multiple of 100ms
run --value-size uniform:9,1 => --value-size | 'uniform:9,1' | MIN 9 exceeds MAX 1
run --popularity zipf:0 => --popularity | 'zipf:0' | above 0
run --mix get=1,fetch=2 => --mix | fetch=2 | get, gets, mget, set
run -s cache:99999 => --server | 'cache:99999' | HOST[:PORT]
run -s http://cache => --server | 'http://cache' | memcached://
run -s redis://me:pw@cache:0 => --server | 'redis://(secret)@cache:0' | rediss://
run --arrival bursty -r 5 => --arrival | 'bursty' | poisson, uniform, mmpp:PEAK,BURST,DUTY
run --arrival uniform => --arrival | --rate
run -r 5 --think 1ms => --think cannot be used with --rate
run -c 0 => --connections | '0' | from 1 to
run -T 40 -c 3 => --threads | '40' | 1 to 3
run --key-size 3 --keys 1M => --key-size | 'fixed:3' | sizes from 6
run --set key-form=octal => --set | 'key-form=octal' | decimal, hex8, random
run --set key-form=random --key-size 2 => --key-size | 'fixed:2' | sizes from 3
run --set key-form=hex8 --keys 5G => key-form hex8 requires | 4294967296 keys
run --prefix 'a b' => --prefix | 'a b' | printable
run --multiget 5 => --multiget requires mget
run --protocol http => --protocol | 'http' | memcached-text, memcached-meta, memcached-binary, resp2
run --protocol resp3 --password x => --password requires --server
run --protocol resp2 -s a --command 'GET {kay}' => --command | '{kay}' | {key}, {value}
run --protocol resp2 -s a --password @/no/such => --password | /no/such
run --set meter=speed => --set | 'meter=speed' | oversleep
run --set samples-max=5 => samples-max = 5 requires -o samples:PATH
run --rato 5 => --rato | --rate
run /no/such/plan.toml => /no/such/plan.toml | No such file
load => load | --server
serve --service slow => --service | 'slow' | exp
run --rate -5 => --rate:  | '-5'
run -o /no/such/dir/x.json => -o | /no/such/dir/x.json | can be written
run -o /no/such/dir/x.csv => -o | /no/such/dir/x.csv | can be written
run -o csv:- -o json:- => -o csv, -o json | '-' | one of them
run --ttl -1s => --ttl | '-1s' | 10s
run --drift -1/1s => --drift | '-1/1s' | KEYS/DURATION
run --connect-rate 0 => --connect-rate | '0' | per second above 0
run --set call-rate=0 => --set | 'call-rate=0' | per second above 0
run --set call-arrival=poisson => call-arrival requires call-rate
run --set call-rate=5 -r 5 => --rate cannot be used with call-rate
run --set call-rate=5 --reconnect-every 1s => --reconnect-every cannot be used with call-rate
run --set call-rate=5 -s a -s b => call-rate cannot be used with --placement by key on several servers
run --set connect-arrival=poisson => connect-arrival requires --connect-rate
run --connect-rate 5 --set connect-arrival=bursty => --set | 'connect-arrival=bursty' | poisson, uniform, mmpp:PEAK,BURST,DUTY
run --value-size 100MiB --keys 1M => --value-size | MiB | --server
serve --drop-every 0 => --drop-every | '0' | above 0
serve --stall 5s => --stall | '5s' | AT:FOR
run --value-size @/no/such/sizes => --value-size | '@/no/such/sizes' | cannot read | expected
run --rate-profile @/no/such/profile => --rate-profile | /no/such/profile | expected
serve --outage 5s => --outage | '5s' | AT:FOR
serve --drip 0:5 => --drip | '0:5' | BYTES:US
serve --cpus none => --cpus | 'none' | 0-3,5
serve --cpus 8000 => --cpus | '8000' | processors
run --progress 1ms => --progress | '1ms' | 100ms
run --progress 1s --progress=none => --progress | multiple times
run --progress=tui => --progress tui: standard error is not a terminal | --progress 1s | --http 9090
run --assert 'p98 < 1ms' => --assert | 'p98 < 1ms' | p98 is not reported | --percentiles
run --assert p99<0ms => --assert | invalid bound '0ms' for p99 | above 0
search --assert 'p99 < 0ms' => --assert | invalid bound '0ms' for p99 | above 0
run --assert 'p99 < 1' => --assert | invalid bound '1' for p99 | 1ms
run --assert 'mget.p99 < 1ms' => --assert | 'mget.p99 < 1ms' | 'mget' is not sent | get, set
run --assert 'set.hit > 1%' => --assert | 'set.hit > 1%' | only get, gets and mget
run --allow EMPTY => invalid value 'EMPTY' for --allow: expected BROKEN,  | LOAD
search --assert 'p99 < 1ms' --allow LOAD, => invalid value '' for --allow: expected 
run -o /no/such/dir/x.xml => -o | /no/such/dir/x.xml | can be written
calibrate -s cache:11211 => --server and --agent cannot be used with calibrate
calibrate --assert 'p99 < 1ms' => --assert cannot be used with | client.p99 <= 10us
calibrate -T 40 -c 3 => --threads | '40' | 1 to 3
calibrate -o json:/no/such/dir/x => /no/such/dir/x | for -o json | can be written
scan --over keys=1,2 => --over | 'keys' cannot be swept | rate, connections, depth
scan --over rate=10k,fast => --over | 'fast' in rate | 200k
scan --over rate=10k..5k:1k => --over | '10k..5k:1k' | upwards
scan --over rate=1k -r 5k => --rate | cannot be used with --over rate
scan -r 1k,2k => --rate | '1k,2k' | 200k | --over rate=1k,2k
scan -c 1,4,16 => --connections | '1,4,16' | --over connections=1,4,16
scan --depth 1..8:1 => --depth | '1..8:1' | --over depth=1..8:1
scan --think 1ms => --over at rate= | --think | open loop
scan --over depth=1 --arrival uniform => --over at depth=1 | --arrival | --rate
scan --over value-size=1GiB => --over at value-size=1GiB | --value-size fixed:1073741824 exceeds 128MiB
scan -o samples:x.csv => -o samples | , not of a scan
scan --assert 'p99 < 1ms' => --assert | one plan
run --repeat 2 -o x.hlog => -o hlog | , not of repeated runs
man nosuch => invalid value 'nosuch' for COMMAND: expected run, scan, 
man --dir /proc/x => invalid value '/proc/x' for --dir (
man run --dir x => cannot be used with '--dir
completions tcsh => invalid value 'tcsh' | bash, zsh, fish
load -o x.hlog => unexpected argument '-o'
search --assert p99<1ms -o x.xml => -o junit | , not of a scan or search
run --repeat 2 --set samples-max=5 => samples-max | one run
run --repeat 0 => invalid value '0' for --repeat: expected a whole number from 1 to 100
run --between true => --between | 'true' | --repeat
search => --assert
search --assert 'p98 < 1ms' => --assert | p98 is not reported | p99.9
search --assert 'rate > 5k' => --assert | 'rate > 5000/s' | upper bound on a percentile
search --assert mget.p99<1ms => --assert | 'mget.p99 < 1ms' | 'mget' is not sent | get, set
search --assert p99<1ms --until p99=2% => 'p99=2%' for --until: expected max alone, as in max=30s | as long as its objectives take
search --assert p99<1ms -n 1000 => --requests cannot be used with search | --time
search --assert p99<1ms -t 9s --until max=5s => --until | max=5s | --time, 9s
search --assert p99<1ms -r 5k => --rate | --from and --to
search --assert p99<1ms --from 9k --to 5k => --to | '5000/s' | --from, 9000/s
search --assert p99<1ms --from x => --from | 'x' | 200k
search --assert p99<1ms --resolution 0 => --resolution | '0' | 0.1% to 50%
compare => 0 results given | A.json B.json | --live A B
compare /no/a.json /no/b.json => /no/a.json | cannot read | expected
compare a.json b.json --rate 5 => --rate requires --live
compare --a a.json => --b
compare a.json b.json -o json:- -o junit:- => -o json, -o junit | '-' | standard output for one of them
compare --live h:1 => --live | 2 values
compare --live h:1 h:2 -s h:3 => --server | cannot be used with --live
compare --live h:1 h:2 --repeat 0 => --repeat | '0'
compare --live h:1 h:2 --assert 'p99 <= 5%' => --assert | invalid bound '5%' for p99 | such as 1ms | +5%
compare --live memcached://h:1 memcached://h:2 --assert 'mget.p99 <= +5%' => --assert | 'mget' is not sent
agent --listen here => invalid value 'here' for --listen: expected ADDRESS:PORT
serve --port 70000 => invalid value '70000' for --port: expected a whole number from 0 to 65535
run -s 127.0.0.1:1 -o curve:x.svg => -o curve | curve is of a scan or search, not of a run
run -s 127.0.0.1:1 --assert 'mget.p99 < 1ms' => --assert | 'mget' is not sent
run -s 127.0.0.1:1 --until max=30s => --until
run --agent 127.0.0.1:1 --agent 127.0.0.1:2 -T 1 => --threads is below the number of agents: expected at least 2
run --auth /no/such/folder => --auth requires --agent
scan -s 127.0.0.1:1 --over depth=1 --arrival uniform => --over at depth=1 | --arrival | --rate
search -s 127.0.0.1:1 --assert p99<1ms -n 5 => --requests cannot be used with search
search -s 127.0.0.1:1 --assert p99<1ms -r 5 => --rate | --from and --to
search -s 127.0.0.1:1 --assert p99<1ms --until p99=2%,max=2s => --until: expected max alone
search -s 127.0.0.1:1 --assert mget.p99<1ms => --assert | 'mget' is not sent
calibrate -n 5 => --requests cannot be used with calibrate
load -s 127.0.0.1:1 --delete --prefix '' => --delete requires --prefix
compare --live 127.0.0.1:1 127.0.0.1:1 -o x.hlog => -o hlog | , not of a comparison
compare --live 127.0.0.1:1 127.0.0.1:1 --assert 'mget.p99 <= +5%' => --assert | 'mget' is not sent
compare --live h:1 h:2 --set agent=h => --agent cannot be used with this command
run --repeat 3 -o x.svg => -o svg | repeated runs have no chart: expected json, html
brew => brew";
    let rows = table.trim().lines().map(|row| row.split_once(" => ").unwrap());
    for (line, parts) in rows {
        // Blanks part words, but within quotes.
        let pieces = line.split('\'').enumerate();
        let arguments = pieces.flat_map(|(index, piece)| match index % 2 {
            0 => piece.split_whitespace().collect(),
            _ => vec![piece],
        });
        let (exit, message) = ended(&arguments.collect::<Vec<_>>());
        assert_eq!(exit, 2, "{line}: {message}");
        for part in parts.split(" | ") {
            assert!(message.contains(part), "{line} does not say {part:?}: {message}");
        }
    }
}

#[test]
fn plan_errors_have_line_and_column() {
    let _beside = beside_others();
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
        let (exit, message) = ended(&["run", &path]);
        assert_eq!(exit, 2, "{message}");
        assert!(message.contains(&path), "{message}");
        words.iter().for_each(|word| assert!(message.contains(word), "{message}"));
    }
    let two = file("two.toml", "[[class]]\nname='a'\n[[class]]\nname='b'\n");
    let (exit, message) = ended(&["run", &two, "--rate", "5"]);
    assert_eq!(exit, 2);
    assert!(message.contains("--rate") && message.contains("[[class]]"), "{message}");
}

/// A printed plan runs the same again, and prints the same again.
#[test]
fn printed_plans_can_be_run() {
    let _beside = beside_others();
    let printed = |arguments: &[&str]| {
        let output = brunt(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let flags = [
        "run",
        "--print-plan",
        "-r",
        "1.5k",
        "-s",
        "[::1]:7000",
        "--popularity",
        "zipf",
        "-n",
        "10k",
        "--seed",
        "7",
    ];
    let first = printed(&flags);
    assert!(first.contains("rate = \"1500/s\"") && first.contains("server = [\"[::1]:7000\"]"), "{first}");
    let path = file("printed.toml", &first);
    assert_eq!(printed(&["run", "--print-plan", &path]), first);
    // Flags win over the file.
    assert!(printed(&["run", "--print-plan", &path, "-r", "7"]).contains("rate = \"7/s\""));
}

/// `@FILE` beside a flag is relative to where we are, in a plan to where the plan is; the printed plan holds what the
/// file said.
#[test]
fn option_values_can_come_from_files() {
    let _beside = beside_others();
    let profile = file("profile.csv", "# ramp\n0s=1k\n5s=2k\n");
    let name = profile.rsplit('/').next().unwrap();
    let plan = file("from-file.toml", &format!("rate-profile = '@{name}'\n"));
    for arguments in [
        &["run", "--print-plan", "--rate-profile", &format!("@{profile}")][..],
        &["run", "--print-plan", &plan],
    ] {
        let output = brunt(arguments).output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert!(printed.contains("rate-profile = \"0s=1000/s,5s=2000/s\""), "{arguments:?}: {printed}");
    }
    let plan = file("missing.toml", "keys = 5\nvalue-size = '@no-such-sizes'\n");
    let (exit, message) = ended(&["run", &plan]);
    assert_eq!(exit, 2, "{message}");
    for word in [plan.as_str(), "value-size", "'@no-such-sizes'", "expected"] {
        assert!(message.contains(word), "{message}");
    }
}

/// What `load` stores for a mix that counts, a run of that mix finds: every counter, too.
#[test]
fn load_stores_counters_for_a_mix_that_counts() {
    let _beside = beside_others();
    let server = Server::reference(&[]);
    let output =
        brunt(&["load", "-s", &server.address, "--keys", "100", "--mix", "get=1,incr=1", "--ttl", "1h"])
            .output()
            .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.starts_with("stored       200 of 200 keys in "),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(server.statistics()["curr_items"], 200);
}

/// The same plan with the same seeds asks for the same keys in the same order.
#[test]
fn a_seed_repeats_a_run() {
    let _beside = beside_others();
    let server = Server::reference(&[]);
    let flags = [
        "-n",
        "2000",
        "-r",
        "20k",
        "--seed",
        "42",
        "--keys",
        "500",
        "--popularity",
        "zipf",
        "--warmup",
        "0s",
    ];
    let counts = |seed_again: &[&str]| {
        let measured = Measured::run(&server.address, &[&flags[..], seed_again].concat());
        (
            measured.count("plan.seed"),
            measured.count("ops.get.counts.requests.sent"),
            measured.count("counts.phases.measure.bytes.tx"),
        )
    };
    assert_eq!(counts(&[]), counts(&[]));
    assert_eq!(counts(&[]).0, 42);
}

#[test]
fn closed_ports_are_unreachable() {
    let _beside = beside_others();
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().to_string();
    let (exit, message) = ended(&["run", "-s", &free]);
    assert_eq!(exit, 5);
    assert!(message.contains(&free) && message.contains("refused"), "{message}");
    let (exit, message) = ended(&["run", "-s", "no-such-host.invalid"]);
    assert_eq!(exit, 5);
    assert!(message.contains("no-such-host.invalid:11211"), "{message}");
}

/// A server that speaks another language: counted, quoted, exit 5, no panic.
#[test]
fn garbage_is_quoted() {
    let _beside = beside_others();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let mut bytes = [0; 4096];
            if connection.read(&mut bytes).is_ok() {
                let _ = connection.write_all(b"\x00\xffSSH-2.0-OpenSSH\r\n");
            }
        }
    });
    let measured = Measured::run(
        &address,
        &[
            "-c",
            "2",
            "-t",
            "300ms",
            "--warmup",
            "0s",
            "--no-preload",
            "--set",
            "drain=100ms",
            "--protocol=memcached-text",
        ],
    );
    assert_eq!(measured.exit, 5, "{}", measured.text);
    measured.check_request_counts();
    assert!(measured.count("counts.requests.error") > 0);
    assert!(
        measured.json["events"]["first_malformed"].to_string().contains("SSH-2.0"),
        "{}",
        measured.json["events"]["first_malformed"]
    );
    assert!(
        measured.text.contains("SSH-2.0") && measured.text.contains("no valid reply"),
        "{}",
        measured.text
    );
    let (exit, message) = ended(&["run", "-s", &format!("memcached://{address}"), "-c", "1"]);
    assert_eq!(exit, 5, "a preload that is not confirmed");
    assert!(message.contains("0 of 100000 keys stored") && message.contains("SSH-2.0"), "{message}");
}

/// A server that takes connections and never answers is named long before its requests have timed out again and again.
#[test]
fn silent_servers_are_named() {
    // What is promised is ten seconds; the rest is for a host that others use.
    const NAMED: Duration = Duration::from_secs(30);
    let _beside = beside_others();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || listener.incoming().collect::<Vec<_>>());
    std::thread::scope(|scope| {
        for command in ["load", "run"] {
            let address = &address;
            scope.spawn(move || {
                let begun = Instant::now();
                let (exit, message) =
                    ended(&[command, "-s", &format!("memcached://{address}"), "--keys", "1000"]);
                let expected = format!("no reply from {address} to any request for 8s");
                assert!(exit == 5 && message.contains(&expected), "{exit} {message}");
                assert!(begun.elapsed() < NAMED, "{command} took {:?}", begun.elapsed());
            });
        }
    });
}

/// Ctrl-C drains, reports what was measured, and exits with 130.
#[test]
fn an_interrupt_ends_with_a_report() {
    let _beside = beside_others();
    let server = Server::reference(&[]);
    let mut child =
        brunt(&["run", "-s", &server.address, "-t", "60s", "--warmup", "0s", "-r", "2k", "-o", "json:-"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
    // The server's own count says when the schedule runs: more gets than the preload sends, which is none.
    while server.statistics()["cmd_get"] < 200 {
        std::thread::yield_now();
    }
    // timeout(1) sends its signal twice: to the command, and to the group that the command is in. Two of one kind may come as one.
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::TERM] {
        rustix::process::kill_process(rustix::process::Pid::from_child(&child), signal).unwrap();
    }
    let (mut json, mut text) = (Vec::new(), Vec::new());
    child.stdout.take().unwrap().read_to_end(&mut json).unwrap();
    child.stderr.take().unwrap().read_to_end(&mut text).unwrap();
    let status = child.wait().unwrap();
    let measured = Measured::of(&std::process::Output { status, stdout: json, stderr: text });
    assert_eq!(measured.exit, 130, "{}", measured.text);
    measured.check_request_counts();
    assert_eq!(measured.json["window"]["interrupted"], true);
    assert!(measured.count("counts.requests.completed") > 100);
    assert_eq!(measured.count("counts.requests.in_flight"), 0, "drained");
    assert!(measured.count("window.duration_ns") < 60_000_000_000);
}

/// Who does not want to wait for replies presses Ctrl-C again.
#[test]
fn a_later_interrupt_ends_at_once() {
    let _beside = beside_others();
    let server = Server::reference(&["--drop-every", "1"]);
    let run =
        ["run", "-s", &server.address, "-t", "60s", "--warmup", "0s", "--timeout", "60s", "--no-preload"];
    let mut child = brunt(&run).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    server.await_gets(1);
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT)
            .unwrap();
        std::thread::yield_now();
    }
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(130), 0), "no report");
}

/// Without a server the reference server is started, measured, and gone afterwards.
#[test]
fn the_embedded_server_is_measured() {
    let _beside = beside_others();
    let output = brunt(&["run", "-t", "500ms", "--warmup", "100ms", "--keys", "1000", "-o", "json:-"])
        .output()
        .unwrap();
    let measured = Measured::of(&output);
    measured.check_exit();
    measured.check_request_counts();
    assert!(measured.count("counts.requests.completed") > 100);
    assert_eq!(measured.count("counts.phases.preload.ops.set"), 1000);
    let server = measured.json["host"]["server"].as_str().unwrap();
    let address = server.rsplit(' ').next().unwrap();
    assert!(std::net::TcpStream::connect(address).is_err(), "the server ended with the run");
}

/// More than the host has room for is refused before anything begins, with the numbers.
#[test]
fn host_limits_are_checked_before_the_run() {
    let _beside = beside_others();
    // The shell lowers the limit for the command alone.
    let limited = |files: u32, arguments: &[&str]| {
        let script = format!("ulimit -n {files} && exec \"$0\" \"$@\"");
        let mut shell = std::process::Command::new("sh");
        let output = shell
            .args(["-c", &script, env!("CARGO_BIN_EXE_brunt")])
            .args(arguments)
            .env("XDG_STATE_HOME", no_state())
            .output()
            .unwrap();
        (
            output.status.code().unwrap(),
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (exit, _, message) = limited(100, &["run", "-s", "memcached://127.0.0.1:9", "-T", "1", "-c", "65"]);
    assert_eq!(exit, 2, "{message}");
    assert!(message.contains("--connections 65 exceeds 64: open-file limit 100"), "{message}");
    assert!(message.contains("36 of them reserved"), "{message}");
    let server = Server::reference(&[]);
    let (exit, report, _) = limited(100, &["doctor", "-s", &server.address, "-T", "1", "-c", "65"]);
    assert_eq!(exit, 1, "{report}");
    assert!(report.contains("fail  open files     101 needed, hard limit 100"), "{report}");
    let (exit, report, _) = limited(100, &["doctor", "-s", &server.address, "-T", "1", "-c", "64"]);
    assert_eq!(exit, 0, "{report}");
    let (exit, report, _) = limited(1_000, &["doctor", "-s", "127.0.0.1:1"]);
    assert_eq!(exit, 1, "{report}");
    let expected = "fail  server         127.0.0.1:1 accepts no connection: Connection refused";
    assert!(report.starts_with(expected) && report.contains("\nNOT FIT for "), "{report}");

    // No host has so many ports; 192.0.2.1 is reserved for documentation.
    let churn = ["-s", "memcached://192.0.2.1", "--connect-rate", "100k", "--calls-per-connection", "1"];
    let (exit, message) = ended(&[&["run"], &churn[..]].concat());
    assert_eq!(exit, 2, "{message}");
    for word in ["--connect-rate 100000/s exceeds ", "TIME_WAIT", "local ports", "sysctl"] {
        assert!(message.contains(word), "{message}");
    }
    let output = brunt(&[&["doctor"], &churn[..]].concat()).output().unwrap();
    let report = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{report}");
    assert!(report.lines().any(|line| line.starts_with("fail  local ports ")), "{report}");
    let (exit, report, _) = limited(1_000, &["doctor", "-s", "no-such-host.invalid"]);
    assert_eq!(exit, 1, "{report}");
    assert!(report.starts_with("fail  server         cannot resolve no-such-host.invalid:11211"), "{report}");
}

/// A command line of `run` with one word changed: the plan is judged, the mistakes are the same, and no result is written.
#[test]
fn doctor_judges_the_command_line_of_a_run() {
    let _beside = beside_others();
    let kept = file("kept.json", "{\"old\": 1}");
    let server = Server::reference(&[]);
    let line = [
        "-s",
        &server.address,
        "-T",
        "1",
        "-c",
        "8",
        "--depth",
        "4",
        "-r",
        "20k",
        "--arrival",
        "uniform",
        "-t",
        "5s",
    ];
    let kept_page = format!("html:{kept}");
    let results =
        ["-o", &kept_page, "--assert", "get.p99 < 1ms", "--mix", "get=9,set=1", "--until", "p99=5%"];
    let doctor = |flags: &[&str]| {
        let output = brunt(&[&["doctor"], &line[..], &results, flags].concat()).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    };
    let (exit, report, error) = doctor(&[]);
    assert_eq!((exit, error.as_str()), (0, ""), "{report}");
    assert!(report.contains("open files"), "{report}");
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), "{\"old\": 1}");
    let (exit, quiet, _) = doctor(&["-q"]);
    assert_eq!((exit, quiet.as_str()), (0, ""));
    let (exit, plan, _) = doctor(&["--print-plan"]);
    assert!(exit == 0 && plan.contains("arrival = \"uniform\""), "{plan}");
    let table: [(&[&str], &str); 4] = [
        (&["--think", "1ms"], "--think cannot be used with --rate"),
        (&["--assert", "incr.p99 < 1ms"], "invalid value 'incr.p99 < 1ms' for --assert: "),
        (
            &["-o", "/no/such/dir/x.csv"],
            "invalid value '/no/such/dir/x.csv' for -o csv (No such file or directory",
        ),
        (&["--between", "true"], "--between 'true' requires --repeat of 2 or more"),
    ];
    for (flags, message) in table {
        let (exit, _, error) = doctor(flags);
        assert_eq!(exit, 2, "{flags:?}: {error}");
        assert!(error.contains(message), "{flags:?}: {error}");
    }
}

/// What is found is for programs, too: the text then goes to standard error, and the exit code is the same.
#[test]
fn findings_of_doctor_are_written_as_json() {
    let _beside = beside_others();
    let path = file("host.json", "");
    let doctor = |path: &str| {
        let output = brunt(&["doctor", "-s", "127.0.0.1:1", "-o", path]).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    };
    let (exit, text, error) = doctor(&path);
    assert!(exit == 1 && text.contains("\nNOT FIT for 16 connections") && error.is_empty(), "{text}{error}");
    let (exit, json, report) = doctor("json:-");
    assert!(exit == 1 && report.contains("\nNOT FIT for 16 connections"), "{report}");
    for found in [json, std::fs::read_to_string(&path).unwrap()] {
        let found: Value = serde_json::from_str(&found).unwrap();
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
        assert_eq!(findings.len(), lines.count(), "{text}");
    }
}

/// Progress goes to standard error, in lines of its own where it was asked for, and not at all into a pipe otherwise.
#[test]
fn progress_is_a_line_at_a_time() {
    let _beside = beside_others();
    let server = Server::reference(&[]);
    let said = |flags: &[&str]| {
        let run = [
            "run",
            "-s",
            &server.address,
            "-t",
            "1s",
            "--think",
            "1ms",
            "--warmup",
            "0s",
            "--keys",
            "100",
            "-q",
            "--allow=BROKEN,LOAD,CLIENT,DATA",
        ];
        String::from_utf8(brunt(&run).args(flags).output().unwrap().stderr).unwrap()
    };
    assert_eq!(said(&[]), "");
    let text = said(&["--progress", "200ms"]);
    let lines: Vec<&str> = text.lines().collect();
    let measured = || lines.iter().filter(|line| line.starts_with("brunt: measure "));
    assert!((2..=5).contains(&measured().count()), "{text}");
    assert!(measured().all(|line| line.contains(" failed 0")), "{text}");
    assert!(lines.iter().all(|line| line.starts_with("brunt: ")), "{text}");
    assert!(text.contains("/1.0s [") && text.contains("/s ") && text.contains(" left"), "{text}");
}

/// A line for every second of the schedule, whose sums are the result's.
#[test]
fn seconds_are_written() {
    let _beside = beside_others();
    let server = Server::reference(&[]);
    let path = file("seconds.csv", "");
    let flags =
        ["-t", "1500ms", "-r", "2k", "--keys", "50", "--warmup", "200ms", "--wait", "sleep", "-o", &path];
    let measured = Measured::run(&server.address, &flags);
    let text = std::fs::read_to_string(&path).unwrap();
    let rows: Vec<Vec<&str>> =
        text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(',').collect()).collect();
    let column = |name: &str| rows[0].iter().position(|heading| *heading == name).unwrap();
    let (phase, completed) = (column("phase"), column("completed"));
    let of_phase = |name: &str| rows[1..].iter().filter(|row| row[phase] == name).collect::<Vec<_>>();
    assert_eq!((of_phase("warmup").len(), of_phase("measure").len()), (1, 2), "{text}");
    let sum: u64 = rows[1..].iter().map(|row| row[completed].parse::<u64>().unwrap()).sum();
    let counted = measured.over_phases("requests.completed")
        - measured.count("counts.phases.preload.requests.completed");
    // Those that ended in the drain are in no second: few, unless the host let the end wait.
    assert!(sum <= counted && sum * 10 >= counted * 9, "{sum} of {counted}: {text}");
}

/// A request for no reply gets none: that is no server without a valid reply.
#[test]
fn requests_without_replies_are_no_failure() {
    let _beside = beside_others();
    let server = Server::reference(&[]);
    let flags = ["--mix", "set", "--noreply", "--no-preload", "--keys", "50", "-n", "1500", "--warmup", "0s"];
    let measured = Measured::run(&server.address, &flags);
    measured.check_exit();
    measured.check_request_counts();
    assert_eq!(
        measured.count("counts.requests.completed") + measured.count("counts.requests.unacknowledged"),
        1_500
    );
}

/// Raw samples hold the six times of every measured request, in order.
#[test]
fn samples_are_written() {
    let _beside = beside_others();
    let server = Server::reference(&[]);
    let path = file("samples.csv", "");
    let samples = format!("samples:{path}");
    let measured = Measured::run(
        &server.address,
        &["-n", "1500", "--keys", "50", "--depth", "4", "--warmup", "0s", "-o", &samples],
    );
    measured.check_exit();
    let text = std::fs::read_to_string(&path).unwrap();
    let rows: Vec<Vec<&str>> =
        text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(',').collect()).collect();
    let column = |name: &str| rows[0].iter().position(|heading| *heading == name).unwrap();
    let names = ["intended_ns", "picked_ns", "sent_ns", "first_byte_ns", "done_ns"];
    assert_eq!(rows.len(), 1_501);
    for row in &rows[1..] {
        let times: Vec<i64> = names.iter().map(|name| row[column(name)].parse().unwrap()).collect();
        assert!(times.is_sorted(), "{row:?}");
    }
}
