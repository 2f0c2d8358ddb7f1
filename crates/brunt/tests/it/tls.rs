//! TLS against real servers and against servers of our own that misbehave: what is counted is what TCP counts, what cannot be
//! agreed on is named, and what goes wrong later is data.

use crate::measured::Measured;
use crate::server::{Directory, Ended, Server, ended, lasting_port, listening, rows, silent, words};
use crate::transports::{INTERFACES, check_memcached, check_redis};
use rustix::event::{PollFd, PollFlags, poll};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};
use std::io::{Read, Write};
use std::net::TcpStream;
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
            papers.openssl(&format!("req -x509 -subj /CN={issuer} -out {issuer}.pem"), issuer);
        }
        for (holder, names) in [
            ("server", "DNS:cache.test,DNS:cache,DNS:node1,IP:127.0.0.1,IP:127.0.0.4"),
            ("client", "DNS:client.test"),
        ] {
            let (request, out) = (format!("{holder}.csr"), format!("{holder}.pem"));
            papers.openssl(&format!("req -subj /CN={holder} -out {request}"), holder);
            let extensions = format!("subjectAltName={names}\nbasicConstraints=CA:FALSE\n");
            std::fs::write(papers.0.join("extensions"), extensions).unwrap();
            papers.call(&format!("x509 -req -in {request} -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile extensions -out {out}"));
        }
        Some(papers)
    }

    /// With a new key of this name.
    fn openssl(&self, arguments: &str, key: &str) {
        let key = format!("{key}.key");
        let new_key =
            format!("-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -keyout {key}");
        self.call(&format!("{arguments} {new_key}"));
    }

    /// A holder with a new key, `ALGORITHM[:SIZE or curve]`, that only itself vouches for.
    fn sign_oneself(&self, holder: &str, key_and_more: &str) {
        let (key, more) = key_and_more.split_once(' ').unwrap_or((key_and_more, ""));
        let (algorithm, size) = key.split_once(':').unwrap_or((key, ""));
        let size = match algorithm {
            "ec" => format!("ec_paramgen_curve:{size}"),
            _ => format!("rsa_keygen_bits:{size}"),
        };
        let sized = if key.contains(':') { format!("-pkeyopt {size}") } else { String::new() };
        let [subject, out, key] = [format!("/CN={holder}"), format!("{holder}.pem"), format!("{holder}.key")];
        let fixed = format!("req -x509 -nodes -days 2 -subj {subject} -out {out} -keyout {key}");
        self.call(&format!("{fixed} -newkey {algorithm} {sized} {more}"));
    }

    /// A holder with the key of another, whose certificate ended yesterday.
    fn expire(&self, of: &str, holder: &str) {
        let [request, key, out] = [format!("{of}.csr"), format!("{of}.key"), format!("{holder}.pem")];
        self.call(&format!("x509 -req -days -1 -in {request} -signkey {key} -out {out} -extfile extensions"));
        std::fs::copy(self.path(&key), self.path(&format!("{holder}.key"))).unwrap();
    }

    /// Runs openssl. Yields what it says.
    fn call(&self, arguments: &str) -> String {
        let mut output = Ended::from(Command::new("openssl").args(words(arguments)).current_dir(&self.0));
        assert_eq!(output.exit, 0, "{arguments}");
        std::mem::take(&mut output.out)
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
pub(crate) fn redis_over_tls(papers: &Certificates, flags: &str) -> Option<(Server, String)> {
    redis_as("server", papers, flags, Server::redis)
}

/// The same with the certificate and the key of this holder, begun like this.
fn redis_as(
    holder: &str,
    papers: &Certificates,
    flags: &str,
    begin: impl Fn(&str) -> Option<Server>,
) -> Option<(Server, String)> {
    let port = lasting_port();
    let [ca, certificate, key] =
        ["ca.pem", &format!("{holder}.pem"), &format!("{holder}.key")].map(|name| papers.path(name));
    let own = format!(
        "--tls-port {port} --tls-ca-cert-file {ca} --tls-cert-file {certificate} --tls-key-file {key}"
    );
    let server = begin(&format!("{own} {flags}"))?;
    // When it answers, it listens everywhere.
    server.redis_says("PING");
    Some((server, format!("127.0.0.1:{port}")))
}

#[test]
fn counts_match_over_tls() {
    let Some(papers) = Certificates::issue() else { return };
    let flags = format!("--set transport=tls --tls-ca {}", papers.path("ca.pem"));
    let files = format!("ssl_chain_cert={},ssl_key={}", papers.path("server.pem"), papers.path("server.key"));
    let begin = || {
        let address = format!("127.0.0.1:{}", lasting_port());
        Server::memcached_by_tls(&address, &files).map(|server| (server, address))
    };
    check_memcached(&flags, begin, |measured| {
        check_handshakes(measured);
        assert_eq!(measured.fact("were not verified"), None);
    });
    let Some((server, address)) = redis_over_tls(&papers, "--tls-auth-clients no") else { return };
    check_redis(&server, &address, &flags, |measured| {
        check_handshakes(measured);
        assert!(measured.text.contains(", resp3 over tls · "));
    });
}

/// Every connection had one, and took no longer for it than for all.
fn check_handshakes(measured: &Measured) {
    let count = |key| measured.connections(key);
    assert_eq!(count("handshake_ns.count"), count("established"));
    assert!(count("handshake_ns.min") > 0 && count("handshake_ns.max") <= count("connect_ns.max"));
    assert!(measured.text.contains(" handshakes · "));
}

const UNVERIFIED: &str = "the servers' certificates were not verified (--tls-insecure)";

/// With `--tls-insecure` any certificate is taken, and the report says so. Our own certificate is shown where one is wanted.
#[test]
fn certificates_are_verified() {
    let Some(papers) = Certificates::issue() else { return };
    let [ca, certificate, key] = ["ca.pem", "client.pem", "client.key"].map(|name| papers.path(name));
    let Some((_server, address)) = redis_over_tls(&papers, "--tls-auth-clients yes") else { return };
    for io in INTERFACES {
        let small = format!(
            "--protocol resp2 --set transport=tls --keys 50 -n 500 --warmup 0s --io {io} --tls-cert {certificate} --tls-key {key}"
        );
        let measured = Measured::run(&address, &format!("{small} --tls-insecure"));
        assert_eq!(measured.requests("completed"), 500);
        assert_eq!(measured.fact("certificates"), Some(UNVERIFIED));
        assert!(measured.text.contains("certificates not verified"));
        let measured =
            Measured::run(&address, &format!("{small} --tls-ca {ca} --tls-server-name cache.test"));
        assert_eq!((measured.requests("completed"), measured.fact("certificates")), (500, None));
        assert_eq!(measured.at("plan.tls-server-name"), "cache.test");
    }
}

/// What `--tls-insecure` is for: a certificate of any kind, of any key, in either version of TLS.
#[test]
fn tls_insecure_accepts_any_certificate() {
    let Some(papers) = Certificates::issue() else { return };
    papers.sign_oneself("elsewhere", "ec:prime256v1 -addext subjectAltName=DNS:elsewhere.test");
    papers.sign_oneself("old-and-weak", "rsa:1024 -sha1");
    // Keys whose signatures the library of ours cannot verify.
    papers.sign_oneself("p521", "ec:secp521r1");
    papers.sign_oneself("ed448", "ed448");
    papers.sign_oneself("pss", "rsa-pss:2048");
    papers.expire("server", "expired");
    let version_1 = include_str!("tls/version-1.pem");
    for name in ["version-1.pem", "version-1.key"] {
        std::fs::write(papers.path(name), version_1).unwrap();
    }
    // A server that takes weak keys for its own.
    let careless = papers.path("openssl.cnf");
    let sections = "openssl_conf = all\n[all]\nssl_conf = ssl\n[ssl]\nsystem_default = tls\n[tls]\nCipherString = DEFAULT@SECLEVEL=0\n";
    std::fs::write(&careless, sections).unwrap();
    let text = papers.call("x509 -in version-1.pem -noout -text");
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
            let flags = format!("--tls-protocols {version} --tls-auth-clients no");
            let begin = |flags: &str| Server::redis_with_openssl(&careless, flags);
            let Some((_server, address)) = redis_as(holder, &papers, &flags, begin) else { return };
            let tls = "--protocol resp2 --set transport=tls --tls-insecure";
            let measured = Measured::run(&address, &format!("{tls} --keys 20 -n 100 -c 2 --warmup 0s"));
            assert_eq!(measured.requests("completed"), 100, "{holder} {version}");
            assert_eq!(measured.fact("certificates"), Some(UNVERIFIED), "{holder} {version}");
            // No client that verifies takes one of these: of `server` the issuer is not known.
            let other = papers.path("other.pem");
            let load = "--protocol resp2 --set transport=tls --quiet --keys 10";
            ended(&format!("load -s {address} {load} --tls-ca {other}")).is(5, &["TLS with "]);
        }
    }
}

/// One message and exit code 5, whichever side refuses, and whenever it says so.
#[test]
fn failed_tls_negotiations_are_named() {
    let Some(papers) = Certificates::issue() else { return };
    let [ca, other, certificate, key] =
        ["ca.pem", "other.pem", "client.pem", "client.key"].map(|name| papers.path(name));
    let Some((_open, lenient)) = redis_over_tls(&papers, "--tls-auth-clients no") else { return };
    let Some((_strict, strict)) = redis_over_tls(&papers, "--tls-auth-clients yes") else { return };
    let old = "--tls-protocols TLSv1.2 --tls-ciphers AES128-SHA --tls-auth-clients no";
    let Some((_old, old)) = redis_over_tls(&papers, old) else { return };
    let (other_key, mute, closes) = (papers.path("other.key"), silent(), terse_server(b""));
    let garbles = terse_server(b"ERROR\r\n");
    let table = format!(
        "{lenient} => --tls-ca {other} => certificate not signed by a trusted CA
         {lenient} => --tls-ca {ca} --tls-server-name other.test => not valid for name
         {strict} => --tls-ca {ca} => TLS alert CertificateRequired; it requires a client certificate: set --tls-cert and --tls-key
         {strict} => --tls-ca {ca} --tls-cert {other} --tls-key {other_key} => TLS alert UnknownCA; it rejects the client certificate (--tls-cert, --tls-key)
         {old} => --tls-ca {ca} => TLS alert HandshakeFailure
         {mute} => --tls-ca {ca} --timeout 300ms => the peer did not answer the handshake in time; without TLS use --set transport=tcp, in a URL redis:// or memcached://
         {closes} => --tls-ca {ca} => connection closed during the handshake
         {garbles} => --tls-ca {ca} => the reply is not TLS"
    );
    for io in INTERFACES {
        for [address, flags, message] in rows(&table) {
            let load = format!("--protocol resp2 --set transport=tls --io {io} -q -c 2 --keys 10 -n 10");
            ended(&format!("run -s {address} {load} {flags}")).is_line(5, &[message, address]);
        }
    }
    // Asked without TLS it answers nothing that is TLS, or an alert.
    for address in [&lenient, &terse_server(b"\x15\x03\x03\x00\x02\x02\x46")] {
        let flags = "--protocol resp2 -q -c 2 --keys 10 -n 10";
        ended(&format!("run -s {address} {flags}")).is(5, &["rediss://"]);
    }
    // Without a preload the handshake is over, and the schedule begins, before the server has had its say.
    for io in INTERFACES {
        let flags = format!("--tls-ca {ca} --no-preload -t 60s -r 100 -c 3 -T 2 --io {io}");
        let output = ended(&format!("run -s {strict} --protocol resp2 --set transport=tls -q {flags}"));
        output.is_line(5, &["TLS alert CertificateRequired", &strict]);
    }
    let mistakes = format!(
        "--tls-ca /no/such => invalid value '/no/such' for --tls-ca
         --tls-ca {key} => --tls-ca
         --tls-ca {ca} --tls-cert {certificate} --tls-key {certificate} => --tls-key
         --tls-ca {ca} --tls-cert {certificate} --tls-key {other_key} => --tls-key
         --tls-ca {ca} --tls-server-name 'a b' => invalid value 'a b' for --tls-server-name"
    );
    for [flags, message] in rows(&mistakes) {
        ended(&format!("run -s 127.0.0.1:1 --set transport=tls {flags}")).is(2, &[message, "expected "]);
    }
}

/// A client that speaks plainly to a port for TLS, or TLS to a plain one, or to a server that says nothing, is told what was not answered and
/// which option may have been meant. That no server listens is another matter.
#[test]
fn plain_and_tls_ports_are_told_apart() {
    let Some(papers) = Certificates::issue() else { return };
    let ca = papers.path("ca.pem");
    let Some((server, by_tls)) = redis_over_tls(&papers, "--tls-auth-clients no") else { return };
    let (silent, unserved) = (silent(), format!("127.0.0.1:{}", lasting_port()));
    let tls = format!("--set transport=tls --tls-ca {ca}");
    let other = "for a TLS port use -s rediss://HOST or memcacheds://HOST";
    let by_tcp = &server.address;
    let table = format!(
        "{by_tls} --protocol resp3 => no reply from {by_tls} to HELLO: connection closed; {other}
         {silent} --protocol resp2 --password x => no reply from {silent} to AUTH within 300ms; {other}
         {silent} --protocol memcached-binary --set user=u --password x => no reply from {silent} to SASL PLAIN within 300ms; {other}
         {silent} --protocol memcached-binary => no reply from {silent} to NOOP within 300ms; {other}
         {by_tcp} --protocol resp3 {tls} => TLS with {by_tcp} failed: the peer did not answer the handshake in time; without TLS use --set transport=tcp, in a URL redis:// or memcached://
         {unserved} --protocol resp3 {tls} => cannot connect to {unserved}: Connection refused (os error 111); start it, or give its port (brunt run without -s starts a server of its own)"
    );
    for io in INTERFACES {
        for [to, expected] in rows(&table) {
            let output = ended(&format!("run -q -c 2 --keys 10 -n 10 --io {io} --timeout 300ms -s {to}"));
            assert_eq!((output.exit, output.said.as_str()), (5, &*format!("error: {expected}\n")), "{io}");
        }
    }
    // Where nothing is said before the first request, that is what fails.
    ended(&format!("load -s {by_tls} --protocol resp2 --keys 10 --quiet"))
        .is(5, &["0 of 10 keys confirmed", other]);
}

/// Says this when it has heard something, and ends the connection.
fn terse_server(says: &'static [u8]) -> String {
    listening(|mut stream, _| {
        // All of it, so that ending the connection resets nothing.
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(says);
    })
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
    let upstream = upstream.to_owned();
    listening(move |mut client, number| {
        // Those after the first four, which the run begins with.
        if matches!(manners, ProxyBehaviour::Jilts) && number >= 4 && number.is_multiple_of(2) {
            let _ = client.read(&mut [0; 4096]);
            return;
        }
        // Whom the other takes no connection from, ours takes none from.
        let Ok(upstream) = TcpStream::connect(&upstream) else { return };
        let tls = ServerConnection::new(config.clone()).unwrap();
        // Whatever goes wrong on a connection is its end.
        let _ = relay(tls, client, upstream, manners);
    })
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
    let Some(papers) = Certificates::issue() else { return };
    let server = Server::reference("");
    let table = [
        (ProxyBehaviour::Rekeys, None),
        (ProxyBehaviour::Leaves { says_so: true }, Some("closed_by_peer")),
        (ProxyBehaviour::Leaves { says_so: false }, Some("closed_by_peer")),
        (ProxyBehaviour::Babbles, Some("tls_failed")),
    ];
    for io in INTERFACES {
        for (manners, fault) in table {
            let address = tls_proxy(&server.address, papers.server_config(), manners);
            let flags = format!(
                "-n 1500 -c 4 --depth 2 --keys 100 --warmup 0s --no-preload --set server-stats=false --set transport=tls --tls-ca {} --value-size uniform:1,20000 --io {io}",
                papers.path("ca.pem")
            );
            let measured = Measured::run(&address, &flags);
            let ended = ["completed", "lost", "error"].map(|key| measured.requests(key));
            assert_eq!((ended.iter().sum::<u64>(), ended[2]), (1500, 0), "{manners:?} {io}: {ended:?}");
            let faults = measured.json["events"]["faults"].as_array().unwrap();
            // Who leaves while we send may be seen to be gone by a reset.
            let is_foreseen = |kind: &str| Some(kind) == fault || fault.is_some() && kind == "reset";
            let kinds: Vec<&str> = faults.iter().map(|fault| fault["kind"].as_str().unwrap()).collect();
            assert!(kinds.iter().all(|kind| is_foreseen(kind)), "{manners:?} {io}: {kinds:?}");
            assert_eq!(fault.is_some_and(|fault| kinds.contains(&fault)), fault.is_some());
            assert_eq!(ended[1] > 0, fault.is_some(), "{manners:?} {io}: {ended:?}");
        }
    }
}

/// More than a socket takes at once, in both directions, on few connections.
#[test]
fn large_values_go_out_in_parts() {
    let Some(papers) = Certificates::issue() else { return };
    let ca = papers.path("ca.pem");
    let Some((server, address)) = redis_over_tls(&papers, "--tls-auth-clients no") else { return };
    for io in INTERFACES {
        server.redis_says("FLUSHALL");
        let flags = format!(
            "--protocol resp3 -n 100 -c 2 --depth 4 --keys 20 --warmup 0s --mix get=1,set=1 --value-size uniform:1,4MiB --set transport=tls --tls-ca {ca} --io {io}"
        );
        let measured = Measured::run(&address, &flags);
        measured.check_exit();
        assert_eq!(measured.requests("completed"), 100);
        assert_eq!(measured.count("counts.keys.hit"), measured.count("counts.keys.requested"));
        assert_eq!(measured.faults(None), 0);
    }
}

/// Protocol, transport, password and database out of a URL; and the password is seen by the server alone.
#[test]
fn urls_select_tls_and_credentials() {
    let Some(papers) = Certificates::issue() else { return };
    let ca = papers.path("ca.pem");
    let flags = "--tls-auth-clients no --requirepass hunter2";
    let Some((_server, address)) = redis_over_tls(&papers, flags) else { return };
    let url = format!("rediss://:hunter2@{address}/3");
    let measured = Measured::run(&url, &format!("--keys 50 -n 500 --warmup 0s --tls-ca {ca}"));
    assert_eq!(measured.requests("completed"), 500);
    let says = ["protocol", "transport", "database", "password"]
        .map(|key| measured.at(&format!("plan.{key}")).clone());
    assert_eq!(serde_json::Value::from(says.to_vec()).to_string(), r#"["resp2","tls",3,"(secret)"]"#);
    assert_eq!(measured.at("host.server"), &address);
    assert!(!format!("{} {}", measured.text, measured.json).contains("hunter2"));
    let wrong = ended(&format!("run -s {} --tls-ca {ca}", url.replace("hunter2", "hunter3")));
    wrong.is(5, &["WRONGPASS"]);
    assert!(!wrong.said.contains("hunter"));
}
