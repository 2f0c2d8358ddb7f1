//! Where one result goes, and how it gets there.
//!
//! A regular file is written under a temporary name beside it and renamed when it is whole. A pipe, a device and a descriptor that
//! was handed to us are written directly; `-` is standard output. Not which results there are (that is [`crate::output`]'s).
//! Invariants: what cannot be written is refused before anything is measured, as far as that can be known; until a result is whole
//! its file holds what it held before; two results never share a file or standard output, and none goes where something is read; what
//! was written is at its path at the end, or it is said not to be ([`Written`]).

use crate::exit::Failure;
use crate::input::{self, Inode, inode, inode_of};
use crate::terminal::{RetryingWriter, standard_output};
use brunt_report::file_type::{FileForm, FileType};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// As many links as Linux follows itself (path_resolution(7)).
const LINKS_MAX: usize = 40;
/// The longest name of a file in bytes is 255 (NAME_MAX); what is put around it takes up to 30.
const NAME_BYTES_MAX: usize = 200;

/// A result, by what asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Document {
    /// `-o`.
    Result(FileForm),
    /// `--journal`.
    Journal,
    /// Another tool's, by that tool's option; or its log, which is appended to.
    OfTool(&'static str, bool),
}

impl Document {
    /// Is it appended to its file?
    fn appends(self) -> bool {
        match self {
            Self::Result(form) => form == FileType::Markdown.into(),
            Self::Journal => false,
            Self::OfTool(_, is_log) => is_log,
        }
    }

    /// Of this type, as text?
    pub(crate) fn is(self, file_type: FileType) -> bool {
        self == Self::Result(file_type.into())
    }

    /// What a message calls it.
    pub(crate) fn option(self) -> String {
        match self {
            Self::Result(form) => form.option(),
            Self::Journal => "--journal".to_owned(),
            Self::OfTool(option, _) => option.to_owned(),
        }
    }
}

/// Where a result that was asked for goes.
#[derive(Debug)]
pub(crate) struct Destination {
    pub(crate) document: Document,
    /// As given.
    path: PathBuf,
    place: Place,
    /// Of a regular file: what it is, or, where there is none yet, the directory and the name that it gets.
    identity: Option<(Inode, Option<OsString>)>,
    /// What is written directly, once it is open.
    opened: Option<File>,
    /// Readers follow the file: what is written is there at once.
    pub(crate) is_followed: bool,
}

/// Where a path leads when every link has been followed, in the order of writing: files are there whatever becomes of a pipe or a terminal.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    /// A regular file that has a name, or gets one.
    File(PathBuf),
    /// A pipe, a device, or a file that was opened by the process that started us, which may have no other name for it.
    Direct(PathBuf),
    /// `-`, and every path to descriptor 1.
    StandardOutput,
    /// Every path to descriptor 2.
    StandardError,
}

/// A result that was written, and the file that it is in.
#[derive(Debug)]
#[must_use = "whether it is still there decides the exit code"]
pub(crate) struct Written {
    option: String,
    /// As given.
    path: PathBuf,
    /// By no link; of a file that has a name.
    place: Option<(PathBuf, Inode)>,
}

impl Written {
    /// Is the file at its path? Others may have removed it since, or put another there. The error names option and path.
    pub(crate) fn check(&self) -> Result<(), String> {
        let Some((place, written)) = &self.place else { return Ok(()) };
        let reason = match fs::symlink_metadata(place) {
            Ok(held) if inode(&held) == *written => return Ok(()),
            Ok(_) => "another file replaced it meanwhile".to_owned(),
            Err(error) if error.kind() == ErrorKind::NotFound => "it was removed meanwhile".to_owned(),
            Err(error) => error.to_string(),
        };
        Err(format!("{}: '{}' is lost: {reason}", self.option, self.path.display()))
    }
}

impl Destination {
    /// Makes sure that each can be written, and that they are different.
    pub(crate) fn open_all(asked: &[(Document, &Path)]) -> Result<Vec<Self>, Failure> {
        let mut destinations = Self::find_all(asked)?;
        // A pipe may wait for a reader: only when everything else can be written.
        destinations.sort_by_key(|destination| match destination.place {
            Place::File(_) => 0,
            Place::Direct(_) if destination.identity.is_some() => 1,
            Place::Direct(_) => 2,
            Place::StandardOutput | Place::StandardError => 3,
        });
        for destination in &mut destinations {
            destination.open().map_err(|error| refused(destination.document, &destination.path, error))?;
        }
        Ok(destinations)
    }

    /// Makes sure of the files among them alone, and leaves none behind.
    pub(crate) fn check_files(asked: &[(Document, &Path)]) -> Result<(), Failure> {
        let files = Self::find_all(asked)?.into_iter();
        files
            .filter(|file| !file.has_reader() && !file.document.appends())
            .try_for_each(|mut file| file.open().map_err(|error| refused(file.document, &file.path, error)))
    }

    fn find_all(asked: &[(Document, &Path)]) -> Result<Vec<Self>, Failure> {
        check_standard_output().map_err(Failure::usage)?;
        let found = asked.iter().map(|(document, path)| {
            Self::find(*document, path).map_err(|error| refused(*document, path, error))
        });
        let destinations = found.collect::<Result<Vec<_>, Failure>>()?;
        check_apart(&destinations).map_err(Failure::usage)?;
        Ok(destinations)
    }

    /// Follows every link of a path.
    fn find(document: Document, given: &Path) -> io::Result<Self> {
        let at = |place, identity| {
            let (path, opened) = (given.to_owned(), None);
            Ok(Self { document, path, place, identity, opened, is_followed: false })
        };
        let of_stream = |inode: Option<Inode>| inode.map(|inode| (inode, None));
        if given == Path::new("-") {
            return at(Place::StandardOutput, of_stream(inode_of(io::stdout())));
        }
        let mut path = given.to_owned();
        for _ in 0..LINKS_MAX {
            let (directory, name) = split(&path)?;
            let full = directory.join(&name);
            // Links there are no text to follow, though they can be read: what is open may have been renamed or removed.
            let is_descriptor =
                directory.starts_with("/proc") && directory.file_name() == Some(OsStr::new("fd"));
            let held = if is_descriptor { fs::metadata(&full) } else { fs::symlink_metadata(&full) };
            let held = match held {
                Ok(held) if held.is_symlink() => {
                    path = directory.join(fs::read_link(&full)?);
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::NotFound && !is_descriptor => {
                    let identity = Some((inode(&fs::metadata(&directory)?), Some(name)));
                    return at(Place::File(full), identity);
                }
                held => held?,
            };
            if held.is_dir() {
                return Err(ErrorKind::IsADirectory.into());
            }
            let is_ours =
                is_descriptor && fs::canonicalize("/proc/self/fd").is_ok_and(|ours| ours == directory);
            let place = match name.to_str() {
                Some("1") if is_ours => Place::StandardOutput,
                Some("2") if is_ours => Place::StandardError,
                _ if held.is_file() && !is_descriptor => Place::File(full),
                _ => Place::Direct(full),
            };
            return at(place, of_stream(held.is_file().then(|| inode(&held))));
        }
        Err(Errno::LOOP.into())
    }

    /// Opens what is written directly, and tries whether a file can be written beside one that is not.
    fn open(&mut self) -> io::Result<()> {
        match &self.place {
            Place::File(path) if self.document.appends() => {
                OpenOptions::new().append(true).create(true).open(path)?;
            }
            Place::File(path) => {
                if matches!(self.identity, Some((_, None))) {
                    OpenOptions::new().write(true).open(path)?;
                }
                partial(path)?;
            }
            // What is there was written by others, or by an option before this one.
            Place::Direct(path) => self.opened = Some(OpenOptions::new().append(true).open(path)?),
            Place::StandardOutput | Place::StandardError => {}
        }
        Ok(())
    }

    /// Does it take standard output?
    pub(crate) fn is_standard_output(&self) -> bool {
        self.place == Place::StandardOutput
    }

    /// Does a reader take it, or a device, so that it is up to others how long writing takes?
    pub(crate) fn has_reader(&self) -> bool {
        !matches!(self.place, Place::File(_))
    }

    /// Writes it. The error names option and path.
    pub(crate) fn write(
        &self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<Written, String> {
        let mut options = OpenOptions::new();
        options.create(true);
        let written = match &self.place {
            Place::File(path) => {
                let file = match (self.document.appends(), self.is_followed) {
                    // Opened only now: what was removed since is made again.
                    (true, _) => write_file(options.append(true), path, write),
                    (false, true) => write_file(options.write(true).truncate(true), path, write),
                    (false, false) => replace(path, write),
                };
                file.and_then(|file| Ok(Some((path.clone(), inode(&file.metadata()?)))))
            }
            Place::Direct(_) => {
                let opened = self.opened.as_ref().expect("open_all opened it");
                write_buffered(RetryingWriter(opened), write).map(|()| None)
            }
            Place::StandardOutput => {
                standard_output().and_then(|out| write_buffered(out, write)).map(|()| None)
            }
            Place::StandardError => write_buffered(RetryingWriter(io::stderr()), write).map(|()| None),
        };
        let (option, path) = (self.document.option(), self.path.clone());
        written.map(|place| Written { option, path, place }).map_err(|error| self.failure(error))
    }

    /// Says that it was not written whole.
    pub(crate) fn failure(&self, reason: impl Display) -> String {
        let option = self.document.option();
        match self.place {
            Place::StandardOutput => format!("{option}: cannot write standard output: {reason}"),
            _ => format!("{option}: cannot write '{}': {reason}", self.path.display()),
        }
    }
}

fn refused(document: Document, path: &Path, error: io::Error) -> Failure {
    Failure::usage(format!(
        "invalid value '{}' for {} ({error}): expected the path of a file that can be written, in a directory where files can be made",
        path.display(),
        document.option()
    ))
}

/// Writes a file whole or not at all; links are followed.
pub(crate) fn write_whole(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    match Destination::find(Document::Result(FileType::Json.into()), path)?.place {
        Place::File(path) => replace(&path, write).map(drop),
        _ => Err(io::Error::other("it is no regular file")),
    }
}

/// Refuses a standard output that was redirected to a file that is read.
pub(crate) fn check_standard_output() -> Result<(), String> {
    match inode_of(io::stdout()).is_some_and(input::is_read) {
        true => Err("standard output is a file that this command reads: expected another file".to_owned()),
        false => Ok(()),
    }
}

/// Refuses two results for one file or for standard output, and one for a file that is read, or that the text goes to. Pipes and devices take
/// what they are given, one after the other.
fn check_apart(destinations: &[Destination]) -> Result<(), String> {
    for (index, Destination { document, path, place, identity, .. }) in destinations.iter().enumerate() {
        let (option, path) = (document.option(), path.display());
        let is_output = *place == Place::StandardOutput;
        let is_same = |other: &&Destination| {
            (is_output && other.is_standard_output()) || (identity.is_some() && *identity == other.identity)
        };
        if let Some(other) = destinations[index + 1..].iter().find(is_same) {
            let (one, accepted) = match is_output {
                true => ("standard output", "standard output for one of them, files for the others"),
                false => ("one file", "a file for each"),
            };
            let (other, other_path) = (other.document.option(), other.path.display());
            let given = match path.to_string() == other_path.to_string() {
                true => format!("'{path}' was given to each"),
                false => format!("'{path}' and '{other_path}' were given, which are {one}"),
            };
            return Err(format!("{option}, {other}: {given}: expected {accepted}"));
        }
        let (Some((inode, None)), Place::File(_) | Place::Direct(_)) = (identity, place) else { continue };
        let streams = [(inode_of(io::stdout()), "output"), (inode_of(io::stderr()), "error")];
        if let Some((_, name)) = streams.iter().find(|(stream, _)| *stream == Some(*inode)) {
            return Err(format!("{option}: '{path}' is also standard {name}: expected another file, or '-'"));
        }
        if input::is_read(*inode) {
            return Err(format!("{option}: '{path}' is read by this command: expected another file"));
        }
    }
    Ok(())
}

/// The directory of a path, without links, and the name in it.
fn split(path: &Path) -> io::Result<(PathBuf, OsString)> {
    // Both end a path to a directory, and `file_name` passes over them.
    let ends = [&b"/"[..], b"/."];
    let is_directory = ends.iter().any(|end| path.as_os_str().as_bytes().ends_with(end));
    let Some(name) = path.file_name().filter(|_| !is_directory) else {
        return Err(ErrorKind::IsADirectory.into());
    };
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    Ok((fs::canonicalize(directory.unwrap_or(Path::new(".")))?, name.to_owned()))
}

fn write_buffered(out: impl Write, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut buffered = BufWriter::new(out);
    write(&mut buffered)?;
    buffered.flush()
}

/// Writes a file where it is. Some file systems, those of networks among them, say only at its end that there is no room.
fn write_file(
    options: &OpenOptions,
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<File> {
    let file = options.open(path)?;
    write_buffered(&file, write)?;
    file.sync_all()?;
    Ok(file)
}

/// Writes a file under another name and renames it when it is whole. Returns the file that has the name then.
fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<File> {
    let partial = partial(path)?;
    write_buffered(partial.as_file(), write)?;
    partial.as_file().sync_all()?;
    let (error, partial) = match partial.persist(path) {
        Ok(file) => return Ok(file),
        Err(failed) => (failed.error, failed.file),
    };
    // A file that is mounted by itself, as into a container, or another user's in /tmp can be written and not replaced.
    let is_fixed = matches!(
        error.kind(),
        ErrorKind::ResourceBusy | ErrorKind::CrossesDevices | ErrorKind::PermissionDenied
    );
    let copied = if is_fixed { copy(&partial, path) } else { Err(error) };
    copied.map_err(|error| {
        let whereabouts = whereabouts(&partial);
        // It is kept in any case.
        let _ = partial.keep();
        io::Error::other(format!("{error}; {whereabouts}"))
    })
}

/// An empty file beside another, `.NAME.XXXXXX.partial`, with owner and permissions of the one that it is to replace; it is gone when this is.
fn partial(path: &Path) -> io::Result<NamedTempFile> {
    let earlier = fs::metadata(path).ok();
    let mode = earlier.as_ref().map_or(0o666, |earlier| earlier.mode() & 0o777);
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(ErrorKind::IsADirectory.into());
    };
    let name = &name.as_bytes()[..name.len().min(NAME_BYTES_MAX)];
    let prefix = [b".", name, b"."].concat();
    let mut builder = tempfile::Builder::new();
    builder.prefix(OsStr::from_bytes(&prefix)).suffix(".partial");
    let partial = builder.make_in(directory, |path| {
        OpenOptions::new().read(true).write(true).create_new(true).mode(mode).open(path)
    })?;
    earlier.iter().for_each(|earlier| copy_attributes(partial.as_file(), earlier));
    Ok(partial)
}

/// Where it is now. Others may have removed or moved it, or the directory that it is in.
fn whereabouts(partial: &NamedTempFile) -> String {
    let path = partial.path().display();
    match (partial.as_file().metadata(), fs::symlink_metadata(partial.path())) {
        (Ok(own), Ok(held)) if inode(&own) == inode(&held) => format!("it is in '{path}' instead"),
        (Ok(own), _) if own.nlink() > 0 => format!("it was moved from '{path}' meanwhile"),
        _ => "it was removed meanwhile".to_owned(),
    }
}

/// Puts what it holds into a file that is there, whose content stays where there is no room for the new one.
fn copy(partial: &NamedTempFile, to: &Path) -> io::Result<File> {
    let mut target = OpenOptions::new().write(true).open(to)?;
    let length = partial.as_file().metadata()?.len();
    match fallocate(&target, FallocateFlags::KEEP_SIZE, 0, length.max(1)) {
        // Where the file system cannot tell beforehand, it is tried.
        Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
        Err(error) => return Err(error.into()),
    }
    target.set_len(length)?;
    let mut source = partial.as_file();
    source.rewind()?;
    io::copy(&mut source, &mut target)?;
    target.sync_all()?;
    Ok(target)
}

/// Makes a file as accessible as another. Where that is not allowed it is less so: it was created with no more permissions than that has.
fn copy_attributes(file: &File, earlier: &Metadata) {
    let Ok(own) = file.metadata() else { return };
    // Separately: who may not give a file away may still give it to another of their groups.
    if own.gid() != earlier.gid() {
        let _ = fchown(file, None, Some(earlier.gid()));
    }
    if own.uid() != earlier.uid() {
        let _ = fchown(file, Some(earlier.uid()), None);
    }
    let _ = file.set_permissions(earlier.permissions());
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;
    use tempfile::{TempDir, tempdir};

    /// The only file of a directory that has a temporary name.
    fn partial_in(directory: &Path) -> PathBuf {
        let mut entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        entries.find(|path| path.extension() == Some(OsStr::new("partial"))).unwrap()
    }

    /// What fails in the middle leaves what was there, and one that cannot get its name is kept under the other.
    #[test]
    fn results_appear_whole_or_not_at_all() {
        let directory = tempdir().unwrap();
        let path = directory.path().join("x.json");
        fs::write(&path, "old").unwrap();
        let failed = write_whole(&path, |out| {
            out.write_all(&[0; 100_000])?;
            Err(io::Error::other("half way"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "half way");
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        fs::remove_file(&path).unwrap();
        let kept = replace(&path, |out| {
            fs::create_dir(&path)?;
            out.write_all(b"new")
        });
        let (message, other) = (kept.unwrap_err().to_string(), partial_in(directory.path()));
        assert!(message.ends_with(&format!("; it is in '{}' instead", other.display())), "{message}");
        assert_eq!(fs::read_to_string(other).unwrap(), "new");
    }

    /// Opening a pipe waits for its reader: what else is written directly is open by then.
    #[test]
    fn pipes_are_opened_last() {
        let directory = tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let _reader = OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
        let inherited = tempfile::tempfile().unwrap();
        let descriptor = PathBuf::from(format!("/proc/self/fd/{}", inherited.as_raw_fd()));
        let (output, file) = (PathBuf::from("-"), directory.path().join("x.csv"));
        let asked = [
            (Document::Result(FileType::Json.into()), &*output),
            (Document::Result(FileType::Samples.into()), &*pipe),
            (Document::Result(FileType::Html.into()), &*descriptor),
            (Document::Result(FileType::Csv.into()), &*file),
        ];
        let opened = Destination::open_all(&asked).unwrap();
        let order: Vec<String> = opened.iter().map(|destination| destination.document.option()).collect();
        assert_eq!(order, ["-o csv", "-o html", "-o samples", "-o json"]);
    }

    /// A file that cannot be replaced gets the content, also if the other file lost its name meanwhile.
    #[test]
    fn files_that_cannot_be_replaced_are_overwritten() {
        let directory = tempdir().unwrap();
        let path = directory.path().join("x.json");
        fs::write(&path, "old and longer").unwrap();
        let partial = partial(&path).unwrap();
        partial.as_file().write_all(b"new").unwrap();
        fs::remove_file(partial.path()).unwrap();
        copy(&partial, &path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    }

    /// A message names only a file that is there.
    #[test]
    fn partial_files_that_others_took_away_are_said_to_be_gone() {
        type TakeAway = fn(&TempDir) -> io::Result<()>;
        let moved = |directory: &TempDir| directory.path().join("moved");
        let table: [(TakeAway, bool); 3] = [
            (|directory| fs::remove_dir_all(directory.path().join("in")), false),
            (|directory| fs::rename(directory.path().join("in"), directory.path().join("moved")), true),
            // Another file has its name.
            (
                |directory| {
                    let inside = directory.path().join("in");
                    let partial = partial_in(&inside);
                    fs::rename(&inside, directory.path().join("moved"))?;
                    fs::create_dir(&inside)?;
                    fs::write(&partial, "other")?;
                    fs::create_dir(inside.join("x.json"))
                },
                true,
            ),
        ];
        for (take_away, is_moved) in table {
            let directory = tempdir().unwrap();
            let inside = directory.path().join("in");
            fs::create_dir(&inside).unwrap();
            let failed = replace(&inside.join("x.json"), |out| {
                take_away(&directory)?;
                out.write_all(b"new")
            });
            let message = failed.unwrap_err().to_string();
            let expected = match is_moved {
                true => {
                    let name = partial_in(&moved(&directory)).file_name().unwrap().to_owned();
                    format!("; it was moved from '{}' meanwhile", inside.join(name).display())
                }
                false => "; it was removed meanwhile".to_owned(),
            };
            assert!(message.ends_with(&expected), "{message}");
        }
    }
}
