//! Asks a server what it speaks, where no option and no URL says it: memcached or Redis.
//!
//! Not a check that a server fits a plan. Invariant: one harmless request on a connection of its own, which ends within two seconds.

use crate::clock::Clock;
use crate::io::tls::explain;
use crate::run_error::{RunError, ServerFailure};
use crate::transport::Endpoint;
use crate::transport::blocking::{QueryError, Stream};
use brunt_plan::choice::Protocol;
use brunt_plan::quoted_bytes::QuotedBytes;
use brunt_proto::detection::DetectedProtocol;
use std::io::ErrorKind;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(2);
/// memcached answers it, and servers of Redis's protocol answer with an error: neither counts it as an access.
const QUESTION: &[u8] = b"version\r\n";
/// Longer answers tell no more.
const ANSWER_BYTES_MAX: usize = 256;

/// Asks a server for the protocol that it speaks.
///
/// # Errors
/// It cannot be reached, or it does not answer as one of the two: what it does instead, and what to give.
pub fn ask_protocol(endpoint: &Endpoint) -> Result<Protocol, RunError> {
    let server = || endpoint.server.clone();
    let failed = |failure, reason| RunError::Server { failure, server: server(), reason };
    let mut stream = Stream::connect(endpoint, Clock::start(), LIMIT)
        .map_err(|error| failed(ServerFailure::Unreachable, error.to_string()))?;
    let mut answer = Vec::new();
    let ended = stream.exchange(QUESTION, |bytes| {
        answer.extend_from_slice(bytes);
        let is_tls = DetectedProtocol::of(&answer) == Some(DetectedProtocol::Tls);
        Ok(is_tls || answer.contains(&b'\n') || answer.len() >= ANSWER_BYTES_MAX)
    });
    let by_tls = format!("-s memcacheds://{0} or -s rediss://{0}", endpoint.server);
    let reason = match (DetectedProtocol::of(&answer), ended) {
        (Some(DetectedProtocol::Memcached), _) => return Ok(Protocol::MemcachedText),
        (Some(DetectedProtocol::Redis), _) => return Ok(Protocol::Resp2),
        (Some(DetectedProtocol::Tls), _) => format!("it answers in TLS: use {by_tls}"),
        (None, Err(QueryError::Lost(error))) if answer.is_empty() => {
            match error.get_ref().and_then(|inner| inner.downcast_ref()) {
                Some(reason) => return Err(failed(ServerFailure::TlsFailed, explain(reason))),
                None if error.kind() == ErrorKind::TimedOut => {
                    format!("it does not answer \"version\" within {} s: give --protocol", LIMIT.as_secs())
                }
                None => {
                    format!("it closes the connection on \"version\": give --protocol, or for TLS {by_tls}")
                }
            }
        }
        // A request that they cannot read some servers answer without a head, as in HTTP 0.9.
        _ if answer.starts_with(b"HTTP/") || answer.starts_with(b"<") => {
            "it answers as an HTTP server: give the port of memcached or Redis".to_owned()
        }
        _ => format!("it answers \"{}\" to \"version\": give --protocol", QuotedBytes(&answer)),
    };
    Err(failed(ServerFailure::UnknownProtocol, reason))
}
