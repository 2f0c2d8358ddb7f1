//! Credentials of controllers and agents: those of a folder that is made once and copied to every host, or none.
//!
//! All hosts of a folder show the same certificate and verify it, and prove that they know the same token. TLS to the servers under load is
//! configured by the plan. Invariants: with a folder both sides show their certificate and prove the token, without one neither does; token
//! and key are readable by their owner alone; no further certificate can be signed, because the key of the CA is dropped when the folder is
//! made.

use crate::agent_handshake::Token;
use brunt_engine::input_file;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    IsCa, KeyPair, KeyUsagePurpose,
};
use ring::rand::{SecureRandom, SystemRandom};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, ClientConnection, Connection, RootCertStore, ServerConfig, ServerConnection};
use std::fmt::Display;
use std::fs::{DirBuilder, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The shared secret, in the first line.
const TOKEN: &str = "token";
/// The certificate of the CA.
const CA: &str = "ca.pem";
/// The certificate of every host.
const CERTIFICATE: &str = "certificate.pem";
/// Its key.
const KEY: &str = "key.pem";
/// The name in the certificate. Hosts have one certificate, whatever their addresses are.
const SERVER_NAME: &str = "hosts.brunt.internal";
/// Random bytes of a token.
const TOKEN_BYTES: usize = 32;

/// The files of a folder.
pub fn files(folder: &Path) -> [PathBuf; 4] {
    [TOKEN, CA, CERTIFICATE, KEY].map(|name| folder.join(name))
}

/// The secrets of a folder that others than their owner can read, write or execute. That the group can read is no such thing where this
/// process reads as the group does, and not as the owner: a container is given its secrets so.
pub fn exposed_secrets(folder: &Path) -> Vec<PathBuf> {
    let own = rustix::process::geteuid().as_raw();
    let is_found = |path: &PathBuf| {
        path.metadata().is_ok_and(|found| is_exposed(found.permissions().mode(), found.uid() == own))
    };
    [TOKEN, KEY].map(|name| folder.join(name)).into_iter().filter(is_found).collect()
}

const fn is_exposed(mode: u32, is_own: bool) -> bool {
    mode & (if is_own { 0o077 } else { 0o037 }) != 0
}

/// What a folder holds, for one side; nothing without a folder.
#[derive(Clone)]
pub struct Credentials<C> {
    pub(crate) token: Option<Token>,
    pub(crate) tls: Option<Arc<C>>,
}

/// Token and certificates of a controller.
pub type ControllerCredentials = Credentials<ClientConfig>;
/// Token and certificates of an agent.
pub type AgentCredentials = Credentials<ServerConfig>;

impl<C> Credentials<C> {
    /// Everyone is let in who can connect.
    pub const OPEN: Self = Self { token: None, tls: None };

    /// Is everyone let in who can connect?
    pub const fn is_open(&self) -> bool {
        self.tls.is_none()
    }

    /// Reads a folder; `configure` makes TLS of issuers, certificate and key.
    fn read(
        folder: &Path,
        configure: impl FnOnce(
            RootCertStore,
            Vec<CertificateDer<'static>>,
            PrivateKeyDer<'static>,
        ) -> Result<Result<C, rustls::Error>, String>,
    ) -> Result<Self, String> {
        let unfit = |name: &str, why: &dyn Display| {
            let path = folder.join(name);
            format!("--auth: '{}' {why}: expected a folder made by brunt agent --new-auth", path.display())
        };
        let read = |name: &str| {
            let bytes = input_file::read(&folder.join(name), input_file::BYTES_MAX);
            bytes.map_err(|error| unfit(name, &format!("cannot be read ({error})")))
        };
        let token = Token::read(&String::from_utf8_lossy(&read(TOKEN)?)).map_err(|why| unfit(TOKEN, &why))?;
        let certificates = |name: &str| {
            let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(name)?).collect();
            let found = found.map_err(|error| unfit(name, &format!("is no certificate ({error})")))?;
            if found.is_empty() { Err(unfit(name, &"has no certificate (PEM)")) } else { Ok(found) }
        };
        let mut roots = RootCertStore::empty();
        for root in certificates(CA)? {
            roots.add(root).map_err(|error| unfit(CA, &format!("is no certificate of a CA ({error})")))?;
        }
        let key = PrivateKeyDer::from_pem_slice(&read(KEY)?);
        let key = key.map_err(|error| unfit(KEY, &format!("is no private key ({error})")))?;
        let tls = configure(roots, certificates(CERTIFICATE)?, key)?.map_err(|error| {
            format!("--auth: '{}' does not fit {CERTIFICATE} beside it ({error})", folder.join(KEY).display())
        })?;
        Ok(Self { token: Some(token), tls: Some(Arc::new(tls)) })
    }
}

fn no_tls(error: impl Display) -> String {
    format!("--auth: no TLS: {error}")
}

impl ControllerCredentials {
    /// Reads the folder.
    ///
    /// # Errors
    /// The file that is missing or broken, and what is accepted; for a user.
    pub fn of_controller(folder: &Path) -> Result<Self, String> {
        Self::read(folder, |roots, chain, key| {
            let config = ClientConfig::builder_with_provider(Arc::new(default_provider()));
            let config = config.with_safe_default_protocol_versions().map_err(no_tls)?;
            Ok(config.with_root_certificates(roots).with_client_auth_cert(chain, key))
        })
    }

    /// Our end of a connection.
    pub(crate) fn connection(&self) -> Result<Option<Connection>, String> {
        let Some(config) = &self.tls else { return Ok(None) };
        let name = ServerName::try_from(SERVER_NAME).expect("a constant that is a DNS name");
        let connection = ClientConnection::new(config.clone(), name);
        Ok(Some(connection.map_err(|error| format!("no TLS: {error}"))?.into()))
    }
}

impl AgentCredentials {
    /// Reads the folder.
    ///
    /// # Errors
    /// The file that is missing or broken, and what is accepted; for a user.
    pub fn of_agent(folder: &Path) -> Result<Self, String> {
        Self::read(folder, |roots, chain, key| {
            let provider = Arc::new(default_provider());
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
            let config = ServerConfig::builder_with_provider(provider);
            let config = config.with_safe_default_protocol_versions().map_err(no_tls)?;
            let config = config.with_client_cert_verifier(verifier.build().map_err(no_tls)?);
            Ok(config.with_single_cert(chain, key))
        })
    }

    /// Our end of a connection.
    pub(crate) fn connection(&self) -> Result<Option<Connection>, String> {
        let Some(config) = &self.tls else { return Ok(None) };
        let connection = ServerConnection::new(config.clone());
        Ok(Some(connection.map_err(|error| format!("no TLS: {error}"))?.into()))
    }
}

/// Makes a folder.
///
/// # Errors
/// It holds something already, or cannot be written; for a user.
pub fn create(folder: &Path) -> Result<(), String> {
    let given = folder.display();
    let expected = "expected the path of a new or empty folder";
    let unfit = |error: io::Error| format!("invalid value '{given}' for --new-auth ({error}): {expected}");
    let failed = |error: rcgen::Error| format!("--new-auth: cannot make a certificate: {error}");
    match folder.read_dir().map(|mut entries| entries.next().is_none()) {
        Ok(false) => {
            return Err(format!("invalid value '{given}' for --new-auth (it is not empty): {expected}"));
        }
        Ok(true) => std::fs::set_permissions(folder, Permissions::from_mode(0o700)).map_err(unfit)?,
        Err(_) => DirBuilder::new().mode(0o700).create(folder).map_err(unfit)?,
    }
    let mut secret = [0; TOKEN_BYTES];
    let random = SystemRandom::new().fill(&mut secret);
    random.map_err(|_| "--new-auth: no random numbers available".to_owned())?;
    let token: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    let issuer =
        CertifiedIssuer::self_signed(ca_params(), KeyPair::generate().map_err(failed)?).map_err(failed)?;
    let key = KeyPair::generate().map_err(failed)?;
    let certificate = host_params().map_err(failed)?.signed_by(&key, &issuer).map_err(failed)?;
    let contents = [token + "\n", issuer.pem(), certificate.pem(), key.serialize_pem()];
    files(folder).iter().zip(contents).try_for_each(|(path, text)| write_private(path, &text)).map_err(unfit)
}

fn ca_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = name("brunt agents CA");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params
}

fn host_params() -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(vec![SERVER_NAME.to_owned()])?;
    params.distinguished_name = name("brunt agents");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    Ok(params)
}

fn name(common: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common);
    name
}

/// Writes a file that only its owner can read, and that was not there.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(text.as_bytes())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A folder that is removed with the value.
    pub(crate) struct Folder(pub(crate) PathBuf);

    impl Folder {
        /// Where nothing is yet.
        pub(crate) fn absent(name: &str) -> Self {
            Self(std::env::temp_dir().join(format!("brunt-auth-{}-{name}", std::process::id())))
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn only_the_owner_reads_a_new_folder() {
        let folder = Folder::absent("modes");
        create(&folder.0).unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o7777;
        assert_eq!((mode(&folder.0), files(&folder.0).map(|path| mode(&path))), (0o700, [0o600; 4]));
        assert!(AgentCredentials::of_agent(&folder.0).is_ok());
        let refused = create(&folder.0).unwrap_err();
        assert_eq!(
            refused,
            format!(
                "invalid value '{}' for --new-auth (it is not empty): expected the path of a new or empty folder",
                folder.0.display()
            )
        );
        std::fs::remove_dir_all(&folder.0).unwrap();
        DirBuilder::new().mode(0o755).create(&folder.0).unwrap();
        assert_eq!((create(&folder.0), mode(&folder.0)), (Ok(()), 0o700));
    }

    #[test]
    fn secrets_that_others_can_read_are_found() {
        let folder = Folder::absent("exposed");
        create(&folder.0).unwrap();
        assert_eq!(exposed_secrets(&folder.0), Vec::<PathBuf>::new());
        let expose = |name: &str| {
            let path = folder.0.join(name);
            std::fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
            path
        };
        expose(CERTIFICATE);
        assert_eq!(exposed_secrets(&folder.0), Vec::<PathBuf>::new());
        let expected = [expose(TOKEN), expose(KEY)];
        assert_eq!(exposed_secrets(&folder.0), expected);
        for (mode, is_own, expected) in [
            (0o400, true, false),
            (0o440, true, true),
            (0o440, false, false),
            (0o460, false, true),
            (0o444, false, true),
        ] {
            assert_eq!(is_exposed(0o100_000 | mode, is_own), expected, "{mode:o} {is_own}");
        }
    }

    #[test]
    fn missing_and_broken_files_are_named() {
        let folder = Folder::absent("broken");
        create(&folder.0).unwrap();
        let table = [
            (TOKEN, "short", "begins with no token of at least 8 bytes"),
            (CA, "", "has no certificate (PEM)"),
            (CERTIFICATE, "", "has no certificate (PEM)"),
            (KEY, "", "is no private key ("),
        ];
        for (name, text, why) in table {
            let path = folder.0.join(name);
            let whole = std::fs::read(&path).unwrap();
            let said = |folder: &Folder| AgentCredentials::of_agent(&folder.0).map(drop).unwrap_err();
            std::fs::remove_file(&path).unwrap();
            let begin = format!("--auth: '{}' ", path.display());
            assert!(
                said(&folder).starts_with(&format!("{begin}cannot be read (No such file")),
                "{}",
                said(&folder)
            );
            std::fs::write(&path, text).unwrap();
            assert!(said(&folder).starts_with(&format!("{begin}{why}")), "{}", said(&folder));
            std::fs::write(&path, whole).unwrap();
        }
    }
}
