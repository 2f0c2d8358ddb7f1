//! What is written while runs go on: lines of `-o ndjson`, and journals.
//!
//! Not what they say (that is `brunt-report`'s). Invariants: the control thread waits for no reader, as a thread of its own writes; lines that wait for it take bounded
//! memory, and a reader that takes nothing does not hold the end; a file keeps what it held until there is a first line;
//! when the stream has finished all lines are written, or it says why not.

use crate::background_thread::start_background_thread;
use crate::destination::{Destination, Written};
use brunt_engine::process::join;
use brunt_plan::plan::Plan;
use brunt_plan::units::DurationNs;
use brunt_report::ndjson::LiveLines;
use brunt_stats::observer::{Event, Observer};
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Limit of lines that wait to be written, in bytes: hours of lines of a second, or what a disk that stalls for some seconds leaves behind.
const BACKLOG_BYTES_MAX: usize = 16 << 20;
/// Lines are handed to a reader in pieces of this many bytes. Each that it takes is progress.
const PIECE_BYTES: usize = 4096;
/// How long a reader may take nothing once the runs are over.
const STALL_MAX: Duration = Duration::from_secs(10);

/// What the writing thread is told.
enum Message {
    Lines(Vec<u8>),
    /// There are no more; and was there a result?
    End {
        has_result: bool,
    },
}

/// Lines that wait to be written.
#[derive(Debug, Default)]
struct Backlog {
    bytes: AtomicUsize,
    /// There were more than [`BACKLOG_BYTES_MAX`]: the lines since then are lost.
    is_exceeded: AtomicBool,
}

/// Where the lines go.
#[derive(Debug)]
pub(crate) struct LineStream {
    pub(crate) destination: Arc<Destination>,
    messages: Sender<Message>,
    backlog: Arc<Backlog>,
    thread: Option<JoinHandle<Result<Option<Written>, String>>>,
    /// Nothing comes; the thread closes it when it ends.
    ended: Receiver<()>,
}

impl LineStream {
    /// Starts the thread.
    pub(crate) fn open(mut destination: Destination) -> io::Result<Self> {
        destination.is_followed = true;
        let (destination, backlog) = (Arc::new(destination), Arc::new(Backlog::default()));
        let (messages, received) = channel();
        let (runs, ended) = channel::<()>();
        let (own_destination, own_backlog) = (destination.clone(), backlog.clone());
        let thread = start_background_thread("brunt-lines", move || {
            let _runs = runs;
            write_all(&own_destination, &received, &own_backlog)
        })?;
        Ok(Self { destination, messages, backlog, thread: Some(thread), ended })
    }

    /// By which an observer has something written.
    pub(crate) fn queue(&self) -> LineQueue {
        LineQueue { messages: self.messages.clone(), backlog: self.backlog.clone() }
    }

    /// Who is to watch the runs of a command with this plan.
    pub(crate) fn observer(&self, plan: &Plan) -> impl Observer + use<> {
        LineObserver { queue: self.queue(), period: DurationNs(LiveLines::period_ns(plan)), lines: None }
    }

    /// Waits until everything is written, or its reader has stopped reading.
    pub(crate) fn finish(mut self) -> Result<Option<Written>, String> {
        self.end(true)
    }

    fn end(&mut self, has_result: bool) -> Result<Option<Written>, String> {
        let is_exceeded = self.backlog.is_exceeded.load(Ordering::Relaxed);
        // A thread that has ended says why below.
        let _ = self.messages.send(Message::End { has_result: has_result && !is_exceeded });
        let Some(thread) = self.thread.take() else { return Ok(None) };
        // One whose reader takes nothing is left behind; the process ends without it.
        let written = match self.wait_for_end() {
            true => join(thread),
            false => {
                let reason = format!("nothing could be written for {} s", STALL_MAX.as_secs());
                Err(self.destination.failure(reason))
            }
        };
        if is_exceeded && written.is_ok() {
            let reason = format!("more than {} MiB of lines waited to be written", BACKLOG_BYTES_MAX >> 20);
            return Err(self.destination.failure(reason));
        }
        written
    }

    /// Has the thread ended, rather than that its reader takes nothing? A file is waited for as long as it takes.
    fn wait_for_end(&self) -> bool {
        loop {
            let bytes = self.backlog.bytes.load(Ordering::Relaxed);
            if self.ended.recv_timeout(STALL_MAX) != Err(RecvTimeoutError::Timeout) {
                return true;
            }
            let is_stalled = bytes > 0 && self.backlog.bytes.load(Ordering::Relaxed) == bytes;
            if is_stalled && self.destination.has_reader() {
                return false;
            }
        }
    }
}

impl Drop for LineStream {
    /// Where there is no result there are other errors to be told of.
    fn drop(&mut self) {
        let _ = self.end(false);
    }
}

fn write_all(
    destination: &Destination,
    received: &Receiver<Message>,
    backlog: &Backlog,
) -> Result<Option<Written>, String> {
    let first = match received.recv() {
        Ok(Message::Lines(lines)) => lines,
        Ok(Message::End { has_result: true }) => Vec::new(),
        Ok(Message::End { has_result: false }) | Err(_) => return Ok(None),
    };
    let mut has_result = true;
    let write_lines = |lines: &[u8], out: &mut dyn Write| -> io::Result<()> {
        lines.chunks(PIECE_BYTES).try_for_each(|piece| {
            out.write_all(piece)?;
            out.flush()?;
            backlog.bytes.fetch_sub(piece.len(), Ordering::Relaxed);
            Ok(())
        })
    };
    let written = destination.write(|out| {
        write_lines(&first, out)?;
        loop {
            match received.recv() {
                Ok(Message::Lines(lines)) => write_lines(&lines, out)?,
                Ok(Message::End { has_result: true }) => return Ok(()),
                Ok(Message::End { has_result: false }) | Err(_) => {
                    has_result = false;
                    return Err(io::Error::other("there is no result"));
                }
            }
        }
    });
    if has_result { written.map(Some) } else { Ok(None) }
}

/// The way to the writing thread.
pub(crate) struct LineQueue {
    messages: Sender<Message>,
    backlog: Arc<Backlog>,
}

/// Makes the lines.
struct LineObserver {
    queue: LineQueue,
    period: DurationNs,
    /// Those of the present run.
    lines: Option<LiveLines>,
}

impl LineQueue {
    /// Has this written, unless too much waits already.
    pub(crate) fn send(&self, lines: Vec<u8>) {
        if lines.is_empty() || self.backlog.is_exceeded.load(Ordering::Relaxed) {
            return;
        }
        if self.backlog.bytes.load(Ordering::Relaxed) + lines.len() > BACKLOG_BYTES_MAX {
            return self.backlog.is_exceeded.store(true, Ordering::Relaxed);
        }
        self.backlog.bytes.fetch_add(lines.len(), Ordering::Relaxed);
        // A thread that could not write has ended, and says so at the end.
        let _ = self.messages.send(Message::Lines(lines));
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
        match event {
            Event::Started(times) => lines.start(times),
            // Memory takes everything.
            Event::Period(period) => drop(lines.write_period(period, &mut text)),
            Event::Ended { summary: Some(summary), .. } => drop(lines.write_rest(summary, &mut text)),
            _ => {}
        }
        self.queue.send(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::destination::Document;
    use brunt_report::file_type::FileType;
    use std::io::Read;
    use std::os::fd::AsRawFd;
    use std::path::PathBuf;

    /// The writer never waits, and what waits is bounded: once there is more the output fails, though its reader reads all at last.
    #[test]
    fn lines_that_wait_are_bounded() {
        let (mut reader, writer) = io::pipe().unwrap();
        let path = PathBuf::from(format!("/proc/self/fd/{}", writer.as_raw_fd()));
        let mut destinations =
            Destination::open_all(&[(Document::Result(FileType::Ndjson.into()), &path)]).unwrap();
        let stream = LineStream::open(destinations.remove(0)).unwrap();
        drop(writer);
        let queue = stream.queue();
        let mib = 1 << 20;
        (0..20).for_each(|_| queue.send(vec![b'\n'; mib]));
        let read = std::thread::spawn(move || io::copy(&mut reader.by_ref(), &mut io::sink()).unwrap());
        let failed = stream.finish().unwrap_err();
        let expected = "': more than 16 MiB of lines waited to be written";
        assert!(
            failed.starts_with("-o ndjson: cannot write '/proc/self/fd/") && failed.ends_with(expected),
            "{failed}"
        );
        // What the pipe took made room for one more at most.
        let written = read.join().unwrap();
        assert!((16 * mib as u64..=17 * mib as u64).contains(&written), "{written}");
    }
}
