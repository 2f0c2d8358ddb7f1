//! Clusters: operations that nodes send elsewhere, exactly when they are sent and what they are recorded as.
//!
//! The world is three nodes without any data, of which each request takes 100 us there and back, and a script that says what
//! a node answers. What the worker is to know about slots is computed here by the definition of the hash alone.

use super::scripted::{Answers, Scripted, Wire, run_scripted};
use super::{MS, SECOND, US, endpoints, plan};
use crate::codecs::resp_codec;
use crate::run::blueprint::{Blueprint, DataSets};
use crate::state::hash_slots::{SharedSlotMap, TRY_AGAIN_NS};
use crate::worker::WorkerEnd;
use brunt_plan::op::{ClassId, OpId, OpKind};
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::phase::Phase;
use brunt_plan::shard::shards;
use brunt_proto::resp::reply::WholeReply;
use brunt_proto::resp::slot::{NodeAddress, SlotMap};
use brunt_stats::occupancy::OccupancyTotal;
use brunt_stats::request_counts::OpCounts;
use brunt_stats::sample::Sample;
use brunt_stats::server::ServerCounts;
use brunt_stats::verification::ValueFault;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

/// There and back again.
const WAY_NS: u64 = 100 * US;
/// The first slots of the nodes, and the end.
const BOUNDS: [u16; 4] = [0, 5_000, 10_000, 16_384];

/// A command as it reaches a node.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Asked {
    node: u16,
    at_ns: u64,
    words: Vec<String>,
    /// It is behind an `ASKING` on its connection.
    asking: bool,
}

impl Asked {
    fn name(&self) -> &str {
        &self.words[0]
    }

    /// Redis's definition of a slot, bit by bit.
    fn slot(&self) -> u16 {
        slot(&self.words[1])
    }
}

fn slot(key: &str) -> u16 {
    let hashed = match key.split_once('{').and_then(|(_, behind)| behind.split_once('}')) {
        Some((tag, _)) if !tag.is_empty() => tag,
        _ => key,
    };
    let step = |crc: u16, _| if crc & 0x8000 != 0 { (crc << 1) ^ 0x1021 } else { crc << 1 };
    hashed.bytes().fold(0, |crc, byte| (0..8).fold(crc ^ (u16::from(byte) << 8), step)) % 16_384
}

fn home(slot: u16) -> u16 {
    (0..3).find(|node| slot < BOUNDS[usize::from(*node) + 1]).unwrap()
}

/// What a script says of a node that answers nothing from then on.
const SILENCE: &str = "";

/// What a node answers: an error, or `None` for what is right. `heard` is all that came before, of all nodes.
type Script = fn(asked: &Asked, heard: &[Asked]) -> Option<String>;

/// The nodes, as a script has them.
#[derive(Default)]
struct Nodes {
    heard: Vec<Asked>,
    /// Connections behind an `ASKING`.
    asking: BTreeSet<usize>,
    /// Which nodes answer nothing any more.
    silent: [bool; 3],
}

impl Nodes {
    fn answer(&mut self, script: Script, wire: Wire, words: Vec<String>) -> Option<(u64, Vec<u8>)> {
        let (node, asking) = (wire.port - 1, self.asking.remove(&wire.number));
        let asked = Asked { node, at_ns: wire.at_ns, words, asking };
        let is_asking = asked.name() == "ASKING";
        let said = if is_asking { None } else { script(&asked, &self.heard) };
        if is_asking {
            self.asking.insert(wire.number);
        }
        let right = || match asked.name() {
            "ASKING" | "SET" => "+OK\r\n".to_owned(),
            "MGET" => format!("*{}\r\n{}", asked.words.len() - 1, "$-1\r\n".repeat(asked.words.len() - 1)),
            _ => "$-1\r\n".to_owned(),
        };
        let is_silent = &mut self.silent[usize::from(node)];
        *is_silent |= said.as_deref() == Some(SILENCE);
        let reply = (!*is_silent).then(|| said.map_or_else(right, |error| format!("-{error}\r\n")));
        self.heard.push(asked);
        reply.map(|reply| (WAY_NS, reply.into_bytes()))
    }
}

/// The commands in these bytes, each an array of strings; of values only what is text.
fn commands(mut bytes: &[u8]) -> Vec<Vec<String>> {
    let mut number = |kind: u8, skipped: usize| {
        bytes = &bytes[skipped..];
        let end = bytes.iter().position(|byte| *byte == b'\r').unwrap_or(0);
        let (head, rest) = bytes.split_at(end);
        let number =
            head.strip_prefix(&[kind]).map(|digits| std::str::from_utf8(digits).unwrap().parse().unwrap());
        bytes = rest.get(2..).unwrap_or_default();
        number.map(|number: usize| (number, bytes))
    };
    let (mut commands, mut skipped) = (Vec::new(), 0);
    while let Some((count, _)) = number(b'*', std::mem::take(&mut skipped)) {
        let mut words = Vec::new();
        for _ in 0..count {
            let (len, rest) = number(b'$', std::mem::take(&mut skipped)).unwrap();
            words.push(String::from_utf8_lossy(&rest[..len]).into_owned());
            skipped = len + 2;
        }
        commands.push(words);
    }
    commands
}

/// What a run came to.
struct Ended {
    /// By intended time.
    samples: Vec<Sample>,
    op_counts: OpCounts,
    /// By class and op: how many were sent, and how many of them have a response time.
    by_op: BTreeMap<(ClassId, OpId), (u64, u64)>,
    heard: Vec<Asked>,
    servers: Vec<ServerCounts>,
    end: WorkerEnd,
}

impl Ended {
    /// How often a command was heard.
    fn heard(&self, name: &str) -> u64 {
        self.heard.iter().filter(|asked| asked.name() == name).count() as u64
    }

    fn hops(&self) -> [u64; 3] {
        let counts = &self.end.data.counts.redirections;
        [counts.moved, counts.ask, counts.try_again]
    }

    /// What the nodes heard was counted, and each of them by its own.
    fn check(&self, toml: &str) {
        let commands: u64 = self.heard.iter().filter(|asked| asked.name() != "ASKING").count() as u64;
        assert_eq!(self.op_counts.requests.wire_requests, commands, "{toml}");
        for (node, counts) in self.servers.iter().enumerate() {
            let heard = |asked: &&Asked| usize::from(asked.node) == node && asked.name() != "ASKING";
            let heard = self.heard.iter().filter(heard).count() as u64;
            assert_eq!(counts.answered + counts.failed + counts.redirected, heard, "{toml} {node}");
        }
        let OccupancyTotal { integral, sum } = self.end.data.counts.occupancy;
        assert_eq!(integral, sum, "{toml}: an operation leaves the system at the end of its sample");
        let away: u64 = self.servers.iter().map(|counts| counts.redirected).sum();
        assert_eq!(away, self.end.data.counts.redirections.hops(), "{toml}");
    }
}

/// The map of nodes a, b and c at port 1, 2 and 3.
fn map() -> SlotMap {
    let mut reply = "*3\r\n".to_owned();
    for (node, name) in ["a", "b", "c"].iter().enumerate() {
        let (first, last, port) = (BOUNDS[node], BOUNDS[node + 1] - 1, node + 1);
        reply += &format!("*3\r\n:{first}\r\n:{last}\r\n*2\r\n$1\r\n{name}\r\n:{port}\r\n");
    }
    let mut whole = WholeReply::default();
    assert!(whole.take(reply.as_bytes()).unwrap());
    SlotMap::of_slots(&whole.value().unwrap(), "asked").unwrap()
}

/// Runs a plan of one thread against nodes that answer so. Every node is host `a`, `b` or `c`, at port 1, 2 or 3.
fn run(toml: &str, script: Script) -> Ended {
    run_unread(toml, script, 0)
}

/// The same with a client that reads each reply so long after it came.
fn run_unread(toml: &str, script: Script, unread_ns: u64) -> Ended {
    let plan = plan(&format!(
        "protocol = 'resp2'\nserver = ['a:1', 'b:2', 'c:3']\ncluster = true\npreload = false\n{toml}"
    ));
    let nodes = ["a", "b", "c"].into_iter().zip(1..);
    let nodes = nodes.map(|(host, port)| NodeAddress { host: host.to_owned(), port }).collect();
    let board = Arc::new(SharedSlotMap::new(nodes, &map()));
    let shard = shards(&plan).remove(0);
    let nodes = Rc::new(RefCell::new(Nodes::default()));
    let asked = nodes.clone();
    let answers: Answers = Box::new(move |wire, bytes| {
        let answer = |words| asked.borrow_mut().answer(script, wire, words);
        commands(bytes).into_iter().filter_map(answer).collect()
    });
    let codec = resp_codec(&plan, plan.protocol).unwrap();
    let blueprint = Blueprint::new(plan.clone(), endpoints(&plan), DataSets::ToStore);
    let blueprint = Arc::new(blueprint.with_slots(Some(board)).unwrap());
    let world = Scripted::new(usize::MAX, WAY_NS, unread_ns, answers);
    let (kept, end) = run_scripted(&blueprint, shard, codec, world);
    let heard = nodes.take().heard;
    let (mut op_counts, mut by_op) = (OpCounts::default(), BTreeMap::new());
    for entry in kept.store.request_counts().entries() {
        // What follows a miss at the end of the window is due behind it.
        assert!(matches!(entry.phase, Phase::Measure | Phase::Drain), "{entry:?}");
        op_counts.merge(&entry.counts);
        by_op.entry((entry.class, entry.op)).or_insert((0, 0)).0 += entry.counts.requests.sent;
    }
    for (class, op, row) in kept.store.rows() {
        by_op.entry((class, op)).or_insert((0, 0)).1 += row.latencies.response.count();
    }
    let samples = end.data.samples.clone();
    let ended = Ended { samples, op_counts, by_op, heard, servers: kept.store.servers().to_vec(), end };
    ended.check(toml);
    ended
}

/// A request each millisecond, of keys in turn.
const OPEN: &str =
    "rate = 1000\narrival = 'uniform'\nconnections = 3\ndepth = 4\npopularity = 'sequential'\n";

/// Each command is counted and recorded by itself: as often as the nodes have heard it, in the proportion of the weights.
#[test]
fn commands_are_counted_by_themselves() {
    let toml = "requests = 12000\nconnections = 6\ncommand = ['PFADD@3=PFADD {key} x', '@1=STRLEN {key}']\n\
                [[class]]\nname = 'a'\nmix = 'get=2'\n[[class]]\nname = 'b'\n\
                command = ['STRLEN {key}', 'count=INCR n:{key}', 'INCR m:{key}']";
    let ended = run(toml, |_, _| None);
    let count = |class: ClassId, op: OpId| {
        let (sent, responses) = ended.by_op[&(class, op)];
        assert_eq!(sent, responses, "{op} of {class}");
        sent
    };
    let [pfadd, strlen, named, incr] = [0, 1, 2, 3].map(OpId::of_command);
    let (gets, a) = (count(0, OpKind::Get.into()), [pfadd, strlen].map(|op| count(0, op)));
    let b = [strlen, named, incr].map(|op| count(1, op));
    assert_eq!(ended.by_op.len(), 6, "{:?}", ended.by_op);
    let heard = ["GET", "PFADD", "STRLEN", "INCR"].map(|name| ended.heard(name));
    assert_eq!(heard, [gets, a[0], a[1] + b[0], b[1] + b[2]]);
    // Four standard deviations.
    let is_near = |count: u64, of: u64, share: f64| {
        let expected = of as f64 * share;
        (count as f64 - expected).abs() < 4.0 * (expected * (1.0 - share)).sqrt()
    };
    let of_a = gets + a[0] + a[1];
    assert!(is_near(gets, of_a, 2.0 / 6.0) && is_near(a[0], of_a, 3.0 / 6.0), "{:?}", ended.by_op);
    assert!(b.into_iter().all(|count| is_near(count, b.iter().sum(), 1.0 / 3.0)), "{:?}", ended.by_op);
}

/// Without trouble each key is asked for at the node that has its slot, tags and commands of the user's included.
#[test]
fn keys_are_requested_where_their_slots_are() {
    let loads = ["rate = 2000", ""];
    for (load, prefix) in
        loads.into_iter().flat_map(|load| ["", "user{42}:", "{"].map(|prefix| (load, prefix)))
    {
        let toml = format!(
            "{load}\nconnections = 6\ndepth = 3\nrequests = 3000\nkeys = 1000\nmix = 'get=4,set=1,raw=1+1+1'\n\
             prefix = '{prefix}'\ncommand = ['STRLEN l:{{key}}', 'PFADD {{key}} x', 'PING']"
        );
        let ended = run(&toml, |_, _| None);
        assert_eq!((ended.hops(), ended.op_counts.requests.completed()), ([0; 3], 3_000), "{toml}");
        let by_key = ended.heard.iter().filter(|asked| asked.name() != "PING");
        by_key.for_each(|asked| assert_eq!(asked.node, home(asked.slot()), "{asked:?}"));
        let pings = |node: u16| {
            ended.heard.iter().filter(|asked| asked.name() == "PING" && asked.node == node).count()
        };
        let pings = [0, 1, 2].map(pings);
        assert!(pings.iter().max().unwrap() - pings.iter().min().unwrap() <= 1, "in turn: {pings:?}");
    }
}

/// A slot that has moved costs its first request a hop, and no other.
#[test]
fn moved_is_learned() {
    // Node a has nothing any more: all of it is b's.
    let script: Script = |asked, _| {
        let slot = asked.slot();
        (asked.node == 0).then(|| format!("MOVED {slot} b:2"))
    };
    let ended = run(&format!("{OPEN}mix = 'get'\nrequests = 500"), script);
    let slots: BTreeSet<u16> = ended.heard.iter().map(Asked::slot).filter(|slot| home(*slot) == 0).collect();
    let moved = slots.len() as u64;
    assert!(moved > 10 && moved < 100, "{moved}");
    assert_eq!((ended.hops(), ended.end.data.counts.redirections.operations), ([moved, 0, 0], moved));
    let requests = &ended.op_counts.requests;
    assert_eq!((requests.scheduled, requests.sent, requests.completed()), (500, 500, 500));
    assert_eq!((requests.wire_requests, ended.samples.len()), (500 + moved, 500));
    let mut seen = std::collections::BTreeSet::new();
    for (nth, sample) in ended.samples.iter().enumerate() {
        let times = &sample.times;
        let slot = slot(&format!("{:030}", nth % 100));
        let hops = u64::from(home(slot) == 0 && seen.insert(slot));
        // One sample, from the first send to the last reply.
        assert_eq!([times.intended_ns, times.picked_ns, times.sent_ns], [times.intended_ns; 3], "{nth}");
        assert_eq!(times.service_ns(), (1 + hops) * WAY_NS, "{nth}");
        assert_eq!(times.first_byte_ns, times.done_ns, "{nth}");
    }
    assert_eq!(seen.len() as u64, moved);
}

/// A key that is on its way is asked for behind an `ASKING`, each time: nothing is learned.
#[test]
fn ask_is_followed_once() {
    let script: Script = |asked, _| match (home(asked.slot()), asked.node, asked.asking) {
        (1, 1, _) => Some(format!("ASK {} :3", asked.slot())),
        (1, 2, false) => Some(format!("MOVED {} b:2", asked.slot())),
        _ => None,
    };
    // "ASK slot :3" names the host that was asked, which is b: there is no b:3.
    let ended = run(&format!("{OPEN}mix = 'get'\nrequests = 200"), script);
    assert!(ended.end.data.counts.redirections.unknown > 0 && ended.hops() == [0; 3]);
    let script: Script = |asked, _| match (home(asked.slot()), asked.node, asked.asking) {
        (1, 1, _) => Some(format!("ASK {} c:3", asked.slot())),
        (1, 2, false) => Some(format!("MOVED {} b:2", asked.slot())),
        _ => None,
    };
    let ended = run(&format!("{OPEN}mix = 'get=3,set=1'\nrequests = 400\nverify = '100%'"), script);
    let there = ended.heard.iter().filter(|asked| asked.node == 1).count() as u64;
    assert!(there > 100, "{there}");
    assert_eq!((ended.hops(), ended.heard("ASKING")), ([0, there, 0], there));
    assert_eq!((ended.op_counts.requests.completed(), ended.end.data.counts.redirections.hops_max), (400, 1));
    assert_eq!(ended.op_counts.requests.wire_requests, 400 + there);
    let slow = ended.samples.iter().filter(|sample| sample.times.service_ns() == 2 * WAY_NS).count() as u64;
    assert_eq!((slow, ended.samples.len()), (there, 400));
    assert!(ended.samples.iter().all(|sample| [1, 2].contains(&(sample.times.service_ns() / WAY_NS))));
}

/// Nodes that send a request round and round: five hops, and the sixth answer is its end.
#[test]
fn hops_are_bounded() {
    let script: Script = |asked, _| {
        let next = (asked.node + 1) % 3;
        Some(format!("MOVED {} {}:{}", asked.slot(), ["a", "b", "c"][usize::from(next)], next + 1))
    };
    for load in ["rate = 500\narrival = 'uniform'", ""] {
        let ended = run(
            &format!("{load}\nconnections = 3\ndepth = 2\nkeys = 50\nmix = 'get'\nrequests = 60"),
            script,
        );
        assert_eq!(ended.hops(), [300, 0, 0], "{load}");
        let counts = &ended.end.data.counts.redirections;
        assert_eq!((counts.operations, counts.too_many, counts.hops_max), (60, 60, 5), "{load}");
        assert_eq!(ended.op_counts.requests.outcome(OutcomeClass::Error), 60, "{load}");
        assert_eq!(
            (ended.op_counts.requests.sent, ended.op_counts.requests.wire_requests),
            (60, 360),
            "{load}"
        );
        // In closed loop a request may find the connections of the next node taken.
        let longest_ns = if load.is_empty() { u64::MAX } else { 6 * WAY_NS };
        let services = ended.samples.iter().map(|sample| sample.times.service_ns());
        assert!(services.into_iter().all(|ns| (6 * WAY_NS..=longest_ns).contains(&ns)), "{load}");
        assert_eq!(ended.end.data.counts.error_replies.count_of("MOVED"), 60, "{load}");
    }
}

/// A client that reads late: how long it left redirects unread is its own part, and the operation was in the system meanwhile.
#[test]
fn unread_redirects_delay_by_the_client() {
    let script: Script = |asked, _| {
        let next = (asked.node + 1) % 3;
        Some(format!("MOVED {} {}:{}", asked.slot(), ["a", "b", "c"][usize::from(next)], next + 1))
    };
    for mix in ["get", "mget"] {
        let toml = format!("connections = 3\nkeys = 50\nmix = '{mix}'\nrequests = 60");
        let ended = run_unread(&toml, script, 10 * US);
        assert!(ended.hops()[0] >= 300, "{mix}");
        for sample in ended.samples.iter().filter(|_| mix == "get") {
            let times = &sample.times;
            assert_eq!((times.client_lag_ns(), times.read_gap_ns()), (50 * US, 10 * US));
        }
    }
}

/// A node that is none of ours: the request fails by the name of the error, and the node is named.
#[test]
fn unknown_nodes_are_named() {
    let script: Script = |asked, _| (asked.node == 2).then(|| format!("MOVED {} d:4", asked.slot()));
    let ended = run(&format!("{OPEN}mix = 'get'\nrequests = 300"), script);
    let there = ended.heard.iter().filter(|asked| asked.node == 2).count() as u64;
    let counts = &ended.end.data.counts.redirections;
    assert_eq!((counts.unknown, counts.unknown_node.as_deref(), counts.hops()), (there, Some("d:4"), 0));
    assert_eq!(ended.op_counts.requests.outcome(OutcomeClass::Error), there);
    assert_eq!(ended.servers[2].failed, there);
}

/// Keys of one multi-get that are not all in one place: asked for again where it was, a little later.
#[test]
fn tryagain_is_retried() {
    let script: Script = |asked, heard| {
        let times = heard.iter().filter(|before| before.words == asked.words).count();
        (times < 3).then(|| "TRYAGAIN Multiple keys request during rehashing of slot".to_owned())
    };
    let toml = "rate = 1\narrival = 'uniform'\nconnections = 3\nkeys = 1000\nprefix = '{tag}'\nmix = 'mget'\nmultiget = 7\n\
                requests = 20\npopularity = 'uniform'";
    let ended = run(toml, script);
    assert_eq!((ended.hops(), ended.op_counts.requests.completed()), ([0, 0, 60], 20));
    for sample in &ended.samples {
        // Whoever goes on after a pause is found by a look of its own, which takes a little.
        let service_ns = sample.times.service_ns();
        assert!((0..US).contains(&(service_ns - 4 * WAY_NS - 3 * TRY_AGAIN_NS)), "{service_ns}");
    }
    assert!(ended.heard.iter().all(|asked| asked.words.len() == 8 && asked.node == home(slot("{tag}"))));
}

/// A key that takes its time is asked for again for as long as a time-out, and no longer; that counts for no hop.
#[test]
fn tryagain_is_retried_until_the_timeout() {
    let toml = "rate = 1\narrival = 'uniform'\nconnections = 3\nkeys = 1000\nprefix = '{tag}'\nmix = 'mget'\nmultiget = 7\n\
                requests = 4\npopularity = 'uniform'\ntimeout = '500ms'";
    let patient: Script = |asked, heard| {
        let times = heard.iter().filter(|before| before.words == asked.words).count();
        match times {
            0..40 => Some("TRYAGAIN".to_owned()),
            40..45 => {
                Some(format!("MOVED {} {}", slot("{tag}"), ["b:2", "c:3", "a:1"][usize::from(asked.node)]))
            }
            _ => None,
        }
    };
    let ended = run(toml, patient);
    assert_eq!((ended.hops(), ended.op_counts.requests.completed()), ([20, 0, 160], 4));
    assert_eq!(
        (ended.end.data.counts.redirections.hops_max, ended.end.data.counts.redirections.too_many),
        (5, 0)
    );
    let ended = run(toml, |_, _| Some("TRYAGAIN".to_owned()));
    assert_eq!(ended.op_counts.requests.outcome(OutcomeClass::Error), 4);
    for sample in &ended.samples {
        let service_ns = sample.times.service_ns();
        assert!((500 * MS..500 * MS + 2 * TRY_AGAIN_NS).contains(&service_ns), "{service_ns}");
    }
}

/// A multi-get of many slots is one sample, its parts have one slot each, and each goes its own way.
#[test]
fn multi_gets_are_split_by_slot() {
    let script: Script = |asked, _| {
        let slots: Vec<u16> = asked.words[1..].iter().map(|key| slot(key)).collect();
        if slots.iter().any(|slot| *slot != slots[0]) {
            return Some("CROSSSLOT Keys in request don't hash to the same slot".to_owned());
        }
        match (home(slots[0]), asked.node, asked.asking) {
            (0, 0, _) => Some(format!("MOVED {} b:2", slots[0])),
            (1, 1, _) => Some(format!("ASK {} c:3", slots[0])),
            _ => None,
        }
    };
    for load in ["rate = 300", ""] {
        // Seven keys out of nine: many multi-gets have a key twice, which is one slot.
        let toml = format!(
            "{load}\nconnections = 6\ndepth = 4\nkeys = 9\nmix = 'mget'\nmultiget = 7\nrequests = 400"
        );
        let ended = run(&toml, script);
        let requests = &ended.op_counts.requests;
        assert_eq!((requests.sent, requests.completed(), ended.samples.len()), (400, 400, 400), "{toml}");
        assert_eq!((ended.op_counts.keys.requested, ended.op_counts.keys.miss), (2_800, 2_800), "{toml}");
        let [moved, ask, again] = ended.hops();
        assert!(moved > 0 && ask > 400 && again == 0, "{toml}: {moved} {ask}");
        assert_eq!(ended.heard("MGET"), requests.wire_requests, "{toml}");
        assert!(ended.heard.iter().any(|asked| asked.words.len() > 2), "{toml}");
    }
}

/// What has been sent on when the run ends was sent, and has no reply.
#[test]
fn runs_ending_between_hops_balance() {
    let script: Script = |_, _| Some("TRYAGAIN".to_owned());
    for (mix, keys) in [("get", 1), ("mget", 4)] {
        let toml = format!(
            "rate = 1000\narrival = 'uniform'\nconnections = 3\ndepth = 50\nmix = '{mix}'\n\
             multiget = {keys}\ntime = '30ms'\ndrain = '1ms'"
        );
        let toml = if keys == 1 { toml.replace("multiget = 1\n", "") } else { toml };
        let ended = run(&toml, script);
        let requests = &ended.op_counts.requests;
        assert_eq!((requests.scheduled, requests.sent, requests.unsent), (30, 30, 0), "{mix}");
        assert_eq!(requests.in_flight, 30 - requests.outcome(OutcomeClass::Error), "{mix}");
        assert!(requests.in_flight > 20, "{mix}");
    }
}

/// A closed loop goes on with as many slots as it had, whatever was sent elsewhere.
#[test]
fn slots_of_a_closed_loop_are_not_lost() {
    let script: Script = |asked, heard| match heard.len() % 3 {
        0 => Some(format!("MOVED {} {}", asked.slot(), ["b:2", "c:3", "a:1"][usize::from(asked.node)])),
        1 => Some(format!("ASK {} {}", asked.slot(), ["b:2", "c:3", "a:1"][usize::from(asked.node)])),
        _ => None,
    };
    for (depth, on_miss) in [(1, "ignore"), (5, "ignore"), (5, "set")] {
        let toml = format!(
            "connections = 3\ndepth = {depth}\nkeys = 500\nmix = 'get'\non-miss = '{on_miss}'\ntime = '1s'"
        );
        let ended = run(&toml, script);
        let requests = &ended.op_counts.requests;
        let hops = ended.end.data.counts.redirections.hops();
        assert!(hops > 1_000, "{toml}: {hops}");
        assert_eq!(requests.failed(), ended.end.data.counts.redirections.too_many, "{toml}");
        // One way takes 100 us, and slots wait for each other's connections now and then; but no more at the end than before.
        let most = 3 * depth * SECOND / WAY_NS;
        let half_ns = ended.end.data.times.start_ns + SECOND / 2;
        let early = ended.heard.iter().filter(|asked| asked.at_ns < half_ns).count() as u64;
        let late = ended.heard.len() as u64 - early;
        assert!(
            early.min(late) > most / 4 && early.abs_diff(late) < most / 20,
            "{toml}: {early} {late} of {most}"
        );
    }
}

/// The schedule is not waited for by whoever is sent elsewhere.
#[test]
fn the_schedule_goes_on() {
    let script: Script = |asked, _| (asked.node != 2).then(|| format!("ASK {} c:3", asked.slot()));
    let ended = run(&format!("{OPEN}mix = 'get'\ntime = '100ms'"), script);
    assert_eq!(ended.samples.len(), 100);
    for pair in ended.samples.windows(2) {
        assert_eq!(pair[1].times.intended_ns - pair[0].times.intended_ns, MS);
        assert_eq!(pair[1].times.sent_ns, pair[1].times.intended_ns);
    }
}

/// What was sent on to a node that answers nothing waits there for a time-out. It was sent, and is lost.
#[test]
fn requests_for_a_node_that_is_down_are_abandoned() {
    let script: Script = |asked, _| match asked.node {
        0 => Some(format!("ASK {} b:2", asked.slot())),
        1 => Some(SILENCE.to_owned()),
        _ => None,
    };
    let toml = "connections = 3\nmix = 'get=1,set=1'\ntime = '2s'\ntimeout = '200ms'\ndrain = '1s'";
    for (load, depth) in [("rate = 1000", 1), ("rate = 1000", 4), ("", 4)] {
        let ended = run(&format!("{load}\ndepth = {depth}\n{toml}"), script);
        let requests = &ended.op_counts.requests;
        let [a, b, c] = ended.servers[..] else { panic!() };
        assert_eq!((a.abandoned, c.abandoned, c.failed, b.answered), (0, 0, 0, 0), "{load}");
        assert_eq!(b.abandoned, requests.abandoned, "{load}: {b:?}");
        assert_eq!(requests.in_flight, 0, "{load}: {requests:?}");
        // Those of the node's own keys were never sent; those that came from elsewhere were, and are lost.
        let sent_on = b.unsent - b.abandoned;
        let lost = requests.outcome(OutcomeClass::Lost) + requests.outcome(OutcomeClass::Timeout);
        assert!(sent_on > 10 && b.abandoned > 10, "{load}: {b:?}");
        assert_eq!(requests.unsent, requests.abandoned, "{load}: {requests:?}");
        assert_eq!(lost, sent_on + b.failed, "{load}: {requests:?}");
    }
}

/// A write that was given up on its way was none: its key is checked on. The nodes here forget what they store, which is found out
/// where they acknowledge it.
#[test]
fn keys_with_abandoned_redirected_writes_are_checked() {
    let script: Script = |asked, heard| match asked.node {
        0 if heard.iter().filter(|before| before.node == 0).count() < 2_000 => {
            Some(format!("ASK {} b:2", asked.slot()))
        }
        1 => Some(SILENCE.to_owned()),
        _ => None,
    };
    let tags: Vec<String> = (b'a'..=b'z').map(|letter| format!("{{{}}}", char::from(letter))).collect();
    let tag = tags.iter().find(|tag| home(slot(tag)) == 0).unwrap();
    let ended = run(
        &format!(
            "rate = 1000\nconnections = 3\nkeys = 50\nprefix = '{tag}'\nmix = 'get=1,set=1'\nverify = '100%'\n\
             time = '4s'\ntimeout = '200ms'\ndrain = '1s'"
        ),
        script,
    );
    let faults: Vec<_> =
        ended.end.data.counts.verification.rows().map(|(fault, count, _)| (fault, count)).collect();
    let [(ValueFault::Missing, missing)] = faults[..] else { panic!("{faults:?}") };
    // Half of what is asked for in the last two seconds; of the few keys whose writes have timed out nobody knows.
    assert!(missing > 500, "{missing}");
    assert!(ended.servers[1].unsent > 1_000, "{:?}", ended.servers);
}
