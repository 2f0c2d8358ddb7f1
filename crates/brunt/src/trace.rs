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
use brunt_workload::trace_profile::{ProfileSummary, RateSummary, SizeCounts, TraceProfile};
use serde_json::{Map, Value, json};
use std::io::{self, Write};

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
const MILLISECOND_NS: u64 = 1_000_000;
const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];

/// What was found in a file.
struct Findings {
    file: String,
    layout: TraceLayout,
    has_records: bool,
    lines: LineCounts,
    held: ProfileSummary,
    /// Why it could not be read to its end.
    error: Option<String>,
}

/// Reads a trace and says what it holds.
pub(crate) fn trace(flags: &cli::Trace) -> Result<Exit, Failure> {
    if let Some(request) = flags.output.iter().find(|request| request.form != FileType::Json.into()) {
        let (path, option) = (request.path.display(), request.form.option());
        return Err(Failure::usage(format!(
            "invalid value '{path}' for {option}: a trace is told as json, e.g. -o json:trace.json"
        )));
    }
    let cannot_read = |error: &dyn std::fmt::Display| format!("cannot read trace '{}': {error}", flags.file.display());
    input::note(&flags.file);
    let mut file =
        TraceFile::open(&flags.file, flags.trace_layout).map_err(|error| Failure::usage(cannot_read(&error)))?;
    let outputs = Outputs::of(&FileFlags { output: flags.output.clone(), annotate: None })?;
    let capacities: Vec<u64> = flags.cache.iter().map(|size| size.0).collect();
    let mut profile = TraceProfile::new(&capacities, usize::from(flags.top));
    let error = loop {
        match file.advance(|request| {
            profile.add(request);
            Ok(())
        }) {
            Ok(true) => {}
            Ok(false) => break None,
            Err(error) => break Some(error.to_string()),
        }
    };
    let findings = Findings {
        file: flags.file.display().to_string(),
        layout: file.layout(),
        has_records: file.has_records(),
        lines: file.counts().clone(),
        held: profile.summary(),
        error,
    };
    let presentation = Presentation::of(&LayoutFlags::default(), flags.quiet);
    let write = |_, out: &mut dyn Write| write_json(&findings, out);
    let delivery = outputs.deliver(Form::Report(Level::Short), write, |goes_to_stderr, out| {
        let layout = presentation.layout(goes_to_stderr);
        let text = findings.text(layout.columns.unwrap_or(WIDTH));
        if flags.quiet { Ok(()) } else { out.write_all(layout.in_characters(&text).as_bytes()) }
    });
    match findings.error {
        Some(error) => Err(Failure::failed(cannot_read(&format!("{error}; what is told is before that")))),
        None => Ok(delivery.exit(Exit::Done)),
    }
}

impl Findings {
    /// The name of what the file consists of.
    const fn piece(&self) -> &'static str {
        if self.has_records { "record" } else { "line" }
    }

    fn text(&self, width: usize) -> String {
        let held = &self.held;
        let mut text = String::new();
        let mut add = |label: &str, facts: Vec<String>| {
            // A fact that is short is not broken.
            let whole = |fact: String| match fact.chars().count() <= FACT_CHARS_MAX {
                true => fact.replace(' ', "\u{a0}"),
                false => fact,
            };
            let facts: Vec<String> = facts.into_iter().filter(|fact| !fact.is_empty()).map(whole).collect();
            if facts.is_empty() {
                return;
            }
            for (number, line) in wrapped(&facts.join(" · "), width.max(WIDTH) - INDENT).iter().enumerate() {
                let label = if number == 0 { label } else { "" };
                text += &format!("{label:<INDENT$}{}\n", line.replace('\u{a0}', " "));
            }
        };
        let lines = quantity::things(self.lines.lines, self.piece());
        add("trace", vec![format!("{}, {}", self.file, self.layout), lines, quantity::things(held.requests, "request")]);
        add("passed over", self.passed_over());
        if let Some(rate) = &held.rate {
            rate_lines(rate).into_iter().for_each(|(label, facts)| add(label, facts));
        }
        let kinds = held.kinds.iter().map(|(kind, count)| format!("{kind} {}", share(*count, held.requests)));
        add("operations", kinds.collect());
        add("keys", self.keys());
        let hottest = held.hottest.iter().map(|(keys, count)| format!("{keys}: {}", share(*count, held.requests)));
        add("hottest keys", hottest.collect());
        if let Some((exponent, keys)) = held.zipf {
            let rests = format!("likeliest for the {keys} keys with 100 requests and more");
            add("zipf exponent", vec![format!("{exponent:.3}"), rests]);
        }
        if !held.top.is_empty() {
            let name = |key: &[u8]| key.escape_ascii().to_string().chars().take(KEY_CHARS_MAX).collect::<String>();
            let top = held.top.iter().map(|hot| format!("{} {}", name(&hot.key), hot.requests));
            add("top", top.collect());
        }
        let caches = held.caches.iter().map(|(capacity, hits, misses)| {
            let size = ByteSize(*capacity).to_string();
            let unit = if size.ends_with(|last: char| last.is_ascii_digit()) { " B" } else { "" };
            format!("{size}{unit} {}", share(*hits, hits + misses))
        });
        if held.caches.iter().any(|(_, hits, misses)| hits + misses > 0) {
            add("hits of LRU", caches.collect());
        }
        add("not known", self.unknown());
        let table = self.sizes();
        if !table.is_empty() {
            text += "\n";
            text += &table;
        }
        text
    }

    fn passed_over(&self) -> Vec<String> {
        let LineCounts { passed_over, unsupported, unreadable, first_unreadable, .. } = &self.lines;
        let counted = |count: u64, name: &str| if count > 0 { format!("{count} {name}") } else { String::new() };
        let first = first_unreadable.as_ref().map_or(String::new(), |first| {
            format!("first: {} {}, \"{}\": {}", self.piece(), first.line, first.text.escape_debug(), first.reason)
        });
        vec![
            counted(*passed_over, "without a request"),
            counted(*unsupported, "unsupported"),
            counted(*unreadable, "unreadable"),
            first,
        ]
    }

    fn keys(&self) -> Vec<String> {
        let held = &self.held;
        let known = held.keys > held.keys_without_size;
        vec![
            quantity::things(held.keys, "key"),
            format!("{} asked for once", share(held.keys_once, held.keys)),
            if known { format!("{} in their objects", bytes(held.object_bytes)) } else { String::new() },
        ]
    }

    /// What the trace does not tell.
    fn unknown(&self) -> Vec<String> {
        let held = &self.held;
        let of = |is_absent: bool, text: String| if is_absent { text } else { String::new() };
        let without = held.without_value;
        vec![
            of(held.rate.is_none(), "times".to_owned()),
            of(held.key_sizes.count() == 0, "sizes of keys, but where objects have them".to_owned()),
            of(
                without > 0,
                format!("values of {}", quantity::things(without, "retrieval"))
                    + match self.layout {
                        TraceLayout::Twitter | TraceLayout::Meta => ", which missed when they were recorded",
                        _ => "",
                    },
            ),
            of(
                held.keys_without_size > 0,
                format!("objects of {}, charged as 0 B", quantity::things(held.keys_without_size, "key")),
            ),
            of(held.stores > 0 && held.ttls_ms.count() == 0, "ttl".to_owned()),
        ]
    }

    /// Sizes and times to live as a table.
    fn sizes(&self) -> String {
        let held = &self.held;
        let as_bytes = |size: u64| size.to_string();
        let as_seconds = |ms: u64| (ms as f64 / 1e3).to_string();
        let rows: [(&str, &SizeCounts, &dyn Fn(u64) -> String, f64); 3] = [
            ("key, B", &held.key_sizes, &as_bytes, 1.0),
            ("value, B", &held.value_sizes, &as_bytes, 1.0),
            ("ttl, s", &held.ttls_ms, &as_seconds, 1e3),
        ];
        let mut table = String::new();
        for (name, sizes, cell, unit) in rows.into_iter().filter(|(_, sizes, ..)| sizes.count() > 0) {
            let told = QUANTILES.map(|(_, share)| cell(sizes.quantile(share)));
            let mean = significant(sizes.mean() / unit);
            let cells = told.into_iter().chain([cell(sizes.max()), mean, sizes.count().to_string()]);
            table += &row(name, cells);
        }
        if table.is_empty() {
            return table;
        }
        let heads = QUANTILES.map(|(name, _)| name).into_iter().chain(["max", "mean", "count"]);
        row("", heads.map(str::to_owned)) + &table
    }
}

fn row(name: &str, cells: impl Iterator<Item = String>) -> String {
    let cells: String = cells.map(|cell| format!(" {cell:>8}")).collect();
    format!("{name:<10}{cells}\n")
}

/// The span with its rates, and these as bars from 0 on.
fn rate_lines(told: &RateSummary) -> Vec<(&'static str, Vec<String>)> {
    let falling = match told.falling_times {
        0 => String::new(),
        falling => format!("{} before an earlier one", quantity::things(falling, "time")),
    };
    let facts = vec![
        time(told.span_ns),
        format!("{}/s", rate(told.mean)),
        format!("{} in the busiest second", told.busiest_second),
        falling,
    ];
    let most = told.parts.iter().copied().fold(0.0, f64::max);
    let least = told.parts.iter().copied().fold(most, f64::min);
    let height = |rate: f64| ((rate / most * BARS.len() as f64).ceil() as usize).clamp(1, BARS.len());
    let bars: String = told.parts.iter().map(|rate| if *rate > 0.0 { BARS[height(*rate) - 1] } else { '_' }).collect();
    let range = format!("{bars} {} each, {} to {}/s", time(told.part_ns), rate(least), rate(most));
    vec![("span", facts), ("rate", vec![range])]
}

/// Writes the schema `brunt.trace.v1`.
fn write_json(findings: &Findings, out: &mut dyn Write) -> io::Result<()> {
    let Findings { file, layout, lines, held, error, .. } = findings;
    let kinds: Map<String, Value> =
        held.kinds.iter().map(|(kind, count)| (kind.name().to_owned(), json!(count))).collect();
    let told = json!({
        "schema": SCHEMA,
        "version": env!("CARGO_PKG_VERSION"),
        "file": file,
        "layout": layout.name(),
        "is_whole": error.is_none(),
        "error": error,
        "lines": lines.lines,
        "passed_over": lines.passed_over,
        "unsupported": lines.unsupported,
        "unreadable": lines.unreadable,
        "first_unreadable": lines.first_unreadable,
        "requests": held.requests,
        "operations": kinds,
        "retrievals_without_value": held.without_value,
        "rate": held.rate.as_ref().map(|told| json!({
            "span_ns": told.span_ns,
            "mean_per_s": told.mean,
            "busiest_second": told.busiest_second,
            "falling_times": told.falling_times,
            "part_ns": told.part_ns,
            "parts_per_s": told.parts,
        })),
        "key_bytes": sizes_json(&held.key_sizes, 1),
        "value_bytes": sizes_json(&held.value_sizes, 1),
        "stores": held.stores,
        "ttl_ns": sizes_json(&held.ttls_ms, MILLISECOND_NS),
        "keys": held.keys,
        "keys_once": held.keys_once,
        "keys_without_size": held.keys_without_size,
        "object_bytes": held.object_bytes,
        "hottest": held.hottest.iter().map(|(keys, requests)| json!({ "keys": keys, "requests": requests })).collect::<Vec<_>>(),
        "zipf": held.zipf.map(|(exponent, keys)| json!({ "exponent": exponent, "keys": keys })),
        "top": held.top.iter().map(|hot| json!({ "key": hot.key.escape_ascii().to_string(), "requests": hot.requests })).collect::<Vec<_>>(),
        "lru": held.caches.iter().map(|(capacity, hits, misses)| json!({ "bytes": capacity, "hits": hits, "misses": misses })).collect::<Vec<_>>(),
    });
    serde_json::to_writer_pretty(&mut *out, &told)?;
    writeln!(out)
}

/// Sizes in this unit; `null` where none is known.
fn sizes_json(sizes: &SizeCounts, unit: u64) -> Option<Value> {
    (sizes.count() > 0).then(|| {
        let mut told = Map::from_iter([
            ("count".to_owned(), json!(sizes.count())),
            ("mean".to_owned(), json!(sizes.mean() * unit as f64)),
        ]);
        told.extend(QUANTILES.map(|(name, share)| (name.to_owned(), json!(sizes.quantile(share).saturating_mul(unit)))));
        told.insert("max".to_owned(), json!(sizes.max().saturating_mul(unit)));
        Value::Object(told)
    })
}
