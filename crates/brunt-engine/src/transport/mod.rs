//! What carries the bytes: creating and tuning sockets. Byte transforms such as TLS stand beside these, not in the loop.

pub(crate) mod address;
pub(crate) mod blocking;
pub(crate) mod datagrams;
pub(crate) mod socket;
pub(crate) mod tls;
