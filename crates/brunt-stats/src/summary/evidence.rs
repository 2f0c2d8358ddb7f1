//! Gathers what the checks look at from the record of a run and its sums.

use super::all_connections;
use crate::agent::AgentRecord;
use crate::interval::SLICE_NS;
use crate::measured_window::MeasuredWindow;
use crate::op_summary::{ClassSummary, OpRow, OpSummary};
use crate::request_counts::{CountEntry, RequestCounts};
use crate::run_data::RunData;
use crate::run_record::RunRecord;
use crate::steady::Steadiness;
use crate::store::IntervalStore;
use crate::verdict::little::{ClosedLoop, InSystem};
use crate::verdict::{
    Evidence, FaultEvidence, LagRow, LastHalf, LostAgent, OpenLoop, RequestTarget, server_evidence,
};
use brunt_plan::op::{ClassId, OpKind};
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::phase::Phase;
use brunt_plan::plan::{Class, Load, OnMiss, Plan, Transport};
use std::borrow::Cow;

/// Gathers what the checks look at.
pub(super) fn evidence<'a>(
    record: &'a RunRecord,
    window: &MeasuredWindow,
    total: &OpSummary,
    classes: &[ClassSummary],
    steady: &Steadiness,
) -> Evidence<'a> {
    let RunRecord { plan, run, .. } = record;
    let store = &run.intervals;
    let books: Vec<CountEntry> = store.books.entries().collect();
    let is_earlier = record.preload.is_some_and(|preload| preload.is_earlier);
    Evidence {
        run: Cow::Borrowed(run),
        asked: asked(record, window, total.requests.offered() + keys_beside(plan, classes)),
        open_loop: open_loop(plan, classes),
        judgement: record.judgement.clone(),
        last_half: last_half(plan, store, window),
        lag_rows: LagRow::all(plan, total, classes),
        shown: plan.shown_quantiles(),
        intervals: total.intervals.clone(),
        slices: window.duration_ns() / SLICE_NS,
        until: None,
        steady: steady.clone(),
        calibration: record.calibration.clone(),
        busiest_rate: total.rate.busiest(),
        sent: total.requests.sent,
        completed: total.requests.completed(),
        unacknowledged: total.requests.outcome(OutcomeClass::Unacknowledged),
        errors: total.requests.outcome(OutcomeClass::Error),
        timeouts: total.requests.outcome(OutcomeClass::Timeout),
        lost: total.requests.outcome(OutcomeClass::Lost),
        abandoned: total.requests.abandoned,
        down_servers: Vec::new(),
        outages: Vec::new(),
        steady_beside: Steadiness::default(),
        measure_ns: window.measure_ns,
        window_ns: window.duration_ns(),
        lost_agent: record.agents.iter().find_map(|agent| lost_agent(agent, window)),
        is_fleet: !record.agents.is_empty(),
        servers: server_evidence(plan, is_earlier, &books, &run.server_records, window)
            .without_replicas(run.counts.replicas_missed),
        books,
        connections: all_connections(store),
        faults: fault_evidence(run),
        is_verified: record.values_checked,
        is_verify_asked: plan.verify.is_some(),
        is_by_unix_socket: plan.servers().iter().all(|server| server.transport == Transport::Unix),
        is_by_udp: plan.uses_transport(Transport::Udp),
        has_own_commands_only: plan.classes.iter().all(has_own_commands_only),
        is_peer_verified: plan.uses_transport(Transport::Tls).then_some(!plan.tls.is_insecure),
        connects_in_schedule: [Phase::Warmup, Phase::Measure, Phase::Drain]
            .iter()
            .any(|phase| store.connections[*phase as usize].begun > 0),
        in_system: InSystem {
            integral: run.counts.occupancy.integral as f64,
            sum: run.counts.occupancy.sum as f64,
            window_ns: window.duration_ns(),
        },
        closed_loops: closed_loops(record, window),
    }
}

/// Are the user's own commands all that the class sends?
fn has_own_commands_only(class: &Class) -> bool {
    OpKind::ALL.into_iter().all(|op| class.mix.contains(op) == (op == OpKind::Raw))
}

/// Requests of the open-loop classes; `None` without such a class.
fn open_loop(plan: &Plan, classes: &[ClassSummary]) -> Option<OpenLoop> {
    let is_open =
        |class: &&ClassSummary| matches!(plan.classes[usize::from(class.class)].load, Load::Open { .. });
    plan.has_open_loop().then(|| {
        let mut open = OpenLoop { scheduled: 0, unsent: 0, abandoned: 0 };
        for class in classes.iter().filter(is_open) {
            open.scheduled += class.total.requests.offered();
            open.unsent += class.total.requests.unsent;
            open.abandoned += class.total.requests.abandoned;
        }
        open
    })
}

fn fault_evidence(run: &RunData) -> FaultEvidence {
    let is_of_schedule = |phase| matches!(phase, Phase::Warmup | Phase::Measure | Phase::Drain);
    let of_schedule = run.intervals.books.entries().filter(|entry| is_of_schedule(entry.phase));
    FaultEvidence {
        table: run.intervals.faults.clone(),
        measure_ns: run.times.measure_ns,
        sent: of_schedule.map(|entry| entry.counts.requests.sent).sum(),
    }
}

/// The classes whose slots are always taken. Where connections come and go, or are lost, slots wait for them; a follow-up
/// shares a slot; without a reply there is no response time; and where the run ends by number, or by hand, workers do not
/// end together.
fn closed_loops(record: &RunRecord, window: &MeasuredWindow) -> Vec<ClosedLoop> {
    let RunRecord { plan, run, .. } = record;
    let store = &run.intervals;
    let ends_by_time = plan.stop.time.is_some_and(|time| window.duration_ns() >= time.0);
    let is_disturbed = store.connections.iter().any(|counts| counts.lost > 0) || run.interrupted;
    if !ends_by_time || plan.stop.requests.is_some() || is_disturbed {
        return Vec::new();
    }
    let is_regular =
        |class: &Class| !class.lifetime.is_planned() && !class.noreply && class.on_miss == OnMiss::Ignore;
    let closed = plan.classes.iter().enumerate().filter(|(_, class)| is_regular(class));
    let closed = closed.filter_map(|(index, class)| match class.load {
        Load::Closed { think } => Some((index, class, think.0)),
        Load::Open { .. } => None,
    });
    let of_class = |(index, class, think_ns): (usize, &Class, u64)| {
        let mut held = ClosedLoop {
            class: class.name.clone(),
            slots: plan.in_flight_slots(class),
            think_ns,
            late_ns: run.counts.window_late_ns,
            window_ns: window.duration_ns(),
            ..ClosedLoop::default()
        };
        for (_, _, row) in store.rows().filter(|(of, _, _)| usize::from(*of) == index) {
            for histogram in [&row.latencies.response, &row.latencies.failed] {
                let moments = histogram.moments();
                held.ended += moments.count;
                held.response_ns += moments.sum as f64;
            }
        }
        for book in store.books.entries().filter(|book| usize::from(book.class) == index) {
            let counts = book.in_window();
            held.response_ns += (counts.inside_us as f64 - counts.behind_us as f64) * 1e3;
        }
        held
    };
    closed.map(of_class).collect()
}

/// Of multi-gets of windows each key is one of the requests that a plan asks for: how many there were beside the first ones, of those that
/// have ended.
fn keys_beside(plan: &Plan, classes: &[ClassSummary]) -> u64 {
    let has_window =
        |class: &&ClassSummary| plan.classes[usize::from(class.class)].popularity.window().is_some();
    let multigets = classes.iter().filter(has_window).flat_map(|class| &class.ops);
    let beside = |row: &OpRow| {
        let RequestCounts { scheduled, unsent, in_flight, .. } = row.summary.requests;
        row.summary.keys.requested.saturating_sub(scheduled.saturating_sub(unsent + in_flight))
    };
    multigets.filter(|row| row.op.kind() == OpKind::Mget).map(beside).sum()
}

/// The number of requests that the plan asks for, and how many of them there were.
fn asked(record: &RunRecord, window: &MeasuredWindow, issued: u64) -> Option<RequestTarget> {
    let stop = &record.plan.stop;
    let requests = stop.requests.filter(|_| !record.run.interrupted)?;
    Some(RequestTarget {
        requests,
        issued,
        is_time_up: stop.time.is_some_and(|time| window.duration_ns() >= time.0),
        connections_end: record.plan.classes.iter().any(|class| class.lifetime.total.is_some()),
    })
}

fn last_half(plan: &Plan, store: &IntervalStore, window: &MeasuredWindow) -> Option<LastHalf> {
    let is_offered = |class: &Class| matches!(&class.load, Load::Open { rate, .. } if rate.is_known());
    if !plan.classes.iter().any(is_offered) || window.duration_ns() == 0 {
        return None;
    }
    let half_ns = window.measure_ns + window.duration_ns() / 2;
    let seconds = (window.end_ns - half_ns) as f64 / 1e9;
    let (from_ns, to_ns) = (half_ns - window.measure_ns, window.duration_ns());
    let offered: f64 = plan
        .classes
        .iter()
        .map(|class| match &class.load {
            Load::Open { rate, .. } => rate.requests_between(from_ns, to_ns),
            Load::Closed { .. } => 0.0,
        })
        .sum();
    let of_class = |class: ClassId| is_offered(&plan.classes[usize::from(class)]);
    let answered = store.timeline.answered_within(half_ns..window.end_ns, window.end_ns, of_class);
    Some(LastHalf { offered, answered, seconds })
}

/// An agent that was lost.
fn lost_agent(agent: &AgentRecord, window: &MeasuredWindow) -> Option<LostAgent> {
    let after_ns = |after_ns: u64| (window.start_ns + after_ns).saturating_sub(window.measure_ns);
    Some(LostAgent {
        name: agent.name.clone(),
        reason: agent.lost.clone()?,
        after_ns: agent.lost_after_ns.map(after_ns),
        after_interruption: agent.lost_after_interruption,
    })
}
