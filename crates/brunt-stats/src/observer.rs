//! What those who watch a run are told of it while it goes on, and when it is over.
//!
//! Not how a run is made: that is the engine's and the binary's. An observer may print, draw or send; it is told on the control
//! thread, between two looks at the workers, and no worker knows of it. Invariant: of every run an observer is told [`Event::Run`] first,
//! but for notes, and [`Event::Ended`] last, whatever becomes of it; [`Event::Concluded`] comes behind the last run.

use crate::interval::Interval;
use crate::live_run::LiveRun;
use crate::period::Period;
use crate::run_times::RunTimes;
use crate::server_stats::Snapshot;
use crate::store::IntervalStore;
use crate::summary::Summary;
use brunt_plan::plan::Plan;
use brunt_plan::units::DurationNs;

/// Where a run is among those of its command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunPosition {
    /// How many runs there were before it.
    pub before: u64,
    /// How many runs there are, where that is known beforehand.
    pub of: Option<u64>,
    /// What tells it from the others, for a person; empty where it is the only one.
    pub label: String,
}

/// What an observer is told.
pub enum Event<'a> {
    /// Something that a user should know of the run to come, in one line.
    Note(&'a str),
    /// A run begins to connect, and then to store its data set.
    Run {
        /// What will run.
        plan: &'a Plan,
        /// Which run of its command it is.
        place: &'a RunPosition,
    },
    /// Every connection is established and every key is confirmed: the schedule begins. The window's end is `u64::MAX` where time is no bound,
    /// and when the run will be drained is not known. Comes a second time where the plan leaves open when the window begins.
    Started(RunTimes),
    /// A worker handed over what it recorded in 100 ms.
    Interval(&'a Interval),
    /// A period is over, of the length that the observer asks for.
    Period(&'a Period),
    /// What there is to see of the run: once when it begins, and after every tick. Comes to those that watch it live.
    Live {
        /// Nanoseconds on the run's clock.
        now_ns: u64,
        /// The run.
        run: &'a LiveRun,
        /// What was recorded up to now.
        recorded: &'a IntervalStore,
        /// The end of a second that is complete now.
        second_ns: Option<u64>,
    },
    /// A server said something of itself.
    Statistics {
        /// Its place among those that are asked.
        server: usize,
        /// What it said.
        snapshot: &'a Snapshot,
    },
    /// Time has passed: comes after every look at the workers, at least every 110 ms.
    Tick {
        /// Nanoseconds on the run's clock.
        now_ns: u64,
    },
    /// The run is over.
    Ended {
        /// What it came to; nothing where it failed.
        summary: Option<&'a Summary>,
    },
    /// All runs of a command that makes several are over. What they come to together is written for those that show it.
    Concluded {
        /// As `--html` writes it.
        html: &'a dyn Fn() -> Vec<u8>,
        /// As `--json` writes it.
        json: &'a dyn Fn() -> Vec<u8>,
    },
}

/// One that watches the runs of a command.
pub trait Observer {
    /// How long the periods are that it wants to be told of, if any.
    fn period(&self) -> Option<DurationNs> {
        None
    }

    /// Does it want [`Event::Live`]? Asked before each run.
    fn is_live(&self) -> bool {
        false
    }

    /// Is told of something.
    fn observe(&mut self, event: &Event<'_>);
}
