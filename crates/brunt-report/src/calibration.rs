//! A calibration: the page that a person reads, the object `brunt.calibration.v1`, and the file that keeps several.
//!
//! Not the measuring. What is written here is read back by [`read_all`], and only by it. Invariants: as in
//! [`crate::json`]; an object that lacks a key, or has one of another kind, is refused as a whole and named.

use crate::paragraph::{self, printable};
use crate::quantity::{self, time_or_dash};
use crate::table::Table;
use crate::wall_clock::date;
use brunt_stats::calibration::{Calibration, HostIdentity, LatencyFloor, Shape, WaitCost};
use brunt_stats::headroom::{ERROR_LIMIT_NS, Grade, Headroom, HeadroomLimit, Probe};
use serde_json::{Value, json};
use std::io::{self, Write};

/// The name of the schema of one calibration.
pub const SCHEMA: &str = "brunt.calibration.v1";
/// The name of the schema of the file that keeps several.
pub const SCHEMA_OF_ALL: &str = "brunt.calibrations.v1";

/// Share of the headroom that a run may use.
const USABLE: f64 = 0.70;

/// Writes the page.
///
/// # Errors
/// What `out` returns.
pub fn write_text(calibration: &Calibration, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(page(calibration).as_bytes())
}

/// Writes one calibration as an indented JSON object, and a line end.
///
/// # Errors
/// What `out` returns.
pub fn write_json(calibration: &Calibration, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &value(calibration))?;
    writeln!(out)
}

/// Writes the file that keeps several.
///
/// # Errors
/// What `out` returns.
pub fn write_all(calibrations: &[Calibration], out: &mut dyn Write) -> io::Result<()> {
    let all: Value = calibrations.iter().map(value).collect();
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
    list.iter().map(read).collect()
}

// ---- the page -------------------------------------------------------------------------------------------------------

fn page(calibration: &Calibration) -> String {
    let mut out = String::new();
    out.push_str("calibration: what this client can do on this host\n");
    paragraph::facts(&mut out, "shape", &shape_facts(&calibration.shape));
    let HostIdentity { cpu_model, allowed_cpus, kernel, .. } = &calibration.host;
    let host = [
        format!("brunt {}", calibration.brunt_version),
        format!("kernel {kernel}"),
        format!("CPU {cpu_model}"),
        format!("allowed_cpus {allowed_cpus}"),
        date(calibration.made_at_s),
    ];
    paragraph::facts(&mut out, "host", &host.map(|fact| printable(&fact)));
    out.push('\n');
    floor(&mut out, calibration);
    out.push('\n');
    rates(&mut out, &calibration.probes);
    if !calibration.waits.is_empty() {
        out.push('\n');
        waits(&mut out, &calibration.waits);
    }
    out.push('\n');
    paragraph::prose(&mut out, "headroom", &headroom_text(&calibration.headroom));
    if let Some(disturbed) = &calibration.disturbed {
        let text = format!(
            "{disturbed}. Something else ran on this host: floor and headroom may be its doing, not the client's. Calibrate \
             again when it is quiet."
        );
        paragraph::prose(&mut out, "disturbed", &printable(&text));
    }
    out
}

fn shape_facts(shape: &Shape) -> Vec<String> {
    let connections = quantity::things(u64::from(shape.connections), "connection");
    let mut facts = vec![
        quantity::things(u64::from(shape.threads), "thread"),
        shape.io.clone(),
        format!("wait {}", shape.wait),
        format!("{connections} × depth {}", shape.depth),
        format!("values of {}", shape.value_text()),
    ];
    if !shape.cpus.is_empty() {
        facts.push(format!("pinned to processors {}", shape.cpus));
    }
    facts.iter().map(|fact| printable(fact)).collect()
}

fn floor(out: &mut String, calibration: &Calibration) {
    let mut table = Table::new(&["floor", "p50", "p99", ""]).with_prose_last();
    let mut push = |name: &str, floor: Option<LatencyFloor>, says: String| {
        let times = [floor.map(|floor| floor.p50_ns), floor.map(|floor| floor.p99_ns)];
        let [p50, p99] = times.map(quantity::time_or_dash);
        table.push(vec![name.to_owned(), p50, p99, says]);
    };
    let cpu = quantity::time(calibration.in_process_cpu_ns);
    let rate = calibration.floor_rate;
    push(
        "in process",
        Some(calibration.in_process),
        format!("the loop alone, no kernel · {cpu} of CPU per request"),
    );
    push(
        "loopback",
        Some(calibration.loopback),
        format!("client, loopback and a server that does nothing, at {rate}/s"),
    );
    let oversleep = match (calibration.oversleep, calibration.shape.wait.as_str()) {
        (None, "spin") => "this client never sleeps",
        (None, _) => "too few timed sleeps",
        (Some(_), "hybrid") => "how late a timed sleep ends · the end of a wait is spun to hide it",
        (Some(_), _) => "how late a timed sleep ends · part of every response time",
    };
    push("oversleep", calibration.oversleep, oversleep.to_owned());
    table.write(out);
}

/// A row for each rate, ascending; the measurement in the middle of those that were made.
fn rates(out: &mut String, probes: &[Probe]) {
    let mut table = Table::new(&["requests/s", "p99", "client error <=", ""]).with_prose_last();
    let mut rates: Vec<u64> = probes.iter().map(|probe| probe.rate).collect();
    rates.sort_unstable();
    rates.dedup();
    for rate in rates {
        let mut of_rate: Vec<&Probe> = probes.iter().filter(|probe| probe.rate == rate).collect();
        of_rate.sort_by_key(|probe| (probe.grade(), probe.error_ns));
        let middle = of_rate[of_rate.len() / 2];
        let grade = match middle.grade() {
            Grade::Within => String::new(),
            Grade::Beyond => format!("more than {}", quantity::time(ERROR_LIMIT_NS)),
            Grade::Saturated => "the reference server does not keep up".to_owned(),
        };
        let times = (of_rate.len() > 1).then(|| format!("measured {} times", of_rate.len()));
        let says: Vec<String> =
            [Some(grade), times].into_iter().flatten().filter(|says| !says.is_empty()).collect();
        table.push(vec![
            rate.to_string(),
            time_or_dash(middle.p99_ns),
            time_or_dash(middle.error_ns),
            says.join(" · "),
        ]);
    }
    table.write(out);
}

/// A row for each rate and way of waiting.
fn waits(out: &mut String, waits: &[WaitCost]) {
    let columns = ["wait", "requests/s", "p50", "p50 over wire", "p90", "p90 over wire", "CPU+polls", ""];
    let mut table = Table::new(&columns).with_prose_last();
    for cost in waits {
        let ([p50, p90], [p50_over, p90_over]) = (cost.response_ns, cost.over_ns());
        let times = [p50, p50_over, p90, p90_over, Some(cost.cpu_ns)].map(time_or_dash);
        let marks = [(cost.is_saturated, "saturated"), (cost.is_disturbed, "disturbed")];
        let marks: Vec<&str> = marks.into_iter().filter(|(is_so, _)| *is_so).map(|(_, mark)| mark).collect();
        let head = [cost.wait.clone(), cost.rate.to_string()];
        table.push(head.into_iter().chain(times).chain([marks.join(", ")]).collect());
    }
    table.write(out);
}

fn headroom_text(headroom: &Headroom) -> String {
    let limit = quantity::time(ERROR_LIMIT_NS);
    let rate = |rate: u64| format!("{rate}/s");
    let caution = |bound: u64| rate((bound as f64 * USABLE) as u64);
    match (headroom.rate, headroom.limit, headroom.limit_rate) {
        (Some(bound), HeadroomLimit::Client, _) => format!(
            "{}: up to it the client's own share in the p99 stays within {limit}. Runs of this shape above {} (70 %) get a \
             CAUTION.",
            rate(bound),
            caution(bound)
        ),
        (Some(bound), HeadroomLimit::Server, _) => format!(
            "at least {}: there the client's own share in the p99 is within {limit}; the reference server does not keep up \
             with more, so that the client's limit was not reached.",
            rate(bound)
        ),
        (Some(bound), HeadroomLimit::Search, _) => format!(
            "at least {}: there the client's own share in the p99 is within {limit}; no higher rate was tried.",
            rate(bound)
        ),
        (None, HeadroomLimit::Client, Some(lowest)) => format!(
            "none: the client's own share in the p99 exceeds {limit} already at {}, the lowest rate that was tried. Something \
             else runs on this host, or its wake-ups cost that much. Calibrate again when it is quiet.",
            rate(lowest)
        ),
        (None, ..) => {
            "not known: the reference server did not keep up with any rate that was tried.".to_owned()
        }
    }
}

// ---- JSON -----------------------------------------------------------------------------------------------------------

pub(crate) fn floor_value(floor: LatencyFloor) -> Value {
    json!({ "p50": floor.p50_ns, "p99": floor.p99_ns })
}

pub(crate) fn headroom_value(headroom: &Headroom) -> Value {
    json!({
        "rate": headroom.rate,
        "limit": headroom.limit.name(),
        "limit_rate": headroom.limit_rate,
    })
}

fn value(calibration: &Calibration) -> Value {
    let probes = calibration.probes.iter().map(|probe| {
        json!({
            "rate": probe.rate,
            "p99_ns": probe.p99_ns,
            "client_error_p99_ns": probe.error_ns,
            "is_saturated": probe.is_saturated,
        })
    });
    let waits = calibration.waits.iter().map(|cost| {
        json!({
            "wait": cost.wait,
            "rate": cost.rate,
            "p50_ns": cost.response_ns[0],
            "p90_ns": cost.response_ns[1],
            "wire_p50_ns": cost.wire_ns[0],
            "wire_p90_ns": cost.wire_ns[1],
            "cpu_ns_per_request": cost.cpu_ns,
            "is_saturated": cost.is_saturated,
            "is_disturbed": cost.is_disturbed,
        })
    });
    json!({
        "schema": SCHEMA,
        "version": calibration.brunt_version,
        "made_at_s": calibration.made_at_s,
        "host": calibration.host,
        "shape": calibration.shape,
        "in_process_ns": floor_value(calibration.in_process),
        "in_process_cpu_ns_per_request": calibration.in_process_cpu_ns,
        "loopback_ns": floor_value(calibration.loopback),
        "floor_rate": calibration.floor_rate,
        "oversleep_ns": calibration.oversleep.map(floor_value),
        "headroom": headroom_value(&calibration.headroom),
        "probes": probes.collect::<Value>(),
        "waits": waits.collect::<Value>(),
        "disturbed": calibration.disturbed,
    })
}

fn check_schema(value: &Value, expected: &str) -> Result<(), String> {
    match value["schema"].as_str() {
        Some(schema) if schema == expected => Ok(()),
        Some(schema) => Err(format!("has the schema '{schema}', not '{expected}'")),
        None => Err(format!("has no schema, which should be '{expected}'")),
    }
}

/// An object that is being read, with its path for messages.
#[derive(Clone, Copy)]
struct Object<'a> {
    value: &'a Value,
    path: &'a str,
}

impl<'a> Object<'a> {
    fn error(&self, key: &str, kind: &str) -> String {
        format!("has no {kind} at {}{key}", self.path)
    }

    fn object(&self, key: &str, path: &'a str) -> Result<Self, String> {
        let value = &self.value[key];
        if value.is_object() { Ok(Object { value, path }) } else { Err(self.error(key, "object")) }
    }

    fn text(&self, key: &str) -> Result<String, String> {
        self.value[key].as_str().map(str::to_owned).ok_or_else(|| self.error(key, "text"))
    }

    fn number(&self, key: &str) -> Result<u64, String> {
        self.value[key].as_u64().ok_or_else(|| self.error(key, "whole number"))
    }

    fn small_number(&self, key: &str) -> Result<u32, String> {
        u32::try_from(self.number(key)?).map_err(|_| self.error(key, "number up to 4294967295"))
    }

    /// `null` is none; that the key is missing is not.
    fn optional<T>(&self, key: &str, read: impl Fn() -> Result<T, String>) -> Result<Option<T>, String> {
        if self.value.get(key) == Some(&Value::Null) { Ok(None) } else { read().map(Some) }
    }

    fn optional_number(&self, key: &str) -> Result<Option<u64>, String> {
        self.optional(key, || self.number(key))
    }

    fn floor(&self, key: &str, path: &'a str) -> Result<LatencyFloor, String> {
        let floor = self.object(key, path)?;
        Ok(LatencyFloor { p50_ns: floor.number("p50")?, p99_ns: floor.number("p99")? })
    }
}

fn read(value: &Value) -> Result<Calibration, String> {
    check_schema(value, SCHEMA)?;
    let top = Object { value, path: "" };
    let host = top.object("host", "host.")?;
    let shape = top.object("shape", "shape.")?;
    Ok(Calibration {
        made_at_s: top.number("made_at_s")?,
        brunt_version: top.text("version")?,
        host: HostIdentity {
            machine: host.text("machine")?,
            cpu_model: host.text("cpu_model")?,
            allowed_cpus: host.text("allowed_cpus")?,
            kernel: host.text("kernel")?,
        },
        shape: Shape {
            threads: shape.small_number("threads")?,
            cpus: shape.text("cpus")?,
            io: shape.text("io")?,
            wait: shape.text("wait")?,
            connections: shape.small_number("connections")?,
            depth: shape.small_number("depth")?,
            value_size: shape.text("value_size")?,
        },
        in_process: top.floor("in_process_ns", "in_process_ns.")?,
        in_process_cpu_ns: top.number("in_process_cpu_ns_per_request")?,
        loopback: top.floor("loopback_ns", "loopback_ns.")?,
        floor_rate: top.number("floor_rate")?,
        oversleep: top.optional("oversleep_ns", || top.floor("oversleep_ns", "oversleep_ns."))?,
        headroom: read_headroom(top.object("headroom", "headroom.")?)?,
        probes: read_probes(value)?,
        waits: read_waits(value)?,
        disturbed: top.optional("disturbed", || top.text("disturbed"))?,
    })
}

fn read_headroom(object: Object<'_>) -> Result<Headroom, String> {
    let word = object.text("limit")?;
    let limit = HeadroomLimit::from_name(&word);
    Ok(Headroom {
        rate: object.optional_number("rate")?,
        limit: limit.ok_or_else(|| format!("has an unknown headroom.limit '{word}'"))?,
        limit_rate: object.optional_number("limit_rate")?,
    })
}

fn read_probes(value: &Value) -> Result<Vec<Probe>, String> {
    let probe = |value: &Value| {
        let object = Object { value, path: "probes[]." };
        Ok(Probe {
            rate: object.number("rate")?,
            p99_ns: object.optional_number("p99_ns")?,
            error_ns: object.optional_number("client_error_p99_ns")?,
            is_saturated: value["is_saturated"]
                .as_bool()
                .ok_or_else(|| object.error("is_saturated", "true or false"))?,
        })
    };
    value["probes"].as_array().ok_or("has no list at probes")?.iter().map(probe).collect()
}

fn read_waits(value: &Value) -> Result<Vec<WaitCost>, String> {
    let cost = |value: &Value| {
        let object = Object { value, path: "waits[]." };
        let times = |keys: [&str; 2]| -> Result<_, String> {
            Ok([object.optional_number(keys[0])?, object.optional_number(keys[1])?])
        };
        Ok(WaitCost {
            wait: object.text("wait")?,
            rate: object.number("rate")?,
            response_ns: times(["p50_ns", "p90_ns"])?,
            wire_ns: times(["wire_p50_ns", "wire_p90_ns"])?,
            cpu_ns: object.number("cpu_ns_per_request")?,
            // Those of earlier builds do not say.
            is_saturated: value["is_saturated"] == json!(true),
            is_disturbed: value["is_disturbed"] == json!(true),
        })
    };
    value["waits"].as_array().ok_or("has no list at waits")?.iter().map(cost).collect()
}

#[cfg(test)]
mod tests;
