//! Other load generators' command lines: what the real tools were seen to print is what we print, but for the numbers; and
//! data sets that they and we store are the same.

use crate::server::{Server, beside_others, brunt};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The cases that were recorded of a tool.
fn check_recorded(folder: &str) {
    // Whether tests may run without real servers is asked for in one place.
    let Some(_server) = Server::memcached(&[]) else { return };
    let legacy = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/legacy");
    let program = format!("{} {{gen}}", env!("CARGO_BIN_EXE_brunt"));
    let shape = Command::new("python3")
        .arg(legacy.join("shape.py"))
        .arg("--all")
        .arg(legacy.join(folder))
        .args(["-j", "4", "--cmd", &program])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&shape.stdout);
    assert!(shape.status.success(), "{text}{}", String::from_utf8_lossy(&shape.stderr));
    assert!(text.ends_with("passed, 0 failed\n") && !text.starts_with("0 passed"), "{text}");
}

#[test]
fn recorded_cases_of_mutilate() {
    let _beside = beside_others();
    check_recorded("mutilate");
}

#[test]
fn recorded_cases_of_the_second_generation_of_mutilate() {
    let _beside = beside_others();
    check_recorded("mutilate-g2");
}

fn mutilate(server: &Server, options: &str) -> Output {
    let words: Vec<&str> = options.split_whitespace().collect();
    brunt(&["mutilate", "-s", &server.address]).args(words).output().unwrap()
}

/// Its report.
fn report(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// Says something to a memcached until the answer ends so.
fn say(server: &Server, request: &str, end: &str) -> String {
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let (mut reply, mut piece) = (Vec::new(), [0; 4096]);
    while !reply.ends_with(end.as_bytes()) {
        let len = stream.read(&mut piece).unwrap();
        assert!(len > 0, "{}", String::from_utf8_lossy(&reply));
        reply.extend_from_slice(&piece[..len]);
    }
    String::from_utf8_lossy(&reply).into_owned()
}

/// The first records' keys as mutilate was seen to store them, for `-K fb_key`.
fn facebook_keys() -> [String; 6] {
    let mut id = 0..;
    [38, 35, 51, 43, 26, 22].map(|len| format!("{:0len$}", id.next().unwrap_or(0)))
}

#[test]
fn a_store_that_we_load_is_found_by_mutilate() {
    let _beside = beside_others();
    let Some(server) = Server::memcached(&[]) else { return };
    let loaded = mutilate(&server, "--loadonly -K fb_key -V fixed:64 -r 6");
    assert_eq!(report(&loaded), "");
    for key in facebook_keys() {
        let reply = say(&server, &format!("get {key}\r\n"), "END\r\n");
        assert!(reply.starts_with(&format!("VALUE {key} 0 64\r\n")), "{key}: {reply}");
    }
    assert_eq!(server.statistics()["curr_items"], 6);
}

#[test]
fn a_store_that_mutilate_loads_is_found_by_us() {
    let _beside = beside_others();
    let Some(server) = Server::memcached(&[]) else { return };
    // Lengths of values are drawn anew by mutilate, so that none has to be the one that we would give it.
    for (number, key) in facebook_keys().iter().enumerate() {
        let value = "lorem ipsum ".repeat(number * 7);
        say(&server, &format!("set {key} 0 0 {}\r\n{value}\r\n", value.len()), "STORED\r\n");
    }
    let text = report(&mutilate(&server, "--noload -K fb_key -V fb_value -r 6 -N 600"));
    assert!(text.contains("\nTotal QPS = ") && text.contains(" (600 / "), "{text}");
    assert!(text.contains("\nMisses = 0 (0.0%)\n"), "{text}");
}

#[test]
fn the_columns_hold_what_the_server_did() {
    let _beside = beside_others();
    let Some(server) = Server::memcached(&[]) else { return };
    let text = report(&mutilate(&server, "--getset --noload -N 500 -r 100 --prefix p: -q 20000"));
    let stored = server.statistics()["cmd_set"];
    // Every miss is followed by a set, and both count.
    assert!(text.contains(&format!(" ({} / ", 500 + stored)), "{stored} stored: {text}");
    assert!(text.contains(&format!("\nMisses = {stored} (")), "{stored} stored: {text}");
    assert!(stored >= 90 && say(&server, "get p:7\r\n", "END\r\n").len() < 10, "keys are padded: {text}");
}

#[test]
fn only_what_succeeded() {
    let _beside = beside_others();
    let Some(server) = Server::memcached(&[]) else { return };
    let text = report(&mutilate(&server, "--successful --noload -N 300 -r 100"));
    assert!(text.contains("\nTotal QPS = 0.0 (0 / ") && text.contains("\nMisses = 300 (100.0%)\n"), "{text}");
    let text = report(&mutilate(&server, "--successful -N 300 -r 100"));
    assert!(text.contains(" (300 / ") && text.contains("\nMisses = 0 (0.0%)\n"), "{text}");
}

#[test]
fn a_link_of_that_name_is_mutilate() {
    let _beside = beside_others();
    let directory = std::env::temp_dir().join(format!("brunt-link-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    for (name, argument, code, said) in [
        ("mutilate", "--version", Some(0), "mutilate 0.1\n"),
        ("mutilate-g2", "-h", Some(0), "brunt mutilate: takes the command line"),
        ("mutilate", "-loadonly", Some(1), "mutilate: --lambda_mul: 'oadonly' was given"),
        ("mutilate", "-A", Some(255), "mutilate: --agentmode is not supported yet"),
    ] {
        let link = directory.join(name);
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_brunt"), &link).unwrap();
        let output = Command::new(&link).arg(argument).stdin(Stdio::null()).output().unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(output.status.code() == code && text.starts_with(said), "{name} {argument}: {text}");
    }
    std::fs::remove_dir_all(&directory).unwrap();
}
