//! A stored result that was tampered with: whatever its texts hold, no output steers a terminal or runs in a page.

use super::{all_runs, asserted, json_of, output};
use crate::comparison::Comparison;
use crate::document::Level;
use crate::file_type::{FileRequest, FileType};
use crate::layout::Layout;
use crate::result::{self, RunResult};
use crate::stored::StoredResult;
use crate::subject::Subject;
use crate::{csv, hdr_histogram, html, json, ndjson};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use brunt_stats::change::Design;
use brunt_stats::summary::Summary;
use miniz_oxide::deflate::compress_to_vec_zlib;
use serde_json::Value;

/// Clears the screen, ends a line, colours (C1), turns the direction of what follows, and ends an element, an attribute, a cell, a code.
const HOSTILE: &str = "x\u{1b}[2J\r\n\u{9b}31m\u{7f}\u{202e}\u{2066}\u{2028}\"'><script>alert(1)</script>|`";

/// The path of every text and of every key; of a list, those of the first element.
fn places(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                let path = format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
                // Those of a record are the names of fields, and no other is accepted.
                if !path.starts_with("/record/") {
                    found.push(format!("{path}="));
                }
                places(inner, &path, found);
            }
        }
        Value::Array(list) => {
            list.iter().take(1).for_each(|inner| places(inner, &format!("{path}/0"), found));
        }
        Value::String(_) => found.push(path.to_owned()),
        _ => {}
    }
}

/// Changes these places as far as a result is still read then, and looks at why not. Where all are refused it is one of a half.
fn change_all(value: &mut Value, places: &[String]) {
    let mut tried = value.clone();
    for place in places {
        if tried.pointer(place.trim_end_matches('=')).is_some() {
            change(&mut tried, place);
        }
    }
    match (StoredResult::of(with_packed(&tried), HOSTILE).summary(), places) {
        (Ok(_), _) => *value = tried,
        (Err(error), [place]) => check_plain(place, &error),
        (Err(_), places) => {
            let (first, others) = places.split_at(places.len() / 2);
            change_all(value, first);
            change_all(value, others);
        }
    }
}

/// The same result with its record packed.
fn with_packed(value: &Value) -> Value {
    let mut value = value.clone();
    value["record"] = json::packed(&value["record"]).unwrap().into();
    value
}

/// Puts a hostile text in a place: in that of the text, or behind a key whose path ends in `=`.
fn change(value: &mut Value, place: &str) {
    let Some(path) = place.strip_suffix('=') else {
        *value.pointer_mut(place).unwrap() = HOSTILE.into();
        return;
    };
    let (object, key) = path.rsplit_once('/').unwrap();
    let key = key.replace("~1", "/").replace("~0", "~");
    let map = value.pointer_mut(object).unwrap().as_object_mut().unwrap();
    let held = map.remove(&key).unwrap();
    map.insert(format!("{key}{HOSTILE}"), held);
}

fn check_plain(what: &str, written: &str) {
    let steers = |character: char| {
        character != '\n' && character.is_control() || "\u{202e}\u{2066}\u{2028}".contains(character)
    };
    let found = written.lines().find(|line| line.contains(steers));
    assert!(found.is_none(), "{what}: {found:?}");
}

/// Every output of a run, by name; whether it is a page or becomes one.
fn outputs(summary: &Summary) -> Vec<(&'static str, bool, String)> {
    let layout = Layout::default();
    let runs = [("name".to_owned(), summary.clone())];
    let figure = |kind: &str| {
        let request: FileRequest = format!("{kind}:x.svg").parse().unwrap();
        let mut out = Vec::new();
        // Made-up runs may have too few replies for a figure.
        let _ = Subject::Run(summary).write(request.form, &mut out);
        String::from_utf8(out).unwrap()
    };
    vec![
        ("text", false, output(|out| Subject::Run(summary).write_text(&layout, Level::Short, out))),
        ("details", false, output(|out| Subject::Run(summary).write_text(&layout, Level::Long, out))),
        ("brief", false, output(|out| Subject::Run(summary).write_brief(&layout, out))),
        ("annotations", false, output(|out| Subject::Run(summary).write_annotations(out))),
        ("json", false, output(|out| json::write(summary, out))),
        ("csv", false, output(|out| csv::write(summary, out))),
        ("ndjson", false, output(|out| ndjson::write(summary, out))),
        ("hlog", false, output(|out| hdr_histogram::write(summary, out))),
        ("spectrum", false, output(|out| hdr_histogram::write_percentiles(summary, out))),
        ("markdown", true, output(|out| Subject::Run(summary).write(FileType::Markdown.into(), out))),
        ("junit", true, output(|out| Subject::Run(summary).write(FileType::Junit.into(), out))),
        ("html", true, output(|out| html::write(summary, out))),
        ("several", true, output(|out| Subject::Runs(&runs).write(FileType::Html.into(), out))),
        ("spectrum.svg", true, figure("spectrum")),
        ("timeline.svg", true, figure("timeline")),
    ]
}

/// What is markup in it: Markdown shows what is between fences as it is.
fn markup(name: &str, written: &str) -> String {
    match name {
        "markdown" => written.split("```").step_by(2).collect(),
        // JSON within a page has its own escapes.
        _ => written.to_owned(),
    }
}

#[test]
fn changed_results_steer_nothing() {
    let [_, overload] = asserted();
    let runs = all_runs().into_iter().chain([("asserted", overload)]);
    for (name, run) in runs.filter(|(name, _)| ["churn", "asserted"].contains(name)) {
        let mut whole = json_of(&run);
        // Rows over time, which `report` does not read.
        whole.as_object_mut().unwrap().remove("intervals");
        whole["record"] = json::unpacked(whole["record"].as_str().unwrap()).unwrap();
        let own: Vec<usize> =
            outputs(&run.summary).iter().map(|(.., text)| text.matches("<script").count()).collect();
        let mut found = Vec::new();
        places(&whole, "", &mut found);
        let mut changed = whole.clone();
        change_all(&mut changed, &found);
        assert!(changed.to_string().matches("alert(1)").count() > 20, "{name}");
        assert!(changed["record"].to_string().matches("alert(1)").count() > 2, "{name}");
        let changed = with_packed(&changed);
        let stored = StoredResult::parse(&changed.to_string(), name).unwrap();
        for ((what, is_page, written), own) in outputs(&stored.summary().unwrap()).into_iter().zip(own) {
            check_plain(&format!("{name}: {what}"), &written);
            if is_page {
                let scripts = markup(what, &written).matches("<script").count();
                assert!(scripts <= own, "{name}: {what}: {scripts} scripts, {own} of them ours");
            }
        }
        let read = |value: &Value| -> Vec<RunResult> { result::read(&value.to_string(), HOSTILE).unwrap() };
        let mut other = changed.clone();
        other["plan"]["seed"] = 7_777.into();
        let comparison = Comparison::of(Design::Apart, read(&changed), read(&other), &[]).unwrap();
        let subject = Subject::Comparison(&comparison);
        let texts = [Level::Short, Level::Long]
            .map(|level| output(|out| subject.write_text(&Layout::default(), level, out)));
        let files = [FileType::Json, FileType::Html, FileType::Markdown]
            .map(|file_type| output(|out| subject.write(file_type.into(), out)));
        for written in texts.iter().chain(&files) {
            check_plain(&format!("{name}: a comparison"), written);
        }
    }
}

/// Damaged, cut, and unpacked without end: each is one sentence.
#[test]
fn damaged_records_are_refused() {
    let [run, _] = asserted();
    let whole = json_of(&run);
    let held = whole["record"].as_str().unwrap();
    let endless = STANDARD.encode(compress_to_vec_zlib(&vec![b'['; (32 << 20) + 1], 1));
    let other = held.replacen(&held[100..101], if &held[100..101] == "A" { "B" } else { "A" }, 1);
    // A log would have a line for each second until then.
    let mut far = json::unpacked(held).unwrap();
    let last = far["intervals"]["totals"]["timeline"]["slices"].as_array_mut().unwrap().last_mut().unwrap();
    last[0] = (last[0].as_u64().unwrap() + 100_000_000 * (1 << 28)).into();
    let far = json::packed(&far).unwrap();
    let table = [
        ("", "record: damaged, or longer than 32 MiB when unpacked"),
        ("no base64", "record: damaged, or longer than 32 MiB when unpacked"),
        (&held[..held.len() / 8 * 4], "record: damaged, or longer than 32 MiB when unpacked"),
        (&other, "record: damaged, or longer than 32 MiB when unpacked"),
        (&endless, "record: damaged, or longer than 32 MiB when unpacked"),
        (&far, "record: a run that is longer than its slices of time"),
        (&json::packed(&[1, 2]).unwrap(), "record: invalid type: integer `1`, expected struct Environment"),
        (
            &STANDARD.encode(compress_to_vec_zlib(b"[1,", 1)),
            "record: EOF while parsing a value at line 1 column 3",
        ),
    ];
    for (record, expected) in table {
        let mut changed = whole.clone();
        changed["record"] = record.into();
        let refused = StoredResult::of(changed, "it").summary().err();
        assert_eq!(refused, Some(format!("it: {expected}")));
    }
}
