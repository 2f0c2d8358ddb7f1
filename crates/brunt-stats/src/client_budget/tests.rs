//! Table of budgets: what a host and its workers did, which part is named, and what is advised.

use super::*;
use crate::run_record::RunData;
use crate::server_stats::{ServerRecord, Snapshot};
use crate::simulated_run::plan;
use crate::usage::AgentRecord;
use crate::usage::{ClientUsage, Colocation, HostEvidence};
use ClientPart::{OwnWork, WokenLate};

const MS: u64 = 1_000_000;
/// Length of the window.
const WALL_MS: u64 = 10_000;
const WINDOW: RunTimes = RunTimes {
    start_ns: MS,
    measure_ns: MS,
    end_ns: (WALL_MS + 1) * MS,
    drained_ns: (WALL_MS + 1) * MS,
    ..RunTimes::NONE
};

/// One worker on one of two processors, sleeping, with a server of this host; in milliseconds.
#[derive(Clone, Copy)]
struct Given {
    workers: u32,
    cpus: u64,
    own_work: u64,
    delay: Option<u64>,
    stalls: u64,
    /// Of the stalls the longest, and what of it was run delay.
    longest: (u64, u64),
    sleeps: u64,
    busy: u64,
    stolen: u64,
    throttled: u64,
    server: Option<u64>,
    shared_looks: u64,
    wait: Wait,
    is_open: bool,
}

const QUIET: Given = Given {
    workers: 1,
    cpus: 2,
    own_work: 1_000,
    delay: Some(0),
    stalls: 0,
    longest: (0, 0),
    sleeps: 0,
    busy: 2_000,
    stolen: 0,
    throttled: 0,
    server: Some(1_000),
    shared_looks: 10,
    wait: Wait::Sleep,
    is_open: true,
};

impl Given {
    /// Quiet, but for these.
    fn of(text: &str) -> Self {
        let mut given = QUIET;
        for (name, value) in text.split(", ").filter_map(|one| one.split_once(' ')) {
            let number = || value.parse().unwrap();
            match name {
                "workers" => given.workers = value.parse().unwrap(),
                "cpus" => given.cpus = number(),
                "own_work" => given.own_work = number(),
                "delay" => given.delay = value.parse().ok(),
                "stalls" => given.stalls = number(),
                "longest" => {
                    let (longest, delay) = value.split_once('/').unwrap();
                    given.longest = (longest.parse().unwrap(), delay.parse().unwrap());
                }
                "sleeps" => given.sleeps = number(),
                "busy" => given.busy = number(),
                "stolen" => given.stolen = number(),
                "throttled" => given.throttled = number(),
                "server" => given.server = value.parse().ok(),
                "shared_looks" => given.shared_looks = number(),
                _ => panic!("{name}"),
            }
        }
        given
    }

    fn run(&self) -> RunData {
        let worker = |worker| WorkerUsage {
            worker,
            wall_ns: WALL_MS * MS,
            busy_ns: self.own_work * MS,
            cpu_ns: self.own_work * MS,
            run_delay_ns: self.delay.map(|delay| delay * MS),
            voluntary_switches: self.sleeps,
            colocation: Colocation { looks: 20, shared: self.shared_looks },
            stalls: StallCounts {
                count: 1,
                total_ns: self.stalls * MS,
                longest_ns: self.longest.0 * MS,
                longest_at_ns: Some(700 * MS),
                longest_run_delay_ns: Some(self.longest.1 * MS),
            },
            ..WorkerUsage::default()
        };
        let workers: Vec<_> = (0..self.workers).map(worker).collect();
        let mut server = ServerRecord::default();
        for (at_ns, ms) in [(WINDOW.measure_ns, Some(0)), (WINDOW.end_ns, self.server)] {
            let cpu = ms.map(|ms| format!("{}.{:03}", ms / 1_000, ms % 1_000)).unwrap_or_default();
            server.push(Snapshot::new(at_ns, at_ns, [("rusage_user", cpu.as_str()), ("rusage_system", "0")]));
        }
        RunData {
            usage: ClientUsage {
                cpu_user_ns: workers.iter().map(|worker| worker.cpu_ns).sum(),
                wait: self.wait.name().to_owned(),
                workers,
                ..ClientUsage::default()
            },
            host: HostEvidence {
                wall_ns: WALL_MS * MS,
                cpus: self.cpus,
                stolen_ns: Some(self.stolen * MS),
                busy_ns: Some(self.busy * MS),
                throttled_ns: Some(self.throttled * MS),
                wake_up_ns: MS,
                listen_drops: Some(0),
                ..HostEvidence::default()
            },
            server_records: vec![server],
            ..RunData::default()
        }
    }

    fn record(&self) -> RunRecord {
        let plan = plan(if self.is_open { "server = 'a'\nrate = 1000" } else { "server = 'a'" });
        RunRecord { run: self.run(), ..RunRecord::of(plan) }
    }

    fn budget(&self) -> ClientBudget {
        ClientBudget::of(&self.record(), &WINDOW)
    }
}

/// What was given beside quiet → own work, waiting, stopped, woken late in milliseconds → the largest part → what the budget says →
/// what it advises.
const BUDGETS: &str = "
    quiet => 1000 0 0 0 => OwnWork => worker worked for 10.0 % of => processors are free
    own_work 9800, busy 19800 => 9800 0 0 0 => OwnWork => worker worked for 98.0 % of => offer less (--rate
    // A worker that idles most of the time is not late by its own work.
    own_work 4000, delay 300, busy 12000 => 4000 300 0 0 => Waiting(Neighbour)
        => waited for a processor for 3.00 % of the window, which another process had => pin the workers to free ones
    // Own work beyond one half counts twice.
    own_work 6000, delay 1999, busy 15000 => 6000 1999 0 0 => OwnWork => worked for 60.0 % => use more --threads (pro
    own_work 6000, delay 2001, busy 19000 => 6000 2001 0 0 => Waiting(Neighbour)
        => waited for a processor for 20.0 % => stop what else runs on this host: no processor is free
    // Three neighbours beside a server that is met by chance.
    own_work 2000, delay 4000, busy 19900, server 3000, shared_looks 15 => 2000 4000 0 0 => Waiting(Neighbour)
        => for 40.0 % of the window, which another process had => no processor is free
    own_work 4000, delay 4000, busy 9900, server 5900, cpus 1 => 4000 4000 0 0 => Waiting(Server)
        => which the server had => client host of its own
    own_work 4000, delay 4000, busy 9900, server 5900 => 4000 4000 0 0 => Waiting(Server)
        => which the server had => put them on different processors
    // A server that does not tell: where it sends from decides.
    delay 4000, server none, shared_looks 15 => 1000 4000 0 0 => Waiting(Server) => which the server had => put them
    delay 4000, server none, shared_looks 14 => 1000 4000 0 0 => Waiting(Neighbour) => which another process had => stop what else
    workers 4, cpus 1, own_work 2000, delay 5000, busy 9000 => 8000 20000 0 0 => Waiting(Workers)
        => the client's 4 workers waited for a processor for 50.0 % of the window, which other workers had => no more --threads
    delay 4000, throttled 3000 => 1000 4000 0 0 => Waiting(Quota) => as the CPU quota was used up => larger CPU quota
    // A kernel that keeps no account of run delays.
    delay none, throttled 3000 => 1000 3000 0 0 => Waiting(Quota) => 30.0 % => quota
    // Half of what ran was ours, and so half of what was stolen.
    delay 100, stolen 800 => 1000 500 0 0 => Waiting(Hypervisor)
        => for 5.00 % of the window, which the hypervisor gave to others => nothing in this guest helps
    stolen 20 => 1000 0 0 0 => OwnWork => 10.0 % => more --threads
    delay 100, stalls 1500, longest 948/0 => 1000 100 1400 0 => Stopped
        => the client's worker was stopped for 14.0 % of the window, longest for 948 ms at +700 ms => find what stopped it
    // A stall that was run delay is no stop.
    delay 948, stalls 948, longest 948/940 => 1000 948 8 0 => Waiting(Server) => waited for a processor for 9.48 % => put them
    // No more than what is left of the time.
    delay 2000, sleeps 9000 => 1000 2000 0 7000 => WokenLate
        => the client's worker woke late from sleep, for 70.0 % of the window (1.00 ms each time) => --wait spin
";

#[test]
fn one_part_is_named_and_the_advice_follows_from_it() {
    let lines = BUDGETS.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
    let rows = lines.collect::<Vec<_>>().join("\r").replace("\r=>", " =>");
    for row in rows.split('\r') {
        let [given, expected, part, sentence, fix] = row.split(" => ").collect::<Vec<_>>()[..] else {
            panic!("{row}")
        };
        let budget = Given::of(given).budget();
        let ClientBudget { own_work_ns, waiting_ns, stopped_ns, woken_late_ns, .. } = budget;
        let times = [own_work_ns, waiting_ns, stopped_ns, woken_late_ns].map(|ns| ns / MS);
        assert_eq!(times.map(|ms| ms.to_string()).join(" "), expected, "{row}: {budget:?}");
        assert!(times.iter().sum::<u64>() <= budget.wall_ns / MS, "{budget:?}");
        assert_eq!(format!("{:?}", budget.largest().0), part, "{row}: {budget:?}");
        assert!(budget.sentence().contains(sentence), "{}", budget.sentence());
        assert!(budget.fix().contains(fix), "{}: {}", budget.sentence(), budget.fix());
    }
}

/// Load, way of waiting, CPU time of all → what helps a worker that wakes late.
#[test]
fn spinning_is_advised_only_where_a_processor_is_free() {
    let table = [
        (true, Wait::Sleep, 3_000, "--wait spin"),
        (false, Wait::Sleep, 3_000, "--wait hybrid"),
        (false, Wait::Hybrid, 3_000, "a client host with a processor free"),
        (true, Wait::Sleep, 19_000, "a client host with a processor free"),
    ];
    for (is_open, wait, busy, fix) in table {
        let budget = Given { sleeps: 2_000, is_open, wait, busy, ..QUIET }.budget();
        assert_eq!(budget.largest().0, WokenLate);
        assert!(budget.fix().contains(fix), "{wait:?} {busy}: {}", budget.fix());
    }
    let spinning = Given { sleeps: 2_000, wait: Wait::Spin, ..QUIET }.budget();
    assert_eq!(spinning.woken_late_ns, 0);
}

#[test]
fn of_several_hosts_the_worst_is_named() {
    let mut record = Given { workers: 5, ..QUIET }.record();
    record.run.usage.workers[3].run_delay_ns = Some(4_000 * MS);
    record.run.usage.workers[3].colocation.shared = 20;
    let agent = |name: &str, first_worker, workers| AgentRecord {
        name: name.to_owned(),
        first_worker,
        workers,
        weight: 1,
        ..AgentRecord::default()
    };
    record.agents = vec![agent("a:7001", 1, 2), agent("b:7001", 3, 2)];
    let budget = ClientBudget::of(&record, &WINDOW);
    let sentence =
        "the 2 workers of agent b:7001 waited for a processor for 20.0 % of the window, which the server had";
    assert_eq!(budget.sentence(), sentence);
    record.run.usage.workers[0].busy_ns = 9_000 * MS;
    let budget = ClientBudget::of(&record, &WINDOW);
    assert_eq!(budget.sentence(), "the client's worker worked for 90.0 % of the window");
    let of_none = ClientBudget::of(&RunRecord::of(plan("")), &WINDOW);
    assert_eq!((of_none.largest().0, of_none.wall_ns), (OwnWork, 0));
}
