//! Runs that are looked at by HTTP while they go on: what scrapers see adds up to the result, and no request disturbs anything.
//!
//! Not the texts, of which made-up runs have everything (`brunt-report/src/tests/metrics.rs`).

#[path = "../../../brunt-report/src/tests/metrics/reader.rs"]
mod reader;

use crate::fleet::Agent;
use crate::schema::check_result;
use crate::server::{Directory, Server, begin, brunt, ended, wait};
use reader::Exposition;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Child;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// No client waits longer for an answer, on whatever host.
const ANSWERED: Duration = Duration::from_secs(5);

/// What one who followed a page was told.
struct Followed {
    pages: Vec<String>,
    is_ended: bool,
}

impl Followed {
    fn of(answer: &str) -> Self {
        let (head, events) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"), "{head}");
        let (mut pages, mut is_ended) = (Vec::new(), false);
        for event in events.split("\n\n").filter(|event| !event.is_empty()) {
            assert!(!is_ended, "something behind the end: {event}");
            is_ended = event.starts_with("event: end");
            if event.contains("event: page") {
                let lines = event.lines().filter_map(|line| line.strip_prefix("data: "));
                pages.push(lines.fold(String::new(), |page, line| page + line + "\n"));
            }
        }
        Self { pages, is_ended }
    }

    /// It saw the run go on, and then the page that is in this file.
    fn check(&self, file: &Path) {
        let result = std::fs::read_to_string(file).unwrap();
        assert!(self.is_ended, "{} pages and no end", self.pages.len());
        assert_eq!(self.pages.last(), Some(&result));
        let is_running =
            |page: &&String| page.contains("<h1>running: measure, ") && page.contains("id=\"time\"");
        let running: Vec<&String> = self.pages.iter().filter(is_running).collect();
        assert!(running.len() >= 2 && running[0] != running[1], "{} pages", self.pages.len());
        assert!(running.iter().all(|page| page.len() < 100_000), "{}", running[0].len());
    }
}

/// A run that shows itself.
pub(crate) struct Shown {
    child: Child,
    address: String,
    /// Where its result is.
    directory: Directory,
}

impl Shown {
    pub(crate) fn start(server: &Server, flags: &str) -> Self {
        let directory = Directory::new();
        let (place, result) = (&server.address, directory.path("result.json"));
        let shown = "--allow=BROKEN,LOAD,CLIENT,DATA --wait sleep --http 0";
        let mut child = begin(brunt(&format!("run -q {shown} -s {place} {flags} -o {result}")));
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.strip_prefix("note: http://").and_then(|line| line.split('/').next());
        let address = address.unwrap_or_else(|| panic!("no address: {line}")).to_owned();
        Self { child, address, directory }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(ANSWERED)).unwrap();
        stream
    }

    /// What comes of these bytes.
    fn says(&self, request: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    pub(crate) fn body(&self, path: &str) -> String {
        let answer = self.says(&format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address));
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
        body.to_owned()
    }

    /// Follows the page until the run ends, on a thread.
    fn follow(&self) -> JoinHandle<Followed> {
        let mut stream = self.connect();
        stream.write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        std::thread::spawn(move || {
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            Followed::of(&answer)
        })
    }

    fn metrics(&self) -> Exposition {
        let text = self.body("/metrics");
        reader::read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    /// The metrics as soon as so many requests of the window have been answered.
    fn metrics_with(&self, count: f64) -> Exposition {
        let since = Instant::now();
        loop {
            let found = self.metrics();
            if found.sum("brunt_response_seconds_count", &[]) >= count {
                return found;
            }
            assert!(since.elapsed() < Duration::from_secs(60), "nothing is measured");
            wait(Duration::from_millis(5));
        }
    }

    /// Memory of the process, in KiB.
    pub(crate) fn resident_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim_end_matches("kB").trim().parse().unwrap()
    }

    /// Waits for its end; its result.
    pub(crate) fn end(mut self) -> Value {
        assert!(self.child.wait().unwrap().success());
        assert!(TcpStream::connect(&self.address).is_err(), "it outlives the run");
        serde_json::from_str(&self.directory.text("result.json")).unwrap()
    }
}

fn of_phases(result: &Value, key: &str) -> f64 {
    let phases = result["counts"]["phases"].as_object().unwrap().values();
    phases.map(|phase| phase["requests"][key].as_f64().unwrap()).sum()
}

/// What is seen while a run goes on never falls and is no more than its result.
fn check_counts(early: &Exposition, late: &Exposition, result: &Value) {
    for (metric, key) in [
        ("brunt_requests_scheduled_total", "scheduled"),
        ("brunt_requests_sent_total", "sent"),
        ("brunt_requests_total", "completed"),
    ] {
        let (early, late, end) = (early.sum(metric, &[]), late.sum(metric, &[]), of_phases(result, key));
        assert!(0.0 < early && early < late && late <= end, "{metric}: {early} {late} {end}");
    }
}

/// Slow clients, half-open ones, ones that say nothing or garbage, more of them than there is room for: the run has its result, and
/// every request has an answer.
#[test]
fn http_requests_do_not_disturb_a_run() {
    let server = Server::reference("");
    let run = Shown::start(&server, "-r 1k -t 4s -c 4 --keys 300 --warmup 0s");
    let mut slow: Vec<TcpStream> = (0..40).map(|_| run.connect()).collect();
    let request = b"GET /metrics HTTP/1.1\r\n";
    let mut drip = |nth: usize| slow.iter_mut().for_each(|stream| drop(stream.write(&request[nth..=nth])));
    drip(0);
    let early = run.metrics_with(1.0);
    drip(1);
    assert_eq!(early.sum("brunt_connections_open", &[]), 4.0);
    assert_eq!(early.sum("brunt_status", &[("brunt_status", "pending")]), 1.0);
    assert!(early.sum("brunt_server_requests_total", &[("server", &server.address)]) > 0.0);
    for (request, status) in [
        ("HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", "200 OK"),
        ("GET /metrics HTTP/1.1\r\n\r\n", "400 Bad Request"),
        ("GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n", "421 Misdirected Request"),
        ("GET /other HTTP/1.1\r\nHost: localhost\r\n\r\n", "404 Not Found"),
        ("POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\na", "405 Method Not Allowed"),
        ("stats\r\n", "400 Bad Request"),
        ("\u{0}\u{1}\r\n\r\n", "400 Bad Request"),
        (
            &format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "a".repeat(20_000)),
            "431 Request Header Fields Too Large",
        ),
    ] {
        let answer = run.says(request);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{request:?}: {answer}");
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        assert_eq!(body.is_empty(), request.starts_with("HEAD"), "{body}");
        assert!(status != "404 Not Found" || body.contains("/, /metrics and /summary.json"), "{body}");
    }
    let live = run.body("/summary.json");
    check_result("live", &live);
    assert!(live.contains("\"state\": \"measure\""), "{live}");
    let before_kib = run.resident_kib();
    for _ in 0..500 {
        run.body("/metrics");
    }
    let grown_kib = run.resident_kib().saturating_sub(before_kib);
    assert!(grown_kib < 6 << 10, "it has grown by {grown_kib} KiB");
    let late = run.metrics_with(early.sum("brunt_response_seconds_count", &[]) + 1.0);
    drip(2);
    let result = run.end();
    check_counts(&early, &late, &result);
    assert_eq!(result["counts"]["requests"]["completed"], result["counts"]["requests"]["scheduled"]);
    assert_eq!(result["client"]["connections"]["lost"], 0);
}

/// What agents do is seen at their controller, which loads nothing itself.
#[test]
fn controllers_serve_metrics_of_all_agents() {
    let server = Server::reference("");
    let agents = [Agent::wait("-T 1"), Agent::wait("-T 1")];
    let [one, two] = [&agents[0].address, &agents[1].address];
    let flags = format!("--agent {one} --agent {two} -r 1k -t 3s -c 6 --keys 300 --warmup 0s");
    let directory = Directory::new();
    let page = directory.join("fleet.html");
    let run = Shown::start(&server, &format!("{flags} -o {}", page.to_str().unwrap()));
    let followed = run.follow();
    let early = run.metrics_with(500.0);
    assert_eq!(early.sum("brunt_connection_events_total", &[("event", "established")]), 6.0);
    let late = run.metrics_with(early.sum("brunt_response_seconds_count", &[]) + 500.0);
    check_counts(&early, &late, &run.end());
    followed.join().unwrap().check(&page);
}

/// What a scrape says of gets: how many were due, and done, how many of these took longer than 0.63 s; outages, and how long they were.
fn seen(found: &Exposition) -> [f64; 5] {
    let gets = |metric: &str| found.sum(metric, &[("op", "get")]);
    let done = gets("brunt_response_seconds_count");
    let fast = found.sum("brunt_response_seconds_bucket", &[("op", "get"), ("le", "0.63")]);
    let outages = ["brunt_outages_total", "brunt_outage_seconds_total"].map(|metric| found.sum(metric, &[]));
    [gets("brunt_requests_scheduled_total"), done, done - fast, outages[0], outages[1]]
}

/// A server that stands still for a second, which begins in second 3 and ends in second 4, does so in the metrics: what is due goes on, what
/// is done stands still, and then come those that have waited.
#[test]
fn stalls_are_scraped_in_their_second() {
    let server = Server::reference("--stall 3500ms:1s");
    let run = Shown::start(&server, "-r 1k -t 8s -c 4 --keys 300 --warmup 0s --mix get=1");
    let mut events = run.connect();
    events.write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    // As it was at the end of each second, of which an event tells.
    let mut ends = vec![[0.0; 5]];
    let mut lines = BufReader::new(events).lines().map(Result::unwrap);
    while ends.len() < 8 {
        assert!(lines.any(|line| line == "event: page"), "{ends:?}");
        let found = seen(&run.metrics());
        if found[0] > ends[ends.len() - 1][0] {
            ends.push(found);
        }
    }
    drop(lines);
    run.end();
    let text = format!("due, done, slow, outages, seconds of outages: {ends:#?}");
    for pair in ends.windows(2) {
        assert!((800.0..1_200.0).contains(&(pair[1][0] - pair[0][0])), "{text}");
    }
    for (second, [due, done, slow, outages, length_s]) in ends.into_iter().enumerate() {
        // The stall is counted from the first connection, a little before the schedule.
        let expected = match second {
            ..4 => (0.0..60.0, 0.0..0.1, 0.0..0.1, 0.0..0.1),
            4 => (300.0..900.0, 0.0..0.1, 0.0..0.1, 0.0..0.1),
            _ => (0.0..60.0, 250.0..500.0, 1.0..1.1, 0.9..1.3),
        };
        let is_so = expected.0.contains(&(due - done))
            && expected.1.contains(&slow)
            && expected.2.contains(&outages)
            && expected.3.contains(&length_s);
        assert!(is_so, "second {second}: {text}");
    }
}

/// Every browser that follows ends with the page of the result, byte for byte, assertions included; there is room for eight.
#[test]
fn the_page_of_a_run_becomes_that_of_its_result() {
    let server = Server::reference("");
    let directory = Directory::new();
    let page = directory.join("result.html");
    let flags = "-r 1k -t 4s -c 4 --keys 300 --warmup 0s --assert 'p99 < 1s'";
    let run = Shown::start(&server, &format!("{flags} -o {}", page.to_str().unwrap()));
    let followed: Vec<JoinHandle<Followed>> = (0..8).map(|_| run.follow()).collect();
    run.metrics_with(1_500.0);
    let open = run.body("/");
    assert!(open.contains("connect-src 'self'") && open.contains("<h1>running: measure, "), "{open}");
    let ninth = run.says("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(ninth.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{ninth}");
    assert!(run.says("HEAD /events HTTP/1.1\r\nHost: localhost\r\n\r\n").starts_with("HTTP/1.1 200 OK\r\n"));
    let result = run.end();
    followed.into_iter().for_each(|followed| followed.join().unwrap().check(&page));
    assert_eq!(result["status"]["assertions"].as_array().map(Vec::len), Some(1));
}

/// After the last of several runs the page is that of all of them.
#[test]
fn the_page_of_a_campaign_is_its_end() {
    let server = Server::reference("");
    let directory = Directory::new();
    let page = directory.join("campaign.html");
    let flags = "--repeat 2 -r 1k -t 3s -c 4 --keys 300 --warmup 0s";
    let run = Shown::start(&server, &format!("{flags} -o {}", page.to_str().unwrap()));
    let followed = run.follow();
    let result = run.end();
    assert_eq!(result["runs"].as_array().map(Vec::len), Some(2));
    let followed = followed.join().unwrap();
    assert!(followed.is_ended);
    assert_eq!(followed.pages.last(), Some(&std::fs::read_to_string(&page).unwrap()));
    // Those of the runs while they went on; a slow client is not shown every page.
    assert!(followed.pages.len() > 2, "{} pages", followed.pages.len());
}

#[test]
fn http_listen_errors_are_reported() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let port = address.rsplit_once(':').unwrap().1;
    for (given, named, reason) in [
        (
            port,
            &*address,
            " (Address already in use (os error 98)): expected an address of this host and a free port",
        ),
        ("192.0.2.1:0", "192.0.2.1:0", " (Cannot assign requested address (os error 99)): expected "),
        ("0.0.0.0", "0.0.0.0", ": expected a port of this host alone"),
    ] {
        let mut output = ended(&format!("run --http {given} -n 10"));
        output.said = output.said.replace('\n', " ");
        output.is(2, &[&format!("invalid value '{named}' for --http{reason}")]);
    }
    let expected = "--http requires --live: these results were measured already";
    ended("compare a.json b.json --http 0").is(2, &[expected]);
}
