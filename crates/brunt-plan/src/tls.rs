//! TLS settings of a plan: trusted CAs, the client certificate, and the server name.
//!
//! Paths and names only: the engine reads the files and checks the names.

/// TLS settings of all connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// A file of certificates (PEM): the server's must have been issued by one of these. None: by those that this host trusts.
    pub ca: Option<String>,
    /// Files of our own certificate, with those that issued it behind it, and of its key (both PEM); none: we show none.
    pub identity: Option<Identity>,
    /// The name that the client sends (SNI) and that the server's certificate must bear; none: the host of each server.
    pub server_name: Option<String>,
    /// Server certificates are not verified.
    pub is_insecure: bool,
}

/// The client's certificate and key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The path of a certificate chain.
    pub certificate: String,
    /// The path of its key.
    pub key: String,
}
