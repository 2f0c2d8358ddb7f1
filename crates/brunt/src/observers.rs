//! Those who watch the runs of a command, and how they are told.
//!
//! Not what they make of it. Told on the control thread of a run, between two looks at the workers. Invariant: each is told everything,
//! and periods of the length that it asks for; where none asks, none are added up.

use crate::cli::ProgressFlags;
use crate::exit::Failure;
use crate::http::{HttpView, written};
use crate::progress::Progress;
use crate::terminal::say;
use crate::tui::Tui;
use brunt_engine::run::RunEvent;
use brunt_plan::objective::Objective;
use brunt_plan::plan::Plan;
use brunt_plan::units::DurationNs;
use brunt_stats::live_run::LiveRun;
use brunt_stats::observer::{Event, Observer, Period, Periods, RunPosition};
use brunt_stats::recorder::Layout;
use brunt_stats::run_record::RunRecord;
use brunt_stats::store::IntervalStore;
use brunt_stats::summary::Summary;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The observers of a command.
pub(crate) struct Observers<'a>(Vec<Box<dyn Observer + 'a>>);

impl<'a> Observers<'a> {
    /// Those that the flags ask for. Objectives are those of the command, for observers that count up to their bounds.
    /// `stop` is what a user ends the command by.
    pub(crate) fn of(
        flags: &ProgressFlags,
        objectives: &[Objective],
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, Failure> {
        let mut observers = Self(vec![Box::new(Progress::new(flags))]);
        if flags.has_tui() {
            observers.0.push(Box::new(Tui::new(flags, stop.clone())?));
        }
        if let Some(address) = flags.http {
            let view = HttpView::open(address, objectives)?;
            match view.endpoint.note() {
                (note, true) => say(format_args!("note: {note}")),
                (note, false) => observers.note(&note),
            }
            observers.0.push(Box::new(view));
        }
        Ok(observers)
    }

    /// This one alone.
    pub(crate) fn only(observer: impl Observer + 'a) -> Self {
        Self(vec![Box::new(observer)])
    }

    /// One more.
    pub(crate) fn add(&mut self, observer: impl Observer + 'a) {
        self.0.push(Box::new(observer));
    }

    /// Says what should be known of the run to come, or of the one that goes on.
    pub(crate) fn note(&mut self, text: &str) {
        self.tell(&Event::Note(text));
    }

    /// All runs are over and come to this.
    pub(crate) fn conclude(
        &mut self,
        html: impl Fn(&mut dyn Write) -> io::Result<()>,
        json: impl Fn(&mut dyn Write) -> io::Result<()>,
    ) {
        self.tell(&Event::Concluded { html: &|| written(&html), json: &|| written(&json) });
    }

    /// A run begins, of which this is known beforehand.
    pub(crate) fn begin<'b>(
        &'b mut self,
        plan: &Plan,
        place: &RunPosition,
        beforehand: impl FnOnce() -> RunRecord,
    ) -> ObservedRun<'b, 'a> {
        let of_length = |every: DurationNs| Periods::new(Layout::of(plan), every.0);
        let periods = self.0.iter().map(|observer| observer.period().map(of_length)).collect();
        self.tell(&Event::Run { plan, place });
        let live = self.is_live().then(|| LiveRun::new(beforehand()));
        if let Some(run) = &live {
            let recorded = &IntervalStore::new(&Layout::of(plan));
            self.tell(&Event::Live { now_ns: 0, run, recorded, second_ns: Some(0) });
        }
        ObservedRun { observers: self, periods, live }
    }

    fn is_live(&self) -> bool {
        self.0.iter().any(|observer| observer.is_live())
    }

    fn tell(&mut self, event: &Event<'_>) {
        self.0.iter_mut().for_each(|observer| observer.observe(event));
    }
}

/// A run that is watched.
pub(crate) struct ObservedRun<'b, 'a> {
    observers: &'b mut Observers<'a>,
    /// Of each observer, where it asks for any.
    periods: Vec<Option<Periods>>,
    /// Where any watches it.
    live: Option<LiveRun>,
}

impl ObservedRun<'_, '_> {
    /// The control thread sees something.
    pub(crate) fn observe(&mut self, observed: &RunEvent<'_>) {
        match observed {
            RunEvent::Started(known) => {
                self.periods.iter_mut().flatten().for_each(|periods| periods.start(known.times));
                self.live.iter_mut().for_each(|live| live.start(known));
                self.observers.tell(&Event::Started(known.times));
            }
            RunEvent::Interval(interval) => {
                self.periods.iter_mut().flatten().for_each(|periods| periods.push(interval));
                self.live.iter_mut().for_each(|live| live.push(interval));
                self.observers.tell(&Event::Interval(interval));
            }
            RunEvent::Note(note) => self.observers.note(note),
            RunEvent::Statistics { server, snapshot } => {
                self.live.iter_mut().for_each(|live| live.push_stats(*server, snapshot));
            }
            RunEvent::Tick { now_ns, intervals } => {
                self.observers.tell(&Event::Tick { now_ns: *now_ns });
                self.tell_periods(|periods| periods.take(*now_ns));
                if let Some(live) = &mut self.live {
                    let second_ns = live.tick(*now_ns);
                    let (now_ns, run, recorded) = (*now_ns, &*live, *intervals);
                    self.observers.tell(&Event::Live { now_ns, run, recorded, second_ns });
                }
            }
        }
    }

    /// The run is over: what it came to, unless it failed.
    pub(crate) fn end(mut self, summary: Option<&Summary>) {
        if summary.is_some() {
            self.tell_periods(Periods::take_first);
        }
        self.observers.tell(&Event::Ended { summary });
    }

    fn tell_periods(&mut self, take: impl Fn(&mut Periods) -> Option<Period>) {
        for (observer, periods) in self.observers.0.iter_mut().zip(&mut self.periods) {
            let Some(periods) = periods else { continue };
            while let Some(period) = take(periods) {
                observer.observe(&Event::Period(&period));
            }
        }
    }
}
