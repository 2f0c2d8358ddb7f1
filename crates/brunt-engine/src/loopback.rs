//! The production worker over real sockets, against the reference server in a thread of its own.
//!
//! Here is what a simulated world cannot show: that a running worker allocates nothing, and that the kernel's ways of
//! taking and returning bytes in pieces change nothing.

#[path = "../../brunt-server/tests/it/in_thread.rs"]
mod in_thread;

use crate::allocations::allocations;
use crate::clock::Clock;
use crate::io::Io;
use crate::io::epoll::Epoll;
use crate::io::uring::Uring;
use crate::run::blueprint::{Blueprint, build};
use crate::run::kernel_interface::io_uring_works;
use crate::run::{DataSets, Endpoint, RunData, RunDecision, RunError, run};
use crate::state::recording::{Exchange, Filled};
use crate::worker::pace::Cpus;
use crate::worker::{Notice, Orders, Worker};
use brunt_plan::choice::Gather;
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::phase::Phase;
use brunt_plan::plan::{IoChoice, MeterKind, Plan};
use brunt_plan::quantile::Quantile;
use brunt_plan::resolve::{Host, resolve};
use brunt_plan::shard::shards;
use brunt_plan::sockets::SocketOptions;
use brunt_plan::spec::PlanSpec;
use brunt_proto::memcached::text::TextCodec;
use brunt_server::{CoreOptions, Every, Faults, Service};
use brunt_stats::histogram::SparseHistogram;
use brunt_stats::recorder::RecorderSet;
use brunt_stats::request_counts::OpCounts;
use brunt_stats::sample::Sample;
use brunt_stats::worker_counts::StampLoss;
use in_thread::{options, serve_in_thread};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Starts a reference server in a thread that lives as long as the test process.
pub(crate) fn start_server(core: CoreOptions) -> SocketAddr {
    serve_in_thread(options(core))
}

/// The plan of this text. Keys have no prefix where it gives none: what they are is in the tests.
pub(crate) fn plan(toml: &str) -> Plan {
    let mut spec = PlanSpec::from_toml(toml).unwrap();
    spec.base.prefix.get_or_insert_default();
    resolve(&spec, &Host::of(vec![0, 1], 1)).unwrap()
}

pub(crate) fn endpoint(address: SocketAddr) -> Vec<Endpoint> {
    vec![Endpoint {
        server: address.to_string().parse().unwrap(),
        addresses: vec![address.into()],
        tls: None,
    }]
}

pub(crate) fn run_against(address: SocketAddr, toml: &str) -> Result<RunData, RunError> {
    run(&plan(toml), &endpoint(address), DataSets::ToStore, &AtomicBool::new(false), &mut |_| {
        RunDecision::Continue
    })
}

/// The interfaces to the kernel that there are here, as plans name them.
fn interfaces() -> Vec<&'static str> {
    let uring = io_uring_works().map_err(|why| eprintln!("SKIPPED: io_uring: {why}")).is_ok();
    if uring { vec!["epoll", "uring"] } else { vec!["epoll"] }
}

/// Runs a plan on each of them.
fn on_each(address: SocketAddr, toml: &str) -> Vec<(&'static str, RunData)> {
    let on = |io| (io, run_against(address, &format!("io = '{io}'\n{toml}")).unwrap());
    interfaces().into_iter().map(on).collect()
}

fn measured(data: &RunData) -> OpCounts {
    let mut sum = OpCounts::default();
    for entry in data.intervals.request_counts().entries() {
        assert!(entry.counts.adds_up(), "{entry:?}");
        if entry.phase == Phase::Measure {
            sum.merge(&entry.counts);
        }
    }
    sum
}

/// Runs a worker on this thread and counts what it allocates once its schedule is set up.
fn allocations_of(toml: &str) -> u64 {
    let plan = plan(&format!("threads = 1\n{toml}"));
    let address = start_server(CoreOptions::default());
    let blueprint = Arc::new(Blueprint::new(plan.clone(), endpoint(address), DataSets::ToStore));
    let (exchange, filled_out, spares) = Exchange::new(&blueprint.layout);
    let orders = Arc::new(Orders::default());
    let shard = shards(&plan).remove(0);
    let connections = shard.classes.iter().map(|class| class.connections.len()).sum();
    let codec = TextCodec::default();
    match plan.io {
        IoChoice::Uring => {
            let io = Uring::new(blueprint.ring_of(&shard), Clock::start()).unwrap();
            let worker = build(&blueprint, shard, orders.clone(), exchange, codec, io, Cpus::Spare);
            allocations_of_worker(worker, &orders, filled_out, spares)
        }
        IoChoice::Auto | IoChoice::Epoll => {
            let io =
                Epoll::new(connections, SocketOptions::default(), Gather::NOTHING, Clock::start()).unwrap();
            let worker = build(&blueprint, shard, orders.clone(), exchange, codec, io, Cpus::Spare);
            allocations_of_worker(worker, &orders, filled_out, spares)
        }
    }
}

fn allocations_of_worker<I: Io>(
    mut worker: Worker<TextCodec, I>,
    orders: &Orders,
    mut filled_out: rtrb::Consumer<Filled>,
    mut spares: rtrb::Producer<Box<RecorderSet>>,
) -> u64 {
    // The control thread's part: read and return sets. It is told when to end by the ring being abandoned.
    let control = std::thread::spawn(move || {
        let mut intervals = 0;
        while !filled_out.is_abandoned() {
            while let Ok(mut filled) = filled_out.pop() {
                filled.take_interval(0);
                intervals += 1;
                spares.push(filled.set).unwrap();
            }
            std::thread::yield_now();
        }
        intervals
    });
    let mut before = None;
    while worker.is_running() {
        worker.run_once();
        if let Some(notice) = worker.take_notice() {
            assert!(matches!(notice, Notice::Prepared), "{notice:?}");
            orders.start_ns.store(worker.now_ns() + 1_000_000, Ordering::Relaxed);
        }
        if worker.is_measuring() && before.is_none() {
            before = Some(allocations());
        }
    }
    let allocations = allocations() - before.unwrap();
    let end = worker.end();
    assert!(end.data.times.end_ns > end.data.times.measure_ns);
    drop(end);
    assert!(control.join().unwrap() > 3, "sets were exchanged");
    allocations
}

/// What an earlier run stored is not stored again, and is compared as if it had been.
#[test]
fn later_runs_use_data_sets_of_earlier_runs() {
    let address = start_server(CoreOptions::default());
    let plan = |data_seed: u64| {
        plan(&format!("requests = 2000\nwarmup = 0\nkeys = 500\nmix = 'get'\ndata-seed = {data_seed}"))
    };
    let run = |data_seed, found| {
        run(&plan(data_seed), &endpoint(address), found, &AtomicBool::new(false), &mut |_| {
            RunDecision::Continue
        })
        .unwrap()
    };
    let preloaded = |data: &RunData| {
        let entries = data.intervals.request_counts().entries();
        entries
            .filter(|entry| entry.phase == Phase::Preload)
            .map(|entry| entry.counts.requests.sent)
            .sum::<u64>()
    };
    assert_eq!(preloaded(&run(1, DataSets::ToStore)), 500);
    let later = run(1, DataSets::Stored);
    assert_eq!(preloaded(&later), 0);
    assert_eq!(measured(&later).requests.outcome(OutcomeClass::Hit), 2_000);
    // Values of another data set are wrong, not foreign: the run relies on what was stored.
    let wrong = run(2, DataSets::Stored);
    assert_eq!(measured(&wrong).requests.outcome(OutcomeClass::Mismatch), 2_000);
    assert_eq!(wrong.counts.values_foreign, 0);
}

#[test]
fn a_running_worker_allocates_nothing() {
    let toml = [
        "connections = 8\ndepth = 4\ntime = '200ms'\nwarmup = '50ms'\nkeys = 1000",
        "rate = 20000\nconnections = 8\ndepth = 16\ntime = '200ms'\nwarmup = '50ms'\nkeys = 1000\npopularity = 'zipf:0.99'\n\
         mix = 'get=8,set=1,mget=1'\nmeter = ['outstanding', 'request-size', 'value-received', 'oversleep']\nsamples-max = 100",
        "connections = 2\ntime = '200ms'\nwarmup = '50ms'\nkeys = 100\nvalue-size = 'uniform:0,100000'\nmix = 'get=1,set=1'",
        "connections = 4\ndepth = 8\ntime = '200ms'\nwarmup = '50ms'\nkeys = 100\npeak = true",
    ];
    let in_each = |toml| interfaces().into_iter().map(move |io| format!("{toml}\nio = '{io}'"));
    let stamped =
        "connections = 4\ntime = '200ms'\nwarmup = '50ms'\nkeys = 100\ntimestamps = 'kernel'".to_owned();
    for toml in toml.into_iter().flat_map(in_each).chain([stamped]) {
        assert_eq!(allocations_of(&toml), 0, "{toml}");
    }
}

/// Values far larger than socket buffers: sends and receives come in many pieces.
#[test]
fn large_values_arrive_whole() {
    let toml = "connections = 4\ndepth = 8\nrequests = 300\nwarmup = '0s'\nkeys = 20\n\
                value-size = 'uniform:500000,1000000'\nmix = 'get=1,set=1'";
    for (io, data) in on_each(start_server(CoreOptions::default()), toml) {
        let op_counts = measured(&data);
        assert_eq!(op_counts.requests.completed(), 300, "{io} {op_counts:?}");
        assert_eq!(op_counts.keys.hit, op_counts.keys.requested);
    }
}

/// More replies come at once than io_uring has buffers for: those that find none are received when one is back.
#[test]
fn replies_wait_for_buffers() {
    let toml =
        "connections = 300\nrequests = 6000\nwarmup = '0s'\nkeys = 50\nvalue-size = 60000\nmix = 'get'";
    for (io, data) in on_each(start_server(CoreOptions::default()), toml) {
        let requests = measured(&data).requests;
        assert_eq!((requests.scheduled, requests.completed()), (6_000, 6_000), "{io}");
    }
}

/// Connections that end by plan while others have requests to hand in: each still gets its replies, once.
#[test]
fn closing_connections_leave_others_undisturbed() {
    for (load, calls) in [("", 1), ("", 7), ("rate = 20000\n", 3)] {
        let toml = format!(
            "{load}connections = 16\ndepth = 4\nrequests = 4000\nwarmup = '0s'\nkeys = 100\ncalls-per-connection = {calls}"
        );
        for (io, data) in on_each(start_server(CoreOptions::default()), &toml) {
            let requests = measured(&data).requests;
            assert_eq!((requests.scheduled, requests.completed()), (4_000, 4_000), "{io} {toml}");
        }
    }
}

/// Whatever is gathered and however slots are used again, all is answered.
#[test]
fn policies_change_no_operation() {
    let address = start_server(CoreOptions::default());
    for policy in ["peak = true", "gather = '3'", "gather = '200us'", "refill = 'batch'"] {
        let toml = format!(
            "{policy}\nconnections = 8\ndepth = 16\nrequests = 20000\nwarmup = '0s'\nkeys = 100\npreload = false\nmix = 'set'"
        );
        for (io, data) in on_each(address, &toml) {
            assert_eq!(measured(&data).requests.completed(), 20_000, "{io} {toml}");
        }
    }
}

/// What is due is sent, however long replies may be waited for. A host that takes the processor away for as long delays half of
/// four tenths of a second as well: then it is tried again.
#[test]
fn gathering_delays_nothing_that_is_due() {
    let address = start_server(CoreOptions::default());
    for io in interfaces() {
        let toml = format!(
            "io = '{io}'\ngather = '4,900ms'\nrate = 500\narrival = 'uniform'\nconnections = 4\ndepth = 8\n\
             requests = 200\nwarmup = '0s'\nkeys = 100\nsamples-max = 1000"
        );
        let is_sent_in_time = || {
            let data = run_against(address, &toml).unwrap();
            let mut lags: Vec<u64> = data.samples.iter().map(|sample| sample.times.send_lag_ns()).collect();
            lags.sort_unstable();
            eprintln!("{io}: half of all is later than {} ns", lags[100]);
            // A reply may lie until the next request is due, and the bar says so.
            let held =
                |sample: &Sample| sample.times.response_ns() - sample.times.response_without_client_ns();
            assert!(data.samples.iter().filter(|sample| held(sample) > 500_000).count() > 100, "{io}");
            lags[100] < 50_000_000
        };
        assert!((0..4).any(|_| is_sent_in_time()), "{io}");
    }
}

#[test]
fn several_threads_share_a_plan_exactly() {
    let address = start_server(CoreOptions::default());
    for load in ["rate = 5000", "rate = 5000\narrival = 'uniform'", ""] {
        let toml = "threads = 3\nconnections = 7\nrequests = 1001\nwarmup = '20ms'\nkeys = 333";
        for (io, data) in on_each(address, &format!("{load}\n{toml}")) {
            let requests = measured(&data).requests;
            assert_eq!((requests.scheduled, requests.completed()), (1001, 1001), "{io} {load}");
        }
    }
}

/// A server that answers in another language: counted, quoted, survived.
#[test]
fn malformed_bytes_are_counted_and_quoted() {
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
    let toml =
        "connections = 2\ntime = '200ms'\nwarmup = '0s'\npreload = false\nmix = 'get'\ndrain = '100ms'";
    for (_, data) in on_each(address, toml) {
        let op_counts = measured(&data);
        assert_eq!(op_counts.requests.completed(), 0);
        assert!(op_counts.requests.outcome(brunt_plan::outcome::OutcomeClass::Error) > 0);
        assert!(data.counts.first_malformed.unwrap().bytes().starts_with(b"HTTP/1.1 400"));
    }
    let error = run_against(address, "connections = 1\nkeys = 10\ntime = '200ms'").unwrap_err().to_string();
    assert!(error.contains("0 of 10 keys confirmed") && error.contains("HTTP/1.1 400"), "{error}");
}

/// A listener whose queue is full takes no further connection; the kernel alone would try for minutes.
#[test]
fn hanging_connections_time_out() {
    let listener = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    listener.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
    listener.listen(0).unwrap();
    let address = listener.local_addr().unwrap().as_socket().unwrap();
    for io in interfaces() {
        let toml = format!("io = '{io}'\nconnections = 8\ntimeout = '200ms'");
        let error = run_against(address, &toml).unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot connect to {address}: Connection timed out")), "{error}");
    }
}

#[test]
fn unreachable_servers_are_named() {
    let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    for io in interfaces() {
        let error = run_against(address, &format!("io = '{io}'")).unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot connect to {address}: Connection refused")), "{error}");
    }
}

/// A span of the requests that the kernel stamped.
fn span(data: &RunData, kind: MeterKind) -> SparseHistogram {
    data.intervals.meters().iter().find(|meter| meter.kind == kind).unwrap().histogram.clone()
}

const P50: Quantile = Quantile::P50;

/// The kernel's stamps put a service time of 200 us where it is: between the request's leaving and the reply's coming.
/// The three spans are, request by request, all of the time from the call that sent it to the read of its reply.
///
/// Medians add up where nothing is out of the ordinary, which a host that is kept from its processors needs several tries
/// for; stamps that were wrong would be so in each.
#[test]
fn stamps_part_the_client_from_wire_and_server() {
    let address = start_server(CoreOptions { service: Service::Fixed(200_000), ..CoreOptions::default() });
    for io in interfaces() {
        let mut tries = (0..5).map(|_| parted(address, io));
        let adds_up = |(parts_ns, service_ns): ([u64; 3], u64)| {
            eprintln!("{parts_ns:?} ns against {service_ns} ns");
            let [out_ns, _, back_ns] = parts_ns;
            let is_near = parts_ns.iter().sum::<u64>().abs_diff(service_ns) < service_ns / 4;
            out_ns > 0 && out_ns.max(back_ns) < 200_000 && is_near
        };
        assert!(tries.any(adds_up), "{io}");
    }
}

/// The medians of the three spans; and that of their whole from our own clock: service time and the call that sends.
fn parted(address: SocketAddr, io: &str) -> ([u64; 3], u64) {
    let data = run_against(
        address,
        &format!(
            "io = '{io}'\nrate = 200\narrival = 'uniform'\nconnections = 4\ntime = '1s'\nwarmup = '100ms'\nkeys = 100\n\
             timestamps = 'kernel'\nsamples-max = 10000"
        ),
    )
    .unwrap();
    let (op_counts, counts) = (measured(&data), data.counts.stamps);
    assert_eq!((op_counts.requests.scheduled, op_counts.requests.completed()), (200, 200));
    assert!(counts.adds_up(), "{counts:?}");
    // At 200 a second every request is stamped that is not sent less than 5 ms after another.
    assert!(counts.requested > 50 && counts.matched * 10 >= counts.requested * 9, "{counts:?}");
    let spans = MeterKind::SPANS.map(|kind| span(&data, kind));
    let least_ns = spans[1].moments().min;
    assert!(least_ns >= 200_000, "{least_ns}");
    let mut services: Vec<u64> = data.samples.iter().map(|sample| sample.times.service_ns()).collect();
    services.sort_unstable();
    (spans.map(|span| span.quantile(P50).unwrap()), services[services.len() / 2])
}

/// Stamps ask for no operation more or less, at any depth; and where replies share reads they are thrown away.
#[test]
fn stamps_change_no_operation() {
    let address = start_server(CoreOptions::default());
    let runs = |depth| {
        let toml = "connections = 16\nrequests = 40000\nwarmup = '0s'\nkeys = 100\ntimestamps = 'kernel'";
        on_each(address, &format!("{toml}\ndepth = {depth}")).into_iter().map(move |(_, data)| (depth, data))
    };
    for (depth, data) in [1, 8].into_iter().flat_map(runs) {
        let (requests, counts) = (measured(&data).requests, data.counts.stamps);
        assert_eq!((requests.scheduled, requests.completed()), (40_000, 40_000));
        assert!(counts.adds_up(), "{counts:?}");
        let seconds = (data.times.end_ns - data.times.measure_ns) as f64 / 1e9;
        let most = (seconds * 200.0) as u64 + 2;
        assert!(counts.requested <= most, "{counts:?} in {seconds} s");
        assert_eq!(counts.discarded(StampLoss::OutOfOrder), 0, "{counts:?}");
        assert_eq!(counts.discarded(StampLoss::OtherByte), 0, "{counts:?}");
        assert!(depth > 1 || counts.matched > 10, "{counts:?}");
        let wire = span(&data, MeterKind::WireAndServer);
        // No reply comes before its request has gone, and none took longer than the slowest request.
        assert!(wire.count() == counts.matched && wire.moments().max < 1_000_000_000, "{:?}", wire.moments());
    }
}

/// A server that resets connections, and one that closes them in the middle of a reply: what is out yields nothing, the
/// error queue of a dead socket affects no other connection, and every other request is recorded as ever.
#[test]
fn stamps_survive_connections_that_end() {
    let every = Every::new(7);
    let faults = [
        Faults { reset_every: every, ..Faults::default() },
        Faults { cut_every: every, ..Faults::default() },
    ];
    let toml = "rate = 2000\nconnections = 4\ntime = '500ms'\nwarmup = '0s'\nkeys = 100\npreload = false\n\
                timestamps = 'kernel'\ndrain = '200ms'";
    let runs = |faults| on_each(start_server(CoreOptions { faults, ..CoreOptions::default() }), toml);
    for (_, data) in faults.into_iter().flat_map(runs) {
        let (requests, counts) = (measured(&data).requests, data.counts.stamps);
        assert!(requests.completed() > 0, "{requests:?}");
        assert!(requests.outcome(OutcomeClass::Lost) > 0, "{requests:?}");
        assert!(counts.adds_up() && counts.matched > 0, "{counts:?}");
        assert!(counts.discarded(StampLoss::Unanswered) > 0, "{counts:?}");
        assert_eq!(counts.discarded(StampLoss::OtherByte), 0, "{counts:?}");
    }
}

/// Values larger than a socket takes at once, and than a read brings: what cannot be told is not told.
#[test]
fn stamps_of_large_values_belong_to_their_last_bytes() {
    let address = start_server(CoreOptions::default());
    let data = run_against(
        address,
        "connections = 2\nrequests = 400\nwarmup = '0s'\nkeys = 20\nvalue-size = 900000\nmix = 'get=1,set=1'\n\
         timestamps = 'kernel'",
    );
    let data = data.unwrap();
    let counts = data.counts.stamps;
    assert_eq!(measured(&data).requests.completed(), 400);
    assert!(counts.adds_up() && counts.requested > 1, "{counts:?}");
    assert_eq!(counts.discarded(StampLoss::OutOfOrder), 0, "{counts:?}");
    assert_eq!(counts.discarded(StampLoss::OtherByte), 0, "{counts:?}");
}
