//! Connections that fail in connection setup: an attempt counts as one, however far it got.

use super::{START_AHEAD_NS, TURNS_MAX, endpoints, plan};
use crate::run::blueprint::{Blueprint, DataSets, build};
use crate::run_error::RunError;
use crate::simulated::sim::{Sim, SimOptions};
use crate::state::recording::Exchange;
use crate::worker::pace::Cpus;
use crate::worker::{Notice, Orders, Worker};
use brunt_plan::shard::shards;
use brunt_proto::resp::RespCodec;
use brunt_server::CoreOptions;
use std::num::NonZeroU64;
use std::sync::Arc;

/// A worker whose one server has two addresses, the world's first two servers.
fn worker(toml: &str, options: SimOptions) -> Worker<RespCodec, Sim> {
    let plan = plan(toml);
    let mut endpoints = endpoints(&plan);
    endpoints[0].addresses.push(std::net::SocketAddr::from(([127, 0, 0, 1], 2)).into());
    let shard = shards(&plan).remove(0);
    let blueprint = Arc::new(Blueprint::new(plan, endpoints, DataSets::ToStore));
    let (exchange, _filled, _spares) = Exchange::new(&blueprint.layout);
    let connections = shard.classes.iter().map(|class| class.connections.len()).sum();
    let codec = crate::codecs::resp_codec(&blueprint.plan, blueprint.plan.protocol).unwrap();
    build(
        &blueprint,
        shard,
        Arc::new(Orders::default()),
        exchange,
        codec,
        Sim::new(connections, options),
        Cpus::Spare,
    )
}

/// Runs the worker until its first notice.
fn first_notice(worker: &mut Worker<RespCodec, Sim>) -> Notice {
    (0..TURNS_MAX)
        .find_map(|_| {
            worker.run_once();
            worker.take_notice()
        })
        .expect("no notice will come")
}

const PLAN: &str =
    "protocol = 'resp3'\nserver = 'a'\nconnections = 1\nrequests = 10\nwarmup = '0s'\npreload = false";

/// The setup cannot be sent at either of the two addresses.
#[test]
fn failed_setup_sends_move_to_the_next_address() {
    for defers_sends in [false, true] {
        let options = SimOptions {
            others: vec![CoreOptions::default()],
            send_fault: NonZeroU64::new(1).map(|every| (every, libc::EPIPE)),
            defers_sends,
            ..SimOptions::default()
        };
        let mut worker = worker(PLAN, options);
        let notice = first_notice(&mut worker);
        assert!(
            matches!(&notice, Notice::Failed(RunError::NoReply { reason, .. }) if reason == "to HELLO: Broken pipe (os error 32)"),
            "{notice:?}"
        );
        let tried: Vec<_> = worker.io_mut().attempts().iter().map(|attempt| attempt.server).collect();
        // Another attempt may be in progress by then.
        assert_eq!(tried[..2], [0, 1], "{defers_sends}");
        assert!(worker.now_ns() < START_AHEAD_NS + crate::simulated::sim::EPOCH_NS, "at once");
    }
}
