//! What the binary protocol says of what came of a frame.
//!
//! Only frames: what a command does is said in `cache`, how it is read in the parent. Invariant: statuses and texts are those
//! of memcached 1.6.

use super::{Frame, HEADER_BYTES, What};
use crate::cache::{Changed, Deleted, Delta, Mode, Write, Written};
use crate::statistics::VERSION;
use crate::turn::{INJECTED, Turn, push_value};
use crate::verb::Verb;

const REPLY_MAGIC: u8 = 0x81;

/// The time to live that keeps an increment from making the key it does not find.
const MAKE_NONE: u64 = u32::MAX as u64;

/// How a reply says what went wrong: a number and a text.
type Status = (u16, &'static [u8]);
const NOT_FOUND: Status = (0x01, b"Not found");
const EXISTS: Status = (0x02, b"Data exists for key.");
const TOO_LARGE: Status = (0x03, b"Too large.");
const INVALID: Status = (0x04, b"Invalid arguments");
const NOT_STORED: Status = (0x05, b"Not stored.");
const NOT_A_NUMBER: Status = (0x06, b"Non-numeric server-side value for incr or decr");
const AUTH_FAILURE: Status = (0x20, b"Auth failure.");
const UNKNOWN_COMMAND: Status = (0x81, b"Unknown command");
const OUT_OF_MEMORY: Status = (0x82, b"Out of memory");
/// What the document calls an internal error.
const REFUSED: Status = (0x84, INJECTED);

/// The one mechanism there is.
const PLAIN: &[u8] = b"PLAIN";

/// Carries out a data command and says what came of it.
pub(crate) fn carry_out(frame: &Frame<'_>, turn: &mut Turn<'_>) {
    match frame.what {
        What::Get | What::GetAndTouch => retrieve(frame, turn),
        What::Store(verb) => store(frame, verb, turn),
        What::Extend(verb) => {
            let mode = if verb == Verb::Append { Mode::Append } else { Mode::Prepend };
            let compare = Some(frame.unique).filter(|unique| *unique != 0);
            let write = Write { compare, ..Write::of(mode, frame.key, frame.value) };
            written(frame, &write, NOT_STORED, turn);
        }
        What::Delete => {
            let compare = Some(frame.unique).filter(|unique| *unique != 0);
            match turn.cache.delete(frame.key, compare, turn.now_ns) {
                Deleted::Gone => done(frame, 0, turn),
                Deleted::NotFound => failed(frame, NOT_FOUND, turn),
                Deleted::Exists => failed(frame, EXISTS, turn),
            }
        }
        What::Change { is_increment } => change(frame, is_increment, turn),
        What::Touch => touch(frame, turn),
        _ => unreachable!("the other commands concern no items"),
    }
}

/// Refuses a data command by script; one that wants no answer in silence, as in the text protocol.
pub(crate) fn refuse(frame: &Frame<'_>, verb: Verb, turn: &mut Turn<'_>) {
    turn.cache.count_refused(verb, 1);
    if !frame.is_quiet || verb.is_retrieval() {
        failed(frame, REFUSED, turn);
    }
}

/// What a connection hears that has not said who it is. It is closed, as memcached does it.
pub(crate) fn turn_away(frame: &Frame<'_>, turn: &mut Turn<'_>) -> bool {
    failed(frame, AUTH_FAILURE, turn);
    true
}

/// Carries out any other command. True: the connection is to be closed.
pub(crate) fn control(frame: &Frame<'_>, turn: &mut Turn<'_>) -> bool {
    if frame.excess_bytes > 0 {
        if frame.what == What::Store(Verb::Set) {
            turn.cache.drop_overwritten(frame.key, turn.now_ns);
        }
        failed(frame, TOO_LARGE, turn);
        return false;
    }
    if !frame.is_valid {
        failed(frame, INVALID, turn);
        return true;
    }
    match frame.what {
        What::Noop | What::Verbosity => done(frame, 0, turn),
        What::Version => put(frame, 0, 0, &[], &[], VERSION.as_bytes(), turn),
        What::Statistics => statistics(frame, turn),
        What::Flush => {
            let delay_s = if frame.extras.is_empty() { 0 } else { frame.exptime_s(0) };
            turn.cache.flush(delay_s, turn.now_ns);
            done(frame, 0, turn);
        }
        What::SaslMechanisms | What::SaslAuth | What::SaslStep => sasl(frame, turn),
        What::Quit => {
            done(frame, 0, turn);
            return true;
        }
        _ => failed(frame, UNKNOWN_COMMAND, turn),
    }
    false
}

fn retrieve(frame: &Frame<'_>, turn: &mut Turn<'_>) {
    if frame.what == What::GetAndTouch {
        let expires_ns = turn.cache.expires_ns(frame.exptime_s(0), turn.now_ns);
        turn.cache.touch(frame.key, expires_ns, turn.now_ns);
    }
    let begin = turn.out.len();
    let key = if frame.names_key { frame.key } else { &[] };
    let Some(item) = turn.cache.find(frame.key, turn.now_ns) else {
        return match (frame.is_quiet, frame.names_key) {
            (true, _) => {}
            // The key takes the place of the text.
            (false, true) => put(frame, NOT_FOUND.0, 0, &[], key, &[], turn),
            (false, false) => failed(frame, NOT_FOUND, turn),
        };
    };
    let flags = item.flags.to_be_bytes();
    put_head(frame, 0, item.unique, flags.len(), key.len(), item.value.len(), turn.out);
    turn.out.extend_from_slice(&flags);
    turn.out.extend_from_slice(key);
    turn.value_bytes += push_value(turn.out, item.value, turn.truth);
    if turn.out.len() > turn.out_bytes_max {
        turn.out.truncate(begin);
        turn.value_bytes = 0;
        failed(frame, OUT_OF_MEMORY, turn);
    }
}

fn store(frame: &Frame<'_>, verb: Verb, turn: &mut Turn<'_>) {
    let expires_ns = turn.cache.expires_ns(frame.exptime_s(4), turn.now_ns);
    let flags = frame.number::<4>(0) as u32;
    // With a unique, whatever it is becomes a cas.
    let compare = Some(frame.unique).filter(|unique| *unique != 0);
    let (mode, not_stored) = match (compare, verb) {
        (None, Verb::Add) => (Mode::Add, EXISTS),
        (None, Verb::Replace) => (Mode::Replace, NOT_FOUND),
        _ => (Mode::Set, NOT_STORED),
    };
    let write = Write { flags, expires_ns, compare, ..Write::of(mode, frame.key, frame.value) };
    written(frame, &write, not_stored, turn);
}

fn written(frame: &Frame<'_>, write: &Write<'_>, not_stored: Status, turn: &mut Turn<'_>) {
    match turn.cache.write(write, turn.now_ns) {
        Written::Stored { unique, .. } => done(frame, unique, turn),
        Written::NotStored => failed(frame, not_stored, turn),
        Written::Exists => failed(frame, EXISTS, turn),
        Written::NotFound => failed(frame, NOT_FOUND, turn),
        Written::OutOfMemory => failed(frame, OUT_OF_MEMORY, turn),
    }
}

fn change(frame: &Frame<'_>, is_increment: bool, turn: &mut Turn<'_>) {
    let creates = (frame.number::<4>(16) != MAKE_NONE)
        .then(|| (frame.number::<8>(8), turn.cache.expires_ns(frame.exptime_s(16), turn.now_ns)));
    let delta = Delta {
        key: frame.key,
        amount: frame.number::<8>(0),
        is_increment,
        compare: Some(frame.unique).filter(|unique| *unique != 0),
        expires_ns: None,
        creates,
    };
    match turn.cache.change(&delta, turn.now_ns) {
        Changed::Number { .. } if frame.is_quiet => {}
        Changed::Number { number, unique, .. } => {
            put(frame, 0, unique, &[], &[], &number.to_be_bytes(), turn);
        }
        Changed::NotFound => failed(frame, NOT_FOUND, turn),
        Changed::Exists => failed(frame, EXISTS, turn),
        Changed::NotANumber => failed(frame, NOT_A_NUMBER, turn),
        Changed::OutOfMemory => failed(frame, OUT_OF_MEMORY, turn),
    }
}

/// The reply tells flags and unique, as that of a get without a value would.
fn touch(frame: &Frame<'_>, turn: &mut Turn<'_>) {
    let expires_ns = turn.cache.expires_ns(frame.exptime_s(0), turn.now_ns);
    if !turn.cache.touch(frame.key, expires_ns, turn.now_ns) {
        return failed(frame, NOT_FOUND, turn);
    }
    // A time to live in the past has removed it.
    let held = turn.cache.look(frame.key, turn.now_ns).map(|item| (item.flags, item.unique));
    let (flags, unique) = held.unwrap_or_default();
    put(frame, 0, unique, &flags.to_be_bytes(), &[], &[], turn);
}

fn statistics(frame: &Frame<'_>, turn: &mut Turn<'_>) {
    match frame.key {
        b"" => {
            for (name, text) in turn.cache.moment(turn.now_ns).rows() {
                put(frame, 0, 0, &[], name.as_bytes(), text.as_bytes(), turn);
            }
        }
        b"reset" => turn.cache.reset_counters(),
        b"items" | b"slabs" | b"sizes" | b"settings" | b"conns" => {}
        _ => return failed(frame, NOT_FOUND, turn),
    }
    put(frame, 0, 0, &[], &[], &[], turn);
}

/// SASL PLAIN (RFC 4616): identity to act for, user and password, with zeros between them. Where nobody has to say who they
/// are, there is no such command.
fn sasl(frame: &Frame<'_>, turn: &mut Turn<'_>) {
    let Some(credentials) = turn.credentials else { return failed(frame, UNKNOWN_COMMAND, turn) };
    if frame.what == What::SaslMechanisms {
        return put(frame, 0, 0, &[], &[], PLAIN, turn);
    }
    let mut words = frame.value.splitn(3, |byte| *byte == 0).skip(1);
    let (user, password) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    turn.session.is_let_in =
        frame.what == What::SaslAuth && frame.key == PLAIN && credentials.admit(user, password);
    if turn.session.is_let_in {
        put(frame, 0, 0, &[], &[], b"Authenticated", turn);
    } else {
        failed(frame, AUTH_FAILURE, turn);
    }
}

/// It is done; a quiet one does not say so.
fn done(frame: &Frame<'_>, unique: u64, turn: &mut Turn<'_>) {
    if !frame.is_quiet {
        put(frame, 0, unique, &[], &[], &[], turn);
    }
}

/// It is not; a quiet one says so, too.
fn failed(frame: &Frame<'_>, (status, text): Status, turn: &mut Turn<'_>) {
    put(frame, status, 0, &[], &[], text, turn);
}

fn put(
    frame: &Frame<'_>,
    status: u16,
    unique: u64,
    extras: &[u8],
    key: &[u8],
    value: &[u8],
    turn: &mut Turn<'_>,
) {
    put_head(frame, status, unique, extras.len(), key.len(), value.len(), turn.out);
    [extras, key, value].iter().for_each(|part| turn.out.extend_from_slice(part));
}

fn put_head(
    frame: &Frame<'_>,
    status: u16,
    unique: u64,
    extras_len: usize,
    key_len: usize,
    value_len: usize,
    out: &mut Vec<u8>,
) {
    let mut header = [0; HEADER_BYTES];
    (header[0], header[1]) = (REPLY_MAGIC, frame.opcode);
    header[2..4].copy_from_slice(&(key_len as u16).to_be_bytes());
    header[4] = extras_len as u8;
    header[6..8].copy_from_slice(&status.to_be_bytes());
    header[8..12].copy_from_slice(&((extras_len + key_len + value_len) as u32).to_be_bytes());
    header[12..16].copy_from_slice(&frame.opaque);
    header[16..].copy_from_slice(&unique.to_be_bytes());
    out.extend_from_slice(&header);
}
