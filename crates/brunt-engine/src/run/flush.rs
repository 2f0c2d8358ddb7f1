//! Deletes all data of the servers before a run.
//!
//! One server after the other, on blocking connections. Invariant: an unconfirmed deletion is an error.

use crate::clock::Clock;
use crate::codecs::resp_codec;
use crate::transport::blocking::{QueryError, Stream};
use crate::transport::endpoint::Endpoint;
use brunt_plan::plan::{Plan, Transport};
use std::time::Duration;

/// Time limit: deleting much data takes long.
const REPLY_LIMIT: Duration = Duration::from_secs(60);
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
        let reply =
            ask(plan, server.protocol.is_resp(), endpoint).map_err(|error| refuse(error.to_string()))?;
        if !matches!(reply.as_str(), "OK" | "+OK") {
            return Err(refuse(format!("reply '{}'", reply.escape_debug())));
        }
    }
    Ok(())
}

/// The server's reply line.
fn ask(plan: &Plan, is_redis: bool, endpoint: &Endpoint) -> Result<String, QueryError> {
    let mut stream = Stream::connect(endpoint, Clock::start(), REPLY_LIMIT)?;
    let request: &[u8] = if is_redis {
        stream.set_up(&resp_codec(plan, plan.protocol)?)?;
        b"*1\r\n$8\r\nflushall\r\n"
    } else {
        b"flush_all\r\n"
    };
    let mut answer = Vec::new();
    stream.exchange(request, |bytes| {
        answer.extend_from_slice(bytes);
        Ok(answer.contains(&b'\n') || answer.len() >= ANSWER_BYTES_MAX)
    })?;
    let line = String::from_utf8_lossy(&answer);
    Ok(line.lines().next().unwrap_or_default().to_owned())
}
