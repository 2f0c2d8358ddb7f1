//! Lines that are written while runs go on (`--ndjson`).
//!
//! Not what they say (that is `brunt_report::ndjson`'s). Invariants: the control thread waits for no reader, as a thread of its own writes; a file keeps what it
//! held until there is a first line; when the stream has finished all lines are written, or it says why not.

use crate::destination::{Destination, Written};
use brunt_engine::system_error::start_thread;
use brunt_plan::plan::Plan;
use brunt_plan::units::DurationNs;
use brunt_report::ndjson::LiveLines;
use brunt_stats::observer::{Event, Observer};
use rustix::process::setpriority_process;
use rustix::thread::gettid;
use std::io;
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
    messages: Sender<Message>,
    thread: Option<JoinHandle<Result<Option<Written>, String>>>,
}

impl LineStream {
    /// Starts the thread.
    pub(crate) fn open(destination: Destination) -> io::Result<Self> {
        let is_standard_output = destination.is_standard_output();
        let (messages, received) = channel();
        let thread = start_thread("brunt-lines", move || {
            // Where it is refused, it only comes no later than others.
            let _ = setpriority_process(Some(gettid()), NICE);
            write_all(&destination, &received)
        })?;
        Ok(Self { is_standard_output, messages, thread: Some(thread) })
    }

    /// Who is to watch the runs of a command with this plan.
    pub(crate) fn observer(&self, plan: &Plan) -> impl Observer + use<> {
        LineObserver {
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
    let written = destination.write_in_place(|out| {
        out.write_all(&first)?;
        out.flush()?;
        while let Ok(Message::Lines(lines)) = received.recv() {
            out.write_all(&lines)?;
            out.flush()?;
        }
        Ok(())
    });
    written.map(Some)
}

/// Makes the lines.
struct LineObserver {
    messages: Sender<Message>,
    period: DurationNs,
    /// Those of the present run.
    lines: Option<LiveLines>,
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
            self.lines = Some(LiveLines::new(plan, place.before + 1));
        }
        let Some(lines) = &mut self.lines else { return };
        let mut text = Vec::new();
        // Memory takes everything.
        let _ = match event {
            Event::Started(times) => {
                lines.start(times);
                Ok(())
            }
            Event::Period(period) => lines.write_period(period, &mut text),
            Event::Ended { summary: Some(summary), .. } => lines.write_rest(summary, &mut text),
            _ => Ok(()),
        };
        self.send(text);
    }
}
