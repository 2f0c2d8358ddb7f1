//! Files that this command reads whole, and which they were: no result may replace one of them.
//!
//! Not how they are read: `brunt_engine::input_file` says what is a file and how large one may be, for the files of TLS and of agents
//! too. Invariant: what was read through here is known to [`is_read`] from then on.

use brunt_engine::input_file;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Of plans, options and secrets.
pub(crate) const BYTES_MAX: u64 = input_file::BYTES_MAX;
/// Of results in JSON: a hundred runs of one campaign are 20 MiB.
const RESULT_BYTES_MAX: u64 = 256 << 20;

/// Device and inode of the regular files that were read. Options name files in the middle of parsing the command line, which has no
/// place for what is not their value; hence a list of the process.
static READ: Mutex<Vec<(u64, u64)>> = Mutex::new(Vec::new());

/// The text of a file or a pipe, up to `bytes_max`.
pub(crate) fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    let text = input_file::read_text(path, bytes_max)?;
    note(path);
    Ok(text)
}

/// The text of a result in JSON; of standard input where `-` is given, as results are written to standard output by it.
pub(crate) fn read_result(path: &Path) -> io::Result<String> {
    let is_stdin = path.as_os_str() == "-";
    read_text(if is_stdin { Path::new("/dev/stdin") } else { path }, RESULT_BYTES_MAX)
}

/// Takes a file for one that is read, though by others.
pub(crate) fn note(path: &Path) {
    if let Some(inode) = inode(path) {
        READ.lock().unwrap_or_else(PoisonError::into_inner).push(inode);
    }
}

/// Was the file of this device and inode read?
pub(crate) fn is_read(inode: (u64, u64)) -> bool {
    READ.lock().unwrap_or_else(PoisonError::into_inner).contains(&inode)
}

/// Device and inode of a regular file.
fn inode(path: &Path) -> Option<(u64, u64)> {
    let held = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    Some((held.dev(), held.ino()))
}
