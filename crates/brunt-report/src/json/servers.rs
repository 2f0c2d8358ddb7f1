//! Servers as JSON: what the client counted of each, and what they say of themselves.

use super::row::Distribution;
use super::whole;
use crate::instant::in_window_ns;
use crate::server;
use brunt_stats::server::ServerCounts;
use brunt_stats::server_evidence::StatComparison;
use brunt_stats::server_stats::{ServerRecord, ServerSpan, SizeShare, Snapshot};
use brunt_stats::summary::Summary;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the client counted of one server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Server {
    /// Its name; `"embedded"` for the one started for the run.
    pub server: String,
    /// Valid replies, and requests that failed, were not sent (of a multi-get each part) or were redirected to another node.
    #[serde(flatten)]
    pub counts: ServerCounts,
    /// Hash slots that it owns at the end; `null` without a cluster.
    pub slots: Option<u16>,
    /// Response times of the measured requests that it answered; of a split multi-get each part, from when the whole was due; `null` with
    /// one server, or more than 64.
    pub response_ns: Option<Distribution>,
}

impl Server {
    pub(crate) fn all(summary: &Summary) -> Vec<Self> {
        let slots = summary.record.run.cluster.as_ref().map(|cluster| &cluster.slots.of_servers);
        let server = |((index, counts), server): ((usize, &ServerCounts), String)| Self {
            server,
            counts: *counts,
            slots: slots.and_then(|slots| slots.get(index).copied()),
            response_ns: summary.server_responses.get(index).map(Distribution::from),
        };
        summary.servers().iter().enumerate().zip(server::names(summary)).map(server).collect()
    }
}

/// Stats polled from the servers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerStats {
    /// The span nearest to the window, of all servers together; `null` if one has none.
    pub window: Option<Span>,
    /// What all servers counted from the first answer to the last, and brunt's count; empty if they cannot be compared.
    pub agreement: Vec<StatComparison>,
    /// In the order of the plan.
    pub servers: Vec<ServerAccount>,
}

/// What one server says of itself. With more than 64 servers `first`, `prepared` and `last` are `null`, and `series` is empty.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerAccount {
    /// Its name.
    pub server: String,
    /// Its version; of a Redis with a name of its own, such as Valkey, after that name.
    pub version: Option<String>,
    /// Why there are no stats, or no more, otherwise `null`.
    pub trouble: Option<String>,
    /// The answer before the first request.
    pub first: Option<Answer>,
    /// That after the preload.
    pub prepared: Option<Answer>,
    /// That at the end.
    pub last: Option<Answer>,
    /// The span nearest to the window.
    pub window: Option<Span>,
    /// A span from every answer to the next.
    pub series: Vec<Span>,
}

/// The stats of a server at one time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    /// When it was asked.
    pub asked_ns: i64,
    /// When the answer was there.
    pub at_ns: i64,
    /// In the server's words, those it gives; times in nanoseconds, with `_ns`.
    pub statistics: IndexMap<String, u64>,
}

/// What went on between two answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Span {
    /// When the first answer was there.
    pub start_ns: i64,
    /// When the last one was.
    pub end_ns: i64,
    /// What the server counted.
    #[serde(flatten)]
    pub counts: ServerSpan,
    /// `requests` per second.
    pub requests_per_s: Option<f64>,
    /// The share of keys that were found.
    pub hit_ratio: Option<f64>,
    /// `evictions` per second.
    pub evictions_per_s: Option<f64>,
    /// CPU time per request; `null` below 100 requests/s, where idle time would count.
    pub cpu_ns_per_request: Option<u64>,
}

impl ServerStats {
    pub(crate) fn of(summary: &Summary) -> Option<Self> {
        let records = &summary.record.run.server_records;
        let accounts = server::polled_server_names(summary).zip(records);
        (!records.is_empty()).then(|| Self {
            window: server::window(summary).map(|span| Span::of(summary, &span)),
            agreement: summary.agreement.clone(),
            servers: accounts.map(|(name, record)| ServerAccount::of(summary, name, record)).collect(),
        })
    }
}

impl ServerAccount {
    fn of(summary: &Summary, server: String, record: &ServerRecord) -> Self {
        let snapshots = record.snapshots();
        let is_told = SizeShare::of(summary.record.run.server_records.len()).is_told;
        let answer = |held: Option<&Snapshot>| held.filter(|_| is_told).map(|held| Answer::of(summary, held));
        Self {
            server,
            version: snapshots.last().and_then(|snapshot| snapshot.version.clone()),
            trouble: record.trouble.clone(),
            first: answer(snapshots.first()),
            prepared: answer(record.prepared.as_ref()),
            last: answer(snapshots.last()),
            window: record.span_of_window(&summary.window).map(|span| Span::of(summary, &span)),
            series: record.spans().filter(|_| is_told).map(|span| Span::of(summary, &span)).collect(),
        }
    }
}

impl Answer {
    fn of(summary: &Summary, snapshot: &Snapshot) -> Self {
        let statistics = snapshot.values().map(|(statistic, value)| {
            let unit = if statistic.is_time() { "_ns" } else { "" };
            (format!("{}{unit}", statistic.name()), value)
        });
        Self {
            asked_ns: in_window_ns(summary, snapshot.asked_ns),
            at_ns: in_window_ns(summary, snapshot.at_ns),
            statistics: statistics.collect(),
        }
    }
}

impl Span {
    pub(crate) fn of(summary: &Summary, span: &ServerSpan) -> Self {
        let per_second = |count: Option<u64>| count.map(|count| span.per_second(count));
        Self {
            start_ns: in_window_ns(summary, span.start_ns),
            end_ns: in_window_ns(summary, span.end_ns),
            counts: *span,
            requests_per_s: per_second(span.requests),
            hit_ratio: span.hit_ratio(),
            evictions_per_s: per_second(span.evictions),
            cpu_ns_per_request: whole(span.cpu_ns_per_request()),
        }
    }
}
