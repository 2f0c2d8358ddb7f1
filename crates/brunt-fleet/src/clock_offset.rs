//! How far an agent's clock is ahead of ours, from questions and answers.
//!
//! Pure. An answer was written between our question and its arrival, so that the clock's lead lies within half the round trip of
//! what the middle of it says; the shortest round trip says most (methodology of every network clock since Cristian's). Invariant: the
//! true lead is within the bound, as long as both clocks run at one rate.

/// A clock's lead over ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockOffset {
    /// Its reading less ours at one instant, in nanoseconds.
    pub lead_ns: i64,
    /// By how much that may be wrong at most.
    pub error_ns: u64,
}

impl ClockOffset {
    /// Before the first answer.
    pub const UNKNOWN: Self = Self { lead_ns: 0, error_ns: u64::MAX };

    /// Has its clock been read?
    pub fn is_known(&self) -> bool {
        *self != Self::UNKNOWN
    }

    /// From one round trip: our clock before and after, theirs in between.
    pub fn of(asked_ns: u64, theirs_ns: u64, answered_ns: u64) -> Self {
        let error_ns = answered_ns.saturating_sub(asked_ns).div_ceil(2);
        let lead_ns = i128::from(theirs_ns) - i128::from(asked_ns) - i128::from(error_ns);
        // Within what can be negated, whatever they say.
        let bound = i128::from(i64::MAX);
        Self { lead_ns: lead_ns.clamp(-bound, bound) as i64, error_ns }
    }

    /// The better of two.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        if other.error_ns < self.error_ns { other } else { self }
    }

    /// What their clock shows at one of our instants.
    pub fn theirs(&self, ours_ns: u64) -> u64 {
        ours_ns.saturating_add_signed(self.lead_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn leads_can_be_negated_whatever_a_clock_shows() {
        for theirs_ns in [0, 1, 1 << 63, (1 << 63) + 1, (1 << 63) + 2, u64::MAX] {
            let ClockOffset { lead_ns, .. } = ClockOffset::of(1, theirs_ns, 3);
            assert!(lead_ns.checked_neg().is_some(), "{theirs_ns}");
            assert_eq!(lead_ns < 0, theirs_ns < 2, "{theirs_ns}");
        }
    }

    proptest! {
        /// Whatever the ways there and back take, the lead is within the bound.
        #[test]
        fn true_offset_is_within_the_bound(
            lead_ns in -1_000_000_000_000_i64..1_000_000_000_000, trips in proptest::collection::vec((0..1_000_000_u64, 0..1_000_000_u64), 1..20),
        ) {
            let mut asked_ns = 2_000_000_000_000_u64;
            let mut best: Option<ClockOffset> = None;
            for (there_ns, back_ns) in &trips {
                let theirs_ns = (asked_ns + there_ns).saturating_add_signed(lead_ns);
                let offset = ClockOffset::of(asked_ns, theirs_ns, asked_ns + there_ns + back_ns);
                best = Some(best.map_or(offset, |best| best.or(offset)));
                asked_ns += 5_000_000;
            }
            let best = best.unwrap();
            prop_assert!(best.lead_ns.abs_diff(lead_ns) <= best.error_ns, "{best:?} {lead_ns}");
            let shortest = trips.iter().map(|(there_ns, back_ns)| there_ns + back_ns).min().unwrap();
            prop_assert_eq!(best.error_ns, shortest.div_ceil(2));
        }
    }

    #[test]
    fn instants_are_converted_to_the_agents_clock() {
        let offset = ClockOffset::of(1_000, 51_500, 2_000);
        assert_eq!(offset, ClockOffset { lead_ns: 50_000, error_ns: 500 });
        assert_eq!(offset.theirs(7_000), 57_000);
    }
}
