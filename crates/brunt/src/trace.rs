//! `brunt trace`: what a file of requests holds, before it is sent.
//!
//! Not the counting, which is `brunt-workload/src/trace_profile.rs`. Invariants: the file is read once, and its text fits on a screen; what the
//! layout does not tell is named, not guessed; a file that cannot be read to its end is told up to there, and the exit code is 1.

use crate::cli::{self, FileFlags};
use crate::exit::{Exit, Failure};
use crate::input;
use crate::output::Outputs;
use crate::presentation::{Form, LayoutFlags, Presentation};
use crate::terminal::wrapped;
use brunt_engine::{LineCounts, TraceFile};
use brunt_plan::plan::TraceLayout;
use brunt_plan::units::ByteSize;
use brunt_report::document::Level;
use brunt_report::file_type::FileType;
use brunt_report::layout::BARS;
use brunt_report::quantity::{self, bytes, rate, share, significant, time};
use brunt_workload::trace_decoder::RecordedRequest;
use brunt_workload::trace_profile::{CacheHits, ProfileSummary, RateSummary, SizeSummary, TraceProfile};
use serde::Serialize;
use std::io::Write;

/// The schema of what `-o json` writes.
const SCHEMA: &str = "brunt.trace.v1";
/// How wide lines are where the text goes to no terminal.
const WIDTH: usize = 80;
/// Columns of labels.
const INDENT: usize = 14;
/// Longer facts may be broken.
const FACT_CHARS_MAX: usize = 30;
/// Of a key's text in a line.
const KEY_CHARS_MAX: usize = 40;

/// What was found in a file.
#[derive(Serialize)]
struct Findings {
    schema: &'static str,
    version: &'static str,
    file: String,
    layout: TraceLayout,
    /// Why it could not be read to its end.
    error: Option<String>,
    #[serde(flatten)]
    lines: LineCounts,
    #[serde(flatten)]
    held: ProfileSummary,
}

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
    let mut file = TraceFile::open(&flags.file, flags.trace_layout)
        .map_err(|error| Failure::usage(format!("cannot read trace '{path}': {error}")))?;
    let outputs = Outputs::of(&FileFlags { output: flags.output.clone(), annotate: None })?;
    let capacities: Vec<u64> = flags.cache.iter().map(|size| size.0).collect();
    let mut profile = TraceProfile::new(&capacities, usize::from(flags.top));
    let mut add = |request: &RecordedRequest<'_>| {
        profile.add(request);
        Ok(())
    };
    let error = loop {
        match file.advance(&mut add) {
            Ok(true) => {}
            Ok(false) => break None,
            Err(error) => break Some(error.to_string()),
        }
    };
    let findings = Findings {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION"),
        file: path.to_string(),
        layout: file.layout(),
        error,
        lines: file.counts().clone(),
        held: profile.summary(),
    };
    let write = |_, out: &mut dyn Write| {
        serde_json::to_writer_pretty(&mut *out, &findings)?;
        writeln!(out)
    };
    let presentation = Presentation::of(&LayoutFlags::default(), flags.quiet);
    let delivery = outputs.deliver(Form::Report(Level::Short), write, |goes_to_stderr, out| {
        let layout = presentation.layout(goes_to_stderr);
        let text = findings.text(layout.columns.unwrap_or(WIDTH).max(WIDTH));
        if flags.quiet { Ok(()) } else { out.write_all(layout.in_characters(&text).as_bytes()) }
    });
    match &findings.error {
        Some(error) => Err(Failure::failed(format!(
            "cannot read trace '{path}' any further: {error}; what is told is before that"
        ))),
        None => Ok(delivery.exit(Exit::Done)),
    }
}

impl Findings {
    /// The name of what the file consists of.
    fn piece(&self) -> &'static str {
        if self.layout == TraceLayout::Oracle { "record" } else { "line" }
    }

    fn text(&self, width: usize) -> String {
        let held = &self.held;
        let of_requests = |count: u64| share(count, held.requests);
        let zipf = held.zipf.map(|law| {
            let rests = format!("likeliest for the {} keys with 100 requests and more", law.keys);
            vec![format!("{:.3}", law.exponent), rests]
        });
        let text = |key: &str| key.chars().take(KEY_CHARS_MAX).collect::<String>();
        let rate = held.rate.as_ref();
        let rows: [(&str, Vec<String>); 11] = [
            ("trace", self.file()),
            ("passed over", self.passed_over()),
            ("span", rate.map_or(Vec::new(), span)),
            ("rate", rate.map_or(Vec::new(), bars)),
            (
                "operations",
                held.operations
                    .iter()
                    .map(|(kind, count)| format!("{kind} {}", of_requests(*count)))
                    .collect(),
            ),
            ("keys", self.keys()),
            (
                "hottest keys",
                held.hottest
                    .iter()
                    .map(|hot| format!("{}: {}", hot.keys, of_requests(hot.requests)))
                    .collect(),
            ),
            ("zipf exponent", zipf.unwrap_or_default()),
            ("top", held.top.iter().map(|hot| format!("{} {}", text(&hot.key), hot.requests)).collect()),
            ("hits of LRU", held.lru.iter().filter_map(hits).collect()),
            ("not known", self.unknown()),
        ];
        let rows = rows.into_iter().filter(|(_, facts)| !facts.is_empty());
        rows.map(|(label, facts)| labelled(label, &facts, width)).collect::<String>() + &self.sizes()
    }

    fn file(&self) -> Vec<String> {
        let lines = quantity::things(self.lines.lines, self.piece());
        let requests = quantity::things(self.held.requests, "request");
        vec![format!("{}, {}", self.file, self.layout), lines, requests]
    }

    fn passed_over(&self) -> Vec<String> {
        let LineCounts { passed_over, unsupported, unreadable, .. } = &self.lines;
        let counts =
            [(passed_over, "without a request"), (unsupported, "unsupported"), (unreadable, "unreadable")];
        let counts = counts.into_iter().filter(|(count, _)| **count > 0);
        let counts = counts.map(|(count, name)| format!("{count} {name}"));
        let first = self.lines.first_unreadable.as_ref().map(|first| {
            let text = first.text.escape_debug();
            format!("first: {} {}, \"{text}\": {}", self.piece(), first.line, first.reason)
        });
        counts.chain(first).collect()
    }

    fn keys(&self) -> Vec<String> {
        let held = &self.held;
        let once = format!("{} asked for once", share(held.keys_once, held.keys));
        let known = (held.keys > held.keys_without_size)
            .then(|| format!("{} in their objects", bytes(held.object_bytes)));
        [quantity::things(held.keys, "key"), once].into_iter().chain(known).collect()
    }

    /// What the trace does not tell.
    fn unknown(&self) -> Vec<String> {
        let held = &self.held;
        let retrievals = quantity::things(held.retrievals_without_value, "retrieval");
        let is_missed = matches!(self.layout, TraceLayout::Twitter | TraceLayout::Meta);
        let missed = if is_missed { ", which missed when they were recorded" } else { "" };
        let keys = quantity::things(held.keys_without_size, "key");
        let facts = [
            (held.rate.is_none(), "times".to_owned()),
            (held.key_bytes.is_none(), "sizes of keys, but where objects have them".to_owned()),
            (held.retrievals_without_value > 0, format!("values of {retrievals}{missed}")),
            (held.keys_without_size > 0, format!("objects of {keys}, charged as 0 B")),
            (held.stores > 0 && held.ttl_ns.is_none(), "ttl".to_owned()),
        ];
        facts.into_iter().filter(|(is_absent, _)| *is_absent).map(|(_, text)| text).collect()
    }

    /// Sizes and times to live as a table.
    fn sizes(&self) -> String {
        let held = &self.held;
        let rows = [
            ("key, B", held.key_bytes, 1.0),
            ("value, B", held.value_bytes, 1.0),
            ("ttl, s", held.ttl_ns, 1e9),
        ];
        let row = |name: &str, cells: [String; 7]| {
            let cells: String = cells.iter().map(|cell| format!(" {cell:>8}")).collect();
            format!("{name:<10}{cells}\n")
        };
        let of = |(name, sizes, unit): (&str, Option<SizeSummary>, f64)| {
            let SizeSummary { count, mean, p50, p90, p99, p999, max } = sizes?;
            let [p50, p90, p99, p999, max] =
                [p50, p90, p99, p999, max].map(|size| (size as f64 / unit).to_string());
            Some(row(name, [p50, p90, p99, p999, max, significant(mean / unit), count.to_string()]))
        };
        let heads = ["p50", "p90", "p99", "p99.9", "max", "mean", "count"].map(str::to_owned);
        let rows: String = rows.into_iter().filter_map(of).collect();
        if rows.is_empty() { rows } else { format!("\n{}{rows}", row("", heads)) }
    }
}

/// Facts beside a label, in as many lines as they need; one that is short is not broken.
fn labelled(label: &str, facts: &[String], width: usize) -> String {
    let whole = |fact: &String| match fact.chars().count() <= FACT_CHARS_MAX {
        true => fact.replace(' ', "\u{a0}"),
        false => fact.clone(),
    };
    let facts = facts.iter().map(whole).collect::<Vec<_>>().join(" · ");
    let lines = wrapped(&facts, width - INDENT).join(&format!("\n{:INDENT$}", ""));
    format!("{label:<INDENT$}{}\n", lines.replace('\u{a0}', " "))
}

fn span(told: &RateSummary) -> Vec<String> {
    let falling = quantity::things(told.falling_times, "time");
    let falling = (told.falling_times > 0).then(|| format!("{falling} before an earlier one"));
    let busiest = format!("{} in the busiest second", told.busiest_second);
    [time(told.span_ns), format!("{}/s", rate(told.mean_per_s)), busiest].into_iter().chain(falling).collect()
}

/// The rate in parts of the span as bars from 0 on.
fn bars(told: &RateSummary) -> Vec<String> {
    let most = told.parts_per_s.iter().copied().fold(0.0, f64::max);
    let least = told.parts_per_s.iter().copied().fold(most, f64::min);
    let bar = |rate: &f64| match (rate / most * BARS.len() as f64).ceil() as usize {
        0 => '_',
        height => BARS[height.min(BARS.len()) - 1],
    };
    let bars: String = told.parts_per_s.iter().map(bar).collect();
    vec![format!("{bars} {} each, {} to {}/s", time(told.part_ns), rate(least), rate(most))]
}

/// Of a cache that was asked.
fn hits(cache: &CacheHits) -> Option<String> {
    let asked = cache.hits + cache.misses;
    let size = ByteSize(cache.bytes).to_string();
    let unit = if size.ends_with(|last: char| last.is_ascii_digit()) { " B" } else { "" };
    (asked > 0).then(|| format!("{size}{unit} {}", share(cache.hits, asked)))
}
