//! Under which names a run's counts are shown, and what has none of its own.
//!
//! Not the counts. Decided by the plan alone, so that no series comes or goes while a run goes on. Invariant: no run has more than
//! [`SERIES_MAX`] series, however many classes, servers and workers it has; the rest shares the name [`OTHER`].

use brunt_plan::op::{ClassId, OpId, OpKind};
use brunt_plan::op_name::OpName;
use brunt_plan::outcome::OutcomeClass;
use brunt_plan::plan::Plan;

/// What has no name of its own.
pub(crate) const OTHER: &str = "other";
/// Series of a run at most.
pub(crate) const SERIES_MAX: usize = 5_000;
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
#[derive(Clone, Debug)]
pub(crate) struct RunNames {
    pub rows: Rows,
    /// Those of the plan.
    pub servers: ServerNames,
    /// Those that are asked for their statistics.
    pub polled_servers: ServerNames,
    /// How many series share those of [`OTHER`].
    pub merged: usize,
}

impl RunNames {
    /// The names of a plan whose histograms have this number of bounds.
    pub(crate) fn of(plan: &Plan, bounds: usize) -> Self {
        let place = |index: usize| plan.server_name(index);
        let servers = ServerNames::of((0..plan.server_count()).map(place).collect());
        let witness = |index: usize| plan.polled_server_name(index);
        let polled_servers = ServerNames::of((0..plan.polled_servers().len()).map(witness).collect());
        // Its bounds, the rest, count and sum.
        let of_histogram = bounds + 3;
        let of_row = COUNTS_OF_ROW + HISTOGRAMS_OF_ROW * of_histogram;
        let of_servers = SERIES_OF_SERVER * servers.len();
        let room = SERIES_MAX.saturating_sub(SERIES_OF_RUN + of_histogram + of_servers + WORKERS_MAX);
        let rows = Rows::of(plan, (room / of_row).max(1));
        let merged = rows.merged * of_row + (plan.server_count() - servers.len()) * SERIES_OF_SERVER;
        Self { rows, servers, polled_servers, merged }
    }
}

/// What the operations of a row are.
#[derive(Clone, Debug)]
pub(crate) struct RowName {
    pub class: String,
    pub op: OpName,
    pub is_retrieval: bool,
}

/// The rows of operations, by class and op.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    /// Those with a name of their own; one more is the rest.
    names: Vec<RowName>,
    /// By class, then op, the row.
    places: Vec<usize>,
    /// How many ops a class can have.
    ops: usize,
    /// How many are in the rest.
    merged: usize,
}

impl Rows {
    /// The rows that a plan can have, up to the limit: kinds of the mix, what follows misses, what stores the data set.
    fn of(plan: &Plan, rows_max: usize) -> Self {
        let mut all = Vec::new();
        for (index, class) in plan.classes.iter().enumerate() {
            let mut ops = class.ops();
            if plan.preload && !ops.contains(&OpKind::Set.into()) {
                ops.push(OpKind::Set.into());
            }
            all.extend(ops.into_iter().map(|op| (index, op)));
        }
        let is_enough = plan.classes.len() <= CLASSES_MAX && all.len() <= rows_max;
        let (classes, rows) =
            if is_enough { (CLASSES_MAX, rows_max) } else { (CLASSES_MAX - 1, rows_max - 1) };
        let own: Vec<_> = all.iter().filter(|(class, _)| *class < classes).take(rows).collect();
        let ops = OpId::count(plan.commands.len());
        let mut places = vec![own.len(); plan.classes.len() * ops];
        for (place, (class, op)) in own.iter().enumerate() {
            places[class * ops + op.index()] = place;
        }
        let name = |(class, op): &&(usize, OpId)| RowName {
            class: plan.classes[*class].name.clone(),
            op: plan.op_name(*op),
            is_retrieval: op.is_retrieval(),
        };
        Self { names: own.iter().map(name).collect(), places, ops, merged: all.len() - own.len() }
    }

    /// The row of such operations of a class.
    pub(crate) fn of_op(&self, class: ClassId, op: OpId) -> usize {
        self.places[usize::from(class) * self.ops + op.index()]
    }

    /// How many there are, the rest among them.
    pub(crate) fn len(&self) -> usize {
        self.names.len() + 1
    }

    /// Is anything in the rest?
    pub(crate) fn has_rest(&self) -> bool {
        self.merged > 0
    }

    /// What each is, in order; the last is the rest.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Option<&RowName>> {
        self.names.iter().map(Some).chain([None])
    }
}

/// Servers by name.
#[derive(Clone, Debug)]
pub(crate) struct ServerNames(Vec<String>);

impl ServerNames {
    /// In their order. The plan does not name the one that is started for it.
    fn of(names: Vec<Option<String>>) -> Self {
        let mut names: Vec<String> =
            names.into_iter().map(|name| name.unwrap_or_else(|| "embedded".to_owned())).collect();
        if names.len() > SERVERS_MAX {
            names.truncate(SERVERS_MAX - 1);
            names.push(OTHER.to_owned());
        }
        Self(names)
    }

    /// The place of the name of a server.
    pub(crate) fn of_place(&self, server: usize) -> usize {
        server.min(self.0.len() - 1)
    }

    /// How many names there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// In order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

/// The name of a worker; those that have none of their own are one.
pub(crate) fn worker_name(worker: usize, workers: usize) -> Option<String> {
    (workers <= WORKERS_MAX || worker < WORKERS_MAX - 1).then(|| worker.to_string())
}
