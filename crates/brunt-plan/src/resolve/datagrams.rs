//! What UDP allows: a protocol that has it, and requests that fit into a datagram.
//!
//! Invariant: of a plan that is resolved no request is longer than [`REQUEST_BYTES_MAX`], its header included.

use super::{ErrorContext, Resolved};
use crate::op::OpKind;
use crate::plan::{Class, OnMiss, Plan, Protocol, Transport};
use crate::units::DurationNs;

/// The longest request with its header, in bytes: memcached takes no request in several datagrams, and longer ones are not certain to
/// travel in one piece (1 500 bytes of Ethernet, less what headers and tunnels take).
pub(super) const REQUEST_BYTES_MAX: u64 = 1400;

/// A request or its reply that is lost shows by nothing but the time: ten seconds, as on a stream, would be a slot out of use for as
/// long as most runs measure. A server that is there answers in a fraction of this one.
pub(super) const DEFAULT_TIMEOUT: DurationNs = DurationNs::from_secs(1);

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
pub(super) fn check(plan: &Plan) -> Resolved {
    for class in plan.classes.iter().filter(|class| class.uses_transport(Transport::Udp, plan.transport)) {
        let is_by_udp = |kind: &OpKind| class.transport_of(*kind, plan.transport) == Transport::Udp;
        let (protocol, preload) = (plan.protocol_of(class), plan.preload);
        let context = ErrorContext::of_class(class, &plan.classes);
        if !matches!(protocol, Protocol::MemcachedText | Protocol::MemcachedMeta) {
            return Err(context.requires("transport udp", "--protocol memcached-text or memcached-meta"));
        }
        if class.mix.contains(OpKind::Raw) {
            let reason = "--transport udp, where every request must fit into a datagram";
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
            let limit = format!("{}: --transport udp", WAITING_MAX / each);
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
        "{most} bytes: --transport udp, keys of {key} bytes, one datagram of {REQUEST_BYTES_MAX} per request{hint}"
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
            "{value_max} bytes: --transport udp, mget, --protocol {protocol}, keys of {key} bytes, one datagram per value"
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
        "{most}: --transport udp, --protocol {protocol}, keys of {key} bytes, one datagram of {REQUEST_BYTES_MAX} per request"
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

    #[test]
    fn plans_that_do_not_fit() {
        let table = [
            (
                "protocol = 'memcached-binary'",
                "--transport udp requires --protocol memcached-text or memcached-meta",
            ),
            ("protocol = 'resp3'", "--transport udp requires --protocol memcached-text or memcached-meta"),
            (
                "server = 'unix:/a'",
                "invalid value 'udp' for --transport: expected unix with --server unix:/a",
            ),
            ("tls-insecure = true", "--tls-insecure requires --transport tls"),
            ("timestamps = 'kernel'", "--timestamps kernel cannot be used with --transport udp"),
            (
                "value-size = 1400",
                "--value-size fixed:1400 exceeds 1258 bytes: --transport udp, keys of 30 bytes, one datagram of 1400 per request; use --no-preload and a --mix that only reads",
            ),
            (
                "value-size = 1400\npreload = false",
                "--value-size fixed:1400 exceeds 1258 bytes: --transport udp, keys of 30 bytes, one datagram of 1400 per request",
            ),
            (
                "mix = 'mget=1'\npreload = false\nvalue-size = 2000\nprotocol = 'memcached-meta'",
                "--value-size fixed:2000 exceeds 1274 bytes: --transport udp, mget, --protocol memcached-meta, keys of 30 bytes, one datagram per value",
            ),
            (
                "mix = 'mget=1'\nmultiget = 100",
                "--multiget 100 exceeds 44: --transport udp, --protocol memcached-text, keys of 30 bytes, one datagram of 1400 per request",
            ),
            ("depth = 9000\nconnections = 1", "--depth 9000 exceeds 8192: --transport udp"),
        ];
        for (toml, message) in table {
            assert_eq!(resolved(&format!("transport = 'udp'\n{toml}")).unwrap_err(), message, "{toml}");
        }
    }
}
