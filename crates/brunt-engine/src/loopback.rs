//! The production worker over real sockets, against the reference server in a thread of its own.
//!
//! Here is what a simulated world cannot show: that a running worker allocates nothing, and that the kernel's ways of
//! taking and returning bytes in pieces change nothing.

use crate::allocations::allocations;
use crate::clock::Clock;
use crate::io::epoll::Epoll;
use crate::launch::{Blueprint, build};
use crate::recording::{Exchange, Filled};
use crate::run::{DataSets, Endpoint, RunData, RunError, Wish, run};
use crate::worker::{Notice, Orders};
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::phase::Phase;
use brunt_plan::plan::Plan;
use brunt_plan::resolve::{Host, resolve};
use brunt_plan::shard::shards;
use brunt_plan::spec::PlanSpec;
use brunt_proto::memcached::text::TextCodec;
use brunt_server::{CoreOptions, Options};
use brunt_stats::book::Book;
use brunt_stats::recorder::RecorderSet;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

/// Passes what is written on to a channel.
struct Announcement(mpsc::Sender<Vec<u8>>);

impl Write for Announcement {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let _ = self.0.send(bytes.to_vec());
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Starts a reference server in a thread that lives as long as the test process.
pub(crate) fn start_server(core: CoreOptions) -> SocketAddr {
    let (sender, receiver) = mpsc::channel();
    let options = Options { listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), core, ..Options::default() };
    std::thread::spawn(move || brunt_server::serve(options, &mut Announcement(sender)));
    let mut text = Vec::new();
    while !text.ends_with(b"\n") {
        text.extend(receiver.recv().unwrap());
    }
    let text = String::from_utf8(text).unwrap();
    text.trim().strip_prefix("listening on ").unwrap().parse().unwrap()
}

pub(crate) fn plan(toml: &str) -> Plan {
    resolve(&PlanSpec::from_toml(toml).unwrap(), &Host { allowed_cpus: vec![0, 1], random_seed: 1 }).unwrap()
}

pub(crate) fn endpoint(address: SocketAddr) -> Vec<Endpoint> {
    vec![Endpoint { server: address.to_string().parse().unwrap(), addresses: vec![address] }]
}

pub(crate) fn run_against(address: SocketAddr, toml: &str) -> Result<RunData, RunError> {
    run(&plan(toml), &endpoint(address), DataSets::ToStore, &AtomicBool::new(false), &mut |_| Wish::GoOn)
}

fn measured(data: &RunData) -> Book {
    let mut sum = Book::default();
    for entry in data.intervals.books().entries() {
        assert!(entry.book.balances(), "{entry:?}");
        if entry.phase == Phase::Measure {
            sum.merge(&entry.book);
        }
    }
    sum
}

/// Runs a worker on this thread and counts what it allocates once its schedule is set up.
fn allocations_of(toml: &str) -> u64 {
    let plan = plan(&format!("threads = 1\n{toml}"));
    let address = start_server(CoreOptions::default());
    let blueprint = Arc::new(Blueprint::new(plan.clone(), endpoint(address), DataSets::ToStore));
    let (filled, mut filled_out) = rtrb::RingBuffer::<Filled>::new(2);
    let (mut spares, spares_in) = rtrb::RingBuffer::new(2);
    spares.push(RecorderSet::new(&blueprint.layout)).unwrap();
    let orders = Arc::new(Orders::default());
    let shard = shards(&plan).remove(0);
    let links = shard.classes.iter().map(|class| class.connections.len()).sum();
    let io = Epoll::new(links, Clock::start()).unwrap();
    let exchange = Exchange { filled, spares: spares_in };
    let mut worker = build(&blueprint, shard, orders.clone(), exchange, TextCodec::default(), io, true);
    // The control thread's part: read and return sets. It is told when to end by the ring being abandoned.
    let control = std::thread::spawn(move || {
        let mut intervals = 0;
        while !filled_out.is_abandoned() {
            while let Ok(mut filled) = filled_out.pop() {
                filled.set.take_interval(0, filled.start_ns, filled.end_ns);
                intervals += 1;
                spares.push(filled.set).unwrap();
            }
            std::thread::yield_now();
        }
        intervals
    });
    let mut before = None;
    while worker.is_running() {
        worker.turn();
        if let Some(notice) = worker.take_notice() {
            assert!(matches!(notice, Notice::Prepared { .. }), "{notice:?}");
            orders.start_ns.store(worker.now_ns() + 1_000_000, Ordering::Relaxed);
        }
        if worker.is_measuring() && before.is_none() {
            before = Some(allocations());
        }
    }
    let allocations = allocations() - before.unwrap();
    let end = worker.end();
    assert!(end.window.end_ns > end.window.measure_ns);
    drop(end);
    assert!(control.join().unwrap() > 3, "sets were exchanged");
    allocations
}

/// What an earlier run stored is not stored again, and is compared as if it had been.
#[test]
fn a_later_run_finds_the_data_sets_of_an_earlier_one() {
    let address = start_server(CoreOptions::default());
    let plan = |data_seed: u64| {
        plan(&format!("requests = 2000\nwarmup = 0\nkeys = 500\nmix = 'get'\ndata-seed = {data_seed}"))
    };
    let run = |data_seed, found| {
        run(&plan(data_seed), &endpoint(address), found, &AtomicBool::new(false), &mut |_| Wish::GoOn)
            .unwrap()
    };
    let preloaded = |data: &RunData| {
        let entries = data.intervals.books().entries();
        entries
            .filter(|entry| entry.phase == Phase::Preload)
            .map(|entry| entry.book.requests.sent)
            .sum::<u64>()
    };
    assert_eq!(preloaded(&run(1, DataSets::ToStore)), 500);
    let later = run(1, DataSets::Stored);
    assert_eq!(preloaded(&later), 0);
    assert_eq!(measured(&later).requests.outcome(OutcomeClass::Hit), 2_000);
    // Values of another data set are wrong, not foreign: the run relies on what was stored.
    let wrong = run(2, DataSets::Stored);
    assert_eq!(measured(&wrong).requests.outcome(OutcomeClass::Mismatch), 2_000);
    assert_eq!(wrong.values_foreign, 0);
}

#[test]
fn a_running_worker_allocates_nothing() {
    let toml = [
        "connections = 8\ndepth = 4\ntime = '400ms'\nwarmup = '50ms'\nkeys = 1000",
        "rate = 20000\nconnections = 8\ndepth = 16\ntime = '400ms'\nwarmup = '50ms'\nkeys = 1000\npopularity = 'zipf:0.99'\n\
         mix = 'get=8,set=1,mget=1'\nmeter = ['outstanding', 'request-size', 'value-received', 'oversleep']\nsamples-max = 100",
        "connections = 2\ntime = '400ms'\nwarmup = '50ms'\nkeys = 100\nvalue-size = 'uniform:0,100000'\nmix = 'get=1,set=1'",
    ];
    for toml in toml {
        assert_eq!(allocations_of(toml), 0, "{toml}");
    }
}

/// Values far larger than socket buffers: sends and receives come in many pieces.
#[test]
fn large_values_arrive_whole() {
    let address = start_server(CoreOptions::default());
    let data = run_against(
        address,
        "connections = 4\ndepth = 8\nrequests = 300\nwarmup = '0s'\nkeys = 20\nvalue-size = 'uniform:500000,1000000'\n\
         mix = 'get=1,set=1'",
    )
    .unwrap();
    let book = measured(&data);
    assert_eq!(book.requests.completed(), 300, "{book:?}");
    assert_eq!(book.keys.hit, book.keys.asked);
}

#[test]
fn several_threads_share_a_plan_exactly() {
    let address = start_server(CoreOptions::default());
    for load in ["rate = 5000", "rate = 5000\narrival = 'uniform'", ""] {
        let toml =
            format!("{load}\nthreads = 3\nconnections = 7\nrequests = 1001\nwarmup = '20ms'\nkeys = 333");
        let book = measured(&run_against(address, &toml).unwrap());
        assert_eq!((book.requests.scheduled, book.requests.completed()), (1001, 1001), "{load}");
    }
}

/// A server that answers in another language: counted, quoted, survived.
#[test]
fn garbage_is_counted_and_quoted() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let mut bytes = [0; 4096];
            if connection.read(&mut bytes).is_ok() {
                let _ = connection.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
            }
        }
    });
    let data = run_against(
        address,
        "connections = 2\ntime = '200ms'\nwarmup = '0s'\npreload = false\nmix = 'get'\ndrain = '100ms'",
    )
    .unwrap();
    let book = measured(&data);
    assert_eq!(book.requests.completed(), 0);
    assert!(book.requests.outcome(brunt_plan::outcome::OutcomeClass::Error) > 0);
    assert!(data.garbage.unwrap().bytes().starts_with(b"HTTP/1.1 400"));
    let error = run_against(address, "connections = 1\nkeys = 10\ntime = '200ms'").unwrap_err().to_string();
    assert!(error.contains("confirmed 0 of 10 keys") && error.contains("HTTP/1.1 400"), "{error}");
}

/// A listener whose queue is full takes no further connection; the kernel alone would try for minutes.
#[test]
fn a_connection_that_hangs_is_given_up() {
    let listener = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    listener.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
    listener.listen(0).unwrap();
    let address = listener.local_addr().unwrap().as_socket().unwrap();
    let error = run_against(address, "connections = 8\ntimeout = '200ms'").unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot connect to {address}: Connection timed out")), "{error}");
}

#[test]
fn nobody_there_is_named() {
    let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    let error = run_against(address, "").unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot connect to {address}: Connection refused")), "{error}");
}
