//! TLS against real servers and against servers of our own that misbehave: what is counted is what TCP counts, what cannot be
//! agreed on is named, and what goes wrong later is data.

use crate::measured::Measured;
use crate::server::{Directory, Server, beside_others, brunt, lasting_port};
use crate::transports::{INTERFACES, ledger, run};
use rustix::event::{PollFd, PollFlags, poll};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;

/// Certificates of a test: `ca.pem` has issued `server.pem` (for cache.test and 127.0.0.1) and `client.pem`, `other.pem` nothing;
/// each but `ca.pem` and `other.pem` has a key of its name.
pub(crate) struct Certificates(Directory);

impl Certificates {
    /// Makes them; `None` (and a word on stderr) where there is no program to make them with.
    pub(crate) fn issue() -> Option<Self> {
        let papers = Self(Directory::new());
        let tried = Command::new("openssl").arg("version").stdout(Stdio::null()).status();
        if let Err(error) = tried {
            eprintln!("SKIPPED: no openssl to make certificates with: {error}");
            return None;
        }
        for issuer in ["ca", "other"] {
            let out = format!("{issuer}.pem");
            papers.openssl(&["req", "-x509", "-subj", &format!("/CN={issuer}"), "-out", &out], issuer);
        }
        for (holder, names) in [
            ("server", "DNS:cache.test,DNS:cache,DNS:node1,IP:127.0.0.1,IP:127.0.0.4"),
            ("client", "DNS:client.test"),
        ] {
            let (request, out) = (format!("{holder}.csr"), format!("{holder}.pem"));
            papers.openssl(&["req", "-subj", &format!("/CN={holder}"), "-out", &request], holder);
            let extensions = format!("subjectAltName={names}\nbasicConstraints=CA:FALSE\n");
            std::fs::write(papers.0.join("extensions"), extensions).unwrap();
            papers.call(&[
                "x509",
                "-req",
                "-in",
                &request,
                "-CA",
                "ca.pem",
                "-CAkey",
                "ca.key",
                "-CAcreateserial",
                "-days",
                "2",
                "-extfile",
                "extensions",
                "-out",
                &out,
            ]);
        }
        Some(papers)
    }

    /// With a new key of this name.
    fn openssl(&self, arguments: &[&str], key: &str) {
        let key = format!("{key}.key");
        let new_key = [
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
            "-keyout",
            &key,
        ];
        self.call(&[arguments, &new_key].concat());
    }

    /// A holder with a new key, `ALGORITHM[:SIZE or curve]`, that only itself vouches for.
    fn sign_oneself(&self, holder: &str, key_and_more: &[&str]) {
        let (key, more) = key_and_more.split_first().unwrap();
        let (algorithm, size) = key.split_once(':').unwrap_or((key, ""));
        let size = match algorithm {
            "ec" => format!("ec_paramgen_curve:{size}"),
            _ => format!("rsa_keygen_bits:{size}"),
        };
        let sized: &[&str] = if key.contains(':') { &["-pkeyopt", &size] } else { &[] };
        let [subject, out, key] = [format!("/CN={holder}"), format!("{holder}.pem"), format!("{holder}.key")];
        let fixed =
            ["req", "-x509", "-nodes", "-days", "2", "-subj", &subject, "-out", &out, "-keyout", &key];
        self.call(&[&fixed[..], &["-newkey", algorithm], sized, more].concat());
    }

    /// A holder with the key of another, whose certificate ended yesterday.
    fn expire(&self, of: &str, holder: &str) {
        let [request, key, out] = [format!("{of}.csr"), format!("{of}.key"), format!("{holder}.pem")];
        let fixed = ["x509", "-req", "-days", "-1", "-in", &request, "-signkey", &key, "-out", &out];
        self.call(&[&fixed[..], &["-extfile", "extensions"]].concat());
        std::fs::copy(self.path(&key), self.path(&format!("{holder}.key"))).unwrap();
    }

    /// Runs openssl. Yields what it says.
    fn call(&self, arguments: &[&str]) -> String {
        let output = Command::new("openssl").args(arguments).current_dir(&self.0).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    /// The configuration of a server of our own.
    pub(crate) fn server_config(&self) -> Arc<ServerConfig> {
        let chain =
            CertificateDer::pem_file_iter(self.path("server.pem")).unwrap().map(Result::unwrap).collect();
        let key = PrivateKeyDer::from_pem_file(self.path("server.key")).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder =
            ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        Arc::new(builder.with_no_client_auth().with_single_cert(chain, key).unwrap())
    }
}

/// A redis-server that speaks TLS at the second address, and plainly at its own.
pub(crate) fn redis_over_tls(papers: &Certificates, flags: &[&str]) -> Option<(Server, String)> {
    redis_as("server", papers, flags, Server::redis)
}

/// The same with the certificate and the key of this holder, begun like this.
fn redis_as(
    holder: &str,
    papers: &Certificates,
    flags: &[&str],
    begin: impl Fn(&[&str]) -> Option<Server>,
) -> Option<(Server, String)> {
    let port = lasting_port().to_string();
    let [ca, certificate, key] =
        ["ca.pem", &format!("{holder}.pem"), &format!("{holder}.key")].map(|name| papers.path(name));
    let own = [
        "--tls-port",
        &port,
        "--tls-ca-cert-file",
        &ca,
        "--tls-cert-file",
        &certificate,
        "--tls-key-file",
        &key,
    ];
    let server = begin(&[&own, flags].concat())?;
    // When it answers, it listens everywhere.
    server.redis_says("PING");
    Some((server, format!("127.0.0.1:{port}")))
}

#[test]
fn redis_counts_match_over_tls() {
    let _beside = beside_others();
    let Some(papers) = Certificates::issue() else { return };
    let ca = papers.path("ca.pem");
    let Some((server, address)) = redis_over_tls(&papers, &["--tls-auth-clients", "no"]) else { return };
    let plain = ["--protocol", "resp3"];
    let over_tcp = run(&server.address, &plain);
    for io in INTERFACES {
        server.redis_says("FLUSHALL\r\nCONFIG RESETSTAT");
        let measured =
            run(&address, &[&plain[..], &["--set", "transport=tls", "--tls-ca", &ca, "--io", io]].concat());
        assert_eq!(ledger(&measured), ledger(&over_tcp), "{io}\n{}", measured.text);
        let calls = server.redis_counts("commandstats");
        assert_eq!(calls["cmdstat_get"], measured.over_phases("ops.get"), "{io}\n{}", measured.text);
        check_handshakes(&measured);
        assert!(measured.text.contains(", resp3 over tls · "), "{}", measured.text);
    }
}

/// Every connection had one, and took no longer for it than for all.
fn check_handshakes(measured: &Measured) {
    let count = |key: &str| measured.count(&format!("client.connections.{key}"));
    assert_eq!(count("handshake_ns.count"), count("established"), "{}", measured.text);
    assert!(
        count("handshake_ns.min") > 0 && count("handshake_ns.max") <= count("connect_ns.max"),
        "{}",
        measured.text
    );
    assert!(measured.text.contains(" handshakes · "), "{}", measured.text);
}

#[test]
fn memcached_counts_match_over_tls() {
    let _beside = beside_others();
    let Some(papers) = Certificates::issue() else { return };
    let ca = papers.path("ca.pem");
    let Some(over_tcp) = Server::memcached(&[]) else { return };
    let expected = ledger(&run(&over_tcp.address, &[]));
    for io in INTERFACES {
        let address = format!("127.0.0.1:{}", lasting_port());
        let files =
            format!("ssl_chain_cert={},ssl_key={}", papers.path("server.pem"), papers.path("server.key"));
        let Some(server) = Server::memcached_by_tls(&address, &files) else { return };
        let measured = run(&address, &["--set", "transport=tls", "--tls-ca", &ca, "--io", io]);
        assert_eq!(ledger(&measured), expected, "{io}\n{}", measured.text);
        assert_eq!(measured.over_phases("ops.set"), server.statistics()["cmd_set"], "{}", measured.text);
        check_handshakes(&measured);
        // The statistics came by TLS, too.
        measured.check_server_counts();
        assert_eq!(measured.fact("were not verified"), None, "{}", measured.text);
    }
}

const UNVERIFIED: &str = "the servers' certificates were not verified (--tls-insecure)";

/// With `--tls-insecure` any certificate is taken, and the report says so. Our own certificate is shown where one is wanted.
#[test]
fn certificates_are_verified() {
    let _beside = beside_others();
    let Some(papers) = Certificates::issue() else { return };
    let [ca, certificate, key] = ["ca.pem", "client.pem", "client.key"].map(|name| papers.path(name));
    let Some((_server, address)) = redis_over_tls(&papers, &["--tls-auth-clients", "yes"]) else { return };
    for io in INTERFACES {
        let small = [
            "--protocol",
            "resp2",
            "--set",
            "transport=tls",
            "--keys",
            "50",
            "-n",
            "500",
            "--warmup",
            "0s",
            "--io",
            io,
            "--tls-cert",
            &certificate,
            "--tls-key",
            &key,
        ];
        let measured = Measured::run(&address, &[&small[..], &["--tls-insecure"]].concat());
        assert_eq!(measured.count("counts.requests.completed"), 500, "{}", measured.text);
        assert_eq!(measured.fact("certificates"), Some(UNVERIFIED), "{}", measured.text);
        assert!(measured.text.contains("certificates not verified"), "{}", measured.text);
        let measured = Measured::run(
            &address,
            &[&small[..], &["--tls-ca", &ca, "--tls-server-name", "cache.test"]].concat(),
        );
        assert_eq!(
            (measured.count("counts.requests.completed"), measured.fact("certificates")),
            (500, None),
            "{}",
            measured.text
        );
        assert_eq!(measured.at("plan.tls-server-name"), "cache.test");
    }
}

/// What `--tls-insecure` is for: a certificate of any kind, of any key, in either version of TLS.
#[test]
fn tls_insecure_accepts_any_certificate() {
    let _beside = beside_others();
    let Some(papers) = Certificates::issue() else { return };
    let old_and_weak = ["rsa:1024", "-sha1"];
    papers.sign_oneself("elsewhere", &["ec:prime256v1", "-addext", "subjectAltName=DNS:elsewhere.test"]);
    papers.sign_oneself("old-and-weak", &old_and_weak);
    // Keys whose signatures the library of ours cannot verify.
    papers.sign_oneself("p521", &["ec:secp521r1"]);
    papers.sign_oneself("ed448", &["ed448"]);
    papers.sign_oneself("pss", &["rsa-pss:2048"]);
    papers.expire("server", "expired");
    let version_1 = include_str!("tls/version-1.pem");
    for name in ["version-1.pem", "version-1.key"] {
        std::fs::write(papers.path(name), version_1).unwrap();
    }
    // A server that takes weak keys for its own.
    let careless = papers.path("openssl.cnf");
    let sections = "openssl_conf = all\n[all]\nssl_conf = ssl\n[ssl]\nsystem_default = tls\n[tls]\nCipherString = DEFAULT@SECLEVEL=0\n";
    std::fs::write(&careless, sections).unwrap();
    let text = papers.call(&["x509", "-in", "version-1.pem", "-noout", "-text"]);
    assert!(text.contains("Version: 1 "), "{text}");
    let either = &["TLSv1.2", "TLSv1.3"][..];
    // In version 1.2 a server has no use for a key on a curve that we exchange no keys on (RFC 8422, section 5.1), and rustls knows of no
    // way for the others to sign there.
    let newer = &["TLSv1.3"][..];
    let table = [
        ("server", either),
        ("elsewhere", either),
        ("expired", either),
        ("version-1", either),
        ("old-and-weak", either),
        ("p521", newer),
        ("ed448", newer),
        ("pss", newer),
    ];
    for (holder, versions) in table {
        for version in versions {
            eprintln!("{holder} {version}");
            let flags = ["--tls-protocols", version, "--tls-auth-clients", "no"];
            let begin = |flags: &[&str]| Server::redis_with_openssl(&careless, flags);
            let Some((_server, address)) = redis_as(holder, &papers, &flags, begin) else { return };
            let tls = ["--protocol", "resp2", "--set", "transport=tls", "--tls-insecure"];
            let flags = [&tls[..], &["--keys", "20", "-n", "100", "-c", "2", "--warmup", "0s"]].concat();
            let measured = Measured::run(&address, &flags);
            let text = &measured.text;
            assert_eq!(measured.count("counts.requests.completed"), 100, "{holder} {version}\n{text}");
            assert_eq!(measured.fact("certificates"), Some(UNVERIFIED), "{holder} {version}\n{text}");
            // No client that verifies takes one of these: of `server` the issuer is not known.
            let output =
                brunt(&["load", "-s", &address, "--protocol", "resp2", "--set", "transport=tls", "--quiet"])
                    .args(["--keys", "10", "--tls-ca", &papers.path("other.pem")])
                    .output()
                    .unwrap();
            let text = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(5), "{holder} {version}: {text}");
            assert!(text.contains("TLS with "), "{holder} {version}: {text}");
        }
    }
}

/// One message and exit code 5, whichever side refuses, and whenever it says so.
#[test]
fn failed_tls_negotiations_are_named() {
    let _beside = beside_others();
    let Some(papers) = Certificates::issue() else { return };
    let [ca, other, certificate, key] =
        ["ca.pem", "other.pem", "client.pem", "client.key"].map(|name| papers.path(name));
    let Some((_open, lenient)) = redis_over_tls(&papers, &["--tls-auth-clients", "no"]) else { return };
    let Some((_strict, strict)) = redis_over_tls(&papers, &["--tls-auth-clients", "yes"]) else { return };
    let old = ["--tls-protocols", "TLSv1.2", "--tls-ciphers", "AES128-SHA", "--tls-auth-clients", "no"];
    let Some((_old, old)) = redis_over_tls(&papers, &old) else { return };
    let (other_certificate, other_key) = (papers.path("other.pem"), papers.path("other.key"));
    let table: &[(&str, &[&str], &str)] = &[
        (&lenient, &["--tls-ca", &other], "certificate not signed by a trusted CA"),
        (&lenient, &["--tls-ca", &ca, "--tls-server-name", "other.test"], "not valid for name"),
        (
            &strict,
            &["--tls-ca", &ca],
            "TLS alert certificate_required; it requires a client certificate: set --tls-cert and --tls-key",
        ),
        (
            &strict,
            &["--tls-ca", &ca, "--tls-cert", &other_certificate, "--tls-key", &other_key],
            "TLS alert unknown_ca; it rejects the client certificate (--tls-cert, --tls-key)",
        ),
        (&old, &["--tls-ca", &ca], "TLS alert handshake_failure"),
        (
            &silent_server(),
            &["--tls-ca", &ca, "--timeout", "300ms"],
            "the peer did not answer the handshake in time; without TLS use --set transport=tcp, in a URL redis:// or memcached://",
        ),
        (&terse_server(b""), &["--tls-ca", &ca], "connection closed during the handshake"),
        (&terse_server(b"ERROR\r\n"), &["--tls-ca", &ca], "the reply is not TLS"),
    ];
    for io in INTERFACES {
        for (address, flags, message) in table {
            let output =
                brunt(&["run", "-s", address, "--protocol", "resp2", "--set", "transport=tls", "--io", io])
                    .args(["-q", "-c", "2", "--keys", "10", "-n", "10"])
                    .args(*flags)
                    .output()
                    .unwrap();
            let text = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(5), "{message}: {text}");
            let is_named = text.contains(message) && text.contains(*address);
            assert!(is_named && text.lines().count() == 1, "{message}: {text}");
        }
    }
    // DetectedProtocol to in plain it says nothing that is TLS, or an alert.
    for address in [&lenient, &terse_server(b"\x15\x03\x03\x00\x02\x02\x46")] {
        let flags = ["--protocol", "resp2", "-q", "-c", "2", "--keys", "10", "-n", "10"];
        let output = brunt(&["run", "-s", address]).args(flags).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(5) && text.contains("--set transport=tls"), "{text}");
    }
    // Without a preload the handshake is over, and the schedule begins, before the server has had its say.
    for io in INTERFACES {
        let flags =
            ["--tls-ca", &ca, "--no-preload", "-t", "60s", "-r", "100", "-c", "3", "-T", "2", "--io", io];
        let output = brunt(&["run", "-s", &strict, "--protocol", "resp2", "--set", "transport=tls", "-q"])
            .args(flags)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(5), "{text}");
        let is_named = text.contains("TLS alert certificate_required") && text.contains(&strict);
        assert!(is_named && text.lines().count() == 1, "{text}");
    }
    let mistakes: &[(&[&str], &str)] = &[
        (&["--tls-ca", "/no/such"], "invalid value '/no/such' for --tls-ca"),
        (&["--tls-ca", &key], "--tls-ca"),
        (&["--tls-ca", &ca, "--tls-cert", &certificate, "--tls-key", &certificate], "--tls-key"),
        (&["--tls-ca", &ca, "--tls-cert", &certificate, "--tls-key", &other_key], "--tls-key"),
        (&["--tls-ca", &ca, "--tls-server-name", "a b"], "invalid value 'a b' for --tls-server-name"),
    ];
    for (flags, message) in mistakes {
        let output =
            brunt(&["run", "-s", "127.0.0.1:1", "--set", "transport=tls"]).args(*flags).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(message) && text.contains("expected "), "{message}: {text}");
    }
}

/// A client that speaks plainly to a port for TLS, or TLS to a plain one, or to a server that says nothing, is told what was not answered and
/// which option may have been meant. That no server listens is another matter.
#[test]
fn plain_and_tls_ports_are_told_apart() {
    let _beside = beside_others();
    let Some(papers) = Certificates::issue() else { return };
    let ca = papers.path("ca.pem");
    let Some((server, by_tls)) = redis_over_tls(&papers, &["--tls-auth-clients", "no"]) else { return };
    let (silent, unserved) = (silent_server(), format!("127.0.0.1:{}", lasting_port()));
    let tls = ["--set", "transport=tls", "--tls-ca", &ca];
    let hello = |address: &str, end: &str| format!("error: no reply from {address} {end}\n");
    let other = "for a TLS port add --set transport=tls";
    let table: &[(&[&str], &[&str], String)] = &[
        (
            &["-s", &by_tls, "--protocol", "resp3"],
            &[],
            hello(&by_tls, &format!("to HELLO: connection closed; {other}")),
        ),
        (
            &["-s", &silent, "--protocol", "resp2", "--password", "x"],
            &[],
            hello(&silent, &format!("to AUTH within 300ms; {other}")),
        ),
        (
            &["-s", &silent, "--protocol", "memcached-binary", "--set", "user=u", "--password", "x"],
            &[],
            hello(&silent, &format!("to SASL PLAIN within 300ms; {other}")),
        ),
        (
            &["-s", &silent, "--protocol", "memcached-binary"],
            &[],
            hello(&silent, &format!("to NOOP within 300ms; {other}")),
        ),
        (
            &["-s", &server.address, "--protocol", "resp3"],
            &tls,
            format!(
                "error: TLS with {} failed: the peer did not answer the handshake in time; without TLS use --set transport=tcp, in a URL redis:// or memcached://\n",
                server.address
            ),
        ),
        (
            &["-s", &unserved, "--protocol", "resp3"],
            &tls,
            format!("error: cannot connect to {unserved}: Connection refused (os error 111)\n"),
        ),
    ];
    for io in INTERFACES {
        for (to, by, expected) in table {
            let output = brunt(&["run", "-q", "-c", "2", "--keys", "10", "-n", "10", "--io", io])
                .args(["--timeout", "300ms"])
                .args(*to)
                .args(*by)
                .output()
                .unwrap();
            let text = String::from_utf8(output.stderr).unwrap();
            assert_eq!((output.status.code(), &text), (Some(5), expected), "{io}");
        }
    }
    // Where nothing is said before the first request, that is what fails.
    let output =
        brunt(&["load", "-s", &by_tls, "--protocol", "resp2", "--keys", "10", "--quiet"]).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("0 of 10 keys stored") && text.contains(other), "{text}");
}

/// Takes every connection and says nothing.
fn silent_server() -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let mut held = Vec::new();
        listener.incoming().for_each(|stream| held.push(stream));
    });
    address
}

/// Says this when it has heard something, and ends the connection.
fn terse_server(says: &'static [u8]) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            // All of it, so that ending the connection resets nothing.
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(says);
        }
    });
    address
}

/// What a server of our own does when it has taken in so much.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ProxyBehaviour {
    /// Nothing but what it is there for.
    Upright,
    /// Keeps the connection, and says nothing more.
    Hushes,
    /// Ends the connection, and every second one before its handshake is over.
    Jilts,
    /// Changes its keys, again and again, and asks us for the same.
    Rekeys,
    /// Ends the connection, with a word or without.
    Leaves { says_so: bool },
    /// Says what is no TLS.
    Babbles,
}

/// How many reads there are between oddities.
const READS: u32 = 20;

/// TLS before another server, with such manners.
pub(crate) fn tls_proxy(upstream: &str, config: Arc<ServerConfig>, manners: ProxyBehaviour) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let upstream = upstream.to_owned();
    std::thread::spawn(move || {
        for (number, client) in listener.incoming().enumerate() {
            let mut client = client.unwrap();
            // Those after the first four, which the run begins with.
            if matches!(manners, ProxyBehaviour::Jilts) && number >= 4 && number % 2 == 0 {
                let _ = client.read(&mut [0; 4096]);
                continue;
            }
            // Whom the other takes no connection from, ours takes none from.
            let Ok(upstream) = TcpStream::connect(&upstream) else { continue };
            let tls = ServerConnection::new(config.clone()).unwrap();
            // Whatever goes wrong on a connection is its end.
            std::thread::spawn(move || relay(tls, client, upstream, manners).map_err(drop));
        }
    });
    address
}

fn relay(
    mut tls: ServerConnection,
    mut client: TcpStream,
    mut upstream: TcpStream,
    manners: ProxyBehaviour,
) -> std::io::Result<()> {
    tls.set_buffer_limit(None);
    let mut bytes = vec![0; 64 << 10];
    let mut reads = 0;
    loop {
        let mut waiting = [PollFd::new(&client, PollFlags::IN), PollFd::new(&upstream, PollFlags::IN)];
        poll(&mut waiting, None)?;
        let [from_client, from_upstream] = waiting.map(|end| !end.revents().is_empty());
        if from_client {
            if tls.read_tls(&mut client)? == 0 {
                return Ok(());
            }
            let state = tls.process_new_packets().map_err(std::io::Error::other)?;
            let plain = state.plaintext_bytes_to_read();
            if plain > 0 {
                bytes.resize(plain.max(bytes.len()), 0);
                tls.reader().read_exact(&mut bytes[..plain])?;
                upstream.write_all(&bytes[..plain])?;
                reads += 1;
            }
        }
        if from_upstream {
            let len = upstream.read(&mut bytes)?;
            if len == 0 {
                return Ok(());
            }
            tls.writer().write_all(&bytes[..len])?;
        }
        if reads == READS {
            reads = 0;
            match manners {
                ProxyBehaviour::Rekeys => tls.refresh_traffic_keys().map_err(std::io::Error::other)?,
                ProxyBehaviour::Babbles => client.write_all(b"this is no record")?,
                ProxyBehaviour::Upright => {}
                ProxyBehaviour::Hushes => loop {
                    std::thread::park();
                },
                ProxyBehaviour::Jilts => return Ok(()),
                ProxyBehaviour::Leaves { says_so } => {
                    if says_so {
                        tls.send_close_notify();
                        tls.write_tls(&mut client)?;
                    }
                    return Ok(());
                }
            }
        }
        while tls.wants_write() {
            tls.write_tls(&mut client)?;
        }
    }
}

#[test]
fn later_tls_faults_are_counted() {
    let _beside = beside_others();
    let Some(papers) = Certificates::issue() else { return };
    let server = Server::reference(&[]);
    let table = [
        (ProxyBehaviour::Rekeys, None),
        (ProxyBehaviour::Leaves { says_so: true }, Some("closed_by_peer")),
        (ProxyBehaviour::Leaves { says_so: false }, Some("closed_by_peer")),
        (ProxyBehaviour::Babbles, Some("tls_failed")),
    ];
    for io in INTERFACES {
        for (manners, fault) in table {
            let address = tls_proxy(&server.address, papers.server_config(), manners);
            let flags = [
                "-n",
                "1500",
                "-c",
                "4",
                "--depth",
                "2",
                "--keys",
                "100",
                "--warmup",
                "0s",
                "--no-preload",
                "--set",
                "server-stats=false",
                "--set",
                "transport=tls",
                "--tls-ca",
                &papers.path("ca.pem"),
                "--value-size",
                "uniform:1,20000",
                "--io",
                io,
            ];
            let measured = Measured::run(&address, &flags);
            measured.check_request_counts();
            measured.check_connections();
            let text = &measured.text;
            let ended =
                ["completed", "lost", "error"].map(|key| measured.count(&format!("counts.requests.{key}")));
            assert_eq!(
                (ended.iter().sum::<u64>(), ended[2]),
                (1500, 0),
                "{manners:?} {io}: {ended:?}\n{text}"
            );
            let faults = measured.json["events"]["faults"].as_array().unwrap();
            // Who leaves while we send may be seen to be gone by a reset.
            let is_foreseen = |kind: &str| Some(kind) == fault || fault.is_some() && kind == "reset";
            let kinds: Vec<&str> = faults.iter().map(|fault| fault["kind"].as_str().unwrap()).collect();
            assert!(kinds.iter().all(|kind| is_foreseen(kind)), "{manners:?} {io}: {kinds:?}\n{text}");
            assert_eq!(
                fault.is_some_and(|fault| kinds.contains(&fault)),
                fault.is_some(),
                "{manners:?} {io}\n{text}"
            );
            assert_eq!(ended[1] > 0, fault.is_some(), "{manners:?} {io}: {ended:?}\n{text}");
        }
    }
}

/// More than a socket takes at once, in both directions, on few connections.
#[test]
fn large_values_go_out_in_parts() {
    let _beside = beside_others();
    let Some(papers) = Certificates::issue() else { return };
    let ca = papers.path("ca.pem");
    let Some((server, address)) = redis_over_tls(&papers, &["--tls-auth-clients", "no"]) else { return };
    for io in INTERFACES {
        server.redis_says("FLUSHALL");
        let flags = [
            "--protocol",
            "resp3",
            "-n",
            "100",
            "-c",
            "2",
            "--depth",
            "4",
            "--keys",
            "20",
            "--warmup",
            "0s",
            "--mix",
            "get=1,set=1",
            "--value-size",
            "uniform:1,4MiB",
            "--set",
            "transport=tls",
            "--tls-ca",
            &ca,
            "--io",
            io,
        ];
        let measured = Measured::run(&address, &flags);
        measured.check_exit();
        measured.check_request_counts();
        assert_eq!(measured.count("counts.requests.completed"), 100, "{}", measured.text);
        assert_eq!(
            measured.count("counts.keys.hit"),
            measured.count("counts.keys.requested"),
            "{}",
            measured.text
        );
        assert_eq!(measured.faults(None), 0, "{}", measured.text);
    }
}

/// Protocol, transport, password and database out of a URL; and the password is seen by the server alone.
#[test]
fn urls_select_tls_and_credentials() {
    let _beside = beside_others();
    let Some(papers) = Certificates::issue() else { return };
    let ca = papers.path("ca.pem");
    let flags = ["--tls-auth-clients", "no", "--requirepass", "hunter2"];
    let Some((_server, address)) = redis_over_tls(&papers, &flags) else { return };
    let url = format!("rediss://:hunter2@{address}/3");
    let small = ["--keys", "50", "-n", "500", "--warmup", "0s", "--tls-ca", &ca];
    let measured = Measured::run(&url, &small);
    assert_eq!(measured.count("counts.requests.completed"), 500, "{}", measured.text);
    let says = ["protocol", "transport", "database", "password"]
        .map(|key| measured.at(&format!("plan.{key}")).clone());
    assert_eq!(serde_json::Value::from(says.to_vec()).to_string(), r#"["resp2","tls",3,"(secret)"]"#);
    assert_eq!(measured.at("host.server"), &address, "{}", measured.text);
    assert!(!format!("{} {}", measured.text, measured.json).contains("hunter2"), "{}", measured.text);
    let wrong = brunt(&["run", "-s", &url.replace("hunter2", "hunter3"), "--tls-ca", &ca]).output().unwrap();
    let text = String::from_utf8(wrong.stderr).unwrap();
    assert_eq!(wrong.status.code(), Some(5), "{text}");
    assert!(text.contains("WRONGPASS") && !text.contains("hunter"), "{text}");
}
