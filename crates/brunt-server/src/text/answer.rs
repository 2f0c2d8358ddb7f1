//! Executes commands of the text protocol and writes the replies.
//!
//! Only words: `cache` executes, the parent parses. Invariant: the words are memcached's.

use super::{BAD_CHUNK, Command, DataCommand, ERROR, push_decimal};
use crate::cache::{Cache, Changed, Deleted, Delta, Mode, Write, Written};
use crate::command_context::{CommandContext, INJECTED, push_value};
use crate::grammar::Verb;
use crate::stats::VERSION;

pub(crate) const TOO_LARGE: &[u8] = b"SERVER_ERROR object too large for cache\r\n";
pub(crate) const OUT_OF_MEMORY: &[u8] = b"SERVER_ERROR out of memory storing object\r\n";
pub(crate) const OUT_OF_MEMORY_READING: &[u8] = b"SERVER_ERROR out of memory writing get response\r\n";
pub(crate) const NOT_A_NUMBER: &[u8] = b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n";
const WRONG_CREDENTIALS: &[u8] = b"CLIENT_ERROR authentication failure\r\n";
/// The reply to unauthenticated clients, here and in the meta protocol.
pub(crate) const UNAUTHENTICATED: &[u8] = b"CLIENT_ERROR unauthenticated\r\n";

/// Carries out a data command and writes the reply.
pub(crate) fn execute(command: &DataCommand<'_>, context: &mut CommandContext<'_>) {
    let reply_begin = context.out.len();
    match command.verb {
        Verb::Get | Verb::Gets => return retrieve(command, context),
        Verb::Incr | Verb::Decr => change(command, context),
        Verb::Delete => match context.cache.delete(command.key, None, context.now_ns) {
            Deleted::Gone => context.put(b"DELETED\r\n"),
            Deleted::NotFound | Deleted::Exists => context.put(b"NOT_FOUND\r\n"),
        },
        Verb::Touch => {
            let expires_ns = context.cache.expires_ns(command.exptime_s, context.now_ns);
            let is_there = context.cache.touch(command.key, expires_ns, context.now_ns);
            context.put(if is_there { b"TOUCHED\r\n" } else { b"NOT_FOUND\r\n" });
        }
        _ => {
            let reply = write(command, context.cache, context.now_ns);
            context.put(reply);
        }
    }
    if command.noreply {
        context.out.truncate(reply_begin);
    }
}

/// Refuses a data command by script.
pub(crate) fn refuse(command: &DataCommand<'_>, context: &mut CommandContext<'_>) {
    let keys = if command.verb.is_retrieval() { command.keys().count() as u64 } else { 1 };
    context.cache.count_refused(command.verb, keys);
    if !command.noreply {
        put_injected_error(context.out);
    }
}

/// The reply to a request that a script refuses, here and in the meta protocol.
pub(crate) fn put_injected_error(out: &mut Vec<u8>) {
    out.extend_from_slice(b"SERVER_ERROR ");
    out.extend_from_slice(INJECTED);
    out.extend_from_slice(b"\r\n");
}

/// Carries out any other command. True: the connection is to be closed.
pub(crate) fn control(command: &Command<'_>, context: &mut CommandContext<'_>) -> bool {
    let reply: &[u8] = match *command {
        Command::Data(_) => unreachable!("data commands go through `execute`"),
        Command::TooLarge { verb, key, noreply, .. } => {
            if verb == Verb::Set {
                // A set that failed must not leave the old value to be read as the new one.
                context.cache.store.remove(key, context.now_ns);
            }
            if noreply { b"" } else { TOO_LARGE }
        }
        Command::BadChunk { noreply } => {
            // A write all the same.
            context.cache.counters.cmd_set += 1;
            if noreply { b"" } else { BAD_CHUNK }
        }
        Command::FlushAll { delay_s, noreply } => {
            context.cache.flush(delay_s, context.now_ns);
            if noreply { b"" } else { b"OK\r\n" }
        }
        Command::Verbosity { noreply: true } => b"",
        Command::Verbosity { noreply: false } => b"OK\r\n",
        Command::Version => {
            return put_line(context.out, &[b"VERSION ", VERSION.as_bytes()]);
        }
        Command::Stats(what) => return statistics(what, context),
        Command::Quit => return true,
        Command::Refused(reply) => reply,
    };
    context.put(reply);
    false
}

/// What a connection hears that has not said who it is: only a store of any key is looked at, whose value is user and
/// password with a blank between them (the part on authentication of memcached's `doc/protocol.txt`).
pub(crate) fn reject_unauthenticated(command: &Command<'_>, context: &mut CommandContext<'_>) {
    let reply: &[u8] = match command {
        Command::Data(DataCommand { verb: Verb::Set, value, .. }) => {
            let mut words = value.splitn(2, |byte| *byte == b' ');
            let (user, password) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            let is_authenticated =
                context.credentials.is_none_or(|credentials| credentials.admit(user, password));
            context.session.is_authenticated = is_authenticated;
            if is_authenticated { b"STORED\r\n" } else { WRONG_CREDENTIALS }
        }
        Command::TooLarge { .. } | Command::BadChunk { .. } => WRONG_CREDENTIALS,
        _ => UNAUTHENTICATED,
    };
    context.put(reply);
}

fn put_line(out: &mut Vec<u8>, pieces: &[&[u8]]) -> bool {
    pieces.iter().for_each(|piece| out.extend_from_slice(piece));
    out.extend_from_slice(b"\r\n");
    false
}

fn retrieve(command: &DataCommand<'_>, context: &mut CommandContext<'_>) {
    let reply_begin = context.out.len();
    let mut keys = command.keys().enumerate().peekable();
    while let Some((index, key)) = keys.next() {
        let (is_first, is_last) = (index == 0, keys.peek().is_none());
        let Some(item) = context.cache.find(key, context.now_ns) else {
            // memcached's datagrams: an empty one where the first of several keys is missing, and one for the end alone
            // where the last is.
            match (is_first, is_last) {
                (true, false) => context.trains.cut(context.out.len()),
                (false, true) => context.trains.end_train(context.out.len()),
                _ => {}
            }
            continue;
        };
        if !is_first {
            context.trains.end_train(context.out.len());
        }
        let out = &mut *context.out;
        out.extend_from_slice(b"VALUE ");
        out.extend_from_slice(key);
        out.push(b' ');
        push_decimal(out, item.flags);
        out.push(b' ');
        push_decimal(out, item.value.len());
        if command.verb == Verb::Gets {
            out.push(b' ');
            push_decimal(out, item.unique);
        }
        out.extend_from_slice(b"\r\n");
        context.value_bytes += push_value(out, item.value, context.value_content);
        out.extend_from_slice(b"\r\n");
        if context.take_back_excess(reply_begin, OUT_OF_MEMORY_READING) {
            return;
        }
    }
    context.put(b"END\r\n");
}

fn write(command: &DataCommand<'_>, cache: &mut Cache, now_ns: u64) -> &'static [u8] {
    let &DataCommand { verb, key, value, flags, exptime_s, operand, .. } = command;
    let mode = match verb {
        Verb::Add => Mode::Add,
        Verb::Replace => Mode::Replace,
        Verb::Append => Mode::Append,
        Verb::Prepend => Mode::Prepend,
        _ => Mode::Set,
    };
    let expires_ns = cache.expires_ns(exptime_s, now_ns);
    let compare = (verb == Verb::Cas).then_some(operand);
    match cache.write(&Write { flags, expires_ns, compare, ..Write::of(mode, key, value) }, now_ns) {
        Written::Stored { .. } => b"STORED\r\n",
        Written::NotStored => b"NOT_STORED\r\n",
        Written::Exists => b"EXISTS\r\n",
        Written::NotFound => b"NOT_FOUND\r\n",
        Written::OutOfMemory => OUT_OF_MEMORY,
    }
}

fn change(command: &DataCommand<'_>, context: &mut CommandContext<'_>) {
    let delta = Delta {
        key: command.key,
        amount: command.operand,
        is_increment: command.verb == Verb::Incr,
        ..Delta::default()
    };
    match context.cache.change(&delta, context.now_ns) {
        Changed::Number { number, .. } => {
            push_decimal(context.out, number);
            context.put(b"\r\n");
        }
        Changed::NotANumber => context.put(NOT_A_NUMBER),
        Changed::NotFound | Changed::Exists => context.put(b"NOT_FOUND\r\n"),
        Changed::OutOfMemory => context.put(OUT_OF_MEMORY),
    }
}

fn statistics(what: &[u8], context: &mut CommandContext<'_>) -> bool {
    let out = &mut *context.out;
    match what {
        b"" => {
            for (name, text) in context.cache.stats_snapshot(context.now_ns).rows() {
                put_line(out, &[b"STAT ", name.as_bytes(), b" ", text.as_bytes()]);
            }
            put_line(out, &[b"END"])
        }
        b"reset" => {
            context.cache.reset_counters();
            put_line(out, &[b"RESET"])
        }
        // Nothing to tell about slabs and settings, but the question is a good one.
        b"items" | b"slabs" | b"sizes" | b"settings" | b"conns" => put_line(out, &[b"END"]),
        _ => {
            out.extend_from_slice(ERROR);
            false
        }
    }
}
