//! What this host allows, how it is set up and what it counts, and what a plan needs of it: said before a run, not found out by it.
//!
//! Facts come out of `/proc`, `/sys` and two system calls; one that the host does not tell is `None`. Nothing is changed but by
//! [`raise_open_files`]. Needs are upper bounds where the plan fixes them and expectations where it does not; only the former refuse a run.
//! Invariants: parsers are pure; a plan that is refused could not have run as it is written.

use brunt_engine::Address;
use brunt_engine::host::{self, CLOCKSOURCE, first_line, text, value};
use brunt_plan::cpus::CpuList;
use brunt_plan::plan::{Class, Load, OpenRate, Placement, Plan, Transport};
use brunt_plan::resolve::PlanError;
use brunt_plan::units::DurationNs;
use brunt_report::metrics::HostCounters;
use brunt_stats::connection::MORE_PORTS;
use rustix::param::clock_ticks_per_second;
use rustix::process::{Resource, Rlimit, setrlimit};
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
    /// `kernel.io_uring_disabled`: 0: allowed, 1: for the privileged and the group of `kernel.io_uring_group`, 2: disabled; before 6.6 there is none.
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
            online_cpus: text("/sys/devices/system/cpu/online")
                .trim()
                .parse()
                .ok()
                .map(|CpuList(cpus)| cpus.len()),
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

/// Memory of the host, by its name in proc_meminfo(5).
pub(crate) fn memory_bytes(name: &str) -> Option<u64> {
    let kib: u64 = value(&text("/proc/meminfo"), name)?.trim_end_matches(" kB").parse().ok()?;
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

fn local_ports(range: &str, reserved: &str) -> LocalPorts {
    let mut words = range.split_whitespace().map(str::parse::<u16>);
    let (first, last) = match (words.next(), words.next()) {
        (Some(Ok(first)), Some(Ok(last))) => (first, last),
        // The kernel's default.
        _ => (32_768, 60_999),
    };
    let within = |item: &str| {
        let (least, most) = item.split_once('-').unwrap_or((item, item));
        let (least, most) = (least.parse::<u16>().ok()?.max(first), most.parse::<u16>().ok()?.min(last));
        Some((u64::from(most) + 1).saturating_sub(u64::from(least)))
    };
    LocalPorts { first, last, reserved: reserved.trim().split(',').filter_map(within).sum() }
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

/// Files that a process has open beside connections: its streams, results, and pipes to a child.
const FILES_OF_PROCESS: u64 = 32;
/// Files of a worker beside its connections: what it waits on, its statistics, and a connection that ends while its successor begins.
const FILES_OF_WORKER: u64 = 4;
/// How long a port rests after a connection from it was closed by us, in seconds: fixed in the kernel (TIME_WAIT).
const TIME_WAIT_S: f64 = 60.0;
/// How long a port rests where ports in TIME_WAIT are used again, in seconds: until the clock of TCP timestamps has moved on.
const TIME_WAIT_REUSED_S: f64 = 1.0;

/// Raises the bound on open files as far as this process may. A refusal leaves it as it is: whether it suffices is
/// judged by the hard limit in any case.
pub(crate) fn raise_open_files() {
    let (current, maximum) = open_file_limits();
    if current != maximum {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}

/// Connections of a class that come and go, per second: as the plan demands, and as is to be expected when the server keeps up. As fast as the
/// server answers is neither.
fn churn(class: &Class) -> [f64; 2] {
    let lifetime = &class.lifetime;
    if !lifetime.ends() {
        return [0.0; 2];
    }
    let by_age = lifetime.reconnect_every.map(|every| f64::from(class.connections) / every.as_secs_f64());
    let by_calls = lifetime.calls.map(|calls| match &class.load {
        Load::Open { rate: OpenRate::Constant(rate), .. } => rate.as_f64() / calls as f64,
        Load::Open { rate: OpenRate::PerConnection(rate), .. } => {
            rate.as_f64() * f64::from(class.connections) / calls as f64
        }
        Load::Open { rate: OpenRate::Profile(_) | OpenRate::Recorded, .. } | Load::Closed { .. } => {
            f64::INFINITY
        }
    });
    let natural = by_age.unwrap_or(0.0) + by_calls.unwrap_or(0.0);
    match lifetime.connect_rate {
        Some(rate) => [rate.as_f64().min(natural); 2],
        None if natural.is_finite() => [0.0, natural],
        None => [0.0; 2],
    }
}

/// What a plan needs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Needs {
    /// Connections open at once, in all.
    pub connections: u64,
    /// Files open at once, connections included.
    pub open_files: u64,
    /// Connections open at once to one address and port: to the one with most.
    pub connections_to_one: u64,
    /// Local ports taken at once to one address and port, TIME_WAIT included, as far as the plan fixes that.
    pub ports: u64,
    /// `ports`, with expected numbers where the plan does not fix them.
    pub ports_expected: u64,
    /// How long a port rests after its connection, in seconds.
    pub rest_s: f64,
}

impl Needs {
    /// Of a plan whose servers have these addresses, one for each.
    pub(crate) fn of(plan: &Plan, addresses: &[Address], reuse: TimeWaitReuse) -> Self {
        let open = |class: &Class| u64::from(class.own_connections()) * class.paths.len() as u64;
        let connections = plan.classes.iter().map(open).sum();
        // A server that is named twice has both shares.
        let same = |address: &&Address| addresses.iter().filter(|other| other == address).count();
        let part = addresses.iter().map(|address| same(&address)).max().unwrap_or(1) as f64
            / addresses.len().max(1) as f64;
        // By thread a server has all connections of its workers: of the most that one has.
        let part = match plan.placement {
            Placement::ByThread => {
                plan.classes.iter().map(|class| plan.largest_server_fraction(class)).fold(part, f64::max)
            }
            _ => part,
        };
        let is_reused = match reuse {
            TimeWaitReuse::Never => false,
            TimeWaitReuse::Loopback => addresses.iter().all(Address::is_loopback),
            TimeWaitReuse::Always => true,
        };
        let wait_s = if is_reused { TIME_WAIT_REUSED_S } else { TIME_WAIT_S };
        // No more can rest than were closed since the beginning.
        let schedule_s = plan.stop.time.map(|time| (plan.warmup.longest().0 + time.0) as f64 / 1e9);
        // A port of UDP is free as soon as its socket is closed, and one of TCP that was closed by a reset.
        let is_udp = plan.servers.iter().all(|server| server.transport == Transport::Udp);
        let is_reset = plan.sockets.linger == Some(DurationNs(0));
        let wait_s = if is_udp || is_reset { 0.0 } else { wait_s };
        let rest_s = schedule_s.map_or(wait_s, |schedule_s| schedule_s.min(wait_s));
        // Unix sockets have none; a plan whose servers were not found counts as one that has.
        let has_ports = addresses.is_empty() || addresses.iter().any(|address| address.network().is_some());
        let ports = |demand: usize| {
            if !has_ports {
                return 0;
            }
            let of_class = |class: &Class| {
                let taken = open(class) as f64 + churn(class)[demand] * rest_s;
                class.lifetime.total.map_or(taken, |total| taken.min(total as f64))
            };
            (plan.classes.iter().map(of_class).sum::<f64>() * part).ceil() as u64
        };
        Self {
            connections,
            open_files: connections + files_beside(plan),
            connections_to_one: (connections as f64 * part).ceil() as u64,
            ports: ports(0),
            ports_expected: ports(1),
            rest_s,
        }
    }
}

fn files_beside(plan: &Plan) -> u64 {
    FILES_OF_PROCESS + u64::from(plan.threads) * FILES_OF_WORKER
}

/// Holds the needs of a plan against the host. What may go wrong but need not is returned, as notes.
///
/// # Errors
/// The plan cannot run here; with the option to change, and how far it may go.
pub(crate) fn check_limits(plan: &Plan, needs: &Needs, facts: &HostFacts) -> Result<Vec<String>, PlanError> {
    let refused = check_open_files(plan, needs, facts).and_then(|()| check_ports(plan, needs, facts));
    // Where attempts are counted, one that this host has no room for is a result.
    if !plan.counts_attempts() {
        refused?;
    }
    let had = facts.local_ports.count();
    if needs.ports_expected <= had {
        return Ok(Vec::new());
    }
    Ok(vec![format!(
        "about {} local ports will be taken at once, each for {} s after its connection, and there are {}: expect \
         faults of the kind no_port; {}",
        needs.ports_expected,
        (needs.rest_s * 10.0).round() / 10.0,
        had,
        MORE_PORTS
    )])
}

fn check_open_files(plan: &Plan, needs: &Needs, facts: &HostFacts) -> Result<(), PlanError> {
    let Some(hard) = facts.open_files_hard.filter(|hard| needs.open_files > *hard) else { return Ok(()) };
    let beside = files_beside(plan);
    let most = hard.saturating_sub(beside);
    let limit = format!("{most}: open-file limit {hard}, {beside} of them reserved");
    Err(PlanError::exceeds(&format!("--connections {}", needs.connections), limit))
}

fn check_ports(plan: &Plan, needs: &Needs, facts: &HostFacts) -> Result<(), PlanError> {
    let ports = facts.local_ports;
    let had = ports.count();
    if needs.ports <= had {
        return Ok(());
    }
    let (first, last) = (ports.first, ports.last);
    let range = format!("{had} local ports ({first}-{last}) to each address and port of a server");
    if needs.connections_to_one > had {
        let most = (had as f64 * needs.connections as f64 / needs.connections_to_one as f64) as u64;
        let limit = format!("{most}: {range}; {MORE_PORTS}");
        return Err(PlanError::exceeds(&format!("--connections {}", needs.connections), limit));
    }
    let rates = plan.classes.iter().filter_map(|class| class.lifetime.connect_rate);
    let rates = rates.map(|rate| rate.to_string()).collect::<Vec<_>>().join(" and ");
    // What is left beside the open ones, spread over the time that each rests; over all servers, as the option is.
    let all = needs.connections as f64 / needs.connections_to_one as f64;
    let most = ((had - needs.connections_to_one) as f64 / needs.rest_s * all) as u64;
    let rest_s = (needs.rest_s * 10.0).round() / 10.0;
    let limit = format!("{most}/s: closed ones rest for {rest_s} s each (TIME_WAIT); {range}; {MORE_PORTS}");
    Err(PlanError::exceeds(&format!("--connect-rate {rates}"), limit))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::cases::cases;
    use brunt_plan::resolve::{Host, resolve};
    use brunt_plan::spec::PlanSpec;

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

    /// A host without fault.
    pub(crate) fn facts() -> HostFacts {
        HostFacts {
            open_files_soft: Some(1_024),
            open_files_hard: Some(20_000),
            local_ports: LocalPorts { first: 32_768, last: 60_999, reserved: 0 },
            time_wait_reuse: TimeWaitReuse::Loopback,
            time_wait: Some(0),
            somaxconn: Some(4_096),
            syn_backlog: Some(4_096),
            governors: vec!["performance".to_owned()],
            clocksource: Some("tsc".to_owned()),
            io_uring_disabled: Some(0),
            kernel: Some((6, 18)),
            timer_slack_ns: Some(50_000),
            allowed_cpus: (0..8).collect(),
            online_cpus: Some(8),
            quota_cpus: None,
            stolen: Some(0.0),
        }
    }

    pub(crate) fn plan(toml: &str) -> Plan {
        let host = Host::of((0..8).collect(), 1);
        resolve(&PlanSpec::from_toml(&toml_of(toml)).unwrap(), &host).unwrap()
    }

    /// One thread where the plan says nothing of threads.
    fn toml_of(toml: &str) -> String {
        if toml.contains("threads") { toml.to_owned() } else { format!("threads = 1\n{toml}") }
    }

    pub(crate) const LOOPBACK: &[&str] = &["127.0.0.1:11211"];
    pub(crate) const UNIX: &[&str] = &["unix:/run/cache.sock"];
    pub(crate) const FAR: &[&str] = &["192.0.2.1:11211"];

    pub(crate) fn address(text: &str) -> Address {
        match text.strip_prefix("unix:") {
            Some(path) => Address::Unix(path.into()),
            None => Address::Network(text.parse().unwrap()),
        }
    }

    pub(crate) fn needs(plan: &Plan, addresses: &[&str], reuse: TimeWaitReuse) -> Needs {
        let addresses: Vec<Address> = addresses.iter().map(|address| self::address(address)).collect();
        Needs::of(plan, &addresses, reuse)
    }

    /// A connection for every call, for long enough that those that rest add up.
    const CHURN: &str = "time = '10m'\nconnections = 100\nconnect-rate = 50\ncalls-per-connection = 1";

    #[test]
    fn needs_follow_from_the_plan() {
        let two: &[&str] = &["192.0.2.1:11211", "192.0.2.2:11211"];
        let twice: &[&str] = &["192.0.2.1:11211", "192.0.2.1:11211", "192.0.2.2:11211"];
        // Plan, servers, reuse; open files, ports that the plan fixes, ports to be expected. A rate without an end only spreads the beginning.
        // 50/s rest for a minute; a run of 4 s cannot close more than 200; on loopback they rest for a second. The end of all connections
        // bounds them, and so does the number of calls there are. Not fixed: by their age 10 a second, by calls as fast as the server answers.
        let table = r"
connections = 100 | loopback | loopback | 136, 100, 100
connections = 100 | unix | loopback | 136, 0, 0
connections = 100\nconnect-rate = 50\ncalls-per-connection = 1 | unix | never | 136, 0, 0
connections = 101 | two | loopback | 137, 51, 51
connections = 90 | twice | loopback | 126, 60, 60
connections = 90\nthreads = 3\nserver = ['192.0.2.1', '192.0.2.1', '192.0.2.2', '192.0.2.2']\nplacement = 'by-thread' | two | loopback | 134, 60, 60
connections = 90\nserver = ['192.0.2.1', '192.0.2.2']\nplacement = 'by-thread' | two | loopback | 126, 90, 90
connections = 100\nconnect-rate = 50 | far | loopback | 136, 100, 100
CHURN | far | loopback | 136, 3100, 3100
time = '3s'\nconnections = 100\nconnect-rate = 50\ncalls-per-connection = 1 | far | loopback | 136, 300, 300
CHURN | loopback | loopback | 136, 150, 150
CHURN | loopback | never | 136, 3100, 3100
CHURN | far | always | 136, 150, 150
CHURN | two | never | 136, 1550, 1550
CHURN\nlinger = '0s' | far | never | 136, 100, 100
connections = 100\nconnect-rate = 50\ncalls-per-connection = 1\nconnections-total = 700 | far | never | 136, 700, 700
time = '10m'\nrate = 100\nconnections = 100\nconnect-rate = 50\ncalls-per-connection = 10 | far | never | 136, 700, 700
time = '10m'\nconnections = 100\nreconnect-every = '10s' | far | never | 136, 100, 700
time = '10m'\nconnections = 100\ncalls-per-connection = 1 | far | never | 136, 100, 100";
        for [toml, servers, reuse, expected] in cases(table) {
            let servers = match servers.as_str() {
                "loopback" => LOOPBACK,
                "unix" => UNIX,
                "far" => FAR,
                "two" => two,
                _ => twice,
            };
            let reuse = match reuse.as_str() {
                "never" => TimeWaitReuse::Never,
                "always" => TimeWaitReuse::Always,
                _ => TimeWaitReuse::Loopback,
            };
            let Needs { open_files, ports, ports_expected, .. } =
                needs(&plan(&toml.replace("CHURN", CHURN)), servers, reuse);
            assert_eq!(format!("{open_files}, {ports}, {ports_expected}"), expected, "{toml}");
        }
    }

    /// Both sides of every bound: 20000 files of which 36 are not for connections, 28232 ports.
    #[test]
    fn plans_beyond_host_limits_are_rejected_with_numbers() {
        // Limit of open files, plan, and what is said where it is refused.
        let table = "
20000 | connections = 19964 |
20000 | connections = 19965 | --connections 19965 exceeds 19964: open-file limit 20000, 36 of them reserved
none | connections = 28232 |
none | connections = 28233 | --connections 28233 exceeds 28232: 28232 local ports (32768-60999) to each address and port of a server; sudo sysctl
none | CHURN = 466 |
none | CHURN = 467 | --connect-rate 467/s exceeds 466/s: closed ones rest for 60 s each (TIME_WAIT); 28232 local ports
37 | connections = 1 |
36 | connections = 1 | --connections 1 exceeds 0: ";
        let churn = "time = '10m'\nconnections = 232\ncalls-per-connection = 1\nconnect-rate";
        for [hard, toml, expected] in cases(table) {
            let (plan, facts) = (
                plan(&toml.replace("CHURN", churn)),
                HostFacts { open_files_hard: hard.parse().ok(), ..facts() },
            );
            let needs = needs(&plan, FAR, facts.time_wait_reuse);
            match check_limits(&plan, &needs, &facts) {
                Ok(notes) => assert!(notes.is_empty() && expected.is_empty(), "{toml}: {notes:?}"),
                Err(error) => {
                    let said = error.to_string();
                    assert!(!expected.is_empty() && said.starts_with(&expected), "{toml}: {said}");
                }
            }
        }
    }

    #[test]
    fn plans_close_to_host_limits_are_noted() {
        // 28000 / 60 s ≈ 466 a second fit beside 232: 232 connections may end every 498 ms.
        for (toml, is_noted) in [
            ("time = '10m'\nconnections = 232\nreconnect-every = '498ms'", false),
            ("time = '10m'\nconnections = 232\nreconnect-every = '497ms'", true),
            ("time = '10m'\nconnections = 232\nrate = 46600\ncalls-per-connection = 100", false),
            ("time = '10m'\nconnections = 232\nrate = 46700\ncalls-per-connection = 100", true),
            ("time = '10m'\nconnections = 232\ncalls-per-connection = 1", false),
        ] {
            let plan = plan(toml);
            let needs = needs(&plan, FAR, TimeWaitReuse::Loopback);
            let notes = check_limits(&plan, &needs, &facts()).unwrap();
            assert_eq!(notes.len(), usize::from(is_noted), "{toml}: {notes:?}");
            assert!(notes.iter().all(|note| note.contains("28232") && note.contains("sysctl")), "{notes:?}");
        }
    }
}
