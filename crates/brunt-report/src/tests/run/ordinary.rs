//! Six ordinary runs: closed loop, open loop with three operations, an outage, an overload, commands of one's own, a cluster over TLS.
//!
//! Invariant: each shows what the others do not.

use super::*;

/// How long a request takes: between 60 and 160 us, one in 500 a millisecond more.
fn time_ns(index: u64) -> u64 {
    60_000 + index * 7_919 % 1_000 * 100 + if index % 500 == 77 { 1_000_000 } else { 0 }
}

const EMBEDDED: &str = "reference server, started for this run at 127.0.0.1:40001";

fn a_set_in_ten(index: u64) -> OpKind {
    if index % 10 == 3 { OpKind::Set } else { OpKind::Get }
}

fn ended(scene: &mut Scene, op: OpId, times: Times) {
    let reply = match op.kind() {
        OpKind::Set => ReplyKind::Stored,
        OpKind::Raw => ReplyKind::Ok,
        _ => ReplyKind::Value,
    };
    scene.replied(op, reply, times);
}

/// Requests that are due one after the other every so often, from the beginning of the warm-up to the end of the window.
fn spread<T: Into<OpId>>(
    scene: &mut Scene,
    every_ns: u64,
    op: impl Fn(u64) -> T,
    done: impl Fn(u64, u64) -> u64,
) {
    let (start_ns, end_ns) = (scene.window.start_ns, scene.window.end_ns);
    for index in 0..(end_ns - start_ns) / every_ns {
        let intended_ns = start_ns + index * every_ns;
        let done_ns = done(index, intended_ns);
        let held_ns = 3_000.min(done_ns / 2);
        ended(scene, op(index).into(), times(intended_ns, 200, held_ns, done_ns - 1_500, done_ns));
    }
}

pub(in crate::tests) fn closed() -> Run {
    let text = "time = '2s'\nwarmup = '1s'\nseed = 4177\nconnections = 2\n";
    let mut scene = Scene::new(text, S, 2 * S, 0);
    // 112 us on average: two slots that are never free.
    spread(&mut scene, 56_000, a_set_in_ten, |index, _| time_ns(index));
    scene.finish(|record| record.server = EMBEDDED.to_owned())
}

pub(in crate::tests) fn open() -> Run {
    let text = "server = ['cache-1.example']\nrate = '20k'\narrival = 'uniform'\nmix = 'get=8,mget=1,set=1'\ntime = '6s'\n\
                warmup = '1s'\nseed = 2\npreload = false\n";
    let mut scene = Scene::new(text, S, 6 * S, 0);
    let kind = |index: u64| match index % 10 {
        3 => OpKind::Set,
        7 => OpKind::Mget,
        _ => OpKind::Get,
    };
    spread(&mut scene, 50_000, kind, |index, _| time_ns(index));
    scene.finish(|_| {})
}

/// Fifty requests.
pub(in crate::tests) fn few() -> Run {
    let text = "server = ['a']\nrate = '25'\narrival = 'uniform'\ntime = '2s'\nwarmup = '1s'\nseed = 5\npreload = false\n";
    let mut scene = Scene::new(text, S, 2 * S, 0);
    spread(&mut scene, 40 * MS, |_| OpKind::Get, |index, _| time_ns(index));
    scene.finish(|_| {})
}

/// A server that answers nothing for 613 ms, 4 s into the window.
pub(in crate::tests) fn outage() -> Run {
    let text = "server = ['10.0.0.5']\nrate = '2k'\narrival = 'uniform'\ntime = '10s'\nwarmup = '1s'\nseed = 3\npreload = false\n";
    let mut scene = Scene::new(text, S, 10 * S, 0);
    let gone = 105 * S..105 * S + 613 * MS;
    let done = |index: u64, intended_ns: u64| match gone.contains(&intended_ns) {
        true => gone.end - intended_ns + time_ns(index),
        false => time_ns(index),
    };
    spread(&mut scene, 500_000, a_set_in_ten, done);
    let kinds = OutageKinds::NONE.with(OutageKind::Refused).with(OutageKind::Reset);
    scene.set.outage(OutageSpan { server: 0, start_ns: gone.start, end_ns: gone.end, failed: 1, kinds });
    scene.finish(|record| record.server = "10.0.0.5:11211".to_owned())
}

/// A closed loop of which a server fails nine requests of ten.
pub(in crate::tests) fn failing() -> Run {
    let text = "server = ['10.0.0.5']\ntime = '2s'\nwarmup = '1s'\nseed = 8\nmix = 'get'\npreload = false\n";
    let mut scene = Scene::new(text, S, 2 * S, 0);
    let (start_ns, end_ns) = (scene.window.start_ns, scene.window.end_ns);
    for index in 0..(end_ns - start_ns) / 100_000 {
        let times = times(start_ns + index * 100_000, 200, 3_000, 88_500, 90_000);
        let (reply, hits) = if index % 10 == 3 { (ReplyKind::Value, 1) } else { (ReplyKind::ServerError, 0) };
        scene.ended(0, OpKind::Get, Outcome::of_reply(OpKind::Get, reply), times, [1, hits], [36, 40]);
    }
    scene.finish(|_| {})
}

/// A server that is behind from the beginning, and more so with every request.
pub(in crate::tests) fn overload() -> Run {
    let text = "rate = '4k'\narrival = 'uniform'\ntime = '5s'\nwarmup = '1s'\nseed = 4\npreload = false\n";
    let mut scene = Scene::new(text, S, 5 * S, 3 * S);
    spread(&mut scene, 250_000, a_set_in_ten, |index, _| 100_000 + index * 125_000);
    scene.finish(|record| record.server = EMBEDDED.to_owned())
}

/// Redis, with three commands of one's own.
pub(in crate::tests) fn commands() -> Run {
    let text = "server = ['redis://10.0.0.6']\nrate = '20k'\narrival = 'uniform'\nmix = 'raw=7+2+1'\n\
                command = ['HGET h:{key} f', 'HSET h:{key} f {value}', 'ZADD z 1 {key}']\n\
                time = '2s'\nwarmup = '1s'\nseed = 5\npreload = false\nconnections = 32\n";
    let mut scene = Scene::new(text, S, 2 * S, 0);
    let op = |index: u64| {
        OpId::of_command(match index % 10 {
            0..7 => 0,
            7 | 8 => 1,
            _ => 2,
        })
    };
    spread(&mut scene, 50_000, op, |index, _| time_ns(index));
    scene.finish(|record| record.server = "10.0.0.6:6379".to_owned())
}

/// Three nodes, of which one sent 14 requests on.
pub(in crate::tests) fn cluster() -> Run {
    let text = "server = ['rediss://10.0.0.11:7000', 'rediss://10.0.0.12:7000', 'rediss://10.0.0.13:7000']\ncluster = true\n\
                rate = '20k'\narrival = 'uniform'\ntime = '2s'\nwarmup = '1s'\nseed = 6\npreload = false\nconnections = 48\n";
    let mut scene = Scene::new(text, S, 2 * S, 0);
    let (start_ns, end_ns) = (scene.window.start_ns, scene.window.end_ns);
    for index in 0..(end_ns - start_ns) / 50_000 {
        scene.server = (index % 3) as u16;
        let done = time_ns(index);
        let times = times(start_ns + index * 50_000, 200, 3_000, done - 1_500, done);
        ended(&mut scene, a_set_in_ten(index).into(), times);
    }
    (0..48).for_each(|index| scene.set.meter(MeterKind::HandshakeTime, 1_100_000 + index * 44_000));
    scene.finish(|record| {
        record.run.cluster = Some(ClusterRecord {
            slots: SlotCounts { of_servers: vec![5_461, 5_462, 5_461], elsewhere: 0, unserved: 0 },
            is_final: true,
            refreshes: 0,
        });
        record.run.counts.redirections =
            RedirectionCounts { operations: 14, moved: 14, hops_max: 1, ..RedirectionCounts::default() };
    })
}

/// Eight kinds of operations; the three that are rarest take 200, 300 and 400 us.
pub(in crate::tests) fn many() -> Run {
    let text = "server = ['cache-1.example']\nrate = '20k'\narrival = 'uniform'\ntime = '2s'\nwarmup = 0\nseed = 7\npreload = false\n\
                mix = 'get=9,touch=1,set=8,add=7,replace=6,append=5,prepend=1,delete=1'\n";
    let mut scene = Scene::new(text, 0, 2 * S, 0);
    let kinds =
        [(OpKind::Get, 9), (OpKind::Set, 8), (OpKind::Add, 7), (OpKind::Replace, 6), (OpKind::Append, 5)];
    let rare = [OpKind::Touch, OpKind::Prepend, OpKind::Delete];
    let often: Vec<OpKind> = kinds.iter().flat_map(|(kind, times)| vec![*kind; *times]).collect();
    for index in 0..38_000u64 {
        let place = (index % 38) as usize;
        let (kind, done) = match often.get(place) {
            Some(kind) => (*kind, 100_000),
            None => (rare[place - often.len()], 200_000 + (place - often.len()) as u64 * 100_000),
        };
        let reply = match kind {
            OpKind::Get => ReplyKind::Value,
            OpKind::Touch => ReplyKind::Touched,
            OpKind::Delete => ReplyKind::Deleted,
            _ => ReplyKind::Stored,
        };
        let keys = if kind == OpKind::Get { [1, 1] } else { [0, 0] };
        let times = times(100 * S + index * 50_000, 200, 3_000, done - 1_500, done);
        scene.ended(0, kind, Outcome::of_reply(kind, reply), times, keys, [250, 8]);
    }
    scene.finish(|_| {})
}
