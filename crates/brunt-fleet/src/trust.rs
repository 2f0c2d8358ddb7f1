//! Whom controllers and agents trust, and how they show who they are: a token, certificates, both, or nothing.
//!
//! TLS to the servers under load is configured by the plan. Files are read here, once.

use crate::agent_handshake::Token;
use brunt_engine::input_file;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, ClientConnection, Connection, RootCertStore, ServerConfig, ServerConnection};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The files, as given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustFiles {
    /// Its first line is known to all sides.
    pub token: Option<PathBuf>,
    /// Issuers whose certificates the other side may show.
    pub ca: Option<PathBuf>,
    /// Our certificate, and what issued it.
    pub certificate: Option<PathBuf>,
    /// Its key.
    pub key: Option<PathBuf>,
}

/// Contents of the files, for one side.
#[derive(Clone)]
pub struct Trust<C> {
    pub(crate) token: Option<Token>,
    pub(crate) tls: Option<Arc<C>>,
    /// The other side must show a certificate.
    asks_certificate: bool,
}

/// Token and certificates of a controller.
pub type ControllerTrust = Trust<ClientConfig>;
/// Token and certificates of an agent.
pub type AgentTrust = Trust<ServerConfig>;

impl ControllerTrust {
    /// Reads the files. TLS is spoken where issuers are given.
    ///
    /// # Errors
    /// The option that cannot be followed, what was given and what is accepted; for a user.
    pub fn of_controller(files: &TrustFiles) -> Result<Self, String> {
        let token = files.token.as_deref().map(read_token).transpose()?;
        let identity = identity(files)?;
        let Some(ca) = &files.ca else {
            return match identity {
                None => Ok(Self { token, tls: None, asks_certificate: false }),
                Some(_) => Err("--agent-cert requires --agent-ca: a controller that shows a certificate verifies the agent's".to_owned()),
            };
        };
        let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("--agent-ca: no TLS: {error}"))?
            .with_root_certificates(roots(ca)?);
        let config = match identity {
            None => builder.with_no_client_auth(),
            Some((chain, key)) => {
                builder.with_client_auth_cert(chain, key).map_err(|error| key_error(files, &error))?
            }
        };
        Ok(Self { token, tls: Some(Arc::new(config)), asks_certificate: true })
    }

    /// Our end of a connection to an agent of this name.
    pub(crate) fn connection(&self, host: &str) -> Result<Option<Connection>, String> {
        let Some(config) = &self.tls else { return Ok(None) };
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| format!("--agent: '{host}' is no name that a certificate can have"))?;
        let connection =
            ClientConnection::new(config.clone(), name).map_err(|error| format!("no TLS: {error}"))?;
        Ok(Some(connection.into()))
    }
}

impl AgentTrust {
    /// Reads the files. TLS is spoken where a certificate is given; with issuers the controller must show one, too.
    ///
    /// # Errors
    /// The option that cannot be followed, what was given and what is accepted; for a user.
    pub fn of_agent(files: &TrustFiles) -> Result<Self, String> {
        let token = files.token.as_deref().map(read_token).transpose()?;
        let Some((chain, key)) = identity(files)? else {
            return match &files.ca {
                None => Ok(Self { token, tls: None, asks_certificate: false }),
                Some(_) => Err(
                    "--agent-ca requires --agent-cert and --agent-key: TLS needs a certificate of the agent"
                        .to_owned(),
                ),
            };
        };
        let provider = Arc::new(default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("--agent-cert: no TLS: {error}"))?;
        let builder = match &files.ca {
            None => builder.with_no_client_auth(),
            Some(ca) => {
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots(ca)?), provider).build();
                builder.with_client_cert_verifier(
                    verifier.map_err(|error| format!("--agent-ca: '{}': {error}", ca.display()))?,
                )
            }
        };
        let config = builder.with_single_cert(chain, key).map_err(|error| key_error(files, &error))?;
        Ok(Self { token, tls: Some(Arc::new(config)), asks_certificate: files.ca.is_some() })
    }

    /// Is everyone let in who can connect? A certificate of the agent's own proves nothing of who comes.
    pub fn is_open(&self) -> bool {
        self.token.is_none() && !self.asks_certificate
    }

    /// Our end of a connection.
    pub(crate) fn connection(&self) -> Result<Option<Connection>, String> {
        let Some(config) = &self.tls else { return Ok(None) };
        let connection = ServerConnection::new(config.clone()).map_err(|error| format!("no TLS: {error}"))?;
        Ok(Some(connection.into()))
    }
}

fn read_token(path: &Path) -> Result<Token, String> {
    let unfit = |why: String| {
        format!("--token-file: '{}' {why}: expected a file whose first line is the token", path.display())
    };
    let text = input_file::read_text(path, input_file::BYTES_MAX);
    let text = text.map_err(|error| unfit(format!("cannot be read ({error})")))?;
    Token::read(&text).map_err(unfit)
}

type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn identity(files: &TrustFiles) -> Result<Option<Identity>, String> {
    match (&files.certificate, &files.key) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => {
            let chain = certificates("--agent-cert", certificate)?;
            let unfit = |error: &dyn fmt::Display| {
                format!(
                    "invalid value '{}' for --agent-key ({error}): expected a file with a private key (PEM)",
                    key.display()
                )
            };
            let pem = input_file::read(key, input_file::BYTES_MAX).map_err(|error| unfit(&error))?;
            let key = PrivateKeyDer::from_pem_slice(&pem).map_err(|error| unfit(&error))?;
            Ok(Some((chain, key)))
        }
        (Some(_), None) => Err("--agent-cert requires --agent-key".to_owned()),
        (None, Some(_)) => Err("--agent-key requires --agent-cert".to_owned()),
    }
}

fn certificates(option: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let unfit = |error: &dyn fmt::Display| {
        format!(
            "invalid value '{}' for {option} ({error}): expected a file with certificates (PEM)",
            path.display()
        )
    };
    let pem = input_file::read(path, input_file::BYTES_MAX).map_err(|error| unfit(&error))?;
    match CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>() {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(format!(
            "{option}: '{}' has no certificate: expected a file with certificates (PEM)",
            path.display()
        )),
        Err(error) => Err(unfit(&error)),
    }
}

fn roots(path: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates("--agent-ca", path)? {
        roots.add(certificate).map_err(|error| {
            format!("--agent-ca: '{}' has a certificate that issues none ({error})", path.display())
        })?;
    }
    Ok(roots)
}

fn key_error(files: &TrustFiles, error: &rustls::Error) -> String {
    let key = files.key.as_deref().unwrap_or(Path::new(""));
    format!(
        "invalid value '{}' for --agent-key ({error}): expected the key of the certificate of --agent-cert",
        key.display()
    )
}
