//! The results of a command: which were asked for, and their way out when all is over.
//!
//! Not the formats (those are `brunt-report`'s) and not files or pipes (those are [`crate::destination`]'s). Invariants: a run that
//! ends without a result leaves what was there before, byte for byte; each result is written whatever becomes of the others, and
//! each that cannot be is named; the text comes last, and decides nothing unless it is the line of `--brief`.

use crate::calibrations;
use crate::cli;
use crate::destination::{Destination, Document, Written};
use crate::exit::{Exit, Failure};
use crate::input;
use crate::interrupt::end_waits_for_readers;
use crate::line_stream::LineStream;
use crate::observers::Observers;
use crate::presentation::{Form, Presentation};
use crate::terminal::{print_brief, say, show};
use brunt_plan::plan::Plan;
use brunt_report::publication::{Figure, FigureStyle};
use brunt_report::subject::{Format, Subject};
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
    /// Those of a report, as soon as they are drawn.
    figures: Vec<Figure>,
}

impl Outputs {
    /// Makes sure that every result of a run or campaign can be written. What has a line for each run is written while they go on; of one run
    /// alone also what has a line for each interval that was asked for.
    pub(crate) fn open(flags: &cli::OutputFlags, plan: &Plan, is_one_run: bool) -> Result<Self, Failure> {
        note_files(plan);
        let asked = [&flags.results.asked()[..], &[(Document::Samples, flags.samples.as_deref())]].concat();
        let mut outputs = Self::of(&asked, &flags.results.integration)?;
        let is_streamed = |destination: &mut Destination| match destination.document {
            Document::Ndjson => true,
            Document::Csv | Document::Hlog => is_one_run && plan.interval.is_some(),
            _ => false,
        };
        for destination in outputs.destinations.extract_if(.., is_streamed) {
            outputs.lines.push(LineStream::open(destination).map_err(Failure::failed)?);
        }
        Ok(outputs)
    }

    /// Makes sure that every result of a run could be written. Only the JSON is: what was found of the host takes the place of a result.
    pub(crate) fn of_doctor(flags: &cli::OutputFlags, plan: &Plan) -> Result<Self, Failure> {
        let mut outputs = Self::open(flags, plan, false)?;
        outputs.destinations.retain(|destination| destination.document == Document::Json);
        let take_standard_output = outputs.destinations.iter().any(Destination::is_standard_output);
        Ok(Self { lines: Vec::new(), take_standard_output, ..outputs })
    }

    /// Adds the observers whose lines are written while the runs go on. Refuses lines on the terminal that `--tui` draws on.
    pub(crate) fn watch(
        &self,
        plan: &Plan,
        progress: &cli::ProgressFlags,
        observers: &mut Observers<'_>,
    ) -> Result<(), Failure> {
        for lines in &self.lines {
            if progress.tui && lines.destination.is_standard_output() && io::stdout().is_terminal() {
                let option = lines.destination.document.option();
                return Err(Failure::usage(format!(
                    "--tui cannot be used with {option} -: both would write to this terminal; use {option} PATH, or redirect standard output",
                )));
            }
            observers.add(lines.observer(plan));
        }
        Ok(())
    }

    /// Makes sure that every result of a comparison can be written; of a plan, if it is of two servers.
    pub(crate) fn of_comparison(
        flags: &cli::CompareOutputFlags,
        plan: Option<&Plan>,
    ) -> Result<Self, Failure> {
        plan.into_iter().for_each(note_files);
        let asked = [
            (Document::Json, flags.json.as_deref()),
            (Document::Html, flags.html.as_deref()),
            (Document::Junit, flags.junit.as_deref()),
            (Document::Summary, flags.integration.summary.as_deref()),
        ];
        Self::of(&asked, &flags.integration)
    }

    /// Makes sure that every result of a report can be written.
    pub(crate) fn of_report(flags: &cli::ReportOutputFlags) -> Result<Self, Failure> {
        let mut asked = flags.results.asked();
        let figures = flags.figure.iter().enumerate();
        asked.extend(figures.map(|(index, figure)| (Document::Figure(index), Some(Path::new(&figure.path)))));
        Self::of(&asked, &flags.results.integration)
    }

    /// Draws the figures of a report, or says which the results do not have.
    pub(crate) fn draw(
        &mut self,
        flags: &cli::ReportOutputFlags,
        subject: Subject<'_>,
    ) -> Result<(), Failure> {
        let style = FigureStyle { width: flags.figure_width, is_coloured: flags.figure_color };
        let figures = flags.figure.iter().map(|request| subject.figure(request, style));
        self.figures = figures.collect::<Result<_, _>>().map_err(Failure::usage)?;
        Ok(())
    }

    /// Makes sure that a calibration can be written.
    pub(crate) fn of_calibration(json: Option<&Path>) -> Result<Self, Failure> {
        calibrations::path().iter().for_each(|path| input::note(path));
        Self::of(&[(Document::Json, json)], &cli::IntegrationFlags::default())
    }

    fn of(asked: &[(Document, Option<&Path>)], integration: &cli::IntegrationFlags) -> Result<Self, Failure> {
        let given = asked.iter().filter_map(|(document, path)| Some((*document, (*path)?)));
        let destinations = Destination::open_all(&given.collect::<Vec<_>>())?;
        let take_standard_output = destinations.iter().any(Destination::is_standard_output);
        let (lines, figures, has_annotations) = (Vec::new(), Vec::new(), integration.annotate.is_some());
        Ok(Self { destinations, lines, take_standard_output, has_annotations, figures })
    }

    /// Writes each result of a command, and shows its report in the form that the reader wants.
    pub(crate) fn write(self, subject: Subject<'_>, presentation: Presentation) -> Delivery {
        let has_annotations = self.has_annotations;
        let write = |document: Document, out: &mut dyn Write| subject.write(document.format(), out);
        self.deliver(presentation.form, write, |goes_to_stderr, out| {
            let layout = presentation.layout(goes_to_stderr);
            match presentation.form {
                Form::Nothing => Ok(()),
                Form::Brief => subject.write_brief(&layout, out),
                Form::Report(level) => subject.write_text(&layout, level, out),
            }?;
            if has_annotations { subject.write(Format::Annotations, out) } else { Ok(()) }
        })
    }

    /// Writes each result, and shows the text, which is told whether it goes to standard error.
    pub(crate) fn deliver(
        self,
        form: Form,
        write: impl Fn(Document, &mut dyn Write) -> io::Result<()>,
        text: impl FnOnce(bool, &mut Vec<u8>) -> io::Result<()>,
    ) -> Delivery {
        let text_goes_to_stderr = self.take_standard_output;
        end_waits_for_readers();
        let write_one = |destination: Destination| {
            let document = destination.document;
            destination.write(|out| match document {
                Document::Figure(index) => self.figures[index].write(out),
                _ => write(document, out),
            })
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
pub(crate) fn note_files(plan: &Plan) {
    let identity = plan.tls.identity.iter().flat_map(|identity| [&identity.certificate, &identity.key]);
    let traces = plan.classes.iter().filter_map(|class| Some(&class.trace.as_ref()?.file));
    let named = plan.tls.ca.iter().chain(identity).chain(traces);
    named.for_each(|path| input::note(Path::new(path)));
    calibrations::path().iter().for_each(|path| input::note(path));
}
