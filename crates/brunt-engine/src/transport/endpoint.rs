//! A server with its resolved addresses and its TLS client.
//!
//! Invariant: an endpoint has at least one address.

use super::address::Address;
use super::tls_client::TlsClient;
use brunt_plan::server::ServerAddress;

/// A server with its resolved addresses.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// As in the plan.
    pub server: ServerAddress,
    /// Addresses of the name in the order to try them, or the one path; at least one.
    pub addresses: Vec<Address>,
    /// The TLS client, if the transport is TLS.
    pub tls: Option<TlsClient>,
}
