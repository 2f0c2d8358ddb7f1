//! Interference of the host with a run, from `/proc`, `/sys` and three clocks: read by the control thread at both
//! ends of the measured window, the clocks in between as well.
//!
//! Workers read their own counters, and checks judge. The parsers are pure. Invariant: what the host does not
//! report is `None`.

use crate::transport::Endpoint;
use brunt_stats::interval::CpuTime;
use brunt_stats::usage::{ClockEvidence, HostEvidence};
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::fs;
use std::net::{IpAddr, UdpSocket};
use std::path::{Path, PathBuf};

/// Unit of `/proc/stat` (USER_HZ), on every architecture supported.
const TICK_NS: u64 = 10_000_000;
/// NTP slews CLOCK_REALTIME and CLOCK_MONOTONIC alike, so their difference changes by steps only. Smaller steps are
/// not reported: nothing is measured with CLOCK_REALTIME.
const STEP_MIN_NS: i64 = 1_000_000;
/// Readings of the two clocks, of which the fastest counts: a thread that is preempted in between reads clocks
/// that seem to differ.
const CLOCK_READINGS: u32 = 5;
/// Timed sleeps of this length measure the cost of a wake-up; the longest tenth is dropped. Busy workers would
/// delay the sleeps, so they are measured while the workers wait for the start.
const WAKE_UPS: usize = 40;
const SLEEP_NS: i64 = 100_000;

/// Two clocks at about the same instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Clocks {
    /// CLOCK_MONOTONIC, half-way between two readings.
    monotonic_ns: i64,
    realtime_ns: i64,
    /// Time between the two readings.
    uncertainty_ns: i64,
}

fn clock_ns(id: ClockId) -> i64 {
    let time = clock_gettime(id);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Watches the clocks over a window.
#[derive(Debug, Default)]
struct ClockWatch {
    last: Option<Clocks>,
    step_ns: i64,
    backwards: u64,
}

impl ClockWatch {
    fn sample(&mut self) {
        let mut best: Option<Clocks> = None;
        for _ in 0..CLOCK_READINGS {
            let before_ns = clock_ns(ClockId::Monotonic);
            let realtime_ns = clock_ns(ClockId::Realtime);
            let after_ns = clock_ns(ClockId::Monotonic);
            self.backwards += u64::from(after_ns < before_ns);
            let uncertainty_ns = after_ns - before_ns;
            let clocks = Clocks { monotonic_ns: before_ns + uncertainty_ns / 2, realtime_ns, uncertainty_ns };
            if best.is_none_or(|best| uncertainty_ns < best.uncertainty_ns) {
                best = Some(clocks);
            }
        }
        if let Some(clocks) = best {
            self.take(clocks);
        }
    }

    fn take(&mut self, clocks: Clocks) {
        if let Some(last) = self.last {
            self.backwards += u64::from(clocks.monotonic_ns + clocks.uncertainty_ns < last.monotonic_ns);
            let change_ns =
                (clocks.realtime_ns - clocks.monotonic_ns) - (last.realtime_ns - last.monotonic_ns);
            let step_ns = change_ns.abs() - clocks.uncertainty_ns - last.uncertainty_ns;
            if step_ns >= STEP_MIN_NS {
                self.step_ns = self.step_ns.max(change_ns.abs());
            }
        }
        self.last = Some(clocks);
    }

    fn evidence(&self) -> ClockEvidence {
        ClockEvidence {
            source: first_line(CLOCKSOURCE),
            realtime_step_ns: self.step_ns as u64,
            backwards: self.backwards,
        }
    }
}

/// Counters of the host at one instant.
#[derive(Clone, Debug)]
struct Reading {
    now_ns: u64,
    /// Sum over the CPUs of the workers.
    ticks: Option<Ticks>,
    /// By control group.
    throttled_ns: Vec<Option<u64>>,
}

/// Watches the host over the measured window.
#[derive(Debug)]
pub(crate) struct HostWatch {
    cpus: Vec<u32>,
    groups: Vec<PathBuf>,
    /// A server of the plan is on this host, and reached by TCP.
    has_local_server: bool,
    listen_drops_before: Option<u64>,
    wake_up_ns: u64,
    clocks: ClockWatch,
    begin: Option<Reading>,
    end: Option<Reading>,
    /// When [`HostWatch::cpu_time`] was last called.
    last_ticks: Option<Ticks>,
}

impl HostWatch {
    /// For workers on these CPUs. Called just before the schedule begins.
    pub(crate) fn new(cpus: Vec<u32>, endpoints: &[Endpoint]) -> Self {
        // The kernel's counters of listening sockets cover TCP only.
        let is_local = |endpoint: &Endpoint| {
            endpoint.addresses[0].network().is_some_and(|address| is_of_this_host(address.ip()))
        };
        let has_local_server = endpoints.iter().any(is_local);
        Self {
            cpus,
            groups: cpu_groups(&text("/proc/self/cgroup")),
            has_local_server,
            listen_drops_before: listen_drops(&text("/proc/net/netstat")),
            wake_up_ns: wake_up_ns(),
            clocks: ClockWatch::default(),
            begin: None,
            end: None,
            last_ticks: None,
        }
    }

    /// What a wake-up costs, in nanoseconds.
    pub(crate) fn wake_up_ns(&self) -> u64 {
        self.wake_up_ns
    }

    /// CPU time since the last call; `None` the first time.
    pub(crate) fn cpu_time(&mut self) -> Option<CpuTime> {
        let ticks = self.ticks()?;
        self.last_ticks.replace(ticks).map(|before| ticks.since(&before))
    }

    /// Called periodically; the measured window is from `measure_ns` to `end_ns`.
    pub(crate) fn sample(&mut self, now_ns: u64, measure_ns: u64, end_ns: u64) {
        if now_ns < measure_ns || self.end.is_some() {
            return;
        }
        self.clocks.sample();
        if self.begin.is_none() {
            self.begin = Some(self.read(now_ns));
        } else if now_ns >= end_ns {
            self.end = Some(self.read(now_ns));
        }
    }

    /// Called after the drain.
    pub(crate) fn finish(mut self, now_ns: u64) -> HostEvidence {
        self.sample(now_ns, 0, now_ns);
        let mut evidence = HostEvidence {
            cpus: self.cpus.len() as u64,
            wake_up_ns: self.wake_up_ns,
            clock: self.clocks.evidence(),
            listen_drops: self
                .listen_drops_before
                .filter(|_| self.has_local_server)
                .and_then(|before| Some(listen_drops(&text("/proc/net/netstat"))?.saturating_sub(before))),
            ..HostEvidence::default()
        };
        if let (Some(begin), Some(end)) = (&self.begin, &self.end) {
            evidence.wall_ns = end.now_ns - begin.now_ns;
            let passed = |of: fn(&Ticks) -> u64| {
                let ticks = end.ticks.as_ref().zip(begin.ticks.as_ref());
                ticks.map(|(end, begin)| of(end).saturating_sub(of(begin)) * TICK_NS)
            };
            evidence.stolen_ns = passed(|ticks| ticks.stolen);
            evidence.busy_ns = passed(|ticks| ticks.busy);
            // Nested groups count the same throttling; the largest counts.
            let of_group =
                |(end, begin): (&Option<u64>, &Option<u64>)| Some((*end)?.saturating_sub((*begin)?));
            evidence.throttled_ns =
                end.throttled_ns.iter().zip(&begin.throttled_ns).filter_map(of_group).max();
        }
        evidence
    }

    /// The sum over the CPUs of the workers.
    fn ticks(&self) -> Option<Ticks> {
        let stat = text("/proc/stat");
        let of_all = self.cpus.iter().map(|cpu| ticks(&stat, &format!("cpu{cpu}")));
        of_all.reduce(|sum, ticks| Some(sum?.and(ticks?))).flatten()
    }

    fn read(&self, now_ns: u64) -> Reading {
        Reading {
            now_ns,
            ticks: self.ticks(),
            throttled_ns: self
                .groups
                .iter()
                .map(|group| throttled_ns(&text(group.join("cpu.stat"))))
                .collect(),
        }
    }
}

/// Lateness of timed sleeps, without the longest tenth. Takes some milliseconds.
pub(crate) fn wake_up_ns() -> u64 {
    // As for workers: by default the kernel may defer a wake-up to merge it with others. If this fails, sleeps end
    // later.
    let slack = rustix::thread::current_timer_slack();
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZero::new(1));
    let mut late_ns = [0; WAKE_UPS];
    for late_ns in &mut late_ns {
        let before = clock_ns(ClockId::Monotonic);
        // Where a sandbox refuses it, sleeps cost nothing that could be measured.
        let _ = rustix::thread::nanosleep(&Timespec { tv_sec: 0, tv_nsec: SLEEP_NS });
        *late_ns = clock_ns(ClockId::Monotonic) - before - SLEEP_NS;
    }
    if let Ok(slack) = slack {
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZero::new(slack));
    }
    late_ns.sort_unstable();
    late_ns[WAKE_UPS - 1 - WAKE_UPS / 10].max(0) as u64
}

/// Where the kernel says what clock reads come from.
pub const CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// A file of the kernel's; empty where the host does not have it.
pub fn text(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The first line of a file of the kernel's.
pub fn first_line(path: impl AsRef<Path>) -> Option<String> {
    Some(text(path).lines().next()?.trim().to_owned())
}

/// What stands behind a name at the beginning of a line.
pub fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(rest.trim_start_matches([':', ' ', '\t']).trim_end())
}

/// Only a local address can be bound.
fn is_of_this_host(address: IpAddr) -> bool {
    address.is_loopback() || UdpSocket::bind((address, 0)).is_ok()
}

/// Control groups of either version that may limit this process's CPU time: its own and their parents, as far as
/// they are visible. `membership` is `/proc/self/cgroup`.
pub fn cpu_groups(membership: &str) -> Vec<PathBuf> {
    let exists = |group: &PathBuf| group.join("cpu.stat").exists();
    group_candidates(membership).into_iter().filter(exists).collect()
}

/// Candidate directories, at the usual mount points.
fn group_candidates(membership: &str) -> Vec<PathBuf> {
    let mut groups = Vec::new();
    for line in membership.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        // The version 2 hierarchy has no name; beside version 1 it is mounted at `unified`.
        let roots = match controllers {
            "" => vec!["/sys/fs/cgroup".to_owned(), "/sys/fs/cgroup/unified".to_owned()],
            of_cpu if of_cpu.split(',').any(|controller| controller == "cpu") => {
                vec!["/sys/fs/cgroup/cpu".to_owned(), format!("/sys/fs/cgroup/{of_cpu}")]
            }
            _ => continue,
        };
        for root in roots {
            let root = Path::new(&root);
            // In a container the path may be that of the host, with only the root visible.
            let own = root.join(path.trim_start_matches('/'));
            groups.extend(own.ancestors().take_while(|group| group.starts_with(root)).map(Path::to_owned));
        }
    }
    groups.sort();
    groups.dedup();
    groups
}

/// Throttled time from `cpu.stat` of version 2 (microseconds) or 1 (nanoseconds).
fn throttled_ns(cpu_stat: &str) -> Option<u64> {
    let number = |name: &str| value(cpu_stat, name)?.parse::<u64>().ok();
    number("throttled_usec ").map(|us| us * 1_000).or_else(|| number("throttled_time "))
}

/// CPU time in ticks, of one CPU or of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticks {
    /// Stolen by the hypervisor.
    pub stolen: u64,
    /// Busy: neither idle, nor waiting for I/O, nor stolen.
    pub busy: u64,
    /// Total.
    pub total: u64,
}

impl Ticks {
    /// The time since a reading before. Counters of idle time may go back.
    fn since(&self, before: &Self) -> CpuTime {
        let total_ns = self.total.saturating_sub(before.total) * TICK_NS;
        let stolen_ns = self.stolen.saturating_sub(before.stolen) * TICK_NS;
        CpuTime { total_ns, stolen_ns: stolen_ns.min(total_ns) }
    }

    /// The sum of two CPUs.
    const fn and(self, other: Self) -> Self {
        Self {
            stolen: self.stolen + other.stolen,
            busy: self.busy + other.busy,
            total: self.total + other.total,
        }
    }
}

/// The line `name` of `/proc/stat`: `cpu` for all CPUs, `cpu3` for one. Fields 4 and 5 are idle, field 8 is stolen;
/// 9 and 10 (guests) are included in 1 and 2.
pub fn ticks(stat: &str, name: &str) -> Option<Ticks> {
    let line = stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    let ticks: Vec<u64> = line.split_whitespace().take(8).map_while(|word| word.parse().ok()).collect();
    let total: u64 = ticks.iter().sum();
    (ticks.len() == 8 && total > 0).then(|| Ticks {
        stolen: ticks[7],
        busy: total - ticks[3] - ticks[4] - ticks[7],
        total,
    })
}

/// Connection attempts dropped by listening sockets of this host: `ListenDrops` of `/proc/net/netstat`, which
/// includes queue overflows, or `ListenOverflows`. A line of names is followed by one of numbers.
fn listen_drops(netstat: &str) -> Option<u64> {
    let mut lines = netstat.lines().filter_map(|line| line.strip_prefix("TcpExt: "));
    let (names, numbers) = (lines.next()?, lines.next()?);
    let of = |wanted: &str| {
        let place = names.split(' ').position(|name| name == wanted)?;
        numbers.split(' ').nth(place)?.parse::<u64>().ok()
    };
    of("ListenDrops").max(of("ListenOverflows"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_ticks_are_parsed() {
        let stat = "cpu  50 0 25 20 0 0 0 5 50 0\ncpu0 40 0 20 10 0 0 0 1 0 0\ncpu1 1 2 3\ncpu10 1 0 0 0 0 0 0 9 0 0\n";
        let table = [
            ("cpu", Some((5, 75, 100))),
            ("cpu0", Some((1, 60, 71))),
            ("cpu1", None),
            ("cpu10", Some((9, 1, 10))),
            ("cpu7", None),
        ];
        for (name, expected) in table {
            let found = ticks(stat, name).map(|ticks| (ticks.stolen, ticks.busy, ticks.total));
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn cpu_control_groups_are_found() {
        let table: [(&str, &[&str]); 3] = [
            ("0::/\n", &["/sys/fs/cgroup", "/sys/fs/cgroup/unified"]),
            (
                "0::/a/b\n",
                &[
                    "/sys/fs/cgroup",
                    "/sys/fs/cgroup/a",
                    "/sys/fs/cgroup/a/b",
                    "/sys/fs/cgroup/unified",
                    "/sys/fs/cgroup/unified/a",
                    "/sys/fs/cgroup/unified/a/b",
                ],
            ),
            (
                "4:memory:/m\n2:cpuacct,cpu:/c:d\n1:name=systemd:/\n",
                &[
                    "/sys/fs/cgroup/cpu",
                    "/sys/fs/cgroup/cpu/c:d",
                    "/sys/fs/cgroup/cpuacct,cpu",
                    "/sys/fs/cgroup/cpuacct,cpu/c:d",
                ],
            ),
        ];
        for (membership, expected) in table {
            let expected: Vec<PathBuf> = expected.iter().map(PathBuf::from).collect();
            assert_eq!(group_candidates(membership), expected, "{membership:?}");
        }
    }

    #[test]
    fn throttled_time_is_parsed() {
        let table = [
            ("usage_usec 5\nnr_throttled 2\nthrottled_usec 1500\nnr_bursts 0\n", Some(1_500_000)),
            ("nr_periods 22\nnr_throttled 20\nthrottled_time 1207915318\n", Some(1_207_915_318)),
            // The root has none.
            ("usage_usec 5\nuser_usec 5\n", None),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(throttled_ns(text), expected, "{text:?}");
        }
    }

    #[test]
    fn listen_drops_are_parsed() {
        let head = "TcpExt: SyncookiesSent ListenOverflows ListenDrops TCPHPHits\n";
        let table = [
            (format!("{head}TcpExt: 0 7 9 12345\nIpExt: InNoRoutes\nIpExt: 5\n"), Some(9)),
            (format!("IpExt: ListenDrops\nIpExt: 5\n{head}TcpExt: 0 7 0 1\n"), Some(7)),
            ("TcpExt: SyncookiesSent\nTcpExt: 4\n".to_owned(), None),
            (head.to_owned(), None),
        ];
        for (text, expected) in table {
            assert_eq!(listen_drops(&text), expected, "{text:?}");
        }
    }

    #[test]
    fn local_addresses_are_recognised() {
        let table = [("127.0.0.1", true), ("127.1.2.3", true), ("::1", true), ("192.0.2.1", false)];
        for (address, expected) in table {
            assert_eq!(is_of_this_host(address.parse().unwrap()), expected, "{address}");
        }
    }

    /// Readings (monotonic, realtime, blur) → step, times backwards.
    fn check_clocks(readings: &[[i64; 3]], expected: (u64, u64)) {
        let mut watch = ClockWatch::default();
        for [monotonic_ns, realtime_ns, uncertainty_ns] in readings {
            let clocks = Clocks {
                monotonic_ns: *monotonic_ns,
                realtime_ns: *realtime_ns,
                uncertainty_ns: *uncertainty_ns,
            };
            watch.take(clocks);
        }
        let evidence = watch.evidence();
        assert_eq!((evidence.realtime_step_ns, evidence.backwards), expected, "{readings:?}");
    }

    #[test]
    fn clock_steps_are_computed() {
        const S: i64 = 1_000_000_000;
        let still = [S, 1_000 * S, 60];
        check_clocks(&[still, [2 * S, 1_001 * S, 80]], (0, 0));
        // Steered by 300 ppm, and so is the time of day.
        check_clocks(&[still, [2 * S + 300_000, 1_001 * S + 300_000, 80]], (0, 0));
        // Set back by 2 s, and forward by less than anybody cares about.
        check_clocks(&[still, [2 * S, 999 * S, 80]], (2_000_000_000, 0));
        check_clocks(&[still, [2 * S, 1_001 * S + STEP_MIN_NS, 80]], (0, 0));
        check_clocks(&[still, [2 * S, 1_001 * S + STEP_MIN_NS + 140, 80]], (1_000_140, 0));
        // Read while preempted.
        check_clocks(&[still, [2 * S, 1_003 * S, 3 * S]], (0, 0));
        check_clocks(&[still, [S - 61, 1_000 * S, 60]], (0, 1));
        check_clocks(&[still], (0, 0));
    }

    /// On whatever host this runs: what was found is of this window.
    #[test]
    fn host_evidence_covers_a_window() {
        let mut watch = HostWatch::new(crate::allowed_cpus(), &[]);
        for (now_ns, end_ns) in [(1_000, 9_000), (2_500, 9_000), (9_000, 9_000), (12_000, 9_000)] {
            watch.sample(now_ns, 2_000, end_ns);
        }
        let evidence = watch.finish(99_000);
        assert_eq!((evidence.wall_ns, evidence.cpus), (6_500, crate::allowed_cpus().len() as u64));
        assert_eq!((evidence.listen_drops, evidence.clock.backwards, evidence.retransmits), (None, 0, 0));
    }
}
