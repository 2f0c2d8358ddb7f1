//! A hundred worlds in which much goes wrong, each from a seed: every run ends, and all counts balance exactly.

use super::*;
use crate::simulated::sim::{ConnectFault, ConnectTrouble, Deaf};
use brunt_plan::plan::{Class, Load, OnMiss, OpenRate, Reconnect, SessionScope, Timestamps};
use brunt_plan::units::Rate;
use brunt_server::{Drip, Every, Outage as Gone};
use brunt_workload::rng::{Draw, DrawRng};
use std::num::{NonZeroU64, NonZeroUsize};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A plan and a world to run it in.
struct FaultPlan {
    toml: String,
    /// Every connection is a session of its own.
    is_per_connection: bool,
    options: SimOptions,
    /// A server goes and never comes back.
    is_fatal: bool,
    /// Things go wrong before the schedule, so that it may never begin.
    disturbs_preload: bool,
}

/// Draws.
struct Dice(DrawRng);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0.below(n)
    }

    fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to - from + 1)
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn any<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len() as u64) as usize]
    }

    /// A line of a plan, or none.
    fn maybe(&mut self, n: u64, line: impl FnOnce(&mut Self) -> String) -> String {
        if self.one_in(n) { format!("{}\n", line(self)) } else { String::new() }
    }

    /// Every so many, or never.
    fn every(&mut self, n: u64, from: u64, to: u64) -> Option<NonZeroU64> {
        if self.one_in(n) { NonZeroU64::new(self.between(from, to)) } else { None }
    }

    fn fault(&mut self, n: u64, from: u64, to: u64) -> Option<Every> {
        self.every(n, from, to).and_then(|period| Every::new(period.get()))
    }
}

const CHANGES: [&str; 10] =
    ["set", "add", "replace", "append", "prepend", "cas", "incr", "decr", "delete", "touch"];
const RETRIEVALS: [&str; 3] = ["get", "gets", "mget"];

impl FaultPlan {
    fn of(seed: u64) -> Self {
        let mut dice = Dice(DrawRng::from_draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        let servers = dice.between(1, 3);
        let connections = servers * dice.between(1, 4);
        let toml = with_policies(seed, plan_of(&mut dice, servers, connections));
        let is_fatal = dice.one_in(12);
        let disturbs_preload = dice.one_in(6);
        let stores = if disturbs_preload { vec![0; 3] } else { preload_stores(&plan(&toml)) };
        let mut cores: Vec<CoreOptions> = Vec::new();
        for stores in stores.iter().take(servers as usize) {
            cores.push(server_of(&mut dice, *stores));
        }
        if is_fatal {
            let which = dice.below(servers) as usize;
            cores[which].outages.push(Gone { at_ns: dice.below(300) * MS, for_ns: 1_000_000 * SECOND });
        }
        let others = cores.split_off(1);
        let options =
            SimOptions { server: cores.remove(0), others, ..network_of(&mut dice, servers, connections) };
        // What is on the way is there from the beginning.
        let disturbs_preload = disturbs_preload
            || options.buffer_bytes != usize::MAX
            || options.send_fault.is_some()
            || !options.deaf.is_empty();
        Self { is_per_connection: dice.one_in(5), toml, options, is_fatal, disturbs_preload }
    }

    fn plan(&self) -> Plan {
        let mut plan = plan(&self.toml);
        plan.timestamps = Timestamps::Kernel;
        if self.is_per_connection {
            // A change to several servers takes a connection to each of them.
            plan.classes.iter_mut().for_each(|class| class.replicas = 1);
            let shares = plan.classes.iter().any(|class| class.connections_of.is_some());
            let sessions = if shares { SessionScope::Worker } else { SessionScope::Connection };
            plan.classes.iter_mut().for_each(|class| class.sessions = sessions);
            plan.classes
                .iter_mut()
                .filter(|class| class.depth.is_multiple_of(2) && sessions == SessionScope::Connection)
                .for_each(give_own_schedules);
        }
        plan
    }
}

/// Gives each connection of an open loop its part of the rate as a schedule of its own, where a plan may have that.
fn give_own_schedules(class: &mut Class) {
    if class.on_miss == OnMiss::Ignore
        && class.lifetime.reconnect_every.is_none()
        && let Load::Open { rate, .. } = &mut class.load
        && let OpenRate::Constant(whole) = *rate
    {
        let micro_per_second = whole.micro_per_second / u64::from(class.connections);
        *rate = OpenRate::PerConnection(Rate { micro_per_second });
    }
}

/// The traffic.
fn plan_of(dice: &mut Dice, servers: u64, connections: u64) -> String {
    let mut toml = format!("connections = {connections}\ndepth = {}\n", dice.between(1, 8));
    if servers > 1 {
        let names = ["a:1", "b:2", "c:3"].map(|name| format!("'{name}'"))[..servers as usize].join(", ");
        let placement = dice.any(&["modulo", "ketama", "ketama-weighted", "round-robin", "random"]);
        toml += &format!("server = [{names}]\nplacement = '{placement}'\n");
    }
    toml += &mix_of(dice);
    toml += &match dice.below(4) {
        0 => format!("rate = {}\narrival = 'uniform'\n", dice.between(500, 20_000)),
        1 => format!("rate = {}\n", dice.between(500, 20_000)),
        // Without replies to wait for, a closed loop would send as fast as the world lets it.
        2 => format!("think = '{}us'\n", dice.between(200, 3_000)),
        _ if toml.contains("noreply") => "think = '300us'\n".to_owned(),
        _ => String::new(),
    };
    toml += &match dice.below(3) {
        0 => format!("time = '{}ms'\n", dice.between(100, 600)),
        1 => format!("requests = {}\n", dice.between(20, 1_500)),
        _ => {
            format!("time = '{}ms'\nrequests = {}\n", dice.between(100, 600), dice.between(20, 1_500))
        }
    };
    toml += &format!("warmup = '{}'\n", dice.any(&["0s", "0s", "20ms"]));
    toml += &format!("timeout = '{}ms'\n", dice.between(3, 200));
    toml += &dice.maybe(3, |dice| format!("drain = '{}ms'", dice.below(50)));
    toml += &dice.maybe(3, |_| "preload = false".to_owned());
    toml += &format!("keys = {}\n", dice.between(1, 200));
    toml += &format!("value-size = '{}'\n", dice.any(&["0", "10", "uniform:0,100", "uniform:0,9000", "300"]));
    toml +=
        &dice.maybe(2, |dice| format!("popularity = '{}'", dice.any(&["zipf:1", "sequential", "latest"])));
    toml += &dice.maybe(4, |_| "ttl = '1s'".to_owned());
    let ends = toml.len();
    toml += &dice.maybe(4, |dice| format!("calls-per-connection = {}", dice.between(1, 50)));
    toml += &dice.maybe(5, |dice| format!("reconnect-every = '{}ms'", dice.between(2, 100)));
    if toml.len() > ends {
        toml += &dice
            .maybe(3, |dice| format!("connections-total = {}", connections + dice.below(20 * connections)));
    }
    toml += &dice.maybe(5, |dice| format!("connect-rate = {}", dice.between(100, 5_000)));
    // A second class with the same traffic on connections of its own, and the same keys or others.
    toml += &dice.maybe(4, |dice| {
        let prefix = if dice.one_in(2) { "prefix = 'two'\n" } else { "" };
        format!(
            "[[class]]\nname = 'one'\n[[class]]\nname = 'two'\nconnections = {servers}\ndepth = 1\n{prefix}"
        )
    });
    toml
}

/// The same with a policy for lost connections and with replicas, in some of the plans that may have them. Drawn apart: the rest of a
/// world is as it is without.
fn with_policies(seed: u64, toml: String) -> String {
    let mut dice = Dice(DrawRng::from_draw(!seed));
    let says = |words: &[&str]| words.iter().any(|word| toml.contains(word));
    let (comes_and_goes, refuses_replicas) = (
        says(&["calls-per-connection", "connect-rate", "reconnect-every"]),
        says(&["cas=", "noreply", "on-miss"]) || !says(&["modulo", "ketama"]),
    );
    let mut more = String::new();
    if dice.one_in(3) && !comes_and_goes {
        more += &format!("reconnect = '{}'\n", dice.any(&["never", "while-one-stands"]));
    }
    if says(&["connections-total"]) && Dice(DrawRng::from_draw(!seed ^ 1)).one_in(2) {
        more += "reconnect = 'never'\n";
        more += if says(&["preload = false"]) { "" } else { "preload = false\n" };
    }
    let has_replicas = dice.one_in(2) && !refuses_replicas;
    if has_replicas {
        more += "replicas = 2\n";
    }
    match toml.rfind("name = 'two'\n") {
        // On the connections of the first class, or on its own.
        Some(at) if dice.one_in(2) && !has_replicas && !comes_and_goes => {
            let (before, two) = toml.split_at(at);
            let rest = two.split_once("depth = 1\n").map_or("", |(_, rest)| rest);
            format!("{more}{before}name = 'two'\nconnections-of = 'one'\n{rest}")
        }
        _ => more + &toml,
    }
}

/// The operations.
fn mix_of(dice: &mut Dice) -> String {
    let mut kinds = Vec::new();
    for kind in RETRIEVALS.into_iter().chain(CHANGES) {
        if dice.one_in(3) {
            kinds.push(kind);
        }
    }
    if kinds.is_empty() {
        kinds.push("get");
    }
    if kinds.contains(&"cas") && !kinds.contains(&"gets") {
        kinds.push("gets");
    }
    let weighted: Vec<String> = kinds.iter().map(|kind| format!("{kind}={}", dice.between(1, 5))).collect();
    let mut toml = format!("mix = '{}'\n", weighted.join(","));
    if kinds.contains(&"mget") {
        toml += &format!("multiget = {}\n", dice.between(1, 12));
    }
    if kinds.iter().any(|kind| CHANGES.contains(kind)) {
        toml += &dice.maybe(3, |_| "noreply = true".to_owned());
    }
    if kinds.iter().any(|kind| RETRIEVALS.contains(kind)) {
        toml += &dice.maybe(2, |_| "on-miss = 'set'".to_owned());
    }
    toml
}

/// One server and its script.
fn server_of(dice: &mut Dice, script_after: u64) -> CoreOptions {
    let span = |dice: &mut Dice| (dice.below(400 * MS), dice.between(1, 100 * MS));
    let mut stalls = Vec::new();
    let mut outages = Vec::new();
    for _ in 0..dice.below(3) {
        let (at_ns, for_ns) = span(dice);
        stalls.push(Stall { at_ns, for_ns });
    }
    for _ in 0..dice.below(4) {
        let (at_ns, for_ns) = span(dice);
        outages.push(Gone { at_ns, for_ns });
    }
    let drip = dice.one_in(3).then(|| Drip {
        piece_bytes: NonZeroUsize::new(dice.between(1, 7) as usize).unwrap(),
        pause_ns: dice.below(20 * US),
    });
    CoreOptions {
        service: match dice.below(3) {
            0 => Service::None,
            1 => Service::Fixed(dice.between(1, 100 * US)),
            _ => Service::Exponential(dice.between(1, 100 * US)),
        },
        stalls,
        outages,
        outage_forgets: dice.one_in(2),
        faults: Faults {
            drop_every: dice.fault(5, 20, 500),
            reset_every: dice.fault(4, 10, 500),
            cut_every: dice.fault(4, 10, 500),
            error_every: dice.fault(4, 2, 100),
            wrong_every: dice.fault(4, 2, 100),
        },
        drip,
        script_after,
        ..CoreOptions::default()
    }
}

/// What lies between.
fn network_of(dice: &mut Dice, servers: u64, connections: u64) -> SimOptions {
    let mut deaf = Vec::new();
    for _ in 0..dice.below(3) {
        let server = dice.below(servers) as usize;
        deaf.push(Deaf {
            server,
            at_ns: EPOCH_NS + dice.between(10, 400) * MS,
            for_ns: dice.between(1, 150) * MS,
        });
    }
    let connect_faults = (0..dice.below(3)).map(|_| ConnectFault {
        // Not before everybody has been there once.
        first: connections + servers + dice.below(10),
        every: dice.between(1, 5),
        count: dice.between(1, 20),
        trouble: match dice.below(3) {
            0 => ConnectTrouble::AtOnce(libc::EADDRNOTAVAIL),
            1 => ConnectTrouble::Later(libc::ENETUNREACH),
            _ => ConnectTrouble::Silence,
        },
    });
    let connect_faults = connect_faults.collect();
    SimOptions {
        connect_ns: dice.below(2 * MS),
        send_cost_ns: dice.below(5 * US),
        piece_bytes: if dice.one_in(3) { dice.between(1, 7) as usize } else { usize::MAX },
        pause: dice.one_in(5).then(|| (EPOCH_NS + dice.between(10, 300) * MS, dice.between(1, 100) * MS)),
        buffer_bytes: if dice.one_in(3) { dice.between(20, 5_000) as usize } else { usize::MAX },
        deaf,
        connect_faults,
        send_fault: dice.every(5, 20, 500).map(|every| (every, libc::EPIPE)),
        ..SimOptions::default().latency(dice.between(20 * US, 500 * US))
    }
}

/// Runs one and holds it to everything that holds of every run.
fn check(fault_plan: &FaultPlan) -> Outcome {
    let plan = fault_plan.plan();
    let pause_ns = fault_plan.options.pause.map_or(0, |(_, for_ns)| for_ns);
    // Each request may time out, and each attempt to connect, one after the other; a server that is gone is waited for.
    let tries = plan.stop.requests.unwrap_or(0) + plan.preload_stores();
    let bound_ns = 100 * SECOND + tries * plan.timeout.0;
    let outcome = simulate_within(plan.clone(), fault_plan.options.clone(), bound_ns);
    if outcome.notice.is_some() {
        assert!(fault_plan.disturbs_preload, "{:?}", outcome.notice);
        return outcome;
    }
    let window = outcome.end.data.times;
    let late_ns = outcome.end.data.times.drained_ns.saturating_sub(window.end_ns);
    assert!(late_ns <= plan.drain.0 + pause_ns + 25 * MS, "ended {late_ns} ns after the window");
    if let Some(time) = plan.stop.time {
        assert!(window.end_ns <= window.measure_ns + time.0);
    }
    let op_counts = outcome.op_counts(Phase::Measure);
    let ends_early = fault_plan.is_fatal
        || plan.stop.time.is_some()
        || plan.classes[0].lifetime.total.is_some()
        || plan.classes[0].reconnect != Reconnect::Always;
    if let Some(requests) = plan.stop.requests {
        assert!(op_counts.requests.offered() <= requests);
        assert!(
            ends_early || op_counts.requests.offered() == requests,
            "{} of {requests}",
            op_counts.requests.offered()
        );
    }
    assert_eq!(outcome.samples.len() as u64, op_counts.requests.ended());
    let is_closed = matches!(plan.classes[0].load, Load::Closed { .. });
    assert!(!is_closed || plan.stop.time.is_some() || ends_early || op_counts.requests.in_flight == 0);
    check_servers(&plan, &outcome);
    check_busy_lags(&plan, &outcome);
    outcome
}

/// The busy period of a request holds the request itself.
fn check_busy_lags(plan: &Plan, outcome: &Outcome) {
    for sample in &outcome.samples {
        let own_ns = plan.has_open_loop().then(|| sample.times.client_lag_ns());
        assert_eq!(sample.busy_lag_ns.is_some(), own_ns.is_some(), "{sample:?}");
        assert!(sample.busy_lag_ns >= own_ns, "{sample:?}");
    }
}

/// What the servers counted and what we counted of them.
fn check_servers(plan: &Plan, outcome: &Outcome) {
    let all = outcome.sum(|_, _| true);
    let of = |count: fn(&Counters) -> u64| outcome.counters.iter().map(count).sum::<u64>();
    assert!(of(|counters| counters.get_hits) >= all.keys.hit);
    assert!(of(|counters| counters.get_misses) >= all.keys.miss);
    assert!(of(|counters| counters.total_connections) >= outcome.connections().established);
    let answered: u64 = outcome.store.servers().iter().map(|server| server.answered).sum();
    let failed: u64 = outcome.store.servers().iter().map(|server| server.failed).sum();
    let class = &plan.classes[0];
    let is_split = plan.server_count() > 1 && plan.placement.is_by_key() && class.mix.contains(OpKind::Mget)
        || class.replicas > 1;
    if is_split {
        assert!(answered >= all.requests.completed());
    } else {
        assert_eq!((answered, failed), (all.requests.completed(), all.requests.failed()));
        assert_eq!(all.requests.wire_requests, all.requests.sent);
    }
}

/// Runs a seed, where sends are taken one by one or those of a turn together; says which it was if it fails.
fn run_seed(seed: u64, defers_sends: bool) -> Outcome {
    let mut fault_plan = FaultPlan::of(seed);
    fault_plan.options.defers_sends = defers_sends;
    catch_unwind(AssertUnwindSafe(|| check(&fault_plan))).unwrap_or_else(|panic| {
        let what = panic.downcast_ref::<String>().cloned();
        let what = what.or(panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default();
        let FaultPlan { toml, options, is_per_connection, .. } = &fault_plan;
        panic!(
            "seed {seed}: {what}\n\nthreads = 1\nwait = 'sleep'\nseed = 1\n{toml}\n\
             a session per connection: {is_per_connection}\n\nin this world:\n{options:#?}"
        );
    })
}

#[test]
fn books_balance_in_a_hundred_worlds() {
    let mut ended = [0; OutcomeClass::COUNT];
    let (mut began, mut shared) = (0, 0);
    let is_full = std::env::var("BRUNT_ACCURACY").is_ok_and(|value| value == "full");
    // Both ways, at full length; else by turns.
    for (seed, defers_sends) in (0..100)
        .flat_map(|seed| [(seed, false), (seed, true)])
        .filter(|(seed, defers_sends)| is_full || (seed % 2 == 1) == *defers_sends)
    {
        let outcome = run_seed(seed, defers_sends);
        shared += u32::from(FaultPlan::of(seed).toml.contains("connections-of"));
        began += u32::from(outcome.notice.is_none());
        let requests = outcome.requests();
        ended.iter_mut().zip(requests.outcomes).for_each(|(sum, count)| *sum += count);
    }
    // They are worth something only if everything happens in them.
    assert!(began >= if is_full { 180 } else { 90 }, "only {began} stored their keys");
    assert!(ended.iter().all(|count| *count > 25), "{ended:?}");
    assert!(shared > 3, "only {shared} of them share connections");
}

/// The same seed is the same run to the last nanosecond.
#[test]
fn worlds_are_deterministic() {
    for seed in [3, 14, 15, 92] {
        let (one, other) = (run_seed(seed, false), run_seed(seed, false));
        assert_eq!(one.samples, other.samples);
        assert_eq!(one.store.request_counts(), other.store.request_counts());
        assert_eq!(one.attempts, other.attempts);
    }
}
