//! Little's law: the number of operations in the system is the rate times the time each is in it. A defect of the clock or of
//! our own books breaks it.
//!
//! Not a property of the server: the law holds for every system and every load.

use super::Evidence;
use crate::check::{Check, CheckStatus, Limits};
use crate::number_text::percent;

/// By how much the integral over time may differ from the sum over operations. Both cover the same window, and an operation
/// leaves the system at the end of its sample.
const PRESENCE: Limits = Limits { caution: 0.005, not_trusted: 0.05 };
/// By how much the slots of a closed loop may differ from rate × (response + think).
const SLOTS: Limits = Limits { caution: 0.01, not_trusted: 0.05 };
/// Fewer requests than this say little.
const REQUESTS_MIN: u64 = 1_000;

/// Operations in the system over the window, in operations × nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct InSystem {
    /// The integral over time of their number.
    pub integral: f64,
    /// The sum of their times.
    pub sum: f64,
    /// Length of the window.
    pub window_ns: u64,
}

/// A class in closed loop whose slots are always taken: by a request or by thinking.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClosedLoop {
    /// Its name.
    pub class: String,
    /// Connections × depth.
    pub slots: u64,
    /// Requests of the window that ended, whatever with.
    pub ended: u64,
    /// The time in the window of all requests, whenever they were due, from when they were due.
    pub response_ns: f64,
    /// The pause between a reply and the next request.
    pub think_ns: u64,
    /// For how long the window lasted at the most when a worker learned of its beginning.
    pub late_ns: u64,
    /// Length of the window.
    pub window_ns: u64,
}

/// One comparison.
struct Comparison {
    deviation: f64,
    /// What the edges of the window may make of it.
    edge: f64,
    limits: Limits,
    message: String,
}

impl Comparison {
    fn status(&self) -> CheckStatus {
        self.limits.judge(self.deviation - self.edge)
    }

    fn excess(&self) -> f64 {
        (self.deviation - self.edge) / self.limits.caution
    }
}

fn in_system(held: &InSystem) -> Option<Comparison> {
    let window_ns = held.window_ns as f64;
    (held.sum.max(held.integral) > 0.0 && window_ns > 0.0).then(|| {
        let deviation = (held.integral - held.sum).abs() / held.sum.max(held.integral);
        let message = format!(
            "{:.3} requests in the system on average by the clock, {:.3} by their own times ({} apart)",
            held.integral / window_ns,
            held.sum / window_ns,
            percent(deviation)
        );
        Comparison { deviation, edge: 0.0, limits: PRESENCE, message }
    })
}

fn closed_loop(held: &ClosedLoop) -> Option<Comparison> {
    let window_ns = held.window_ns as f64;
    // A slot may think at either edge: what of that lies outside is counted at one end, and what lies inside is missing at the
    // other. What a worker answered before it knew of the window is missing.
    let edge = (held.late_ns + held.think_ns) as f64 / window_ns;
    if held.ended < REQUESTS_MIN || held.slots == 0 || edge > SLOTS.not_trusted {
        return None;
    }
    let taken = (held.response_ns + held.ended as f64 * held.think_ns as f64) / window_ns;
    let deviation = (taken - held.slots as f64).abs() / held.slots as f64;
    let message = format!(
        "class '{}' has {} slots, rate × (response + think) makes {taken:.2} ({} apart)",
        held.class,
        held.slots,
        percent(deviation)
    );
    Some(Comparison { deviation, edge, limits: SLOTS, message })
}

/// Does Little's law hold?
pub(super) fn little(evidence: &Evidence<'_>) -> Check {
    let comparisons = in_system(&evidence.in_system)
        .into_iter()
        .chain(evidence.closed_loops.iter().filter_map(closed_loop));
    let worst = comparisons
        .max_by(|one, other| one.status().cmp(&other.status()).then(one.excess().total_cmp(&other.excess())));
    let Some(worst) = worst else {
        return Check::skipped("LITTLE", "nothing was in the system", PRESENCE.caution);
    };
    let fix =
        "this is a defect of the tool or of the host's clock: please report it with the plan and the seed";
    let (status, threshold) = (worst.status(), worst.limits.caution + worst.edge);
    Check::judged("LITTLE", status, worst.message, fix, worst.deviation, threshold)
}
