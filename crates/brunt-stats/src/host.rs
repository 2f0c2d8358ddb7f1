//! What the host did to a run: time that others took, clocks, packets that got lost.
//!
//! Measured elsewhere, judged in [`crate::status`]. A number that the host does not tell is `None`, which is not 0.
//! Everything covers the measured window but for what says otherwise.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Clocksources that are read without a system call and tick in nanoseconds, on x86, Arm, RISC-V, Power and in guests of
/// KVM and Hyper-V. Of all others (`hpet`, `acpi_pm`, `jiffies`) a reading costs a microsecond or is as coarse as a tick.
const FAST_CLOCKSOURCES: [&str; 6] =
    ["tsc", "arch_sys_counter", "kvm-clock", "hyperv_clocksource_tsc_page", "riscv_clocksource", "timebase"];

/// Is reading this clocksource cheap and fine enough to time single requests?
pub fn is_fast_clocksource(name: &str) -> bool {
    FAST_CLOCKSOURCES.contains(&name)
}

/// What the host's clocks did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClockEvidence {
    /// What clock reads come from, at the end of the window.
    pub source: Option<String>,
    /// By how much CLOCK_MONOTONIC, which everything is measured with, ran faster than CLOCK_MONOTONIC_RAW, which NTP does not
    /// adjust; in millionths.
    pub drift_ppm: Option<f64>,
    /// The largest step of CLOCK_REALTIME against CLOCK_MONOTONIC, in nanoseconds; 0 where there was none.
    pub realtime_step_ns: u64,
    /// How often CLOCK_MONOTONIC was read lower than before.
    pub backwards: u64,
}

impl ClockEvidence {
    /// Adds another host's: the worse of each value.
    fn merge(&mut self, other: &Self) {
        let is_slow =
            |source: &Option<String>| source.as_deref().is_some_and(|name| !is_fast_clocksource(name));
        if self.source.is_none() || is_slow(&other.source) {
            self.source.clone_from(&other.source);
        }
        let size = |drift: Option<f64>| drift.map(f64::abs);
        if size(other.drift_ppm) > size(self.drift_ppm) {
            self.drift_ppm = other.drift_ppm;
        }
        self.realtime_step_ns = self.realtime_step_ns.max(other.realtime_step_ns);
        self.backwards += other.backwards;
    }
}

/// What the host did to a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostEvidence {
    /// How long the host was observed.
    pub wall_ns: u64,
    /// The processors that the workers may run on.
    pub cpus: u64,
    /// Time of these processors that the hypervisor gave to others, all of them together; the kernel counts it in ticks of
    /// 10 ms.
    pub stolen_ns: Option<u64>,
    /// Time for which these processors worked for any process, this one included, all of them together; in ticks, too.
    pub busy_ns: Option<u64>,
    /// How long our control group, or one around it, had used up its quota; on several processors at once it counts once
    /// for each.
    pub throttled_ns: Option<u64>,
    /// How late a timed sleep ends on this host, in nanoseconds: what a wake-up costs. Measured before the schedule began.
    pub wake_up_ns: u64,
    /// The clocks.
    pub clock: ClockEvidence,
    /// Segments that our connections sent again, from the start of the schedule to the end of the drain.
    pub retransmits: u64,
    /// Attempts to connect that servers on this host turned away because they did not accept fast enough, all servers of
    /// the host together, in the same time; `None` where no server of the plan is on this host.
    pub listen_drops: Option<u64>,
}

impl HostEvidence {
    /// Adds another host of the same run. What is a share of one host's processors is that of the host where it is the worst, for what
    /// one of them did to its requests is not made better by the others; what is counted is added.
    pub fn merge(&mut self, other: &Self) {
        let throttled = |host: &Self| host.throttled_ns.map(|ns| ns as f64 / host.wall_ns.max(1) as f64);
        self.throttled_ns =
            if throttled(other) > throttled(self) { other.throttled_ns } else { self.throttled_ns };
        if self.wall_ns == 0 || other.stolen_share() > self.stolen_share() {
            (self.wall_ns, self.cpus) = (other.wall_ns, other.cpus);
            (self.stolen_ns, self.busy_ns) = (other.stolen_ns, other.busy_ns);
        }
        self.wake_up_ns = self.wake_up_ns.max(other.wake_up_ns);
        self.clock.merge(&other.clock);
        self.retransmits += other.retransmits;
        self.listen_drops = match (self.listen_drops, other.listen_drops) {
            (Some(one), Some(other)) => Some(one + other),
            (one, other) => one.or(other),
        };
    }

    /// The share of our processors' time that was stolen.
    pub fn stolen_share(&self) -> Option<f64> {
        let whole_ns = self.wall_ns as f64 * self.cpus as f64;
        self.stolen_ns.filter(|_| whole_ns > 0.0).map(|ns| ns as f64 / whole_ns)
    }
}
