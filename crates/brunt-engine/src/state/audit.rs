//! Checks of keys by a worker beyond comparing values with those of the preload (`--verify`).
//!
//! The workload's verifier compares bytes; findings are recorded elsewhere. A worker's sessions of a class share
//! one audit, which sees all of their writes. Invariant: a finding is certain, whatever other workers and classes
//! of the plan do to the same keys and whatever foreign clients store; doubtful cases are not judged. Another brunt
//! run on the same data set at the same time writes versions of its own, and is detected.

use brunt_plan::op::{OpKind, Version};
use brunt_plan::plan::Plan;
use brunt_plan::shard::StreamPart;
use brunt_stats::verification::{FaultExample, ValueFault};
use brunt_workload::rng::{Draw, DrawRng};
use brunt_workload::version_tracker::{Freshness, VersionTracker};

/// The audit of one class on one worker.
#[derive(Debug)]
pub(crate) struct Audit {
    /// The writes of each key.
    pub tracker: VersionTracker,
    /// Every key was stored before the schedule began.
    is_preloaded: bool,
    /// A read is checked if its draw is at most this.
    chosen_max: u64,
    draws: DrawRng,
    /// No operation deletes keys of the plan, and no write of them can fail unseen.
    judges_presence: bool,
    /// No operation extends a value's lifetime.
    judges_expiry: bool,
}

/// A finished read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckedRead {
    /// The key.
    pub id: u64,
    /// When it was picked, which is before any byte reached the server.
    pub began_ns: u64,
    pub done_ns: u64,
}

impl Audit {
    /// The audits of all classes for a worker; empty if the plan verifies nothing. Writes down all keys, which
    /// takes time with many.
    pub(crate) fn all(plan: &Plan, part: StreamPart) -> Vec<Self> {
        let Some(share) = plan.verify else { return Vec::new() };
        let sends = |kind: OpKind| plan.classes.iter().any(|class| class.mix.contains(kind));
        let classes = plan.classes.len() as u32;
        // User-defined commands may do anything, and classes may share their keys.
        let live_alike =
            !sends(OpKind::Raw) && plan.classes.windows(2).all(|pair| pair[0].ttl_s == pair[1].ttl_s);
        // A failed store may destroy the previous value, and only its sender knows.
        let knows_all_writes = part.of * classes == 1 || !plan.writes();
        let audit = |(index, class): (u32, &brunt_plan::plan::Class)| Self {
            tracker: VersionTracker::new(
                part.index * classes + index + 1,
                // Windows know their own writes.
                if class.popularity.window().is_some() { 0 } else { class.keyspace.keys },
                u64::from(class.ttl_s) * 1_000_000_000,
            ),
            is_preloaded: plan.preload,
            chosen_max: (share.as_f64() * u64::MAX as f64) as u64,
            draws: DrawRng::from_draw(plan.seed ^ u64::from(part.index) << 32 ^ u64::from(index)),
            judges_presence: live_alike && knows_all_writes && !sends(OpKind::Delete),
            judges_expiry: live_alike && !sends(OpKind::Touch),
        };
        (0..).zip(&plan.classes).map(audit).collect()
    }

    /// Begins the schedule; the preload stored its keys before `start_ns`.
    pub(crate) fn begin(&mut self, start_ns: u64) {
        if self.is_preloaded {
            self.tracker.preloaded(0..start_ns);
        }
    }

    /// Is the next read to be checked?
    #[inline]
    pub(crate) fn selects(&mut self) -> bool {
        self.draws.next_u64() <= self.chosen_max
    }

    /// The fault of a value of this key and version, if any.
    pub(crate) fn judge_value(&self, read: CheckedRead, version: u32) -> Option<(ValueFault, FaultExample)> {
        let CheckedRead { id, began_ns, done_ns } = read;
        let (fault, wanted) = match self.tracker.judge(id, version, began_ns) {
            Freshness::Stale { newest } => (ValueFault::Stale, Some(Version(newest))),
            Freshness::NeverWritten => (ValueFault::NeverWritten, None),
            Freshness::Possible if self.judges_expiry && self.tracker.is_expired(id, version, began_ns) => {
                (ValueFault::Expired, None)
            }
            Freshness::Possible => return None,
        };
        Some((
            fault,
            FaultExample { version: Some(Version(version)), wanted, ..FaultExample::of(id, done_ns) },
        ))
    }

    /// The fault of a miss, if any.
    pub(crate) fn judge_miss(&self, read: CheckedRead) -> Option<(ValueFault, FaultExample)> {
        let CheckedRead { id, began_ns, done_ns } = read;
        let is_wrong = self.judges_presence && self.tracker.is_expected_present(id, began_ns, done_ns);
        is_wrong.then_some((ValueFault::Missing, FaultExample::of(id, done_ns)))
    }
}
