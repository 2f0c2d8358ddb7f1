//! Sockets: addresses, options, datagrams, blocking connections, TLS settings.

pub(crate) mod blocking;
pub(crate) mod datagrams;
pub(crate) mod endpoint;
pub(crate) mod socket;
pub(crate) mod tls_client;
