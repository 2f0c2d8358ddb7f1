//! Codecs by protocol: the one `match` from the plan's protocol to a codec.
//!
//! The codecs are in brunt-proto. Invariant: a [`CodecVisitor`] is compiled once for each codec that it may visit,
//! and for datagram codecs only where it overrides `visit_datagrams`.

use brunt_plan::mix::Command;
use brunt_plan::plan::{Class, Plan, Protocol};
use brunt_proto::Codec;
use brunt_proto::memcached::binary::sasl;
use brunt_proto::memcached::{BinaryCodec, MetaCodec, TextCodec};
use brunt_proto::message::MessageCodec;
use brunt_proto::resp::RespCodec;
use brunt_proto::resp::handshake::Handshake;
use brunt_proto::template::{Template, Templates};
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
        Protocol::Echo | Protocol::Ping | Protocol::Thrift => visitor.visit(message_codec(plan, protocol)?),
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
    let handshake = Handshake::new(protocol, &plan.login);
    let codec = RespCodec::new(templates(plan, protocol)?, Some(Arc::new(handshake)));
    Ok(match protocol {
        Protocol::RespInline => codec.with_inline_commands(),
        _ => codec.with_hash_field(plan.hash_field.unwrap_or(0) as usize),
    })
}

/// The codec of a connection on which messages are sent.
fn message_codec(plan: &Plan, protocol: Protocol) -> io::Result<MessageCodec> {
    // Classes may share connections.
    let waiting_max: usize = plan.classes.iter().map(|class| class.depth as usize).sum();
    Ok(MessageCodec::new(protocol, templates(plan, protocol)?, waiting_max))
}

/// Each command of a plan as this protocol has it, or nothing where no class sends it so; or why it is none.
fn parsed(plan: &Plan, protocol: Protocol) -> Result<Vec<Template>, String> {
    let is_sent = |index: usize| {
        let sends = |class: &Class| class.mix.commands.get(index).is_some_and(|weight| *weight > 0);
        plan.classes.iter().any(|class| class.protocol == protocol && sends(class))
    };
    let parse = |(index, command): (usize, &Command)| match is_sent(index) {
        true => Template::parse(protocol, &command.template),
        false => Ok(Template::unused()),
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
