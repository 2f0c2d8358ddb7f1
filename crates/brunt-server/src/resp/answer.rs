//! What Redis's protocol says of what came of a command.
//!
//! Only words and types: what a command does is said in `cache`, how it is read in the parent. All databases are one store.
//! Invariant: the words and types are those of redis-server 7.0, in the version that the connection asked for.

use super::calls::Calls;
use super::{Command, What, Words};
use crate::cache::{Deleted, Mode, Unchanged, Write, Written, integer};
use crate::hash::{self, Fields};
use crate::session::RespVersion;
use crate::statistics::VERSION;
use crate::store::NEVER_NS;
use crate::text::push_decimal;
use crate::turn::{INJECTED, Turn, push_value};
use crate::verb::Verb;

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

/// What Redis calls what is counted of every dialect, by section.
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

/// The user of whoever names none.
const DEFAULT_USER: &[u8] = b"default";
/// Databases that may be selected.
const DATABASES: i64 = 16;
/// The store's bound.
const KEY_BYTES_MAX: usize = u16::MAX as usize;

/// Carries out a data command and says what came of it.
pub(crate) fn carry_out(command: &Command<'_>, turn: &mut Turn<'_>) {
    let &Command::Known { what, verb: Some(verb), arguments } = command else {
        unreachable!("data commands are known and have a verb")
    };
    let mut rest = arguments;
    let Some(key) = rest.next() else { unreachable!("a data command has a key: its arguments were counted") };
    if arguments.take(if takes_keys(what) { arguments.len() } else { 1 }).any(is_too_long) {
        return turn.out.extend_from_slice(KEY_TOO_LONG);
    }
    turn.calls.count(what);
    match what {
        What::Get => get(key, turn),
        What::Mget => mget(arguments, turn),
        What::Set => set(verb, key, rest, turn),
        What::SetEx { unit_ms } => set_with_end(key, rest, unit_ms, turn),
        What::Incr { is_increment, .. } => add(key, is_increment, rest.next(), turn),
        What::Append => append(key, rest, turn),
        What::Delete => {
            let now_ns = turn.now_ns;
            let gone = arguments.filter(|key| turn.cache.delete(key, None, now_ns) == Deleted::Gone).count();
            put_number(turn.out, gone as i64);
        }
        What::Touch => touch(arguments, turn),
        What::Expire { unit_ms } => expire(key, rest, unit_ms, turn),
        What::Ttl => ttl(key, turn),
        What::Exists => {
            let now_ns = turn.now_ns;
            let found = arguments.filter(|key| turn.cache.find(key, now_ns).is_some()).count();
            put_number(turn.out, found as i64);
        }
        What::StringLength => match turn.cache.find(key, turn.now_ns) {
            Some(item) if item.marks.hash => turn.out.extend_from_slice(WRONG_TYPE),
            found => {
                let len = found.map_or(0, |item| item.value.len());
                put_number(turn.out, len as i64);
            }
        },
        What::HashSet => hash_set(key, rest, turn),
        What::HashGet => hash_get(key, rest, turn),
        What::HashGetAll => hash_get_all(key, turn),
        _ => unreachable!("the other commands concern no items"),
    }
}

/// Are all arguments keys?
const fn takes_keys(what: What) -> bool {
    matches!(what, What::Mget | What::Delete | What::Touch | What::Exists)
}

fn is_too_long(key: &[u8]) -> bool {
    key.len() > KEY_BYTES_MAX
}

/// Refuses a data command by script.
pub(crate) fn refuse(command: &Command<'_>, turn: &mut Turn<'_>) {
    let &Command::Known { what, verb: Some(verb), arguments } = command else {
        unreachable!("data commands are known and have a verb")
    };
    let keys = if takes_keys(what) { arguments.len() as u64 } else { 1 };
    turn.cache.count_refused(verb, keys);
    put_error(turn.out, &[b"ERR ", INJECTED]);
}

/// What a connection hears that has not said who it is.
pub(crate) fn turn_away(turn: &mut Turn<'_>) {
    turn.out.extend_from_slice(NO_AUTH);
}

/// Carries out any other command. True: the connection is to be closed.
pub(crate) fn control(command: &Command<'_>, turn: &mut Turn<'_>) -> bool {
    let (what, mut arguments) = match *command {
        Command::Known { what, arguments, .. } => (what, arguments),
        Command::WrongCount(name) => {
            let name = name.to_ascii_lowercase();
            put_error(turn.out, &[b"ERR wrong number of arguments for '", &name, b"' command"]);
            return false;
        }
        Command::Unknown(name, arguments) => {
            put_unknown(name, arguments, turn.out);
            return false;
        }
        Command::Nothing => return false,
    };
    turn.calls.count(what);
    match what {
        What::Hello => hello(arguments, turn),
        What::Auth => auth(arguments, turn),
        What::Select => match arguments.next().and_then(integer) {
            Some(0..DATABASES) => turn.out.extend_from_slice(OK),
            Some(_) => turn.out.extend_from_slice(b"-ERR DB index is out of range\r\n"),
            None => turn.out.extend_from_slice(NOT_AN_INTEGER),
        },
        What::Client => client(arguments, turn),
        What::Ping => match arguments.next() {
            Some(text) => put_string(turn.out, text),
            None => turn.out.extend_from_slice(b"+PONG\r\n"),
        },
        What::Echo => put_string(turn.out, arguments.next().unwrap_or_default()),
        What::Info => info(turn),
        What::DatabaseSize => put_number(turn.out, turn.cache.store().items() as i64),
        What::FlushAll => {
            turn.cache.flush(0, turn.now_ns);
            turn.out.extend_from_slice(OK);
        }
        What::CommandList => put_head(turn.out, b'*', 0),
        What::Quit => {
            turn.out.extend_from_slice(OK);
            return true;
        }
        _ => unreachable!("data commands go through `carry_out`"),
    }
    false
}

// --- Strings ---

fn get(key: &[u8], turn: &mut Turn<'_>) {
    let begin = turn.out.len();
    match turn.cache.find(key, turn.now_ns) {
        None => put_null(turn.out, turn.session.resp_version),
        Some(item) if item.marks.hash => turn.out.extend_from_slice(WRONG_TYPE),
        Some(item) => {
            put_head(turn.out, b'$', item.value.len());
            turn.value_bytes += push_value(turn.out, item.value, turn.truth);
            turn.out.extend_from_slice(b"\r\n");
        }
    }
    bound(begin, turn);
}

fn mget(keys: Words<'_>, turn: &mut Turn<'_>) {
    let begin = turn.out.len();
    put_head(turn.out, b'*', keys.len());
    for key in keys {
        match turn.cache.find(key, turn.now_ns).filter(|item| !item.marks.hash) {
            None => put_null(turn.out, turn.session.resp_version),
            Some(item) => {
                put_head(turn.out, b'$', item.value.len());
                turn.value_bytes += push_value(turn.out, item.value, turn.truth);
                turn.out.extend_from_slice(b"\r\n");
            }
        }
        if bound(begin, turn) {
            return;
        }
    }
}

/// Takes a reply back for which there is no room. True: it was.
fn bound(begin: usize, turn: &mut Turn<'_>) -> bool {
    let is_beyond = turn.out.len() > turn.out_bytes_max;
    if is_beyond {
        turn.out.truncate(begin);
        turn.out.extend_from_slice(OUT_OF_MEMORY);
        turn.value_bytes = 0;
    }
    is_beyond
}

/// `SET key value [NX | XX] [EX seconds | PX milliseconds]`
fn set(verb: Verb, key: &[u8], mut rest: Words<'_>, turn: &mut Turn<'_>) {
    let value = rest.next().unwrap_or_default();
    let (mut expires_ns, mut conditions) = (NEVER_NS, 0);
    while let Some(option) = rest.next() {
        let unit_ms = match &option.to_ascii_uppercase()[..] {
            b"NX" | b"XX" => {
                conditions += 1;
                continue;
            }
            b"EX" => 1000,
            b"PX" => 1,
            _ => return turn.out.extend_from_slice(SYNTAX),
        };
        let Some(time) = rest.next().filter(|_| expires_ns == NEVER_NS) else {
            return turn.out.extend_from_slice(SYNTAX);
        };
        match end_of(time, unit_ms, turn.now_ns) {
            Ok(end_ns) => expires_ns = end_ns,
            Err(NoEnd::NotAnInteger) => return turn.out.extend_from_slice(NOT_AN_INTEGER),
            Err(NoEnd::OutOfRange) => {
                return put_error(turn.out, &[b"ERR invalid expire time in 'set' command"]);
            }
        }
    }
    if conditions > 1 {
        return turn.out.extend_from_slice(SYNTAX);
    }
    let mode = match verb {
        Verb::Add => Mode::Add,
        Verb::Replace => Mode::Replace,
        _ => Mode::Set,
    };
    store(&Write { expires_ns, ..Write::of(mode, key, value) }, turn);
}

/// `SETEX key time value`
fn set_with_end(key: &[u8], mut rest: Words<'_>, unit_ms: i64, turn: &mut Turn<'_>) {
    let (time, value) = (rest.next().unwrap_or_default(), rest.next().unwrap_or_default());
    let name: &[u8] = if unit_ms == 1 { b"psetex" } else { b"setex" };
    match end_of(time, unit_ms, turn.now_ns) {
        Ok(expires_ns) => store(&Write { expires_ns, ..Write::of(Mode::Set, key, value) }, turn),
        Err(NoEnd::NotAnInteger) => turn.out.extend_from_slice(NOT_AN_INTEGER),
        Err(NoEnd::OutOfRange) => {
            put_error(turn.out, &[b"ERR invalid expire time in '", name, b"' command"]);
        }
    }
}

fn store(write: &Write<'_>, turn: &mut Turn<'_>) {
    match turn.cache.write(write, turn.now_ns) {
        Written::Stored { .. } => turn.out.extend_from_slice(OK),
        Written::OutOfMemory => turn.out.extend_from_slice(OUT_OF_MEMORY),
        Written::NotStored | Written::NotFound | Written::Exists => {
            put_null(turn.out, turn.session.resp_version);
        }
    }
}

/// Why a text is no time to live.
enum NoEnd {
    NotAnInteger,
    OutOfRange,
}

/// When a time to live ends that begins now.
fn end_of(text: &[u8], unit_ms: i64, now_ns: u64) -> Result<u64, NoEnd> {
    let time = integer(text).ok_or(NoEnd::NotAnInteger)?;
    let time_ms = time.checked_mul(unit_ms).and_then(|time_ms| u64::try_from(time_ms).ok());
    let time_ms = time_ms.filter(|time_ms| *time_ms > 0).ok_or(NoEnd::OutOfRange)?;
    Ok(now_ns.saturating_add(time_ms.saturating_mul(1_000_000)))
}

fn add(key: &[u8], is_increment: bool, amount: Option<&[u8]>, turn: &mut Turn<'_>) {
    let Some(amount) = amount.map_or(Some(1), integer) else {
        return turn.out.extend_from_slice(NOT_AN_INTEGER);
    };
    match turn.cache.add_signed(key, amount, is_increment, turn.now_ns) {
        Ok(number) => put_number(turn.out, number),
        Err(Unchanged::NotAnInteger) => turn.out.extend_from_slice(NOT_AN_INTEGER),
        Err(Unchanged::Overflow) => turn.out.extend_from_slice(OVERFLOW),
        Err(Unchanged::WrongType) => turn.out.extend_from_slice(WRONG_TYPE),
        Err(Unchanged::OutOfMemory) => turn.out.extend_from_slice(OUT_OF_MEMORY),
    }
}

/// Where nothing is there, it stores.
fn append(key: &[u8], mut rest: Words<'_>, turn: &mut Turn<'_>) {
    let value = rest.next().unwrap_or_default();
    let held = turn.cache.look(key, turn.now_ns).map(|item| item.marks.hash);
    let mode = match held {
        Some(true) => return turn.out.extend_from_slice(WRONG_TYPE),
        Some(false) => Mode::Append,
        None => Mode::Set,
    };
    match turn.cache.write(&Write::of(mode, key, value), turn.now_ns) {
        Written::Stored { value_bytes, .. } => put_number(turn.out, value_bytes as i64),
        Written::OutOfMemory => turn.out.extend_from_slice(OUT_OF_MEMORY),
        Written::NotStored | Written::NotFound | Written::Exists => turn.out.extend_from_slice(TOO_LONG),
    }
}

// --- Times to live ---

/// Nothing but a look: the times to live stay.
fn touch(keys: Words<'_>, turn: &mut Turn<'_>) {
    let mut found = 0;
    for key in keys {
        let held_ns = turn.cache.look(key, turn.now_ns).map(|item| item.expires_ns);
        let is_there = turn.cache.touch(key, held_ns.unwrap_or(NEVER_NS), turn.now_ns);
        found += i64::from(is_there);
        let counted = if is_there { &mut turn.calls.touch_hits } else { &mut turn.calls.touch_misses };
        *counted += 1;
    }
    put_number(turn.out, found);
}

/// A time to live of none removes the item.
fn expire(key: &[u8], mut rest: Words<'_>, unit_ms: i64, turn: &mut Turn<'_>) {
    let Some(time) = rest.next().and_then(integer) else {
        return turn.out.extend_from_slice(NOT_AN_INTEGER);
    };
    let time_ms = u64::try_from(time.saturating_mul(unit_ms)).unwrap_or(0);
    let expires_ns = turn.now_ns.saturating_add(time_ms.saturating_mul(1_000_000));
    let is_there = turn.cache.touch(key, expires_ns, turn.now_ns);
    put_number(turn.out, i64::from(is_there));
}

/// In seconds, rounded to the nearest; -1 is for ever, -2 is not there.
fn ttl(key: &[u8], turn: &mut Turn<'_>) {
    let ttl_s = match turn.cache.find(key, turn.now_ns).map(|item| item.expires_ns) {
        None => -2,
        Some(NEVER_NS) => -1,
        Some(expires_ns) => ((expires_ns - turn.now_ns).saturating_add(500_000_000) / 1_000_000_000) as i64,
    };
    put_number(turn.out, ttl_s);
}

// --- Hashes ---

fn hash_set(key: &[u8], mut rest: Words<'_>, turn: &mut Turn<'_>) {
    if !rest.len().is_multiple_of(2) {
        return put_error(turn.out, &[b"ERR wrong number of arguments for 'hset' command"]);
    }
    let (held, expires_ns): (&[u8], u64) = match turn.cache.look(key, turn.now_ns) {
        Some(item) if !item.marks.hash => return turn.out.extend_from_slice(WRONG_TYPE),
        Some(item) => (item.value, item.expires_ns),
        None => (&[], NEVER_NS),
    };
    let pairs = std::iter::from_fn(|| Some((rest.next()?, rest.next()?)));
    let (fields, added) = hash::with(held, pairs);
    match turn.cache.write(&Write { expires_ns, ..Write::of(Mode::Set, key, &fields) }, turn.now_ns) {
        Written::Stored { .. } => {
            turn.cache.mark(key, turn.now_ns, |marks| marks.hash = true);
            put_number(turn.out, added as i64);
        }
        _ => turn.out.extend_from_slice(OUT_OF_MEMORY),
    }
}

fn hash_get(key: &[u8], mut rest: Words<'_>, turn: &mut Turn<'_>) {
    let name = rest.next().unwrap_or_default();
    let begin = turn.out.len();
    match turn.cache.find(key, turn.now_ns) {
        Some(item) if !item.marks.hash => turn.out.extend_from_slice(WRONG_TYPE),
        found => match found.and_then(|item| Fields::of(item.value).value(name)) {
            None => put_null(turn.out, turn.session.resp_version),
            Some(value) => {
                put_head(turn.out, b'$', value.len());
                turn.value_bytes += push_value(turn.out, value, turn.truth);
                turn.out.extend_from_slice(b"\r\n");
            }
        },
    }
    bound(begin, turn);
}

fn hash_get_all(key: &[u8], turn: &mut Turn<'_>) {
    let begin = turn.out.len();
    let stored: &[u8] = match turn.cache.find(key, turn.now_ns) {
        Some(item) if !item.marks.hash => return turn.out.extend_from_slice(WRONG_TYPE),
        Some(item) => item.value,
        None => &[],
    };
    put_map_head(turn.out, turn.session.resp_version, Fields::of(stored).count());
    for (name, value) in Fields::of(stored) {
        put_string(turn.out, name);
        put_head(turn.out, b'$', value.len());
        turn.value_bytes += push_value(turn.out, value, turn.truth);
        turn.out.extend_from_slice(b"\r\n");
    }
    bound(begin, turn);
}

// --- Who is there ---

/// `HELLO [version [AUTH user password] [SETNAME name]]`
fn hello(mut arguments: Words<'_>, turn: &mut Turn<'_>) {
    let mut version = turn.session.resp_version;
    if let Some(text) = arguments.next() {
        version = match integer(text) {
            Some(2) => RespVersion::Two,
            Some(3) => RespVersion::Three,
            Some(_) => return put_error(turn.out, &[b"NOPROTO unsupported protocol version"]),
            None => {
                return put_error(turn.out, &[b"ERR Protocol version is not an integer or out of range"]);
            }
        };
    }
    while let Some(option) = arguments.next() {
        match (&option.to_ascii_uppercase()[..], arguments.next(), arguments.len()) {
            (b"AUTH", Some(user), 1..) => {
                let password = arguments.next().unwrap_or_default();
                if !admit(user, password, turn) {
                    return turn.out.extend_from_slice(WRONG_PASSWORD);
                }
            }
            (b"SETNAME", Some(name), _) if is_client_name(name) => {}
            (b"SETNAME", Some(_), _) => return turn.out.extend_from_slice(BAD_CLIENT_NAME),
            _ => return put_error(turn.out, &[b"ERR Syntax error in HELLO option '", option, b"'"]),
        }
    }
    if turn.credentials.is_some() && !turn.session.is_let_in {
        return turn.out.extend_from_slice(NO_AUTH_HELLO);
    }
    turn.session.resp_version = version;
    let out = &mut *turn.out;
    put_map_head(out, version, 7);
    for (name, text) in [("server", "brunt"), ("version", VERSION)] {
        put_string(out, name.as_bytes());
        put_string(out, text.as_bytes());
    }
    put_string(out, b"proto");
    put_number(out, if version == RespVersion::Three { 3 } else { 2 });
    put_string(out, b"id");
    put_number(out, i64::from(turn.session.number) + 1);
    for (name, text) in [("mode", "standalone"), ("role", "master")] {
        put_string(out, name.as_bytes());
        put_string(out, text.as_bytes());
    }
    put_string(out, b"modules");
    put_head(out, b'*', 0);
}

/// `AUTH [user] password`
fn auth(mut arguments: Words<'_>, turn: &mut Turn<'_>) {
    let (first, second, more) = (arguments.next().unwrap_or_default(), arguments.next(), arguments.len());
    let reply = match (second, more) {
        (_, 1..) => SYNTAX,
        (None, 0) if turn.credentials.is_none() => NO_PASSWORD,
        (None, 0) if admit(DEFAULT_USER, first, turn) => OK,
        (Some(password), 0) if admit(first, password, turn) => OK,
        _ => WRONG_PASSWORD,
    };
    turn.out.extend_from_slice(reply);
}

/// Lets a connection in, if it may come. Where nobody is asked, the default user needs no password and there is no other.
fn admit(user: &[u8], password: &[u8], turn: &mut Turn<'_>) -> bool {
    let is_right = match turn.credentials {
        Some(credentials) => credentials.admit(user, password),
        None => user == DEFAULT_USER,
    };
    turn.session.is_let_in |= is_right;
    is_right
}

fn client(mut arguments: Words<'_>, turn: &mut Turn<'_>) {
    let (subcommand, first) = (arguments.next().unwrap_or_default(), arguments.next());
    match (&subcommand.to_ascii_uppercase()[..], first) {
        (b"SETNAME", Some(name)) if !is_client_name(name) => turn.out.extend_from_slice(BAD_CLIENT_NAME),
        (b"SETNAME" | b"SETINFO", Some(_)) => turn.out.extend_from_slice(OK),
        (b"ID", None) => put_number(turn.out, i64::from(turn.session.number) + 1),
        _ => put_error(turn.out, &[b"ERR unknown subcommand '", subcommand, b"'. Try CLIENT HELP."]),
    }
}

fn is_client_name(name: &[u8]) -> bool {
    name.iter().all(u8::is_ascii_graphic)
}

// --- Statistics ---

/// What this server knows by Redis's names, then everything it counts by memcached's.
fn info(turn: &mut Turn<'_>) {
    let moment = turn.cache.moment(turn.now_ns);
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
            let Calls { touch_hits, touch_misses, .. } = *turn.calls;
            let own = [
                ("total_commands_processed", turn.calls.total()),
                ("expired_keys", moment.store.expirations()),
                ("keyspace_hits", moment.counters.get_hits + touch_hits),
                ("keyspace_misses", moment.counters.get_misses + touch_misses),
            ];
            own.iter().for_each(|(name, number)| text += &format!("{name}:{number}\r\n"));
        }
        text += "\r\n";
    }
    text += "# Commandstats\r\n";
    turn.calls.rows().for_each(|row| text += &(row + "\r\n"));
    text += "\r\n# Keyspace\r\n";
    if moment.store.items() > 0 {
        text += &format!("db0:keys={},expires=0,avg_ttl=0\r\n", moment.store.items());
    }
    text += "\r\n# Counters\r\n";
    rows.iter().for_each(|(name, number)| text += &format!("{name}:{number}\r\n"));
    match turn.session.resp_version {
        RespVersion::Two => put_string(turn.out, text.as_bytes()),
        RespVersion::Three => {
            put_head(turn.out, b'=', text.len() + 4);
            turn.out.extend_from_slice(format!("txt:{text}\r\n").as_bytes());
        }
    }
}

// --- Types ---

fn put_head(out: &mut Vec<u8>, sort: u8, count: usize) {
    out.push(sort);
    push_decimal(out, count as u64);
    out.extend_from_slice(b"\r\n");
}

fn put_string(out: &mut Vec<u8>, text: &[u8]) {
    put_head(out, b'$', text.len());
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

fn put_number(out: &mut Vec<u8>, number: i64) {
    out.push(b':');
    if number < 0 {
        out.push(b'-');
    }
    push_decimal(out, number.unsigned_abs());
    out.extend_from_slice(b"\r\n");
}

fn put_null(out: &mut Vec<u8>, version: RespVersion) {
    out.extend_from_slice(match version {
        RespVersion::Two => b"$-1\r\n",
        RespVersion::Three => b"_\r\n",
    });
}

/// The head of so many names with their values.
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
