//! Those who watch the runs of a command, and how they are told.
//!
//! Not what they make of it. Told on the control thread of a run, between two looks at the workers. Invariant: each is told everything,
//! and periods of the length that it asks for; where none asks, none are added up.

use crate::cli::ProgressFlags;
use crate::exit::Failure;
use crate::http::HttpView;
use crate::progress::Progress;
use crate::terminal::say;
use crate::tui::Tui;
use brunt_engine::run::RunEvent;
use brunt_plan::objective::Objective;
use brunt_plan::plan::Plan;
use brunt_plan::units::DurationNs;
use brunt_stats::measured_window::MeasuredWindow;
use brunt_stats::observer::{Event, Observer, RunPosition, Watch};
use brunt_stats::period::{Period, Periods};
use brunt_stats::recorder::Layout;
use brunt_stats::run_record::RunRecord;
use brunt_stats::run_so_far::RunSeconds;
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
        if flags.tui {
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

    /// Says what should be known of the run to come.
    pub(crate) fn note(&mut self, text: &str) {
        self.tell(&Event::Note(text));
    }

    /// All runs are over and come to this; each of the two is asked for only where anyone shows it.
    pub(crate) fn conclude(
        &mut self,
        html: impl FnOnce(&mut dyn Write) -> io::Result<()>,
        json: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) {
        if self.watch() > Watch::Nothing {
            let (mut page, mut result) = (Vec::new(), Vec::new());
            // Memory takes everything.
            if html(&mut page).and_then(|()| json(&mut result)).is_ok() {
                self.tell(&Event::Concluded { html: &page, json: &result });
            }
        }
    }

    /// A run begins, of which this is known beforehand.
    pub(crate) fn begin<'b>(
        &'b mut self,
        plan: &Plan,
        server: &str,
        place: &RunPosition,
        beforehand: impl FnOnce() -> RunRecord,
    ) -> ObservedRun<'b, 'a> {
        let of_length = |every: DurationNs| Periods::new(Layout::of(plan), every.0);
        let periods = self.0.iter().map(|observer| observer.period().map(of_length)).collect();
        let seconds = (self.watch() > Watch::Nothing).then(|| RunSeconds::new(beforehand()));
        self.tell(&Event::Run { plan, server, place });
        ObservedRun { observers: self, periods, seconds }
    }

    /// What any of them asks for.
    fn watch(&self) -> Watch {
        self.0.iter().map(|observer| observer.watch()).max().unwrap_or(Watch::Nothing)
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
    /// Where any asks for them.
    seconds: Option<RunSeconds>,
}

impl ObservedRun<'_, '_> {
    /// The control thread sees something.
    pub(crate) fn observe(&mut self, observed: &RunEvent<'_>) {
        match observed {
            RunEvent::Started(known) => {
                self.periods
                    .iter_mut()
                    .flatten()
                    .for_each(|periods| periods.start(MeasuredWindow::of(&known.times)));
                self.seconds.iter_mut().for_each(|seconds| seconds.start(known));
                self.observers.tell(&Event::Started(known.times));
            }
            RunEvent::Interval(interval) => {
                self.periods.iter_mut().flatten().for_each(|periods| periods.push(interval));
                self.seconds.iter_mut().for_each(|seconds| seconds.told(interval));
                self.observers.tell(&Event::Interval(interval));
            }
            RunEvent::Statistics { server, snapshot } => {
                self.seconds.iter_mut().for_each(|seconds| seconds.hear(*server, snapshot));
                self.observers.tell(&Event::Statistics { server: *server, snapshot });
            }
            RunEvent::Tick { now_ns, intervals } => {
                self.observers.tell(&Event::Tick { now_ns: *now_ns });
                self.tell_periods(|periods| periods.take(*now_ns));
                self.tell_second(*now_ns, intervals);
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

    /// Tells of a second that is complete now. Nothing is copied where nobody looks.
    fn tell_second(&mut self, now_ns: u64, recorded: &IntervalStore) {
        let Some(seconds) = &mut self.seconds else { return };
        let Some(at_ns) = seconds.take(now_ns) else { return };
        let is_seen = self.observers.watch() == Watch::SoFar;
        let so_far = is_seen.then(|| Arc::new(seconds.so_far(at_ns, recorded)));
        self.observers.tell(&Event::Second { at_ns, recorded, so_far: so_far.as_ref() });
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
