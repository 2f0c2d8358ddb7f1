//! A server of a plan as connections find it: its addresses, and how TLS is spoken with it.
//!
//! Names are resolved before a run. Invariant: an endpoint has at least one address.

use super::address::Address;
use super::tls_client::TlsClient;
use brunt_plan::server::ServerAddress;

/// A server with its name resolved.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// As in the plan.
    pub server: ServerAddress,
    /// Every address of the name, in the order to try them, or the one path; at least one.
    pub addresses: Vec<Address>,
    /// By TLS, where that is the plan's transport.
    pub tls: Option<TlsClient>,
}
