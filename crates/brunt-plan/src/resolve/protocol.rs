//! Has the protocol of each class everything that it sends, and what UDP carries of it room in datagrams?
//!
//! Invariant: of a plan that is resolved no request over UDP is longer than [`REQUEST_BYTES_MAX`], its header included.

use super::{ErrorContext, Resolved, commands};
use crate::op::OpKind;
use crate::plan::{Class, INLINE_VALUE_BYTES_MAX, OnMiss, Plan, Protocol, Transport};

/// The most bytes of keys in one inline command, so that Redis's bound of 64 KiB on the line leaves room for all else.
const INLINE_KEYS_BYTES_MAX: u64 = 60_000;
/// Slots where replies carry tokens: the bits that are left tell 4096 uses of a slot apart, so that a late reply meets no other.
const TOKENS_MAX: u64 = 1 << 20;

/// Is everything that the classes send in the protocol?
pub(super) fn check(plan: &Plan) -> Resolved {
    let of_classes = || {
        plan.classes.iter().map(|class| (ErrorContext::of_class(class, &plan.classes), class.protocol, class))
    };
    for (context, protocol, class) in of_classes().filter(|(_, protocol, _)| protocol.is_stateless()) {
        // Where servers store nothing, commands are all there is to send.
        if plan.commands.is_empty() || class.trace.is_some() {
            return Err(context.requires(&format!("protocol {protocol}"), "--command, and no trace"));
        }
        check_kinds(&context, protocol, class)?;
    }
    commands::check(plan)?;
    for (context, protocol, class) in of_classes() {
        if protocol == Protocol::RespInline {
            check_inline(&context, class)?;
        }
        check_kinds(&context, protocol, class)?;
        let slots = u64::from(class.connections) * u64::from(class.depth);
        if protocol.has_tokens() && slots > TOKENS_MAX {
            let most = TOKENS_MAX / u64::from(class.connections);
            let limit = format!("{most}: --protocol {protocol} with {} connections", class.connections);
            return Err(context.exceeds("depth", class.depth, limit));
        }
        if class.noreply && !protocol.is_memcached() {
            let reason = format!("--protocol {protocol}, where every command has a reply");
            return Err(context.conflicts("noreply", reason));
        }
        if class.mix.contains(OpKind::Raw) && class.mix.commands.is_empty() {
            return Err(context.requires("mix with raw", "--command"));
        }
    }
    Ok(())
}

/// Has the protocol a request for each kind of the class's operations?
fn check_kinds(context: &ErrorContext<'_>, protocol: Protocol, class: &Class) -> Resolved {
    let Some((kind, _)) = class.mix.weights.iter().find(|(kind, _)| !protocol.supports(*kind)) else {
        return Ok(());
    };
    let names = OpKind::ALL.into_iter().filter(|kind| protocol.supports(*kind)).map(OpKind::name);
    let names = names.collect::<Vec<_>>().join(" ");
    let accepted = format!("operations of {protocol} ({names}), without {kind}");
    Err(context.invalid("mix", &class.mix, accepted))
}

/// Has an inline command room for everything that the class sends? Redis reads lines of at most 64 KiB.
fn check_inline(context: &ErrorContext<'_>, class: &Class) -> Resolved {
    let keyspace = &class.keyspace;
    if keyspace.value_size.max() > INLINE_VALUE_BYTES_MAX {
        let limit = format!("{INLINE_VALUE_BYTES_MAX} bytes: --protocol resp-inline");
        return Err(context.exceeds("value-size", &keyspace.value_size, limit));
    }
    let most = INLINE_KEYS_BYTES_MAX / (u64::from(keyspace.key_size.max()) + 1);
    if class.mix.contains(OpKind::Mget) && u64::from(class.multiget) > most {
        let limit = format!("{most}: --protocol resp-inline with keys of this size");
        return Err(context.exceeds("multiget", class.multiget, limit));
    }
    Ok(())
}

/// The longest request with its header, in bytes: memcached takes no request in several datagrams, and longer ones are not certain to
/// travel in one piece (1 500 bytes of Ethernet, less what headers and tunnels take).
const REQUEST_BYTES_MAX: u64 = 1400;

/// Requests of a connection that may wait at a time: of the 65 536 ids four are left to each, so that a late reply meets no other.
const WAITING_MAX: u64 = 1 << 13;

/// Keys of a multi-get, which come in any order and are told apart by a bit each.
const KEYS_MAX: u64 = u128::BITS as u64;

/// memcached's header, and what a command has beside its keys and its value: its word, numbers, opaque, line ends.
const HEADER: u64 = 8;
const WORD: u64 = "prepend ".len() as u64;
const NUMBER: u64 = " 18446744073709551615".len() as u64;
const OPAQUE: u64 = " Os00000000".len() as u64;
const LINE_ENDS: u64 = 4;
/// What a value has beside itself and its key: word, flags, length, unique number, opaque, line ends.
const VALUE_LINE: u64 = "VALUE ".len() as u64 + 3 * NUMBER + OPAQUE + 2 * LINE_ENDS;
const NOREPLY: u64 = " noreply".len() as u64;

/// Has everything that these classes send over UDP room there?
pub(super) fn check_datagrams(plan: &Plan) -> Resolved {
    for class in plan.classes.iter().filter(|class| class.uses_transport(Transport::Udp)) {
        let is_by_udp = |kind: &OpKind| class.path_of(*kind).transport == Transport::Udp;
        let (protocol, preload) = (class.protocol, plan.preload);
        let context = ErrorContext::of_class(class, &plan.classes);
        if !matches!(protocol, Protocol::MemcachedText | Protocol::MemcachedMeta) {
            return Err(context.requires("transport udp", "--protocol memcached-text or memcached-meta"));
        }
        if class.mix.contains(OpKind::Raw) {
            let reason = "transport udp, where every request must fit into a datagram";
            return Err(context.conflicts("mix with raw", reason));
        }
        let stores = class.kinds().into_iter().chain(preload.then_some(OpKind::Set));
        if stores.filter(|kind| kind.carries_value()).any(|kind| is_by_udp(&kind)) {
            check_store(&context, protocol, preload, class)?;
        }
        if is_by_udp(&OpKind::Mget) {
            check_retrieval(&context, protocol, class)?;
        }
        let follow_ups = if class.mix.contains(OpKind::Mget) { u64::from(class.multiget) } else { 1 };
        let each = if class.on_miss == OnMiss::Set { follow_ups } else { 1 };
        if u64::from(class.depth) * each > WAITING_MAX {
            let limit = format!("{}: transport udp", WAITING_MAX / each);
            return Err(context.exceeds("depth", class.depth, limit));
        }
    }
    Ok(())
}

fn check_store(context: &ErrorContext<'_>, protocol: Protocol, preload: bool, class: &Class) -> Resolved {
    let key = u64::from(class.keyspace.key_size.max());
    let beside = HEADER + WORD + key + 4 * NUMBER + LINE_ENDS;
    let beside = beside + if protocol == Protocol::MemcachedMeta { OPAQUE } else { NOREPLY };
    let most = REQUEST_BYTES_MAX.saturating_sub(beside);
    if u64::from(class.keyspace.value_size.max()) <= most {
        return Ok(());
    }
    let hint = if preload { "; use --no-preload and a --mix that only reads" } else { "" };
    let limit = format!(
        "{most} bytes: transport udp, keys of {key} bytes, one datagram of {REQUEST_BYTES_MAX} per request{hint}"
    );
    Err(context.exceeds("value-size", &class.keyspace.value_size, limit))
}

fn check_retrieval(context: &ErrorContext<'_>, protocol: Protocol, class: &Class) -> Resolved {
    if !class.mix.contains(OpKind::Mget) {
        return Ok(());
    }
    let key = u64::from(class.keyspace.key_size.max());
    // Datagrams of two keys' trains bear one id, and nothing else tells them apart; but for text, whose trains are whole values, in order.
    let value_max = REQUEST_BYTES_MAX - HEADER - VALUE_LINE - key;
    let is_long = u64::from(class.keyspace.value_size.max()) > value_max;
    if is_long && protocol != Protocol::MemcachedText {
        let limit = format!(
            "{value_max} bytes: transport udp, mget, --protocol {protocol}, keys of {key} bytes, one datagram per value"
        );
        return Err(context.exceeds("value-size", &class.keyspace.value_size, limit));
    }
    let (each, beside) = match protocol {
        Protocol::MemcachedMeta => ("mg  k c f v q\r\n".len() as u64 + key + OPAQUE, "mn\r\n".len() as u64),
        _ => (1 + key, WORD + LINE_ENDS),
    };
    let most = (REQUEST_BYTES_MAX.saturating_sub(HEADER + beside) / each).min(KEYS_MAX);
    if u64::from(class.multiget) <= most {
        return Ok(());
    }
    let limit = format!(
        "{most}: transport udp, --protocol {protocol}, keys of {key} bytes, one datagram of {REQUEST_BYTES_MAX} per request"
    );
    Err(context.exceeds("multiget", class.multiget, limit))
}

#[cfg(test)]
mod tests {
    use crate::plan::Transport;
    use crate::resolve::tests::resolved;

    #[test]
    fn plans_that_fit() {
        let table = [
            "",
            "value-size = 1200",
            "protocol = 'memcached-meta'\nmix = 'gets=2,cas=1'\nvalue-size = 1100",
            "mix = 'mget=1'\nmultiget = 44",
            "value-size = 1000000\npreload = false\nmix = 'get=1'",
            "value-size = 2048\npreload = false\nmix = 'mget=1'",
            "server = 'memcached+udp://[::1]'\nnoreply = true",
        ];
        for toml in table {
            let plan = resolved(&format!("transport = 'udp'\n{toml}")).unwrap();
            assert_eq!((plan.transport, plan.timeout.0), (Transport::Udp, 1_000_000_000), "{toml}");
            assert_eq!(resolved(&plan.spec.to_toml()).unwrap(), plan, "{toml}");
        }
    }
}
