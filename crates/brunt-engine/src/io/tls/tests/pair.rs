//! TLS with both ends in memory: records cut anywhere arrive whole, unsent bytes do not count as sent, and received
//! bytes precede errors.
//!
//! The peer is the library's own server, which echoes every byte. Its certificate and key are files beside this
//! one, for these tests only.

use super::*;
use crate::transport::tls_client::TlsClient;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::version::{TLS12, TLS13};
use rustls::{
    CipherSuite, CipherSuiteCommon, RootCertStore, ServerConfig, ServerConnection, SupportedCipherSuite,
    SupportedProtocolVersion, Tls12CipherSuite, Tls13CipherSuite,
};
use std::io::{Read, Write};
use std::sync::Arc;

const CERTIFICATE: &[u8] = include_bytes!("certificate.der");
const KEY: &[u8] = include_bytes!("key.der");

const VERSIONS: [&SupportedProtocolVersion; 2] = [&TLS12, &TLS13];

/// AES-GCM suites whose keys are used up after this many records.
fn provider(records_max: u64) -> CryptoProvider {
    let common = |common: &CipherSuiteCommon| CipherSuiteCommon {
        suite: common.suite,
        hash_provider: common.hash_provider,
        confidentiality_limit: records_max,
    };
    let worn = |suite: &SupportedCipherSuite| match suite {
        SupportedCipherSuite::Tls12(suite) => {
            SupportedCipherSuite::Tls12(Box::leak(Box::new(Tls12CipherSuite {
                common: common(&suite.common),
                prf_provider: suite.prf_provider,
                kx: suite.kx,
                sign: suite.sign,
                aead_alg: suite.aead_alg,
            })))
        }
        SupportedCipherSuite::Tls13(suite) => {
            SupportedCipherSuite::Tls13(Box::leak(Box::new(Tls13CipherSuite {
                common: common(&suite.common),
                hkdf_provider: suite.hkdf_provider,
                aead_alg: suite.aead_alg,
                quic: suite.quic,
            })))
        }
    };
    let wanted =
        [CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, CipherSuite::TLS13_AES_128_GCM_SHA256];
    let all = ring::default_provider();
    let suites = all.cipher_suites.iter().filter(|suite| wanted.contains(&suite.suite()));
    CryptoProvider { cipher_suites: suites.map(worn).collect(), ..all }
}

fn client(version: &'static SupportedProtocolVersion, records_max: u64) -> TlsClient {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(CERTIFICATE)).unwrap();
    let builder = rustls::ClientConfig::builder_with_provider(Arc::new(provider(records_max)));
    let config = builder
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsClient::of(config, "cache.test")
}

/// A plain client that trusts [`server`].
pub(crate) fn any_client() -> TlsClient {
    client(&TLS13, u64::MAX)
}

/// The library's server.
pub(crate) fn server() -> ServerConnection {
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let key = PrivatePkcs8KeyDer::from(KEY).into();
    let mut config = builder.with_single_cert(vec![CertificateDer::from(CERTIFICATE)], key).unwrap();
    // The server sends no session tickets.
    config.send_tls13_tickets = 0;
    ServerConnection::new(Arc::new(config)).unwrap()
}

/// The peer as its socket: sent bytes reach it at once, its own come in pieces.
struct Peer {
    server: ServerConnection,
    /// Plain bytes received.
    had: Vec<u8>,
    /// `Connected` was reported.
    is_up: bool,
    /// Its unread bytes, and the number of bytes read before.
    said: Vec<u8>,
    read: usize,
    /// End of the first piece.
    cut: usize,
    current: Vec<u8>,
    /// Sends fail.
    is_deaf: bool,
    /// It sends malformed bytes after its next answer.
    babbles: bool,
}

impl Peer {
    fn new(cut: usize) -> Self {
        Self {
            server: server(),
            had: Vec::new(),
            is_up: false,
            said: Vec::new(),
            read: 0,
            cut,
            current: Vec::new(),
            is_deaf: false,
            babbles: false,
        }
    }

    fn hear(&mut self, mut records: &[u8]) {
        while !records.is_empty() {
            self.server.read_tls(&mut records).unwrap();
            let state = self.server.process_new_packets().unwrap();
            let mut plain = vec![0; state.plaintext_bytes_to_read()];
            self.server.reader().read_exact(&mut plain).unwrap();
            self.server.writer().write_all(&plain).unwrap();
            self.had.extend_from_slice(&plain);
        }
        while self.server.wants_write() {
            self.server.write_tls(&mut self.said).unwrap();
        }
        if self.babbles {
            self.said.extend_from_slice(b"this is no record");
        }
    }
}

impl Wire for Peer {
    fn clock_ns(&self) -> u64 {
        7
    }

    #[expect(unsafe_code, reason = "the seam has it; the bytes are read at once")]
    unsafe fn hand_over(&mut self, _index: ConnectionIndex, records: &[u8]) -> Option<SendResult> {
        if self.is_deaf {
            return Some(SendResult { taken: Err(libc::EPIPE), at_ns: 7 });
        }
        self.hear(records);
        Some(SendResult { taken: Ok(records.len()), at_ns: 7 })
    }

    fn hang_up(&mut self, _index: ConnectionIndex, _mode: CloseMode) {}

    fn records(&self, chunk: Chunk) -> &[u8] {
        &self.current[chunk.start..chunk.start + chunk.len]
    }
}

impl Iterator for Peer {
    type Item = Completion;

    fn next(&mut self) -> Option<Completion> {
        if !self.is_up {
            self.is_up = true;
            return Some(Completion { index: 0, at_ns: 7, polled_ns: 7, kind: CompletionKind::Connected });
        }
        if self.said.is_empty() {
            return None;
        }
        let len =
            if self.read < self.cut { self.said.len().min(self.cut - self.read) } else { self.said.len() };
        self.current = self.said.drain(..len).collect();
        self.read += len;
        let kind = CompletionKind::Received(Chunk { start: 0, len });
        Some(Completion { index: 0, at_ns: 7, polled_ns: 7, kind })
    }
}

/// Reported events of a connection, in order.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    is_connected: bool,
    plain: Vec<u8>,
    /// The end; nothing follows it.
    end: Option<Option<i32>>,
}

fn listen(tls: &mut Driven<Peer>, told: &mut Told) {
    while let Some(completion) = tls.next() {
        assert_eq!(told.end, None, "{completion:?} after the end");
        match completion.kind {
            CompletionKind::Connected => told.is_connected = true,
            CompletionKind::Received(chunk) => {
                assert!(told.is_connected && chunk.len > 0);
                told.plain.extend_from_slice(tls.tunnels.plain(chunk));
            }
            CompletionKind::Closed(errno) => told.end = Some(errno),
            other => panic!("{other:?}"),
        }
    }
}

/// A connection after its handshake.
fn established(
    version: &'static SupportedProtocolVersion,
    records_max: u64,
    cut: usize,
) -> (Driven<Peer>, Told) {
    let mut tls = Driven::new(Peer::new(cut), &client(version, records_max));
    let mut told = Told::default();
    listen(&mut tls, &mut told);
    assert!(told.is_connected, "{told:?}");
    (tls, told)
}

fn send(tls: &mut Driven<Peer>, parts: &[&[u8]]) -> Result<usize, i32> {
    let parts: Vec<_> = parts.iter().map(|part| IoSlice::new(part)).collect();
    tls.tunnels.over(&mut tls.wire).send(0, &parts).unwrap().taken
}

#[test]
fn records_cut_anywhere_arrive_whole() {
    let requests: [&[u8]; 3] = [b"get a\r\n", &[b'x'; 300], b"\r\n"];
    for version in VERSIONS {
        let mut total = 0;
        for cut in 1.. {
            let (mut tls, mut told) = established(version, u64::MAX, cut);
            for request in requests {
                assert_eq!(send(&mut tls, &[&request[..1], &request[1..]]), Ok(request.len()));
                listen(&mut tls, &mut told);
            }
            let expected = Told { is_connected: true, plain: requests.concat(), end: None };
            assert_eq!(told, expected, "{version:?} cut at {cut}");
            assert_eq!(tls.wire.had, requests.concat());
            total = total.max(tls.wire.read);
            if cut > total {
                break;
            }
        }
        assert!(total > 600, "{total}");
    }
}

/// The peer answers, sends malformed bytes at once, and takes no alert: the answer is reported whole, then the end.
#[test]
fn received_bytes_precede_the_end() {
    let request = [b'x'; 300];
    for version in VERSIONS {
        let (tls, _) = established(version, u64::MAX, 0);
        // Its length varies: a signature may have one byte more.
        let handshake = tls.wire.read - 10;
        for behind in 0..400 {
            let (mut tls, mut told) = established(version, u64::MAX, handshake + behind);
            tls.wire.babbles = true;
            assert_eq!(send(&mut tls, &[&request]), Ok(request.len()));
            tls.wire.is_deaf = true;
            listen(&mut tls, &mut told);
            let expected = Told { is_connected: true, plain: request.to_vec(), end: Some(Some(TLS_ERRNO)) };
            assert_eq!(told, expected, "{version:?} cut {behind} bytes behind the handshake");
        }
    }
}

/// A used-up key of TLS 1.2: bytes offered then are not taken and never reach the server, even when the connection
/// closes; earlier ones have.
#[test]
fn used_up_keys_take_nothing() {
    for records_max in [5, 6, 20] {
        let (mut tls, mut told) = established(&TLS12, records_max, 0);
        let mut taken = 0;
        let broken = (0..100).find_map(|number| {
            // Some are two records long, so that the limit may fall between.
            let large = vec![b'y'; if number % 3 == 2 { 20_000 } else { 2 }];
            match send(&mut tls, &[&large]) {
                Ok(len) => {
                    assert_eq!(len, large.len());
                    taken += len;
                    listen(&mut tls, &mut told);
                    None
                }
                Err(errno) => Some(errno),
            }
        });
        assert_eq!((broken, tls.wire.had.len(), told.plain.len()), (Some(TLS_ERRNO), taken, taken));
        assert!(taken > 0);
        tls.tunnels.over(&mut tls.wire).close(0, CloseMode::Orderly);
        assert_eq!(tls.wire.had.len(), taken, "{records_max}");
    }
}

/// TLS 1.3 changes keys unnoticed.
#[test]
fn used_up_keys_are_changed() {
    let (mut tls, mut told) = established(&TLS13, 5, 0);
    for number in 0..100u8 {
        assert_eq!(send(&mut tls, &[&[number; 40]]), Ok(40));
        listen(&mut tls, &mut told);
    }
    let expected: Vec<u8> = (0..100).flat_map(|number| [number; 40]).collect();
    assert_eq!((told.plain, told.end, tls.wire.had), (expected.clone(), None, expected));
}
