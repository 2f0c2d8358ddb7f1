//! Codecs by protocol: the one `match` that makes a codec of what the plan says.
//!
//! Not the codecs (those are brunt-proto) and not what is done with one. Invariant: a [`Speaker`] is compiled once for each codec that
//! it may meet, and for those over datagrams only where it asks for them.

use brunt_plan::plan::{Plan, Protocol};
use brunt_proto::Codec;
use brunt_proto::memcached::binary::sasl;
use brunt_proto::memcached::{BinaryCodec, MetaCodec, TextCodec};
use brunt_proto::resp::RespCodec;
use brunt_proto::resp::handshake::{self, Handshake, Version};
use brunt_proto::resp::template::{Template, Templates};
use std::io;
use std::sync::Arc;

/// Whatever can be done in any dialect.
pub(crate) trait Speaker: Sized {
    /// What comes of it.
    type Output;

    /// Does it in the dialect of `codec`.
    fn speak<C: Codec>(self, codec: C) -> Self::Output;

    /// Does it in a dialect that datagrams can carry, too.
    fn speak_datagrams<C: Codec>(self, codec: C) -> Self::Output {
        self.speak(codec)
    }
}

/// Lets `speaker` speak this protocol, one of the plan's.
///
/// # Errors
/// A command of the plan is none. Plans are checked where they are made, so this is a mistake of ours.
pub(crate) fn speak<S: Speaker>(plan: &Plan, protocol: Protocol, speaker: S) -> io::Result<S::Output> {
    Ok(match protocol {
        Protocol::MemcachedText => {
            speaker.speak_datagrams(TextCodec::new().with_trailing_blank(plan.trailing_blank))
        }
        Protocol::MemcachedMeta => speaker.speak_datagrams(MetaCodec::new()),
        Protocol::MemcachedBinary => speaker.speak(binary_codec(plan)),
        Protocol::Resp2 | Protocol::Resp3 => speaker.speak(resp_codec(plan, protocol)?),
    })
}

/// The codec of a connection to a memcached that is spoken to in binary.
fn binary_codec(plan: &Plan) -> BinaryCodec {
    let credentials = plan.login.user.as_ref().zip(plan.login.password.as_ref());
    let said = credentials.map(|(user, password)| Arc::new(sasl::Login::new(user, password.secret())));
    BinaryCodec::with_login(said)
}

/// The codec of a connection to a Redis.
pub(crate) fn resp_codec(plan: &Plan, protocol: Protocol) -> io::Result<RespCodec> {
    let login = &plan.login;
    let handshake = Handshake::new(&handshake::Login {
        version: if protocol == Protocol::Resp3 { Version::Three } else { Version::Two },
        user: login.user.clone(),
        password: login.password.as_ref().map(|password| password.secret().to_owned()),
        client_name: login.client_name.clone(),
        database: login.database,
    });
    let codec = RespCodec::new(Templates::new(templates(plan)?), Some(Arc::new(handshake)));
    Ok(codec.with_hash_field(plan.hash_field.unwrap_or(0) as usize))
}

/// The commands of a plan, which were checked where it was made: an error is a mistake of ours.
pub(crate) fn templates(plan: &Plan) -> io::Result<Vec<Template>> {
    plan.commands.iter().map(|command| Template::parse(command).map_err(io::Error::other)).collect()
}

/// Checks the commands of a plan, which its protocol's codec reads.
///
/// # Errors
/// The first that is none, and what is accepted; for a user.
pub fn check_commands(plan: &Plan) -> Result<(), String> {
    plan.commands.iter().try_for_each(|command| Template::parse(command).map(drop))
}

#[cfg(test)]
mod tests {
    use super::*;
    use brunt_plan::op::OpKind;

    /// A plan with anything else is refused, so that a codec never meets it.
    #[test]
    fn plans_and_codecs_agree_on_what_is_spoken() {
        for kind in OpKind::ALL {
            for version in [Protocol::Resp2, Protocol::Resp3] {
                assert_eq!(version.speaks(kind), RespCodec::speaks(kind), "{kind}");
            }
            for dialect in [Protocol::MemcachedText, Protocol::MemcachedMeta, Protocol::MemcachedBinary] {
                assert_eq!(dialect.speaks(kind), kind != OpKind::Raw, "{dialect} {kind}");
            }
        }
    }
}
