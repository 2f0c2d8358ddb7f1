//! The worker's clock: CLOCK_MONOTONIC in nanoseconds since the run's epoch.
//!
//! Read through the vDSO (about 25 ns), so the time-stamp counter itself buys little and would need calibration. The
//! epoch is shared by all threads of a run; times of two hosts are never mixed.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// A clock that starts at 1 s when the run is prepared, so that 0 never is a time of the run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    epoch_ns: u64,
}

/// Readings of two clocks at one instant: the wall clock, read between two readings of the worker's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WallReading {
    /// Nanoseconds since the run's epoch.
    pub before_ns: u64,
    /// CLOCK_REALTIME, nanoseconds.
    pub wall_ns: u64,
    /// Nanoseconds since the run's epoch.
    pub after_ns: u64,
}

impl WallReading {
    /// How far the wall clock is ahead of the worker's clock, and the limit of the error of that.
    fn lead_ns(&self) -> (i64, u64) {
        let half_ns = (self.after_ns - self.before_ns).div_ceil(2);
        (self.wall_ns as i64 - (self.before_ns + half_ns) as i64, half_ns)
    }
}

/// Converts instants of the wall clock to the worker's clock. The kernel slews both clocks alike, so their
/// difference changes only when the wall clock is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Conversion {
    lead_ns: i64,
    /// An instant that was converted is wrong by at most this.
    pub error_ns: u64,
}

impl Conversion {
    /// For the instants between two readings; `None` if their differences show that the wall clock was set in
    /// between. A step smaller than the error of both readings is not detected, and adds no more than that error.
    pub(crate) fn between(one: &WallReading, other: &WallReading) -> Option<Self> {
        let ((one_ns, one_error_ns), (other_ns, other_error_ns)) = (one.lead_ns(), other.lead_ns());
        if one_ns.abs_diff(other_ns) > one_error_ns + other_error_ns {
            return None;
        }
        Some(if one_error_ns < other_error_ns {
            Self { lead_ns: one_ns, error_ns: one_error_ns }
        } else {
            Self { lead_ns: other_ns, error_ns: other_error_ns }
        })
    }

    /// The worker's time of an instant of the wall clock; 0 if that lies before its epoch.
    pub(crate) fn worker_ns(&self, wall_ns: u64) -> u64 {
        u64::try_from(wall_ns as i64 - self.lead_ns).unwrap_or(0)
    }
}

fn ns_of(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CLOCK_MONOTONIC, nanoseconds: what the clocks of all runs on this host are set by.
pub fn monotonic_ns() -> u64 {
    ns_of(clock_gettime(ClockId::Monotonic))
}

/// CLOCK_REALTIME, nanoseconds since 1970.
pub fn unix_ns() -> u64 {
    ns_of(clock_gettime(ClockId::Realtime))
}

impl Clock {
    /// A clock that begins now.
    pub(crate) fn start() -> Self {
        Self { epoch_ns: monotonic_ns().saturating_sub(1_000_000_000) }
    }

    /// Nanoseconds since the epoch.
    pub(crate) fn now_ns(&self) -> u64 {
        monotonic_ns() - self.epoch_ns
    }

    /// What CLOCK_MONOTONIC shows at one of our instants.
    pub(crate) fn monotonic_of(&self, at_ns: u64) -> u64 {
        at_ns.saturating_add(self.epoch_ns)
    }

    /// Which of our instants CLOCK_MONOTONIC shows this at; 0 if it lies before the epoch.
    pub(crate) fn of_monotonic(&self, monotonic_ns: u64) -> u64 {
        monotonic_ns.saturating_sub(self.epoch_ns)
    }

    /// What the wall clock showed at the epoch, in microseconds since 1970, if it has not been set since then.
    pub(crate) fn epoch_us(&self) -> u64 {
        (self.wall().lead_ns().0 / 1_000).max(0) as u64
    }

    /// Reads the wall clock between two readings of this one, three times, and keeps the tightest: a worker may
    /// lose its CPU between two readings.
    pub(crate) fn wall(&self) -> WallReading {
        let read = || WallReading { before_ns: self.now_ns(), wall_ns: unix_ns(), after_ns: self.now_ns() };
        let readings = [read(), read(), read()];
        let tightest = readings.into_iter().min_by_key(|reading| reading.after_ns - reading.before_ns);
        tightest.unwrap_or(readings[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(before_ns: u64, lead_ns: u64, width_ns: u64) -> WallReading {
        WallReading { before_ns, wall_ns: before_ns + width_ns / 2 + lead_ns, after_ns: before_ns + width_ns }
    }

    /// Two readings; the conversion that they allow.
    #[test]
    fn the_tighter_of_two_readings_converts_and_a_step_forbids_it() {
        const LEAD: u64 = 1_700_000_000_000_000_000;
        let table = [
            (reading(1_000, LEAD, 60), reading(100_001_000, LEAD, 40), Some((LEAD, 20))),
            (reading(1_000, LEAD, 40), reading(100_001_000, LEAD + 5, 6_000), Some((LEAD, 20))),
            (reading(1_000, LEAD, 60), reading(100_001_000, LEAD + 50, 40), Some((LEAD + 50, 20))),
            (reading(1_000, LEAD, 60), reading(100_001_000, LEAD + 51, 40), None),
            (reading(1_000, LEAD, 60), reading(100_001_000, LEAD - 51, 40), None),
            (reading(1_000, LEAD, 60), reading(100_001_000, LEAD - 3_600_000_000_000, 40), None),
        ];
        for (one, other, expected) in table {
            let conversion = Conversion::between(&one, &other);
            assert_eq!(conversion.map(|found| (found.lead_ns as u64, found.error_ns)), expected);
            assert_eq!(conversion.map(|found| found.worker_ns(LEAD / 2)), expected.map(|_| 0));
            if let (Some(found), Some((lead_ns, _))) = (conversion, expected) {
                assert_eq!(found.worker_ns(lead_ns + 123_456_789), 123_456_789);
            }
        }
    }

    #[test]
    fn unset_clocks_convert_to_within_a_reading() {
        let clock = Clock::start();
        let one = clock.wall();
        let now_ns = clock.now_ns();
        let between = ns_of(clock_gettime(ClockId::Realtime));
        let then_ns = clock.now_ns();
        let conversion = Conversion::between(&one, &clock.wall()).unwrap();
        let converted_ns = conversion.worker_ns(between);
        assert!(converted_ns + conversion.error_ns >= now_ns, "{converted_ns} {now_ns} {conversion:?}");
        assert!(converted_ns <= then_ns + conversion.error_ns, "{converted_ns} {then_ns} {conversion:?}");
    }
}
