//! Files that a user names and that are read whole: plans, options, passwords, tokens, certificates, results.
//!
//! Not traces, which are read piece by piece beside the load (`trace_reader.rs`). Invariants: only a regular file is read, or a pipe
//! that was handed to this process open (a process substitution), or standard input, which may be a terminal or a socket, too; another
//! device, a directory and a FIFO are refused before the first byte; at most one byte more than the limit is read; no read waits longer
//! than a limit of its own. Standard input is read by its descriptor, which needs neither procfs nor permission to open it again.

use crate::process::start_thread;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::OFlags;
use std::fs::{File, FileType, OpenOptions, canonicalize, metadata};
use std::io::{self, IsTerminal, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

/// The limit of everything that a person or a program of theirs writes by hand: options, plans, secrets, certificates. The
/// certificates that a Linux distribution trusts are 200 KiB, a size for each of a million values is 8 MiB.
pub const BYTES_MAX: u64 = 16 << 20;
/// The limit of waiting for what is written by hand, or by a program that looks it up.
pub const WAIT_MAX: Duration = Duration::from_secs(60);
/// The path that stands for standard input.
pub const STANDARD_INPUT: &str = "/dev/stdin";

/// What a file or a pipe holds, up to `bytes_max`, within [`WAIT_MAX`].
///
/// # Errors
/// Those of [`read_within`].
pub fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    read_within(path, bytes_max, WAIT_MAX)
}

/// What a file or a pipe holds, up to `bytes_max`; standard input or a pipe may take until `pipe_wait` to end.
///
/// # Errors
/// It cannot be read, is neither a regular file nor a pipe, holds more, or takes longer; the message does not name the path.
pub fn read_within(path: &Path, bytes_max: u64, pipe_wait: Duration) -> io::Result<Vec<u8>> {
    let is_handed = path == Path::new(STANDARD_INPUT) || is_own_descriptor(path);
    let wait = if is_handed { pipe_wait } else { WAIT_MAX };
    let (sender, receiver) = sync_channel(1);
    let path = path.to_owned();
    // A thread, since neither a file system of a network nor one of a program (FUSE) keeps to `O_NONBLOCK`. One that is late is left behind.
    start_thread("brunt-input", move || sender.send(read_to_end(&path, is_handed, bytes_max)))?;
    receiver.recv_timeout(wait).unwrap_or_else(|error| {
        Err(io::Error::other(match error {
            RecvTimeoutError::Timeout => format!("it did not end within {} s", wait.as_secs_f64()),
            RecvTimeoutError::Disconnected => "the thread that read it has ended".to_owned(),
        }))
    })
}

fn read_to_end(path: &Path, is_handed: bool, bytes_max: u64) -> io::Result<Vec<u8>> {
    if path == Path::new(STANDARD_INPUT) {
        let file = standard_input()?;
        let kind = file.metadata()?.file_type();
        if !kind.is_socket() && !file.is_terminal() {
            check(kind, true)?;
        }
        return read_bounded(WaitingReader(file), bytes_max);
    }
    let file = open(path, is_handed)?;
    let opened = file.metadata()?;
    if opened.len() > bytes_max {
        return Err(too_large(bytes_max));
    }
    if !opened.is_file() {
        // It was opened without waiting for a writer, who may have gone already.
        rustix::fs::fcntl_setfl(&file, OFlags::empty())?;
    }
    read_bounded(file, bytes_max)
}

/// Standard input, by another descriptor of the same open file.
///
/// # Errors
/// There are too many descriptors.
pub fn standard_input() -> io::Result<File> {
    Ok(io::stdin().as_fd().try_clone_to_owned()?.into())
}

/// A descriptor that is waited for where it does not block: a process that shares it with us may have made it so.
struct WaitingReader(File);

impl Read for WaitingReader {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.read(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    // What is wrong with the descriptor the next read says.
                    let _ = poll(&mut [PollFd::new(&self.0, PollFlags::IN)], None);
                }
                read => return read,
            }
        }
    }
}

fn read_bounded(file: impl Read, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes).map_err(|error| match error.kind() {
        // Such as /proc/kmsg.
        io::ErrorKind::WouldBlock => io::Error::other("it has no end; expected a regular file"),
        _ => error,
    })?;
    if bytes.len() as u64 > bytes_max { Err(too_large(bytes_max)) } else { Ok(bytes) }
}

/// Opens a regular file that is read piece by piece.
///
/// # Errors
/// It cannot be opened, or is something else.
pub fn open_regular(path: &Path) -> io::Result<File> {
    open(path, false)
}

/// Opens without waiting what can be read: a regular file, or a pipe that was handed to us open.
fn open(path: &Path, is_handed: bool) -> io::Result<File> {
    // Before it is opened: opening a device may do something to it, or wait.
    check(metadata(path)?.file_type(), is_handed)?;
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    check(file.metadata()?.file_type(), is_handed)?;
    Ok(file)
}

/// Is it the path of a descriptor of this process, as that of a process substitution is?
fn is_own_descriptor(path: &Path) -> bool {
    let directory = |path: &Path| canonicalize(path).ok();
    path.parent()
        .and_then(directory)
        .is_some_and(|parent| Some(parent) == directory(Path::new("/proc/self/fd")))
}

/// As [`read`], decoded as UTF-8.
///
/// # Errors
/// Those of [`read`], and bytes that are not UTF-8.
pub fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    decoded(read(path, bytes_max)?)
}

/// These bytes as UTF-8.
///
/// # Errors
/// Bytes that are not.
pub fn decoded(bytes: Vec<u8>) -> io::Result<String> {
    let text = String::from_utf8(bytes);
    text.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))
}

fn check(kind: FileType, is_handed: bool) -> io::Result<()> {
    let name = match kind {
        _ if kind.is_file() || (kind.is_fifo() && is_handed) => return Ok(()),
        _ if kind.is_dir() => "a directory",
        _ if kind.is_socket() => "a socket",
        _ if kind.is_fifo() => "a named pipe",
        _ => "a device",
    };
    Err(io::Error::other(format!("it is {name}; expected a regular file")))
}

fn too_large(bytes_max: u64) -> io::Error {
    io::Error::other(format!("it exceeds the limit of {} MiB", bytes_max >> 20))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::path::PathBuf;

    const MIB: u64 = 1 << 20;

    fn said(path: &Path) -> String {
        read(path, MIB).map_or_else(|error| error.to_string(), |bytes| format!("{} bytes", bytes.len()))
    }

    #[test]
    fn files_are_read_up_to_the_limit() {
        let path = std::env::temp_dir().join(format!("brunt-input-{}", std::process::id()));
        let too_large = "it exceeds the limit of 1 MiB";
        for (len, expected) in
            [(0, "0 bytes"), (MIB, "1048576 bytes"), (MIB + 1, too_large), (1 << 40, too_large)]
        {
            // A hole: a tebibyte that takes no room.
            File::create(&path).unwrap().set_len(len).unwrap();
            assert_eq!(said(&path), expected, "{len}");
        }
        File::create(&path).unwrap().write_all(b"caf\xe9").unwrap();
        assert_eq!(read_text(&path, MIB).unwrap_err().to_string(), "it is not UTF-8 text");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read(&path, MIB).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn what_is_no_file_is_refused() {
        let fifo = std::env::temp_dir().join(format!("brunt-fifo-{}", std::process::id()));
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let table = [
            (Path::new("/dev/zero"), "a device"),
            (Path::new("/dev/null"), "a device"),
            (Path::new("/proc"), "a directory"),
            (&fifo, "a named pipe"),
        ];
        for (path, what) in table {
            let refused = format!("it is {what}; expected a regular file");
            assert_eq!(said(path), refused, "{}", path.display());
            assert_eq!(open_regular(path).unwrap_err().to_string(), refused);
        }
        std::fs::remove_file(fifo).unwrap();
        // A regular file by its kind; only root opens it.
        if File::open("/proc/kmsg").is_ok() {
            assert_eq!(said(Path::new("/proc/kmsg")), "it has no end; expected a regular file");
        }
    }

    /// A pipe that is open already is read to its end, which must come in time.
    #[test]
    fn pipes_that_were_handed_over_are_read() {
        let wait = Duration::from_millis(50);
        let (reader, mut writer) = io::pipe().unwrap();
        let path = PathBuf::from(format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader)));
        writer.write_all(b"keys = 7").unwrap();
        let error = read_within(&path, MIB, wait).unwrap_err().to_string();
        assert_eq!(error, "it did not end within 0.05 s");
        drop(writer);
        let (reader, mut writer) = io::pipe().unwrap();
        let path = PathBuf::from(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader)));
        writer.write_all(b"keys = 7").unwrap();
        drop(writer);
        assert_eq!(read_within(&path, MIB, WAIT_MAX).unwrap(), b"keys = 7");
    }
}
