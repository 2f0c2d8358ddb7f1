//! Under which names a run's counts are shown, and what has none of its own.
//!
//! Not the counts. Decided by the plan alone, so that no series comes or goes while a run goes on. Invariant: no run has more than
//! [`SERIES_MAX`] series, however many classes, servers and workers it has; the rest shares the name [`OTHER`].

use brunt_plan::op::{ClassId, OpId, OpKind, OpName};
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::plan::Plan;

/// What has no name of its own.
pub(super) const OTHER: &str = "other";
/// Series of a run at most.
pub(super) const SERIES_MAX: usize = 5_000;
const CLASSES_MAX: usize = 16;
const SERVERS_MAX: usize = 64;
const WORKERS_MAX: usize = 64;
/// Outages, their length, and what a server says of itself.
const SERIES_OF_SERVER: usize = 7;
/// Of a row beside its histograms: scheduled, sent, by outcome, keys by what became of them.
const COUNTS_OF_ROW: usize = 2 + OutcomeClass::COUNT + 3;
/// Response, without the client's part, service.
const HISTOGRAMS_OF_ROW: usize = 3;
/// What there is once: states, checks, bytes, events; a few more than there are.
const SERIES_OF_RUN: usize = 100;

/// The names of a run.
#[derive(Debug)]
pub(super) struct RunNames<'a> {
    /// Operations by class, as far as they have a row of their own; one more row is the rest.
    pub rows: Vec<RowName<'a>>,
    /// Is anything in the rest?
    pub has_rest: bool,
    /// The servers of the plan, and those that are asked for their stats.
    pub servers: Vec<String>,
    pub polled_servers: Vec<String>,
    /// How many series share those of [`OTHER`].
    pub merged: usize,
}

/// What the operations of a row are.
#[derive(Debug)]
pub(super) struct RowName<'a> {
    id: (usize, OpId),
    pub class: &'a str,
    pub op: OpName,
    pub is_retrieval: bool,
}

impl<'a> RunNames<'a> {
    /// The names of a plan whose histograms have this number of bounds.
    pub(super) fn of(plan: &'a Plan, bounds: usize) -> Self {
        let servers = server_names(plan.server_count(), |index| plan.server_name(index));
        let polled_servers =
            server_names(plan.polled_servers().len(), |index| plan.polled_server_name(index));
        // Its bounds, the rest, count and sum.
        let of_histogram = bounds + 3;
        let of_row = COUNTS_OF_ROW + HISTOGRAMS_OF_ROW * of_histogram;
        let of_servers = SERIES_OF_SERVER * servers.len();
        let room = SERIES_MAX.saturating_sub(SERIES_OF_RUN + of_histogram + of_servers + WORKERS_MAX);
        let rows_max = (room / of_row).max(1);
        let all = rows(plan);
        let is_enough = plan.classes.len() <= CLASSES_MAX && all.len() <= rows_max;
        let (classes, rows_max) =
            if is_enough { (CLASSES_MAX, rows_max) } else { (CLASSES_MAX - 1, rows_max - 1) };
        let name = |(class, op): &(usize, OpId)| RowName {
            id: (*class, *op),
            class: &plan.classes[*class].name,
            op: plan.op_name(*op),
            is_retrieval: op.is_retrieval(),
        };
        let rows: Vec<_> =
            all.iter().filter(|(class, _)| *class < classes).take(rows_max).map(name).collect();
        let merged_rows = all.len() - rows.len();
        let merged = merged_rows * of_row + (plan.server_count() - servers.len()) * SERIES_OF_SERVER;
        Self { rows, has_rest: merged_rows > 0, servers, polled_servers, merged }
    }

    /// The row of such operations of a class.
    pub(super) fn row_of(&self, class: ClassId, op: OpId) -> usize {
        let id = (usize::from(class), op);
        self.rows.iter().position(|row| row.id == id).unwrap_or(self.rows.len())
    }
}

/// The rows that a plan can have: kinds of the mix, what follows misses, what stores the data set.
fn rows(plan: &Plan) -> Vec<(usize, OpId)> {
    let mut all = Vec::new();
    for (index, class) in plan.classes.iter().enumerate() {
        let mut ops = class.ops();
        if plan.preload && !ops.contains(&OpKind::Set.into()) {
            ops.push(OpKind::Set.into());
        }
        all.extend(ops.into_iter().map(|op| (index, op)));
    }
    all
}

/// Servers by name, in their order. The plan does not name the one that is started for it.
fn server_names(count: usize, name: impl Fn(usize) -> Option<String>) -> Vec<String> {
    let own = if count > SERVERS_MAX { SERVERS_MAX - 1 } else { count };
    let names = (0..own).map(|index| name(index).unwrap_or_else(|| "embedded".to_owned()));
    names.chain((own < count).then(|| OTHER.to_owned())).collect()
}

/// The place of the name of a server.
pub(super) fn place(names: &[String], server: usize) -> usize {
    server.min(names.len() - 1)
}

/// The name of a worker; those that have none of their own are one.
pub(super) fn worker_name(worker: usize, workers: usize) -> Option<String> {
    (workers <= WORKERS_MAX || worker < WORKERS_MAX - 1).then(|| worker.to_string())
}
