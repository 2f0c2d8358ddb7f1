//! The results of a command: which were asked for, and their way out when all is over.
//!
//! Not the formats (those are `brunt-report`'s) and not files or pipes (those are [`crate::destination`]'s). Invariants: a run that
//! ends without a result leaves what was there before, byte for byte; each result is written whatever becomes of the others, and
//! each that cannot be is named; the text comes last, and decides nothing unless it is the line of `--report brief`.

use crate::calibrations;
use crate::cli::{FileFlags, ProgressFlags};
use crate::destination::{Destination, Document, Written};
use crate::exit::{Exit, Failure};
use crate::input;
use crate::interrupt::end_waits_for_readers;
use crate::journal::JournalObserver;
use crate::line_stream::LineStream;
use crate::observers::Observers;
use crate::presentation::{Form, Presentation};
use crate::terminal::{print_brief, say, show};
use brunt_plan::plan::Plan;
use brunt_plan::spec::PlanSpec;
use brunt_report::file_type::{FigureStyle, FileForm, FileType, Medium};
use brunt_report::subject::Subject;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

/// Everything that was asked for.
#[derive(Debug)]
pub(crate) struct Outputs {
    destinations: Vec<Destination>,
    /// Of lines that are written while runs go on.
    lines: Vec<LineStream>,
    /// One of them has standard output, so that the text goes to standard error.
    take_standard_output: bool,
    /// Annotations are printed behind the text.
    has_annotations: bool,
}

impl Outputs {
    /// Makes sure that every result of a run or campaign can be written. Lines of NDJSON and the journal are written while they go on.
    pub(crate) fn open(flags: &FileFlags, journal: Option<&Path>, spec: &PlanSpec) -> Result<Self, Failure> {
        note_files(spec);
        let mut outputs = Self::with_journal(flags, journal)?;
        let is_streamed = |destination: &mut Destination| {
            destination.document.is(FileType::Ndjson) || destination.document == Document::Journal
        };
        for destination in outputs.destinations.extract_if(.., is_streamed) {
            outputs.lines.push(LineStream::open(destination).map_err(Failure::failed)?);
        }
        Ok(outputs)
    }

    /// Makes sure that every result of a run can be written, and keeps what a host's fitness for its plan has: JSON.
    pub(crate) fn of_findings(flags: &FileFlags, spec: &PlanSpec) -> Result<Self, Failure> {
        note_files(spec);
        let mut outputs = Self::of(flags)?;
        outputs.destinations.retain(|destination| destination.document.is(FileType::Json));
        outputs.take_standard_output = outputs.destinations.iter().any(Destination::is_standard_output);
        Ok(outputs)
    }

    /// Adds the observers whose lines are written while the runs go on. Refuses lines on the terminal that `--progress tui` draws on.
    pub(crate) fn watch(
        &self,
        plan: &Plan,
        progress: &ProgressFlags,
        observers: &mut Observers<'_>,
    ) -> Result<(), Failure> {
        for lines in &self.lines {
            if progress.has_tui() && lines.destination.is_standard_output() && io::stdout().is_terminal() {
                let option = lines.destination.document.option();
                return Err(Failure::usage(format!(
                    "--progress tui cannot be used with {option}:-: both would write to this terminal; use a PATH, or redirect standard output",
                )));
            }
            match lines.destination.document {
                Document::Journal => observers.add(JournalObserver::new(lines.queue())),
                _ => observers.add(lines.observer(plan)),
            }
        }
        Ok(())
    }

    /// Makes sure that every result can be written.
    pub(crate) fn of(flags: &FileFlags) -> Result<Self, Failure> {
        Self::with_journal(flags, None)
    }

    /// Refuses files that cannot be written, long before any is opened.
    pub(crate) fn check(flags: &FileFlags, journal: Option<&Path>) -> Result<(), Failure> {
        Destination::check_files(&Self::asked(flags, journal))
    }

    /// What is to be written, and where.
    fn asked<'a>(flags: &'a FileFlags, journal: Option<&'a Path>) -> Vec<(Document, &'a Path)> {
        let results = flags.output.iter().map(|request| (Document::Result(request.form), &*request.path));
        results.chain(journal.map(|path| (Document::Journal, path))).collect()
    }

    fn with_journal(flags: &FileFlags, journal: Option<&Path>) -> Result<Self, Failure> {
        let destinations = Destination::open_all(&Self::asked(flags, journal))?;
        let take_standard_output = destinations.iter().any(Destination::is_standard_output);
        let has_annotations = flags.annotate.is_some();
        Ok(Self { destinations, lines: Vec::new(), take_standard_output, has_annotations })
    }

    /// Sets how figures look.
    pub(crate) fn set_style(&mut self, style: FigureStyle) {
        for destination in &mut self.destinations {
            if let Document::Result(form) = &mut destination.document {
                // Text has none.
                if form.medium != Medium::Text {
                    form.style = style;
                }
            }
        }
    }

    /// Writes each result of a command, and shows its report in the form that the reader wants; without one, why the exit code is 3 or 4.
    pub(crate) fn write(self, subject: Subject<'_>, presentation: Presentation) -> Delivery {
        let has_annotations = self.has_annotations;
        let write = |form: FileForm, out: &mut dyn Write| subject.write(form, out);
        let delivery = self.deliver(presentation.form, write, |goes_to_stderr, out| {
            let layout = presentation.layout(goes_to_stderr);
            match presentation.form {
                Form::Nothing => Ok(()),
                Form::Brief => subject.write_brief(&layout, out),
                Form::Report(level) => subject.write_text(&layout, level, out),
            }?;
            if has_annotations { subject.write_annotations(out) } else { Ok(()) }
        });
        if presentation.form == Form::Nothing {
            subject.unmet().iter().for_each(say);
        }
        delivery
    }

    /// Writes each result, and shows the text, which is told whether it goes to standard error.
    pub(crate) fn deliver(
        self,
        form: Form,
        write: impl Fn(FileForm, &mut dyn Write) -> io::Result<()>,
        text: impl FnOnce(bool, &mut Vec<u8>) -> io::Result<()>,
    ) -> Delivery {
        let text_goes_to_stderr = self.take_standard_output;
        end_waits_for_readers();
        let write_one = |destination: Destination| match destination.document {
            Document::Result(form) => destination.write(|out| write(form, out)),
            Document::Journal | Document::OfTool(..) => unreachable!("written by others"),
        };
        let mut written: Vec<Result<Written, String>> =
            self.destinations.into_iter().map(write_one).collect();
        written.extend(self.lines.into_iter().filter_map(|lines| lines.finish().transpose()));
        let mut page = Vec::new();
        // Memory takes everything, so that there is no error.
        let _ = text(text_goes_to_stderr, &mut page);
        let mut printed = Ok(());
        match form {
            _ if page.is_empty() => {}
            Form::Brief => printed = print_brief(&page, text_goes_to_stderr),
            _ => show(page, text_goes_to_stderr),
        }
        // At the end, so that what becomes of a file while others are written is seen, too.
        let checked = written.into_iter().map(|written| written.and_then(|written| written.check()));
        let failures: Vec<String> = checked.chain([printed]).filter_map(Result::err).collect();
        // Behind a long report, where they are seen.
        failures.iter().for_each(|failure| say(format_args!("error: {failure}")));
        Delivery { is_whole: failures.is_empty() }
    }
}

/// What became of the results.
#[derive(Debug)]
#[must_use = "a result that could not be written decides the exit code"]
pub(crate) struct Delivery {
    /// Every result that the user asked for was written.
    is_whole: bool,
}

impl Delivery {
    /// The exit code of a command that would have ended with this one if every result had been written.
    pub(crate) fn exit(self, exit: Exit) -> Exit {
        match exit {
            Exit::Usage | Exit::Unreachable => exit,
            _ if self.is_whole => exit,
            _ => Exit::Failed,
        }
    }
}

/// Files that are read later, or by others.
pub(crate) fn note_files(PlanSpec { run, base, classes }: &PlanSpec) {
    let traces = classes.iter().chain([base]).map(|class| &class.trace);
    let named = traces.chain([&run.tls_ca, &run.tls_cert, &run.tls_key]).flatten();
    named.for_each(|path| input::note(Path::new(path)));
    calibrations::path().iter().for_each(|path| input::note(path));
}
