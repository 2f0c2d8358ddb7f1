//! What is said to a person: lines on standard error, reports on standard output.
//!
//! Not results that a program reads (those are [`crate::output`]'s). Invariant: nothing here fails or panics. A stream that is
//! closed, full or a pipe without a reader takes nothing, and the command goes on and ends as if it had.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::fmt::Display;
use std::io::{self, Write};
use std::os::fd::AsFd;

/// Writes a line to standard error.
pub(crate) fn say(line: impl Display) {
    // In one piece, so that lines of several processes do not mix.
    let _ = RetryingWriter(io::stderr()).write_all(format!("{line}\n").as_bytes());
}

/// Writes a report to standard output, or to standard error where a document has the other one. That a disk is full is said on
/// standard error; a reader that went away has read enough.
pub(crate) fn show(text: impl AsRef<[u8]>, goes_to_stderr: bool) {
    let text = text.as_ref();
    let shown = match goes_to_stderr {
        true => RetryingWriter(io::stderr()).write_all(text),
        false => RetryingWriter(io::stdout()).write_all(text),
    };
    match shown {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        Err(error) => say(format_args!("warning: cannot print the report: {error}")),
    }
}

/// Standard output as a writer that takes everything.
#[derive(Debug)]
pub(crate) struct Page;

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        show(bytes, false);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Standard output for a result, which must not be lost.
pub(crate) fn standard_output() -> io::Result<RetryingWriter<io::Stdout>> {
    match brunt_engine::standard_output_was_closed() {
        true => Err(io::Error::other("it is closed")),
        false => Ok(RetryingWriter(io::stdout())),
    }
}

/// A descriptor that is written to without a buffer, and waited for where it does not block: a process that shares a terminal or a pipe with
/// us may have made it so.
#[derive(Debug)]
pub(crate) struct RetryingWriter<F>(pub F);

impl<F: AsFd> Write for RetryingWriter<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match rustix::io::write(&self.0, bytes) {
                Err(Errno::AGAIN) => {
                    // What is wrong with the descriptor the next write says.
                    let _ = poll(&mut [PollFd::new(&self.0, PollFlags::OUT)], None);
                }
                written => return Ok(written?),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
