//! Codecs by protocol: the one `match` from the plan's protocol to a codec.
//!
//! The codecs are in brunt-proto. Invariant: a [`CodecVisitor`] is compiled once for each codec that it may visit,
//! and for datagram codecs only where it overrides `visit_datagrams`.

use brunt_plan::mix::Command;
use brunt_plan::plan::{Class, Plan, Protocol};
use brunt_proto::Codec;
use brunt_proto::memcached::binary::sasl;
use brunt_proto::memcached::{BinaryCodec, MetaCodec, TextCodec};
use brunt_proto::message::{MessageCodec, Messages};
use brunt_proto::resp::RespCodec;
use brunt_proto::resp::handshake::{Handshake, Version};
use brunt_proto::template::{Framing, Template, Templates};
use std::io;
use std::sync::Arc;

/// Code that runs with the codec of a protocol.
pub(crate) trait CodecVisitor: Sized {
    /// The result of a visit.
    type Output;

    /// Runs with this codec.
    fn visit<C: Codec>(self, codec: C) -> Self::Output;

    /// Runs with a codec that datagrams can carry, too.
    fn visit_datagrams<C: Codec>(self, codec: C) -> Self::Output {
        self.visit(codec)
    }
}

/// Calls `visitor` with the codec of this protocol, one of those in the plan.
///
/// # Errors
/// A command of the plan is invalid, which `resolve` has excluded.
pub(crate) fn with_codec<S: CodecVisitor>(
    plan: &Plan,
    protocol: Protocol,
    visitor: S,
) -> io::Result<S::Output> {
    Ok(match protocol {
        Protocol::MemcachedText => {
            let codec = TextCodec::new().with_templates(templates(plan, protocol)?);
            visitor.visit_datagrams(codec.with_trailing_blank(plan.trailing_blank))
        }
        Protocol::MemcachedMeta => visitor.visit_datagrams(MetaCodec::new()),
        Protocol::MemcachedBinary => visitor.visit(binary_codec(plan)),
        Protocol::Resp2 | Protocol::Resp3 | Protocol::RespInline => {
            visitor.visit(resp_codec(plan, protocol)?)
        }
        Protocol::Echo => visitor.visit(message_codec(plan, protocol, Messages::Echo)?),
        Protocol::Ping => visitor.visit(message_codec(plan, protocol, Messages::Ping)?),
        Protocol::Thrift => visitor.visit(message_codec(plan, protocol, Messages::Thrift)?),
    })
}

/// The codec of a connection to a memcached that is spoken to in binary.
fn binary_codec(plan: &Plan) -> BinaryCodec {
    let credentials = plan.login.user.as_ref().zip(plan.login.password.as_ref());
    let login = credentials.map(|(user, password)| Arc::new(sasl::SaslLogin::new(user, password.secret())));
    BinaryCodec::with_setup(login)
}

/// The codec of a connection to a Redis.
pub(crate) fn resp_codec(plan: &Plan, protocol: Protocol) -> io::Result<RespCodec> {
    let version = if protocol == Protocol::Resp3 { Version::Three } else { Version::Two };
    let handshake = Handshake::new(version, &plan.login);
    let codec = RespCodec::new(templates(plan, protocol)?, Some(Arc::new(handshake)));
    Ok(match protocol {
        Protocol::RespInline => codec.with_inline_commands(),
        _ => codec.with_hash_field(plan.hash_field.unwrap_or(0) as usize),
    })
}

/// The codec of a connection on which messages are sent.
fn message_codec(plan: &Plan, protocol: Protocol, messages: Messages) -> io::Result<MessageCodec> {
    // Classes may share connections.
    let waiting_max: usize = plan.classes.iter().map(|class| class.depth as usize).sum();
    Ok(MessageCodec::new(messages, templates(plan, protocol)?, waiting_max))
}

/// The framing of user-defined commands in a protocol; `None` where it has none.
fn framing(protocol: Protocol) -> Option<Framing> {
    match protocol {
        Protocol::MemcachedText => Some(Framing::MemcachedText),
        Protocol::MemcachedMeta | Protocol::MemcachedBinary => None,
        Protocol::Resp2 | Protocol::Resp3 => Some(Framing::Resp),
        Protocol::RespInline => Some(Framing::Inline),
        Protocol::Echo => Some(Framing::Echo),
        Protocol::Ping => Some(Framing::Ping),
        Protocol::Thrift => Some(Framing::Thrift),
    }
}

/// Each command of a plan as this protocol has it, or nothing where no class sends it so; or why it is none.
fn parsed(plan: &Plan, protocol: Protocol) -> Result<Vec<Template>, String> {
    let is_sent = |index: usize| {
        let sends = |class: &Class| class.mix.commands.get(index).is_some_and(|weight| *weight > 0);
        plan.classes.iter().any(|class| class.protocol == protocol && sends(class))
    };
    let parse = |(index, command): (usize, &Command)| match framing(protocol) {
        Some(framing) if is_sent(index) => Template::parse(framing, &command.template),
        _ => Ok(Template::unused()),
    };
    plan.commands.iter().enumerate().map(parse).collect()
}

/// The commands of a plan, which were checked by `resolve`.
pub(crate) fn commands(plan: &Plan, protocol: Protocol) -> io::Result<Vec<Template>> {
    parsed(plan, protocol).map_err(io::Error::other)
}

fn templates(plan: &Plan, protocol: Protocol) -> io::Result<Templates> {
    Ok(Templates::new(commands(plan, protocol)?))
}

/// Checks the commands of a plan, which its protocols' codecs read.
///
/// # Errors
/// The first invalid command and what is accepted, for a user.
pub fn check_commands(plan: &Plan) -> Result<(), String> {
    plan.protocols().into_iter().try_for_each(|protocol| parsed(plan, protocol).map(drop))
}

#[cfg(test)]
mod tests {
    use super::*;
    use brunt_plan::op::OpKind;

    /// A plan with anything else is refused, so that a codec never meets it.
    #[test]
    fn plans_and_codecs_agree_on_protocols() {
        for kind in OpKind::ALL {
            for version in [Protocol::Resp2, Protocol::Resp3, Protocol::RespInline] {
                assert_eq!(version.supports(kind), RespCodec::supports(kind), "{kind}");
            }
            for messages in [Protocol::Echo, Protocol::Ping, Protocol::Thrift] {
                assert_eq!(messages.supports(kind), MessageCodec::supports(kind), "{messages} {kind}");
            }
            for dialect in [Protocol::MemcachedMeta, Protocol::MemcachedBinary] {
                assert_eq!(dialect.supports(kind), kind != OpKind::Raw, "{dialect} {kind}");
            }
            assert!(Protocol::MemcachedText.supports(kind), "{kind}");
        }
    }
}
