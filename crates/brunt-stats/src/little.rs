//! Little's law: the number of operations in the system is the rate times the time each is in it. A defect of the clock or of
//! our own accounting breaks it.
//!
//! Not a property of the server: the law holds for every system and every load.

use crate::occupancy::OccupancyTotal;
use crate::run_record::RunRecord;
use crate::window::RunTimes;
use brunt_plan::plan::{Class, Load, OnMiss};
use brunt_plan::quantity::percent;

/// By how much the two sides may differ. Both cover the same window, and an operation leaves the system at the end of its sample.
const DEVIATION_MAX: f64 = 0.01;
/// The edges of the window may make no more than this of a comparison.
const EDGE_MAX: f64 = 0.05;
/// Fewer requests than this say little.
const REQUESTS_MIN: u64 = 1_000;

/// A class in closed loop whose slots are always taken: by a request or by thinking.
#[derive(Clone, Debug, Default, PartialEq)]
struct ClosedLoop {
    class: String,
    /// Connections × depth.
    slots: u64,
    /// Requests of the window that ended, whatever with.
    ended: u64,
    /// The time in the window of all requests, whenever they were due, from when they were due.
    response_ns: f64,
    /// The pause between a reply and the next request.
    think_ns: u64,
    /// For how long the window lasted at the most when a worker learned of its beginning.
    late_ns: u64,
    /// Length of the window.
    window_ns: u64,
}

/// Which of its two forms a run breaks, with both sides; `None` where it breaks none.
pub(crate) fn violation(record: &RunRecord, window: &RunTimes) -> Option<String> {
    let OccupancyTotal { integral, sum } = record.run.counts.occupancy;
    let (integral, sum) = (integral as f64, sum as f64);
    let of_all = violation_in_system(integral, sum, window.duration_ns() as f64);
    of_all.or_else(|| closed_loops(record, window).iter().find_map(ClosedLoop::violation))
}

/// Are the integral over time of the number in the system and the sum of the times in it, in operations × nanoseconds, one number?
fn violation_in_system(integral: f64, sum: f64, window_ns: f64) -> Option<String> {
    let deviation = (integral - sum).abs() / sum.max(integral);
    (window_ns > 0.0 && deviation > DEVIATION_MAX).then(|| {
        format!(
            "{:.3} requests in the system on average by the clock, {:.3} by their own times ({} apart)",
            integral / window_ns,
            sum / window_ns,
            percent(deviation)
        )
    })
}

/// Of each class whose slots are always taken: its slots, and how many of them rate x (response + think) makes.
pub fn slots_taken(record: &RunRecord, window: &RunTimes) -> Vec<(u64, f64)> {
    closed_loops(record, window).iter().map(|held| (held.slots, held.taken())).collect()
}

impl ClosedLoop {
    fn taken(&self) -> f64 {
        (self.response_ns + self.ended as f64 * self.think_ns as f64) / self.window_ns as f64
    }

    fn violation(&self) -> Option<String> {
        let window_ns = self.window_ns as f64;
        // A slot may think at either edge: what of that lies outside is counted at one end, and what lies inside is missing at the
        // other. What a worker answered before it knew of the window is missing.
        let edge = (self.late_ns + self.think_ns) as f64 / window_ns;
        if self.ended < REQUESTS_MIN || self.slots == 0 || edge > EDGE_MAX {
            return None;
        }
        let taken = self.taken();
        let deviation = (taken - self.slots as f64).abs() / self.slots as f64;
        (deviation - edge > DEVIATION_MAX).then(|| {
            format!(
                "class '{}' has {} slots, rate x (response + think) makes {taken:.2} ({} apart)",
                self.class,
                self.slots,
                percent(deviation)
            )
        })
    }
}

/// The classes whose slots are always taken. Where connections come and go, or are lost, slots wait for them; a follow-up
/// shares a slot; without a reply there is no response time; and where the run ends by number, or by hand, workers do not
/// end together.
fn closed_loops(record: &RunRecord, window: &RunTimes) -> Vec<ClosedLoop> {
    let RunRecord { plan, run, .. } = record;
    let store = &run.intervals;
    let ends_by_time = plan.stop.time.is_some_and(|time| window.duration_ns() >= time.0);
    let is_disturbed = store.totals.connections.iter().any(|counts| counts.lost > 0) || run.interrupted;
    if !ends_by_time || plan.stop.requests.is_some() || is_disturbed {
        return Vec::new();
    }
    let is_regular =
        |class: &Class| !class.lifetime.is_planned() && !class.noreply && class.on_miss == OnMiss::Ignore;
    let closed = plan.classes.iter().enumerate().filter(|(_, class)| is_regular(class));
    let closed = closed.filter_map(|(index, class)| match class.load {
        Load::Closed { think } => Some((index, class, think.0)),
        Load::Open { .. } => None,
    });
    let of_class = |(index, class, think_ns): (usize, &Class, u64)| {
        let mut held = ClosedLoop {
            class: class.name.clone(),
            slots: plan.in_flight_slots(class),
            think_ns,
            late_ns: run.counts.window_late_ns,
            window_ns: window.duration_ns(),
            ..ClosedLoop::default()
        };
        for (_, _, row) in store.rows().filter(|(of, _, _)| usize::from(*of) == index) {
            for histogram in [&row.latencies.response, &row.latencies.failed] {
                let moments = histogram.moments();
                held.ended += moments.count;
                held.response_ns += moments.sum as f64;
            }
        }
        for entry in store.request_counts.entries().filter(|entry| usize::from(entry.class) == index) {
            let counts = entry.in_window();
            held.response_ns += (counts.inside_us as f64 - counts.behind_us as f64) * 1e3;
        }
        held
    };
    closed.map(of_class).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW_NS: u64 = 10_000_000_000;

    #[test]
    fn the_integral_and_the_sum_are_one_number() {
        let found = |sum: f64| violation_in_system(4e10, sum, WINDOW_NS as f64);
        assert_eq!([4e10, 3.97e10, 4.03e10].map(found), [None, None, None]);
        let text = found(4.1e10).unwrap();
        assert_eq!(
            text,
            "4.000 requests in the system on average by the clock, 4.100 by their own times (2.44 % apart)"
        );
        assert_eq!(violation_in_system(0.0, 0.0, WINDOW_NS as f64), None);
    }

    #[test]
    fn slots_of_a_closed_loop_are_rate_times_time() {
        // 16 slots of 10 s each, of which requests and thinking take all.
        let found = |response_s: f64, think_ms: u64, late_ms: u64| {
            let held = ClosedLoop {
                class: "web".to_owned(),
                slots: 16,
                ended: 10_000,
                response_ns: response_s * 1e9,
                think_ns: think_ms * 1_000_000,
                late_ns: late_ms * 1_000_000,
                window_ns: WINDOW_NS,
            };
            held.violation()
        };
        assert_eq!(found(160.0, 0, 0), None);
        assert_eq!(found(158.6, 0, 0), None);
        assert_eq!(found(150.0, 1, 0), None);
        assert!(
            found(150.0, 0, 0)
                .unwrap()
                .starts_with("class 'web' has 16 slots, rate x (response + think) makes 15.00")
        );
        // What lies at the edges of the window is not known.
        assert_eq!(found(155.0, 0, 300), None);
        assert_eq!(found(100.0, 0, 600), None);
    }
}
