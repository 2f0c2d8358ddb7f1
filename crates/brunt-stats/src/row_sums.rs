//! Sums over the measured ops of a run: all of them, by op and by class.
//!
//! A sum over the same (class, op) is made once: with one class the total is also the class's.

use crate::batch::batches;
use crate::measured_window::MeasuredWindow;
use crate::op_summary::{ClassSummary, OpRow, OpSummary};
use crate::request_counts::OpCounts;
use crate::stack_delay::StackDelay;
use crate::store::{IntervalStore, RowTotals};
use crate::window::WindowCounts;
use brunt_plan::op::{ClassId, OpId};
use brunt_plan::phase::Phase;
use brunt_plan::plan::{Class, Load, MeterKind, Plan};
use std::cell::RefCell;

/// Sums over (class, op) of the measured phase.
pub(crate) struct RowSums<'a> {
    plan: &'a Plan,
    store: &'a IntervalStore,
    window: &'a MeasuredWindow,
    stack_delay: StackDelay,
    /// What was summed up before, by the (class, op) that it holds: with one class the total is also the class's, with one
    /// kind of op also the kind's.
    known: RefCell<Vec<Known>>,
}

impl<'a> RowSums<'a> {
    /// `unread_ns`: what counts as the client's where too few requests have kernel timestamps.
    pub(crate) fn new(
        plan: &'a Plan,
        store: &'a IntervalStore,
        window: &'a MeasuredWindow,
        unread_ns: u64,
    ) -> Self {
        let stack_delay =
            StackDelay::of(store.meter(MeterKind::WithoutClient), store.meter(MeterKind::WireAndServer));
        let stack_delay = stack_delay.or_wake_up(unread_ns);
        Self { plan, store, window, stack_delay, known: RefCell::default() }
    }

    /// The row of everything that `of` selects. Counts and histograms cover the same ops: the recorders have a row for
    /// every (class, op) that they measure.
    pub(crate) fn sum(&self, of: impl Fn(ClassId, OpId) -> bool) -> OpSummary {
        let all = self.store.rows().map(|(class, op, _)| (class, op));
        let chosen: Vec<(ClassId, OpId)> = all.filter(|(class, op)| of(*class, *op)).collect();
        if let Some((_, known)) = self.known.borrow().iter().find(|(held, _)| *held == chosen) {
            return known.clone();
        }
        let sum = self.sum_anew(of);
        self.known.borrow_mut().push((chosen, sum.clone()));
        sum
    }

    fn sum_anew(&self, of: impl Fn(ClassId, OpId) -> bool) -> OpSummary {
        let mut totals = RowTotals::default();
        let (mut lag_ns, mut slots_ns) = (0, 0.0);
        for (class, _, row) in self.store.rows().filter(|(class, op, _)| of(*class, *op)) {
            totals.merge(row);
            if let Load::Closed { think } = self.plan.classes[usize::from(class)].load {
                let response = row.latencies.response.moments();
                lag_ns += row.client_lag_ns;
                slots_ns += response.sum as f64 + response.count as f64 * think.0 as f64;
            }
        }
        if !self.plan.has_open_loop() {
            // No request had to queue behind others that a schedule wanted earlier: what the client held is its own part.
            totals.latencies.least.merge(&totals.latencies.without_client);
        }
        let lag_fraction = if slots_ns > 0.0 { lag_ns as f64 / slots_ns } else { 0.0 };
        let mut counts = OpCounts::default();
        let mut in_window = WindowCounts::default();
        for entry in self.store.books.entries().filter(|entry| of(entry.class, entry.op)) {
            in_window.merge(&entry.in_window());
            if entry.phase == Phase::Measure {
                counts.merge(&entry.counts);
            }
        }
        counts.in_window = in_window;
        let batches = batches(&self.store.timeline, self.window, self.window.measure_ns, of);
        let quantiles = self.plan.quantiles();
        let stack_delay = self.stack_delay.clone();
        OpSummary::of(counts, totals, self.window, &batches, &quantiles, lag_fraction, stack_delay)
    }

    pub(crate) fn by_op(&self, of: impl Fn(ClassId) -> bool) -> Vec<OpRow> {
        let mut ops: Vec<OpId> = Vec::new();
        for (class, op, _) in self.store.rows() {
            if of(class) && !ops.contains(&op) {
                ops.push(op);
            }
        }
        let row = |op| OpRow {
            op,
            name: self.plan.op_name(op),
            summary: self.sum(|class, held| of(class) && held == op),
        };
        ops.into_iter().map(row).collect()
    }
}

/// The sum over these (class, op).
type Known = (Vec<(ClassId, OpId)>, OpSummary);

pub(crate) fn class_summaries(plan: &Plan, rows: &RowSums<'_>) -> Vec<ClassSummary> {
    let classes = plan.classes.iter().enumerate();
    let summary = |(index, class): (usize, &Class)| ClassSummary {
        class: index as ClassId,
        name: class.name.clone(),
        total: rows.sum(|held, _| usize::from(held) == index),
        ops: rows.by_op(|held| usize::from(held) == index),
    };
    classes.map(summary).collect()
}
