//! Deletes all data of the servers before a run.
//!
//! One server after the other, on blocking connections. Invariant: an unconfirmed deletion is an error.

use crate::clock::Clock;
use crate::codecs::resp_codec;
use crate::transport::blocking::{SetupError, Stream};
use crate::transport::endpoint::Endpoint;
use brunt_plan::plan::{Plan, Transport};
use std::io::{self, Read, Write};

/// Time limit: deleting much data takes long.
const ANSWER_NS: u64 = 60_000_000_000;
/// Maximum length of a reply.
const ANSWER_BYTES_MAX: usize = 4096;

/// Deletes all data of every server of a plan, and waits for each confirmation.
///
/// # Errors
/// A server is unreachable, does not confirm, or has no such command; for a user.
pub fn flush(plan: &Plan, endpoints: &[Endpoint]) -> Result<(), String> {
    for (server, endpoint) in plan.servers().iter().zip(endpoints) {
        let refuse = |reason: String| format!("cannot flush {}: {reason}", endpoint.server);
        if server.protocol.is_stateless() || server.transport == Transport::Udp {
            return Err(refuse(format!(
                "{} over {} has no command for it",
                server.protocol, server.transport
            )));
        }
        let said =
            ask(plan, server.protocol.is_resp(), endpoint).map_err(|error| refuse(error.to_string()))?;
        if !matches!(said.as_str(), "OK" | "+OK") {
            return Err(refuse(format!("reply '{}'", said.escape_debug())));
        }
    }
    Ok(())
}

/// The server's reply line.
fn ask(plan: &Plan, is_redis: bool, endpoint: &Endpoint) -> io::Result<String> {
    let clock = Clock::start();
    let deadline_ns = clock.now_ns() + ANSWER_NS;
    let mut stream = Stream::connect_any(&endpoint.addresses, endpoint.tls.as_ref(), clock, deadline_ns)?;
    let request: &[u8] = if is_redis {
        let codec = resp_codec(plan, plan.protocol)?;
        stream.set_up(&codec).map_err(|reason| match reason {
            SetupError::Lost(error) => error,
            SetupError::Rejected(said) => io::Error::other(said),
            SetupError::InvalidReply => io::Error::other(SetupError::INVALID_REPLY),
        })?;
        b"*1\r\n$8\r\nflushall\r\n"
    } else {
        b"flush_all\r\n"
    };
    stream.write_all(request)?;
    stream.flush()?;
    let mut answer = Vec::new();
    let mut byte = [0];
    while !answer.ends_with(b"\n") && answer.len() < ANSWER_BYTES_MAX {
        stream.read_exact(&mut byte)?;
        answer.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&answer).trim_end().to_owned())
}
