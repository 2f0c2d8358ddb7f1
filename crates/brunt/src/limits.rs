//! What a plan needs of the host, held against what the host has: said before a run, not found out by it.
//!
//! Not a place that reads the host (that is [`crate::host_facts`]) but for one call: [`raise_open_files`]. Needs are upper
//! bounds where the plan fixes them and expectations where it does not; only the former refuse a run. Invariant: a plan
//! that is refused could not have run as it is written.

use crate::host_facts::{HostFacts, TimeWaitReuse, open_file_limits};
use brunt_engine::Address;
use brunt_plan::plan::{Class, Load, OpenRate, Placement, Plan, Transport};
use brunt_plan::resolve::PlanError;
use brunt_plan::units::DurationNs;
use brunt_report::quantity;
use brunt_stats::connection::MORE_PORTS;
use rustix::process::{Resource, Rlimit, setrlimit};

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

/// Connections that come and go, per second.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Churn {
    /// They stay.
    None,
    /// As the plan demands.
    Planned(f64),
    /// As is to be expected when the server keeps up.
    Expected(f64),
    /// As fast as the server answers.
    Unknown,
}

impl Churn {
    fn of(class: &Class) -> Self {
        let lifetime = &class.lifetime;
        if !lifetime.ends() {
            return Self::None;
        }
        let by_age = lifetime.reconnect_every.map(|every| f64::from(class.connections) / every.as_secs_f64());
        let by_calls = lifetime.calls.map(|calls| match &class.load {
            Load::Open { rate: OpenRate::Constant(rate), .. } => rate.as_f64() / calls as f64,
            Load::Open { rate: OpenRate::PerConnection(rate), .. } => {
                rate.as_f64() * f64::from(class.connections) / calls as f64
            }
            Load::Open { rate: OpenRate::Profile(_), .. } | Load::Closed { .. } => f64::INFINITY,
        });
        let natural = by_age.unwrap_or(0.0) + by_calls.unwrap_or(0.0);
        match lifetime.connect_rate {
            Some(rate) => Self::Planned(rate.as_f64().min(natural)),
            None if natural.is_finite() => Self::Expected(natural),
            None => Self::Unknown,
        }
    }

    fn planned(self) -> f64 {
        if let Self::Planned(rate) = self { rate } else { 0.0 }
    }

    fn known(self) -> f64 {
        if let Self::Planned(rate) | Self::Expected(rate) = self { rate } else { 0.0 }
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
    /// Connections per second to one address and port that the plan demands.
    pub churn_to_one: f64,
}

impl Needs {
    /// Of a plan whose servers have these addresses, one for each.
    pub(crate) fn of(plan: &Plan, addresses: &[Address], reuse: TimeWaitReuse) -> Self {
        let open = |class: &Class| u64::from(class.own_connections()) * class.path_count() as u64;
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
        let is_udp = plan.servers().iter().all(|server| server.transport == Transport::Udp);
        let is_reset = plan.sockets.linger == Some(DurationNs(0));
        let wait_s = if is_udp || is_reset { 0.0 } else { wait_s };
        let rest_s = schedule_s.map_or(wait_s, |schedule_s| schedule_s.min(wait_s));
        // Unix sockets have none; a plan whose servers were not found counts as one that has.
        let has_ports = addresses.is_empty() || addresses.iter().any(|address| address.network().is_some());
        let ports = |churn: fn(Churn) -> f64| {
            if !has_ports {
                return 0;
            }
            let of_class = |class: &Class| {
                let taken = open(class) as f64 + churn(Churn::of(class)) * rest_s;
                class.lifetime.total.map_or(taken, |total| taken.min(total as f64))
            };
            (plan.classes.iter().map(of_class).sum::<f64>() * part).ceil() as u64
        };
        Self {
            connections,
            open_files: connections + files_beside(plan),
            connections_to_one: (connections as f64 * part).ceil() as u64,
            ports: ports(Churn::planned),
            ports_expected: ports(Churn::known),
            rest_s,
            churn_to_one: plan.classes.iter().map(|class| Churn::of(class).planned()).sum::<f64>() * part,
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
        quantity::count(needs.ports_expected),
        (needs.rest_s * 10.0).round() / 10.0,
        quantity::count(had),
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
    let range = format!("{} local ports ({}-{})", quantity::count(had), ports.first, ports.last);
    if needs.connections_to_one > had {
        let most = (had as f64 * needs.connections as f64 / needs.connections_to_one as f64) as u64;
        let limit = format!("{most}: {range} to each address and port of a server; {MORE_PORTS}");
        return Err(PlanError::exceeds(&format!("--connections {}", needs.connections), limit));
    }
    let rates = plan.classes.iter().filter_map(|class| class.lifetime.connect_rate);
    let rates = rates.map(|rate| rate.to_string()).collect::<Vec<_>>().join(" and ");
    // What is left beside the open ones, spread over the time that each rests; over all servers, as the option is.
    let all = needs.connections as f64 / needs.connections_to_one as f64;
    let most = (had - needs.connections_to_one) as f64 / needs.rest_s * all;
    let limit = format!(
        "{}/s: {} connections stay open, {} more rest for {} s each (TIME_WAIT); {range} to each address and port of \
         a server; {MORE_PORTS}",
        most as u64,
        quantity::count(needs.connections_to_one),
        quantity::count(needs.ports - needs.connections_to_one),
        (needs.rest_s * 10.0).round() / 10.0,
    );
    Err(PlanError::exceeds(&format!("--connect-rate {rates}"), limit))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::host_facts::LocalPorts;
    use brunt_plan::resolve::{Host, resolve};
    use brunt_plan::spec::PlanSpec;

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
        let host = Host { allowed_cpus: (0..8).collect(), random_seed: 1 };
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
        use TimeWaitReuse::{Always, Loopback, Never};
        let two: &[&str] = &["192.0.2.1:11211", "192.0.2.2:11211"];
        let twice: &[&str] = &["192.0.2.1:11211", "192.0.2.1:11211", "192.0.2.2:11211"];
        // (plan, servers, reuse) → open files, ports that the plan fixes, ports to be expected
        let table = [
            ("connections = 100", LOOPBACK, Loopback, 136, 100, 100),
            ("connections = 100", UNIX, Loopback, 136, 0, 0),
            ("connections = 100\nconnect-rate = 50\ncalls-per-connection = 1", UNIX, Never, 136, 0, 0),
            ("connections = 101", two, Loopback, 137, 51, 51),
            ("connections = 90", twice, Loopback, 126, 60, 60),
            (
                "connections = 90\nthreads = 3\nserver = ['192.0.2.1', '192.0.2.1', '192.0.2.2', '192.0.2.2']\nplacement = 'by-thread'",
                two,
                Loopback,
                134,
                60,
                60,
            ),
            (
                "connections = 90\nserver = ['192.0.2.1', '192.0.2.2']\nplacement = 'by-thread'",
                two,
                Loopback,
                126,
                90,
                90,
            ),
            // A rate without an end only spreads the beginning.
            ("connections = 100\nconnect-rate = 50", FAR, Loopback, 136, 100, 100),
            // 50/s rest for a minute; a run of 4 s cannot close more than 200; on loopback they rest for a second.
            (CHURN, FAR, Loopback, 136, 3_100, 3_100),
            (
                "time = '3s'\nconnections = 100\nconnect-rate = 50\ncalls-per-connection = 1",
                FAR,
                Loopback,
                136,
                300,
                300,
            ),
            (CHURN, LOOPBACK, Loopback, 136, 150, 150),
            (CHURN, LOOPBACK, Never, 136, 3_100, 3_100),
            (CHURN, FAR, Always, 136, 150, 150),
            (CHURN, two, Never, 136, 1_550, 1_550),
            (&format!("{CHURN}\nlinger = '0s'"), FAR, Never, 136, 100, 100),
            // The end of all connections bounds them, and so does the number of calls there are.
            (
                "connections = 100\nconnect-rate = 50\ncalls-per-connection = 1\nconnections-total = 700",
                FAR,
                Never,
                136,
                700,
                700,
            ),
            (
                "time = '10m'\nrate = 100\nconnections = 100\nconnect-rate = 50\ncalls-per-connection = 10",
                FAR,
                Never,
                136,
                700,
                700,
            ),
            // Not fixed: by their age 10 a second, by calls as fast as the server answers.
            ("time = '10m'\nconnections = 100\nreconnect-every = '10s'", FAR, Never, 136, 100, 700),
            ("time = '10m'\nconnections = 100\ncalls-per-connection = 1", FAR, Never, 136, 100, 100),
        ];
        for (toml, addresses, reuse, open_files, ports, expected) in table {
            let needs = needs(&plan(toml), addresses, reuse);
            assert_eq!(
                (needs.open_files, needs.ports, needs.ports_expected),
                (open_files, ports, expected),
                "{toml}"
            );
        }
    }

    /// Both sides of every bound: 20000 files of which 36 are not for connections, 28232 ports.
    #[test]
    fn plans_beyond_host_limits_are_rejected_with_numbers() {
        let many = HostFacts { open_files_hard: None, ..facts() };
        let churn = "time = '10m'\nconnections = 232\ncalls-per-connection = 1\nconnect-rate = ";
        let table: [(HostFacts, String, &[&str]); 8] = [
            (facts(), "connections = 19964".to_owned(), &[]),
            (
                facts(),
                "connections = 19965".to_owned(),
                &["--connections 19965 exceeds 19964: ", "20000", "36"],
            ),
            (many.clone(), "connections = 28232".to_owned(), &[]),
            (
                many.clone(),
                "connections = 28233".to_owned(),
                &["--connections 28233 exceeds 28232: ", "32768-60999", "sysctl"],
            ),
            (many.clone(), format!("{churn}466"), &[]),
            (
                many.clone(),
                format!("{churn}467"),
                &["--connect-rate 467/s exceeds 466/s: ", "28020 more rest for 60 s", "232 conn"],
            ),
            (HostFacts { open_files_hard: Some(37), ..facts() }, "connections = 1".to_owned(), &[]),
            (
                HostFacts { open_files_hard: Some(36), ..facts() },
                "connections = 1".to_owned(),
                &["--connections 1 exceeds 0: "],
            ),
        ];
        for (facts, toml, words) in table {
            let plan = plan(&toml);
            let needs = needs(&plan, FAR, facts.time_wait_reuse);
            let said = check_limits(&plan, &needs, &facts).map_err(|error| error.to_string());
            match said {
                Ok(notes) => assert!(notes.is_empty() && words.is_empty(), "{toml}: {notes:?}"),
                Err(error) => {
                    assert!(!words.is_empty(), "{toml}: {error}");
                    words.iter().for_each(|word| assert!(error.contains(word), "{toml}: {error}"));
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
