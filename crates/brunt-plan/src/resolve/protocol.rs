//! Has the protocol of each class everything that it sends?

use super::{ErrorContext, Resolved, commands};
use crate::op::OpKind;
use crate::plan::{Class, INLINE_VALUE_BYTES_MAX, Plan, Protocol};

/// The most bytes of keys in one inline command, so that Redis's bound of 64 KiB on the line leaves room for all else.
const INLINE_KEYS_BYTES_MAX: u64 = 60_000;
/// Slots where replies carry tokens: the bits that are left tell 4096 uses of a slot apart, so that a late reply meets no other.
const TOKENS_MAX: u64 = 1 << 20;

/// Is everything that the classes send in the protocol?
pub(super) fn check(plan: &Plan) -> Resolved {
    let of_classes = || {
        plan.classes
            .iter()
            .map(|class| (ErrorContext::of_class(class, &plan.classes), plan.protocol_of(class), class))
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
