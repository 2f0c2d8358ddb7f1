//! Live progress on standard error: notes before a run, and while it goes on one line that is redrawn on a terminal, or a plain line at
//! times.
//!
//! Drawn by the control thread between two looks at the workers; no worker knows of it. What there is to see is a [`Glance`],
//! how it reads is [`status_line`]'s; this file decides where and how often. Invariant: on a terminal the line is gone
//! before anything else is written there.

pub(crate) mod glance;
pub(crate) mod status_line;

use crate::cli::ProgressFlags;
use crate::presentation::{is_coloured, variable};
use crate::terminal::{columns_of, say};
use brunt_report::layout::Layout;
use brunt_stats::live_run::SETTLE_NS;
use brunt_stats::observer::{Event, Observer};
use brunt_stats::window::RunTimes;
use glance::Glance;
use std::io::{self, IsTerminal, Write};

/// Five times a second: fast enough to look alive, slow enough to read.
const REDRAW_NS: u64 = 200_000_000;
/// Plain lines are read by programs, and by people with wide windows.
const WIDTH_PLAIN: usize = 200;
/// Back to the first column, and nothing behind it.
const CLEAR: &str = "\r\x1b[K";

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    /// One line on a terminal.
    Redrawn { colour: bool },
    /// A line of its own every so often.
    Lines { every_ns: u64 },
}

impl Style {
    /// By the terminal, and the environment variables as far as they are set; `None` where no progress is shown.
    fn of(
        flags: &ProgressFlags,
        is_terminal: bool,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Option<Self> {
        let is_dumb = variable("TERM").is_some_and(|term| term == "dumb");
        match flags.progress {
            Some(every) => Some(Self::Lines { every_ns: every.0 }),
            None if flags.no_progress || flags.quiet || flags.tui || !is_terminal || is_dumb => None,
            None => Some(Self::Redrawn { colour: is_coloured(flags.layout.color, is_terminal, variable) }),
        }
    }
}

/// The progress of the runs of a command.
#[derive(Debug)]
pub(crate) struct Progress {
    style: Option<Style>,
    /// Notes are not wanted.
    is_quiet: bool,
    layout: Layout,
    /// That of the present run.
    line: Option<Line>,
}

/// The progress of one run.
#[derive(Debug)]
struct Line {
    style: Style,
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
        let style = Style::of(flags, io::stderr().is_terminal(), &variable);
        let layout = flags.presentation().layout(true);
        Self { style, is_quiet: flags.quiet, layout, line: None }
    }
}

impl Observer for Progress {
    fn is_live(&self) -> bool {
        self.style.is_some()
    }

    fn observe(&mut self, event: &Event<'_>) {
        match (event, &mut self.line) {
            (Event::Note(text), _) if !self.is_quiet => say(format_args!("note: {text}")),
            (Event::Run { place, .. }, line) => {
                let (layout, label) = (self.layout, place.label.clone());
                *line = self.style.map(|style| Line { style, layout, label, due_ns: 0, is_drawn: false });
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

impl Line {
    fn every_ns(&self) -> u64 {
        match self.style {
            Style::Lines { every_ns } => every_ns,
            Style::Redrawn { .. } => REDRAW_NS,
        }
    }

    /// The instant of a line that is drawn now. A plain line has the second that ended then, which is complete a little later.
    fn shown_ns(&self, now_ns: u64) -> u64 {
        match self.style {
            Style::Lines { .. } => now_ns.saturating_sub(SETTLE_NS),
            Style::Redrawn { .. } => now_ns,
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
            Style::Lines { .. } => {
                // Its bars are for eyes.
                glance.course.clear();
                writeln!(
                    io::stderr(),
                    "brunt: {}",
                    status_line::text(&self.label, &glance, WIDTH_PLAIN, false)
                )
            }
            Style::Redrawn { colour } => {
                self.is_drawn = true;
                // The last column stays free: some terminals go to the next line with it.
                let width = columns_of(io::stderr()).map_or(WIDTH_PLAIN, |columns| columns - 1);
                let text = status_line::text(&self.label, &glance, width, colour);
                write!(io::stderr(), "{CLEAR}{}", self.layout.in_characters(&text))
            }
        };
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if self.is_drawn {
            let _ = write!(io::stderr(), "{CLEAR}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presentation::LayoutFlags;
    use brunt_plan::units::DurationNs;
    use clap::ColorChoice;

    #[test]
    fn style_follows_flags_and_terminal() {
        let layout = LayoutFlags::default();
        let none = ProgressFlags {
            progress: None,
            no_progress: false,
            tui: false,
            http: None,
            quiet: false,
            layout,
        };
        let never = ProgressFlags { layout: LayoutFlags { color: ColorChoice::Never, ..layout }, ..none };
        let lines = ProgressFlags { progress: Some(DurationNs(5)), ..none };
        let off = ProgressFlags { no_progress: true, ..none };
        let screen = ProgressFlags { tui: true, ..none };
        let quiet = ProgressFlags { quiet: true, ..none };
        let quiet_lines = ProgressFlags { quiet: true, ..lines };
        let [plain, coloured] = [false, true].map(|colour| Some(Style::Redrawn { colour }));
        let every = Some(Style::Lines { every_ns: 5 });
        let table = [
            (none, true, Some("xterm"), None, coloured),
            (none, true, None, None, coloured),
            (never, true, Some("xterm"), None, plain),
            (none, true, Some("xterm"), Some("1"), plain),
            (none, true, Some("dumb"), None, None),
            (none, false, Some("xterm"), None, None),
            (off, true, Some("xterm"), None, None),
            (screen, true, Some("xterm"), None, None),
            (quiet, true, Some("xterm"), None, None),
            (lines, true, Some("xterm"), None, every),
            (lines, false, Some("dumb"), Some("1"), every),
            (quiet_lines, false, None, None, every),
        ];
        for (flags, is_terminal, term, no_color, expected) in table {
            let variable = |name: &str| match name {
                "TERM" => term.map(str::to_owned),
                _ => no_color.map(str::to_owned),
            };
            let style = Style::of(&flags, is_terminal, &variable);
            assert_eq!(style, expected, "{flags:?} {is_terminal} {term:?}");
        }
    }
}
