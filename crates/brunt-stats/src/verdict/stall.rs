//! The check of a client that stood still: did an iteration of a worker's loop take long enough for replies to wait?
//!
//! Not LAG, which bounds what the client added to each percentile: one that stands still for a second of a closed loop
//! lowers the load for as long, and leaves one long response time for each slot, which no percentile below the last shows.
//! It holds in both loops.

use super::Evidence;
use crate::check::{Check, CheckStatus};
use crate::number_text::time;
use crate::usage::{STALL_MIN_NS, StallCounts, WorkerUsage};

/// Did a worker stand still inside the window?
pub(super) fn stall(evidence: &Evidence<'_>) -> Check {
    let threshold = STALL_MIN_NS as f64;
    let all = StallCounts::of_all(&evidence.run.usage.workers);
    let Some(WorkerUsage { worker, stalls, .. }) = StallCounts::longest_of(&evidence.run.usage.workers)
    else {
        let message = format!("no turn of the loop took longer than {}", time(STALL_MIN_NS));
        return Check::judged("STALL", CheckStatus::Ok, message, "", 0.0, threshold);
    };
    let times = if all.count == 1 { "once".to_owned() } else { format!("{} times", all.count) };
    let message = format!(
        "the client stood still {times} for more than {}, for {} in all",
        time(STALL_MIN_NS),
        time(all.total_ns),
    );
    let longest = format!(
        "longest for {} at +{} (worker {worker})",
        time(stalls.longest_ns),
        time(stalls.longest_at_ns)
    );
    let waited = "what requests waited meanwhile is the client's, and a closed loop sent nothing".to_owned();
    let fix = "find what stopped it (STEAL, CPU, a signal), and measure again";
    Check::judged("STALL", CheckStatus::Caution, message, fix, stalls.longest_ns as f64, threshold)
        .with([longest, waited])
}
