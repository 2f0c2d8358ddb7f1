//! What is said to a person: lines on standard error, reports on standard output.
//!
//! Not results that a program reads (those are [`crate::output`]'s). Invariant: nothing here fails or panics. A stream that is
//! closed, full or a pipe without a reader takes nothing, and the command goes on and ends as if it had.

use crate::interrupt;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::termios::tcgetwinsize;
use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;

/// More than any screen has with letters that can be read.
const COLUMNS_MAX: u16 = 1_000;
const ROWS_MAX: u16 = 500;

/// Writes a line to standard error, on a terminal in lines as wide as that.
pub(crate) fn say(line: impl Display) {
    let text = line.to_string();
    let text = columns_of(io::stderr()).map_or(text.clone(), |columns| fitted(&text, columns));
    // In one piece, so that lines of several processes do not mix.
    let _ = RetryingWriter(io::stderr()).write_all(format!("{text}\n").as_bytes());
}

/// Columns of a terminal, as far as they are used; `None` for what is none. One that does not say how wide it is has 80.
pub(crate) fn columns_of(stream: impl AsFd + IsTerminal) -> Option<usize> {
    stream.is_terminal().then(|| usize::from(size_of(stream).0))
}

/// Columns and rows of a terminal, as far as they are used.
pub(crate) fn size_of(stream: impl AsFd) -> (u16, u16) {
    let size = tcgetwinsize(stream).map(|size| (size.ws_col, size.ws_row)).unwrap_or_default();
    used_size(size)
}

/// What is used of a terminal of this size: at least something, and no more than is of use, as a size may be any number.
fn used_size((columns, rows): (u16, u16)) -> (u16, u16) {
    let used = |given: u16, usual: u16, max: u16| if given == 0 { usual } else { given.min(max) };
    (used(columns, 80, COLUMNS_MAX), used(rows, 24, ROWS_MAX))
}

/// The text in lines of at most this many characters, but for words that are longer.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if columns_in(line) + 1 + columns_in(word) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Columns that a line takes: its characters but those of colour codes (`ESC [ ... m`).
fn columns_in(line: &str) -> usize {
    let mut codes = line.split("\x1b[");
    let before = codes.next().unwrap_or_default().chars().count();
    before
        + codes.map(|rest| rest.split_once('m').map_or(0, |(_, shown)| shown.chars().count())).sum::<usize>()
}

/// The lines of a text, with those that are too long wrapped and indented. A command to copy stays one line.
fn fitted(text: &str, columns: usize) -> String {
    let fit = |line: &str| {
        let words = line.trim_start();
        if columns_in(line) <= columns || (line != words && words.starts_with("brunt ")) {
            return line.to_owned();
        }
        let indent = line.len() - words.len();
        let further = indent + 2;
        let lines = wrapped(words, columns.saturating_sub(further));
        " ".repeat(indent) + &lines.join(&format!("\n{}", " ".repeat(further)))
    };
    text.lines().map(fit).collect::<Vec<_>>().join("\n")
}

/// Writes to standard output, or to standard error where a document has the other one.
pub(crate) fn print(text: &[u8], goes_to_stderr: bool) -> io::Result<()> {
    match goes_to_stderr {
        true => RetryingWriter(io::stderr()).write_all(text),
        false => standard_output()?.write_all(text),
    }
}

/// What a message calls the stream of [`print()`].
pub(crate) const fn name_of(is_stderr: bool) -> &'static str {
    if is_stderr { "standard error" } else { "standard output" }
}

/// Prints a report. That a disk is full is said on standard error; a reader that went away has read enough.
pub(crate) fn show(text: impl AsRef<[u8]>, goes_to_stderr: bool) {
    match print(text.as_ref(), goes_to_stderr) {
        Err(error) if !matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::NotConnected) => {
            say(format_args!("warning: cannot print the report: {error}"));
        }
        _ => {}
    }
}

/// Writes the line of `--report brief`. A program reads it, so that it must not be lost.
pub(crate) fn print_brief(line: &[u8], goes_to_stderr: bool) -> Result<(), String> {
    print(line, goes_to_stderr)
        .map_err(|error| format!("--report brief: cannot write {}: {error}", name_of(goes_to_stderr)))
}

/// Standard output for a result, which must not be lost.
pub(crate) fn standard_output() -> io::Result<RetryingWriter<io::Stdout>> {
    match brunt_engine::process::standard_output_was_closed() {
        true => Err(io::Error::new(ErrorKind::NotConnected, "it is closed")),
        false => Ok(RetryingWriter(io::stdout())),
    }
}

/// PIPE_BUF of Linux.
const PIPE_BYTES: usize = 4096;

/// A descriptor that is written to without a buffer, and waited for where it does not block: a process that shares a terminal or a pipe with
/// us may have made it so. A wait for a reader ends as [`interrupt`] says.
#[derive(Debug)]
pub(crate) struct RetryingWriter<F>(pub F);

impl<F: AsFd> Write for RetryingWriter<F> {
    fn write(&mut self, mut bytes: &[u8]) -> io::Result<usize> {
        loop {
            if let Some(signalled) = interrupt::reader_wait() {
                let mut polled =
                    [PollFd::new(&self.0, PollFlags::OUT), PollFd::new(signalled, PollFlags::IN)];
                if poll(&mut polled, None) == Err(Errno::INTR) {
                    continue;
                }
                if polled[0].revents().is_empty() {
                    return Err(io::Error::other("interrupted, as its reader takes nothing"));
                }
                // So much a pipe takes at once if it takes anything (pipe(7)).
                bytes = &bytes[..bytes.len().min(PIPE_BYTES)];
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_terminals_are_bounded() {
        let table = [
            ((80, 24), (80, 24)),
            ((1, 1), (1, 1)),
            ((0, 0), (80, 24)),
            ((0, 50), (80, 50)),
            ((30_000, 24), (1_000, 24)),
            ((u16::MAX, u16::MAX), (1_000, 500)),
        ];
        table.into_iter().for_each(|(given, used)| assert_eq!(used_size(given), used));
    }

    #[test]
    fn messages_fit_a_terminal() {
        let message = "brunt: --time: '5' was given; accepted: a duration with its unit, such as 10s\n  -t 5  here -t is --time";
        assert_eq!(
            fitted(message, 40),
            "\
brunt: --time: '5' was given;
  accepted: a duration with its unit,
  such as 10s
  -t 5  here -t is --time"
        );
        let coloured =
            "\x1b[1m\x1b[31merror:\x1b[0m unexpected argument '\x1b[33m--no-such-option\x1b[0m' found";
        assert_eq!(fitted(coloured, 80), coloured);
        assert_eq!(
            fitted(coloured, 40),
            "\x1b[1m\x1b[31merror:\x1b[0m unexpected argument\n  '\x1b[33m--no-such-option\x1b[0m' found"
        );
        let command = "  brunt run --server redis://127.0.0.1:6379 --connections 50";
        assert_eq!(fitted(command, 40), command);
    }
}
