//! What carries the bytes: the transport, and what depends on it.
//!
//! Not where the servers are (that is the target's).

use super::server_usage::ServerUsage;
use super::{ErrorContext, PlanError};
use crate::plan::{Timestamps, Transport};
use crate::sockets::SocketOptions;
use crate::spec::RunSpec;
use crate::tls::{Identity, TlsOptions};
use crate::units::{Count, DurationNs};
use crate::url::NamedServer;

/// The transport: as given, else as the servers are named.
pub(super) fn resolve(context: &ErrorContext<'_>, run: &RunSpec) -> Result<Transport, PlanError> {
    let servers = run.server.as_ref().map(|list| list.0.as_slice()).unwrap_or_default();
    let mut places = servers.iter().filter_map(NamedServer::address);
    let has_hosts = places.clone().any(|server| !server.is_unix());
    let path = places.find(|server| server.is_unix());
    match (run.transport, path) {
        (_, Some(path)) if has_hosts => {
            let accepted = "paths of sockets only, or hosts only: a run has one transport";
            Err(context.error("server", path, accepted))
        }
        (Some(Transport::Unix), None) => {
            let accepted = "--transport unix together with --server unix:PATH";
            Err(context.error("transport", Transport::Unix, accepted))
        }
        (None | Some(Transport::Unix), Some(_)) => Ok(Transport::Unix),
        (Some(given), Some(path)) => {
            Err(context.error("transport", given, format!("unix, for --server {path} is a path")))
        }
        (Some(Transport::Tls), None) if !has_hosts => {
            let accepted = "--transport tls together with a --server: the reference server speaks no TLS";
            Err(context.error("transport", Transport::Tls, accepted))
        }
        (given, None) => Ok(given.unwrap_or(Transport::Tcp)),
    }
}

/// What is said of TLS, where it is spoken.
pub(super) fn resolve_tls(
    context: &ErrorContext<'_>,
    run: &RunSpec,
    used: &ServerUsage,
) -> Result<TlsOptions, PlanError> {
    let is_insecure = run.tls_insecure.unwrap_or(false);
    let given = [
        ("tls-ca", run.tls_ca.as_deref()),
        ("tls-cert", run.tls_cert.as_deref()),
        ("tls-key", run.tls_key.as_deref()),
        ("tls-server-name", run.tls_server_name.as_deref()),
    ];
    let mut given = given.into_iter().filter_map(|(option, given)| Some((option, given?)));
    let accepted = |option: &str| format!("--{option} together with --transport tls");
    match given.next() {
        _ if used.uses_transport(Transport::Tls) => {}
        Some((option, given)) => return Err(context.error(option, given, accepted(option))),
        None if is_insecure => return Err(context.flag_error("tls-insecure", accepted("tls-insecure"))),
        None => {}
    }
    if let (Some(ca), true) = (&run.tls_ca, is_insecure) {
        return Err(context.error("tls-ca", ca, "either --tls-ca or --tls-insecure"));
    }
    let identity = match (&run.tls_cert, &run.tls_key) {
        (None, None) => None,
        (Some(certificate), Some(key)) => {
            Some(Identity { certificate: certificate.clone(), key: key.clone() })
        }
        (Some(certificate), None) => {
            return Err(context.error("tls-cert", certificate, "--tls-cert together with --tls-key"));
        }
        (None, Some(key)) => {
            return Err(context.error("tls-key", key, "--tls-key together with --tls-cert"));
        }
    };
    let (ca, server_name) = (run.tls_ca.clone(), run.tls_server_name.clone());
    Ok(TlsOptions { ca, identity, server_name, is_insecure })
}

/// What is asked of the sockets.
pub(super) fn resolve_sockets(
    context: &ErrorContext<'_>,
    run: &RunSpec,
    used: &ServerUsage,
) -> Result<SocketOptions, PlanError> {
    let nodelay = run.nodelay.unwrap_or(true);
    let is_tcp = used.uses_transport(Transport::Tcp) || used.uses_transport(Transport::Tls);
    if let Some(other) = used.transports.first().filter(|_| !is_tcp) {
        if !nodelay {
            let accepted = format!("true with --transport {other}: TCP alone keeps small requests back");
            return Err(context.error("nodelay", false, accepted));
        }
        if let Some(linger) = run.linger {
            let accepted = "--linger with --transport tcp or tls: no other connection outlives its close";
            return Err(context.error("linger", linger, accepted));
        }
    }
    let is_unfit = |linger: &DurationNs| {
        let seconds = linger.0 / DurationNs::from_secs(1).0;
        *linger != DurationNs::from_secs(seconds) || seconds > SocketOptions::LINGER_SECONDS_MAX
    };
    if let Some(linger) = run.linger.filter(is_unfit) {
        let accepted = format!("whole seconds up to {}", SocketOptions::LINGER_SECONDS_MAX);
        return Err(context.error("linger", linger, accepted));
    }
    let buffer = |option: &str, given: Option<Count>| match given {
        Some(Count(bytes)) if bytes == 0 || bytes > u64::from(SocketOptions::BUFFER_BYTES_MAX) => {
            let accepted = format!("bytes, 1 to {}", SocketOptions::BUFFER_BYTES_MAX);
            Err(context.error(option, bytes, accepted))
        }
        given => Ok(given.map(|Count(bytes)| bytes as u32)),
    };
    Ok(SocketOptions {
        nodelay,
        linger: run.linger,
        send_buffer: buffer("send-buffer", run.send_buffer)?,
        receive_buffer: buffer("receive-buffer", run.receive_buffer)?,
    })
}

/// The kernel stamps the segments of TCP.
pub(super) fn resolve_timestamps(
    context: &ErrorContext<'_>,
    run: &RunSpec,
    used: &ServerUsage,
) -> Result<Timestamps, PlanError> {
    let timestamps = run.timestamps.unwrap_or(Timestamps::Off);
    let other = used.transports.iter().find(|transport| **transport != Transport::Tcp);
    match (timestamps, other) {
        (Timestamps::Off, _) | (_, None) => Ok(timestamps),
        (Timestamps::Kernel, Some(other)) => {
            Err(context.error("timestamps", timestamps, format!("off with --transport {other}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::plan::Transport;
    use crate::resolve::tests::resolved;
    use crate::spec::PlanSpec;

    #[test]
    fn transport_follows_from_the_servers() {
        let table = [
            ("", Transport::Tcp),
            ("server = 'a'", Transport::Tcp),
            ("server = 'unix:/a'", Transport::Unix),
            ("server = ['unix:/a', 'unix:/b']\ntransport = 'unix'", Transport::Unix),
            ("server = 'unix:/a'\nprotocol = 'resp3'", Transport::Unix),
            (
                "server = 'a'\ntransport = 'tls'\ntls-ca = 'ca'\ntls-cert = 'c'\ntls-key = 'k'\ntls-server-name = 'n'",
                Transport::Tls,
            ),
            (
                "server = 'a'\ntransport = 'tls'\ntls-insecure = true\nmeter = ['handshake-time']",
                Transport::Tls,
            ),
        ];
        for (toml, expected) in table {
            let plan = resolved(toml).unwrap();
            assert_eq!(plan.transport, expected, "{toml}");
            let again = resolved(&PlanSpec::from(&plan).to_toml()).unwrap();
            assert_eq!(again, plan, "{toml}");
        }
    }

    #[test]
    fn contradictions_are_refused() {
        let table = [
            (
                "server = ['a', 'unix:/b']",
                "--server: 'unix:/b' was given; accepted: paths of sockets only, or hosts only: a run has one transport",
            ),
            (
                "transport = 'unix'",
                "--transport: 'unix' was given; accepted: --transport unix together with --server unix:PATH",
            ),
            (
                "transport = 'tcp'\nserver = 'unix:/b'",
                "--transport: 'tcp' was given; accepted: unix, for --server unix:/b is a path",
            ),
            (
                "timestamps = 'kernel'\nserver = 'unix:/b'",
                "--timestamps: 'kernel' was given; accepted: off with --transport unix",
            ),
            (
                "timestamps = 'kernel'\nserver = 'a'\ntransport = 'tls'",
                "--timestamps: 'kernel' was given; accepted: off with --transport tls",
            ),
            (
                "transport = 'tls'",
                "--transport: 'tls' was given; accepted: --transport tls together with a --server: the reference server speaks \
                 no TLS",
            ),
            (
                "server = 'unix:/a'\ntransport = 'tls'",
                "--transport: 'tls' was given; accepted: unix, for --server unix:/a is a path",
            ),
            (
                "server = 'unix:/b'\nlinger = '0s'",
                "--linger: '0s' was given; accepted: --linger with --transport tcp or tls: no other connection outlives its close",
            ),
            ("linger = '1500ms'", "--linger: '1500ms' was given; accepted: whole seconds up to 65535"),
            ("linger = '70000s'", "--linger: '70000s' was given; accepted: whole seconds up to 65535"),
            ("send-buffer = 0", "--send-buffer: '0' was given; accepted: bytes, 1 to 1073741823"),
            (
                "receive-buffer = '2G'",
                "--receive-buffer: '2000000000' was given; accepted: bytes, 1 to 1073741823",
            ),
            (
                "server = 'a'\ntls-insecure = true",
                "--tls-insecure was given; accepted: --tls-insecure together with --transport tls",
            ),
            (
                "server = 'a'\ntls-server-name = 'b'",
                "--tls-server-name: 'b' was given; accepted: --tls-server-name together with --transport tls",
            ),
            (
                "server = 'a'\ntransport = 'tls'\ntls-ca = 'f'\ntls-insecure = true",
                "--tls-ca: 'f' was given; accepted: either --tls-ca or --tls-insecure",
            ),
            (
                "server = 'a'\ntransport = 'tls'\ntls-cert = 'f'",
                "--tls-cert: 'f' was given; accepted: --tls-cert together with --tls-key",
            ),
            (
                "server = 'a'\ntransport = 'tls'\ntls-key = 'f'",
                "--tls-key: 'f' was given; accepted: --tls-key together with --tls-cert",
            ),
            (
                "server = 'a'\nmeter = ['handshake-time']",
                "--meter: 'handshake-time' was given; accepted: this quantity together with --transport tls",
            ),
        ];
        for (toml, message) in table {
            assert_eq!(resolved(toml).unwrap_err(), message, "{toml}");
        }
    }
}
