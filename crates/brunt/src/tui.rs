//! `--tui`: a run on the whole terminal while it goes on.
//!
//! Not what is drawn ([`drawing`]). The control thread puts up what there is to see four times a second; a thread of lower priority draws it and
//! reads keys, so that a slow terminal holds up neither the control thread nor a worker. Invariant: however a run ends, the terminal is as it
//! was before anything else is written there.

mod alternate_screen;
mod drawing;
mod heat;
mod last_second;

use crate::cli::ProgressFlags;
use crate::exit::Failure;
use crate::presentation::variable;
use crate::progress::{Expected, Tracker};
use crate::terminal::say;
use alternate_screen::{AlternateScreen, Input};
use brunt_report::layout::{Layout, TimeUnit};
use brunt_stats::measured_window::MeasuredWindow;
use brunt_stats::observer::{Event, Observer, Watch};
use brunt_stats::run_so_far::RunSoFar;
use drawing::{Switches, View, draw};
use heat::HeatHistory;
use last_second::LastSecond;
use rustix::process::setpriority_process;
use rustix::thread::gettid;
use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between two drawings.
const FRAME: Duration = Duration::from_millis(250);
/// How long keys are waited for before the end of the run is looked for.
const LOOK: Duration = Duration::from_millis(50);
/// Workers come first.
const NICE: i32 = 10;

/// Shows the runs of a command.
pub(crate) struct Tui {
    layout: Layout,
    stop: Arc<AtomicBool>,
    run: Option<ShownRun>,
}

/// One run.
struct ShownRun {
    label: String,
    tracker: Tracker,
    heat: HeatHistory,
    second: LastSecond,
    /// When the next view is due.
    due_ns: u64,
    board: Arc<Board>,
    drawer: Option<JoinHandle<()>>,
}

/// What the control thread puts up. Neither side holds it longer than it takes to move a view.
#[derive(Debug, Default)]
struct Board(Mutex<Latest>);

#[derive(Debug, Default)]
struct Latest {
    view: Option<Box<View>>,
    so_far: Option<Arc<RunSoFar>>,
    is_over: bool,
}

impl Board {
    fn lock(&self) -> MutexGuard<'_, Latest> {
        // Nothing that can panic happens while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tui {
    /// Refuses a standard error that has no screen. `stop` is what `q` sets.
    pub(crate) fn new(flags: &ProgressFlags, stop: Arc<AtomicBool>) -> Result<Self, Failure> {
        let is_dumb = variable("TERM").is_none_or(|term| term == "dumb");
        let reason = match (io::stderr().is_terminal(), is_dumb) {
            (false, _) => "standard error is not a terminal",
            (true, true) => "TERM names no terminal with a screen",
            (true, false) => {
                return Ok(Self { layout: flags.presentation().layout(true), stop, run: None });
            }
        };
        Err(Failure::usage(format!(
            "--tui: {reason}; use --progress 1s for a line a second, or --http 9090 for a page"
        )))
    }
}

impl Observer for Tui {
    fn watch(&self) -> Watch {
        Watch::SoFar
    }

    fn observe(&mut self, event: &Event<'_>) {
        if let Event::Run { plan, place, .. } = event {
            let board = Arc::<Board>::default();
            self.run = Some(ShownRun {
                label: place.label.clone(),
                tracker: Tracker::new(Expected::of(plan)),
                heat: HeatHistory::default(),
                second: LastSecond::default(),
                due_ns: 0,
                drawer: start(board.clone(), self.layout, self.stop.clone()),
                board,
            });
        }
        let Some(run) = &mut self.run else { return };
        match event {
            Event::Started(times) => {
                let window = MeasuredWindow::of(times);
                run.tracker.start(window);
                run.heat.start(&window);
            }
            Event::Interval(interval) => {
                run.tracker.add(interval);
                run.heat.add(interval);
                run.second.add(interval);
            }
            Event::Tick { now_ns, .. } => run.tick(*now_ns),
            Event::Second { so_far, .. } => {
                run.second.turn();
                run.board.lock().so_far = so_far.cloned();
            }
            // The terminal is given back before anything is printed.
            Event::Ended { .. } => self.run = None,
            _ => {}
        }
    }
}

impl ShownRun {
    /// Puts up a view where one is due.
    fn tick(&mut self, now_ns: u64) {
        self.tracker.tick(now_ns);
        self.heat.tick(now_ns);
        if now_ns < self.due_ns {
            return;
        }
        self.due_ns = now_ns + FRAME.as_nanos() as u64;
        let mut glance = self.tracker.glance(now_ns);
        // The heat map has it.
        glance.course.clear();
        let view = View {
            label: self.label.clone(),
            glance,
            last_second: self.tracker.last_second(now_ns),
            heat: self.heat.clone(),
            second: self.second.clone(),
        };
        self.board.lock().view = Some(Box::new(view));
    }
}

impl Drop for ShownRun {
    fn drop(&mut self) {
        self.board.lock().is_over = true;
        // A drawer that panicked has given the terminal back.
        self.drawer.take().map(JoinHandle::join);
    }
}

/// Starts the thread that draws; `None` where the terminal cannot be had, which is said.
fn start(board: Arc<Board>, layout: Layout, stop: Arc<AtomicBool>) -> Option<JoinHandle<()>> {
    let named = std::thread::Builder::new().name("brunt-tui".to_owned());
    let started = AlternateScreen::enter().and_then(|screen| {
        let switches = Switches::default();
        let mut drawer = Drawer { board, layout, stop, screen, switches, view: None, so_far: None };
        named.spawn(move || {
            // Where it is refused, it only comes no later than others.
            let _ = setpriority_process(Some(gettid()), NICE);
            drawer.draw_until_over();
        })
    });
    started.map_err(|error| say(format_args!("warning: --tui: cannot use the terminal: {error}"))).ok()
}

/// What the thread that draws holds.
struct Drawer {
    board: Arc<Board>,
    layout: Layout,
    stop: Arc<AtomicBool>,
    screen: AlternateScreen,
    switches: Switches,
    /// What is shown.
    view: Option<Box<View>>,
    so_far: Option<Arc<RunSoFar>>,
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

    /// Takes what was put up. Is the run over?
    fn take(&mut self) -> bool {
        let mut held = self.board.lock();
        if !held.is_over && !self.switches.is_frozen {
            self.view = held.view.take().or(self.view.take());
            self.so_far = held.so_far.take().or(self.so_far.take());
        }
        held.is_over
    }

    fn draw(&mut self) -> io::Result<()> {
        let Self { view, so_far, switches, layout, screen, .. } = self;
        let Some(view) = view else { return Ok(()) };
        let summary = so_far.as_ref().map(|so_far| so_far.summary());
        screen.draw(|area, buffer| draw(view, summary, switches, layout, area, buffer))
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
