//! What a trace holds, as `brunt trace` shows it.
//!
//! Not the counting, which is `brunt-stats/src/trace_profile.rs`. Invariant: what the layout does not tell is named, not guessed.

use crate::document::{Document, Level};
use crate::grid::{Column, Rows};
use crate::json::write_indented;
use crate::layout::{BARS, Layout, Style};
use crate::quantity::{bytes, counted, rate, share, significant, things, time};
use crate::text::beginning;
use brunt_plan::plan::TraceLayout;
use brunt_plan::trace_record::LineCounts;
use brunt_plan::units::ByteSize;
use brunt_stats::trace_profile::{CacheHits, ProfileSummary, RateSummary};
use serde::Serialize;
use std::io::{self, Write};

/// The schema of what `-o json` writes.
pub const SCHEMA: &str = "brunt.trace.v1";
/// Of a key's text in a line.
const KEY_CHARS_MAX: usize = 40;

/// What was found in a file.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct TraceReport {
    pub schema: &'static str,
    pub version: &'static str,
    pub file: String,
    pub layout: TraceLayout,
    /// Why it could not be read to its end.
    pub error: Option<String>,
    pub lines: LineCounts,
    #[serde(flatten)]
    pub held: ProfileSummary,
}

impl TraceReport {
    /// Writes it as JSON.
    ///
    /// # Errors
    /// What `out` returns.
    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        write_indented(serde_json::to_value(self)?, out)
    }

    /// Its text.
    pub fn text(&self, layout: &Layout) -> String {
        Document::of(|document| self.write_document(document)).text(layout, Level::Long)
    }

    fn write_document(&self, document: &mut Document) {
        let held = &self.held;
        let of_requests = |count: u64| share(count, held.requests);
        let lines = &self.lines;
        let piece = self.layout.piece();
        let read = [things(lines.read, piece), things(held.requests, "request")];
        document
            .facts("trace", [format!("{}, {}", self.file, self.layout)].into_iter().chain(read).collect());
        let counts = [
            ("without a request", lines.passed_over),
            ("unsupported", lines.unsupported),
            ("unreadable", lines.unreadable),
        ];
        let first = lines.first_unreadable.as_ref();
        let first =
            first.map(|first| format!("first: {piece} {}, \"{}\": {}", first.line, first.text, first.reason));
        document.facts("passed over", counted(counts).chain(first).collect());
        if let Some(told) = &held.rate {
            document.facts("span", span(told));
            document.facts("rate", vec![bars(told)]);
        }
        let operations = held.operations.iter();
        let operations = operations.map(|(kind, count)| format!("{kind} {}", of_requests(*count)));
        document.facts("operations", operations.collect());
        let once = format!("{} asked for once", share(held.keys_once, held.keys));
        let known = (held.keys > held.keys_without_size)
            .then(|| format!("{} in their objects", bytes(held.object_bytes)));
        document.facts("keys", [things(held.keys, "key"), once].into_iter().chain(known).collect());
        let hottest = held.hottest.iter();
        let hottest = hottest.map(|hot| format!("{}: {}", hot.keys, of_requests(hot.requests)));
        document.facts("hottest keys", hottest.collect());
        if let Some(law) = held.zipf {
            let rests = format!("likeliest for the {} keys with 100 requests and more", law.keys);
            document.facts("zipf exponent", vec![format!("{:.3}", law.exponent), rests]);
        }
        let top = held.top.iter();
        let top = top.map(|hot| format!("{} {}", beginning(&hot.key, KEY_CHARS_MAX), hot.requests));
        document.facts("top", top.collect());
        document.facts("hits of LRU", held.lru.iter().filter_map(hits).collect());
        document.facts("not known", self.unknown());
        self.write_sizes(document);
    }

    /// What the trace does not tell.
    fn unknown(&self) -> Vec<String> {
        let held = &self.held;
        let retrievals = things(held.retrievals_without_value, "retrieval");
        let is_missed = matches!(self.layout, TraceLayout::Twitter | TraceLayout::Meta);
        let missed = if is_missed { ", which missed when they were recorded" } else { "" };
        let keys = things(held.keys_without_size, "key");
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
    fn write_sizes(&self, document: &mut Document) {
        let held = &self.held;
        let sizes = [
            ("key, B", held.key_bytes, 1.0),
            ("value, B", held.value_bytes, 1.0),
            ("ttl, s", held.ttl_ns, 1e9),
        ];
        let sizes = sizes.into_iter().filter_map(|(name, sizes, unit)| Some((name, sizes?, unit)));
        let column = |heading| Column::of_numbers(heading, 9);
        let table = Rows::of(sizes, |_| Style::Plain)
            .texts(Column::of_words("", 10), |(name, ..)| *name)
            .texts(column("p50"), |(_, sizes, unit)| sizes.p50 as f64 / unit)
            .texts(column("p90"), |(_, sizes, unit)| sizes.p90 as f64 / unit)
            .texts(column("p99"), |(_, sizes, unit)| sizes.p99 as f64 / unit)
            .texts(column("p99.9"), |(_, sizes, unit)| sizes.p999 as f64 / unit)
            .texts(column("max"), |(_, sizes, unit)| sizes.max as f64 / unit)
            .texts(column("mean"), |(_, sizes, unit)| significant(sizes.mean / unit))
            .texts(column("count"), |(_, sizes, _)| sizes.count);
        document.gap();
        document.table(table.grid(None));
    }
}

fn span(told: &RateSummary) -> Vec<String> {
    let falling = (told.falling_times > 0)
        .then(|| format!("{} before an earlier one", things(told.falling_times, "time")));
    let busiest = format!("{} in the busiest second", told.busiest_second);
    [time(told.span_ns), format!("{}/s", rate(told.mean_per_s)), busiest].into_iter().chain(falling).collect()
}

/// The rate in parts of the span as bars from 0 on.
fn bars(told: &RateSummary) -> String {
    let most = told.parts_per_s.iter().copied().fold(0.0, f64::max);
    let least = told.parts_per_s.iter().copied().fold(most, f64::min);
    let bar = |rate: &f64| match (rate / most * BARS.len() as f64).ceil() as usize {
        0 => '_',
        height => BARS[height.min(BARS.len()) - 1],
    };
    let bars: String = told.parts_per_s.iter().map(bar).collect();
    format!("{bars} {} each, {} to {}/s", time(told.part_ns), rate(least), rate(most))
}

/// Of a cache that was asked.
fn hits(cache: &CacheHits) -> Option<String> {
    let asked = cache.hits + cache.misses;
    let size = ByteSize(cache.bytes).to_string();
    let unit = if size.ends_with(|last: char| last.is_ascii_digit()) { " B" } else { "" };
    (asked > 0).then(|| format!("{size}{unit} {}", share(cache.hits, asked)))
}
