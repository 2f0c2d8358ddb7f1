//! Properties that every decoder has for any bytes: one function per decoder, which panics where they fail.
//!
//! Not a judge of meaning (golden bytes and tables beside each decoder are), and no generator: a fuzzer finds the bytes
//! (`target.rs`, `cargo xtask fuzz`), and those in `corpus/` are shown again with every test. Invariant: the same bytes say
//! the same however they are cut.

#![forbid(unsafe_code)]

#[cfg(test)]
mod mutation;
mod requests;
mod texts;
mod transcript;

pub use requests::{server, server_datagrams};
pub use texts::{options, plan_file, tool, trace};

use brunt_fleet::agent_handshake::{Answer, Hello, Welcome};
use brunt_fleet::frame::FrameReader;
use brunt_fleet::message::{FromAgent, ToAgent, decode, encode};
use brunt_plan::op::OpKind;
use brunt_plan::plan::Protocol;
use brunt_plan::resolve::{Host, resolve};
use brunt_plan::spec::PlanSpec;
use brunt_proto::memcached::binary::BinaryCodec;
use brunt_proto::memcached::datagram::DatagramCodec;
use brunt_proto::memcached::meta::MetaCodec;
use brunt_proto::memcached::stats::StatsReply;
use brunt_proto::memcached::text::TextCodec;
use brunt_proto::memcached::udp::{Header, Reassembly, ReassemblyStep};
use brunt_proto::message::MessageCodec;
use brunt_proto::out::Out;
use brunt_proto::resp::RespCodec;
use brunt_proto::resp::error::Redirect;
use brunt_proto::resp::reply::WholeReply;
use brunt_proto::resp::slot::{SLOTS, SlotMap};
use brunt_proto::template::{Template, Templates};
use brunt_proto::{Codec, DatagramAction, Event, Keys, Request};
use brunt_report::comparison::Comparison;
use brunt_report::document::Level;
use brunt_report::journal;
use brunt_report::stored::StoredResult;
use brunt_report::subject::Subject;
use brunt_stats::live_run::RunSoFar;
use brunt_stats::recorder::Layout;
use brunt_stats::run_record::RunRecord;
use brunt_stats::summary::Summary;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use transcript::Transcript;

/// A target: its name and what must hold.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub static TARGETS: [Target; 19] = [
    // Replies in memcached's text, meta and binary protocols, and in Redis's.
    ("memcached_text", |data| check_cuts(&TextCodec::default(), data)),
    ("memcached_meta", |data| check_cuts(&MetaCodec::default(), data)),
    ("memcached_binary", |data| check_cuts(&BinaryCodec::default(), data)),
    ("memcached_udp", memcached_udp),
    ("memcached_statistics", memcached_statistics),
    ("resp", |data| check_cuts(&RespCodec::default(), data)),
    ("resp_reply", resp_reply),
    ("resp_redirect", resp_redirect),
    ("resp_template", resp_template),
    ("message", message),
    ("fleet", fleet),
    ("result", result),
    ("journal", journal),
    ("plan_file", plan_file),
    ("options", options),
    ("trace", trace),
    ("tool", tool),
    ("server", server),
    ("server_datagrams", server_datagrams),
];

/// What must hold of a target.
///
/// # Panics
/// There is no target of this name.
pub const fn target(name: &str) -> fn(&[u8]) {
    let mut index = 0;
    while index < TARGETS.len() {
        let (other, check) = TARGETS[index];
        if is_equal(name.as_bytes(), other.as_bytes()) {
            return check;
        }
        index += 1;
    }
    panic!("there is no target of this name")
}

/// `==` of slices is not constant yet.
const fn is_equal(mut one: &[u8], mut other: &[u8]) -> bool {
    while let ([first, rest @ ..], [other_first, other_rest @ ..]) = (one, other) {
        if *first != *other_first {
            return false;
        }
        (one, other) = (rest, other_rest);
    }
    one.is_empty() && other.is_empty()
}

/// Replies to messages: the first byte says which protocol it is, and how many wait.
pub fn message(data: &[u8]) {
    let Some((&first, data)) = data.split_first() else { return };
    let (protocol, command) = match first % 3 {
        0 => (Protocol::Echo, "{random:3}"),
        1 => (Protocol::Ping, "PING"),
        _ => (Protocol::Thrift, "f"),
    };
    let template = Template::parse(protocol, command).expect("it is one");
    let mut codec = MessageCodec::new(protocol, Templates::new(vec![template]), 8);
    let mut out = Out::with_room(4096);
    for _ in 0..first >> 5 {
        codec.encode(&Request::of(OpKind::Raw, Keys { bytes: b"key", ends: &[3] }), &mut out);
    }
    check_cuts(&codec, data);
}

/// Bytes as they are in pieces this long at most, and what is told at the same time as the last: everything, a unit, a few
/// bytes, one.
fn check_cuts<C: Codec>(codec: &C, data: &[u8]) {
    let whole = Transcript::of(codec.clone(), data, data.len(), usize::MAX);
    for (piece, window) in
        [(data.len(), C::UNIT_BYTES_MAX), (C::UNIT_BYTES_MAX, usize::MAX), (7, 4096), (1, 2048)]
    {
        let window = window.max(C::UNIT_BYTES_MAX);
        assert_eq!(Transcript::of(codec.clone(), data, piece.max(1), window), whole, "pieces of {piece}");
    }
}

/// Datagrams to sockets on which requests wait: whatever comes, each request that waits gets one end at most, under its token.
fn check_sockets<C: Codec>(dialect: C, data: &[u8]) {
    let mut codec = DatagramCodec::new(dialect, WAITING as usize, 2);
    let mut out = Out::with_room(4096);
    for token in 0..WAITING {
        let keys = Keys { bytes: b"key", ends: &[3] };
        codec.encode(&Request { token, ..Request::of(OpKind::Get, keys) }, &mut out);
    }
    let (mut ended, mut rest) = (std::collections::BTreeSet::new(), data);
    while let Some((&len, behind)) = rest.split_first() {
        let (datagram, behind) = behind.split_at(behind.len().min(usize::from(len)));
        rest = behind;
        let DatagramAction::Reply { payload, .. } = codec.receive_datagram(datagram) else { continue };
        let mut used = 0;
        while let (step, Some(event)) = codec.decode(&payload[used..]) {
            used += step;
            match event {
                Event::Bad(_) => codec.skip(),
                Event::Found(brunt_proto::Found { token, .. }) | Event::End { token, .. }
                    if token < WAITING =>
                {
                    assert!(!codec.is_reading() && ended.insert(token), "{token} twice");
                }
                _ => {}
            }
        }
    }
    for token in 0..WAITING {
        assert_eq!(codec.time_out(token).is_none(), ended.contains(&token), "{token}");
    }
}

/// Requests that wait there.
const WAITING: u32 = 3;

/// Datagrams: a length in one byte, then the datagram. What is handed on is every datagram of a train, once, in order.
pub fn memcached_udp(data: &[u8]) {
    check_sockets(TextCodec::new(), data);
    check_sockets(MetaCodec::new(), data);
    let (mut reassembly, mut rest) = (Reassembly::default(), data);
    // Of the train in flight: how many datagrams it has, how many were handed on, and which are held.
    let (mut total, mut next, mut held) = (0, 0, std::collections::BTreeSet::new());
    while let Some((&len, behind)) = rest.split_first() {
        let (datagram, behind) = behind.split_at(behind.len().min(usize::from(len)));
        rest = behind;
        let Some((header, payload)) = Header::split(datagram) else { continue };
        assert_eq!(header.to_bytes(), datagram[..datagram.len() - payload.len()]);
        match reassembly.receive(header, payload.len()) {
            ReassemblyStep::Next { held: behind } => {
                if header.sequence == 0 && total != header.total {
                    (total, next) = (header.total, 0);
                    held.clear();
                }
                assert_eq!((header.total, header.sequence), (total, next));
                for _ in 0..behind {
                    next += 1;
                    assert!(held.remove(&next), "{next} was never held");
                }
                next += 1;
                if next == total {
                    (total, next) = (0, 0);
                    assert!(held.is_empty());
                }
            }
            ReassemblyStep::Ahead => {
                if total == 0 {
                    (total, next) = (header.total, 0);
                }
                assert!(header.total == total && header.sequence > next && header.sequence < total);
                assert!(held.insert(header.sequence), "held twice");
            }
            ReassemblyStep::Duplicate => {
                assert!(header.total == total && (header.sequence < next || held.contains(&header.sequence)));
            }
            ReassemblyStep::Hollow => assert!(payload.is_empty()),
            ReassemblyStep::Disordered | ReassemblyStep::Malformed => {}
        }
    }
}

/// What a reply comes to that is gathered in pieces this long: itself, or that there is none; nothing where it does not end. Which
/// of two faults is met first depends on what lies there; that it is one does not.
fn gathered<R: Default, E: ToString>(
    data: &[u8],
    piece: usize,
    take: impl Fn(&mut R, &[u8]) -> Result<bool, E>,
) -> Option<Result<R, String>> {
    let mut reply = R::default();
    for bytes in data.chunks(piece) {
        match take(&mut reply, bytes) {
            Ok(false) => {}
            Ok(true) => return Some(Ok(reply)),
            Err(fault) => return Some(Err(fault.to_string())),
        }
    }
    None
}

/// Gathers a reply from `data` in one piece and in small ones, which must agree; yields that of one piece. `said` extracts what is compared.
fn check_gathered<R: Default, E: ToString>(
    data: &[u8],
    take: impl Fn(&mut R, &[u8]) -> Result<bool, E>,
    said: impl Fn(&R) -> String,
) -> Option<R> {
    let whole = gathered(data, data.len().max(1), &take);
    for piece in [1, 5] {
        match (gathered(data, piece, &take), &whole) {
            // Cut behind its end, it looks whole.
            (Some(Ok(_)), Some(Err(_))) => {}
            (Some(Ok(cut)), Some(Ok(whole))) => assert_eq!(said(&cut), said(whole), "pieces of {piece}"),
            (Some(Err(_)), Some(Err(_))) | (None, None) => {}
            (cut, whole) => panic!("pieces of {piece}: {:?}, {:?}", cut.is_some(), whole.is_some()),
        }
    }
    whole?.ok()
}

/// The reply to `stats`, gathered.
pub fn memcached_statistics(data: &[u8]) {
    let said = |reply: &StatsReply| format!("{:?}", reply.rows().collect::<Vec<_>>());
    let _ = check_gathered(data, StatsReply::take, said);
}

/// One whole reply of Redis's, gathered and taken apart, and read as a map of slots.
pub fn resp_reply(data: &[u8]) {
    // As texts: doubles that are no number are equal, too.
    let said = |reply: &WholeReply| format!("{:?}", reply.value());
    let whole = check_gathered(data, WholeReply::take, said);
    let Some(whole) = whole else { return };
    let value = whole.value().expect("a whole reply has a value");
    let maps = [
        SlotMap::of_slots(&value, "here"),
        SlotMap::of_shards(&value, "here", false),
        SlotMap::of_shards(&value, "here", true),
    ];
    for map in maps {
        match map {
            Ok(map) => check_map(&map),
            Err(fault) => drop(fault.to_string()),
        }
    }
}

/// Every slot has one node or none.
fn check_map(map: &SlotMap) {
    let owners: Vec<u16> = (0..SLOTS).filter_map(|slot| map.node_of(slot)).collect();
    assert!(owners.iter().all(|node| usize::from(*node) < map.nodes().len()));
    assert_eq!(owners.len() + usize::from(map.uncovered()), usize::from(SLOTS));
    assert!(map.node_of(SLOTS).is_none());
}

/// The text of an error reply, as where to go instead.
pub fn resp_redirect(data: &[u8]) {
    if let Some(redirect) = Redirect::of(data) {
        assert!(redirect.slot < SLOTS && redirect.port > 0, "{redirect:?}");
    }
}

/// A command of a user's.
pub fn resp_template(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for protocol in Protocol::ALL {
        if let Err(message) = Template::parse(protocol, text) {
            assert!(!message.is_empty());
        }
    }
}

/// What controllers and agents send each other: the greeting's lines, then frames with messages of either side.
pub fn fleet(data: &[u8]) {
    let hello = data.first_chunk().and_then(Hello::read);
    let answer = data.first_chunk().and_then(Answer::read);
    let welcome = data.first_chunk().and_then(Welcome::read);
    // Reading yields what is written, but for a byte that is neither yes nor no.
    assert!(hello.is_none_or(|hello| Hello::read(&hello.bytes()) == Some(hello)));
    assert!(answer.is_none_or(|answer| data.starts_with(&answer.bytes())));
    assert!(welcome.is_none_or(|welcome| data.starts_with(&welcome.bytes())));
    let whole = frames(data, data.len().max(1));
    for piece in [1, 3] {
        assert_eq!(frames(data, piece), whole, "pieces of {piece}");
    }
    for frame in &whole.0 {
        check_message::<ToAgent>(frame);
        if let Some(FromAgent::Interval(interval)) = check_message::<FromAgent>(frame) {
            let layout = Layout { ops: vec![vec![OpKind::Get.into()]], servers: 1, ..Layout::default() };
            if interval.check(&layout).is_ok() {
                assert!(interval.rows.iter().all(|row| (row.class, row.op) == (0, OpKind::Get.into())));
            }
        }
    }
}

/// A result in JSON, whose record may be as it is packed or as it is before: it is refused in one sentence, or reported, and its report is a result that is reported alike.
pub fn result(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let text = with_packed_record(text).unwrap_or_else(|| text.to_owned());
    let Ok(stored) = StoredResult::parse(&text, "it") else { return };
    if let Err(reason) = stored.campaign() {
        assert!(!reason.is_empty());
    }
    match Comparison::of_stored(&stored) {
        Err(reason) => assert!(!reason.is_empty()),
        Ok(comparison) => {
            let mut out = Vec::new();
            Subject::Comparison(&comparison)
                .write_text(&Default::default(), Level::Long, &mut out)
                .expect("memory takes everything");
        }
    }
    check_summary(&stored);
}

/// A journal as it is, and one of a run of gets with these entries: a length in two bytes, then the entry, without its checksum. It is
/// refused in one sentence, or its result is reported, as any other.
pub fn journal(data: &[u8]) {
    let spec = PlanSpec::from_toml("mix = 'get'\ntime = '1s'\nwarmup = '0s'\n").expect("it is a plan");
    let plan = resolve(&spec, &Host::of(vec![0], 1)).expect("it is complete");
    let run = RunSoFar::new(RunRecord::of(plan), None, 0, Vec::new());
    let mut made = journal::begin(&run).expect("memory takes everything");
    let mut rest = data;
    while let Some((len, behind)) = rest.split_first_chunk() {
        let (entry, behind) = behind.split_at(behind.len().min(usize::from(u16::from_le_bytes(*len))));
        made.extend(journal::framed(entry).expect("it is short"));
        rest = behind;
    }
    for mut bytes in [data, &made] {
        match journal::read(&mut bytes, "it") {
            Err(reason) => assert!(!reason.is_empty()),
            Ok(stored) => check_summary(&stored),
        }
    }
}

/// It is refused in one sentence, or reported, and its report is a result that is reported alike.
fn check_summary(stored: &StoredResult) {
    match stored.summary() {
        Err(reason) => assert!(!reason.is_empty()),
        Ok(summary) => {
            let (page, json) = (page(&summary), json(&summary));
            let again = StoredResult::parse(&json, "it").and_then(|stored| stored.summary());
            let again = again.expect("what was written can be read");
            assert_eq!(page, self::page(&again));
        }
    }
}

/// The result of a run with its record packed, if it is there and not packed yet.
fn with_packed_record(text: &str) -> Option<String> {
    let mut result: Value = serde_json::from_str(text).ok()?;
    let is_run = result.get("schema")? == brunt_report::json::SCHEMA && result.get("record")?.is_object();
    is_run.then(|| {
        result["record"] = brunt_report::json::packed(&result["record"]).expect("JSON becomes JSON").into();
        result.to_string()
    })
}

fn page(summary: &Summary) -> Vec<u8> {
    let mut out = Vec::new();
    Subject::Run(summary)
        .write_text(&Default::default(), Level::Long, &mut out)
        .expect("memory takes everything");
    out
}

fn json(summary: &Summary) -> String {
    let mut out = Vec::new();
    brunt_report::json::write(summary, &mut out).expect("memory takes everything");
    String::from_utf8(out).expect("JSON is text")
}

/// The frames in these bytes, and why there are no more.
fn frames(data: &[u8], piece: usize) -> (Vec<Vec<u8>>, Option<String>) {
    let mut reader = FrameReader::new(4096);
    let mut found = Vec::new();
    for bytes in data.chunks(piece) {
        reader.push(bytes);
        loop {
            match reader.take() {
                Ok(Some(frame)) => found.push(frame.to_vec()),
                Ok(None) => break,
                Err(why) => return (found, Some(why)),
            }
        }
    }
    (found, None)
}

/// What is read can be written, and reads as the same.
fn check_message<M: Serialize + DeserializeOwned>(frame: &[u8]) -> Option<M> {
    let message: M = decode(frame).ok()?;
    let written = encode(&message).expect("what was read can be written");
    let again: M = decode(&written).expect("what was written can be read");
    assert_eq!(encode(&again).as_ref(), Ok(&written));
    Some(message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Inputs of each target in the test command, and flipped bits of each file at most.
    const MUTATIONS: u64 = 1000;

    /// The files of a target in this folder.
    fn inputs(folder: &str, target: &str) -> Vec<Vec<u8>> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join(target);
        let Ok(files) = std::fs::read_dir(&folder) else { return Vec::new() };
        let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
        paths.sort();
        let read = |path: &std::path::PathBuf| {
            println!("{}", path.display());
            std::fs::read(path).unwrap()
        };
        paths.iter().map(read).collect()
    }

    #[test]
    fn targets_are_found_by_their_names() {
        for (name, check) in TARGETS {
            assert!(std::ptr::fn_addr_eq(target(name), check), "{name}");
        }
        assert!(std::panic::catch_unwind(|| target("res")).is_err());
    }

    /// What is in the corpus holds, and what once broke a target; and for every target there is some.
    #[test]
    fn the_corpus_holds() {
        for (name, check) in TARGETS {
            let corpus = inputs("corpus", name);
            assert!(corpus.len() >= 3, "{name}: {} files", corpus.len());
            for bytes in corpus.into_iter().chain(inputs("crashes", name)) {
                check(&bytes);
                // What a fuzzer would begin with: a byte less, a byte more, a bit flipped.
                check(&bytes[..bytes.len().saturating_sub(1)]);
                for at in (0..bytes.len()).step_by(1 + bytes.len() / MUTATIONS as usize) {
                    let mut flipped = bytes.clone();
                    flipped[at] ^= 1 << (at % 8);
                    check(&flipped);
                }
            }
        }
    }

    /// So does what is made of it.
    #[test]
    fn what_is_made_of_the_corpus_holds() {
        for (name, check) in TARGETS {
            let corpus = inputs("corpus", name);
            for number in 0..MUTATIONS {
                let bytes = mutation::mutated(&corpus, number);
                let held = std::panic::catch_unwind(|| check(&bytes));
                assert!(held.is_ok(), "{name}, number {number}: {}", bytes.escape_ascii());
            }
        }
    }
}
