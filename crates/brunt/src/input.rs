//! Files that this command reads whole, and which they were: no result may replace one of them. A file that an option names by `@FILE` has
//! its text, which is too long for a command line.
//!
//! Not how they are read: `brunt_engine::input_file` says what is a file and how large one may be, for the files of TLS and of agents
//! too. Invariants: what was read through here is known to [`is_read`] from then on; what a run was made with is in its resolved plan, not in
//! a file that may have changed since.

use brunt_engine::input_file;
pub(crate) use brunt_engine::input_file::decoded;
use brunt_plan::spec::OPTIONS;
use brunt_plan::spec::PlanOption;
use std::cmp::Reverse;
use std::fs::{self, File, Metadata};
use std::io::{self, BufRead, BufReader, Read};
use std::iter;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use toml::de::DeTable;

/// Of plans, options and secrets.
pub(crate) const BYTES_MAX: u64 = input_file::BYTES_MAX;
/// Of results in JSON: a hundred runs of one campaign are 20 MiB.
const RESULT_BYTES_MAX: u64 = 256 << 20;

/// Device and inode.
pub(crate) type Inode = (u64, u64);

/// The regular files that were read. Options name files in the middle of parsing the command line, which has no
/// place for what is not their value; hence a list of the process.
static READ: Mutex<Vec<Inode>> = Mutex::new(Vec::new());

/// How long a result may be waited for: the run that writes it into a pipe may go on.
const RESULT_WAIT_MAX: Duration = Duration::from_secs(24 * 3600);

/// The text of a file or a pipe, up to `bytes_max`.
pub(crate) fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    decoded(read_within(path, bytes_max, input_file::WAIT_MAX)?)
}

/// The bytes of a result, which are JSON or a journal.
pub(crate) fn read_result(path: &Path) -> io::Result<Vec<u8>> {
    read_within(path, RESULT_BYTES_MAX, RESULT_WAIT_MAX)
}

/// A file, from its beginning on, if it is a regular one that begins like this.
pub(crate) fn file_with_magic(path: &Path, magic: &[u8]) -> io::Result<Option<impl Read>> {
    if !fs::metadata(opened(path))?.is_file() {
        return Ok(None);
    }
    let mut file = BufReader::new(File::open(opened(path))?);
    note(path);
    let has_magic = file.fill_buf()?.starts_with(magic);
    Ok(has_magic.then_some(file))
}

fn read_within(path: &Path, bytes_max: u64, pipe_wait: Duration) -> io::Result<Vec<u8>> {
    let bytes = input_file::read_within(opened(path), bytes_max, pipe_wait)?;
    note(path);
    Ok(bytes)
}

/// What a path stands for: `-` is standard input, as results are written to standard output by it.
fn opened(path: &Path) -> &Path {
    if path.as_os_str() == "-" { Path::new(input_file::STANDARD_INPUT) } else { path }
}

/// Takes a file for one that is read, though by others.
pub(crate) fn note(path: &Path) {
    let inode = match opened(path) {
        path if path == Path::new(input_file::STANDARD_INPUT) => {
            input_file::standard_input().ok().and_then(inode_of)
        }
        path => fs::metadata(path).ok().filter(Metadata::is_file).map(|held| inode(&held)),
    };
    READ.lock().unwrap_or_else(PoisonError::into_inner).extend(inode);
}

/// Was this file read?
pub(crate) fn is_read(inode: Inode) -> bool {
    READ.lock().unwrap_or_else(PoisonError::into_inner).contains(&inode)
}

pub(crate) fn inode(held: &Metadata) -> Inode {
    (held.dev(), held.ino())
}

/// Of an open descriptor of a regular file.
pub(crate) fn inode_of(stream: impl AsFd) -> Option<Inode> {
    let file = File::from(stream.as_fd().try_clone_to_owned().ok()?);
    file.metadata().ok().filter(Metadata::is_file).map(|held| inode(&held))
}

/// The text of a flag's value: `text`, or what the file says that `@FILE` names: its lines, joined by commas, are what would have stood after
/// the option; from `#` to the end of a line is a comment.
///
/// # Errors
/// The file cannot be read, or the text is no value of the option; for a user, without the name of the flag.
pub(crate) fn check_or_read(option: &PlanOption, text: &str) -> Result<String, String> {
    match text.trim().strip_prefix('@').filter(|_| option.is_or_file) {
        None => option.check(text).map(|()| text.to_owned()),
        Some(path) => {
            let text = read_option(Path::new(path))?;
            option.check(&text).map_err(|error| format!("in the file '{path}': {error}"))?;
            Ok(text)
        }
    }
}

/// The text of a plan file with every `@FILE` replaced by what that file says; paths are relative to `directory`. Line
/// numbers stay as they are. A plan that is no TOML is returned as it is: the parser reports where it is wrong.
///
/// # Errors
/// A file cannot be read, or holds no value of its key; for a user, with the name of the key.
pub(crate) fn fill_in(plan: &str, directory: &Path) -> Result<String, String> {
    let Ok(table) = DeTable::parse(plan) else { return Ok(plan.to_owned()) };
    let classes = table.get_ref().get("class").and_then(|classes| classes.get_ref().as_array());
    let classes = classes.into_iter().flat_map(|classes| classes.iter());
    let classes = classes.filter_map(|class| class.get_ref().as_table());
    let mut files = Vec::new();
    for (name, value) in iter::once(table.get_ref()).chain(classes).flatten() {
        let path = value.get_ref().as_str().and_then(|text| text.strip_prefix('@'));
        let mut or_file = OPTIONS.iter().filter(|option| option.is_or_file);
        let option = or_file.find(|option| option.key() == name.get_ref().as_ref());
        files.extend(option.zip(path).map(|(option, path)| (value.span(), option, path)));
    }
    // From the end, so that the places in front stay where they are.
    files.sort_by_key(|(place, ..)| Reverse(place.start));
    let mut filled = plan.to_owned();
    for (place, option, path) in files {
        let full = directory.join(path);
        let accepted = |error: String| format!("invalid value '@{path}' for {}: {error}", option.key());
        let text = read_option(&full).map_err(accepted)?;
        option
            .check(&text)
            .map_err(|error| accepted(format!("in the file '{}': {error}", full.display())))?;
        filled.replace_range(place, &toml::Value::String(text).to_string());
    }
    Ok(filled)
}

fn read_option(path: &Path) -> Result<String, String> {
    let text = read_text(path, BYTES_MAX).map_err(|error| {
        format!("cannot read '{}' ({error}): expected @ and the path of a text file", path.display())
    })?;
    let lines = text.lines().map(|line| line.split_once('#').map_or(line, |(value, _)| value));
    let values = lines.map(|line| line.trim().trim_end_matches(',').trim_end());
    let values: Vec<&str> = values.filter(|value| !value.is_empty()).collect();
    Ok(values.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// A directory with these files in the temporary one, which `cargo xtask test` removes.
    fn directory(name: &str, files: &[(&str, &str)]) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("brunt-option-file-{}-{name}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        files.iter().for_each(|(file, text)| fs::write(directory.join(file), text).unwrap());
        directory
    }

    #[test]
    fn lines_are_joined_and_comments_dropped() {
        let text = "# morning\n0s=1k,\n\n  10s = 2k  # noon\n20s=5,\n";
        let path = directory("lines", &[("profile.csv", text)]).join("profile.csv");
        let option = OPTIONS.iter().find(|option| option.field == "rate_profile").unwrap();
        let read = |text: &str| check_or_read(option, text);
        assert_eq!(read(&format!("@{}", path.display())).unwrap(), "0s=1k,10s = 2k,20s=5");
        assert_eq!(read("0s=7").unwrap(), "0s=7");
        let missing = read("@/no/such/file").unwrap_err();
        assert!(
            missing.contains("cannot read '/no/such/file'") && missing.contains(": expected @"),
            "{missing}"
        );
    }

    #[test]
    fn files_named_in_a_plan_are_inlined() {
        let files = [("sizes", "uniform:10,\n20"), ("wrong", "big"), ("profile", "0s=1k\n5s=2k")];
        let directory = directory("plan", &files);
        let table = [
            ("keys = 5\n", Ok("keys = 5\n")),
            ("prefix = '@sizes'\n", Ok("prefix = '@sizes'\n")),
            (
                "value-size = '@sizes' # here\nrate-profile = \"@profile\"\n",
                Ok("value-size = \"uniform:10,20\" # here\nrate-profile = \"0s=1k,5s=2k\"\n"),
            ),
            (
                "[[class]]\nname = 'a'\nkey-size = '@sizes'\n[[class]]\nname = 'b'\n",
                Ok("[[class]]\nname = 'a'\nkey-size = \"uniform:10,20\"\n[[class]]\nname = 'b'\n"),
            ),
            ("no toml", Ok("no toml")),
            ("value-size = '@wrong'\n", Err("invalid value '@wrong' for value-size: in the file")),
            ("arrival = '@missing'\n", Err("invalid value '@missing' for arrival: cannot read")),
        ];
        for (plan, expected) in table {
            match (fill_in(plan, &directory), expected) {
                (Ok(filled), Ok(expected)) => assert_eq!(filled, expected),
                (Err(error), Err(expected)) => assert!(error.starts_with(expected), "{error}"),
                (filled, _) => panic!("{plan:?}: {filled:?}"),
            }
        }
    }
}
