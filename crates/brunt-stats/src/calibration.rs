//! What this tool can do on one host, as `brunt calibrate` measured it, and which of several calibrations a run goes by.
//!
//! Not the measuring, and not the file that keeps them. Invariant: a calibration is compared with a run only if it was
//! made on the same host with as many threads that wait and talk to the kernel in the same way; whatever else differs is
//! said.

use crate::capacity::Capacity;
use crate::usage::ClientUsage;
use brunt_plan::cpus::CpuList;
use brunt_plan::plan::{Class, Plan};
use brunt_plan::quantity::each_once;
use serde::{Deserialize, Serialize};

/// Which host: what makes a calibration of one worthless on another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostIdentity {
    /// A fingerprint of the machine's own id, or its name where it has none.
    pub machine: String,
    /// Model of the processor.
    pub cpu_model: String,
    /// Processors that the process may run on, such as `0-3,5`.
    pub allowed_cpus: String,
    /// Release of the kernel.
    pub kernel: String,
}

/// What of a plan decides how much a client can do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// Workers.
    pub threads: u32,
    /// Processors they are pinned to, such as `0-3,5`; empty where they are not.
    pub cpus: String,
    /// The kernel interface that ran.
    pub io: String,
    /// How workers waited in the end.
    pub wait: String,
    /// Connections in all.
    pub connections: u32,
    /// Requests in flight on one of them; the most of any class.
    pub depth: u32,
    /// Sizes of the values, as in a plan, but without the word `fixed`; of several classes, each once.
    pub value_size: String,
    /// Protocols and how they are transported, each once: `memcached-text over tcp`.
    pub protocol: String,
}

impl Shape {
    /// Of a run that is over.
    pub fn of(plan: &Plan, usage: &ClientUsage) -> Self {
        let sizes = plan.classes.iter().map(|class| class.keyspace.value_size.to_string());
        let servers = &plan.servers;
        let protocols = servers.iter().map(|server| format!("{} over {}", server.protocol, server.transport));
        Self {
            threads: plan.threads,
            cpus: CpuList(plan.cpus.clone()).to_string(),
            io: usage.io.clone(),
            wait: usage.wait.clone(),
            connections: plan.classes.iter().map(Class::own_connections).sum(),
            depth: plan.classes.iter().map(|class| class.depth).max().unwrap_or(0),
            value_size: each_once(sizes.map(|size| size.trim_start_matches("fixed:").to_owned())).join(" "),
            protocol: each_once(protocols).join(" "),
        }
    }

    /// Sizes of the values as a person reads them.
    fn value_text(&self) -> String {
        match self.value_size.parse::<u64>() {
            Ok(bytes) => format!("{bytes} B"),
            Err(_) => self.value_size.clone(),
        }
    }

    /// What a calibration of this shape and a run of that one differ in although the one is taken for the other.
    fn differences(&self, run: &Self) -> Vec<String> {
        let Self { connections, depth, cpus, protocol, .. } = self;
        let pinned = if cpus.is_empty() { "without pinning" } else { "pinned to processors " };
        let words = [
            (
                (*connections, *depth) != (run.connections, run.depth),
                format!("with {connections} connections × depth {depth}"),
            ),
            (*cpus != run.cpus, format!("{pinned}{cpus}")),
            (self.value_size != run.value_size, format!("with values of {}", self.value_text())),
            (*protocol != run.protocol, format!("with {protocol}")),
        ];
        words.into_iter().filter(|(differs, _)| *differs).map(|(_, words)| words).collect()
    }

    /// Why a calibration of this shape says nothing about a run of that one; `None` where it does.
    fn misfit(&self, run: &Self) -> Option<String> {
        let Self { threads, wait, io, .. } = self;
        let plural = if *threads == 1 { "" } else { "s" };
        let words = [
            (*threads != run.threads, format!("for {threads} thread{plural}, this run has {}", run.threads)),
            (*wait != run.wait, format!("with --wait {wait}, this run has {}", run.wait)),
            (*io != run.io, format!("with --io {io}, this run has {}", run.io)),
        ];
        words.into_iter().find_map(|(differs, words)| differs.then_some(words))
    }
}

/// Two percentiles of a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyFloor {
    /// The median, in nanoseconds.
    pub p50_ns: u64,
    /// The 99th percentile, in nanoseconds.
    pub p99_ns: u64,
}

impl LatencyFloor {
    /// The least of several measurements, each percentile by itself: whatever else runs on a host only ever adds to a
    /// floor. `None` of none.
    pub fn least(floors: impl IntoIterator<Item = Self>) -> Option<Self> {
        floors.into_iter().reduce(|one, other| Self {
            p50_ns: one.p50_ns.min(other.p50_ns),
            p99_ns: one.p99_ns.min(other.p99_ns),
        })
    }
}

/// What `brunt calibrate` measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// When, in seconds since 1970 (UTC).
    pub made_at_s: u64,
    /// The version of brunt.
    pub brunt_version: String,
    /// The host.
    pub host: HostIdentity,
    /// The shape of its plans.
    pub shape: Shape,
    /// The least response times of its runs over loopback: no latency on this host is less.
    pub loopback: LatencyFloor,
    /// Up to which rate the client's part of the p99 stays within the objective.
    pub headroom: Capacity,
    /// The server or the connections were the limit: the client may be capable of more.
    pub is_limited: bool,
}

/// The file that keeps one for each host and shape.
#[derive(Debug, Serialize, Deserialize)]
pub struct CalibrationFile {
    /// Its schema: [`Self::SCHEMA`].
    pub schema: String,
    /// Those that are kept.
    pub calibrations: Vec<Calibration>,
}

impl CalibrationFile {
    /// The name of the schema.
    pub const SCHEMA: &str = "brunt.calibrations.v2";
}

/// The calibration that a run goes by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CalibrationMatch {
    /// The calibration.
    pub calibration: Calibration,
    /// What was different when it was made, each as words behind "calibrated".
    pub differences: Vec<String>,
}

/// What was found for a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Lookup {
    /// Nothing was ever calibrated here.
    #[default]
    Absent,
    /// Something was, but it says nothing about this run: why.
    Unfit(String),
    /// A calibration fits.
    Fit(Box<CalibrationMatch>),
}

/// Finds the calibration that says most about a run.
pub fn find(calibrations: &[Calibration], host: &HostIdentity, shape: &Shape, brunt_version: &str) -> Lookup {
    if let Some(unknown) = newest_of_others(calibrations, host) {
        return Lookup::Unfit(unknown);
    }
    let here = || calibrations.iter().filter(|held| held.host == *host);
    let fitting = here().filter(|held| held.shape.misfit(shape).is_none());
    // Whatever is pinned in another way is further off than any number of connections; the newest of equals.
    let best = fitting.max_by_key(|held| {
        let held_shape = &held.shape;
        (
            held_shape.cpus == shape.cpus,
            held_shape.depth == shape.depth,
            held_shape.connections == shape.connections,
            held_shape.value_size == shape.value_size,
            held.made_at_s,
        )
    });
    match best {
        Some(held) => {
            let mut differences = held.shape.differences(shape);
            if held.brunt_version != brunt_version {
                differences.push(format!("by brunt {}", held.brunt_version));
            }
            if matches!(held.headroom, Capacity::Between { is_confirmed: false, .. }) {
                differences.push("by runs that do not agree".to_owned());
            }
            Lookup::Fit(Box::new(CalibrationMatch { calibration: held.clone(), differences }))
        }
        None => match here().max_by_key(|held| held.made_at_s).and_then(|held| held.shape.misfit(shape)) {
            Some(misfit) => Lookup::Unfit(format!("calibrated {misfit}")),
            None => Lookup::Absent,
        },
    }
}

/// Where nothing was calibrated on this host, but something elsewhere: what is different here.
fn newest_of_others(calibrations: &[Calibration], host: &HostIdentity) -> Option<String> {
    if calibrations.iter().any(|held| held.host == *host) {
        return None;
    }
    let of_machine = calibrations.iter().filter(|held| held.host.machine == host.machine);
    let Some(held) = of_machine.max_by_key(|held| held.made_at_s).map(|held| &held.host) else {
        return (!calibrations.is_empty()).then(|| "calibrated on another machine only".to_owned());
    };
    let words = [
        ("kernel", &held.kernel, &host.kernel),
        ("processor", &held.cpu_model, &host.cpu_model),
        ("processors", &held.allowed_cpus, &host.allowed_cpus),
    ];
    let (what, was, is) = words.into_iter().find(|(_, was, is)| was != is)?;
    Some(format!("calibrated on {what} {was}, this is {is}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use brunt_plan::resolve::{Host, resolve};
    use brunt_plan::spec::PlanSpec;

    fn host() -> HostIdentity {
        let [machine, cpu_model, allowed_cpus, kernel] =
            ["m1", "Made-up 9000", "0-1", "6.1.0"].map(str::to_owned);
        HostIdentity { machine, cpu_model, allowed_cpus, kernel }
    }

    fn shape() -> Shape {
        Shape {
            threads: 1,
            cpus: String::new(),
            io: "epoll".to_owned(),
            wait: "hybrid".to_owned(),
            connections: 16,
            depth: 1,
            value_size: "200".to_owned(),
            protocol: "memcached-text over tcp".to_owned(),
        }
    }

    fn between(is_confirmed: bool) -> Capacity {
        Capacity::Between { passed: 36_000.0, failed: 37_000.0, is_confirmed }
    }

    fn calibration(change: impl FnOnce(&mut Calibration)) -> Calibration {
        let mut calibration = Calibration {
            made_at_s: 1_795_000_000,
            brunt_version: "0.1.0".to_owned(),
            host: host(),
            shape: shape(),
            loopback: LatencyFloor { p50_ns: 21_000, p99_ns: 38_000 },
            headroom: between(true),
            is_limited: false,
        };
        change(&mut calibration);
        calibration
    }

    fn check(calibrations: &[Calibration], expected: Result<&[&str], &str>) {
        match (find(calibrations, &host(), &shape(), "0.1.0"), expected) {
            (Lookup::Fit(fit), Ok(differences)) => assert_eq!(fit.differences, differences),
            (Lookup::Unfit(reason), Err(expected)) => assert_eq!(reason, expected),
            (Lookup::Absent, Err("")) => {}
            (found, _) => panic!("{found:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn a_calibration_of_the_same_host_and_shape_matches() {
        check(&[], Err(""));
        check(&[calibration(|_| {})], Ok(&[]));
        check(
            &[calibration(|held| {
                held.shape.connections = 64;
                held.shape.cpus = "1".to_owned();
                held.shape.value_size = "4096".to_owned();
                held.brunt_version = "0.0.9".to_owned();
                held.shape.protocol = "resp2 over unix".to_owned();
                held.headroom = between(false);
            })],
            Ok(&[
                "with 64 connections × depth 1",
                "pinned to processors 1",
                "with values of 4096 B",
                "with resp2 over unix",
                "by brunt 0.0.9",
                "by runs that do not agree",
            ]),
        );
    }

    #[test]
    fn a_calibration_of_another_host_or_shape_does_not_match() {
        type Change = fn(&mut Calibration);
        let table: [(Change, &str); 7] = [
            (|held| held.shape.threads = 2, "calibrated for 2 threads, this run has 1"),
            (
                |held| held.shape.wait = "sleep".to_owned(),
                "calibrated with --wait sleep, this run has hybrid",
            ),
            (|held| held.shape.io = "uring".to_owned(), "calibrated with --io uring, this run has epoll"),
            (|held| held.host.machine = "m2".to_owned(), "calibrated on another machine only"),
            (|held| held.host.kernel = "5.4".to_owned(), "calibrated on kernel 5.4, this is 6.1.0"),
            (|held| held.host.allowed_cpus = "0".to_owned(), "calibrated on processors 0, this is 0-1"),
            (
                |held| held.host.cpu_model = "Old".to_owned(),
                "calibrated on processor Old, this is Made-up 9000",
            ),
        ];
        for (change, reason) in table {
            check(&[calibration(change)], Err(reason));
            // Beside one that fits it does no harm.
            check(&[calibration(change), calibration(|_| {}), calibration(change)], Ok(&[]));
        }
    }

    #[test]
    fn the_nearest_calibration_is_chosen() {
        let many = calibration(|held| held.shape.connections = 64);
        let deep = calibration(|held| held.shape.depth = 8);
        let pinned = calibration(|held| held.shape.cpus = "1".to_owned());
        check(&[many.clone(), deep.clone(), pinned.clone()], Ok(&["with 64 connections × depth 1"]));
        check(&[deep, pinned], Ok(&["with 16 connections × depth 8"]));
        let newest = |made_at_s: &[u64]| {
            let calibrations: Vec<_> =
                made_at_s.iter().map(|at| calibration(|held| held.made_at_s = *at)).collect();
            match find(&calibrations, &host(), &shape(), "0.1.0") {
                Lookup::Fit(fit) => fit.calibration.made_at_s,
                found => panic!("{found:?}"),
            }
        };
        assert_eq!(newest(&[5, 9, 7]), 9);
    }

    #[test]
    fn the_least_floor_is_kept() {
        let floor = |p50_ns, p99_ns| LatencyFloor { p50_ns, p99_ns };
        assert_eq!(LatencyFloor::least([]), None);
        assert_eq!(
            LatencyFloor::least([floor(30, 900), floor(25, 4_000), floor(26, 700)]),
            Some(floor(25, 700))
        );
    }

    #[test]
    fn shape_of_a_run() {
        let text = "threads = 2\ncpus = '0-1'\n[[class]]\nconnections = 4\n[[class]]\nconnections = 8\ndepth = 3\n\
                    value-size = 'uniform:1,9'\n[[class]]\nconnections = 2\n";
        let plan = PlanSpec::from_toml(text).unwrap();
        let plan = resolve(&plan, &Host::of(vec![0, 1], 1)).unwrap();
        let usage =
            ClientUsage { io: "epoll".to_owned(), wait: "sleep".to_owned(), ..ClientUsage::default() };
        let expected = Shape {
            threads: 2,
            cpus: "0-1".to_owned(),
            wait: "sleep".to_owned(),
            connections: 14,
            depth: 3,
            value_size: "200 uniform:1,9".to_owned(),
            ..shape()
        };
        assert_eq!(Shape::of(&plan, &usage), expected);
    }
}
