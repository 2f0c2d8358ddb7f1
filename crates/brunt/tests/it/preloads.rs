//! Preloads that a server refuses: an error that holds ends one at once, one that passes is waited for.

use crate::cluster::wait_until;
use crate::server::{Ended, listening, plain, rows, side_by_side};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

/// How many stores a server has seen, by key.
type Stores = Arc<Mutex<HashMap<String, u64>>>;

/// A memcached that has this reply to every store until it has refused one key `times` times; its address, and what it has seen.
fn refusing(reply: &str, times: u64) -> (String, Stores) {
    let stores = Stores::default();
    let (seen, reply) = (stores.clone(), reply.to_owned());
    (listening(move |stream, _| _ = serve(&stream, &reply, times, &stores)), seen)
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
    // Reply, and how often a key has it; exit code, how many stores are sent at most, and what is said. After the first refusals, of as many
    // keys as were in flight, one key is tried alone until it is stored: of memory that is not there six times at most, but not of another
    // error, which may pass.
    let rejects = "error: preload failed: 0 of 100 keys confirmed on ";
    let memory = "SERVER_ERROR out of memory storing object";
    let table = format!(
        "SERVER_ERROR object too large for cache => 999 => 5 => 100 => {rejects} | the server rejects a key: \"object too large for cache\"; use a smaller --value-size, or raise
         ERROR => 999 => 5 => 100 => {rejects} | the server rejects a key: \"ERROR\"
         CLIENT_ERROR => 999 => 5 => 100 => the server rejects a key: \"CLIENT_ERROR\"
         CLIENT_ERROR line too long => 999 => 5 => 100 => the server rejects a key: \"line too long\"
         {memory} => 999 => 5 => 110 => the server rejects a key: \"out of memory storing object\"; give the server more memory
         SERVER_ERROR backend is down => 999 => 5 => 120 => brunt: preload  |  0/100 keys  | {rejects} | no key was stored for 8s; first error \"backend is down\"
         {memory} => 4 => 0 => 203 => 100 keys
         SERVER_ERROR backend is down => 8 => 0 => 207 => 100 keys"
    );
    // A rate does not put off the end.
    let rates = ["", " --set preload-rate=100k"];
    side_by_side(
        rates.into_iter().flat_map(|rate| rows(&table).into_iter().map(move |row| (row, rate))),
        |(row, rate)| check(row, rate),
    );
}

fn check([reply, times, exit, stores_max, parts]: [&str; 5], rate: &str) {
    let (address, stores) = refusing(reply, times.parse().unwrap());
    let flags = format!("--keys 100 -T 1 -c 4 --timeout 1s --progress 500ms --protocol memcached-text{rate}");
    let output = Ended::from(plain(&format!("load -s {address} {flags}")));
    let said = format!("{}{}", output.out, output.said);
    assert_eq!(output.exit.to_string(), exit, "{reply}{rate}");
    parts.split(" | ").for_each(|word| assert!(said.contains(word), "{reply}, {word}"));
    let stores: u64 = stores.lock().unwrap().values().sum();
    assert!(stores <= stores_max.parse().unwrap(), "{reply}: {stores} stores");
}

/// Keys that another worker has stored are counted, though it has not finished.
#[test]
fn keys_of_all_workers_are_counted() {
    let (taking, stores) = refusing("", 0);
    let seen = stores.clone();
    let late = listening(move |stream, _| {
        wait_until("the other has some keys", || seen.lock().unwrap().len() >= 5);
        let _ = serve(&stream, "SERVER_ERROR object too large for cache", 999, &Stores::default());
    });
    let flags = "--placement by-thread -T 2 -c 2 --keys 200 --set preload-rate=100 --protocol memcached-text";
    let output = Ended::from(plain(&format!("load -s {taking} -s {late} {flags}")));
    output.is(5, &[" of 400 keys confirmed on "]);
    let (_, counted) = output.said.split_once("preload failed: ").unwrap();
    let counted: usize = counted.split(' ').next().unwrap().parse().unwrap();
    assert!((1..=stores.lock().unwrap().len()).contains(&counted), "{}", output.said);
}
