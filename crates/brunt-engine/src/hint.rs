//! Which option the user may have missed, from what a server sends instead of a valid reply.
//!
//! For messages after a failure; no decision depends on it.

use brunt_plan::destination::Server;
use brunt_plan::plan::{Plan, Protocol, Transport};
use brunt_plan::quoted_bytes::QuotedBytes;
use brunt_proto::detection::DetectedProtocol;
use brunt_stats::connection::FirstMalformed;

/// A hint from the first invalid reply or the first error; empty if there is none.
pub fn hint(plan: &Plan, reply: &[u8]) -> String {
    let servers = plan.servers();
    let of = |differs: fn(&Server) -> bool| servers.iter().find(|server| differs(server));
    let text = String::from_utf8_lossy(reply);
    let error = text.strip_prefix('-').unwrap_or(&text);
    let word = error.split([' ', '\r']).next().unwrap_or_default();
    match (DetectedProtocol::of(reply), word) {
        (Some(DetectedProtocol::Redis), _) if let Some(server) = of(|server| !server.protocol.is_resp()) => {
            looks_like("Redis", &url(server, "redis", "rediss"), "--protocol resp3")
        }
        (Some(DetectedProtocol::Memcached), _)
            if let Some(server) = of(|server| !server.protocol.is_memcached()) =>
        {
            looks_like("memcached", &url(server, "memcached", "memcacheds"), "--protocol memcached-text")
        }
        (Some(DetectedProtocol::Memcached), _)
            if let Some(server) = of(|server| server.protocol == Protocol::MemcachedBinary) =>
        {
            let url = url(server, "memcached", "memcacheds");
            looks_like("memcached's text protocol", &url, "--protocol memcached-text")
        }
        (Some(DetectedProtocol::Tls), _)
            if let Some(server) = of(|server| server.transport == Transport::Tcp) =>
        {
            let secure = if server.protocol.is_resp() { "rediss" } else { "memcacheds" };
            looks_like("TLS", &url(server, secure, secure), "--transport tls")
        }
        (_, "MOVED" | "ASK" | "CLUSTERDOWN") if !plan.is_cluster => {
            "; this is a cluster node: use --cluster".to_owned()
        }
        (_, "NOAUTH") if plan.login.password.is_none() => {
            "; the server requires a password: use --password @FILE".to_owned()
        }
        _ => remedies(&text).to_owned(),
    }
}

/// What helps against an error that holds until the request, the server or its settings are others.
fn remedies(error: &str) -> &'static str {
    let table = [
        ("too large", "; use a smaller --value-size, or raise the item limit of the server (memcached -I)"),
        (
            "exceeds maximum allowed size",
            "; use a smaller --value-size, or raise proto-max-bulk-len of the server",
        ),
        (
            "out of memory",
            "; give the server more memory (memcached -m), let it evict (without -M), or use fewer --keys",
        ),
        ("OOM ", "; raise maxmemory of the server, set a maxmemory-policy that evicts, or use fewer --keys"),
        ("NOPERM ", "; let this user SET these keys (ACL SETUSER), or use another --user"),
        ("NOAUTH ", "; check --user and --password"),
        ("WRONGPASS ", "; check --user and --password"),
        ("READONLY ", "; this server is a replica: use the address of its primary"),
        (
            "MISCONF ",
            "; the server cannot save its data: repair that, or set stop-writes-on-bgsave-error no there",
        ),
        (
            "unknown command",
            "; the server does not have this command: check --protocol and what the server is",
        ),
    ];
    let error = error.to_ascii_lowercase();
    let known = table.iter().find(|(words, _)| error.contains(&words.to_ascii_lowercase()));
    known.map_or("", |(_, remedy)| remedy)
}

fn looks_like(kind: &str, url: &Option<String>, option: &str) -> String {
    let url = url.as_ref().map(|url| format!("{url} or ")).unwrap_or_default();
    format!("; this looks like {kind}: use {url}{option}")
}

/// The server's address behind a scheme; none of a path, nor of a server that is started for the run.
fn url(server: &Server, plain: &str, secure: &str) -> Option<String> {
    let address = server.address.as_ref().filter(|address| !address.is_unix())?;
    let scheme = if server.transport == Transport::Tls { secure } else { plain };
    Some(format!("{scheme}://{address}"))
}

/// Hint for a server that closes plain connections, or does not answer on them.
pub(crate) const TLS_HINT: &str = "; for a TLS port add --transport tls";

pub(crate) fn tls_hint(plan: &Plan) -> &'static str {
    if plan.uses_transport(Transport::Tcp) { TLS_HINT } else { "" }
}

/// Describes malformed bytes for a user.
pub(crate) fn describe_malformed(malformed: &FirstMalformed) -> String {
    format!("malformed reply \"{}\": {}", QuotedBytes(malformed.bytes()), malformed.reason)
}
