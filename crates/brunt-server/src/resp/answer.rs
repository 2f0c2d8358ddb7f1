//! Executes commands of Redis and writes the replies.
//!
//! Only words and types: `cache` executes, the parent parses. All databases are one store. Invariant: the words and
//! types are those of redis-server 7.0, in the version that the connection requested.

use super::{Command, Words};
use crate::cache::{ChangeError, Deleted, Mode, ValueContent, Write, Written, integer};
use crate::command_context::{CommandContext, INJECTED, push_value};
use crate::connection::RespVersion;
use crate::grammar::Verb;
use crate::hash::{self, Fields};
use crate::stats::{Calls, VERSION};
use crate::store::NEVER_NS;
use crate::text::push_decimal;
use std::ops::RangeInclusive;

const OK: &[u8] = b"+OK\r\n";
const SYNTAX: &[u8] = b"-ERR syntax error\r\n";
const WRONG_TYPE: &[u8] = b"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";
const NOT_AN_INTEGER: &[u8] = b"-ERR value is not an integer or out of range\r\n";
const OVERFLOW: &[u8] = b"-ERR increment or decrement would overflow\r\n";
const OUT_OF_MEMORY: &[u8] = b"-OOM command not allowed when used memory > 'maxmemory'.\r\n";
const TOO_LONG: &[u8] = b"-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n";
const KEY_TOO_LONG: &[u8] = b"-ERR key exceeds maximum allowed size (65535)\r\n";
const WRONG_PASSWORD: &[u8] = b"-WRONGPASS invalid username-password pair or user is disabled.\r\n";
const NO_PASSWORD: &[u8] =
    b"-ERR AUTH <password> called without any password configured for the default user. \
    Are you sure your configuration is correct?\r\n";
const NO_AUTH: &[u8] = b"-NOAUTH Authentication required.\r\n";
const NO_AUTH_HELLO: &[u8] = b"-NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO \
    <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the \
    same time\r\n";
const BAD_CLIENT_NAME: &[u8] =
    b"-ERR Client names cannot contain spaces, newlines or special characters.\r\n";

/// What Redis calls what is counted of every protocol, by section.
const INFORMATION: &[(&str, &[(&str, &str)])] = &[
    ("Server", &[("process_id", "pid"), ("uptime_in_seconds", "uptime")]),
    ("Clients", &[("connected_clients", "curr_connections")]),
    ("Memory", &[("used_memory", "bytes"), ("maxmemory", "limit_maxbytes")]),
    (
        "Stats",
        &[
            ("total_connections_received", "total_connections"),
            ("total_net_input_bytes", "bytes_read"),
            ("total_net_output_bytes", "bytes_written"),
            ("evicted_keys", "evictions"),
        ],
    ),
    ("CPU", &[("used_cpu_sys", "rusage_system"), ("used_cpu_user", "rusage_user")]),
];

/// The user of a login without a name.
const DEFAULT_USER: &[u8] = b"default";
/// Databases that may be selected.
const DATABASES: i64 = 16;
/// The store's bound.
const KEY_BYTES_MAX: usize = u16::MAX as usize;

/// A command that is known.
#[derive(Debug)]
pub(crate) struct Known {
    /// In small letters.
    pub(super) name: &'static str,
    /// Its name among the counters: the two that remove are one there, and so are the two that empty.
    counted: &'static str,
    /// What it does to items, if it concerns any. Then it has a key.
    pub(super) verb: Option<Verb>,
    /// All arguments are keys.
    takes_keys: bool,
    /// How many arguments it takes behind its name.
    pub(super) arguments: RangeInclusive<usize>,
    /// Carries it out and writes the reply.
    execute: fn(Words<'_>, &mut CommandContext<'_>),
}

/// Names are all that there is of a command to be compared.
impl PartialEq for Known {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Known {}

type Execute = fn(Words<'_>, &mut CommandContext<'_>);

const fn other(name: &'static str, arguments: RangeInclusive<usize>, execute: Execute) -> Known {
    Known { name, counted: name, verb: None, takes_keys: false, arguments, execute }
}

const fn data(name: &'static str, verb: Verb, arguments: RangeInclusive<usize>, execute: Execute) -> Known {
    Known { verb: Some(verb), ..other(name, arguments, execute) }
}

const fn of_keys(name: &'static str, verb: Verb, execute: Execute) -> Known {
    Known { takes_keys: true, ..data(name, verb, 1..=MANY, execute) }
}

const MANY: usize = usize::MAX;

/// Every command that is known. A set becomes an add or a replace by its options.
pub(super) static COMMANDS: [Known; 33] = [
    data("get", Verb::Get, 1..=1, get),
    data("set", Verb::Set, 2..=MANY, set),
    of_keys("mget", Verb::Get, mget),
    data("setex", Verb::Set, 3..=3, |words, context| set_with_end(words, 1000, b"setex", context)),
    data("psetex", Verb::Set, 3..=3, |words, context| set_with_end(words, 1, b"psetex", context)),
    data("incr", Verb::Incr, 1..=1, |words, context| add(words, true, context)),
    data("incrby", Verb::Incr, 2..=2, |words, context| add(words, true, context)),
    data("decr", Verb::Decr, 1..=1, |words, context| add(words, false, context)),
    data("decrby", Verb::Decr, 2..=2, |words, context| add(words, false, context)),
    data("append", Verb::Append, 2..=2, append),
    of_keys("del", Verb::Delete, delete),
    Known { counted: "del", ..of_keys("unlink", Verb::Delete, delete) },
    of_keys("touch", Verb::Touch, touch),
    data("expire", Verb::Touch, 2..=2, |words, context| expire(words, 1000, context)),
    data("pexpire", Verb::Touch, 2..=2, |words, context| expire(words, 1, context)),
    data("ttl", Verb::Get, 1..=1, ttl),
    of_keys("exists", Verb::Get, exists),
    data("strlen", Verb::Get, 1..=1, string_length),
    data("hset", Verb::Set, 3..=MANY, hash_set),
    data("hget", Verb::Get, 2..=2, hash_get),
    data("hgetall", Verb::Get, 1..=1, hash_get_all),
    other("hello", 0..=MANY, hello),
    other("auth", 1..=MANY, auth),
    other("select", 1..=1, select),
    other("client", 1..=MANY, client),
    other("ping", 0..=1, |mut words, context| match words.next() {
        Some(text) => put_string(context.out, text),
        None => context.put(b"+PONG\r\n"),
    }),
    other("echo", 1..=1, |mut words, context| put_string(context.out, words.word())),
    other("info", 0..=MANY, |_, context| info(context)),
    other("dbsize", 0..=0, |_, context| put_number(context.out, context.cache.store.items() as i64)),
    other("flushall", 0..=1, flush),
    Known { counted: "flushall", ..other("flushdb", 0..=1, flush) },
    other("command", 0..=MANY, |_, context| put_head(context.out, b'*', 0)),
    other("quit", 0..=MANY, |_, context| context.put(OK)),
];

/// Carries out a data command and writes the reply.
pub(crate) fn execute(command: &Command<'_>, context: &mut CommandContext<'_>) {
    let &Command::Known { known, arguments, .. } = command else { unreachable!("data commands are known") };
    let keys = if known.takes_keys { arguments.len() } else { 1 };
    if arguments.take(keys).any(|key| key.len() > KEY_BYTES_MAX) {
        return context.put(KEY_TOO_LONG);
    }
    context.calls.count(known.counted);
    (known.execute)(arguments, context);
}

/// Refuses a data command by script.
pub(crate) fn refuse(command: &Command<'_>, context: &mut CommandContext<'_>) {
    let &Command::Known { known, verb: Some(verb), arguments } = command else {
        unreachable!("data commands are known and have a verb")
    };
    let keys = if known.takes_keys { arguments.len() as u64 } else { 1 };
    context.cache.count_refused(verb, keys);
    put_error(context.out, &[b"ERR ", INJECTED]);
}

/// What a connection hears that has not said who it is.
pub(crate) fn reject_unauthenticated(context: &mut CommandContext<'_>) {
    context.put(NO_AUTH);
}

/// Carries out any other command. True: the connection is to be closed.
pub(crate) fn control(command: &Command<'_>, context: &mut CommandContext<'_>) -> bool {
    match *command {
        Command::Known { known, arguments, .. } => {
            context.calls.count(known.counted);
            (known.execute)(arguments, context);
            return known.name == "quit";
        }
        Command::WrongCount(name) => {
            let name = name.to_ascii_lowercase();
            put_error(context.out, &[b"ERR wrong number of arguments for '", &name, b"' command"]);
        }
        Command::Unknown(name, arguments) => put_unknown(name, arguments, context.out),
        Command::Nothing => {}
    }
    false
}

fn select(mut words: Words<'_>, context: &mut CommandContext<'_>) {
    match words.next().and_then(integer) {
        Some(0..DATABASES) => context.put(OK),
        Some(_) => context.put(b"-ERR DB index is out of range\r\n"),
        None => context.put(NOT_AN_INTEGER),
    }
}

fn flush(_: Words<'_>, context: &mut CommandContext<'_>) {
    context.cache.flush(0, context.now_ns);
    context.put(OK);
}

// --- Strings ---

fn get(mut words: Words<'_>, context: &mut CommandContext<'_>) {
    let begin = context.out.len();
    match context.cache.find(words.word(), context.now_ns) {
        None => put_null(context.out, context.session.resp_version),
        Some(item) if item.is_hash => context.put(WRONG_TYPE),
        Some(item) => context.value_bytes += put_value(context.out, item.value, context.value_content),
    }
    context.take_back_excess(begin, OUT_OF_MEMORY);
}

fn mget(keys: Words<'_>, context: &mut CommandContext<'_>) {
    let begin = context.out.len();
    put_head(context.out, b'*', keys.len());
    for key in keys {
        match context.cache.find(key, context.now_ns).filter(|item| !item.is_hash) {
            None => put_null(context.out, context.session.resp_version),
            Some(item) => context.value_bytes += put_value(context.out, item.value, context.value_content),
        }
        if context.take_back_excess(begin, OUT_OF_MEMORY) {
            return;
        }
    }
}

/// `SET key value [NX | XX] [EX seconds | PX milliseconds]`
fn set(mut words: Words<'_>, context: &mut CommandContext<'_>) {
    let (key, value) = (words.word(), words.word());
    let (mut expires_ns, mut mode) = (NEVER_NS, Mode::Set);
    while let Some(option) = words.next() {
        let unit_ms = match &option.to_ascii_uppercase()[..] {
            condition @ (b"NX" | b"XX") if mode == Mode::Set => {
                mode = if condition == b"NX" { Mode::Add } else { Mode::Replace };
                continue;
            }
            b"EX" => 1000,
            b"PX" => 1,
            _ => return context.put(SYNTAX),
        };
        let Some(time) = words.next().filter(|_| expires_ns == NEVER_NS) else { return context.put(SYNTAX) };
        let Some(end_ns) = end_of(time, unit_ms, b"set", context) else { return };
        expires_ns = end_ns;
    }
    store(&Write { expires_ns, ..Write::of(mode, key, value) }, context);
}

/// `SETEX key time value`
fn set_with_end(mut words: Words<'_>, unit_ms: i64, name: &[u8], context: &mut CommandContext<'_>) {
    let (key, time, value) = (words.word(), words.word(), words.word());
    if let Some(expires_ns) = end_of(time, unit_ms, name, context) {
        store(&Write { expires_ns, ..Write::of(Mode::Set, key, value) }, context);
    }
}

fn store(write: &Write<'_>, context: &mut CommandContext<'_>) {
    match context.cache.write(write, context.now_ns) {
        Written::Stored { .. } => context.put(OK),
        Written::OutOfMemory => context.put(OUT_OF_MEMORY),
        Written::NotStored | Written::NotFound | Written::Exists => {
            put_null(context.out, context.session.resp_version);
        }
    }
}

/// When a time to live ends that begins now. `None`: it is none, which is the reply to the command of this name.
fn end_of(text: &[u8], unit_ms: i64, name: &[u8], context: &mut CommandContext<'_>) -> Option<u64> {
    let Some(time) = integer(text) else {
        context.put(NOT_AN_INTEGER);
        return None;
    };
    let time_ms = time.checked_mul(unit_ms).and_then(|time_ms| u64::try_from(time_ms).ok());
    let Some(time_ms @ 1..) = time_ms else {
        put_error(context.out, &[b"ERR invalid expire time in '", name, b"' command"]);
        return None;
    };
    Some(context.now_ns.saturating_add(time_ms.saturating_mul(1_000_000)))
}

/// By one, or by the number behind the key.
fn add(mut words: Words<'_>, is_increment: bool, context: &mut CommandContext<'_>) {
    let key = words.word();
    let Some(amount) = words.next().map_or(Some(1), integer) else { return context.put(NOT_AN_INTEGER) };
    match context.cache.add_signed(key, amount, is_increment, context.now_ns) {
        Ok(number) => put_number(context.out, number),
        Err(ChangeError::NotAnInteger) => context.put(NOT_AN_INTEGER),
        Err(ChangeError::Overflow) => context.put(OVERFLOW),
        Err(ChangeError::WrongType) => context.put(WRONG_TYPE),
        Err(ChangeError::OutOfMemory) => context.put(OUT_OF_MEMORY),
    }
}

/// Where nothing is there, it stores.
fn append(mut words: Words<'_>, context: &mut CommandContext<'_>) {
    let (key, value) = (words.word(), words.word());
    let held = context.cache.store.peek(key, context.now_ns).map(|item| item.is_hash);
    let mode = match held {
        Some(true) => return context.put(WRONG_TYPE),
        Some(false) => Mode::Append,
        None => Mode::Set,
    };
    match context.cache.write(&Write::of(mode, key, value), context.now_ns) {
        Written::Stored { value_bytes, .. } => put_number(context.out, value_bytes as i64),
        Written::OutOfMemory => context.put(OUT_OF_MEMORY),
        Written::NotStored | Written::NotFound | Written::Exists => context.put(TOO_LONG),
    }
}

fn delete(keys: Words<'_>, context: &mut CommandContext<'_>) {
    let now_ns = context.now_ns;
    let gone = keys.filter(|key| context.cache.delete(key, None, now_ns) == Deleted::Gone).count();
    put_number(context.out, gone as i64);
}

fn exists(keys: Words<'_>, context: &mut CommandContext<'_>) {
    let now_ns = context.now_ns;
    let found = keys.filter(|key| context.cache.find(key, now_ns).is_some()).count();
    put_number(context.out, found as i64);
}

fn string_length(mut words: Words<'_>, context: &mut CommandContext<'_>) {
    match context.cache.find(words.word(), context.now_ns) {
        Some(item) if item.is_hash => context.put(WRONG_TYPE),
        found => {
            let len = found.map_or(0, |item| item.value.len());
            put_number(context.out, len as i64);
        }
    }
}

// --- Times to live ---

/// Nothing but a look: the times to live stay.
fn touch(keys: Words<'_>, context: &mut CommandContext<'_>) {
    let mut found = 0;
    for key in keys {
        let held_ns = context.cache.store.peek(key, context.now_ns).map(|item| item.expires_ns);
        let is_there = context.cache.touch(key, held_ns.unwrap_or(NEVER_NS), context.now_ns);
        found += i64::from(is_there);
        let counted = if is_there { &mut context.calls.touch_hits } else { &mut context.calls.touch_misses };
        *counted += 1;
    }
    put_number(context.out, found);
}

/// A time to live of none removes the item.
fn expire(mut words: Words<'_>, unit_ms: i64, context: &mut CommandContext<'_>) {
    let key = words.word();
    let Some(time) = words.next().and_then(integer) else { return context.put(NOT_AN_INTEGER) };
    let time_ms = u64::try_from(time.saturating_mul(unit_ms)).unwrap_or(0);
    let expires_ns = context.now_ns.saturating_add(time_ms.saturating_mul(1_000_000));
    let is_there = context.cache.touch(key, expires_ns, context.now_ns);
    put_number(context.out, i64::from(is_there));
}

/// In seconds, rounded to the nearest; -1 means no expiry, -2 is not there.
fn ttl(mut words: Words<'_>, context: &mut CommandContext<'_>) {
    let ttl_s = match context.cache.find(words.word(), context.now_ns).map(|item| item.expires_ns) {
        None => -2,
        Some(NEVER_NS) => -1,
        Some(expires_ns) => {
            ((expires_ns - context.now_ns).saturating_add(500_000_000) / 1_000_000_000) as i64
        }
    };
    put_number(context.out, ttl_s);
}

// --- Hashes ---

fn hash_set(mut words: Words<'_>, context: &mut CommandContext<'_>) {
    let key = words.word();
    if !words.len().is_multiple_of(2) {
        return put_error(context.out, &[b"ERR wrong number of arguments for 'hset' command"]);
    }
    let (held, expires_ns): (&[u8], u64) = match context.cache.store.peek(key, context.now_ns) {
        Some(item) if !item.is_hash => return context.put(WRONG_TYPE),
        Some(item) => (item.value, item.expires_ns),
        None => (&[], NEVER_NS),
    };
    let pairs = std::iter::from_fn(|| Some((words.next()?, words.next()?)));
    let (fields, added) = hash::with(held, pairs);
    match context.cache.write(&Write { expires_ns, ..Write::of(Mode::Set, key, &fields) }, context.now_ns) {
        Written::Stored { .. } => {
            context.cache.store.mark_as_hash(key);
            put_number(context.out, added as i64);
        }
        _ => context.put(OUT_OF_MEMORY),
    }
}

fn hash_get(mut words: Words<'_>, context: &mut CommandContext<'_>) {
    let (key, name) = (words.word(), words.word());
    let begin = context.out.len();
    match context.cache.find(key, context.now_ns) {
        Some(item) if !item.is_hash => context.put(WRONG_TYPE),
        found => match found.and_then(|item| Fields::of(item.value).value(name)) {
            None => put_null(context.out, context.session.resp_version),
            Some(value) => context.value_bytes += put_value(context.out, value, context.value_content),
        },
    }
    context.take_back_excess(begin, OUT_OF_MEMORY);
}

fn hash_get_all(mut words: Words<'_>, context: &mut CommandContext<'_>) {
    let begin = context.out.len();
    let stored: &[u8] = match context.cache.find(words.word(), context.now_ns) {
        Some(item) if !item.is_hash => return context.put(WRONG_TYPE),
        Some(item) => item.value,
        None => &[],
    };
    put_map_head(context.out, context.session.resp_version, Fields::of(stored).count());
    for (name, value) in Fields::of(stored) {
        put_string(context.out, name);
        context.value_bytes += put_value(context.out, value, context.value_content);
    }
    context.take_back_excess(begin, OUT_OF_MEMORY);
}

// --- Who is there ---

/// `HELLO [version [AUTH user password] [SETNAME name]]`
fn hello(mut arguments: Words<'_>, context: &mut CommandContext<'_>) {
    let mut version = context.session.resp_version;
    if let Some(text) = arguments.next() {
        version = match integer(text) {
            Some(2) => RespVersion::Two,
            Some(3) => RespVersion::Three,
            Some(_) => return put_error(context.out, &[b"NOPROTO unsupported protocol version"]),
            None => {
                return put_error(context.out, &[b"ERR Protocol version is not an integer or out of range"]);
            }
        };
    }
    while let Some(option) = arguments.next() {
        match (&option.to_ascii_uppercase()[..], arguments.next(), arguments.len()) {
            (b"AUTH", Some(user), 1..) => {
                let password = arguments.word();
                if !admit(user, password, context) {
                    return context.put(WRONG_PASSWORD);
                }
            }
            (b"SETNAME", Some(name), _) if is_client_name(name) => {}
            (b"SETNAME", Some(_), _) => return context.put(BAD_CLIENT_NAME),
            _ => return put_error(context.out, &[b"ERR Syntax error in HELLO option '", option, b"'"]),
        }
    }
    if context.credentials.is_some() && !context.session.is_authenticated {
        return context.put(NO_AUTH_HELLO);
    }
    context.session.resp_version = version;
    let out = &mut *context.out;
    put_map_head(out, version, 7);
    let texts: [&[u8]; 5] = [b"server", b"brunt", b"version", VERSION.as_bytes(), b"proto"];
    texts.iter().for_each(|text| put_string(out, text));
    put_number(out, if version == RespVersion::Three { 3 } else { 2 });
    put_string(out, b"id");
    put_number(out, i64::from(context.session.number) + 1);
    let texts: [&[u8]; 5] = [b"mode", b"standalone", b"role", b"master", b"modules"];
    texts.iter().for_each(|text| put_string(out, text));
    put_head(out, b'*', 0);
}

/// `AUTH [user] password`
fn auth(mut arguments: Words<'_>, context: &mut CommandContext<'_>) {
    let (first, second, more) = (arguments.word(), arguments.next(), arguments.len());
    let reply = match (second, more) {
        (_, 1..) => SYNTAX,
        (None, 0) if context.credentials.is_none() => NO_PASSWORD,
        (None, 0) if admit(DEFAULT_USER, first, context) => OK,
        (Some(password), 0) if admit(first, password, context) => OK,
        _ => WRONG_PASSWORD,
    };
    context.put(reply);
}

/// Authenticates a connection. Without credentials, the default user needs no password and there is no other.
fn admit(user: &[u8], password: &[u8], context: &mut CommandContext<'_>) -> bool {
    let is_right = match context.credentials {
        Some(credentials) => credentials.admit(user, password),
        None => user == DEFAULT_USER,
    };
    context.session.is_authenticated |= is_right;
    is_right
}

fn client(mut arguments: Words<'_>, context: &mut CommandContext<'_>) {
    let (subcommand, first) = (arguments.word(), arguments.next());
    match (&subcommand.to_ascii_uppercase()[..], first) {
        (b"SETNAME", Some(name)) if !is_client_name(name) => context.put(BAD_CLIENT_NAME),
        (b"SETNAME" | b"SETINFO", Some(_)) => context.put(OK),
        (b"ID", None) => put_number(context.out, i64::from(context.session.number) + 1),
        _ => put_error(context.out, &[b"ERR unknown subcommand '", subcommand, b"'. Try CLIENT HELP."]),
    }
}

fn is_client_name(name: &[u8]) -> bool {
    name.iter().all(u8::is_ascii_graphic)
}

// --- Statistics ---

/// What this server knows by Redis's names, then everything it counts by memcached's.
fn info(context: &mut CommandContext<'_>) {
    let moment = context.cache.stats_snapshot(context.now_ns);
    let rows = moment.rows();
    let mut text = String::new();
    for (section, names) in INFORMATION {
        text += &format!("# {section}\r\n");
        if *section == "Server" {
            text += &format!("redis_version:{VERSION}\r\nredis_mode:standalone\r\n");
        }
        for (name, counted) in *names {
            let number = rows.iter().find(|(row, _)| row == counted).map_or("", |(_, number)| number);
            text += &format!("{name}:{number}\r\n");
        }
        if *section == "Stats" {
            let Calls { touch_hits, touch_misses, .. } = *context.calls;
            let own = [
                ("total_commands_processed", context.calls.total()),
                ("expired_keys", moment.store.expirations),
                ("keyspace_hits", moment.counters.get_hits + touch_hits),
                ("keyspace_misses", moment.counters.get_misses + touch_misses),
            ];
            own.iter().for_each(|(name, number)| text += &format!("{name}:{number}\r\n"));
        }
        text += "\r\n";
    }
    text += "# Commandstats\r\n";
    context.calls.rows().for_each(|row| text += &(row + "\r\n"));
    text += "\r\n# Keyspace\r\n";
    if moment.store.items() > 0 {
        text += &format!("db0:keys={},expires=0,avg_ttl=0\r\n", moment.store.items());
    }
    text += "\r\n# Counters\r\n";
    rows.iter().for_each(|(name, number)| text += &format!("{name}:{number}\r\n"));
    match context.session.resp_version {
        RespVersion::Two => put_string(context.out, text.as_bytes()),
        RespVersion::Three => {
            put_head(context.out, b'=', text.len() + 4);
            context.put(format!("txt:{text}\r\n").as_bytes());
        }
    }
}

// --- Types ---

fn put_head(out: &mut Vec<u8>, sort: u8, count: usize) {
    out.push(sort);
    push_decimal(out, count);
    out.extend_from_slice(b"\r\n");
}

fn put_string(out: &mut Vec<u8>, text: &[u8]) {
    put_head(out, b'$', text.len());
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

/// A string that was stored. Returns the length of its value.
fn put_value(out: &mut Vec<u8>, value: &[u8], value_content: ValueContent) -> usize {
    put_head(out, b'$', value.len());
    push_value(out, value, value_content);
    out.extend_from_slice(b"\r\n");
    value.len()
}

fn put_number(out: &mut Vec<u8>, number: i64) {
    out.push(b':');
    push_decimal(out, number);
    out.extend_from_slice(b"\r\n");
}

fn put_null(out: &mut Vec<u8>, version: RespVersion) {
    out.extend_from_slice(match version {
        RespVersion::Two => b"$-1\r\n",
        RespVersion::Three => b"_\r\n",
    });
}

/// The head of a map with this many pairs.
fn put_map_head(out: &mut Vec<u8>, version: RespVersion, pairs: usize) {
    match version {
        RespVersion::Two => put_head(out, b'*', pairs * 2),
        RespVersion::Three => put_head(out, b'%', pairs),
    }
}

/// An error in one line, whatever is quoted in it.
fn put_error(out: &mut Vec<u8>, pieces: &[&[u8]]) {
    out.push(b'-');
    let bytes = pieces.iter().flat_map(|piece| piece.iter());
    out.extend(bytes.map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte }));
    out.extend_from_slice(b"\r\n");
}

/// The name and the first arguments are quoted, 128 bytes of each at most.
fn put_unknown(name: &[u8], arguments: Words<'_>, out: &mut Vec<u8>) {
    let mut quoted = Vec::new();
    for argument in arguments {
        if quoted.len() >= 128 {
            break;
        }
        quoted.push(b'\'');
        quoted.extend_from_slice(&argument[..argument.len().min(128 - quoted.len().min(128))]);
        quoted.extend_from_slice(b"' ");
    }
    let name = &name[..name.len().min(128)];
    put_error(out, &[b"ERR unknown command '", name, b"', with args beginning with: ", &quoted]);
}
