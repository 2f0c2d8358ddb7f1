//! Preloads that a server refuses: an error that holds ends one at once, one that passes is waited for.

use crate::server::{beside_others, plain};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// How many stores a server has seen, by key.
type Stores = Arc<Mutex<HashMap<String, u64>>>;

/// A memcached that has this reply to every store until it has refused one key `times` times; its address, and what it has seen.
fn refusing(reply: &'static str, times: u64) -> (String, Stores) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let stores = Stores::default();
    let seen = stores.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stores = stores.clone();
            std::thread::spawn(move || serve(&stream.unwrap(), reply, times, &stores));
        }
    });
    (address, seen)
}

fn serve(mut stream: &TcpStream, reply: &str, times: u64, stores: &Stores) -> Option<()> {
    let mut input = BufReader::new(stream);
    let mut line = String::new();
    while input.read_line(&mut line).ok()? > 0 {
        let said = match line.strip_prefix("set ") {
            Some(words) => {
                let words: Vec<&str> = words.trim().split(' ').collect();
                input.read_exact(&mut vec![0; words[3].parse::<usize>().ok()? + 2]).ok()?;
                let mut stores = stores.lock().unwrap();
                *stores.entry(words[0].to_owned()).or_default() += 1;
                if stores.values().all(|seen| *seen <= times) { reply } else { "STORED" }
            }
            None => "END",
        };
        stream.write_all(format!("{said}\r\n").as_bytes()).ok()?;
        line.clear();
    }
    Some(())
}

#[test]
fn refused_preloads_end_or_go_on() {
    let _beside = beside_others();
    // Reply, and how often a key has it → exit code, what is said, and how many stores are sent at most.
    let rejects = "error: preload failed: 0 of 100 keys stored on ";
    let table: [(&str, u64, i32, &[&str], u64); 8] = [
        (
            "SERVER_ERROR object too large for cache",
            u64::MAX,
            5,
            &[
                rejects,
                "the server rejects a key: \"object too large for cache\"; use a smaller --value-size, or raise",
            ],
            100,
        ),
        ("ERROR", u64::MAX, 5, &[rejects, "the server rejects a key: \"ERROR\""], 100),
        ("CLIENT_ERROR", u64::MAX, 5, &["the server rejects a key: \"CLIENT_ERROR\""], 100),
        ("CLIENT_ERROR line too long", u64::MAX, 5, &["the server rejects a key: \"line too long\""], 100),
        (
            "SERVER_ERROR out of memory storing object",
            u64::MAX,
            5,
            &["the server rejects a key: \"out of memory storing object\"; give the server more memory"],
            110,
        ),
        (
            "SERVER_ERROR backend is down",
            u64::MAX,
            5,
            &[
                "brunt: preload ",
                " 0/100 keys ",
                rejects,
                "no key was stored for 8s; first error \"backend is down\"",
            ],
            120,
        ),
        // After the first refusals, of as many keys as were in flight, one key is tried alone until it is stored: of memory that is not there
        // six times at most, but not of another error, which may pass.
        ("SERVER_ERROR out of memory storing object", 4, 0, &["100 keys"], 203),
        ("SERVER_ERROR backend is down", 8, 0, &["100 keys"], 207),
    ];
    std::thread::scope(|scope| {
        for row in table {
            // A rate does not put off the end.
            for rate in ["", " --set preload-rate=100k"] {
                scope.spawn(move || check(row, rate));
            }
        }
    });
}

fn check((reply, times, exit, words, stores_max): (&'static str, u64, i32, &[&str], u64), rate: &str) {
    let (address, stores) = refusing(reply, times);
    let flags = format!("--keys 100 -T 1 -c 4 --timeout 1s --progress 500ms --protocol memcached-text{rate}");
    let arguments: Vec<&str> = ["load", "-s", &address].into_iter().chain(flags.split(' ')).collect();
    let output = plain(&arguments).output().unwrap();
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert_eq!(output.status.code(), Some(exit), "{reply}{rate}: {said}");
    words.iter().for_each(|word| assert!(said.contains(word), "{reply}, {word}: {said}"));
    let stores: u64 = stores.lock().unwrap().values().sum();
    assert!(stores <= stores_max, "{reply}: {stores} stores\n{said}");
}
