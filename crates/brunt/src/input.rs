//! Files that this command reads whole, and which they were: no result may replace one of them.
//!
//! Not how they are read: `brunt_engine::input_file` says what is a file and how large one may be, for the files of TLS and of agents
//! too. Invariant: what was read through here is known to [`is_read`] from then on.

use brunt_engine::input_file;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Of plans, options and secrets.
pub(crate) const BYTES_MAX: u64 = input_file::BYTES_MAX;
/// Of results in JSON: a hundred runs of one campaign are 20 MiB.
const RESULT_BYTES_MAX: u64 = 256 << 20;

/// Device and inode of the regular files that were read. Options name files in the middle of parsing the command line, which has no
/// place for what is not their value; hence a list of the process.
static READ: Mutex<Vec<(u64, u64)>> = Mutex::new(Vec::new());

/// How long a result may be waited for: the run that writes it into a pipe may go on.
const RESULT_WAIT_MAX: Duration = Duration::from_secs(24 * 3600);

/// The text of a file or a pipe, up to `bytes_max`.
pub(crate) fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    read_within(path, bytes_max, input_file::WAIT_MAX)
}

/// The text of a result in JSON.
pub(crate) fn read_result(path: &Path) -> io::Result<String> {
    read_within(path, RESULT_BYTES_MAX, RESULT_WAIT_MAX)
}

fn read_within(path: &Path, bytes_max: u64, pipe_wait: Duration) -> io::Result<String> {
    let text = input_file::decoded(input_file::read_within(opened(path), bytes_max, pipe_wait)?)?;
    note(path);
    Ok(text)
}

/// What a path stands for: `-` is standard input, as results are written to standard output by it.
fn opened(path: &Path) -> &Path {
    if path.as_os_str() == "-" { Path::new(input_file::STANDARD_INPUT) } else { path }
}

/// Takes a file for one that is read, though by others.
pub(crate) fn note(path: &Path) {
    if let Some(inode) = inode(opened(path)) {
        READ.lock().unwrap_or_else(PoisonError::into_inner).push(inode);
    }
}

/// Was the file of this device and inode read?
pub(crate) fn is_read(inode: (u64, u64)) -> bool {
    READ.lock().unwrap_or_else(PoisonError::into_inner).contains(&inode)
}

/// Device and inode of a regular file.
fn inode(path: &Path) -> Option<(u64, u64)> {
    let held = match path == Path::new(input_file::STANDARD_INPUT) {
        true => input_file::standard_input().and_then(|file| file.metadata()),
        false => std::fs::metadata(path),
    };
    let held = held.ok().filter(std::fs::Metadata::is_file)?;
    Some((held.dev(), held.ino()))
}
