//! TLS settings: trusted CAs, client certificate, server names.
//!
//! Files are read once, before any connection. Sessions are never resumed: every handshake is a full one, so that
//! the cost of a connection does not depend on earlier ones.

use crate::input_file;
use brunt_plan::sockets::TlsOptions;
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// The TLS options of a plan, with their files read.
#[derive(Clone)]
pub struct TlsSettings {
    config: Arc<ClientConfig>,
    server_name: Option<ServerName<'static>>,
}

/// TLS settings for one server.
#[derive(Clone)]
pub struct TlsClient {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl TlsSettings {
    /// Reads the files.
    ///
    /// # Errors
    /// The invalid option, for a user.
    pub fn read(options: &TlsOptions) -> Result<Self, String> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("TLS is unavailable: {error}"))?;
        let builder = match options.is_insecure {
            true => builder.dangerous().with_custom_certificate_verifier(Arc::new(NoVerification)),
            false => builder.with_root_certificates(roots(options.ca.as_deref())?),
        };
        let mut config = match &options.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let chain = certificates("--tls-cert", &identity.certificate)?;
                let unfit_key = |error: &dyn fmt::Display| {
                    unfit("--tls-key", &identity.key, error, "a file with a private key (PEM)")
                };
                let pem = input_file::read(Path::new(&identity.key), input_file::BYTES_MAX);
                let pem = pem.map_err(|error| unfit_key(&error))?;
                let key = PrivateKeyDer::from_pem_slice(&pem).map_err(|error| unfit_key(&error))?;
                builder.with_client_auth_cert(chain, key).map_err(|error| match error {
                    Error::InconsistentKeys(_) => {
                        unfit("--tls-key", &identity.key, &error, "the key of the certificate of --tls-cert")
                    }
                    _ => unfit(
                        "--tls-cert",
                        &identity.certificate,
                        &error,
                        "a certificate of X.509 version 3 (PEM)",
                    ),
                })?
            }
        };
        config.resumption = Resumption::disabled();
        let server_name = options.server_name.as_deref().map(|name| parse_name("--tls-server-name", name));
        Ok(Self { config: Arc::new(config), server_name: server_name.transpose()? })
    }

    /// Settings for the server on this host name or address.
    ///
    /// # Errors
    /// The name is invalid in a certificate; for a user.
    pub fn toward(&self, host: &str) -> Result<TlsClient, String> {
        let name = match &self.server_name {
            Some(name) => name.clone(),
            None => parse_name("--server", host)?,
        };
        Ok(TlsClient { config: self.config.clone(), name })
    }
}

impl TlsClient {
    /// With this configuration and server name.
    #[cfg(test)]
    pub(crate) fn of(config: ClientConfig, name: &str) -> Self {
        Self { config: Arc::new(config), name: ServerName::try_from(name.to_owned()).expect("a name") }
    }

    /// A connection before its handshake.
    pub(crate) fn connection(&self) -> Result<ClientConnection, Error> {
        ClientConnection::new(self.config.clone(), self.name.clone())
    }
}

impl fmt::Debug for TlsClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "TlsClient({:?})", self.name)
    }
}

fn unfit(option: &str, path: &str, error: &dyn fmt::Display, accepted: &str) -> String {
    format!("invalid value '{path}' for {option}: {error}; expected {accepted}")
}

fn parse_name(option: &str, name: &str) -> Result<ServerName<'static>, String> {
    ServerName::try_from(name.to_owned()).map_err(|error| {
        format!("invalid value '{name}' for {option}: {error}; expected a DNS name or an IP address, e.g. cache.example")
    })
}

/// All certificates of a file; at least one.
fn certificates(option: &str, path: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let accepted = "a file with at least one certificate (PEM)";
    let pem = input_file::read(Path::new(path), input_file::BYTES_MAX);
    let pem = pem.map_err(|error| unfit(option, path, &error, accepted))?;
    match CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>() {
        Ok(chain) if chain.is_empty() => Err(unfit(option, path, &"it holds no certificate", accepted)),
        Ok(chain) => Ok(chain),
        Err(error) => Err(unfit(option, path, &error, accepted)),
    }
}

/// The trusted CA certificates.
fn roots(file: Option<&str>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    match file {
        Some(path) => {
            for certificate in certificates("--tls-ca", path)? {
                roots
                    .add(certificate)
                    .map_err(|error| unfit("--tls-ca", path, &error, "certificates of issuers (PEM)"))?;
            }
        }
        None => {
            // Unsupported CA certificates of the host are skipped; servers with certificates of theirs are rejected
            // with a message.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if roots.is_empty() {
                return Err("this host trusts no CA; transport tls requires --tls-ca FILE or --tls-insecure"
                    .to_owned());
            }
        }
    }
    Ok(roots)
}

/// Accepts any certificate without parsing it: version 1, expired, of another host, with a weak or unsupported key.
/// Signatures are not verified either: without a trusted certificate they prove nothing, and verification would
/// reject certificates that the library cannot parse.
#[derive(Debug)]
struct NoVerification;

impl ServerCertVerifier for NoVerification {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        ANY_SCHEME.map(SignatureScheme::from).to_vec()
    }
}

/// Signature schemes by their numbers in RFC 8446, section 4.2.3, usual ones first; a server picks the first that its key supports: ECDSA
/// with P-256 and P-384, Ed25519, RSA-PSS, RSA as of old, P-521, Ed448, RSA-PSS keys, both kinds with SHA-1.
const ANY_SCHEME: [u16; 16] = [
    0x403, 0x503, 0x807, 0x804, 0x805, 0x806, 0x401, 0x501, 0x601, 0x603, 0x808, 0x809, 0x80a, 0x80b, 0x203,
    0x201,
];
