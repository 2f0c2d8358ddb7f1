//! Outages that reached into what was measured, and whose they are.
//!
//! Not outages as they were noted (`outage.rs`). Invariant: silence that a stop or a lack of processor time of the client explains is no
//! outage of a server.

use crate::measured_window::MeasuredWindow;
use crate::number_text::share;
use crate::outage::Outage;
use crate::outage_span::{OutageKind, OutageKinds};
use crate::usage::WorkerUsage;
use brunt_plan::plan::Plan;
use std::collections::BTreeSet;
use std::ops::Range;

/// A worker that stood still for this share of a silence explains the silence.
const OWN_MIN: f64 = 0.5;
/// A worker that waited for a CPU for this share of the window explains why all of several servers are silent at once.
const STARVED_MIN: f64 = 0.5;

/// An outage that reached into what was measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeasuredOutage {
    /// The server's name in the plan.
    pub server: String,
    /// From its start to its end, or to that of the run.
    pub length_ns: u64,
    /// Did the server answer again?
    pub is_over: bool,
    /// When it began, in nanoseconds on the run's clock, and when it ended.
    pub at: Range<u64>,
    /// From its start until the server answered as fast as before, as far as that lies in the measured window; on the run's clock.
    pub disturbed: Range<u64>,
    /// Kinds of trouble in it.
    pub kinds: OutageKinds,
}

impl MeasuredOutage {
    /// Those of a run by start. `workers` stood still at times: what was silent because of that is none.
    pub(crate) fn all(
        plan: &Plan,
        outages: &[Outage],
        servers: usize,
        window: &MeasuredWindow,
        workers: &[WorkerUsage],
    ) -> Vec<Self> {
        let of_outage = |outage: &Outage| {
            let index = usize::from(outage.server);
            let end_ns = outage.end_ns.unwrap_or(window.drained_ns).max(outage.start_ns);
            let recovered_ns = outage.recovered_ns.unwrap_or(end_ns).max(end_ns);
            let within = |ns: u64| ns.clamp(window.measure_ns, window.end_ns.max(window.measure_ns));
            Self {
                server: plan.server_name(index).unwrap_or_else(|| "the server".to_owned()),
                length_ns: end_ns - outage.start_ns,
                is_over: outage.end_ns.is_some(),
                at: outage.start_ns..end_ns,
                disturbed: within(outage.start_ns)..within(recovered_ns),
                kinds: outage.kinds,
            }
        };
        of_servers(outages, servers, window, workers).map(of_outage).collect()
    }

    /// The time in which its effects are to be looked for: what was due in it is answered up to a batch later.
    pub(crate) const fn effects(&self, batch_ns: u64) -> Range<u64> {
        self.disturbed.start..self.disturbed.end + batch_ns
    }
}

/// Those that are one of so many servers' own: they reach into the measured window, and the client's host did not make them.
pub(crate) fn of_servers<'a>(
    outages: &'a [Outage],
    servers: usize,
    window: &MeasuredWindow,
    workers: &[WorkerUsage],
) -> impl Iterator<Item = &'a Outage> {
    let at =
        |outage: &Outage| outage.start_ns..outage.end_ns.unwrap_or(window.drained_ns).max(outage.start_ns);
    let is_measured =
        move |outage: &&Outage| at(outage).end > window.measure_ns && outage.start_ns < window.end_ns;
    let starved =
        |worker: &WorkerUsage| share(worker.run_delay_ns.unwrap_or(0), worker.wall_ns) >= STARVED_MIN;
    let is_starved = servers > 1 && workers.iter().any(starved);
    let is_silence = |outage: &Outage| outage.kinds == OutageKinds::NONE.with(OutageKind::Stalled);
    let silent_with = move |outage: &Outage| {
        let alike = outages.iter().filter(|other| is_silence(other) && is_most(&at(other), &at(outage)));
        alike.map(|other| other.server).collect::<BTreeSet<u16>>().len()
    };
    let stood = move |outage: &Outage| {
        let stop = |worker: &WorkerUsage| worker.stalls.longest_span(window.measure_ns);
        workers.iter().any(|worker| is_most(&stop(worker), &at(outage)))
    };
    let is_hosts = move |outage: &Outage| {
        is_silence(outage) && (stood(outage) || is_starved && silent_with(outage) == servers)
    };
    outages.iter().filter(move |outage| is_measured(outage) && !is_hosts(outage))
}

/// Does this lie in most of a span of time?
fn is_most(this: &Range<u64>, span: &Range<u64>) -> bool {
    let common_ns = this.end.min(span.end).saturating_sub(this.start.max(span.start));
    common_ns > 0 && common_ns as f64 >= OWN_MIN * (span.end - span.start) as f64
}
