//! Executes meta commands and writes the replies.
//!
//! Only lines and flags: `cache` executes, the parent parses. Invariant: codes, flags and their order are those of
//! memcached 1.6.18.

use super::{Command, CommandKind, KeyRoom};
use crate::cache::{Changed, Deleted, Delta, Mode, Write, Written};
use crate::command_context::{CommandContext, push_value};
use crate::grammar::Verb;
use crate::store::{Item, NEVER_NS, Store};
use crate::text::answer::{
    NOT_A_NUMBER, OUT_OF_MEMORY, OUT_OF_MEMORY_READING, TOO_LARGE, put_injected_error,
};
use crate::text::{BAD_CHUNK, push_decimal, words};

const BAD_SET_MODE: &[u8] = b"CLIENT_ERROR invalid mode for ms M token\r\n";
const BAD_CHANGE_MODE: &[u8] = b"CLIENT_ERROR invalid mode for ma M token\r\n";

const SECOND_NS: u64 = 1_000_000_000;

/// Carries out a data command and writes the reply.
pub(crate) fn execute(command: &Command<'_>, context: &mut CommandContext<'_>) {
    let mut room = KeyRoom::new();
    let key = command.decoded_key(&mut room);
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
        CommandKind::Debug => debug(command, context),
        CommandKind::Refused(reply) => context.put(reply),
        CommandKind::BadChunk => {
            context.cache.counters.cmd_set += 1;
            context.put(BAD_CHUNK);
        }
        // A value that is too long.
        _ => {
            if matches!(command.flags.mode, 0 | b'S') {
                let mut room = KeyRoom::new();
                // A set that failed must not leave the old value to be read as the new one.
                context.cache.store.remove(command.decoded_key(&mut room), context.now_ns);
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
    let is_new = flags.vivify_s.is_some_and(|vivify_s| {
        let expires_ns = context.cache.expires_ns(vivify_s, now_ns);
        context.cache.store.peek(key, now_ns).is_none()
            && context.cache.vivify(key, expires_ns, now_ns).is_some()
    });
    let found = match (command.verb(), flags.is_traceless) {
        // Counted as a touch, above.
        (Some(Verb::Touch), _) => context.cache.store.peek(key, now_ns),
        (_, true) => context.cache.find_by(Store::peek, key, now_ns),
        (_, false) => context.cache.find(key, now_ns),
    };
    let Some(item) = found else {
        if !flags.is_quiet {
            context.put(b"EN");
            put_flags(command, None, now_ns, context.out);
            context.put(b"\r\n");
        }
        return;
    };
    put_code(context.out, flags.wants_value.then_some(item.value.len()));
    put_flags(command, Some(&item), now_ns, context.out);
    let wins = put_renewal(&item, is_new, flags.recache_s, now_ns, context.out);
    context.out.extend_from_slice(b"\r\n");
    if flags.wants_value {
        context.value_bytes += push_value(context.out, item.value, context.value_content);
        context.put(b"\r\n");
    }
    if wins {
        context.cache.store.mark(key, now_ns, |marks| marks.won = true);
    }
    context.take_back_excess(begin, OUT_OF_MEMORY_READING);
}

/// Writes whether and by which client a value is to be renewed. True: by this one.
fn put_renewal(
    item: &Item<'_>,
    is_new: bool,
    recache_s: Option<i64>,
    now_ns: u64,
    out: &mut Vec<u8>,
) -> bool {
    let is_taken = item.marks.won && !is_new;
    let is_short = recache_s
        .is_some_and(|recache_s| item.expires_ns != NEVER_NS && ttl_s(item.expires_ns, now_ns) < recache_s);
    let wins = is_new || (!is_taken && (item.marks.stale || is_short));
    for (is_so, flag) in [(is_taken, b" Z"), (item.marks.stale, b" X"), (wins, b" W")] {
        if is_so {
            out.extend_from_slice(flag);
        }
    }
    wins
}

/// What is left to live, in seconds: the next whole one, -1 without expiry.
fn ttl_s(expires_ns: u64, now_ns: u64) -> i64 {
    if expires_ns == NEVER_NS { -1 } else { expires_ns.saturating_sub(now_ns).div_ceil(SECOND_NS) as i64 }
}

/// Tells what is known of an item; sizes and classes of memcached's slabs are not.
fn debug(command: &Command<'_>, context: &mut CommandContext<'_>) {
    let mut room = KeyRoom::new();
    let now_ns = context.now_ns;
    let Some(item) = context.cache.store.peek(command.decoded_key(&mut room), now_ns) else {
        return context.put(b"EN\r\n");
    };
    let idle_s = (now_ns - item.accessed_ns) / SECOND_NS;
    let fetched = if item.marks.fetched { "yes" } else { "no" };
    let told = format!(
        " exp={} la={idle_s} cas={} fetch={fetched} cls=1 size={}\r\n",
        ttl_s(item.expires_ns, now_ns),
        item.unique,
        item.value.len()
    );
    context.put(b"ME ");
    context.put(command.key);
    context.put(told.as_bytes());
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
    let write = Write {
        flags: flags.client_flags,
        expires_ns,
        compare,
        as_stale: flags.invalidates,
        ..Write::of(mode, key, command.value)
    };
    let (code, unique): (&[u8], u64) = match context.cache.write(&write, context.now_ns) {
        Written::Stored { .. } if flags.is_quiet => return,
        Written::Stored { unique, .. } => (b"HD", unique),
        Written::NotStored => (b"NS", 0),
        Written::Exists => (b"EX", 0),
        Written::NotFound => (b"NF", 0),
        Written::OutOfMemory => return context.put(OUT_OF_MEMORY),
    };
    context.put(code);
    put_change_flags(command, Some(unique), None, context);
}

fn delete(command: &Command<'_>, key: &[u8], context: &mut CommandContext<'_>) {
    let flags = &command.flags;
    let deleted = if flags.invalidates {
        let expires_ns = flags.exptime_s.map(|exptime_s| context.cache.expires_ns(exptime_s, context.now_ns));
        context.cache.invalidate(key, flags.compare, expires_ns, context.now_ns)
    } else {
        context.cache.delete(key, flags.compare, context.now_ns)
    };
    context.put(match deleted {
        Deleted::Gone if flags.is_quiet => return,
        Deleted::Gone => b"HD",
        Deleted::NotFound => b"NF",
        Deleted::Exists => b"EX",
    });
    put_change_flags(command, None, None, context);
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
        creates: flags.vivify_s.map(|vivify_s| (flags.initial, expires_ns(vivify_s))),
    };
    let (unique, expires_ns, number) = match context.cache.change(&delta, context.now_ns) {
        Changed::Number { .. } if flags.is_quiet => return,
        Changed::Number { number, unique, expires_ns } => (unique, Some(expires_ns), number.to_string()),
        Changed::NotANumber => return context.put(NOT_A_NUMBER),
        Changed::OutOfMemory => return context.put(OUT_OF_MEMORY),
        missed => {
            context.put(if missed == Changed::Exists { b"EX" } else { b"NF" });
            return put_change_flags(command, None, None, context);
        }
    };
    put_code(context.out, flags.wants_value.then_some(number.len()));
    put_change_flags(command, Some(unique), expires_ns, context);
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
            push_decimal(out, bytes as u64);
        }
        None => out.extend_from_slice(b"HD"),
    }
}

/// The flags that a retrieval gives back, in the order of the request; for a miss only opaque and key.
fn put_flags(command: &Command<'_>, item: Option<&Item<'_>>, now_ns: u64, out: &mut Vec<u8>) {
    let number_of = |flag, item: &Item<'_>| match flag {
        b'c' => Some(item.unique as i64),
        b'f' => Some(i64::from(item.flags)),
        b'h' => Some(i64::from(item.marks.fetched)),
        b'l' => Some(((now_ns - item.accessed_ns) / SECOND_NS) as i64),
        b's' => Some(item.value.len() as i64),
        b't' => Some(ttl_s(item.expires_ns, now_ns)),
        _ => None,
    };
    put_flags_by(command, |flag| number_of(flag, item?), out);
}

/// The flags of a change, and the end of the line; unique and expiry where they are known.
fn put_change_flags(
    command: &Command<'_>,
    unique: Option<u64>,
    expires_ns: Option<u64>,
    context: &mut CommandContext<'_>,
) {
    let number_of = |flag| match flag {
        b'c' => unique.map(|unique| unique as i64),
        b't' => expires_ns.map(|expires_ns| ttl_s(expires_ns, context.now_ns)),
        _ => None,
    };
    put_flags_by(command, number_of, context.out);
    context.put(b"\r\n");
}

/// The opaque and the key where they were sent, and the flags that have a number.
fn put_flags_by(command: &Command<'_>, number_of: impl Fn(u8) -> Option<i64>, out: &mut Vec<u8>) {
    for word in words(command.flag_words) {
        if matches!(word[0], b'O' | b'k') {
            put_echo(command, word, out);
        } else if let Some(number) = number_of(word[0]) {
            out.extend_from_slice(&[b' ', word[0]]);
            out.extend_from_slice(number.to_string().as_bytes());
        }
    }
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
