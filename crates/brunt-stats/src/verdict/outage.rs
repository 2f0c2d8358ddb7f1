//! What outages explain: requests that were never sent, and answers that are missing, because a server answered nobody.
//!
//! Not a check of its own. The checks that miss those requests say so, instead of advice that suits a server which is there.

use super::time;
use crate::outage::Outage;
use crate::server::ServerCounts;
use crate::summary::MeasuredWindow;
use brunt_plan::plan::Plan;
use std::ops::Range;

/// So many servers are named; the rest is counted.
const NAMED_MAX: usize = 3;
/// An outage of less than this share of the last half of the window explains nothing that is missing in it.
const LATE_SHARE_MIN: f64 = 0.01;

/// A server that answered nobody for a while.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GoneServer {
    /// As the plan has it.
    pub name: String,
    /// For how long, from the start of the schedule to the end of the drain.
    pub gone_ns: u64,
    /// How much of that lies in the last half of the window.
    pub late_ns: u64,
    /// Requests to it that were given up before they were sent.
    pub given_up: u64,
}

impl GoneServer {
    /// Those of a run, in the order of the plan.
    pub(crate) fn all(
        plan: &Plan,
        outages: &[Outage],
        counts: &[ServerCounts],
        window: &MeasuredWindow,
    ) -> Vec<Self> {
        let half_ns = window.measure_ns + window.duration_ns() / 2;
        let of_server = |(index, counts): (usize, &ServerCounts)| {
            let own = outages.iter().filter(|outage| usize::from(outage.server) == index);
            let within = |span: Range<u64>| -> u64 {
                own.clone().map(|outage| overlap_ns(outage, &span, window.drained_ns)).sum()
            };
            Self {
                name: plan.server_name(index).unwrap_or_else(|| "the server".to_owned()),
                gone_ns: within(window.start_ns..window.drained_ns),
                late_ns: within(half_ns..window.end_ns),
                given_up: counts.given_up,
            }
        };
        let all = counts.iter().enumerate().map(of_server);
        all.filter(|server| server.gone_ns > 0).collect()
    }
}

/// How much of an outage lies in a span of time; one that was not over ended with the run.
fn overlap_ns(outage: &Outage, span: &Range<u64>, drained_ns: u64) -> u64 {
    let end_ns = outage.end_ns.unwrap_or(drained_ns).min(span.end);
    end_ns.saturating_sub(outage.start_ns.max(span.start))
}

/// Which servers' requests were given up before they were sent, and for how long each server was gone; empty where none was.
pub(super) fn unsent_for(servers: &[GoneServer]) -> String {
    let missed: Vec<&GoneServer> = servers.iter().filter(|server| server.given_up > 0).collect();
    told(&missed, |server| format!("{} answered nobody for {}", server.name, time(server.gone_ns)))
}

/// Which servers were gone in the last half of the window, which lasted so long; empty where none of them was.
pub(super) fn gone_late(servers: &[GoneServer], half_seconds: f64) -> String {
    let least_ns = LATE_SHARE_MIN * half_seconds * 1e9;
    let late: Vec<&GoneServer> =
        servers.iter().filter(|server| server.late_ns > 0 && server.late_ns as f64 >= least_ns).collect();
    told(&late, |server| format!("{} answered nobody for {} of it", server.name, time(server.late_ns)))
}

fn told(servers: &[&GoneServer], say: impl Fn(&GoneServer) -> String) -> String {
    let mut parts: Vec<String> = servers.iter().take(NAMED_MAX).map(|server| say(server)).collect();
    if servers.len() > NAMED_MAX {
        parts.push(format!("{} other servers were gone, too", servers.len() - NAMED_MAX));
    }
    parts.join(", ")
}
