//! Files that a user names and that are read whole: plans, options, passwords, tokens, certificates, results.
//!
//! Not traces, which are read piece by piece beside the load (`trace_reader.rs`). Invariants: only a regular file or a pipe is
//! read; a device or a directory is refused before the first byte; at most one byte more than the limit is read.

use std::fs::{File, FileType, metadata};
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// The limit of everything that a person or a program of theirs writes by hand: options, plans, secrets, certificates. The
/// certificates that a Linux distribution trusts are 200 KiB, a size for each of a million values is 8 MiB.
pub const BYTES_MAX: u64 = 16 << 20;

/// What a file or a pipe holds, up to `bytes_max`.
///
/// # Errors
/// It cannot be read, is neither a regular file nor a pipe, or holds more; the message does not name the path.
pub fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    // Before it is opened: opening a device may do something to it, or wait.
    check(metadata(path)?.file_type())?;
    let file = File::open(path)?;
    let opened = file.metadata()?;
    check(opened.file_type())?;
    if opened.len() > bytes_max {
        return Err(too_large(bytes_max));
    }
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max { Err(too_large(bytes_max)) } else { Ok(bytes) }
}

/// As [`read`], decoded as UTF-8.
///
/// # Errors
/// Those of [`read`], and bytes that are not UTF-8.
pub fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    let text = String::from_utf8(read(path, bytes_max)?);
    text.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))
}

fn check(kind: FileType) -> io::Result<()> {
    let name = match kind {
        _ if kind.is_file() || kind.is_fifo() => return Ok(()),
        _ if kind.is_dir() => "a directory",
        _ if kind.is_socket() => "a socket",
        _ => "a device",
    };
    Err(io::Error::other(format!("it is {name}; expected a regular file or a pipe")))
}

fn too_large(bytes_max: u64) -> io::Error {
    io::Error::other(format!("it exceeds the limit of {} MiB", bytes_max >> 20))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

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
    fn devices_are_refused() {
        let refused = |what: &str| format!("it is {what}; expected a regular file or a pipe");
        for (path, what) in [("/dev/zero", "a device"), ("/dev/null", "a device"), ("/proc", "a directory")] {
            assert_eq!(said(Path::new(path)), refused(what), "{path}");
        }
    }
}
