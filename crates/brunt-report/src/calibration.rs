//! A calibration: its report, the object `brunt.calibration.v1`, and the file that keeps several.
//!
//! The object is [`Calibration`] with the name of its schema, as [`read_all`] reads it back. Invariant: an object that lacks a key, unless it
//! may be `null`, or has one of another kind, is refused as a whole.

use crate::document::{Content, Document, Level};
use crate::grid::{Column, Grid, TimeTable, Value as CellValue};
use crate::instant::date;
use crate::layout::{Layout, Style};
use crate::quantity;
use crate::run_document::latency::times_table;
use brunt_stats::calibration::{Calibration, HostIdentity, LatencyFloor, Shape, WaitCost};
use brunt_stats::headroom::{ERROR_LIMIT_NS, Grade, Headroom, HeadroomLimit, Probe};
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::{self, Write};

/// The name of the schema of one calibration.
pub const SCHEMA: &str = "brunt.calibration.v1";
/// The name of the schema of the file that keeps several.
pub const SCHEMA_OF_ALL: &str = "brunt.calibrations.v1";

/// Share of the headroom that a run may use.
const USABLE: f64 = 0.70;

/// Writes the report.
///
/// # Errors
/// What `out` returns.
pub fn write_text(calibration: &Calibration, layout: &Layout, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(document(calibration, layout).text(layout, Level::Long).as_bytes())
}

/// Writes one calibration as an indented JSON object, and a line end.
///
/// # Errors
/// What `out` returns.
pub fn write_json(calibration: &Calibration, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &value(calibration)?)?;
    writeln!(out)
}

/// Writes the file that keeps several.
///
/// # Errors
/// What `out` returns.
pub fn write_all(calibrations: &[Calibration], out: &mut dyn Write) -> io::Result<()> {
    let all = calibrations.iter().map(value).collect::<Result<Vec<_>, _>>()?;
    serde_json::to_writer_pretty(&mut *out, &json!({ "schema": SCHEMA_OF_ALL, "calibrations": all }))?;
    writeln!(out)
}

/// Reads the file that keeps several.
///
/// # Errors
/// What is wrong with it, in words that follow "it".
pub fn read_all(text: &str) -> Result<Vec<Calibration>, String> {
    let all: Value = serde_json::from_str(text).map_err(|error| format!("is not JSON: {error}"))?;
    check_schema(&all, SCHEMA_OF_ALL)?;
    let list = all["calibrations"].as_array().ok_or("has no list 'calibrations'")?;
    let read = |value: &Value| {
        check_schema(value, SCHEMA)?;
        Calibration::deserialize(value).map_err(|error| format!("has a calibration with an error: {error}"))
    };
    list.iter().map(read).collect()
}

fn value(calibration: &Calibration) -> serde_json::Result<Value> {
    let mut value = serde_json::to_value(calibration)?;
    value["schema"] = json!(SCHEMA);
    Ok(value)
}

fn check_schema(value: &Value, expected: &str) -> Result<(), String> {
    match value["schema"].as_str() {
        Some(schema) if schema == expected => Ok(()),
        Some(schema) => Err(format!("has the schema '{schema}', not '{expected}'")),
        None => Err(format!("has no schema, which should be '{expected}'")),
    }
}

// ---- the report -------------------------------------------------------------------------------------------------------

fn document(calibration: &Calibration, layout: &Layout) -> Document {
    Document::of(|document| {
        document.facts("calibration", vec!["what this client can do on this host".to_owned()]);
        document.facts("shape", shape_facts(&calibration.shape));
        let HostIdentity { cpu_model, allowed_cpus, kernel, .. } = &calibration.host;
        let host = [
            format!("brunt {}", calibration.brunt_version),
            format!("kernel {kernel}"),
            format!("CPU {cpu_model}"),
            format!("allowed_cpus {allowed_cpus}"),
            date(calibration.made_at_s),
        ];
        document.facts("host", host.into());
        document.gap();
        floor(document, calibration, layout);
        document.gap();
        document.table(rates(&calibration.probes, layout));
        document.gap();
        document.table(waits(&calibration.waits, layout));
        let over_wire = "p50-wire and p90-wire: what the response time has beyond the wire's".to_owned();
        document.facts("wait", calibration.waits.first().map(|_| over_wire).into_iter().collect());
        document.gap();
        let mut sentence = |label: &str, text: String, style: Style| {
            document.push(0, Content::Sentence { label: label.to_owned(), text, style });
        };
        sentence("headroom", headroom_text(&calibration.headroom), Style::Bold);
        if let Some(disturbed) = &calibration.disturbed {
            let text = format!(
                "{disturbed}. Something else ran on this host: floor and headroom may be its doing, not the client's. \
                 Calibrate again when it is quiet."
            );
            sentence("disturbed", text, Style::Doubt);
        }
    })
}

fn shape_facts(shape: &Shape) -> Vec<String> {
    let connections = quantity::things(u64::from(shape.connections), "connection");
    let mut facts = vec![
        quantity::things(u64::from(shape.threads), "thread"),
        shape.io.clone(),
        format!("wait {}", shape.wait),
        format!("{connections} x depth {}", shape.depth),
        format!("values of {}", shape.value_text()),
    ];
    facts.extend((!shape.cpus.is_empty()).then(|| format!("pinned to processors {}", shape.cpus)));
    facts
}

fn floor(document: &mut Document, calibration: &Calibration, layout: &Layout) {
    let Calibration { in_process, loopback, oversleep, .. } = calibration;
    let rows =
        [("in-process", Some(in_process)), ("loopback", Some(loopback)), ("oversleep", oversleep.as_ref())];
    let row = |(name, floor): (&str, Option<&LatencyFloor>)| {
        (name.to_owned(), vec![floor.map(|floor| floor.p50_ns), floor.map(|floor| floor.p99_ns)])
    };
    document.table(times_table("floor", &["p50", "p99"], rows.map(row).into(), layout));
    let cpu = quantity::time(calibration.in_process_cpu_ns);
    document.facts("in process", vec!["the loop alone, no kernel".to_owned(), format!("{cpu} CPU/request")]);
    let rate = calibration.floor_rate;
    document.facts("loopback", vec![format!("client, loopback and a server that does nothing, at {rate}/s")]);
    let oversleep = match (oversleep, calibration.shape.wait.as_str()) {
        (None, "spin") => vec!["this client never sleeps"],
        (None, _) => vec!["too few timed sleeps"],
        (Some(_), "hybrid") => {
            vec!["how late a timed sleep ends", "the end of a wait is spun to hide it"]
        }
        (Some(_), _) => vec!["how late a timed sleep ends", "part of every response time"],
    };
    document.facts("oversleep", oversleep.into_iter().map(str::to_owned).collect());
}

/// A row for each rate, ascending; the measurement in the middle of those that were made.
fn rates(probes: &[Probe], layout: &Layout) -> Grid {
    let times = ["p99", "client<="].map(|heading| Column::of_numbers(heading, 9).with_unit(","));
    let mut columns = vec![Column::of_words("rate/s", 9)];
    columns.extend(times);
    columns.extend([Column::of_numbers("steps", 7), Column::of_words("client", 8)]);
    let mut table = TimeTable::new(columns);
    let mut sorted: Vec<&Probe> = probes.iter().collect();
    sorted.sort_by_key(|probe| (probe.rate, probe.grade(), probe.error_ns));
    for of_rate in sorted.chunk_by(|one, next| one.rate == next.rate) {
        let middle = of_rate[of_rate.len() / 2];
        let (grade, style) = match middle.grade() {
            Grade::Within => ("OK".to_owned(), Style::Good),
            Grade::Beyond => (format!("more than {}", quantity::time(ERROR_LIMIT_NS)), Style::Doubt),
            Grade::Saturated => ("unknown: the reference server does not keep up".to_owned(), Style::Dim),
        };
        let row = vec![
            CellValue::Text(middle.rate.to_string()),
            CellValue::Time(middle.p99_ns),
            CellValue::Time(middle.error_ns),
            CellValue::Text(of_rate.len().to_string()),
            CellValue::Styled(grade, style),
        ];
        table.push(Style::Plain, row);
    }
    table.grid(layout.unit)
}

/// A row for each rate and way of waiting.
fn waits(waits: &[WaitCost], layout: &Layout) -> Grid {
    let times = ["p50", "p50-wire", "p90", "p90-wire", "CPU+polls"];
    let mut columns = vec![Column::of_words("wait", 9).with_unit(", "), Column::of_numbers("rate/s", 7)];
    columns.extend(times.map(|heading| Column::of_numbers(heading, 7)));
    columns.push(Column::of_words("doubt", 7));
    let mut table = TimeTable::new(columns);
    for cost in waits {
        let ([p50, p90], [p50_over, p90_over]) = (cost.response_ns, cost.over_ns());
        let times_ns = [p50, p50_over, p90, p90_over, Some(cost.cpu_ns)];
        let marks = [(cost.is_saturated, "saturated"), (cost.is_disturbed, "disturbed")];
        let marks: Vec<&str> = marks.into_iter().filter(|(is_so, _)| *is_so).map(|(_, mark)| mark).collect();
        let mut row = vec![CellValue::Text(cost.wait.clone()), CellValue::Text(cost.rate.to_string())];
        row.extend(times_ns.map(CellValue::Time));
        row.extend((!marks.is_empty()).then(|| CellValue::Styled(marks.join(","), Style::Doubt)));
        table.push(Style::Plain, row);
    }
    table.grid(layout.unit)
}

fn headroom_text(headroom: &Headroom) -> String {
    let limit = quantity::time(ERROR_LIMIT_NS);
    let rate = |rate: u64| format!("{rate}/s");
    match (headroom.rate, headroom.limit, headroom.limit_rate) {
        (Some(bound), HeadroomLimit::Client, _) => format!(
            "{}: up to it the client error of the p99 stays within {limit}. Runs of this shape above {} (70 %) get a \
             CAUTION.",
            rate(bound),
            rate((bound as f64 * USABLE) as u64)
        ),
        (Some(bound), limited, _) => {
            let why = match limited {
                HeadroomLimit::Server => {
                    "the reference server does not keep up with more, so that the client's limit was not reached"
                }
                _ => "no higher rate was tried",
            };
            format!("at least {}: there the client error of the p99 is within {limit}; {why}.", rate(bound))
        }
        (None, HeadroomLimit::Client, Some(lowest)) => format!(
            "none: the client error of the p99 exceeds {limit} already at {}, the lowest rate that was tried. Something \
             else runs on this host, or its wake-ups cost that much. Calibrate again when it is quiet.",
            rate(lowest)
        ),
        (None, ..) => {
            "not known: the reference server did not keep up with any rate that was tried.".to_owned()
        }
    }
}

#[cfg(test)]
mod tests;
