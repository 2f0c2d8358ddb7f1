//! What happened during a run as JSON: outages, faults, error replies, wrong values.

use super::servers::ServerStats;
use crate::instant::in_window_ns;
use crate::server;
use brunt_plan::quoted_bytes::QuotedBytes;
use brunt_stats::connection::{Fault, FaultKind, FirstMalformed};
use brunt_stats::outage::Outage;
use brunt_stats::run_record::ClusterRecord;
use brunt_stats::summary::Summary;
use brunt_stats::verification::{FaultExample, ObjectCounts, ValueFault};
use brunt_stats::worker_counts::{DatagramCounts, FillCounts, RecacheCounts, RedirectionCounts};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What happened during the run, over all phases.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Events {
    /// By start. Each worker sees its own connections: with several, the outage is the time in which none of them had a success.
    pub outages: Vec<OutageRow>,
    /// Spans of trouble for which there was no room.
    pub outages_overflow: u64,
    /// Connection faults.
    pub faults: Vec<FaultRow>,
    /// The first malformed bytes, or a reply that the operation cannot have; or `null`.
    pub first_malformed: Option<Malformed>,
    /// Text of the first error reply, or `null`.
    pub first_error: Option<String>,
    /// Error replies of a Redis by their first word (`"WRONGTYPE"`, `"OOM"`, `"MOVED"` …; `"other"`), the most frequent first.
    pub error_replies: IndexMap<String, u64>,
    /// Messages of a server that answer nothing, as Redis sends some.
    pub pushes: u64,
    /// Unmatched replies, if replies carry request ids (`memcached-meta`, `memcached-binary`): second ones, those after a timeout, failures
    /// of writes without a reply.
    pub unmatched_replies: u64,
    /// With `reconnect` other than `always`: lost connections that were not reopened.
    pub connections_abandoned: u64,
    /// Likewise: workers that ended early because they had no connection left.
    pub workers_cut_off: u64,
    /// Parts of writes to replicas that were not sent, or lost with their connection, because the replica was down; the writes count by the
    /// other replicas' replies.
    pub replicas_missed: u64,
    /// Fills after misses; `null` without `miss-delay`.
    pub fills: Option<FillCounts>,
    /// Discarded reply datagrams by reason, and memaslap's counters (docs/workload.md); `null` without UDP.
    pub datagrams: Option<DatagramCounts>,
    /// Values marked by a meta server.
    pub recache: RecacheCounts,
    /// Redirections of a cluster and its slots; `null` without one.
    pub cluster: Option<Cluster>,
    /// Values read that do not begin as brunt's do, and were not checked: read without a preload.
    pub values_foreign: u64,
    /// Values checked in full; `null` without `--verify`.
    pub values_checked: Option<u64>,
    /// Missed keys that were checked; `null` without `--verify`.
    pub misses_checked: Option<u64>,
    /// Wrong values by kind.
    pub value_faults: Vec<ValueFaultRow>,
    /// Objects of windows; `null` without a window.
    pub windows: Option<ObjectCounts>,
    /// Stats polled from the servers (docs/results.md); `null` if not polled.
    pub server_stats: Option<ServerStats>,
}

/// A period in which a server was down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OutageRow {
    /// The server.
    pub server: String,
    /// First sign of trouble, not before the last success.
    pub start_ns: i64,
    /// First success after it; `null` if the outage was ongoing when the run ended.
    pub end_ns: Option<i64>,
    /// The difference.
    pub length_ns: Option<u64>,
    /// End of the first slice in which the server answered at 95 % or more of its mean rate over the second before the start; `null` if not
    /// reached in the window, or without a rate before.
    pub recovered_ns: Option<i64>,
    /// Requests to the server that failed meanwhile.
    pub failed: u64,
    /// In this order: `stalled` (requests in flight, no reply), `refused`, `reset`, `closed_by_peer`, `timed_out`, `malformed`, `no_port`,
    /// `other`, `error` (it answered with errors).
    pub kinds: Vec<String>,
}

/// Connection faults of one kind in one phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FaultRow {
    /// The phase.
    pub phase: String,
    /// `"refused"`, `"reset"`, `"closed_by_peer"`, `"timed_out"` (by `timeout`: not established, or no reply), `"socket_timed_out"` (by the
    /// kernel), `"malformed"`, `"setup_rejected"` (setup rejected by the server), `"tls_failed"` (a certificate rejected by either side, an
    /// alert, no TLS), `"no_port"` (no local port left), `"no_descriptor"` (no file descriptor left in the process), `"no_file"` (none in the
    /// system) or `"other"`.
    pub kind: String,
    /// The system's number for `"other"`, otherwise `null`.
    pub errno: Option<i32>,
    /// How many.
    pub count: u64,
    /// When the first one was.
    pub first_ns: i64,
}

/// The first malformed bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Malformed {
    /// When.
    pub at_ns: i64,
    /// The class whose connection they came on.
    pub class: Option<String>,
    /// Why they are no reply.
    pub reason: String,
    /// Up to 64 bytes; those that are not printable ASCII are escaped as `\r`, `\n`, `\t`, `\'`, `\"`, `\\` or `\xNN`.
    pub text: String,
}

/// A cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cluster {
    /// Redirections that were followed.
    pub redirections: RedirectionCounts,
    /// Its slot map.
    #[serde(flatten)]
    pub map: ClusterRecord,
}

/// Wrong values of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ValueFaultRow {
    /// `"wrong_key"`, `"torn"`, `"truncated"`, `"overlong"`, `"stale"`, `"never_written"`, `"expired"` or `"missing"`.
    pub kind: String,
    /// How many.
    pub count: u64,
    /// The first one.
    pub first: WrongValue,
}

/// A wrong value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WrongValue {
    /// The id of its key.
    pub key: u64,
    /// The key that the value names.
    pub other_key: Option<u64>,
    /// Its version: `"0"` is the preload's, `"2.17"` the 17th write of the key by the second writer, `null` if the bytes name none.
    pub version: Option<String>,
    /// The oldest version wanted, of a stale one.
    pub wanted: Option<String>,
    /// When.
    pub at_ns: i64,
}

impl Events {
    pub(crate) fn of(summary: &Summary) -> Self {
        let counts = summary.counts();
        let verified = |count: u64| summary.record.plan.verify.map(|_| count);
        let replies = counts.error_replies.rows();
        let delays = summary.record.plan.classes.iter().any(|class| class.miss_delay.is_some());
        Self {
            outages: summary.outages.iter().map(|outage| OutageRow::of(summary, outage)).collect(),
            outages_overflow: summary.outages_overflow(),
            faults: summary.faults().rows().iter().map(|fault| FaultRow::of(summary, fault)).collect(),
            first_malformed: counts.first_malformed.as_ref().map(|first| Malformed::of(summary, first)),
            first_error: counts.first_error.as_ref().map(ToString::to_string),
            error_replies: replies.into_iter().map(|(word, count)| (word.to_owned(), count)).collect(),
            pushes: counts.pushes,
            unmatched_replies: counts.unmatched_replies,
            connections_abandoned: counts.connections_abandoned,
            workers_cut_off: counts.workers_cut_off,
            replicas_missed: counts.replicas_missed,
            fills: delays.then_some(counts.fills),
            datagrams: summary.datagrams().copied(),
            recache: counts.recache,
            cluster: summary
                .record
                .run
                .cluster
                .clone()
                .map(|map| Cluster { redirections: counts.redirections.clone(), map }),
            values_foreign: counts.values_foreign,
            values_checked: verified(counts.verification.checked),
            misses_checked: verified(counts.verification.misses),
            value_faults: counts
                .verification
                .rows()
                .map(|(kind, count, first)| ValueFaultRow::of(summary, kind, count, first))
                .collect(),
            windows: summary.has_windows().then_some(counts.windows),
            server_stats: ServerStats::of(summary),
        }
    }
}

impl OutageRow {
    fn of(summary: &Summary, outage: &Outage) -> Self {
        let instant = |at_ns: Option<u64>| at_ns.map(|at_ns| in_window_ns(summary, at_ns));
        Self {
            server: server::name(summary, usize::from(outage.server)),
            start_ns: in_window_ns(summary, outage.start_ns),
            end_ns: instant(outage.end_ns),
            length_ns: outage.length_ns(),
            recovered_ns: instant(outage.recovered_ns),
            failed: outage.failed,
            kinds: outage.kinds.names().map(str::to_owned).collect(),
        }
    }
}

impl FaultRow {
    fn of(summary: &Summary, fault: &Fault) -> Self {
        let errno = match fault.kind {
            FaultKind::Other(errno) => Some(errno),
            _ => None,
        };
        Self {
            phase: fault.phase.name().to_owned(),
            kind: fault.kind.name().to_owned(),
            errno,
            count: fault.count,
            first_ns: in_window_ns(summary, fault.first_ns),
        }
    }
}

impl Malformed {
    fn of(summary: &Summary, first: &FirstMalformed) -> Self {
        Self {
            at_ns: in_window_ns(summary, first.at_ns),
            class: summary.classes.get(usize::from(first.class)).map(|class| class.name.clone()),
            reason: first.reason.to_string(),
            text: QuotedBytes(first.bytes()).to_string(),
        }
    }
}

impl ValueFaultRow {
    fn of(summary: &Summary, kind: ValueFault, count: u64, first: FaultExample) -> Self {
        Self {
            kind: kind.name().to_owned(),
            count,
            first: WrongValue {
                key: first.key,
                other_key: first.other_key,
                version: first.version.map(|version| version.to_string()),
                wanted: first.wanted.map(|version| version.to_string()),
                at_ns: in_window_ns(summary, first.at_ns),
            },
        }
    }
}
