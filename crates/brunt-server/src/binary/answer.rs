//! Executes frames of the binary protocol and writes the replies.
//!
//! Only frames: `cache` executes, the parent parses. Invariant: statuses and texts are those of memcached 1.6.

use super::{Frame, FrameKind, HEADER_BYTES};
use crate::cache::{Changed, Deleted, Delta, Mode, Write, Written};
use crate::command_context::{CommandContext, INJECTED, push_value};
use crate::grammar::Verb;
use crate::stats::VERSION;

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

/// Carries out a data command and writes the reply.
pub(crate) fn execute(frame: &Frame<'_>, context: &mut CommandContext<'_>) {
    match frame.what {
        FrameKind::Get | FrameKind::GetAndTouch => retrieve(frame, context),
        FrameKind::Store(verb) => store(frame, verb, context),
        FrameKind::Extend(verb) => {
            let mode = if verb == Verb::Append { Mode::Append } else { Mode::Prepend };
            let write = Write { compare: frame.compare(), ..Write::of(mode, frame.key, frame.value) };
            written(frame, &write, NOT_STORED, context);
        }
        FrameKind::Delete => match context.cache.delete(frame.key, frame.compare(), context.now_ns) {
            Deleted::Gone => done(frame, 0, context),
            Deleted::NotFound => failed(frame, NOT_FOUND, context),
            Deleted::Exists => failed(frame, EXISTS, context),
        },
        FrameKind::Change { is_increment } => change(frame, is_increment, context),
        FrameKind::Touch => touch(frame, context),
        _ => unreachable!("the other commands concern no items"),
    }
}

/// Refuses a data command by script; one that wants no answer in silence, as in the text protocol.
pub(crate) fn refuse(frame: &Frame<'_>, verb: Verb, context: &mut CommandContext<'_>) {
    context.cache.count_refused(verb, 1);
    if !frame.is_quiet || verb.is_retrieval() {
        failed(frame, REFUSED, context);
    }
}

/// What a connection hears that has not said who it is. It is closed, as memcached does it.
pub(crate) fn reject_unauthenticated(frame: &Frame<'_>, context: &mut CommandContext<'_>) -> bool {
    failed(frame, AUTH_FAILURE, context);
    true
}

/// Carries out any other command. True: the connection is to be closed.
pub(crate) fn control(frame: &Frame<'_>, context: &mut CommandContext<'_>) -> bool {
    if frame.excess_bytes > 0 {
        if frame.what == FrameKind::Store(Verb::Set) {
            // A set that failed must not leave the old value to be read as the new one.
            context.cache.store.remove(frame.key, context.now_ns);
        }
        failed(frame, TOO_LARGE, context);
        return false;
    }
    if !frame.is_valid {
        failed(frame, INVALID, context);
        return true;
    }
    match frame.what {
        FrameKind::Noop | FrameKind::Verbosity => done(frame, 0, context),
        FrameKind::Version => put(frame, 0, 0, [&[], &[], VERSION.as_bytes()], context),
        FrameKind::Statistics => statistics(frame, context),
        FrameKind::Flush => {
            let delay_s = if frame.extras.is_empty() { 0 } else { frame.exptime_s(0) };
            context.cache.flush(delay_s, context.now_ns);
            done(frame, 0, context);
        }
        FrameKind::SaslMechanisms | FrameKind::SaslAuth | FrameKind::SaslStep => sasl(frame, context),
        FrameKind::Quit => {
            done(frame, 0, context);
            return true;
        }
        _ => failed(frame, UNKNOWN_COMMAND, context),
    }
    false
}

fn retrieve(frame: &Frame<'_>, context: &mut CommandContext<'_>) {
    if frame.what == FrameKind::GetAndTouch {
        let expires_ns = context.cache.expires_ns(frame.exptime_s(0), context.now_ns);
        context.cache.touch(frame.key, expires_ns, context.now_ns);
    }
    let begin = context.out.len();
    let key = if frame.names_key { frame.key } else { &[] };
    let Some(item) = context.cache.find(frame.key, context.now_ns) else {
        return match (frame.is_quiet, frame.names_key) {
            (true, _) => {}
            // The key takes the place of the text.
            (false, true) => put(frame, NOT_FOUND.0, 0, [&[], key, &[]], context),
            (false, false) => failed(frame, NOT_FOUND, context),
        };
    };
    let flags = item.flags.to_be_bytes();
    put_head(frame, 0, item.unique, [flags.len(), key.len(), item.value.len()], context.out);
    context.out.extend_from_slice(&flags);
    context.out.extend_from_slice(key);
    context.value_bytes += push_value(context.out, item.value, context.value_content);
    if context.take_back_excess(begin, b"") {
        failed(frame, OUT_OF_MEMORY, context);
    }
}

fn store(frame: &Frame<'_>, verb: Verb, context: &mut CommandContext<'_>) {
    let expires_ns = context.cache.expires_ns(frame.exptime_s(4), context.now_ns);
    let flags = frame.number::<4>(0) as u32;
    // With a unique, whatever it is becomes a cas.
    let compare = frame.compare();
    let (mode, not_stored) = match (compare, verb) {
        (None, Verb::Add) => (Mode::Add, EXISTS),
        (None, Verb::Replace) => (Mode::Replace, NOT_FOUND),
        _ => (Mode::Set, NOT_STORED),
    };
    let write = Write { flags, expires_ns, compare, ..Write::of(mode, frame.key, frame.value) };
    written(frame, &write, not_stored, context);
}

fn written(frame: &Frame<'_>, write: &Write<'_>, not_stored: Status, context: &mut CommandContext<'_>) {
    match context.cache.write(write, context.now_ns) {
        Written::Stored { unique, .. } => done(frame, unique, context),
        Written::NotStored => failed(frame, not_stored, context),
        Written::Exists => failed(frame, EXISTS, context),
        Written::NotFound => failed(frame, NOT_FOUND, context),
        Written::OutOfMemory => failed(frame, OUT_OF_MEMORY, context),
    }
}

fn change(frame: &Frame<'_>, is_increment: bool, context: &mut CommandContext<'_>) {
    let creates = (frame.number::<4>(16) != MAKE_NONE)
        .then(|| (frame.number::<8>(8), context.cache.expires_ns(frame.exptime_s(16), context.now_ns)));
    let delta = Delta {
        key: frame.key,
        amount: frame.number::<8>(0),
        is_increment,
        compare: frame.compare(),
        expires_ns: None,
        creates,
    };
    match context.cache.change(&delta, context.now_ns) {
        Changed::Number { .. } if frame.is_quiet => {}
        Changed::Number { number, unique, .. } => {
            put(frame, 0, unique, [&[], &[], &number.to_be_bytes()], context);
        }
        Changed::NotFound => failed(frame, NOT_FOUND, context),
        Changed::Exists => failed(frame, EXISTS, context),
        Changed::NotANumber => failed(frame, NOT_A_NUMBER, context),
        Changed::OutOfMemory => failed(frame, OUT_OF_MEMORY, context),
    }
}

/// The reply tells flags and unique, as that of a get without a value would.
fn touch(frame: &Frame<'_>, context: &mut CommandContext<'_>) {
    let expires_ns = context.cache.expires_ns(frame.exptime_s(0), context.now_ns);
    if !context.cache.touch(frame.key, expires_ns, context.now_ns) {
        return failed(frame, NOT_FOUND, context);
    }
    // A time to live in the past has removed it.
    let held = context.cache.store.peek(frame.key, context.now_ns).map(|item| (item.flags, item.unique));
    let (flags, unique) = held.unwrap_or_default();
    put(frame, 0, unique, [&flags.to_be_bytes(), &[], &[]], context);
}

fn statistics(frame: &Frame<'_>, context: &mut CommandContext<'_>) {
    match frame.key {
        b"" => {
            for (name, text) in context.cache.stats_snapshot(context.now_ns).rows() {
                put(frame, 0, 0, [&[], name.as_bytes(), text.as_bytes()], context);
            }
        }
        b"reset" => context.cache.reset_counters(),
        b"items" | b"slabs" | b"sizes" | b"settings" | b"conns" => {}
        _ => return failed(frame, NOT_FOUND, context),
    }
    put(frame, 0, 0, [&[], &[], &[]], context);
}

/// SASL PLAIN (RFC 4616): identity to act for, user and password, with zeros between them. Where no login is needed, clients may
/// are, there is no such command.
fn sasl(frame: &Frame<'_>, context: &mut CommandContext<'_>) {
    let Some(credentials) = context.credentials else { return failed(frame, UNKNOWN_COMMAND, context) };
    if frame.what == FrameKind::SaslMechanisms {
        return put(frame, 0, 0, [&[], &[], PLAIN], context);
    }
    let mut words = frame.value.splitn(3, |byte| *byte == 0).skip(1);
    let (user, password) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    context.session.is_authenticated =
        frame.what == FrameKind::SaslAuth && frame.key == PLAIN && credentials.admit(user, password);
    if context.session.is_authenticated {
        put(frame, 0, 0, [&[], &[], b"Authenticated"], context);
    } else {
        failed(frame, AUTH_FAILURE, context);
    }
}

/// It is done; a quiet one does not say so.
fn done(frame: &Frame<'_>, unique: u64, context: &mut CommandContext<'_>) {
    if !frame.is_quiet {
        put(frame, 0, unique, [&[], &[], &[]], context);
    }
}

/// It is not; a quiet one says so, too.
fn failed(frame: &Frame<'_>, (status, text): Status, context: &mut CommandContext<'_>) {
    put(frame, status, 0, [&[], &[], text], context);
}

/// A reply with these extras, key and value.
fn put(frame: &Frame<'_>, status: u16, unique: u64, parts: [&[u8]; 3], context: &mut CommandContext<'_>) {
    put_head(frame, status, unique, parts.map(<[u8]>::len), context.out);
    parts.iter().for_each(|part| context.put(part));
}

/// What is before parts of these lengths.
fn put_head(frame: &Frame<'_>, status: u16, unique: u64, lens: [usize; 3], out: &mut Vec<u8>) {
    let mut header = [0; HEADER_BYTES];
    (header[0], header[1]) = (REPLY_MAGIC, frame.opcode);
    header[2..4].copy_from_slice(&(lens[1] as u16).to_be_bytes());
    header[4] = lens[0] as u8;
    header[6..8].copy_from_slice(&status.to_be_bytes());
    header[8..12].copy_from_slice(&(lens.iter().sum::<usize>() as u32).to_be_bytes());
    header[12..16].copy_from_slice(&frame.opaque);
    header[16..].copy_from_slice(&unique.to_be_bytes());
    out.extend_from_slice(&header);
}
