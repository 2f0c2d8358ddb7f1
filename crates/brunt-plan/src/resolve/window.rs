//! Windows of objects and the clients that have them: what a class with a window may say, and what its keys are.
//!
//! Every error names the option and what is expected.

use super::{ErrorContext, RUN, Resolved, resolve_key_size, resolve_prefix, resolve_value_size};
use crate::mix::Mix;

use crate::op::OpKind;
use crate::plan::{Class, Keyspace, Load, OnMiss, SessionScope, ValueForm};
use crate::popularity::ObjectWindow;
use crate::size::SizeDistribution;
use crate::spec::{ClassSpec, RunSpec};

/// The longest of memaslap's values, which are cut from a table.
const TABLE_VALUE_MAX: u32 = 1 << 20;
/// What the places of all windows together may take, and what each takes.
const WINDOW_BYTES_MAX: u64 = 16 << 30;
const BYTES_PER_PLACE: u64 = 8;
/// Tolerance of an expiry check, on both sides.
const TTL_TOLERANCE_S: u32 = 5;
/// The option in messages.
const OPTION: &str = "popularity window";

/// How a class's connections are grouped into sessions.
pub(super) fn resolve_sessions(
    context: &ErrorContext<'_>,
    spec: &ClassSpec,
    connections: u64,
) -> Resolved<SessionScope> {
    let Some(each) = spec.client_connections.map(|count| count.0) else {
        let has_own_schedules = spec.call_rate.is_some();
        return Ok(if has_own_schedules { SessionScope::Connection } else { SessionScope::Worker });
    };
    if each == 0 || !connections.is_multiple_of(each) {
        let accepted = format!("a divisor of --connections, {connections}");
        return Err(context.invalid("client-connections", each, accepted));
    }
    let of_lifetime = ["connect-rate", "calls-per-connection", "connections-total", "reconnect-every"];
    let others = [&of_lifetime[..], &["trace", "purge", "rate", "rate-profile"]].concat();
    match spec.first_given(&others) {
        Some(option) => {
            let is_rate = matches!(option, "rate" | "rate-profile");
            let hint = if is_rate { "; use --call-rate, the rate of each client" } else { "" };
            Err(context.conflicts("client-connections", format!("--{option}{hint}")))
        }
        None => Ok(SessionScope::Client { connections: each as u32 }),
    }
}

/// Is there anything in the class that a window cannot do?
pub(super) fn check_class(
    context: &ErrorContext<'_>,
    spec: &ClassSpec,
    mix: &Mix,
    window: &ObjectWindow,
) -> Resolved {
    let is_supported = |kind: OpKind| matches!(kind, OpKind::Get | OpKind::Set | OpKind::Mget);
    if spec.trace.is_some() {
        return Err(context.conflicts(OPTION, "trace, which names the operations"));
    }
    if !mix.weights.iter().all(|(kind, _)| is_supported(*kind))
        || mix.contains(OpKind::Get) && mix.contains(OpKind::Mget)
    {
        let accepted = "set with get or mget for --popularity window, e.g. get=9,set=1";
        return Err(context.invalid("mix", mix, accepted));
    }
    let others = [
        ("--keys: objects are numbered without end", spec.keys.is_some()),
        ("--first-key: objects are numbered from 0", spec.first_key.is_some()),
        ("--value-form zeros: values hold their versions", spec.value_form == Some(ValueForm::Zeros)),
        ("--drift", spec.drift.is_some()),
        ("purge", spec.purge.is_some()),
        ("--noreply: the objects of a window depend on the replies", spec.noreply == Some(true)),
        ("--on-miss set: a window stores its objects itself", spec.on_miss == Some(OnMiss::Set)),
    ];
    context.excludes(OPTION, &others)?;
    let ttl_s = spec.ttl.unwrap_or_default().0 / 1_000_000_000;
    if window.expire > 0.0 && ttl_s <= u64::from(TTL_TOLERANCE_S) {
        return Err(context.requires("popularity window with expire", "--ttl above 5s, e.g. 60s"));
    }
    Ok(())
}

/// The keys of a class with `windows` windows: as many numbers as the keys can hold.
pub(super) fn resolve_keyspace(
    context: &ErrorContext<'_>,
    spec: &ClassSpec,
    window: &ObjectWindow,
    windows: u64,
) -> Resolved<Keyspace> {
    let prefix = resolve_prefix(context, spec)?;
    let key_form = spec.key_form.unwrap_or_default();
    let objects = windows * u64::from(window.objects);
    if objects * BYTES_PER_PLACE > WINDOW_BYTES_MAX {
        let most = WINDOW_BYTES_MAX / BYTES_PER_PLACE / windows;
        let limit = format!("{most} objects in each of {windows} windows, for memory");
        return Err(context.exceeds("popularity", window, limit));
    }
    // What is let go must not be taken for what comes in its place.
    let told_apart = objects.saturating_mul(2);
    let needed = prefix.len() as u64 + u64::from(key_form.bytes_needed(told_apart));
    let contents = || format!("the prefix and the numbers of {told_apart} objects");
    let key_size = resolve_key_size(context, spec, key_form, needed, contents)?;
    let value_size = resolve_value_size(context, spec)?;
    if key_form.is_memaslap() {
        for (option, size) in [("key-size", &key_size), ("value-size", &value_size)] {
            let is_laid = matches!(
                size,
                SizeDistribution::Fixed(_) | SizeDistribution::Uniform { .. } | SizeDistribution::Ranges(_)
            );
            if !is_laid {
                let accepted =
                    format!("a size, uniform:MIN,MAX or ranges:MIN-MAX@SHARE,... with --key-form {key_form}");
                return Err(context.invalid(option, size, accepted));
            }
        }
        if value_size.max() > TABLE_VALUE_MAX {
            let limit = format!("1MiB: --key-form {key_form}");
            return Err(context.exceeds("value-size", value_size, limit));
        }
    }
    let keys = key_form.ids_in(key_size.min() - prefix.len() as u32).min(ObjectWindow::NUMBERS_MAX);
    let value_form = ValueForm::Random;
    Ok(Keyspace { keys, prefix, key_form, first_key: 0, key_size, value_size, value_form })
}

/// Is there anything in the plan that a window cannot have beside it?
pub(super) fn check(run: &RunSpec, classes: &[Class]) -> Resolved {
    for (index, class) in classes.iter().enumerate() {
        let Some(window) = class.popularity.window() else { continue };
        let context = ErrorContext::of_class(class, classes);
        let conflict = |other: &str| Err(context.conflicts(OPTION, other));
        let shares =
            |(other, of): (usize, &Class)| other != index && of.keyspace.prefix == class.keyspace.prefix;
        if classes.iter().enumerate().any(shares) {
            return Err(context.requires(OPTION, "a --prefix that no other class has"));
        }
        if run.has_agents() {
            return conflict("--agent");
        }
        if window.expire > 0.0 && !is_in_order(class) {
            return Err(context.requires("popularity window with expire", IN_ORDER));
        }
        if run.hash_field.is_some() {
            return conflict("--hash-field");
        }
        if class.mix.contains(OpKind::Mget)
            && matches!(&class.load, Load::Open { rate, .. } if rate.is_known())
        {
            return conflict("mget and --rate; use a closed loop or --call-rate, the rate of each client");
        }
    }
    Ok(())
}

/// Does a client know what it has written, because nothing of it overtakes anything else?
fn is_in_order(class: &Class) -> bool {
    match class.sessions {
        SessionScope::Worker => false,
        SessionScope::Connection | SessionScope::Client { .. } => class.depth == 1,
    }
}

/// The options with which it does.
const IN_ORDER: &str = "--client-connections and --depth 1, so that a client knows its own writes";

/// Are gets checked only where that can be?
pub(super) fn check_verify(classes: &[Class]) -> Resolved {
    let is_out_of_order = |class: &&Class| class.popularity.window().is_some() && !is_in_order(class);
    match classes.iter().find(is_out_of_order) {
        Some(_) => Err(RUN.requires("verify with --popularity window", IN_ORDER)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::resolved;
    use crate::plan::SessionScope;
    use crate::shard::shards;

    #[test]
    fn a_window_has_clients_keys_and_a_preset() {
        // (plan, clients, numbers, ids that preload stores)
        for (toml, clients, keys, preloaded) in [
            ("popularity = 'window:10k'\nthreads = 2", 2, 1 << 40, 0),
            ("popularity = 'window:10k'\nclient-connections = 4\nmix = 'get'", 4, 1 << 40, 40_000),
            ("popularity = 'window:10k'\nkey-form = 'hex8'\nclient-connections = 1", 16, 1 << 32, 0),
            ("popularity = 'window:10'\nprefix = 'w'\nkey-size = 8\nmix = 'set'", 3, 10_000_000, 0),
            (
                "popularity = 'window:1k'\nkey-form = 'memaslap'\nkey-size = 'ranges:16-90@0.5,91-250@0.5'",
                3,
                1 << 40,
                0,
            ),
        ] {
            let plan = resolved(toml).unwrap();
            let set = &plan.data_sets()[0];
            assert_eq!(set.windows.unwrap().clients, clients, "{toml}");
            assert_eq!((set.keyspace.keys, set.ids_preloaded()), (keys, preloaded), "{toml}");
        }
    }

    #[test]
    fn clients_are_not_split_between_workers() {
        let plan = resolved("connections = 30\nclient-connections = 6\nthreads = 3").unwrap();
        assert_eq!(plan.classes[0].sessions, SessionScope::Client { connections: 6 });
        let parts: Vec<_> =
            shards(&plan).into_iter().map(|shard| shard.classes[0].connections.clone()).collect();
        assert_eq!(parts, [0..12, 12..24, 24..30]);
        assert_eq!(plan.in_flight_slots(&plan.classes[0]), 5);
    }

    #[test]
    fn options_that_conflict_with_windows_are_refused() {
        for (toml, message) in [
            (
                "mix = 'get,delete'",
                "invalid value 'get=1,delete=1' for --mix: expected set with get or mget for --popularity window, e.g. get=9,set=1",
            ),
            (
                "mix = 'get,mget'",
                "invalid value 'get=1,mget=1' for --mix: expected set with get or mget for --popularity window, e.g. get=9,set=1",
            ),
            ("keys = 5", "--popularity window cannot be used with --keys: objects are numbered without end"),
            ("drift = '5/1s'", "--popularity window cannot be used with --drift"),
            (
                "noreply = true",
                "--popularity window cannot be used with --noreply: the objects of a window depend on the replies",
            ),
            (
                "on-miss = 'set'",
                "--popularity window cannot be used with --on-miss set: a window stores its objects itself",
            ),
            (
                "trace = 't'\ntrace-layout = 'words'",
                "--popularity window cannot be used with trace, which names the operations",
            ),
            (
                "verify = '5%'",
                "--verify with --popularity window requires --client-connections and --depth 1, so that a client knows its own writes",
            ),
            (
                "key-size = 1",
                "invalid value 'fixed:1' for --key-size: expected sizes from 3 (the prefix and the numbers of 320 objects) to 250",
            ),
            (
                "key-form = 'memaslap'\nkey-size = 'fb_key'",
                "invalid value 'fb_key@8..250' for --key-size: expected a size, uniform:MIN,MAX or ranges:MIN-MAX@SHARE,... with --key-form memaslap",
            ),
            (
                "key-form = 'memaslap'\nvalue-size = '2MiB'",
                "--value-size fixed:2097152 exceeds 1MiB: --key-form memaslap",
            ),
            (
                "mix = 'set,mget'\nrate = 5",
                "--popularity window cannot be used with mget and --rate; use a closed loop or --call-rate, the rate of each client",
            ),
            (
                "client-connections = 3",
                "invalid value '3' for --client-connections: expected a divisor of --connections, 16",
            ),
            (
                "client-connections = 0",
                "invalid value '0' for --client-connections: expected a divisor of --connections, 16",
            ),
            (
                "client-connections = 4\nrate = 5",
                "--client-connections cannot be used with --rate; use --call-rate, the rate of each client",
            ),
            (
                "client-connections = 4\nreconnect-every = '5s'",
                "--client-connections cannot be used with --reconnect-every",
            ),
            (
                "client-connections = 4\nthreads = 5",
                "invalid value '5' for --threads: expected 1 to 4: each worker needs a connection of every class",
            ),
            (
                "[[class]]\n[[class]]",
                "--popularity window (class 'class-1') requires a --prefix that no other class has",
            ),
        ] {
            let error = resolved(&format!("popularity = 'window:10'\n{toml}")).unwrap_err();
            assert!(error.starts_with(message), "{toml}: {error}");
        }
        for (toml, message) in [
            (
                "popularity = 'window:10,expire=0.1'\nttl = '5s'",
                "--popularity window with expire requires --ttl above 5s, e.g. 60s",
            ),
            (
                "popularity = 'window:16M'\nconnections = 10000",
                "--popularity window:16000000 exceeds 214748 objects in each of 10000 windows, for memory",
            ),
            (
                "popularity = 'window:16M'\nconnections = 10000\nclient-connections = 50",
                "--popularity window:16000000 exceeds 10737418 objects in each of 200 windows, for memory",
            ),
            ("key-form = 'memaslap'", "--key-form memaslap requires --popularity window:OBJECTS"),
        ] {
            let error = resolved(toml).unwrap_err();
            assert!(error.starts_with(message), "{toml}: {error}");
        }
    }
}
