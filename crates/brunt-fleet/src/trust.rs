//! Whom controllers and agents trust, and how they show who they are: by the same folder, or not at all.
//!
//! TLS to the servers under load is configured by the plan. Files are read here, once. Invariant: with a folder both sides show their
//! certificate and prove the token, without one neither does.

use crate::agent_handshake::Token;
use crate::auth_folder::{Credentials, SERVER_NAME};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::ServerName;
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, ClientConnection, Connection, ServerConfig, ServerConnection};
use std::path::Path;
use std::sync::Arc;

/// What a folder holds, for one side; nothing without a folder.
#[derive(Clone)]
pub struct Trust<C> {
    pub(crate) token: Option<Token>,
    pub(crate) tls: Option<Arc<C>>,
}

/// Token and certificates of a controller.
pub type ControllerTrust = Trust<ClientConfig>;
/// Token and certificates of an agent.
pub type AgentTrust = Trust<ServerConfig>;

impl<C> Trust<C> {
    /// Everyone is let in who can connect.
    pub const OPEN: Self = Self { token: None, tls: None };

    /// Is everyone let in who can connect?
    pub const fn is_open(&self) -> bool {
        self.tls.is_none()
    }
}

impl ControllerTrust {
    /// Reads the folder.
    ///
    /// # Errors
    /// The file that is missing or broken; for a user.
    pub fn of_controller(folder: &Path) -> Result<Self, String> {
        let Credentials { token, chain, key, roots } = Credentials::read(folder)?;
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("--auth: no TLS: {error}"))?
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)
            .map_err(|error| Credentials::key_error(folder, &error))?;
        Ok(Self { token: Some(token), tls: Some(Arc::new(config)) })
    }

    /// Our end of a connection.
    pub(crate) fn connection(&self) -> Result<Option<Connection>, String> {
        let Some(config) = &self.tls else { return Ok(None) };
        let name = ServerName::try_from(SERVER_NAME).expect("a constant that is a DNS name");
        let connection =
            ClientConnection::new(config.clone(), name).map_err(|error| format!("no TLS: {error}"))?;
        Ok(Some(connection.into()))
    }
}

impl AgentTrust {
    /// Reads the folder.
    ///
    /// # Errors
    /// The file that is missing or broken; for a user.
    pub fn of_agent(folder: &Path) -> Result<Self, String> {
        let Credentials { token, chain, key, roots } = Credentials::read(folder)?;
        let no_tls = |error: &dyn std::fmt::Display| format!("--auth: no TLS: {error}");
        let provider = Arc::new(default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build();
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| no_tls(&error))?
            .with_client_cert_verifier(verifier.map_err(|error| no_tls(&error))?)
            .with_single_cert(chain, key)
            .map_err(|error| Credentials::key_error(folder, &error))?;
        Ok(Self { token: Some(token), tls: Some(Arc::new(config)) })
    }

    /// Our end of a connection.
    pub(crate) fn connection(&self) -> Result<Option<Connection>, String> {
        let Some(config) = &self.tls else { return Ok(None) };
        let connection = ServerConnection::new(config.clone()).map_err(|error| format!("no TLS: {error}"))?;
        Ok(Some(connection.into()))
    }
}
