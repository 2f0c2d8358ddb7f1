//! `brunt trace`: what a file of requests holds, before it is sent.
//!
//! Not the counting, which is `brunt-stats/src/trace_profile.rs`, and not the text, which is `brunt-report/src/trace_document.rs`. Invariants: the
//! file is read once; one that cannot be read to its end is told up to there, and the exit code is 1.

use crate::cli::{self, FileFlags};
use crate::exit::{Exit, Failure};
use crate::input;
use crate::output::Outputs;
use crate::presentation::{Form, LayoutFlags, Presentation};
use brunt_engine::TraceFile;
use brunt_plan::recorded_request::RecordedRequest;
use brunt_report::file_type::FileType;
use brunt_report::trace_document::{SCHEMA, TraceReport};
use brunt_stats::trace_profile::TraceProfile;
use std::io::{self, Write};

/// Reads a trace and says what it holds.
pub(crate) fn trace(flags: &cli::Trace) -> Result<Exit, Failure> {
    if let Some(request) = flags.output.iter().find(|request| request.form != FileType::Json.into()) {
        let (path, option) = (request.path.display(), request.form.option());
        return Err(Failure::usage(format!(
            "invalid value '{path}' for {option}: a trace is told as json, e.g. -o json:trace.json"
        )));
    }
    let path = flags.file.display();
    input::note(&flags.file);
    let mut file = TraceFile::open(&flags.file, flags.trace_layout, false)
        .map_err(|error| Failure::usage(format!("cannot read trace '{path}': {error}")))?;
    let outputs = Outputs::of(&FileFlags { output: flags.output.clone(), annotate: None })?;
    let capacities: Vec<u64> = flags.cache.iter().map(|size| size.0).collect();
    let mut profile = TraceProfile::new(&capacities, usize::from(flags.top));
    let mut add = |request: &RecordedRequest<'_>| {
        profile.add(request);
        Ok(())
    };
    let mut read = || {
        while file.advance(&mut add)? {}
        io::Result::Ok(())
    };
    let error = read().err().map(|error| error.to_string());
    let report = TraceReport {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION"),
        file: path.to_string(),
        layout: file.layout(),
        error,
        lines: file.counts().clone(),
        held: profile.summary(),
    };
    let presentation = Presentation::of(&LayoutFlags::default(), flags.quiet);
    let write = |_, out: &mut dyn Write| report.write_json(out);
    let delivery = outputs.deliver(presentation.form, write, |goes_to_stderr, out| {
        let text = report.text(&presentation.layout(goes_to_stderr));
        if presentation.form == Form::Nothing { Ok(()) } else { out.write_all(text.as_bytes()) }
    });
    match &report.error {
        Some(error) => Err(Failure::failed(format!(
            "cannot read trace '{path}' any further: {error}; what is told is before that"
        ))),
        None => Ok(delivery.exit(Exit::Done)),
    }
}
