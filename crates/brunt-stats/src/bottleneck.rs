//! Who is the limit of a load: the connections, the client, or the server.
//!
//! Not whether there is a limit: that the backlog of an open loop says, and a closed loop always has one. Any overload of an open loop fills the
//! slots, so full slots alone prove nothing. The connections are the limit only where the server answers as fast as without load: its unloaded
//! service time S0 times the throughput is then the number of slots in use. Invariant: a limit is called the server's only if neither the
//! client nor the connections are known to be it.

use crate::check::rounded;
use crate::op_summary::OpSummary;
use crate::run_record::RunRecord;
use crate::usage::{BUSY, HostEvidence, WorkerUsage};
use crate::window::RunTimes;
use brunt_plan::quantity::time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The connections are the limit where this share of the slots is taken …
const SLOTS_TAKEN: f64 = 0.95;
/// … and throughput x S0 is this share of the slots. Simulated: 0.78 to 1.26 of parallel servers, 0.20 to 0.62 of four units, 0.01 to 0.08
/// of one FIFO.
const SLOTS_UNLOADED: f64 = 0.7;
/// Connections beyond those that the rate takes on average, as requests do not arrive evenly.
const SPARE: f64 = 1.25;
/// A processor that was idle for less than this has no room for another worker.
const FREE_MIN: f64 = 0.8;
/// Of what a server that is the limit answered, this part is advised to be offered.
const ADVISED: f64 = 0.8;

brunt_plan::named! { serialized
    /// Who is the limit.
    pub enum Bottleneck {
        /// More connections would carry more.
        Connections = "connections",
        /// The client had no time left.
        Client = "client",
        /// The server, or what lies behind it.
        Server = "server",
    }
}

/// What decides who is the limit. Shares from 0 to 1, of the measured window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LimitFacts {
    /// For how long the busiest thread of a server worked, by its own counters.
    pub server_busiest_thread_share: Option<f64>,
    /// The worker that worked or waited for a processor longest.
    pub busiest_worker: u32,
    /// For how long it did.
    pub worker_busiest_share: f64,
    /// Would one more worker have a processor of its own?
    pub has_free_processor: bool,
    /// Requests that can be in flight at once.
    pub slots: u64,
    /// Of each connection.
    pub depth: u64,
    /// How many of the slots were taken, on average.
    pub slots_taken_share: f64,
    /// Requests completed per second.
    pub throughput: f64,
    /// The service time of requests one at a time, before the load.
    pub unloaded_service_ns: Option<u64>,
    /// Requests per second that were offered; `None` in closed loop.
    pub rate: Option<f64>,
}

/// Who is the limit, why, and what helps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limit {
    /// Who.
    pub bottleneck: Bottleneck,
    /// Who, as the subject of a sentence: `the connections`.
    pub subject: Cow<'static, str>,
    /// What shows it: `16 of 16 were busy all the time`.
    pub reason: String,
    /// What to do; empty where nothing is known to help.
    pub fix: String,
    /// The `--connections` that carry the rate, or all that the server has processor time for.
    pub connections_needed: Option<u64>,
}

impl LimitFacts {
    /// The facts of a run; `total` are its measured requests.
    pub fn of(record: &RunRecord, window: &RunTimes, total: &OpSummary) -> Self {
        let (plan, run) = (&record.plan, &record.run);
        let span = run.servers_in(window);
        let share = |part_ns: u64, wall_ns: u64| (part_ns as f64 / wall_ns.max(1) as f64).min(1.0);
        let taken = |worker: &WorkerUsage| {
            share(worker.busy_ns.saturating_add(worker.run_delay_ns.unwrap_or(0)), worker.wall_ns)
        };
        let workers = run.usage.workers.iter().map(|worker| (worker.worker, taken(worker)));
        let (busiest_worker, worker_busiest_share) =
            workers.max_by(|(_, one), (_, other)| one.total_cmp(other)).unwrap_or_default();
        let slots: u64 = plan.classes.iter().map(|class| plan.in_flight_slots(class)).sum();
        let throughput = total.rate.completed;
        let slots_taken = match total.latency.service.summary.mean_ns {
            Some(service_ns) => throughput * service_ns / 1e9,
            // Nothing that was due in the window ended in it: what had waited before had the slots.
            None => total.in_window.in_flight_at_start.min(total.in_window.in_flight_at_end) as f64,
        };
        Self {
            server_busiest_thread_share: span
                .and_then(|span| Some(share(span.thread_ns?, span.end_ns - span.start_ns))),
            busiest_worker,
            worker_busiest_share,
            has_free_processor: has_free_processor(&run.host, run.usage.workers.len() as u64),
            slots,
            depth: plan.classes.iter().map(|class| u64::from(class.depth)).max().unwrap_or(1),
            slots_taken_share: (slots_taken / slots.max(1) as f64).min(1.0),
            throughput,
            unloaded_service_ns: run.unloaded_service_ns,
            rate: plan.has_open_loop().then_some(total.rate.offered),
        }
    }

    /// Was a processor used up? If not, only an unloaded service time tells what limits a closed loop.
    pub fn is_known(&self) -> bool {
        let is_busy = self.is_server_busy() || self.worker_busiest_share >= BUSY;
        is_busy || self.unloaded_service_ns.is_some()
    }

    fn bottleneck(&self) -> Bottleneck {
        let is_server = self
            .server_busiest_thread_share
            .is_some_and(|thread| thread >= BUSY && thread >= self.worker_busiest_share);
        if is_server {
            Bottleneck::Server
        } else if self.worker_busiest_share >= BUSY {
            Bottleneck::Client
        } else if self.slots_taken_share >= SLOTS_TAKEN && self.is_unloaded() {
            Bottleneck::Connections
        } else {
            Bottleneck::Server
        }
    }

    /// Does the server answer as fast as without load?
    fn is_unloaded(&self) -> bool {
        self.unloaded_service_ns.is_some_and(|service_ns| {
            self.throughput * service_ns as f64 / 1e9 >= SLOTS_UNLOADED * self.slots as f64
        })
    }

    /// The connections that carry the rate; of a closed loop, and where the server cannot answer as much, what it has processor time for.
    fn connections_needed(&self) -> Option<u64> {
        let by_server = self
            .server_busiest_thread_share
            .filter(|thread| *thread > 0.0)
            .map_or(f64::INFINITY, |thread| self.throughput / thread);
        let rate = self.rate.unwrap_or(f64::INFINITY).min(by_server);
        let slots = rate * self.unloaded_service_ns? as f64 / 1e9 * SPARE;
        let depth = self.depth.max(1);
        let least = self.slots / depth + 1;
        slots.is_finite().then(|| ((slots / depth as f64).ceil() as u64).max(least))
    }

    fn is_server_busy(&self) -> bool {
        self.server_busiest_thread_share.is_some_and(|thread| thread >= BUSY)
    }

    /// What the client and its connections were not short of.
    fn others_reason(&self) -> String {
        let slots = match self.unloaded_service_ns {
            _ if self.slots_taken_share < SLOTS_TAKEN => {
                format!("{} of the slots were taken", percent(self.slots_taken_share))
            }
            Some(service_ns) => format!("its answers took longer than the {} without load", time(service_ns)),
            None => format!("all {} slots were taken and may be too few", self.slots),
        };
        format!("{slots}, the client was busy for {}", percent(self.worker_busiest_share))
    }
}

impl Limit {
    /// Who is the limit of the load.
    pub fn of(facts: &LimitFacts) -> Self {
        let bottleneck = facts.bottleneck();
        let (subject, reason, fix) = match bottleneck {
            Bottleneck::Connections => connections(facts),
            Bottleneck::Client => client(facts),
            Bottleneck::Server => server(facts),
        };
        let connections_needed =
            (bottleneck == Bottleneck::Connections).then(|| facts.connections_needed()).flatten();
        Self { bottleneck, subject: subject.into(), reason, fix, connections_needed }
    }

    /// Who is the limit, and what shows it.
    pub fn sentence(&self) -> String {
        let verb = match self.bottleneck {
            Bottleneck::Connections => " are",
            _ if self.subject.contains(',') => ", is",
            _ => " is",
        };
        format!("{}{verb} the limit: {}", self.subject, self.reason)
    }
}

/// Are there more processors than workers, and was one of them idle?
fn has_free_processor(host: &HostEvidence, workers: u64) -> bool {
    let busy_ns = host.busy_ns.map(|busy_ns| busy_ns + host.stolen_ns.unwrap_or(0));
    let idle = busy_ns.map(|busy_ns| host.cpus as f64 - busy_ns as f64 / host.wall_ns.max(1) as f64);
    host.cpus > workers && idle.is_some_and(|idle| idle >= FREE_MIN)
}

/// A share in whole per cent.
fn percent(share: f64) -> String {
    rounded(share * 100.0) + " %"
}

/// Who, what shows it, and what to do.
type Finding = (&'static str, String, String);

fn connections(facts: &LimitFacts) -> Finding {
    let server = facts.server_busiest_thread_share.map_or_else(
        || "the server's times as at low load".to_owned(),
        |thread| format!("the server's thread for {}, its times as at low load", percent(thread)),
    );
    let slots = facts.slots;
    let reason = format!(
        "{} of {slots} were busy all the time, {server}",
        rounded(facts.slots_taken_share * slots as f64)
    );
    let fix = facts.connections_needed().map_or("more of -c".to_owned(), |needed| format!("-c {needed}"));
    ("the connections", reason, fix)
}

fn client(facts: &LimitFacts) -> Finding {
    let reason = format!(
        "worker {} worked or waited for a processor for {}",
        facts.busiest_worker,
        percent(facts.worker_busiest_share)
    );
    let fix = match facts.has_free_processor {
        true => "one more of --threads",
        false => "a second host for more (--agent)",
    };
    ("the client", reason, fix.to_owned())
}

fn server(facts: &LimitFacts) -> Finding {
    let thread = match facts.server_busiest_thread_share {
        Some(thread) => format!("its thread was busy for {}", percent(thread)),
        None => "it does not report its processor time".to_owned(),
    };
    let (subject, reason) = match facts.is_server_busy() {
        true => ("the server", thread),
        false => ("the server, or what lies behind it", format!("{thread}, {}", facts.others_reason())),
    };
    let fix = facts.rate.map_or(String::new(), |_| {
        format!("--rate {} (80 % of what it answered)", rounded(ADVISED * facts.throughput))
    });
    (subject, reason, fix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Bottleneck::{Client, Connections, Server};

    /// An open loop at 2 000/s over 8 connections, with this of the server's thread, the worker, the slots, S0 and what was answered.
    fn facts(
        server_busiest_thread_share: Option<f64>,
        worker_busiest_share: f64,
        slots_taken_share: f64,
        unloaded_service_ns: Option<u64>,
        throughput: f64,
    ) -> LimitFacts {
        LimitFacts {
            server_busiest_thread_share,
            worker_busiest_share,
            slots: 8,
            depth: 1,
            slots_taken_share,
            throughput,
            unloaded_service_ns,
            rate: Some(2_000.0),
            ..LimitFacts::default()
        }
    }

    const TEN_MS: Option<u64> = Some(10_000_000);

    #[test]
    fn the_first_that_had_nothing_left_is_the_limit() {
        let table = [
            // A thread of the server that had less left than the busiest worker.
            (facts(Some(0.95), 0.95, 1.0, TEN_MS, 800.0), Server),
            (facts(Some(0.97), 0.3, 1.0, TEN_MS, 800.0), Server),
            (facts(Some(0.97), 0.98, 1.0, TEN_MS, 800.0), Client),
            (facts(Some(0.949), 0.95, 1.0, TEN_MS, 800.0), Client),
            (facts(None, 0.95, 1.0, TEN_MS, 800.0), Client),
            // Throughput x S0 / slots as simulated: parallel servers 0.78 to 1.26, four units 0.20 to 0.62, FIFO 0.01 to 0.08.
            (facts(Some(0.1), 0.949, 0.95, TEN_MS, 0.78 * 800.0), Connections),
            (facts(None, 0.1, 1.0, TEN_MS, 1.26 * 800.0), Connections),
            (facts(None, 0.1, 1.0, TEN_MS, 0.7 * 800.0), Connections),
            (facts(None, 0.1, 1.0, TEN_MS, 0.62 * 800.0), Server),
            (facts(None, 0.1, 1.0, TEN_MS, 0.20 * 800.0), Server),
            (facts(None, 0.1, 1.0, TEN_MS, 0.08 * 800.0), Server),
            (facts(Some(0.1), 0.1, 1.0, TEN_MS, 0.01 * 800.0), Server),
            // Slots that are not full are no limit, and full ones prove nothing without S0.
            (facts(None, 0.1, 0.949, TEN_MS, 800.0), Server),
            (facts(None, 0.1, 1.0, None, 800.0), Server),
        ];
        for (facts, expected) in table {
            assert_eq!(Limit::of(&facts).bottleneck, expected, "{facts:?}");
        }
    }

    #[test]
    fn the_connections_needed_carry_the_rate_as_far_as_the_server_can() {
        let of = |change: fn(&mut LimitFacts)| {
            let mut facts = facts(None, 0.1, 1.0, TEN_MS, 800.0);
            change(&mut facts);
            let limit = Limit::of(&facts);
            assert_eq!(limit.bottleneck, Connections);
            (limit.connections_needed, limit.fix)
        };
        let needed = |count: u64| (Some(count), format!("-c {count}"));
        // 2 000/s x 10 ms = 20 in flight.
        assert_eq!(of(|_| {}), needed(25));
        // Its thread is busy for half of the window at 800/s: it has room for 1 600/s.
        assert_eq!(of(|facts| facts.server_busiest_thread_share = Some(0.5)), needed(20));
        assert_eq!(of(|facts| facts.server_busiest_thread_share = Some(0.1)), needed(25));
        assert_eq!(of(|facts| (facts.slots, facts.depth) = (8, 4)), needed(7));
        // In closed loop all that it has room for, where that is known.
        assert_eq!(of(|facts| facts.rate = None), (None, "more of -c".to_owned()));
        assert_eq!(
            of(|facts| (facts.rate, facts.server_busiest_thread_share) = (None, Some(0.2))),
            needed(50)
        );
        // Never fewer than there are.
        assert_eq!(of(|facts| facts.rate = Some(500.0)), needed(9));
        assert_eq!(Limit::of(&facts(Some(1.0), 0.0, 1.0, TEN_MS, 800.0)).connections_needed, None);
    }

    #[test]
    fn sentences_have_their_numbers() {
        let client = LimitFacts { busiest_worker: 3, ..facts(None, 0.98, 1.0, TEN_MS, 800.0) };
        let table = [
            (
                facts(Some(0.12), 0.4, 1.0, TEN_MS, 800.0),
                "the connections are the limit: 8 of 8 were busy all the time, the server's thread for 12 %, its times as at \
                 low load -> -c 25",
            ),
            (
                facts(None, 0.4, 1.0, TEN_MS, 800.0),
                "the connections are the limit: 8 of 8 were busy all the time, the server's times as at low load -> -c 25",
            ),
            (
                LimitFacts { has_free_processor: true, ..client },
                "the client is the limit: worker 3 worked or waited for a processor for 98 % -> one more of --threads",
            ),
            (
                client,
                "the client is the limit: worker 3 worked or waited for a processor for 98 % -> a second host for more (--agent)",
            ),
            (
                facts(Some(0.97), 0.4, 1.0, TEN_MS, 800.0),
                "the server is the limit: its thread was busy for 97 % -> --rate 640 (80 % of what it answered)",
            ),
            (
                facts(None, 0.1, 1.0, TEN_MS, 100.0),
                "the server, or what lies behind it, is the limit: it does not report its processor time, its answers took longer than the \
                 10.0 ms without load, the client was busy for 10 % -> --rate 80 (80 % of what it answered)",
            ),
        ];
        for (facts, expected) in table {
            let limit = Limit::of(&facts);
            assert_eq!(format!("{} -> {}", limit.sentence(), limit.fix), expected);
        }
    }
}
