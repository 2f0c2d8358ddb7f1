//! Where one result goes, and how it gets there.
//!
//! A regular file is written under a temporary name beside it and renamed when it is whole. A pipe, a device and a descriptor that
//! was handed to us are written directly; `-` is standard output. Not which results there are (that is [`crate::output`]'s).
//! Invariants: what cannot be written is refused before anything is measured, as far as that can be known; until a result is whole
//! its file holds what it held before; two results never share a file or standard output, and none goes where something is read; what
//! was written is at its path at the end, or it is said not to be ([`Written`]).

use crate::exit::Failure;
use crate::input;
use crate::terminal::{RetryingWriter, standard_output};
use brunt_report::subject::Format;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

/// As many links as Linux follows itself (path_resolution(7)).
const LINKS_MAX: usize = 40;
/// The longest name of a file in bytes is 255 (NAME_MAX); what is put around it takes up to 30.
const NAME_BYTES_MAX: usize = 200;
/// Left over from processes that were killed while they wrote, and had our number: in a container all have the same.
const LEFT_OVER_MAX: u32 = 100;

/// A result, by the option that asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Document {
    Json,
    Csv,
    Html,
    Spectrum,
    Hlog,
    Ndjson,
    Samples,
    Junit,
    Summary,
    /// By its place among the figures.
    Figure(usize),
    /// Another tool's, by that tool's option; or its log, which is appended to.
    OfTool(&'static str, bool),
}

impl Document {
    /// Forms that a campaign does not have.
    pub(crate) const OF_ONE_RUN: [Self; 3] = [Self::Spectrum, Self::Hlog, Self::Junit];
    /// Those that several results side by side do not have.
    pub(crate) const OF_ONE_RESULT: [Self; 6] =
        [Self::Json, Self::Csv, Self::Spectrum, Self::Hlog, Self::Ndjson, Self::Junit];

    /// Is it appended to its file?
    const fn appends(self) -> bool {
        matches!(self, Self::Summary | Self::OfTool(_, true))
    }

    /// How it is written; whatever has no format of its own is written as JSON.
    pub(crate) const fn format(self) -> Format {
        match self {
            Self::Json | Self::Figure(_) | Self::OfTool(..) => Format::Json,
            Self::Csv => Format::Csv,
            Self::Html => Format::Html,
            Self::Spectrum => Format::Percentiles,
            Self::Hlog => Format::Hlog,
            Self::Ndjson => Format::Ndjson,
            Self::Samples => Format::Samples,
            Self::Junit => Format::Junit,
            Self::Summary => Format::Markdown,
        }
    }

    pub(crate) const fn option(self) -> &'static str {
        match self {
            Self::Json => "--json",
            Self::Csv => "--csv",
            Self::Html => "--html",
            Self::Spectrum => "--spectrum",
            Self::Hlog => "--hlog",
            Self::Ndjson => "--ndjson",
            Self::Samples => "--samples",
            Self::Junit => "--junit",
            Self::Summary => "--summary",
            Self::Figure(_) => "--figure",
            Self::OfTool(option, _) => option,
        }
    }
}

/// Where a result that was asked for goes.
#[derive(Debug)]
pub(crate) struct Destination {
    pub(crate) document: Document,
    /// As given.
    path: PathBuf,
    method: WriteMethod,
}

#[derive(Debug)]
enum WriteMethod {
    /// A file of this name in this directory, by no link.
    Whole {
        directory: PathBuf,
        name: OsString,
    },
    /// A file of this name that is added to.
    Appended {
        directory: PathBuf,
        name: OsString,
    },
    Direct(File),
    StandardError,
    StandardOutput,
}

/// A result that was written, and the file that it is in.
#[derive(Debug)]
#[must_use = "whether it is still there decides the exit code"]
pub(crate) struct Written {
    option: &'static str,
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
    /// Makes sure that each can be written, and that they are different. Files come first, so that they are there whatever becomes
    /// of a pipe or a terminal.
    pub(crate) fn open_all(asked: &[(Document, &Path)]) -> Result<Vec<Self>, Failure> {
        check_standard_output().map_err(Failure::usage)?;
        let refused = |document: Document, path: &Path, error: io::Error| {
            let option = document.option();
            Failure::usage(format!(
                "invalid value '{}' for {option} ({error}): expected the path of a file that can be written, in a directory where \
                 files can be made",
                path.display()
            ))
        };
        let places = asked.iter().map(|(document, path)| {
            let place = ResolvedPath::of(path).map_err(|error| refused(*document, path, error))?;
            Ok((*document, *path, place))
        });
        let places = places.collect::<Result<Vec<_>, Failure>>()?;
        check_apart(&places).map_err(Failure::usage)?;
        let (files, streams): (Vec<_>, Vec<_>) = places.into_iter().partition(|(.., place)| place.is_file());
        // The last ones may wait for a reader.
        let destinations = files.into_iter().chain(streams).map(|(document, path, place)| {
            let method = place.open(document.appends()).map_err(|error| refused(document, path, error))?;
            Ok(Self { document, path: path.to_owned(), method })
        });
        let mut destinations = destinations.collect::<Result<Vec<_>, Failure>>()?;
        destinations.sort_by_key(|destination| match destination.method {
            WriteMethod::Whole { .. } | WriteMethod::Appended { .. } => 0,
            WriteMethod::Direct(_) => 1,
            WriteMethod::StandardError | WriteMethod::StandardOutput => 2,
        });
        Ok(destinations)
    }

    /// Does it take standard output?
    pub(crate) fn is_standard_output(&self) -> bool {
        matches!(self.method, WriteMethod::StandardOutput)
    }

    /// Does a reader take it, or a device, so that it is up to others how long writing takes?
    pub(crate) fn has_reader(&self) -> bool {
        !matches!(self.method, WriteMethod::Whole { .. } | WriteMethod::Appended { .. })
    }

    /// Writes it. The error names option and path.
    pub(crate) fn write(
        &self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<Written, String> {
        self.write_by(replace, write)
    }

    /// Writes it to its file as it comes, for readers that follow.
    pub(crate) fn write_in_place(
        &self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<Written, String> {
        let to_file = |directory: &Path, name: &OsStr, write| {
            write_file(OpenOptions::new().write(true).create(true).truncate(true), directory, name, write)
        };
        self.write_by(to_file, write)
    }

    fn write_by<W: FnOnce(&mut dyn Write) -> io::Result<()>>(
        &self,
        to_file: impl FnOnce(&Path, &OsStr, W) -> io::Result<File>,
        write: W,
    ) -> Result<Written, String> {
        let in_place = |directory: &Path, name: &OsStr, file: io::Result<File>| {
            Ok(Some((directory.join(name), inode(&file?.metadata()?))))
        };
        let unnamed = |written: io::Result<()>| written.map(|()| None);
        let place = match &self.method {
            WriteMethod::Whole { directory, name } => {
                in_place(directory, name, to_file(directory, name, write))
            }
            // Opened only now: what was removed since is made again.
            WriteMethod::Appended { directory, name } => {
                let file = write_file(OpenOptions::new().append(true).create(true), directory, name, write);
                in_place(directory, name, file)
            }
            WriteMethod::Direct(file) => unnamed(write_buffered(RetryingWriter(file), write)),
            WriteMethod::StandardError => unnamed(write_buffered(RetryingWriter(io::stderr()), write)),
            WriteMethod::StandardOutput => {
                unnamed(standard_output().and_then(|out| write_buffered(out, write)))
            }
        };
        let (option, path) = (self.document.option(), self.path.clone());
        place.map(|place| Written { option, path, place }).map_err(|error: io::Error| self.failure(error))
    }

    /// Says that it was not written whole.
    pub(crate) fn failure(&self, reason: impl Display) -> String {
        let option = self.document.option();
        match self.method {
            WriteMethod::StandardOutput => format!("{option}: cannot write standard output: {reason}"),
            _ => format!("{option}: cannot write '{}': {reason}", self.path.display()),
        }
    }
}

/// Writes a file whole or not at all; links are followed.
pub(crate) fn write_whole(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    match ResolvedPath::of(path)? {
        ResolvedPath::Entry { directory, name, .. } => replace(&directory, &name, write).map(drop),
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

/// Refuses two results for one file or for standard output, and one for a file that is read, or that the text goes to.
fn check_apart(places: &[(Document, &Path, ResolvedPath)]) -> Result<(), String> {
    for (index, (document, path, place)) in places.iter().enumerate() {
        let (option, path) = (document.option(), path.display());
        for (other, other_path, other_place) in &places[index + 1..] {
            if !place.is_same_as(other_place) {
                continue;
            }
            let (one, accepted) = match place {
                ResolvedPath::StandardOutput => {
                    ("standard output", "standard output for one of them, files for the others")
                }
                _ => ("one file", "a file for each"),
            };
            let (other, other_path) = (other.option(), other_path.display());
            let given = match path.to_string() == other_path.to_string() {
                true => format!("'{path}' was given to each"),
                false => format!("'{path}' and '{other_path}' were given, which are {one}"),
            };
            return Err(format!("{option}, {other}: {given}: expected {accepted}"));
        }
        if !place.is_file() {
            continue;
        }
        let streams = [
            (ResolvedPath::StandardOutput, "standard output"),
            (ResolvedPath::StandardError, "standard error"),
        ];
        for (stream, name) in streams {
            if place.inode().is_some() && place.inode() == stream.inode() {
                return Err(format!("{option}: '{path}' is also {name}: expected another file, or '-'"));
            }
        }
        if place.inode().is_some_and(input::is_read) {
            return Err(format!("{option}: '{path}' is read by this command: expected another file"));
        }
    }
    Ok(())
}

/// Device and inode.
type Inode = (u64, u64);

/// Where a path leads when every link has been followed.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ResolvedPath {
    /// A regular file, or nothing yet.
    Entry { directory: PathBuf, directory_inode: Inode, name: OsString, inode: Option<Inode> },
    /// A regular file that was opened by the process that started us, which may have no other name for it.
    Inherited { path: PathBuf, inode: Inode },
    /// A pipe or a device.
    Stream { path: PathBuf },
    /// `-`, and every path to descriptor 1.
    StandardOutput,
    /// Every path to descriptor 2.
    StandardError,
}

impl ResolvedPath {
    fn of(path: &Path) -> io::Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::StandardOutput);
        }
        let mut path = path.to_owned();
        for _ in 0..LINKS_MAX {
            let (directory, name) = split(&path)?;
            let full = directory.join(&name);
            // Links there are no text to follow, though they can be read: what is open may have been renamed or removed.
            if directory.starts_with("/proc") && directory.file_name() == Some(OsStr::new("fd")) {
                return Self::of_descriptor(&directory, full);
            }
            let held = match fs::symlink_metadata(&full) {
                Ok(held) if held.is_symlink() => {
                    path = directory.join(fs::read_link(&full)?);
                    continue;
                }
                Ok(held) => Some(held),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => return Err(error),
            };
            return match held {
                Some(held) if held.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
                Some(held) if !held.is_file() => Ok(Self::Stream { path: full }),
                held => {
                    let (directory_inode, inode) =
                        (inode(&fs::metadata(&directory)?), held.as_ref().map(inode));
                    Ok(Self::Entry { directory, directory_inode, name, inode })
                }
            };
        }
        Err(rustix::io::Errno::LOOP.into())
    }

    /// What lies behind a link of procfs to a descriptor.
    fn of_descriptor(directory: &Path, full: PathBuf) -> io::Result<Self> {
        let is_ours = fs::canonicalize("/proc/self/fd").is_ok_and(|ours| ours == directory);
        let held = fs::metadata(&full)?;
        match full.file_name().and_then(OsStr::to_str) {
            Some("1") if is_ours => Ok(Self::StandardOutput),
            Some("2") if is_ours => Ok(Self::StandardError),
            _ if held.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            _ if held.is_file() => Ok(Self::Inherited { path: full, inode: inode(&held) }),
            _ => Ok(Self::Stream { path: full }),
        }
    }

    /// Is it a file of its own, neither a standard stream nor a pipe or device?
    fn is_file(&self) -> bool {
        matches!(self, Self::Entry { .. } | Self::Inherited { .. })
    }

    /// Of a regular file that is there.
    fn inode(&self) -> Option<Inode> {
        match self {
            Self::Entry { inode, .. } => *inode,
            Self::Inherited { inode, .. } => Some(*inode),
            Self::Stream { .. } => None,
            Self::StandardOutput => inode_of(io::stdout()),
            Self::StandardError => inode_of(io::stderr()),
        }
    }

    /// Would one overwrite or cut the other? Pipes and devices take what they are given, one after the other.
    fn is_same_as(&self, other: &Self) -> bool {
        let entry = |place: &Self| match place {
            Self::Entry { directory_inode, name, .. } => Some((*directory_inode, name.clone())),
            _ => None,
        };
        (*self == Self::StandardOutput && *other == Self::StandardOutput)
            || (entry(self).is_some() && entry(self) == entry(other))
            || (self.inode().is_some() && self.inode() == other.inode())
    }

    /// Opens what is written directly, and tries whether a file can be written beside one that is not.
    fn open(self, appends: bool) -> io::Result<WriteMethod> {
        Ok(match self {
            Self::Entry { directory, name, .. } if appends => {
                OpenOptions::new().append(true).create(true).open(directory.join(&name))?;
                WriteMethod::Appended { directory, name }
            }
            Self::Entry { directory, name, inode, .. } => {
                if inode.is_some() {
                    OpenOptions::new().write(true).open(directory.join(&name))?;
                }
                Partial::create(&directory, &name)?;
                WriteMethod::Whole { directory, name }
            }
            // What is there was written by others, or by an option before this one.
            Self::Inherited { path, .. } => WriteMethod::Direct(OpenOptions::new().append(true).open(path)?),
            Self::Stream { path } => WriteMethod::Direct(OpenOptions::new().write(true).open(path)?),
            Self::StandardOutput => WriteMethod::StandardOutput,
            Self::StandardError => WriteMethod::StandardError,
        })
    }
}

/// The directory of a path, without links, and the name in it.
fn split(path: &Path) -> io::Result<(PathBuf, OsString)> {
    // Both end a path to a directory, and `file_name` passes over them.
    let ends = [&b"/"[..], b"/."];
    let is_directory = ends.iter().any(|end| path.as_os_str().as_bytes().ends_with(end));
    let Some(name) = path.file_name().filter(|_| !is_directory) else {
        return Err(io::ErrorKind::IsADirectory.into());
    };
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    Ok((fs::canonicalize(directory.unwrap_or(Path::new(".")))?, name.to_owned()))
}

fn inode(held: &Metadata) -> Inode {
    (held.dev(), held.ino())
}

/// Of an open descriptor of a regular file.
fn inode_of(stream: impl AsFd) -> Option<Inode> {
    let file = File::from(stream.as_fd().try_clone_to_owned().ok()?);
    file.metadata().ok().filter(Metadata::is_file).map(|held| inode(&held))
}

fn write_buffered(out: impl Write, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut buffered = BufWriter::new(out);
    write(&mut buffered)?;
    buffered.flush()
}

/// Writes a file where it is. Some file systems, those of networks among them, say only at its end that there is no room.
fn write_file(
    options: &OpenOptions,
    directory: &Path,
    name: &OsStr,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<File> {
    let file = options.open(directory.join(name))?;
    write_buffered(&file, write)?;
    file.sync_all()?;
    Ok(file)
}

/// Writes a file under another name and renames it when it is whole. Returns the file that has the name then.
fn replace(
    directory: &Path,
    name: &OsStr,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<File> {
    let partial = Partial::create(directory, name)?;
    write_buffered(&partial.file, write)?;
    partial.file.sync_all()?;
    partial.rename(&directory.join(name))
}

/// A result under its temporary name, `.NAME.PID.partial`; it is gone when this is, unless it was kept.
#[derive(Debug)]
struct Partial {
    file: File,
    path: PathBuf,
    is_kept: bool,
}

impl Partial {
    /// An empty one, with owner and permissions of the file that it is to replace.
    fn create(directory: &Path, name: &OsStr) -> io::Result<Self> {
        let earlier = fs::metadata(directory.join(name)).ok();
        let mode = earlier.as_ref().map_or(0o666, |earlier| earlier.mode() & 0o777);
        for attempt in 0..LEFT_OVER_MAX {
            let path = directory.join(partial_name(name, attempt));
            match OpenOptions::new().write(true).create_new(true).mode(mode).open(&path) {
                Ok(file) => {
                    earlier.iter().for_each(|earlier| copy_attributes(&file, earlier));
                    return Ok(Self { file, path, is_kept: false });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        let first = directory.join(partial_name(name, 0));
        Err(io::Error::other(format!(
            "'{}' and others like it are left over, and can be removed",
            first.display()
        )))
    }

    /// Gives it its name.
    fn rename(mut self, to: &Path) -> io::Result<File> {
        let Err(error) = fs::rename(&self.path, to) else {
            self.is_kept = true;
            return self.file.try_clone();
        };
        // A file that is mounted by itself, as into a container, or another user's in /tmp can be written and not replaced.
        let is_fixed = matches!(
            error.kind(),
            ErrorKind::ResourceBusy | ErrorKind::CrossesDevices | ErrorKind::PermissionDenied
        );
        let copied = if is_fixed { self.copy_into(to) } else { Err(error) };
        copied.map_err(|error| {
            self.is_kept = true;
            io::Error::other(format!("{error}; {}", self.whereabouts()))
        })
    }

    /// Where it is now. Others may have removed or moved it, or the directory that it is in.
    fn whereabouts(&self) -> String {
        let path = self.path.display();
        match (self.file.metadata(), fs::symlink_metadata(&self.path)) {
            (Ok(own), Ok(held)) if inode(&own) == inode(&held) => format!("it is in '{path}' instead"),
            (Ok(own), _) if own.nlink() > 0 => format!("it was moved from '{path}' meanwhile"),
            _ => "it was removed meanwhile".to_owned(),
        }
    }

    /// Puts what it holds into a file that is there, whose content stays where there is no room for the new one.
    fn copy_into(&mut self, to: &Path) -> io::Result<File> {
        let mut target = OpenOptions::new().write(true).open(to)?;
        let length = self.file.metadata()?.len();
        match fallocate(&target, FallocateFlags::KEEP_SIZE, 0, length.max(1)) {
            // Where the file system cannot tell beforehand, it is tried.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
            Err(error) => return Err(error.into()),
        }
        target.set_len(length)?;
        io::copy(&mut File::open(&self.path)?, &mut target)?;
        target.sync_all()?;
        Ok(target)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.is_kept {
            // Where it cannot be removed, its name says what it is.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn partial_name(name: &OsStr, attempt: u32) -> OsString {
    let name = name.as_bytes();
    let again = if attempt == 0 { String::new() } else { format!("-{attempt}") };
    let end = format!(".{}{again}.partial", std::process::id());
    OsString::from_vec([b".", &name[..name.len().min(NAME_BYTES_MAX)], end.as_bytes()].concat())
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

    /// Processes that were killed while they wrote leave names that another of their number must get past; others in a directory
    /// are left alone.
    #[test]
    fn leftover_partial_files_do_not_block() {
        let directory = std::env::temp_dir().join(format!("brunt-destination-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("x.json");
        let left_over = |attempt| directory.join(partial_name(OsStr::new("x.json"), attempt));
        for attempt in 0..LEFT_OVER_MAX {
            fs::write(left_over(attempt), "half").unwrap();
            let written = write_whole(&path, |out| write!(out, "{attempt}"));
            match attempt + 1 == LEFT_OVER_MAX {
                false => assert_eq!(fs::read_to_string(&path).unwrap(), attempt.to_string()),
                true => assert!(written.unwrap_err().to_string().contains("can be removed")),
            }
        }
        assert_eq!(fs::read_dir(&directory).unwrap().count(), LEFT_OVER_MAX as usize + 1);
        fs::remove_dir_all(&directory).unwrap();
    }

    /// What fails in the middle leaves what was there, and one that cannot get its name is kept under the other.
    #[test]
    fn results_appear_whole_or_not_at_all() {
        let directory = std::env::temp_dir().join(format!("brunt-whole-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("x.json");
        fs::write(&path, "old").unwrap();
        let failed = write_whole(&path, |out| {
            out.write_all(&[0; 100_000])?;
            Err(io::Error::other("half way"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "half way");
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
        fs::remove_file(&path).unwrap();
        let name = OsStr::new("x.json");
        let kept = replace(&directory, name, |out| {
            fs::create_dir(&path)?;
            out.write_all(b"new")
        });
        let other = directory.join(partial_name(name, 0));
        let message = kept.unwrap_err().to_string();
        assert!(message.ends_with(&format!("; it is in '{}' instead", other.display())), "{message}");
        assert_eq!(fs::read_to_string(other).unwrap(), "new");
        fs::remove_dir_all(&directory).unwrap();
    }

    /// A message names only a file that is there.
    #[test]
    fn partial_files_that_others_took_away_are_said_to_be_gone() {
        let directory = std::env::temp_dir().join(format!("brunt-away-{}", std::process::id()));
        let moved = directory.with_extension("moved");
        let name = OsStr::new("x.json");
        let partial = directory.join(partial_name(name, 0));
        type TakeAway<'a> = &'a dyn Fn() -> io::Result<()>;
        let table: [(TakeAway<'_>, String); 3] = [
            (&|| fs::remove_dir_all(&directory), "it was removed meanwhile".to_owned()),
            (
                &|| fs::rename(&directory, &moved),
                format!("it was moved from '{}' meanwhile", partial.display()),
            ),
            // Another file has its name.
            (
                &|| {
                    fs::rename(&directory, &moved)?;
                    fs::create_dir(&directory)?;
                    fs::write(&partial, "other")?;
                    fs::create_dir(directory.join(name))
                },
                format!("it was moved from '{}' meanwhile", partial.display()),
            ),
        ];
        for (take_away, expected) in table {
            fs::create_dir(&directory).unwrap();
            let failed = replace(&directory, name, |out| {
                take_away()?;
                out.write_all(b"new")
            });
            let message = failed.unwrap_err().to_string();
            assert!(message.ends_with(&format!("; {expected}")), "{message}");
            let _ = fs::remove_dir_all(&moved);
            let _ = fs::remove_dir_all(&directory);
        }
    }
}
