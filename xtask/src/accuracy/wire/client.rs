//! The clients whose latencies are compared with the wire's: brunt by interface and wait mode, and other load generators.
//!
//! Invariant: all are asked for the same gets, on as many connections with as many requests in flight, by one thread.

use crate::bench::client::{Client as Other, Kind, Latency, Load};
use crate::bench::shape::Shape;
use anyhow::Context;
use serde_json::Value;

/// What brunt does before its measured window: polling for replies begins in it.
const WARMUP: &str = "500ms";

/// One row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Client {
    Brunt { io: &'static str, wait: &'static str },
    Peer(Other),
}

/// What a client says of a run; times in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Report {
    /// From the intended time to the end of the reply.
    pub(super) latency: Latency,
    /// From the end of the write to the end of the reply.
    pub(super) service: Latency,
    /// What of each percentile of `latency` may be the client's.
    pub(super) client_error: Latency,
    /// Requests that it sent, where it says so.
    pub(super) sent: Option<u64>,
    /// Of these the last ones, which were due in the measured window; all without one.
    pub(super) sent_of_window: Option<u64>,
    /// Processor time per request, where it says it.
    pub(super) cpu_us: Option<f64>,
}

/// brunt by interface and wait mode.
pub(super) fn brunts() -> impl Iterator<Item = Client> {
    ["epoll", "uring"]
        .into_iter()
        .flat_map(|io| ["spin", "hybrid", "sleep"].map(|wait| Client::Brunt { io, wait }))
}

impl Client {
    pub(super) fn name(&self) -> String {
        match self {
            Self::Brunt { io, wait } => format!("brunt, {wait}, {io}"),
            Self::Peer(peer) => peer.name().to_owned(),
        }
    }

    /// Its driver, if it is no brunt.
    pub(super) fn peer(&self) -> Option<&Other> {
        match self {
            Self::Peer(peer) => Some(peer),
            Self::Brunt { .. } => None,
        }
    }

    /// Can it be asked for this load?
    pub(super) fn takes(&self, rate: Option<u64>, shape: Shape) -> bool {
        match self {
            Self::Brunt { .. } => true,
            Self::Peer(client) => {
                let keeps_a_rate = matches!(client.kind, Kind::Peer(peer) if peer.keeps_a_rate());
                client.takes(&shape) && (rate.is_none() || keeps_a_rate)
            }
        }
    }

    /// Its command line, the program left out. brunt pins its worker itself, to `processor`.
    pub(super) fn arguments(&self, load: &Load<'_>, processor: usize) -> Vec<String> {
        match self {
            Self::Peer(peer) => peer.arguments(load),
            Self::Brunt { io, wait } => {
                let rate = load.rate.map_or_else(String::new, |rate| format!("-r {rate}"));
                let text = format!(
                    "run -s 127.0.0.1:{{port}} -T 1 --cpus {processor} -c {{connections}} -d {{depth}} {rate} --io {io} \
                     --wait {wait} -t {{seconds}}s --warmup {WARMUP} --mix get --keys {{keys}} --no-preload \
                     --no-server-stats --quiet --allow=BROKEN,LOAD,CLIENT,DATA --json -"
                );
                load.fill(&text).split_whitespace().map(str::to_owned).collect()
            }
        }
    }

    /// The text of its configuration; empty for those that have none.
    pub(super) fn configuration(&self, load: &Load<'_>) -> String {
        match self {
            Self::Peer(peer) => peer.configuration(load),
            Self::Brunt { .. } => String::new(),
        }
    }

    /// What it says, out of what it printed and what it wrote to its file.
    ///
    /// # Errors
    /// brunt printed no result, or one without what must be in it.
    pub(super) fn report(&self, printed: &str, written: &str) -> anyhow::Result<Report> {
        match self {
            Self::Peer(Other { kind: Kind::Peer(peer), .. }) => {
                let latency = peer.reported_latency(printed, written).unwrap_or_default();
                Ok(Report { latency, ..Report::default() })
            }
            Self::Brunt { .. } | Self::Peer(_) => brunt_report(printed),
        }
    }
}

fn brunt_report(printed: &str) -> anyhow::Result<Report> {
    let result: Value = serde_json::from_str(printed).context("brunt printed no result")?;
    let us = |value: &Value| value.as_f64().map(|ns| ns / 1e3);
    let latency = |key: &str| {
        let times = &result["latency"][key];
        Latency {
            mean: us(&times["mean"]),
            p50: us(&times["p50"]),
            p90: us(&times["p90"]),
            p99: us(&times["p99"]),
        }
    };
    let phases = result["phases"].as_object().context("brunt does not say what it sent")?;
    let sent = phases.values().filter_map(|phase| phase["requests"]["sent"].as_u64()).sum();
    Ok(Report {
        latency: latency("response_ns"),
        service: latency("service_ns"),
        client_error: latency("client_error_ns"),
        sent: Some(sent),
        sent_of_window: result["requests"]["sent"].as_u64(),
        cpu_us: cpu_us(&result),
    })
}

/// CPU time of a request, waiting included, as it is known of the other clients.
fn cpu_us(result: &Value) -> Option<f64> {
    let of_client = |key: &str| result["client"][key].as_f64();
    let total_ns = of_client("cpu_user_ns")? + of_client("cpu_system_ns")?;
    let sent = result["in_window"]["sent"].as_f64().filter(|sent| *sent > 0.0)?;
    Some(total_ns / sent / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::client::{PEERS, peer_client};
    use crate::bench::shape::SHAPES;
    use std::path::PathBuf;

    const LOAD: Load<'_> =
        Load { shape: SHAPES[1], port: 7, seconds: 2, requests: 0, rate: Some(5000), conf: "/c", out: "/o" };

    #[test]
    fn loads_are_asked_for() {
        let client = Client::Brunt { io: "uring", wait: "sleep" };
        let line = client.arguments(&LOAD, 1).join(" ");
        let expected = "run -s 127.0.0.1:7 -T 1 --cpus 1 -c 16 -d 1 -r 5000 --io uring --wait sleep -t 2s --warmup 500ms";
        assert!(line.starts_with(expected), "{line}");
        let line = client.arguments(&Load { rate: None, ..LOAD }, 1).join(" ");
        assert!(line.contains(" -d 1 --io uring"), "{line}");
        for peer in &PEERS {
            let client = Client::Peer(peer_client(peer, PathBuf::new()));
            assert!(
                client.takes(None, SHAPES[1]) && client.takes(Some(5000), SHAPES[1]) == peer.keeps_a_rate()
            );
        }
    }

    #[test]
    fn results_are_read() {
        let times = r#"{"mean": 30500, "p50": 30000, "p90": 60000, "p99": null}"#;
        let result = format!(
            r#"{{"requests": {{"sent": 7}}, "client": {{"cpu_user_ns": 97000, "cpu_system_ns": 400000}}, "in_window": {{"sent": 7}},
                "phases": {{"warmup": {{"requests": {{"sent": 2}}}}, "measure": {{"requests": {{"sent": 7}}}}}},
                "latency": {{"response_ns": {times}, "service_ns": {times}, "client_error_ns": {{"p50": 2000}}}}}}"#
        );
        let latency = Latency { mean: Some(30.5), p50: Some(30.0), p90: Some(60.0), p99: None };
        let expected = Report {
            latency,
            service: latency,
            client_error: Latency { p50: Some(2.0), ..Latency::default() },
            sent: Some(9),
            sent_of_window: Some(7),
            cpu_us: Some(71.0),
        };
        assert_eq!(brunt_report(&result).unwrap(), expected);
        assert!(brunt_report("nothing").is_err());
        assert!(brunt_report("{}").is_err());
    }
}
