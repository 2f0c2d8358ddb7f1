//! Live progress on standard error: notes before a run, and while it goes on one line that is redrawn on a terminal, or a plain line at
//! times.
//!
//! Drawn by the control thread between two looks at the workers; no worker knows of it. What there is to see is a [`Glance`], a function of the
//! run, what was recorded and the instant; it does not depend on how often anyone looked. Invariants: on a terminal the line is gone before
//! anything else is written there; a line is never wider than it was allowed to be: what does not fit is left out from the end, where the least
//! important part is.

use crate::cli::{ProgressChoice, ProgressFlags};
use crate::presentation::{is_coloured, variable};
use crate::terminal::{columns_of, say};
use brunt_plan::phase::Phase;
use brunt_plan::quantile::Quantile;
use brunt_report::layout::BarScale;
use brunt_report::layout::Layout;
use brunt_report::layout::{Line, Span, Style, painted};
use brunt_report::quantity;
use brunt_stats::live_run::SETTLE_NS;
use brunt_stats::live_run::{LiveRun, Second};
use brunt_stats::observer::{Event, Observer};
use brunt_stats::store::IntervalStore;
use brunt_stats::window::RunTimes;
use std::io::{self, IsTerminal, Write};

/// Five times a second: fast enough to look alive, slow enough to read.
const REDRAW_NS: u64 = 200_000_000;
/// Plain lines are read by programs, and by people with wide windows.
const WIDTH_PLAIN: usize = 200;
/// Back to the first column, and nothing behind it.
const CLEAR: &str = "\r\x1b[K";

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProgressStyle {
    /// One line on a terminal.
    Redrawn { colour: bool },
    /// A line of its own every so often.
    Lines { every_ns: u64 },
}

impl ProgressStyle {
    /// By the terminal, and the environment variables as far as they are set; `None` where no progress is shown.
    fn of(
        flags: &ProgressFlags,
        is_terminal: bool,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Option<Self> {
        let is_dumb = variable("TERM").is_some_and(|term| term == "dumb");
        match flags.progress {
            Some(ProgressChoice::Lines(every)) => Some(Self::Lines { every_ns: every.0 }),
            Some(ProgressChoice::Off | ProgressChoice::Tui) => None,
            None if flags.quiet || !is_terminal || is_dumb => None,
            None => Some(Self::Redrawn { colour: is_coloured(flags.layout.color, is_terminal, variable) }),
        }
    }
}

/// The progress of the runs of a command.
#[derive(Debug)]
pub(crate) struct Progress {
    style: Option<ProgressStyle>,
    /// Notes are not wanted, or have another place.
    is_quiet: bool,
    layout: Layout,
    /// That of the present run.
    line: Option<ProgressLine>,
}

/// The progress of one run.
#[derive(Debug)]
struct ProgressLine {
    style: ProgressStyle,
    layout: Layout,
    /// What is before every line; may be empty.
    label: String,
    /// When the next line is due; 0 before the first look.
    due_ns: u64,
    is_drawn: bool,
}

impl Progress {
    /// As the flags and the terminal have it.
    pub(crate) fn new(flags: &ProgressFlags) -> Self {
        let style = ProgressStyle::of(flags, io::stderr().is_terminal(), &variable);
        let layout = flags.presentation().layout(true);
        Self { style, is_quiet: flags.quiet || flags.has_tui(), layout, line: None }
    }
}

impl Observer for Progress {
    fn is_live(&self) -> bool {
        self.style.is_some()
    }

    fn observe(&mut self, event: &Event<'_>) {
        match (event, &mut self.line) {
            (Event::Note(text), line) if !self.is_quiet => {
                line.iter_mut().for_each(ProgressLine::clear);
                say(format_args!("note: {text}"));
            }
            (Event::Run { place, .. }, line) => {
                let (layout, label) = (self.layout, place.label.clone());
                *line =
                    self.style.map(|style| ProgressLine { style, layout, label, due_ns: 0, is_drawn: false });
            }
            // Whatever comes next, an error or a report, does not share its line.
            (Event::Ended { .. }, line) => *line = None,
            (Event::Started(times), Some(line)) => line.align(times),
            (Event::Live { now_ns, run, recorded, .. }, Some(line)) => {
                let at_ns = line.shown_ns(*now_ns);
                if line.is_due(at_ns) {
                    line.draw(Glance::of(run, recorded, at_ns));
                }
            }
            _ => {}
        }
    }
}

impl ProgressLine {
    fn every_ns(&self) -> u64 {
        match self.style {
            ProgressStyle::Lines { every_ns } => every_ns,
            ProgressStyle::Redrawn { .. } => REDRAW_NS,
        }
    }

    /// The instant of a line that is drawn now. A plain line has the second that ended then, which is complete a little later.
    fn shown_ns(&self, now_ns: u64) -> u64 {
        match self.style {
            ProgressStyle::Lines { .. } => now_ns.saturating_sub(SETTLE_NS),
            ProgressStyle::Redrawn { .. } => now_ns,
        }
    }

    /// Plain lines tell of whole multiples of their interval since the measured window began.
    fn align(&mut self, times: &RunTimes) {
        let every_ns = self.every_ns();
        let ahead_ns = times.measure_ns - times.start_ns;
        self.due_ns = times.measure_ns - ahead_ns / every_ns * every_ns;
    }

    /// Is a line due now? What was missed is not made up for.
    fn is_due(&mut self, now_ns: u64) -> bool {
        let every_ns = self.every_ns();
        if self.due_ns == 0 {
            self.due_ns = now_ns + every_ns;
        }
        let Some(late_ns) = now_ns.checked_sub(self.due_ns) else { return false };
        self.due_ns += late_ns / every_ns * every_ns + every_ns;
        true
    }

    fn draw(&mut self, mut glance: Glance) {
        // A closed standard error needs no progress.
        let _ = match self.style {
            ProgressStyle::Lines { .. } => {
                // Its bars are for eyes.
                glance.course.clear();
                writeln!(io::stderr(), "brunt: {}", status_text(&self.label, &glance, WIDTH_PLAIN, false))
            }
            ProgressStyle::Redrawn { colour } => {
                self.is_drawn = true;
                // The last column stays free: some terminals go to the next line with it.
                let width = columns_of(io::stderr()).map_or(WIDTH_PLAIN, |columns| columns - 1);
                let text = status_text(&self.label, &glance, width, colour);
                write!(io::stderr(), "{CLEAR}{}", self.layout.in_characters(&text))
            }
        };
    }

    /// Leaves the terminal's line to others, until it is drawn again.
    fn clear(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            let _ = write!(io::stderr(), "{CLEAR}");
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Seconds whose slow end is shown.
const COURSE_MAX: usize = 8;

/// The slow end of the response times of a second by its name, in nanoseconds: the 99th percentile, or the largest where a hundredth part
/// would be a handful of requests.
type Tail = Option<(&'static str, u64)>;

fn tail(second: &Second) -> Tail {
    let p99 = second.response.percentile(Quantile::P99).map(|ns| ("p99", ns));
    p99.or_else(|| Some(("max", second.response.max()?)))
}

/// What a run looks like at one instant.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Glance {
    /// What the run is doing.
    pub phase: Phase,
    /// Since the phase began.
    pub elapsed_ns: u64,
    /// How long the phase lasts, where that is known.
    pub total_ns: Option<u64>,
    /// How many of how many, and of what (nothing: requests).
    pub done: Option<(u64, u64, &'static str)>,
    /// Requests per second that ended well in the last second.
    pub rate: Option<f64>,
    /// How slow the last second was; `None` where nothing is measured.
    pub tail: Tail,
    /// The slow end of each of the last whole seconds of the window, in nanoseconds; `None` of one without replies.
    pub course: Vec<Option<u64>>,
    /// Requests that failed since the beginning.
    pub failed: u64,
    /// Until the end of preload, or of the measured window.
    pub to_go_ns: Option<u64>,
}

impl Glance {
    /// A run at an instant.
    pub(crate) fn of(run: &LiveRun, recorded: &IntervalStore, now_ns: u64) -> Self {
        let (mut stored, mut scheduled, mut failed) = (0, 0, 0);
        for entry in recorded.request_counts().entries() {
            let requests = &entry.counts.requests;
            failed += requests.failed();
            match entry.phase {
                Phase::Preload => stored += requests.completed(),
                Phase::Measure => scheduled += requests.offered(),
                _ => {}
            }
        }
        let (phase, plan) = (run.phase(now_ns, recorded), run.plan());
        let window = run.window().unwrap_or_default();
        let end_ns = Some(window.end_ns).filter(|end_ns| ![0, u64::MAX].contains(end_ns));
        let (from_ns, until_ns) = match phase {
            Phase::Connect | Phase::Preload => (run.began_ns().unwrap_or(now_ns), None),
            Phase::Warmup => (window.start_ns, Some(window.measure_ns)),
            Phase::Measure => (window.measure_ns, end_ns),
            Phase::Drain => (window.end_ns, Some(window.end_ns.saturating_add(plan.drain.0))),
        };
        let done = match phase {
            Phase::Preload => Some((stored, plan.preload_stores(), " keys")),
            Phase::Measure => plan.stop.requests.map(|wanted| (scheduled, wanted, "")),
            _ => None,
        };
        // The first requests, all at once, are no rate yet; and stores of the preload are none of the load's.
        let load_ns = run.window().map_or(0, |window| window.start_ns);
        let second = run.last_second(load_ns);
        let is_new = second.start_ns < load_ns || load_ns > 0 && now_ns < load_ns.saturating_add(RATE_MIN_NS);
        let rate = second.rate().filter(|_| phase != Phase::Connect && !is_new);
        let by_count = done.and_then(|(done, wanted, _)| time_for(wanted.saturating_sub(done), rate?));
        let by_time = end_ns.and_then(|end_ns| end_ns.checked_sub(now_ns)).filter(|ns| *ns > 0);
        let is_measured = matches!(phase, Phase::Measure | Phase::Drain);
        let in_window = |second: &&Second| {
            is_measured && second.start_ns >= window.measure_ns && second.end_ns <= window.end_ns
        };
        let course = run.seconds().rev().filter(in_window).take(COURSE_MAX);
        let mut course: Vec<_> = course.map(|second| Some(tail(second)?.1)).collect();
        course.reverse();
        Self {
            phase,
            elapsed_ns: now_ns.saturating_sub(from_ns),
            total_ns: until_ns.map(|until_ns| until_ns - from_ns),
            done,
            rate,
            tail: is_measured.then(|| tail(run.last_second(window.measure_ns))).flatten(),
            course,
            failed,
            to_go_ns: by_count.into_iter().chain(by_time).min(),
        }
    }
}

/// How long `count` requests take at a rate; `None` where that is for ever.
fn time_for(count: u64, rate: f64) -> Option<u64> {
    (rate > 0.0).then(|| (count as f64 / rate * 1e9) as u64)
}

/// No rate is shown of less time of the schedule.
const RATE_MIN_NS: u64 = 500_000_000;
/// Characters of the bar.
const BAR: u64 = 10;

/// A length of time without more digits than a person reads in passing: `3.0s`, `2m05s`, `1h02m`.
fn span(ns: u64) -> String {
    let tenths = (ns + 50_000_000) / 100_000_000;
    let seconds = (ns + 500_000_000) / 1_000_000_000;
    match seconds {
        _ if tenths < 600 => format!("{}.{}s", tenths / 10, tenths % 10),
        0..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

/// The line at most `width` characters wide, in colour where something is wrong and colour is allowed.
pub(crate) fn status_text(label: &str, glance: &Glance, width: usize, colour: bool) -> String {
    painted(&status_line(label, glance, width), colour)
}

/// The line at most `width` characters wide. A label that is not empty is before everything else.
pub(crate) fn status_line(label: &str, glance: &Glance, width: usize) -> Line {
    let mut line = Line::new();
    let mut used = 0;
    let label = (!label.is_empty()).then(|| (label.to_owned(), false));
    for (part, is_alarm) in label.into_iter().chain(parts(glance)) {
        let divider = if used == 0 { "" } else { " " };
        let wide = divider.len() + part.chars().count();
        if used + wide > width {
            break;
        }
        used += wide;
        line.push(Span { text: divider.to_owned(), style: Style::Plain });
        line.push(Span { text: part, style: if is_alarm { Style::Bad } else { Style::Plain } });
    }
    line
}

/// The parts in their order, and whether each is an alarm.
fn parts(glance: &Glance) -> impl Iterator<Item = (String, bool)> + use<> {
    let of = glance.total_ns.map(|total_ns| format!("/{}", span(total_ns))).unwrap_or_default();
    let has_failed = glance.failed > 0;
    let failed = (has_failed || glance.phase != Phase::Connect).then(|| format!("failed {}", glance.failed));
    let scale = BarScale::of(&glance.course).filter(|_| glance.course.len() > 1).map(BarScale::with_a_decade);
    let course = |scale: BarScale| glance.course.iter().map(|time_ns| scale.bar(*time_ns)).collect();
    let parts = [
        (Some(format!("{} {}{of}", glance.phase.name(), span(glance.elapsed_ns))), false),
        (fraction(glance).map(bar), false),
        (glance.done.map(|(done, wanted, things)| format!("{done}/{wanted}{things}")), false),
        (glance.rate.map(|rate| format!("{rate:.0}/s")), false),
        (glance.tail.map(|(name, ns)| format!("{name} {}", quantity::time(ns).replace(' ', ""))), false),
        (failed, has_failed),
        (scale.map(course), false),
        (glance.to_go_ns.map(|to_go_ns| format!("{} left", span(to_go_ns))), false),
    ];
    parts.into_iter().filter_map(|(part, is_alarm)| Some((part?, is_alarm)))
}

/// How much of the phase is over, where that is known.
fn fraction(glance: &Glance) -> Option<f64> {
    let (done, whole) = match (glance.done, glance.total_ns) {
        (Some((done, wanted, _)), _) => (done, wanted),
        (None, Some(total_ns)) => (glance.elapsed_ns, total_ns),
        (None, None) => return None,
    };
    (whole > 0).then(|| (done as f64 / whole as f64).min(1.0))
}

fn bar(fraction: f64) -> String {
    let full = (fraction * BAR as f64) as u64;
    let cell = |index: u64| if index < full { '#' } else { '.' };
    format!("[{}]", (0..BAR).map(cell).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::{cases, words};
    use brunt_plan::op::{KeyRef, Op, OpKind};
    use brunt_plan::outcome::{Outcome, OutcomeClass, ReplyKind};
    use brunt_plan::resolve::{Host, resolve};
    use brunt_plan::spec::PlanSpec;
    use brunt_stats::recorder::{Layout, RecorderSet};
    use brunt_stats::run_record::RunData;
    use brunt_stats::run_record::RunRecord;
    use brunt_stats::sample::{Sample, Times};
    use brunt_stats::window::RunTimes;
    use clap::{Args, FromArgMatches};

    #[test]
    fn style_follows_flags_and_terminal() {
        // Options, terminal or not, TERM, NO_COLOR.
        let table = "
 | terminal | xterm | | Some(Redrawn { colour: true })
 | terminal | | | Some(Redrawn { colour: true })
--color=never | terminal | xterm | | Some(Redrawn { colour: false })
 | terminal | xterm | 1 | Some(Redrawn { colour: false })
 | terminal | dumb | | None
 | file | xterm | | None
--progress=none | terminal | xterm | | None
--progress=tui | terminal | xterm | | None
-q | terminal | xterm | | None
--progress=1s | terminal | xterm | | Some(Lines { every_ns: 1000000000 })
--progress=1s | file | dumb | 1 | Some(Lines { every_ns: 1000000000 })
-q --progress=1s | file | | | Some(Lines { every_ns: 1000000000 })";
        for [options, stream, term, no_color, expected] in cases(table) {
            let command = ProgressFlags::augment_args(clap::Command::new("brunt").no_binary_name(true));
            let matches = command.try_get_matches_from(words(&options)).unwrap();
            let flags = ProgressFlags::from_arg_matches(&matches).unwrap();
            let variable = |name: &str| {
                let value = if name == "TERM" { &term } else { &no_color };
                (!value.is_empty()).then(|| value.clone())
            };
            let style = ProgressStyle::of(&flags, stream == "terminal", &variable);
            assert_eq!(format!("{style:?}"), expected, "{options} {stream} {term}");
        }
    }

    const MS: u64 = 1_000_000;

    /// What an interval of a worker holds.
    struct Recorded {
        phase: Phase,
        completed: u64,
        failed: u64,
        response_ns: u64,
    }

    /// A run, its store, and its only worker.
    struct Watched {
        run: LiveRun,
        store: IntervalStore,
        set: Box<RecorderSet>,
    }

    impl Watched {
        fn new(spec: &str) -> Self {
            let spec = PlanSpec::from_toml(&format!("server = [\"h\"]\n{spec}")).unwrap();
            let plan = resolve(&spec, &Host::of(vec![0], 1)).unwrap();
            let layout = Layout::of(&plan);
            let run = LiveRun::new(RunRecord::of(plan));
            Self { run, store: IntervalStore::new(&layout), set: RecorderSet::new(&layout) }
        }

        fn start(&mut self, start_ms: u64, measure_ms: u64, end_ns: u64) {
            let times = RunTimes {
                start_ns: start_ms * MS,
                measure_ns: measure_ms * MS,
                end_ns,
                ..RunTimes::default()
            };
            self.run.start(&RunData { times, ..RunData::default() });
        }

        fn interval(&mut self, start_ms: u64, recorded: &Recorded) {
            let op = Op::of(OpKind::Get, KeyRef::Id(0));
            let good = Outcome::of_reply(OpKind::Get, ReplyKind::Value);
            let bad = Outcome::without_reply(OutcomeClass::Lost);
            for (count, outcome) in [(recorded.completed, good), (recorded.failed, bad)] {
                for _ in 0..count {
                    self.set.scheduled(recorded.phase, &op);
                    self.set.sent(recorded.phase, &op, 1, 0);
                    let times = Times {
                        polled_ns: recorded.response_ns,
                        first_byte_ns: recorded.response_ns,
                        done_ns: recorded.response_ns,
                        ..Times::default()
                    };
                    let sample =
                        Sample { op: OpKind::Get.into(), class: 0, outcome, busy_lag_ns: None, times };
                    self.set.record(recorded.phase, &sample, 1, 1);
                }
            }
            let interval = self.set.take_interval(0, start_ms * MS, (start_ms + 100) * MS);
            self.store.push(&interval);
            self.run.push(&interval);
        }

        /// Intervals of 100 ms from one instant to another, in which the same happens.
        fn pass(&mut self, ms: std::ops::Range<u64>, recorded: &Recorded) {
            for start_ms in ms.step_by(100) {
                self.interval(start_ms, recorded);
                self.run.tick((start_ms + 110) * MS);
            }
        }

        fn glance(&self, now_ms: u64) -> Glance {
            Glance::of(&self.run, &self.store, now_ms * MS)
        }
    }

    #[test]
    fn preload_counts_keys() {
        let mut watched = Watched::new("keys = 100000");
        watched.run.tick(1_000 * MS);
        let glance = watched.glance(1_500);
        assert_eq!(
            (glance.phase, glance.elapsed_ns, glance.done, glance.rate),
            (Phase::Connect, 500 * MS, None, None)
        );
        let stores = Recorded { phase: Phase::Preload, completed: 1_000, failed: 1, response_ns: MS };
        watched.pass(1_500..3_000, &stores);
        let glance = watched.glance(3_120);
        assert_eq!(glance.phase, Phase::Preload);
        assert_eq!(glance.done, Some((15_000, 100_000, " keys")));
        assert_eq!((glance.rate, glance.failed, glance.tail), (Some(10_000.0), 15, None));
        // 85 000 keys at 10 000 a second.
        assert_eq!(glance.to_go_ns, Some(8_500 * MS));
        // The last whole second holds stores, which are none of the load's rate.
        watched.start(3_000, 3_000, 13_000 * MS);
        let measured = Recorded { phase: Phase::Measure, completed: 100, failed: 0, response_ns: MS };
        watched.pass(3_000..3_600, &measured);
        assert_eq!(watched.glance(3_650).rate, Some(1_000.0));
    }

    #[test]
    fn preload_without_success_is_shown() {
        let mut watched = Watched::new("keys = 100");
        watched.run.tick(1_000 * MS);
        let refused = Recorded { phase: Phase::Preload, completed: 0, failed: 1, response_ns: MS };
        watched.pass(1_500..1_600, &refused);
        let glance = watched.glance(2_000);
        assert_eq!((glance.phase, glance.done, glance.failed), (Phase::Preload, Some((0, 100, " keys")), 1));
    }

    #[test]
    fn schedule_shows_phase_rate_and_tail() {
        let mut watched = Watched::new("drain = \"10s\"");
        watched.run.tick(1_000 * MS);
        watched.start(2_000, 3_000, 13_000 * MS);
        let warm = Recorded { phase: Phase::Warmup, completed: 50, failed: 0, response_ns: MS };
        watched.pass(2_000..2_500, &warm);
        let glance = watched.glance(2_620);
        assert_eq!(
            (glance.phase, glance.elapsed_ns, glance.total_ns),
            (Phase::Warmup, 620 * MS, Some(1_000 * MS))
        );
        assert_eq!((glance.tail, glance.to_go_ns), (None, Some(10_380 * MS)));
        assert_eq!(glance.rate, Some(500.0), "50 in 100 ms");
        watched.pass(2_500..3_000, &warm);

        let measured = Recorded { phase: Phase::Measure, completed: 200, failed: 3, response_ns: 400_000 };
        watched.pass(3_000..3_500, &measured);
        let glance = watched.glance(3_600);
        assert_eq!(
            (glance.rate, glance.tail),
            (Some(500.0), Some(("p99", 400_000))),
            "the last whole second"
        );
        watched.pass(3_500..5_000, &measured);
        let glance = watched.glance(5_120);
        assert_eq!((glance.phase, glance.rate, glance.failed), (Phase::Measure, Some(2_000.0), 60));
        assert_eq!((glance.elapsed_ns, glance.to_go_ns), (2_120 * MS, Some(7_880 * MS)));
        // All values are in one bucket, of which the largest is known exactly.
        assert_eq!(glance.tail, Some(("p99", 400_000)));

        // The server stalls: nothing ends any more, and a second later nothing is known of response times.
        let nothing = Recorded { phase: Phase::Measure, completed: 0, failed: 0, response_ns: 0 };
        watched.pass(5_000..6_000, &nothing);
        let glance = watched.glance(6_120);
        assert_eq!((glance.rate, glance.tail), (Some(0.0), None));
        let slow = Recorded { phase: Phase::Measure, completed: 5, failed: 0, response_ns: 1_500 * MS };
        watched.pass(6_000..7_000, &Recorded { completed: 0, ..slow });
        watched.interval(7_000, &slow);
        watched.pass(7_100..8_000, &nothing);
        assert_eq!(
            watched.glance(8_120).tail,
            Some(("max", 1_500 * MS)),
            "five say nothing of a hundredth part"
        );

        // By second of the window, however often it is read: two without stalls, two without replies, one with slow ones.
        let course = [Some(400_000), Some(400_000), None, None, Some(1_500 * MS)];
        assert_eq!(watched.glance(8_120).course, course);
        watched.pass(8_000..13_200, &nothing);
        let glance = watched.glance(13_250);
        assert_eq!(glance.course.len(), 8, "no more are kept");
        assert_eq!(glance.course[..3], [None, None, Some(1_500 * MS)]);
        assert_eq!(
            (glance.phase, glance.elapsed_ns, glance.total_ns),
            (Phase::Drain, 250 * MS, Some(10_000 * MS))
        );
        assert_eq!(glance.to_go_ns, None);
    }

    #[test]
    fn request_goals_set_the_end() {
        let mut watched = Watched::new("requests = 10000");
        watched.run.tick(1_000 * MS);
        watched.start(1_000, 1_000, u64::MAX);
        let measured = Recorded { phase: Phase::Measure, completed: 100, failed: 0, response_ns: MS };
        watched.pass(1_000..3_000, &measured);
        let glance = watched.glance(3_120);
        assert_eq!((glance.total_ns, glance.done), (None, Some((2_000, 10_000, ""))));
        assert_eq!(glance.to_go_ns, Some(8_000 * MS), "8 000 at 1 000 a second");
    }

    fn measuring() -> Glance {
        Glance {
            phase: Phase::Measure,
            elapsed_ns: 3_000_000_000,
            total_ns: Some(10_000_000_000),
            done: None,
            rate: Some(9_998.4),
            tail: Some(("p99", 412_345)),
            course: Vec::new(),
            failed: 0,
            to_go_ns: Some(7_000_000_000),
        }
    }

    #[test]
    fn status_lines_have_their_layout() {
        let preload = Glance {
            phase: Phase::Preload,
            elapsed_ns: 125_400_000_000,
            total_ns: None,
            done: Some((1_204_000, 2_000_000, " keys")),
            rate: Some(380_000.0),
            tail: None,
            course: Vec::new(),
            failed: 2,
            to_go_ns: Some(2_100_000_000),
        };
        let connect = Glance {
            phase: Phase::Connect,
            elapsed_ns: 40_000_000,
            done: None,
            rate: None,
            to_go_ns: None,
            ..preload.clone()
        };
        let table = [
            (measuring(), "measure 3.0s/10.0s [###.......] 9998/s p99 412us failed 0 7.0s left"),
            (
                Glance { tail: Some(("max", 1_200_000)), rate: Some(0.2), to_go_ns: None, ..measuring() },
                "measure 3.0s/10.0s [###.......] 0/s max 1.20ms failed 0",
            ),
            (
                Glance { done: Some((31_000, 100_000, "")), total_ns: None, ..measuring() },
                "measure 3.0s [###.......] 31000/100000 9998/s p99 412us failed 0 7.0s left",
            ),
            (
                Glance {
                    course: [400_000, 412_345, 40_000_000].map(Some).into_iter().chain([None]).collect(),
                    ..measuring()
                },
                "measure 3.0s/10.0s [###.......] 9998/s p99 412us failed 0 ▁▁█  7.0s left",
            ),
            (preload, "preload 2m05s [######....] 1204000/2000000 keys 380000/s failed 2 2.1s left"),
            (connect, "connect 0.0s failed 2"),
        ];
        for (glance, expected) in table {
            assert_eq!(status_text("", &glance, 110, false), expected);
        }
    }

    #[test]
    fn durations_are_short() {
        let table = [
            (0, "0.0s"),
            (49_999_999, "0.0s"),
            (50_000_000, "0.1s"),
            (59_940_000_000, "59.9s"),
            (59_960_000_000, "1m00s"),
            (60_000_000_000, "1m00s"),
            (3_599_000_000_000, "59m59s"),
            (3_600_000_000_000, "1h00m"),
            (90_000_000_000_000, "25h00m"),
        ];
        for (ns, expected) in table {
            assert_eq!(span(ns), expected, "{ns}");
        }
    }

    #[test]
    fn status_lines_fit_the_terminal() {
        let full = status_text("", &measuring(), 1_000, false);
        for width in 0..100 {
            let line = status_text("", &measuring(), width, false);
            assert!(line.chars().count() <= width, "{width}: {line}");
            assert!(full.starts_with(&line), "{line}");
        }
        assert_eq!(status_text("", &measuring(), 36, false), "measure 3.0s/10.0s [###.......]");
        assert_eq!(status_text("", &measuring(), 5, false), "");
        assert_eq!(status_text("step 3 of 12", &measuring(), 40, false), "step 3 of 12 measure 3.0s/10.0s");
        // Colour takes no room.
        let failing = Glance { failed: 7, ..measuring() };
        let (plain, coloured) = (status_text("", &failing, 64, false), status_text("", &failing, 64, true));
        assert!(coloured.contains("\x1b[31mfailed 7\x1b[0m"), "{coloured:?}");
        assert_eq!(coloured.replace("\x1b[31m", "").replace("\x1b[0m", ""), plain);
        assert!(!status_text("", &measuring(), 80, true).contains('\x1b'), "nothing is wrong");
    }
}
