//! What a worker checks of the keys of a class, beyond comparing what it reads with what a preload stored (`--verify`).
//!
//! Not the comparison (that is the workload's verifier) and not what is done with a finding (that is recorded). The worker's
//! sessions of a class share one: it has seen every write of theirs. Invariant: a finding is beyond doubt, whatever other workers
//! and classes of the plan do to the same keys, and whoever stores values that are none of ours; where it would not be, nothing is
//! judged. Another run of brunt's on the same data set at the same time writes under the same names, and is found out as that.

use brunt_plan::op::OpKind;
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::plan::Plan;
use brunt_plan::shard::StreamPart;
use brunt_plan::version::Version;
use brunt_stats::verification::{FaultExample, ValueFault};
use brunt_workload::rng::{Draw, DrawRng};
use brunt_workload::version_tracker::{Freshness, VersionTracker};

/// The audit of one class on one worker.
#[derive(Debug)]
pub(crate) struct Audit {
    ledger: VersionTracker,
    /// Every key was stored before the schedule began.
    is_preloaded: bool,
    /// Which reads are checked: those whose draw is not above this.
    chosen_max: u64,
    draws: DrawRng,
    /// Nothing deletes keys of the plan, and no write of them can fail unseen.
    judges_presence: bool,
    /// Nothing makes values live longer.
    judges_expiry: bool,
}

/// A read that is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckedRead {
    /// The key.
    pub id: u64,
    /// When it was picked: no later than anything of it reached the server.
    pub began_ns: u64,
    pub done_ns: u64,
}

impl Audit {
    /// Those of every class, for a worker; empty where the plan asks for none. Takes its time with many keys: they are all
    /// written down here.
    pub(crate) fn all(plan: &Plan, part: StreamPart) -> Vec<Self> {
        let Some(share) = plan.verify else { return Vec::new() };
        let sends = |kind: OpKind| plan.classes.iter().any(|class| class.mix.contains(kind));
        let classes = plan.classes.len() as u32;
        // What commands of the user's do, nobody knows; and classes may share their keys.
        let live_alike =
            !sends(OpKind::Raw) && plan.classes.windows(2).all(|pair| pair[0].ttl_s == pair[1].ttl_s);
        // A store that fails may take the value before it along, and only who sent it knows that it failed.
        let knows_all_writes = part.of * classes == 1 || !plan.writes();
        let audit = |(index, class): (u32, &brunt_plan::plan::Class)| Self {
            ledger: VersionTracker::new(
                part.index * classes + index + 1,
                // What a window has written, it knows itself.
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

    /// The schedule begins, on a clock that began with the run: what was preloaded was stored in between.
    pub(crate) fn begin(&mut self, start_ns: u64) {
        if self.is_preloaded {
            self.ledger.preloaded(0..start_ns);
        }
    }

    /// Is the next read of a key to be checked?
    #[inline]
    pub(crate) fn selects(&mut self) -> bool {
        self.draws.next_u64() <= self.chosen_max
    }

    /// The version that the next write of a key has.
    #[inline]
    pub(crate) fn next_version(&self, id: u64) -> u32 {
        self.ledger.next(id)
    }

    /// That write was queued.
    #[inline]
    pub(crate) fn write_begins(&mut self, id: u64, at_ns: u64) {
        self.ledger.begin(id, at_ns);
    }

    /// A write has come to an end; one that was never sent has been refused.
    #[inline]
    pub(crate) fn write_ends(&mut self, id: u64, version: u32, class: OutcomeClass, at_ns: u64) {
        self.ledger.end(id, version, class, at_ns);
    }

    /// What is wrong with a value that is one of the key's, of this version.
    pub(crate) fn judge_value(&self, read: CheckedRead, version: u32) -> Option<(ValueFault, FaultExample)> {
        let CheckedRead { id, began_ns, done_ns } = read;
        let (fault, wanted) = match self.ledger.judge(id, version, began_ns) {
            Freshness::Stale { newest } => (ValueFault::Stale, Some(Version(newest))),
            Freshness::NeverWritten => (ValueFault::NeverWritten, None),
            Freshness::Possible if self.judges_expiry && self.ledger.is_expired(id, version, began_ns) => {
                (ValueFault::Expired, None)
            }
            Freshness::Possible => return None,
        };
        Some((
            fault,
            FaultExample { version: Some(Version(version)), wanted, ..FaultExample::of(id, done_ns) },
        ))
    }

    /// What is wrong with a miss.
    pub(crate) fn judge_miss(&self, read: CheckedRead) -> Option<(ValueFault, FaultExample)> {
        let CheckedRead { id, began_ns, done_ns } = read;
        let is_wrong = self.judges_presence && self.ledger.is_expected_present(id, began_ns, done_ns);
        is_wrong.then_some((ValueFault::Missing, FaultExample::of(id, done_ns)))
    }
}
