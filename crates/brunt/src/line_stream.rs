//! Lines that are written while runs go on: `--ndjson`, and with `--interval` `--csv` and `--hlog` of a single run.
//!
//! Not what they say (that is `brunt-report`'s). Invariants: the control thread waits for no reader, as a thread of its own writes; a file of `--ndjson` keeps what it
//! held until there is a first line, the others until there is a result; when the stream has finished all lines are written, or it says why not.

use crate::destination::{Destination, Document, Written};
use brunt_engine::system_error::start_thread;
use brunt_plan::plan::Plan;
use brunt_plan::units::DurationNs;
use brunt_report::csv;
use brunt_report::hlog::LiveLog;
use brunt_report::ndjson::LiveLines;
use brunt_stats::observer::{Event, Observer};
use brunt_stats::period::Period;
use brunt_stats::run_times::RunTimes;
use brunt_stats::summary::Summary;
use rustix::process::setpriority_process;
use rustix::thread::gettid;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// Workers come first.
const NICE: i32 = 10;

/// What the writing thread is told.
enum Message {
    Lines(Vec<u8>),
    /// There are no more; and was there a result?
    End {
        has_result: bool,
    },
}

/// Where the lines go.
#[derive(Debug)]
pub(crate) struct LineStream {
    /// They go to standard output.
    pub(crate) is_standard_output: bool,
    pub(crate) document: Document,
    messages: Sender<Message>,
    thread: Option<JoinHandle<Result<Option<Written>, String>>>,
}

impl LineStream {
    /// Starts the thread.
    pub(crate) fn open(destination: Destination) -> io::Result<Self> {
        let (is_standard_output, document) = (destination.is_standard_output(), destination.document);
        let (messages, received) = channel();
        let thread = start_thread("brunt-lines", move || {
            // Where it is refused, it only comes no later than others.
            let _ = setpriority_process(Some(gettid()), NICE);
            write_all(&destination, &received)
        })?;
        Ok(Self { is_standard_output, document, messages, thread: Some(thread) })
    }

    /// Who is to watch the runs of a command with this plan.
    pub(crate) fn observer(&self, plan: &Plan) -> impl Observer + use<> {
        LineObserver {
            document: self.document,
            messages: self.messages.clone(),
            period: DurationNs(LiveLines::period_ns(plan)),
            lines: None,
        }
    }

    /// Waits until everything is written.
    pub(crate) fn finish(mut self) -> Result<Option<Written>, String> {
        self.end(true)
    }

    fn end(&mut self, has_result: bool) -> Result<Option<Written>, String> {
        // A thread that has ended says why below.
        let _ = self.messages.send(Message::End { has_result });
        match self.thread.take() {
            None => Ok(None),
            Some(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        }
    }
}

impl Drop for LineStream {
    /// Where there is no result there are other errors to be told of.
    fn drop(&mut self) {
        let _ = self.end(false);
    }
}

fn write_all(destination: &Destination, received: &Receiver<Message>) -> Result<Option<Written>, String> {
    let first = match received.recv() {
        Ok(Message::Lines(lines)) => lines,
        Ok(Message::End { has_result: true }) => Vec::new(),
        Ok(Message::End { has_result: false }) | Err(_) => return Ok(None),
    };
    let mut has_result = true;
    let write = |out: &mut dyn Write| {
        out.write_all(&first)?;
        out.flush()?;
        loop {
            match received.recv() {
                Ok(Message::Lines(lines)) => {
                    out.write_all(&lines)?;
                    out.flush()?;
                }
                Ok(Message::End { has_result: true }) => return Ok(()),
                Ok(Message::End { has_result: false }) | Err(_) => {
                    has_result = false;
                    return Err(io::Error::other("there is no result"));
                }
            }
        }
    };
    let written = match destination.document {
        Document::Ndjson => destination.write_in_place(write),
        _ => destination.write(write),
    };
    if has_result { written.map(Some) } else { Ok(None) }
}

/// The lines of a run in one of the forms.
enum Lines {
    Ndjson(Box<LiveLines>),
    Csv(csv::LiveLines),
    Hlog(LiveLog),
}

impl Lines {
    fn start(&mut self, times: &RunTimes) {
        match self {
            Self::Ndjson(lines) => lines.start(times),
            Self::Csv(lines) => lines.start(times),
            Self::Hlog(log) => log.start(times),
        }
    }

    fn write_period(&mut self, period: &Period, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Ndjson(lines) => lines.write_period(period, out),
            Self::Csv(lines) => lines.write_period(period, out),
            Self::Hlog(log) => log.write_period(period, out),
        }
    }

    fn write_rest(&mut self, summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Ndjson(lines) => lines.write_rest(summary, out),
            Self::Csv(lines) => lines.write_rest(summary, out),
            Self::Hlog(log) => log.write_heading(out),
        }
    }
}

/// Makes the lines.
struct LineObserver {
    document: Document,
    messages: Sender<Message>,
    period: DurationNs,
    /// Those of the present run.
    lines: Option<Lines>,
}

impl LineObserver {
    fn send(&self, lines: Vec<u8>) {
        if !lines.is_empty() {
            // A thread that could not write has ended, and says so at the end.
            let _ = self.messages.send(Message::Lines(lines));
        }
    }
}

impl Observer for LineObserver {
    fn period(&self) -> Option<DurationNs> {
        Some(self.period)
    }

    fn observe(&mut self, event: &Event<'_>) {
        if let Event::Run { plan, place, .. } = event {
            self.lines = Some(match self.document {
                Document::Csv => Lines::Csv(csv::LiveLines::new(plan, self.period.0)),
                Document::Hlog => Lines::Hlog(LiveLog::new(plan, env!("CARGO_PKG_VERSION"))),
                _ => Lines::Ndjson(Box::new(LiveLines::new(plan, place.before + 1))),
            });
        }
        let Some(lines) = &mut self.lines else { return };
        let mut text = Vec::new();
        // Memory takes everything.
        let _ = match event {
            Event::Started(times) => {
                lines.start(times);
                Ok(())
            }
            Event::Statistics { server, snapshot } => {
                if let Lines::Csv(lines) = lines {
                    lines.hear(*server, snapshot);
                }
                Ok(())
            }
            Event::Period(period) => lines.write_period(period, &mut text),
            Event::Ended { summary: Some(summary), .. } => lines.write_rest(summary, &mut text),
            _ => Ok(()),
        };
        self.send(text);
    }
}
