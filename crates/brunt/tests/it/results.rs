//! Results are never lost: every way to lose one, tried.
//!
//! Not what results say. Of every command: what could be written is there and whole, what could not be is named, the exit code is
//! that of the status, and nothing panics, which would exit with 101.

use crate::server::{
    Directory, Ended, PROGRAM, Server, begin, brunt, by_shell, ended, in_namespace, side_by_side, words,
};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, PipeWriter, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Stdio};

/// A run of a few milliseconds; a host that is too slow for it decides nothing here.
const LOAD: &str = "-n 200 -c 2 --keys 50 --warmup 0s";
/// The same but for their number.
const FEW: &str = "-c 2 --keys 50 --warmup 0s";
/// Whatever its checks find.
const ANYHOW: &str = "--allow=BROKEN,LOAD,CLIENT,DATA";
const OLD: &str = "{\"old\": 1}\n";

/// A file with what an earlier run left there.
fn old(directory: &Directory, name: &str) -> String {
    directory.with(name, OLD)
}

/// A FIFO.
fn fifo(directory: &Directory, name: &str) -> String {
    let path = directory.path(name);
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    path
}

fn json(path: impl AsRef<Path>) -> Value {
    let text = fs::read_to_string(&path).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}: {text}", path.as_ref().display()))
}

/// Is the result in this file whole? Its name says what it is.
pub(crate) fn check_whole(path: &str) {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let ending = match Path::new(path).extension().unwrap().to_str().unwrap() {
        "json" => {
            assert!(json(path)["schema"].as_str().unwrap().starts_with("brunt."), "{text}");
            "}\n"
        }
        "xml" => "</testsuites>\n",
        _ => "\n",
    };
    let is_line = path.ends_with(".ndjson");
    assert!(text.ends_with(ending) && (is_line || text.lines().count() > 1), "{path}: {text}");
}

/// A pipe without a reader.
fn broken_pipe() -> PipeWriter {
    std::io::pipe().unwrap().1
}

fn full() -> File {
    OpenOptions::new().write(true).open("/dev/full").unwrap()
}

/// The ways in which a stream of this number takes nothing: what it is called, and the command with it.
fn without_stream(number: u32, arguments: &str) -> [(&'static str, Command); 3] {
    let with = |stream: Stdio| {
        let mut command = brunt(arguments);
        match number {
            1 => command.stdout(stream),
            _ => command.stderr(stream),
        };
        command
    };
    let closed = by_shell(&format!("exec \"$@\" {number}>&-"), arguments);
    [("broken pipe", with(broken_pipe().into())), ("full", with(full().into())), ("closed", closed)]
}

/// Commands against a server, each with the files that it writes and its exit code.
fn commands(server: &str, directory: &Directory) -> Vec<(String, Vec<String>, i32)> {
    let [a, b] = ["a.json", "b.json"].map(|name| directory.path(name));
    for path in [&a, &b] {
        ended(&format!("run -s {server} -o {path} {ANYHOW} -q {LOAD}")).is(0, &[]);
    }
    let run = format!("run -s {server} {ANYHOW}");
    let all = &["x.json", "y.csv", "samples:s.csv", "j.xml"][..];
    let (two, compared) = (&all[..2], &["x.json", "j.xml"][..]);
    let rates = format!("--assert 'p50 < 10s' --from 2k --to 2k -t 200ms --until max=200ms {FEW}");
    let saved = directory.path("saved.txt");
    let table = [
        (format!("{run} {LOAD}"), all, 0),
        (format!("{run} {LOAD} --assert 'hit < 50%'"), all, 4),
        ("run -s unix:/no/such/socket".to_owned(), &[], 5),
        (format!("{run} --repeat 2 {LOAD}"), two, 0),
        (format!("scan -s {server} {ANYHOW} --over depth=1,2 {LOAD}"), two, 0),
        (format!("search -s {server} {ANYHOW} {rates}"), two, 0),
        (format!("compare {a} {b}"), compared, 0),
        (format!("compare --live {server} {server} --repeat 1 {ANYHOW} {LOAD}"), compared, 0),
        (format!("load -s {server} --keys 50"), &[], 0),
        (format!("doctor -s {server}"), &[], 0),
        (format!("mutilate -s {server} -t 1 -r 100 -q 2000 --save {saved}"), &[], 0),
    ];
    let owned = |(line, results, exit): (String, &[&str], i32)| {
        let parts = results.iter().map(|name| name.split_once(':').unwrap_or(("", name)));
        let given = parts.clone().map(|(kind, name)| match kind {
            "" => format!(" -o {}", directory.path(name)),
            kind => format!(" -o {kind}:{}", directory.path(name)),
        });
        let mut files: Vec<String> = parts.map(|(_, name)| directory.path(name)).collect();
        files.extend(line.contains("--save").then(|| saved.clone()));
        (line + &given.collect::<String>(), files, exit)
    };
    table.into_iter().map(owned).collect()
}

/// Standard output or standard error takes nothing: files are written, and the exit code is the same, but for that of another tool's
/// front end, whose report is what it prints.
#[test]
fn print_errors_do_not_change_results() {
    let server = Server::reference("");
    // Beside each other, for some of the commands wait most of their time.
    side_by_side([(1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2)], |(number, way)| {
        check_printing(&server.address, number, way);
    });
}

/// All commands without this stream, in the way of this index.
fn check_printing(server: &str, number: u32, way: usize) {
    let directory = Directory::new();
    for (line, files, expected) in commands(server, &directory) {
        let (way, command) = &mut without_stream(number, &line)[way];
        let output = Ended::from(command);
        // On a busy host even this rate may be too high; the result says whether it was.
        let is_missed =
            line.starts_with("search") && json(&files[0])["finding"]["capacity"]["result"] == "below";
        let (is_tool, is_full) = (line.starts_with("mutilate"), number == 1 && *way == "full");
        let expected = match number == 1 && is_tool && *way != "broken pipe" {
            true => 255,
            false if is_missed => 4,
            false => expected,
        };
        assert_eq!(output.exit, expected, "{line}, {number} {way}");
        let told = if is_tool {
            "cannot write standard output: No space"
        } else {
            "cannot print the report: No space"
        };
        assert_eq!(output.said.contains(told), is_full && expected != 5, "{line}");
        for file in &files {
            check_whole(file);
            fs::remove_file(file).unwrap();
        }
    }
    assert_eq!(directory.names(), ["a.json", "b.json"]);
}

/// The same of what is not a result: messages, help, progress.
#[test]
fn message_errors_do_not_change_results() {
    let table: &[(&str, i32)] = &[
        ("run --rate fast", 2),
        ("run /no/such/plan.toml", 2),
        ("--help", 0),
        ("mutilate --no-such-option", 1),
        (&format!("run {ANYHOW} -t 250ms --think 1ms --progress 100ms {FEW}"), 0),
    ];
    for (arguments, expected) in table {
        for number in [1, 2] {
            for (way, command) in without_stream(number, arguments) {
                assert_eq!(Ended::from(command).exit, *expected, "{arguments}, {number} {way}");
            }
        }
    }
}

/// What a message calls the first of these options: `-o json` of `-o json:PATH`.
fn named(options: &str) -> String {
    let Some(file) = options.strip_prefix("-o ") else { return options.replace('=', " ") };
    let file = file.split(' ').next().unwrap();
    match (file.split_once(':'), file.rsplit_once('.')) {
        (Some((kind, _)), _) => format!("-o {kind}"),
        (None, Some((_, "xml"))) => "-o junit".to_owned(),
        (None, ending) => format!("-o {}", ending.unwrap().1),
    }
}

/// A result for standard output is more than what is printed for a person.
#[test]
fn unwritable_standard_output_is_an_error() {
    let (server, directory) = (Server::reference(""), Directory::new());
    let (a, csv) = (directory.path("a.json"), directory.path("y.csv"));
    let run = format!("run -s {server} {ANYHOW} -q {LOAD}");
    let b = directory.path("b.json");
    for path in [&a, &b] {
        ended(&format!("{run} -o {path}")).is(0, &[]);
    }
    let repeated = format!("{run} --repeat 2");
    let missed = format!("{run} --assert 'hit < 50%'");
    let printing = format!("run -s {server} {ANYHOW} {LOAD}");
    let table: &[(&str, &str)] = &[
        (&run, &format!("-o json:- -o {csv}")),
        (&run, "-o samples:-"),
        (&run, "-o ndjson:-"),
        (&run, "-o junit:/dev/stdout"),
        (&repeated, "-o csv:-"),
        // What failed outweighs what was asserted.
        (&missed, "-o csv:-"),
        (&format!("compare {a} {b}"), "-o json:-"),
        (&format!("run -s {server}"), "--print-plan"),
        (&printing, "--report=brief"),
        (&format!("compare {a} {b}"), "--report=brief"),
        (&format!("load -s {server} --keys 50"), "--report=brief"),
    ];
    for (command, option) in table {
        let message = format!("error: {}: cannot write standard output: ", named(option));
        let reasons = ["Broken pipe", "No space left on device", "it is closed"];
        let ways = without_stream(1, &format!("{command} {option}"));
        for (reason, (_, command)) in reasons.into_iter().zip(ways) {
            Ended::from(command).is(1, &[&format!("{message}{reason}")]);
        }
    }
    check_whole(&csv);
}

/// One output that fails does not keep the others from being written; it is named, and what it was to replace stays.
#[test]
fn each_result_is_written_on_its_own() {
    let server = Server::reference("");
    let outputs = [
        ("json", "x.json"),
        ("csv", "y.csv"),
        ("samples", "s.csv"),
        ("junit", "j.xml"),
        ("hlog", "h.hlog"),
        ("ndjson", "n.ndjson"),
        ("md", "m.md"),
    ];
    for (full, _) in outputs {
        let directory = Directory::new();
        let link = directory.path("full");
        symlink("/dev/full", &link).unwrap();
        let path = |kind: &str, name: &str| if kind == full { link.clone() } else { directory.path(name) };
        let given: String =
            outputs.iter().map(|(kind, name)| format!(" -o{kind}:{}", path(kind, name))).collect();
        let output = ended(&format!("run -s {server} {ANYHOW} {LOAD}{given}"));
        assert_eq!(output.exit, 1);
        let message =
            format!("error: -o {full}: cannot write '{link}': No space left on device (os error 28)\n");
        assert!(output.said.ends_with(&message));
        assert!(!output.out.is_empty(), "the report is printed");
        for (_, name) in outputs.iter().filter(|(kind, _)| *kind != full) {
            check_whole(&directory.path(name));
        }
        assert_eq!(directory.names().len(), outputs.len(), "{:?}", directory.names());
    }
}

/// No file may grow beyond a limit, as on a disk that is full: nothing is cut, what was there stays, and all are named.
#[test]
fn full_disks_keep_earlier_results() {
    let (server, directory) = (Server::reference(""), Directory::new());
    let [a, b, json, csv, junit, saved] =
        ["a.json", "b.json", "x.json", "y.csv", "j.xml", "saved.txt"].map(|name| directory.path(name));
    let run = format!("run -s {server} {ANYHOW} {LOAD}");
    for path in [&a, &b] {
        ended(&format!("{run} -o {path}")).is(0, &[]);
    }
    let outputs = format!("-o {json} -o {csv}");
    let scan = format!("scan --over depth=1 -s {server} {ANYHOW}");
    let mutilate = format!("mutilate -s {server} -t 1 -r 50 -q 2000 --save {saved}");
    // Of 512 or 1 024 bytes, by the shell: 4 are enough for a second of CSV, and for no JSON.
    let table: &[(u32, String, &[&str], i32)] = &[
        (0, format!("{run} {outputs} -o {junit}"), &["-o json", "-o csv", "-o junit"], 1),
        (4, format!("{run} {outputs}"), &["-o json"], 1),
        (0, format!("{scan} {LOAD} {outputs}"), &["-o json", "-o csv"], 1),
        (0, format!("compare {a} {b} -o {json} -o {junit}"), &["-o json", "-o junit"], 1),
        (0, mutilate, &["--save"], 255),
    ];
    for (blocks, arguments, failed, expected) in table {
        [&json, &csv, &junit, &saved].iter().for_each(|path| fs::write(path, OLD).unwrap());
        let output = Ended::from(by_shell(&format!("ulimit -f {blocks} && exec \"$@\""), arguments));
        assert_eq!(output.exit, *expected, "{arguments}");
        assert!(!output.out.is_empty(), "the report is printed");
        for (option, path) in [("-o json", &json), ("-o csv", &csv), ("-o junit", &junit), ("--save", &saved)]
        {
            if !arguments.contains(path.as_str()) {
                continue;
            }
            let message = format!(": {option}: cannot write '{path}': File too large");
            let message = if *expected == 255 { &message[2..] } else { &message };
            assert_eq!(output.said.contains(message), failed.contains(&option));
            match failed.contains(&option) {
                true => assert_eq!(fs::read_to_string(path).unwrap(), OLD),
                false => check_whole(path),
            }
        }
    }
    assert_eq!(directory.names(), ["a.json", "b.json", "j.xml", "saved.txt", "x.json", "y.csv"]);
}

/// A disk that is full, a file that is mounted by itself, and a directory that can no longer be written.
#[test]
fn full_disks_are_reported() {
    let (server, directory) = (Server::reference(""), Directory::new());
    let run = format!("run -s {server} {ANYHOW} -q {LOAD} -o x.json");
    let ended = |script: &str| {
        old(&directory, "x.json");
        let mut command = in_namespace("-m", &format!("cd '{}' && {script}", directory.display()))?;
        Some(Ended::from(command.arg(PROGRAM).args(words(&run))))
    };
    let full = "mount -t tmpfs -o size=16k none . && cd \"$PWD\" && echo old > x.json && (\"$@\"; echo \"exit $?\"; cat x.json; ls -A)";
    let Some(output) = ended(full) else { return };
    assert_eq!(output.out, "exit 1\nold\nx.json\n");
    output.is(0, &["-o json: cannot write 'x.json': No space left"]);

    // The same of a file that is mounted by itself, where there is room beside it.
    let mounted = "mkdir t && mount -t tmpfs -o size=8k none t && cp x.json t && mount --bind t/x.json x.json && \
                   (\"$@\"; echo \"exit $?\"; cat x.json; umount x.json t; rmdir t)";
    let output = ended(mounted).unwrap();
    assert_eq!(output.out, format!("exit 1\n{OLD}"));
    let at_hand = directory.names().into_iter().find(|name| name.ends_with(".partial")).unwrap();
    let expected = format!(
        "-o json: cannot write 'x.json': No space left on device (os error 28); it is in '{}' instead",
        directory.path(&at_hand)
    );
    output.is(0, &[&expected]);
    check_whole(&directory.path(&at_hand));
    fs::remove_file(directory.path(&at_hand)).unwrap();

    let output = ended("mount --bind x.json x.json && exec \"$@\"").unwrap();
    assert_eq!((output.exit, &*output.said), (0, ""));
    check_whole(&directory.path("x.json"));
    assert_eq!(directory.names(), ["x.json"]);
}

/// A file that is replaced keeps its permissions, a link its place; what is handed to us open is written as it is.
#[test]
fn files_are_replaced_in_place() {
    let (server, directory) = (Server::reference(""), Directory::new());
    let run = format!("run -s {server} {ANYHOW} -q {LOAD}");
    let write_to = |path: &str| {
        let output = ended(&format!("{run} -o json:{path}"));
        assert_eq!((output.exit, &*output.said), (0, ""));
    };
    let file = old(&directory, "x.json");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    let (link, dangling) = (directory.path("link"), directory.path("dangling"));
    symlink("x.json", &link).unwrap();
    symlink(directory.path("new.json"), &dangling).unwrap();
    let before = fs::metadata(&file).unwrap();
    write_to(&link);
    check_whole(&file);
    let after = fs::metadata(&file).unwrap();
    assert_eq!((after.mode() & 0o777, after.uid()), (0o640, before.uid()));
    assert_ne!(after.ino(), before.ino(), "it is another file, which was whole before it got the name");
    write_to(&dangling);
    check_whole(&directory.path("new.json"));
    assert!([&link, &dangling].iter().all(|path| fs::symlink_metadata(path).unwrap().is_symlink()));
    // As long as a name can be.
    let longest = directory.path(&format!("{}.json", "x".repeat(250)));
    write_to(&longest);
    check_whole(&longest);

    let inherited = directory.path("inherited.json");
    let script = format!("exec \"$@\" 7>'{inherited}'");
    Ended::from(by_shell(&script, &format!("{run} -o json:/dev/fd/7"))).is(0, &[]);
    check_whole(&inherited);
    let printed = ended(&format!("run -s {server} {ANYHOW} {LOAD} -o json:/dev/stdout"));
    let result: Value = serde_json::from_str(&printed.out).unwrap();
    assert_eq!(result["schema"], "brunt.result.v1");
    assert!(printed.said.contains("response, "), "the report makes room");
    assert_eq!(directory.names().len(), 6, "{:?}", directory.names());
}

/// Two results never share a file, however it is spelled, and none replaces what is read.
#[test]
fn results_sharing_a_file_are_rejected() {
    let directory = Directory::new();
    let old = old(&directory, "old.json");
    let (plan, sizes) = (directory.with("plan.toml", "keys = 50\n"), directory.with("sizes", "100\n"));
    let trace = directory.with("trace.csv", "0,1,read,a,5\n");
    let inside = |name: &str| {
        directory.path(&format!("../{}/{name}", directory.file_name().unwrap().to_str().unwrap()))
    };
    fs::hard_link(&old, directory.path("hard.json")).unwrap();
    symlink("old.json", directory.path("soft.json")).unwrap();
    symlink("new.json", directory.path("dangling.json")).unwrap();
    let [hard, soft, dangling, new, dotted] =
        ["hard.json", "soft.json", "dangling.json", "new.json", "./new.json"]
            .map(|name| directory.path(name));
    let (old_inside, new_inside) = (inside("old.json"), inside("new.json"));
    let at_sizes = format!("@{sizes}");
    let pair = |one: &str, a: &str, other: &str, b: &str| format!("run -o{one}:{a} -o{other}:{b}");
    let run = |a, b| pair("json", a, "csv", b);
    let is_one = "which are one file: expected a file for each";
    let is_read = "is read by this command: expected another file";
    let stdout = "expected standard output for one of them, files for the others";
    let [json, csv, junit] =
        ["json", "csv", "junit"].map(|kind| move |path: &str| format!("-o{kind}:{path}"));
    let table: Vec<(String, &str, &str)> = vec![
        (run(&old, &old), "-o json, -o csv: ", "was given to each: expected a file for each"),
        (run(&old, &old_inside), "-o json, -o csv: ", is_one),
        (run(&old, &hard), "-o json, -o csv: ", is_one),
        (run(&soft, &old), "-o json, -o csv: ", is_one),
        (run(&soft, &hard), "-o json, -o csv: ", is_one),
        (run(&new, &new), "-o json, -o csv: ", "was given to each"),
        (run(&new, &dotted), "-o json, -o csv: ", is_one),
        (run(&new, &new_inside), "-o json, -o csv: ", is_one),
        (run(&dangling, &new), "-o json, -o csv: ", is_one),
        (pair("junit", &new, "samples", &dangling), "-o junit, -o samples: ", is_one),
        (run("-", "-"), "-o json, -o csv: ", stdout),
        (run("-", "/dev/stdout"), "-o json, -o csv: ", stdout),
        (pair("csv", "-", "ndjson", "-"), "-o csv, -o ndjson: ", stdout),
        (run("/dev/fd/1", "/proc/self/fd/1"), "-o json, -o csv: ", stdout),
        (format!("run --repeat 2 -o {old} {}", csv(&soft)), "-o json, -o csv: ", is_one),
        (format!("scan -o {old} {}", csv(&soft)), "-o json, -o csv: ", is_one),
        (format!("search --assert p99<1s -o {old} {}", csv(&soft)), "-o json, -o csv: ", is_one),
        (format!("compare a b -o {old} {}", junit(&soft)), "-o json, -o junit: ", is_one),
        (format!("run {plan} {}", csv(&plan)), "-o csv: ", is_read),
        (format!("run --value-size {at_sizes} {}", csv(&sizes)), "-o csv: ", is_read),
        (
            format!("run --protocol resp2 -s h --password '{at_sizes}' {}", junit(&sizes)),
            "-o junit: ",
            is_read,
        ),
        (format!("run -s memcacheds://h --tls-ca {sizes} {}", junit(&sizes)), "-o junit: ", is_read),
        (format!("compare {old} b -o {soft}"), "-o json: ", is_read),
        (format!("compare --a a {old} --b b {}", junit(&hard)), "-o junit: ", is_read),
        (
            format!("compare --live memcached://h:1 memcached://h:2 {plan} {}", json(&plan)),
            "-o json: ",
            is_read,
        ),
        (format!("mutilate -s h --read_file {trace} --save {trace}"), "--save: ", is_read),
    ];
    for (arguments, begin, end) in table {
        let expected = if arguments.starts_with("mutilate") { 255 } else { 2 };
        ended(&arguments).is(expected, &[&format!(": {begin}'"), end]);
    }
    let mixed = Ended::from(by_shell(&format!("exec \"$@\" > '{new}'"), &format!("run -o {new}")));
    mixed.is(2, &["is also standard output"]);
    assert_eq!(fs::read_to_string(&old).unwrap(), OLD);
}

/// Pipes and devices take one result after the other.
#[test]
fn pipes_and_devices_may_be_named_twice() {
    let (server, directory) = (Server::reference(""), Directory::new());
    let run = format!("run -s {server} {ANYHOW} -q {LOAD}");
    let output = ended(&format!("{run} -o json:/dev/null -o csv:/dev/null -o samples:/dev/null"));
    assert_eq!((output.exit, &*output.said), (0, ""));
    let pipe = fifo(&directory, "pipe");
    let child = brunt(&format!("{run} -ojunit:{pipe} -osamples:{pipe}")).spawn().unwrap();
    let mut text = String::new();
    File::open(&pipe).unwrap().read_to_string(&mut text).unwrap();
    Ended::from(child).is(0, &[]);
    assert!(text.contains("</testsuites>\n") && text.contains("intended_ns"), "{text}");
    assert_eq!(directory.names(), ["pipe"]);
}

/// What cannot be written is refused before anything is measured: the server is not there.
#[test]
fn unwritable_paths_are_rejected() {
    let directory = Directory::new();
    let (below, slash, socket) =
        (directory.path("none/x.json"), directory.path("x/"), directory.path("socket"));
    let looped = directory.path("loop");
    symlink("loop", &looped).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    // No user can make a file there, not even root.
    let table = ["/proc/x.json", &below, &slash, &directory.path("."), &socket, &looped, "/dev/fd/99"];
    for path in table {
        for (arguments, option) in [("run -s memcached://h -o", "-o csv"), ("mutilate -s h --save", "--save")]
        {
            let kind = if option == "-o csv" { "csv:" } else { "" };
            let output = ended(&format!("{arguments} {kind}{path}"));
            let begin = format!(": invalid value '{path}' for {option} (");
            let exit = if arguments.starts_with("run") { 2 } else { 255 };
            output.is(exit, &[&begin, "expected the path of a file that can be written"]);
        }
    }
    assert_eq!(directory.names(), ["loop", "socket"]);
}

/// A connection or terminal that is gone ends a command as Ctrl-C does: what was measured is there. Kernel and shell send a signal
/// each; neither cuts the other's end short.
#[test]
fn a_hangup_ends_with_a_result() {
    let directory = Directory::new();
    let (json, saved) = (old(&directory, "x.json"), old(&directory, "saved.txt"));
    let few = format!("--keys 50 --warmup 0s --mix get {ANYHOW} -q -o {json}");
    let table: &[(&str, bool)] = &[
        ("run -t 60s -r 2k", false),
        ("run -n 300 --repeat 100", false),
        ("scan --over connections=1..100:1 -n 300", false),
        ("search --assert 'p50 < 10s' --from 1k --to 9k -t 60s", false),
        ("compare --repeat 50 -n 300 --live", false),
        (&format!("mutilate -t 60 -q 2000 -r 50 --save {saved} -s"), true),
    ];
    for (arguments, is_mutilate) in table {
        // One whole run of 300 gets, and the beginning of the next.
        let (server, other) = (Server::reference(""), Server::reference(""));
        let is_live = arguments.ends_with("--live");
        let place = &server.address;
        let child = begin(brunt(&match (is_live, is_mutilate) {
            (true, _) => format!("{arguments} {place} {other} {few}"),
            (_, true) => format!("{arguments} {place}"),
            _ => format!("{arguments} -s {place} {few}"),
        }));
        server.await_gets(310);
        if is_live {
            other.await_gets(310);
        }
        for _ in 0..2 {
            kill_process(Pid::from_child(&child), Signal::HUP).unwrap();
        }
        Ended::from(child).is(130, &[]);
        if *is_mutilate {
            let reads = fs::read_to_string(&saved).unwrap();
            assert!(reads.ends_with('\n') && reads.lines().count() > 100, "{reads}");
        } else {
            let result = self::json(&json);
            let interrupted = result.get("interrupted").unwrap_or(&result["window"]["interrupted"]);
            assert_eq!(*interrupted, true, "{arguments:?}");
            fs::write(&json, OLD).unwrap();
        }
    }
    assert_eq!(directory.names(), ["saved.txt", "x.json"]);
}

/// A terminal tells its whole group of its end, and the reference server that a run has started is needed for the drain.
#[test]
fn a_signal_to_all_processes_ends_a_run_in_order() {
    let directory = Directory::new();
    let result = directory.path("x.json");
    for signal in [Signal::HUP, Signal::INT, Signal::TERM] {
        let run = format!("run -t 60s -r 2k --keys 50 --progress 100ms -o {result}");
        let mut child = brunt(&format!("{run} --warmup 0s {ANYHOW}"))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        lines.find(|line| line.as_ref().unwrap().starts_with("brunt: measure ")).unwrap().unwrap();
        kill_process_group(Pid::from_child(&child), signal).unwrap();
        lines.for_each(drop);
        assert_eq!(Ended::from(child).exit, 130, "{signal:?}");
        let requests = &json(&result)["counts"]["requests"];
        assert_eq!((&requests["lost"], &requests["unsent"]), (&0.into(), &0.into()), "{signal:?}");
    }
}

/// A reader that opens a pipe and takes nothing of a result holds the command until the first signal.
#[test]
fn a_signal_ends_a_wait_for_a_reader() {
    let (server, directory) = (Server::reference(""), Directory::new());
    let pipe = fifo(&directory, "pipe");
    // Open at both ends, so that neither waits for the other.
    let reader = OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
    for signal in [Signal::INT, Signal::TERM] {
        rustix::pipe::fcntl_setpipe_size(&reader, 4096).unwrap();
        let run = format!("run -s {server} {ANYHOW} -q -ojson:{pipe} {LOAD}");
        let child = brunt(&run).stderr(Stdio::piped()).spawn().unwrap();
        while rustix::io::ioctl_fionread(&reader).unwrap() < 4096 {
            std::thread::yield_now();
        }
        kill_process(Pid::from_child(&child), signal).unwrap();
        let output = Ended::from(child);
        let expected =
            format!("error: -o json: cannot write '{pipe}': interrupted, as its reader takes nothing\n");
        assert_eq!((output.exit, &*output.said), (1, &*expected), "{signal:?}");
        (&reader).read_exact(&mut [0; 4096]).unwrap();
    }
}

/// A command that was started by `nohup` goes on.
#[test]
fn a_hangup_that_is_ignored_stays_ignored() {
    let (server, directory) = (Server::reference(""), Directory::new());
    let result = directory.path("x.json");
    let run = format!("run -s {server} -n 3000 -r 6k --keys 50 --warmup 0s");
    let arguments = format!("{run} {ANYHOW} -q --mix get -o {result}");
    let child = by_shell("trap '' HUP; exec \"$@\"", &arguments).spawn().unwrap();
    server.await_gets(100);
    kill_process(Pid::from_child(&child), Signal::HUP).unwrap();
    assert_eq!(Ended::from(child).exit, 0);
    assert_eq!(
        (&json(&result)["window"]["interrupted"], &json(&result)["counts"]["requests"]["sent"]),
        (&false.into(), &3_000.into())
    );
}

/// A process that is killed leaves what was there, and nothing beside it.
#[test]
fn killed_processes_keep_earlier_results() {
    let (server, directory) = (Server::reference(""), Directory::new());
    let (old, new) = (old(&directory, "x.json"), directory.path("y.csv"));
    let run = format!("run -s {server} -t 60s -r 2k -o {old} -o {new}");
    let child = brunt(&format!("{run} --keys 50 --warmup 0s")).spawn().unwrap();
    server.await_gets(10);
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    drop(Ended::from(child));
    assert_eq!(fs::read_to_string(&old).unwrap(), OLD);
    assert_eq!(directory.names(), ["x.json"]);
}

/// What is read is a regular file or a pipe of some size, whatever names it.
#[test]
fn only_files_and_pipes_are_read() {
    let directory = Directory::new();
    let device = "it is a device; expected a regular file";
    let folder = "it is a directory; expected a regular file";
    let pipe = "it is a named pipe; expected a regular file";
    let large = "it exceeds the limit of 16 MiB";
    let (too_large, result) = (directory.path("large"), directory.path("large.json"));
    // Nothing writes into it.
    let named = fifo(&directory, "fifo");
    // Holes, which take no room.
    File::create(&too_large).unwrap().set_len((16 << 20) + 1).unwrap();
    File::create(&result).unwrap().set_len((256 << 20) + 1).unwrap();
    let plan = directory.with("plan.toml", "value-size = '@/dev/zero'\n");
    let traces = [(&named[..], "fifo.toml"), ("/dev/zero", "device.toml")].map(|(trace, name)| {
        let text = format!(
            "server = 'memcached://127.0.0.1:1'\ntrace = '{trace}'\ntrace-layout = 'mutilate-read-write'\n"
        );
        directory.with(name, &text)
    });
    let resp = "run --protocol resp2 -s h --password";
    let tls = "run -s memcacheds://127.0.0.1:1";
    let certificate = format!("{tls} --tls-insecure --tls-key {plan} --tls-cert");
    let authority = format!("{tls} --tls-ca");
    let table: &[(&str, &str)] = &[
        ("run", ""),
        ("doctor", ""),
        ("load", ""),
        ("run --value-size ", "@"),
        ("run --key-size", "@"),
        ("run --rate-profile", "@"),
        ("run --arrival", "@"),
        ("calibrate --value-size", "@"),
        (resp, "@"),
        (&authority, ""),
        (&certificate, ""),
        ("agent --listen 127.0.0.1:0 --target-ca", ""),
    ];
    let ways = [
        ("/dev/zero", device),
        ("/tmp", folder),
        (too_large.as_str(), large),
        (named.as_str(), pipe),
        // A regular file by its kind, which has no end.
        ("/proc/kmsg", "it has no end; expected a regular file"),
    ];
    let is_root = File::open("/proc/kmsg").is_ok();
    for (arguments, begin) in table {
        for (path, reason) in ways.iter().filter(|(path, _)| is_root || *path != "/proc/kmsg") {
            ended(&format!("{arguments} {begin}{path}")).is(2, &[path, reason]);
        }
    }
    let more: &[(&str, &str)] = &[
        (&format!("run {plan}"), device),
        ("compare /dev/zero b", device),
        (&format!("report {named}"), pipe),
        (&format!("run {}", traces[0]), pipe),
        (&format!("run {}", traces[1]), device),
        (&format!("compare {result} b"), "it exceeds the limit of 256 MiB"),
        ("run /dev/stdin", device),
    ];
    for (arguments, reason) in more {
        ended(arguments).is(2, &[reason]);
    }
    // A pipe without an end.
    let endless = "yes | \"$@\"";
    Ended::from(by_shell(endless, "run --value-size @/dev/stdin")).is(2, &[large]);
}

#[test]
fn pipes_are_read() {
    for (arguments, written, printed) in [
        ("run /dev/stdin --print-plan", "keys = 77\n", "keys = 77\n"),
        ("run - --print-plan", "keys = 77\n", "keys = 77\n"),
        ("run /dev/fd/0 --print-plan", "keys = 77\n", "keys = 77\n"),
        ("run --value-size @/dev/stdin --print-plan", "777\n", "value-size = \"fixed:777\"\n"),
        ("run --value-size @- --print-plan", "777\n", "value-size = \"fixed:777\"\n"),
    ] {
        let mut child = brunt(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(written.as_bytes()).unwrap();
        drop(stdin);
        let output = Ended::from(child);
        assert!(output.exit == 0 && output.out.contains(printed), "{arguments}");
    }
}

/// Standard input is read by its descriptor: also a socket, a pipe of another user, and what is typed into a terminal.
#[test]
fn standard_input_of_any_kind_is_read() {
    let printed = "keys = 77\n";
    let run = "run - --print-plan";
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut socket = brunt(run);
    socket.stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs))).stdout(Stdio::piped());
    let child = socket.spawn().unwrap();
    // Its end of the pair is closed with the command.
    drop(socket);
    (&ours).write_all(printed.as_bytes()).unwrap();
    drop(ours);
    let mut outputs = vec![("socket", Ended::from(child))];
    if rustix::process::getuid().is_root() {
        let script = "echo keys = 77 | setpriv --reuid=65534 --regid=65534 --clear-groups \"$@\"";
        outputs.push(("pipe of another user", Ended::from(by_shell(script, run))));
    }
    // What is typed, and Ctrl-D.
    let mut script = Command::new("script");
    script.args(words(&format!("-q -e -c '{PROGRAM} {run}' /dev/null"))).stdin(Stdio::piped());
    let mut child = begin(script);
    child.stdin.take().unwrap().write_all(b"keys = 77\n\x04").unwrap();
    outputs.push(("terminal", Ended::from(child)));
    for (kind, output) in outputs {
        let plan = output.out.replace('\r', "");
        assert!(output.exit == 0 && plan.contains("depth = ") && plan.contains(printed), "{kind}: {plan}");
    }
}

/// While a pipe keeps a command waiting, the first Ctrl-C ends it.
#[test]
fn a_read_that_waits_ends_with_the_first_interrupt() {
    let table = [
        "run -",
        "report -",
        "run --value-size @-",
        "run -s memcacheds://127.0.0.1:1 --tls-ca /dev/stdin",
        "agent --listen 127.0.0.1:0 --target-ca /dev/stdin",
    ];
    for arguments in table {
        let mut child = brunt(arguments).stdin(Stdio::piped()).spawn().unwrap();
        let is_reading = |task: std::io::Result<fs::DirEntry>| {
            task.and_then(|task| fs::read_to_string(task.path().join("comm")))
                .is_ok_and(|name| name == "brunt-input\n")
        };
        while !fs::read_dir(format!("/proc/{}/task", child.id())).unwrap().any(is_reading) {
            assert!(child.try_wait().unwrap().is_none(), "{arguments:?}");
            std::thread::yield_now();
        }
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(2), "{arguments:?}");
    }
}

/// What becomes of an output's file while a run goes on: it is there at the end, or it is named and the exit code is 1.
#[test]
fn lost_outputs_are_named() {
    let files = [
        ("json", "x.json"),
        ("csv", "y.csv"),
        ("html", "p.html"),
        ("spectrum", "s.txt"),
        ("hlog", "h.hlog"),
        ("ndjson", "n.ndjson"),
        ("samples", "s.csv"),
        ("junit", "j.xml"),
        ("md", "m.md"),
    ];
    let table = [
        ("folder removed", true, ""),
        // All others are made whole at the end.
        ("files removed", false, "' is lost: it was removed meanwhile"),
        ("files replaced", false, "' is lost: another file replaced it meanwhile"),
        ("folder moved", true, ""),
    ];
    std::thread::scope(|scope| {
        for (way, all_are_lost, reason) in table {
            scope.spawn(move || {
                let (server, directory) = (Server::reference(""), Directory::new());
                let folder = directory.path("results");
                fs::create_dir(&folder).unwrap();
                let path = |name: &str| format!("{folder}/{name}");
                let given = files.map(|(kind, name)| format!(" -o{kind}:{}", path(name))).concat();
                let load = format!("{ANYHOW} -q -t 60s -r 1k --interval 200ms {FEW}{given}");
                let child = begin(brunt(&format!("run -s {server} {load}")));
                // The one that is written meanwhile.
                while !fs::metadata(path("n.ndjson")).is_ok_and(|held| held.len() > 0) {
                    std::thread::park_timeout(std::time::Duration::from_millis(5));
                }
                match way {
                    "folder removed" => fs::remove_dir_all(&folder).unwrap(),
                    "folder moved" => fs::rename(&folder, directory.path("moved")).unwrap(),
                    _ => {
                        for (_, name) in files {
                            let _ = fs::remove_file(path(name));
                            if way == "files replaced" {
                                fs::write(path(name), "other").unwrap();
                            }
                        }
                    }
                }
                kill_process(Pid::from_child(&child), Signal::INT).unwrap();
                let output = Ended::from(child);
                let said = &output.said;
                assert_eq!(output.exit, 1, "{way}");
                for line in said.lines() {
                    let place = line.split_once("it is in '").and_then(|(_, rest)| rest.split_once('\''));
                    assert!(place.is_none_or(|(place, _)| Path::new(place).exists()), "{way}: {line}");
                }
                for (kind, name) in files {
                    let is_lost = all_are_lost || kind == "ndjson";
                    let named = said.lines().find(|line| line.starts_with(&format!("error: -o {kind}: ")));
                    assert_eq!(named.is_some(), is_lost, "{way} {kind}");
                    assert!(named.is_none_or(|line| line.ends_with(reason)), "{way}");
                    if !is_lost {
                        check_whole(&path(name));
                    }
                }
            });
        }
    });
}

/// Nor does a result, or what is printed, go into a file that is standard input, or that a command reads by its name.
#[test]
fn redirected_inputs_are_never_written() {
    let directory = Directory::new();
    let result = directory.path("r.json");
    ended(&format!("run -o {result} {ANYHOW} -q {LOAD}")).is(0, &[]);
    let before = fs::read(&result).unwrap();
    let is_read = format!("'{result}' is read by this command: expected another file");
    let is_token = "'auth/token' is read by this command";
    ended(&format!("agent --new-auth {}", directory.path("auth"))).is(0, &[]);
    let is_output = "standard output is a file that this command reads: expected another file";
    let table: &[(&str, &str, &str)] = &[
        ("< r.json", &format!("report - -o html:{result}"), &is_read),
        ("< r.json", "report /dev/stdin -o csv:r.json", "'r.json' is read by this command"),
        ("< r.json", &format!("compare - b.json -o {result}"), &is_read),
        ("< r.json >> r.json", "report -", is_output),
        (">> r.json", &format!("report {result} -o html:-"), is_output),
        (">> r.json", &format!("report {result}"), is_output),
        (">> r.json", &format!("compare {result} {result}"), is_output),
        (">> r.json", &format!("run --value-size @sizes -o {result}"), "is also standard output"),
        (">> sizes", "run --value-size @sizes -o json:-", is_output),
        (">> sizes", "run --value-size @sizes --print-plan", is_output),
        ("", "agent --listen 127.0.0.1:0 --auth auth -o json:auth/token", is_token),
    ];
    directory.with("sizes", "100\n");
    for (redirected, arguments, expected) in table {
        let script = format!("cd '{}' && exec \"$@\" {redirected}", directory.display());
        Ended::from(by_shell(&script, arguments)).is(2, &[expected]);
        assert_eq!(fs::read(&result).unwrap(), before, "{redirected} {arguments:?}");
        assert_eq!(fs::read(directory.path("sizes")).unwrap(), b"100\n");
    }
}
