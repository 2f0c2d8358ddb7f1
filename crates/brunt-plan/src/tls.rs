//! What a plan says of TLS: whom to trust, who we are, and by what name the server is asked for.
//!
//! Paths and names only: files are read, and names checked, by whoever connects.

/// How sessions are made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// A file of certificates (PEM): the server's must have been issued by one of these. None: by those that this host trusts.
    pub ca: Option<String>,
    /// Files of our own certificate, with those that issued it behind it, and of its key (both PEM); none: we show none.
    pub identity: Option<Identity>,
    /// The name that is asked for (SNI) and that the server's certificate must bear; none: the host of each server.
    pub server_name: Option<String>,
    /// Whoever answers is taken for the server.
    pub is_insecure: bool,
}

/// Who we are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The path of a certificate chain.
    pub certificate: String,
    /// The path of its key.
    pub key: String,
}
