//! Executes meta commands and writes the replies.
//!
//! Only lines and flags: `cache` executes, the parent parses. Invariant: codes, flags and their order are those of
//! memcached 1.6.18.

use super::{Command, CommandKind};
use crate::cache::{Changed, Deleted, Delta, Mode, Write, Written};
use crate::command_context::{CommandContext, push_value};
use crate::grammar::Verb;
use crate::text::answer::{
    NOT_A_NUMBER, OUT_OF_MEMORY, OUT_OF_MEMORY_READING, TOO_LARGE, put_injected_error,
};
use crate::text::{BAD_CHUNK, push_decimal, words};

const BAD_SET_MODE: &[u8] = b"CLIENT_ERROR invalid mode for ms M token\r\n";
const BAD_CHANGE_MODE: &[u8] = b"CLIENT_ERROR invalid mode for ma M token\r\n";

/// Carries out a data command and writes the reply.
pub(crate) fn execute(command: &Command<'_>, context: &mut CommandContext<'_>) {
    let key = &command.decoded_key();
    match command.what {
        CommandKind::Get => get(command, key, context),
        CommandKind::Set => set(command, key, context),
        CommandKind::Delete => delete(command, key, context),
        CommandKind::Arithmetic => change(command, key, context),
        _ => unreachable!("the other commands concern no items"),
    }
}

/// Refuses a data command by script; one that wants no answer in silence, as in the text protocol.
pub(crate) fn refuse(command: &Command<'_>, verb: Verb, context: &mut CommandContext<'_>) {
    context.cache.count_refused(verb, 1);
    if !command.is_quiet() || verb.is_retrieval() {
        put_injected_error(context.out);
    }
}

/// Carries out any other command. True: the connection is to be closed, which none of these asks for.
pub(crate) fn control(command: &Command<'_>, context: &mut CommandContext<'_>) -> bool {
    match command.what {
        CommandKind::Noop => context.put(b"MN\r\n"),
        CommandKind::Refused(reply) => context.put(reply),
        CommandKind::BadChunk => {
            context.cache.counters.cmd_set += 1;
            context.put(BAD_CHUNK);
        }
        // A value that is too long.
        _ => {
            if matches!(command.flags.mode, 0 | b'S') {
                // A set that failed must not leave the old value to be read as the new one.
                context.cache.store.remove(&command.decoded_key(), context.now_ns);
            }
            context.put(TOO_LARGE);
        }
    }
    false
}

// --- Retrieval ---

fn get(command: &Command<'_>, key: &[u8], context: &mut CommandContext<'_>) {
    let flags = &command.flags;
    let now_ns = context.now_ns;
    let begin = context.out.len();
    if let Some(exptime_s) = flags.exptime_s {
        let expires_ns = context.cache.expires_ns(exptime_s, now_ns);
        context.cache.touch(key, expires_ns, now_ns);
    }
    let found = match command.verb() {
        // Counted as a touch, above.
        Some(Verb::Touch) => context.cache.store.peek(key, now_ns),
        _ => context.cache.find(key, now_ns),
    };
    let Some(item) = found else {
        if !flags.is_quiet {
            context.put(b"EN");
            put_line_end(command, None, None, context.out);
        }
        return;
    };
    put_code(context.out, flags.wants_value.then_some(item.value.len()));
    put_line_end(command, Some(item.unique), Some(item.flags), context.out);
    if flags.wants_value {
        context.value_bytes += push_value(context.out, item.value, context.value_content);
        context.put(b"\r\n");
    }
    context.take_back_excess(begin, OUT_OF_MEMORY_READING);
}

// --- Changes ---

fn set(command: &Command<'_>, key: &[u8], context: &mut CommandContext<'_>) {
    let flags = &command.flags;
    // As in memcached an add does not look at the unique.
    let (mode, compare) = match flags.mode {
        0 | b'S' => (Mode::Set, flags.compare),
        b'E' => (Mode::Add, None),
        b'A' => (Mode::Append, flags.compare),
        b'P' => (Mode::Prepend, flags.compare),
        b'R' => (Mode::Replace, flags.compare),
        _ => return context.put(BAD_SET_MODE),
    };
    let expires_ns = context.cache.expires_ns(flags.exptime_s.unwrap_or(0), context.now_ns);
    let write =
        Write { flags: flags.client_flags, expires_ns, compare, ..Write::of(mode, key, command.value) };
    let (code, unique): (&[u8], u64) = match context.cache.write(&write, context.now_ns) {
        Written::Stored { .. } if flags.is_quiet => return,
        Written::Stored { unique, .. } => (b"HD", unique),
        Written::NotStored => (b"NS", 0),
        Written::Exists => (b"EX", 0),
        Written::NotFound => (b"NF", 0),
        Written::OutOfMemory => return context.put(OUT_OF_MEMORY),
    };
    context.put(code);
    put_line_end(command, Some(unique), None, context.out);
}

fn delete(command: &Command<'_>, key: &[u8], context: &mut CommandContext<'_>) {
    let deleted = context.cache.delete(key, command.flags.compare, context.now_ns);
    context.put(match deleted {
        Deleted::Gone if command.is_quiet() => return,
        Deleted::Gone => b"HD",
        Deleted::NotFound => b"NF",
        Deleted::Exists => b"EX",
    });
    put_line_end(command, None, None, context.out);
}

fn change(command: &Command<'_>, key: &[u8], context: &mut CommandContext<'_>) {
    let flags = &command.flags;
    let is_increment = match flags.mode {
        0 | b'I' | b'+' => true,
        b'D' | b'-' => false,
        _ => return context.put(BAD_CHANGE_MODE),
    };
    let expires_ns = |exptime_s| context.cache.expires_ns(exptime_s, context.now_ns);
    let delta = Delta {
        key,
        amount: flags.delta.unwrap_or(1),
        is_increment,
        compare: flags.compare,
        expires_ns: flags.exptime_s.map(expires_ns),
        creates: None,
    };
    let (unique, number) = match context.cache.change(&delta, context.now_ns) {
        Changed::Number { .. } if flags.is_quiet => return,
        Changed::Number { number, unique } => (unique, number.to_string()),
        Changed::NotANumber => return context.put(NOT_A_NUMBER),
        Changed::OutOfMemory => return context.put(OUT_OF_MEMORY),
        missed => {
            context.put(if missed == Changed::Exists { b"EX" } else { b"NF" });
            return put_line_end(command, None, None, context.out);
        }
    };
    put_code(context.out, flags.wants_value.then_some(number.len()));
    put_line_end(command, Some(unique), None, context.out);
    if flags.wants_value {
        context.put(number.as_bytes());
        context.put(b"\r\n");
    }
}

// --- Lines ---

/// The code of a success: with a length where a value follows.
fn put_code(out: &mut Vec<u8>, value_bytes: Option<usize>) {
    match value_bytes {
        Some(bytes) => {
            out.extend_from_slice(b"VA ");
            push_decimal(out, bytes);
        }
        None => out.extend_from_slice(b"HD"),
    }
}

/// The opaque and the key where they were sent, the numbers that are known, and the end of the line.
fn put_line_end(command: &Command<'_>, unique: Option<u64>, client_flags: Option<u32>, out: &mut Vec<u8>) {
    for word in words(command.flag_words) {
        let number = match word[0] {
            b'O' | b'k' => {
                put_echo(command, word, out);
                continue;
            }
            b'c' => unique,
            b'f' => client_flags.map(u64::from),
            _ => None,
        };
        if let Some(number) = number {
            out.extend_from_slice(&[b' ', word[0]]);
            push_decimal(out, number);
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// The opaque, or the key as it was sent: encoded, if it was.
fn put_echo(command: &Command<'_>, word: &[u8], out: &mut Vec<u8>) {
    out.push(b' ');
    if word[0] == b'O' {
        return out.extend_from_slice(word);
    }
    out.push(b'k');
    out.extend_from_slice(command.key);
    if command.flags.is_encoded {
        out.extend_from_slice(b" b");
    }
}
