//! `--progress tui`: a run on the whole terminal while it goes on.
//!
//! Not what is drawn ([`drawing`]). The control thread sends what there is to see four times a second; a thread of lower priority draws it and
//! reads keys, so that a slow terminal holds up neither the control thread nor a worker. Invariant: however a run ends, the terminal is as it
//! was before anything else is written there.

mod alternate_screen;
mod drawing;

use crate::background_thread::start_background_thread;
use crate::cli::ProgressFlags;
use crate::exit::Failure;
use crate::presentation::variable;
use crate::progress::Glance;
use crate::terminal::say;
use alternate_screen::{AlternateScreen, Input};
use brunt_report::layout::{Layout, TimeUnit};
use brunt_stats::live_run::RunSoFar;
use brunt_stats::observer::{Event, Observer};
use drawing::{Switches, View, draw};
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between two drawings.
const FRAME: Duration = Duration::from_millis(250);
/// How long keys are waited for before the end of the run is looked for.
const LOOK: Duration = Duration::from_millis(50);

/// Shows the runs of a command.
pub(crate) struct Tui {
    layout: Layout,
    stop: Arc<AtomicBool>,
    /// Notes are not wanted.
    is_quiet: bool,
    run: Option<ShownRun>,
    /// Notes that wait for the terminal.
    notes: Vec<String>,
}

/// One run.
struct ShownRun {
    /// Which run of its command it is, or the last note.
    label: String,
    so_far: Option<Arc<RunSoFar>>,
    /// When the next view is due.
    due_ns: u64,
    /// To the thread that draws, which ends when this is dropped.
    views: Option<SyncSender<Box<View>>>,
    drawer: Option<JoinHandle<()>>,
}

impl Tui {
    /// Refuses a standard error that has no screen. `stop` is what `q` sets.
    pub(crate) fn new(flags: &ProgressFlags, stop: Arc<AtomicBool>) -> Result<Self, Failure> {
        let is_dumb = variable("TERM").is_none_or(|term| term == "dumb");
        let reason = match (io::stderr().is_terminal(), is_dumb) {
            (false, _) => "standard error is not a terminal",
            (true, true) => "TERM names no terminal with a screen",
            (true, false) => {
                let (layout, is_quiet) = (flags.presentation().layout(true), flags.quiet);
                return Ok(Self { layout, stop, is_quiet, run: None, notes: Vec::new() });
            }
        };
        Err(Failure::usage(format!(
            "--progress tui: {reason}; use --progress 1s for a line a second, or --http 9090 for a page"
        )))
    }
}

impl Observer for Tui {
    fn is_live(&self) -> bool {
        true
    }

    fn observe(&mut self, event: &Event<'_>) {
        match (event, &mut self.run) {
            (Event::Note(_), _) if self.is_quiet => {}
            (Event::Note(text), None) => say(format_args!("note: {text}")),
            (Event::Note(text), Some(shown)) => {
                shown.label = (*text).to_owned();
                self.notes.push(shown.label.clone());
            }
            (Event::Run { place, .. }, run) => {
                let (views, drawn) = sync_channel(1);
                let drawer = start(drawn, self.layout, self.stop.clone());
                let (label, views) = (place.label.clone(), Some(views));
                *run = Some(ShownRun { label, so_far: None, due_ns: 0, views, drawer });
            }
            (Event::Live { now_ns, run, recorded, second_ns }, Some(shown)) => {
                if let Some(at_ns) = second_ns.filter(|at_ns| *at_ns > 0) {
                    shown.so_far = Some(run.so_far(at_ns, recorded));
                }
                if *now_ns >= shown.due_ns {
                    shown.due_ns = now_ns + FRAME.as_nanos() as u64;
                    shown.put(Glance::of(run, recorded, *now_ns));
                }
            }
            // The terminal is given back before anything is printed.
            (Event::Ended { .. }, run) => {
                *run = None;
                self.notes.drain(..).for_each(|text| say(format_args!("note: {text}")));
            }
            _ => {}
        }
    }
}

impl ShownRun {
    fn put(&mut self, mut glance: Glance) {
        // The heat map has it.
        glance.course.clear();
        let view = View { label: self.label.clone(), glance, so_far: self.so_far.clone() };
        // Where the last one has not been taken yet, this one is not needed.
        self.views.as_ref().map(|views| views.try_send(Box::new(view)));
    }
}

impl Drop for ShownRun {
    fn drop(&mut self) {
        self.views = None;
        // A drawer that panicked has given the terminal back.
        self.drawer.take().map(JoinHandle::join);
    }
}

/// Starts the thread that draws; `None` where the terminal cannot be had, which is said.
fn start(views: Receiver<Box<View>>, layout: Layout, stop: Arc<AtomicBool>) -> Option<JoinHandle<()>> {
    let started = AlternateScreen::enter().and_then(|screen| {
        let switches = Switches::default();
        let mut drawer = Drawer { views, layout, stop, screen, switches, view: None };
        start_background_thread("brunt-tui", move || drawer.draw_until_over())
    });
    started
        .map_err(|error| say(format_args!("warning: --progress tui: cannot use the terminal: {error}")))
        .ok()
}

/// What the thread that draws holds.
struct Drawer {
    views: Receiver<Box<View>>,
    layout: Layout,
    stop: Arc<AtomicBool>,
    screen: AlternateScreen,
    switches: Switches,
    /// What is shown.
    view: Option<Box<View>>,
}

impl Drawer {
    /// Until the run is over or the user ends it: what is to be waited for then is said below what was on the terminal before, and a
    /// second Ctrl-C has its usual effect. A terminal that is gone ends the run as a signal does.
    fn draw_until_over(&mut self) {
        let mut due = Instant::now();
        while !self.take() && !self.stop.load(Ordering::Relaxed) && self.screen.is_shown() {
            let now = Instant::now();
            if now >= due {
                due = now + FRAME;
                if self.draw().is_err() {
                    self.stop.store(true, Ordering::Relaxed);
                    break;
                }
            }
            match self.screen.input(LOOK.min(due - now.min(due))) {
                Input::Nothing => {}
                Input::HungUp => self.stop.store(true, Ordering::Relaxed),
                key => {
                    self.press(key);
                    due = now;
                }
            }
        }
        self.screen.leave();
    }

    /// Takes a view, if there is one. Is the run over?
    fn take(&mut self) -> bool {
        match self.views.try_recv() {
            Ok(view) if !self.switches.is_frozen => self.view = Some(view),
            Ok(_) | Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => return true,
        }
        false
    }

    fn draw(&mut self) -> io::Result<()> {
        let Self { view, switches, layout, screen, .. } = self;
        let Some(view) = view else { return Ok(()) };
        screen.draw(|area, buffer| draw(view, switches, layout, area, buffer))
    }

    fn press(&mut self, key: Input) {
        let switches = &mut self.switches;
        match key {
            Input::CTRL_C | Input::Key(b'q') => self.end(),
            Input::Key(b'?') => switches.has_help = !switches.has_help,
            Input::Key(b'h') => switches.is_without_heat = !switches.is_without_heat,
            Input::Key(b'o') => switches.op += 1,
            Input::Key(b'f') => switches.is_frozen = !switches.is_frozen,
            Input::Key(b'u') => {
                let units = TimeUnit::ALL.map(Some);
                let next = units.iter().position(|unit| *unit == switches.unit).map_or(0, |place| place + 1);
                switches.unit = units.get(next).copied().flatten();
            }
            _ => {}
        }
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.screen.leave();
        say("note: the run ends: replies are waited for, then the report follows");
    }
}
