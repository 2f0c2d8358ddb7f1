//! Texts of users: plan files, options, traces, and the command lines of other tools.
//!
//! Invariant: a text is refused with a message, or what is made of it is written and read as the same.

use brunt_compat::front_end::{Caller, Outcome};
use brunt_compat::tools::TOOLS;
use brunt_plan::objective::{Objective, Requirement};
use brunt_plan::plan::TraceLayout;
use brunt_plan::quantile::Percentiles;
use brunt_plan::resolve::{Host, resolve};
use brunt_plan::server::ServerAddress;
use brunt_plan::spec::{OPTIONS, OptionForm, PlanSpec};
use brunt_plan::sweep::Sweep;
use brunt_report::file_type::{FigureWidth, FileRequest};
use brunt_server::{Division, Drip, Every, Listen, Service};
use brunt_stats::trace_profile::TraceProfile;
use brunt_workload::trace::KEY_LEN_MAX;
use brunt_workload::trace_decoder::{Decoded, Piece, TraceDecoder, recognised};
use std::fmt::Display;
use std::str::FromStr;

/// A plan file.
pub fn plan_file(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        read_plan(text);
    }
}

/// Is it accepted?
fn read_plan(text: &str) -> bool {
    let spec = match PlanSpec::from_toml(text) {
        Ok(spec) => spec,
        Err(message) => {
            assert!(!message.is_empty());
            return false;
        }
    };
    let host = Host::of(vec![0, 1], 1);
    match resolve(&spec, &host) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(_) => {
            // As texts, since passwords are not written.
            let written = spec.to_toml();
            let again = PlanSpec::from_toml(&written);
            let again = again.unwrap_or_else(|message| panic!("{message}\n{written}"));
            assert_eq!(again.to_toml(), written);
        }
    }
    true
}

/// A value of an option: the first byte says of which. Flags and plan files accept the same.
pub fn options(data: &[u8]) {
    let Some((&first, data)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Some(option) = OPTIONS.get(usize::from(first)) else {
        return OTHER_OPTIONS[usize::from(first) % OTHER_OPTIONS.len()](text);
    };
    if let OptionForm::Switch(_) = option.form {
        return;
    }
    // Strings of JSON are strings of TOML, but for DEL.
    let quoted = serde_json::to_string(text).expect("a text can be quoted").replace('\x7f', "\\u007F");
    let value = if option.form == OptionForm::List { format!("[{quoted}]") } else { quoted };
    let is_accepted = read_plan(&format!("{} = {value}\n", option.key()));
    assert_eq!(option.check(text).is_ok(), is_accepted, "{}", option.key());
}

/// Options that are no part of a plan.
const OTHER_OPTIONS: [fn(&str); 13] = [
    check_shown::<Objective>,
    check_shown::<Percentiles>,
    check_shown::<ServerAddress>,
    check_shown::<Requirement>,
    check_refused::<Division>,
    check_refused::<Drip>,
    check_shown::<Listen>,
    check_refused::<Service>,
    check_refused::<Every>,
    check_refused::<FileRequest>,
    check_refused::<FigureWidth>,
    check_refused::<Sweep>,
    check_refused::<brunt_server::WireProtocol>,
];

fn check_refused<T: FromStr<Err = String>>(text: &str) {
    if let Err(message) = text.parse::<T>() {
        assert!(!message.is_empty());
    }
}

/// What is shown of a value is read as what is shown alike.
fn check_shown<T: FromStr<Err = String> + Display>(text: &str) {
    match text.parse::<T>() {
        Err(message) => assert!(!message.is_empty()),
        Ok(value) => {
            let shown = value.to_string();
            let again = shown.parse::<T>().unwrap_or_else(|message| panic!("{shown}: {message}"));
            assert_eq!(again.to_string(), shown);
        }
    }
}

/// A trace: the first byte says of which layout, which the file may tell, too.
pub fn trace(data: &[u8]) {
    let Some((&first, data)) = data.split_first() else { return };
    let layout = TraceLayout::ALL[usize::from(first) % TraceLayout::ALL.len()];
    let told = recognised(data);
    assert!(told.is_none_or(|told| TraceLayout::TOLD_BY_FILES.contains(&told)));
    let mut decoder = TraceDecoder::new(layout);
    let pieces: Vec<&[u8]> = match decoder.piece() {
        Piece::Line(_) => data.split(|byte| *byte == b'\n').collect(),
        Piece::Record(len) => data.chunks_exact(len).collect(),
    };
    let mut profile = TraceProfile::new(&[100, 10_000], 3);
    let mut sum = 0;
    for text in pieces {
        let mut yielded = 0;
        let decoded = decoder.decode(text, &mut |request| {
            assert!(layout.kinds().contains(&request.kind) && request.repeats > 0);
            assert!(!request.key.is_empty() && request.key.len() <= text.len().max(KEY_LEN_MAX));
            yielded += 1;
            sum += u64::from(request.repeats);
            profile.add(request);
            Ok(())
        });
        assert_eq!(yielded > 0, decoded == Ok(Decoded::Requests));
    }
    let summary = profile.summary();
    assert!(summary.requests == sum && summary.keys <= sum && summary.keys_once <= summary.keys);
    let asked = |kind| summary.operations.get(kind).copied().unwrap_or(0);
    let retrievals = asked("get") + asked("gets");
    assert!(summary.lru.iter().all(|cache| cache.hits + cache.misses == retrievals));
}

/// The command line of another tool, an argument a line, and the file that it names: the first byte says which tool, and how many of the
/// lines are arguments.
pub fn tool(data: &[u8]) {
    let Some((&first, data)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(data) else { return };
    let lines: Vec<&str> = text.lines().collect();
    let (arguments, file) = lines.split_at(lines.len().min(usize::from(first) / TOOLS.len()));
    let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    let file = file.join("\n");
    let tool = &TOOLS[usize::from(first) % TOOLS.len()];
    let caller = Caller {
        program: tool.name,
        is_terminal: false,
        allowed_cpus: &[0, 1],
        home: Some("/h"),
        variable: &|_| None,
        read_text: &|_| Ok(file.clone()),
    };
    if let Outcome::Answer(answer) = tool.read(&arguments, &caller) {
        assert!(!answer.out.is_empty() || !answer.err.is_empty());
    }
}
