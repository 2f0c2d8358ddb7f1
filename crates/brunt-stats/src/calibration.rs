//! What this tool can do on one host, as `brunt calibrate` measured it, and which of several calibrations a run goes by.
//!
//! Not the measuring, and not the file that keeps them. Invariant: a calibration is compared with a run only if it was
//! made on the same host with as many threads that wait and talk to the kernel in the same way; whatever else differs is
//! said.

use crate::headroom::{Headroom, Probe};
use crate::usage::ClientUsage;
use brunt_plan::cpus::CpuList;
use brunt_plan::plan::{Class, Plan};
use brunt_plan::quantity::time;
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
}

impl Shape {
    /// Of a run that is over.
    pub fn of(plan: &Plan, usage: &ClientUsage) -> Self {
        let mut sizes: Vec<String> = Vec::new();
        for class in &plan.classes {
            let size = class.keyspace.value_size.to_string().trim_start_matches("fixed:").to_owned();
            if !sizes.contains(&size) {
                sizes.push(size);
            }
        }
        Self {
            threads: plan.threads,
            cpus: CpuList(plan.cpus.clone()).to_string(),
            io: usage.io.clone(),
            wait: usage.wait.clone(),
            connections: plan.classes.iter().map(Class::own_connections).sum(),
            depth: plan.classes.iter().map(|class| class.depth).max().unwrap_or(0),
            value_size: sizes.join(" "),
        }
    }

    /// Sizes of the values as a person reads them.
    pub fn value_text(&self) -> String {
        match self.value_size.parse::<u64>() {
            Ok(bytes) => format!("{bytes} B"),
            Err(_) => self.value_size.clone(),
        }
    }

    /// What a calibration of this shape and a run of that one differ in although the one is taken for the other.
    fn differences(&self, run: &Self) -> Vec<String> {
        let mut differences = Vec::new();
        if (self.connections, self.depth) != (run.connections, run.depth) {
            differences.push(format!("with {} connections × depth {}", self.connections, self.depth));
        }
        if self.cpus != run.cpus {
            let cpus = &self.cpus;
            differences.push(match cpus.is_empty() {
                true => "without pinning".to_owned(),
                false => format!("pinned to processors {cpus}"),
            });
        }
        if self.value_size != run.value_size {
            differences.push(format!("with values of {}", self.value_text()));
        }
        differences
    }

    /// Why a calibration of this shape says nothing about a run of that one; `None` where it does.
    fn misfit(&self, run: &Self) -> Option<String> {
        let threads =
            |number: u32| if number == 1 { "1 thread".to_owned() } else { format!("{number} threads") };
        if self.threads != run.threads {
            return Some(format!("for {}, this run has {}", threads(self.threads), run.threads));
        }
        let words = [("--wait", &self.wait, &run.wait), ("--io", &self.io, &run.io)];
        let differs = words.into_iter().find(|(_, calibrated, run)| calibrated != run)?;
        let (option, calibrated, run) = differs;
        Some(format!("with {option} {calibrated}, this run has {run}"))
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

/// What says that others ran on this host while it was calibrated; `None` where nothing does. `disturbed` are the steps from which others took
/// time: the rate, and what took it, as a check of the host has it; `steps` is how many there were in all. The loop alone is a part of what goes over loopback: where it took longer, one of the two was
/// disturbed.
pub fn disturbance(
    disturbed: &[(u64, String)],
    steps: u64,
    in_process: LatencyFloor,
    loopback: LatencyFloor,
) -> Option<String> {
    let mut found = Vec::new();
    if let Some((rate, message)) = disturbed.first() {
        let of = disturbed.len();
        found.push(format!("{of} of {steps} steps were disturbed, the first at {rate}/s: {message}"));
    }
    let percentiles =
        [("p50", in_process.p50_ns, loopback.p50_ns), ("p99", in_process.p99_ns, loopback.p99_ns)];
    let above = percentiles.into_iter().find(|(_, in_process_ns, loopback_ns)| in_process_ns > loopback_ns);
    if let Some((name, in_process_ns, loopback_ns)) = above {
        found.push(format!(
            "the floor in process is above that over loopback, which contains it ({name} {} against {})",
            time(in_process_ns),
            time(loopback_ns)
        ));
    }
    (!found.is_empty()).then(|| found.join("; "))
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
    /// Response times of the loop alone: requests that are answered in the process at once.
    pub in_process: LatencyFloor,
    /// Processor time of the loop alone per request, in nanoseconds.
    pub in_process_cpu_ns: u64,
    /// Response times over loopback: no latency on this host is less.
    pub loopback: LatencyFloor,
    /// The rate at which both were measured, in requests per second.
    pub floor_rate: u64,
    /// How late timed sleeps ended; `None` where too few did.
    pub oversleep: Option<LatencyFloor>,
    /// Up to which rate the client's own share stays small.
    pub headroom: Headroom,
    /// What that was found by.
    pub probes: Vec<Probe>,
    /// What each way of waiting costs and gives, at several rates; empty where only floor and headroom were measured.
    #[serde(default)]
    pub waits: Vec<WaitCost>,
    /// What says that others ran on the host meanwhile, so that floor and headroom may be theirs; `None` where nothing
    /// does.
    pub disturbed: Option<String>,
}

/// What a way of waiting costs and gives at a rate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitCost {
    /// `--wait`.
    pub wait: String,
    /// Requests per second.
    pub rate: u64,
    /// Response times, in nanoseconds: p50 and p90.
    pub response_ns: [Option<u64>; 2],
    /// Of requests with kernel timestamps the time from leaving to arriving, in nanoseconds: p50 and p90.
    pub wire_ns: [Option<u64>; 2],
    /// Processor time of the client per request, in nanoseconds.
    pub cpu_ns: u64,
    /// The server did not keep up: the response times are those of a backlog.
    #[serde(default)]
    pub is_saturated: bool,
    /// Others took time from it.
    #[serde(default)]
    pub is_disturbed: bool,
}

impl WaitCost {
    /// How much more the response time is than the wire's, in nanoseconds: p50 and p90.
    pub fn over_ns(&self) -> [Option<u64>; 2] {
        let over = |index: usize| Some(self.response_ns[index]?.saturating_sub(self.wire_ns[index]?));
        [over(0), over(1)]
    }
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
            if held.disturbed.is_some() {
                differences.push("on a host that was disturbed".to_owned());
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
    use crate::headroom::HeadroomLimit;
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
        }
    }

    fn calibration(change: impl FnOnce(&mut Calibration)) -> Calibration {
        let mut calibration = Calibration {
            made_at_s: 1_795_000_000,
            brunt_version: "0.1.0".to_owned(),
            host: host(),
            shape: shape(),
            in_process: LatencyFloor { p50_ns: 400, p99_ns: 900 },
            in_process_cpu_ns: 250,
            loopback: LatencyFloor { p50_ns: 21_000, p99_ns: 38_000 },
            floor_rate: 2_000,
            oversleep: None,
            headroom: Headroom { rate: Some(36_000), limit: HeadroomLimit::Client, limit_rate: Some(37_000) },
            probes: Vec::new(),
            waits: Vec::new(),
            disturbed: None,
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
                held.disturbed = Some("STEAL".to_owned());
            })],
            Ok(&[
                "with 64 connections × depth 1",
                "pinned to processors 1",
                "with values of 4096 B",
                "by brunt 0.0.9",
                "on a host that was disturbed",
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
    fn disturbed_calibrations_are_recognized() {
        let (in_process, loopback) =
            (LatencyFloor { p50_ns: 400, p99_ns: 900 }, LatencyFloor { p50_ns: 21_000, p99_ns: 38_000 });
        let step = |rate, message: &str| (rate, message.to_owned());
        assert_eq!(disturbance(&[], 14, in_process, loopback), None);
        assert_eq!(disturbance(&[], 14, loopback, loopback), None, "as long is no longer");
        let late = LatencyFloor { p99_ns: 3_550_000, ..in_process };
        let table = [
            (
                vec![step(16_000, "worker 0 did not run"), step(2_000, "later")],
                in_process,
                "2 of 14 steps were disturbed, the first at 16000/s: worker 0 did not run",
            ),
            (
                vec![],
                late,
                "the floor in process is above that over loopback, which contains it (p99 3.55 ms against 38.0 us)",
            ),
            (
                vec![step(2_000, "no time left")],
                LatencyFloor { p50_ns: 21_001, ..late },
                "1 of 14 steps were disturbed, the first at 2000/s: no time left; the floor in process is above that over \
                 loopback, which contains it (p50 21.0 us against 21.0 us)",
            ),
        ];
        for (disturbed, in_process, expected) in table {
            assert_eq!(disturbance(&disturbed, 14, in_process, loopback).as_deref(), Some(expected));
        }
    }

    #[test]
    fn shape_of_a_run() {
        let text = "threads = 2\ncpus = '0-1'\n[[class]]\nconnections = 4\n[[class]]\nconnections = 8\ndepth = 3\n\
                    value-size = 'uniform:1,9'\n[[class]]\nconnections = 2\n";
        let plan = PlanSpec::from_toml(text).unwrap();
        let plan =
            resolve(&plan, &Host { allowed_cpus: vec![0, 1], random_seed: 1, server_is_here: true }).unwrap();
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
