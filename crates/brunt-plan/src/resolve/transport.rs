//! The transport of a plan, and the options that depend on it.

use super::server_usage::ServerUsage;
use super::{ErrorContext, RUN, Resolved};
use crate::plan::{Timestamps, Transport};
use crate::sockets::SocketOptions;
use crate::spec::RunSpec;
use crate::tls::{Identity, TlsOptions};
use crate::units::{Count, DurationNs};
use crate::url::NamedServer;

/// The transport: as given, else as the servers are named.
pub(super) fn resolve(context: &ErrorContext<'_>, run: &RunSpec) -> Resolved<Transport> {
    let servers = run.server.as_ref().map(|list| list.0.as_slice()).unwrap_or_default();
    let mut places = servers.iter().filter_map(NamedServer::address);
    let has_hosts = places.clone().any(|server| !server.is_unix());
    let path = places.find(|server| server.is_unix());
    match (run.transport, path) {
        (_, Some(path)) if has_hosts => {
            let accepted = "only paths or only hosts: all servers share one transport";
            Err(context.invalid("server", path, accepted))
        }
        (Some(Transport::Unix), None) => Err(context.requires("transport unix", "--server unix:PATH")),
        (None | Some(Transport::Unix), Some(_)) => Ok(Transport::Unix),
        (Some(given), Some(path)) => {
            Err(context.invalid("transport", given, format!("unix with --server {path}")))
        }
        (Some(Transport::Tls), None) if !has_hosts => {
            Err(context.requires("transport tls", "--server: the reference server has no TLS"))
        }
        (given, None) => Ok(given.unwrap_or(Transport::Tcp)),
    }
}

/// What is said of TLS, where it is spoken.
pub(super) fn resolve_tls(run: &RunSpec, used: &ServerUsage) -> Resolved<TlsOptions> {
    let is_insecure = run.tls_insecure.unwrap_or(false);
    let options = [
        ("tls-ca", run.tls_ca.is_some()),
        ("tls-cert", run.tls_cert.is_some()),
        ("tls-key", run.tls_key.is_some()),
        ("tls-server-name", run.tls_server_name.is_some()),
        ("tls-insecure", is_insecure),
    ];
    let given = options.into_iter().find(|(_, is_given)| *is_given);
    if let (Some((option, _)), false) = (given, used.uses_transport(Transport::Tls)) {
        return Err(RUN.requires(option, "--transport tls"));
    }
    if run.tls_ca.is_some() && is_insecure {
        return Err(RUN.conflicts("tls-ca", "--tls-insecure"));
    }
    let identity = match (&run.tls_cert, &run.tls_key) {
        (None, None) => None,
        (Some(certificate), Some(key)) => {
            Some(Identity { certificate: certificate.clone(), key: key.clone() })
        }
        (Some(_), None) => return Err(RUN.requires("tls-cert", "--tls-key")),
        (None, Some(_)) => return Err(RUN.requires("tls-key", "--tls-cert")),
    };
    let (ca, server_name) = (run.tls_ca.clone(), run.tls_server_name.clone());
    Ok(TlsOptions { ca, identity, server_name, is_insecure })
}

/// What is asked of the sockets.
pub(super) fn resolve_sockets(run: &RunSpec, used: &ServerUsage) -> Resolved<SocketOptions> {
    let nodelay = run.nodelay.unwrap_or(true);
    let is_tcp = used.uses_transport(Transport::Tcp) || used.uses_transport(Transport::Tls);
    if let Some(other) = used.transports.first().filter(|_| !is_tcp) {
        if !nodelay {
            return Err(RUN.conflicts("no-nodelay", format!("--transport {other}: the option is TCP's")));
        }
        if run.linger.is_some() {
            return Err(RUN.requires("linger", "--transport tcp or tls"));
        }
    }
    let is_unfit = |linger: &DurationNs| {
        let seconds = linger.0 / DurationNs::from_secs(1).0;
        *linger != DurationNs::from_secs(seconds) || seconds > SocketOptions::LINGER_SECONDS_MAX
    };
    if let Some(linger) = run.linger.filter(is_unfit) {
        let accepted = format!("whole seconds up to {}", SocketOptions::LINGER_SECONDS_MAX);
        return Err(RUN.invalid("linger", linger, accepted));
    }
    let buffer = |option: &str, given: Option<Count>| match given {
        Some(Count(bytes)) if bytes == 0 || bytes > u64::from(SocketOptions::BUFFER_BYTES_MAX) => {
            let accepted = format!("1 to {} bytes", SocketOptions::BUFFER_BYTES_MAX);
            Err(RUN.invalid(option, bytes, accepted))
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
pub(super) fn resolve_timestamps(run: &RunSpec, used: &ServerUsage) -> Resolved<Timestamps> {
    let timestamps = run.timestamps.unwrap_or(Timestamps::Auto);
    let other = used.transports.iter().find(|transport| **transport != Transport::Tcp);
    match (timestamps, other) {
        (Timestamps::Off | Timestamps::Auto, _) | (_, None) => Ok(timestamps),
        (Timestamps::Kernel, Some(other)) => {
            Err(RUN.conflicts("timestamps kernel", format!("--transport {other}")))
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
                "invalid value 'unix:/b' for --server: expected only paths or only hosts: all servers share one transport",
            ),
            ("transport = 'unix'", "--transport unix requires --server unix:PATH"),
            (
                "transport = 'tcp'\nserver = 'unix:/b'",
                "invalid value 'tcp' for --transport: expected unix with --server unix:/b",
            ),
            (
                "timestamps = 'kernel'\nserver = 'unix:/b'",
                "--timestamps kernel cannot be used with --transport unix",
            ),
            (
                "timestamps = 'kernel'\nserver = 'a'\ntransport = 'tls'",
                "--timestamps kernel cannot be used with --transport tls",
            ),
            ("transport = 'tls'", "--transport tls requires --server: the reference server has no TLS"),
            (
                "server = 'unix:/a'\ntransport = 'tls'",
                "invalid value 'tls' for --transport: expected unix with --server unix:/a",
            ),
            ("server = 'unix:/b'\nlinger = '0s'", "--linger requires --transport tcp or tls"),
            ("linger = '1500ms'", "invalid value '1500ms' for --linger: expected whole seconds up to 65535"),
            ("linger = '70000s'", "invalid value '70000s' for --linger: expected whole seconds up to 65535"),
            ("send-buffer = 0", "invalid value '0' for --send-buffer: expected 1 to 1073741823 bytes"),
            (
                "receive-buffer = '2G'",
                "invalid value '2000000000' for --receive-buffer: expected 1 to 1073741823 bytes",
            ),
            ("server = 'a'\ntls-insecure = true", "--tls-insecure requires --transport tls"),
            ("server = 'a'\ntls-server-name = 'b'", "--tls-server-name requires --transport tls"),
            (
                "server = 'a'\ntransport = 'tls'\ntls-ca = 'f'\ntls-insecure = true",
                "--tls-ca cannot be used with --tls-insecure",
            ),
            ("server = 'a'\ntransport = 'tls'\ntls-cert = 'f'", "--tls-cert requires --tls-key"),
            ("server = 'a'\ntransport = 'tls'\ntls-key = 'f'", "--tls-key requires --tls-cert"),
            ("server = 'a'\nmeter = ['handshake-time']", "--meter handshake-time requires --transport tls"),
        ];
        for (toml, message) in table {
            assert_eq!(resolved(toml).unwrap_err(), message, "{toml}");
        }
    }
}
