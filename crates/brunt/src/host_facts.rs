//! What this host allows, how it is set up and what it counts: out of `/proc`, `/sys` and two system calls.
//!
//! Facts only: what they mean for a plan is for [`crate::limits`] and [`crate::doctor`] to say. A fact that the host does
//! not tell is `None`. Reading is at the top, the parsers below it are pure.

use brunt_engine::host::{self, CLOCKSOURCE, first_line, text, value};
use brunt_plan::cpus::CpuList;
use brunt_report::metrics::HostCounters;
use rustix::param::clock_ticks_per_second;
use std::fs;

/// The ports that a connection may leave from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LocalPorts {
    /// The first of `net.ipv4.ip_local_port_range`.
    pub first: u16,
    /// The last.
    pub last: u16,
    /// How many in between are kept for others (`net.ipv4.ip_local_reserved_ports`).
    pub reserved: u64,
}

impl LocalPorts {
    /// How many there are.
    pub(crate) fn count(self) -> u64 {
        (u64::from(self.last) + 1).saturating_sub(u64::from(self.first) + self.reserved)
    }
}

/// When a port whose connection is in TIME_WAIT may be used again at once: `net.ipv4.tcp_tw_reuse`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeWaitReuse {
    Never,
    /// Only from this host to itself: the default since Linux 4.19.
    Loopback,
    Always,
}

/// Of a host.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HostFacts {
    /// Files that a process may have open, as it starts; `None` is without bound.
    pub open_files_soft: Option<u64>,
    /// How far it may raise that.
    pub open_files_hard: Option<u64>,
    /// Ports to connect from.
    pub local_ports: LocalPorts,
    /// Whether TIME_WAIT keeps them.
    pub time_wait_reuse: TimeWaitReuse,
    /// Connections in TIME_WAIT now.
    pub time_wait: Option<u64>,
    /// `net.core.somaxconn`.
    pub somaxconn: Option<u64>,
    /// `net.ipv4.tcp_max_syn_backlog`.
    pub syn_backlog: Option<u64>,
    /// Frequency governors of the allowed processors, each once.
    pub governors: Vec<String>,
    /// What clock reads come from.
    pub clocksource: Option<String>,
    /// `kernel.io_uring_disabled`: 0 for nobody, 1 for the unprivileged, 2 for all; a kernel before 6.6 has no such word.
    pub io_uring_disabled: Option<u64>,
    /// Major and minor number.
    pub kernel: Option<(u32, u32)>,
    /// How late the kernel may be with a timer of this process.
    pub timer_slack_ns: Option<u64>,
    /// Processors by number that this process may run on.
    pub allowed_cpus: Vec<u32>,
    /// Processors that run.
    pub online_cpus: Option<usize>,
    /// Processor time that the control group allows, in processors.
    pub quota_cpus: Option<f64>,
    /// The share of processor time that the hypervisor gave to others, since the host started, from 0 to 1.
    pub stolen: Option<f64>,
}

impl HostFacts {
    /// Of this host, now.
    pub(crate) fn read() -> Self {
        let (current, maximum) = open_file_limits();
        let allowed_cpus = brunt_engine::allowed_cpus();
        let system = rustix::system::uname();
        Self {
            open_files_soft: current,
            open_files_hard: maximum,
            local_ports: local_ports(
                &text("/proc/sys/net/ipv4/ip_local_port_range"),
                &text("/proc/sys/net/ipv4/ip_local_reserved_ports"),
            ),
            time_wait_reuse: time_wait_reuse(&text("/proc/sys/net/ipv4/tcp_tw_reuse")),
            time_wait: time_wait(&text("/proc/net/sockstat")),
            somaxconn: number("/proc/sys/net/core/somaxconn"),
            syn_backlog: number("/proc/sys/net/ipv4/tcp_max_syn_backlog"),
            governors: governors(&allowed_cpus),
            clocksource: first_line(CLOCKSOURCE),
            io_uring_disabled: number("/proc/sys/kernel/io_uring_disabled"),
            kernel: kernel(&system.release().to_string_lossy()),
            timer_slack_ns: number("/proc/self/timerslack_ns"),
            online_cpus: number_list(&text("/sys/devices/system/cpu/online")).map(|list| list.len()),
            allowed_cpus,
            quota_cpus: quota_of_groups(&text("/proc/self/cgroup")),
            stolen: host::ticks(&text("/proc/stat"), "cpu")
                .map(|ticks| ticks.stolen as f64 / ticks.total as f64),
        }
    }
}

/// The soft and the hard limit of open files; `None` is no limit, or an unknown one. From a file, because rustix panics where a sandbox refuses
/// the call.
pub(crate) fn open_file_limits() -> (Option<u64>, Option<u64>) {
    let limits = text("/proc/self/limits");
    let words = value(&limits, "Max open files").unwrap_or_default().split_whitespace();
    let mut limits = words.map(|word| word.parse().ok());
    (limits.next().flatten(), limits.next().flatten())
}

/// Model of the first processor.
pub(crate) fn processor() -> Option<String> {
    value(&text("/proc/cpuinfo"), "model name").map(str::to_owned)
}

/// Processors that this process may run on, such as `0-3,5`.
pub(crate) fn allowed_cpus() -> String {
    CpuList(brunt_engine::allowed_cpus()).to_string()
}

/// What this host calls itself.
pub(crate) fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Name and value of everything that a report says of the host; a fact that the host does not tell is left out.
pub(crate) fn environment() -> Vec<(String, String)> {
    let system = rustix::system::uname();
    let facts = [
        ("kernel", Some(system.release().to_string_lossy().into_owned())),
        ("machine", Some(system.machine().to_string_lossy().into_owned())),
        ("processor", processor()),
        ("allowed_cpus", Some(allowed_cpus())),
        ("clocksource", first_line(CLOCKSOURCE)),
        ("governor", first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")),
    ];
    facts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// Memory that processes can still have.
pub(crate) fn available_memory_bytes() -> Option<u64> {
    let kib: u64 = value(&text("/proc/meminfo"), "MemAvailable")?.trim_end_matches(" kB").parse().ok()?;
    Some(kib * 1024)
}

/// The signals that this process ignores, a bit for each, as proc(5) has it.
pub(crate) fn ignored_signals() -> u64 {
    ignored(&text("/proc/self/status"))
}

fn ignored(status: &str) -> u64 {
    value(status, "SigIgn").and_then(|mask| u64::from_str_radix(mask, 16).ok()).unwrap_or(0)
}

/// What the kernel counts of this process and of the host; 0, or nothing, where it does not.
pub(crate) fn counters() -> HostCounters {
    let tick_ns = 1_000_000_000 / clock_ticks_per_second().max(1);
    let (user, system) = cpu_ticks(&text("/proc/self/stat")).unwrap_or_default();
    HostCounters {
        cpu_user_ns: user * tick_ns,
        cpu_system_ns: system * tick_ns,
        stolen_ns: host::ticks(&text("/proc/stat"), "cpu").map(|ticks| ticks.stolen * tick_ns),
    }
}

/// User and system time of a process. Its name, the second field, may hold anything.
fn cpu_ticks(stat: &str) -> Option<(u64, u64)> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

fn number(path: &str) -> Option<u64> {
    first_line(path)?.parse().ok()
}

fn governors(cpus: &[u32]) -> Vec<String> {
    let governor =
        |cpu: &u32| first_line(format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"));
    let mut governors: Vec<String> = cpus.iter().filter_map(governor).collect();
    governors.sort();
    governors.dedup();
    governors
}

/// The tightest quota of our control group and those around it.
fn quota_of_groups(membership: &str) -> Option<f64> {
    let quotas = host::cpu_groups(membership).into_iter().filter_map(|group| {
        let read = |name: &str| fs::read_to_string(group.join(name));
        match read("cpu.max") {
            Ok(text) => quota(&text),
            // Version 1 has a file for each; -1 is no bound.
            Err(_) => quota(&format!(
                "{} {}",
                read("cpu.cfs_quota_us").ok()?.trim(),
                read("cpu.cfs_period_us").ok()?.trim()
            )),
        }
    });
    quotas.min_by(f64::total_cmp)
}

/// `QUOTA PERIOD` in microseconds, as processors; `max` is no bound.
fn quota(cpu_max: &str) -> Option<f64> {
    let (quota, period) = cpu_max.trim().split_once(' ')?;
    let (quota, period) = (quota.parse::<f64>().ok()?, period.parse::<f64>().ok()?);
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

/// Numbers such as `0-3,5`, each once.
fn number_list(text: &str) -> Option<Vec<u64>> {
    let range = |item: &str| {
        let (first, last) = item.split_once('-').unwrap_or((item, item));
        let (first, last) = (first.trim().parse::<u64>().ok()?, last.trim().parse::<u64>().ok()?);
        (first <= last && last < 1 << 16).then_some(first..=last)
    };
    let ranges: Option<Vec<_>> = text.trim().split(',').map(range).collect();
    let mut numbers: Vec<u64> = ranges?.into_iter().flatten().collect();
    numbers.sort_unstable();
    numbers.dedup();
    Some(numbers)
}

fn local_ports(range: &str, reserved: &str) -> LocalPorts {
    let mut words = range.split_whitespace().map(str::parse::<u16>);
    let (first, last) = match (words.next(), words.next()) {
        (Some(Ok(first)), Some(Ok(last))) => (first, last),
        // The kernel's default.
        _ => (32_768, 60_999),
    };
    let within = |port: &u64| (u64::from(first)..=u64::from(last)).contains(port);
    let reserved = number_list(reserved).unwrap_or_default().into_iter().filter(within).count() as u64;
    LocalPorts { first, last, reserved }
}

fn time_wait_reuse(text: &str) -> TimeWaitReuse {
    match text.trim() {
        "0" => TimeWaitReuse::Never,
        "1" => TimeWaitReuse::Always,
        _ => TimeWaitReuse::Loopback,
    }
}

/// The number behind `tw` in the line about TCP.
fn time_wait(sockstat: &str) -> Option<u64> {
    let mut words = value(sockstat, "TCP:")?.split_whitespace();
    words.find(|word| *word == "tw")?;
    words.next()?.parse().ok()
}

fn kernel(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_port_range_is_read() {
        let table = [
            ("32768\t60999\n", "\n", 32_768, 28_232),
            ("1024\t65535\n", "8080,9148-9150,500\n", 1_024, 64_512 - 4),
            ("", "", 32_768, 28_232),
            ("5000 5000", "5000", 5_000, 0),
        ];
        for (range, reserved, first, count) in table {
            let ports = local_ports(range, reserved);
            assert_eq!((ports.first, ports.count()), (first, count), "{range:?}");
        }
    }

    #[test]
    fn kernel_files_are_parsed() {
        let sockstat = "sockets: used 30\nTCP: inuse 5 orphan 0 tw 123 alloc 7 mem 1\nUDP: inuse 1 mem 0\n";
        assert_eq!(time_wait(sockstat), Some(123));
        assert_eq!(time_wait("TCP: inuse 5"), None);
        let table = [("150000 100000\n", Some(1.5)), ("max 100000\n", None), ("-1 100000", None), ("", None)];
        for (text, expected) in table {
            assert_eq!(quota(text), expected, "{text:?}");
        }
        assert_eq!(kernel("6.18.44-fc-v657"), Some((6, 18)));
        assert_eq!(kernel("5.4"), Some((5, 4)));
        assert_eq!(kernel("Linux"), None);
        assert_eq!(number_list("0-3,5\n"), Some(vec![0, 1, 2, 3, 5]));
        assert_eq!(number_list(""), None);
        let reuses = ["0\n", "1\n", "2\n", ""].map(time_wait_reuse);
        use TimeWaitReuse::{Always, Loopback, Never};
        assert_eq!(reuses, [Never, Always, Loopback, Loopback]);
    }

    #[test]
    fn cpu_time_of_a_process_is_read() {
        let rest = "R 1 2 3 4 5 6 7 8 9 10 250 31 0 0 20";
        let table = [
            (format!("7 (brunt) {rest}"), Some((250, 31))),
            (format!("7 (a) b 1 (c) {rest}"), Some((250, 31))),
            ("7 (brunt) R 1 2".to_owned(), None),
            (String::new(), None),
        ];
        for (stat, expected) in table {
            assert_eq!(cpu_ticks(&stat), expected, "{stat}");
        }
    }

    #[test]
    fn ignored_signals_are_read() {
        let table = [
            ("SigBlk:\t0000000000000003\nSigIgn:\t0000000000001001\nSigCgt:\t0000000000000002\n", 0x1001),
            ("SigIgn:\tnone\n", 0),
            ("", 0),
        ];
        for (status, expected) in table {
            assert_eq!(ignored(status), expected, "{status}");
        }
        // SIGPIPE, which the standard library ignores.
        assert_eq!(ignored_signals() >> (signal_hook::consts::SIGPIPE - 1) & 1, 1);
    }
}
