//! Options from the URLs of servers: they fill in options that are not given, and must agree with those that are.

use super::{ErrorContext, Resolved};
use crate::choice::Protocol;
use crate::server::{PORT_REDIS, ServerAddress};
use crate::server_list::ServerList;
use crate::spec::RunSpec;
use crate::units::Count;
use crate::url::{ACCEPTED, NamedServer, ServerUrl};
use std::fmt::Display;

/// Fills in what the servers of a run say of themselves.
pub(super) fn apply_urls(context: &ErrorContext<'_>, run: &mut RunSpec) -> Resolved {
    let given = run.clone();
    check_schemes(context, &given)?;
    for server in given.server.iter().flat_map(|list| &list.0) {
        match server {
            NamedServer::Plain(_) => {}
            NamedServer::Url(url) => apply_url(context, run, &given, url)?,
            NamedServer::Invalid(shown) => return Err(context.invalid("server", shown, ACCEPTED)),
        }
    }
    Ok(())
}

/// Servers without a scheme that are all at Redis's usual port are Redis, where nothing else says what they speak.
pub(super) fn protocol_by_port(servers: &ServerList) -> Option<Protocol> {
    let is_at_port = |server: &NamedServer| {
        matches!(server, NamedServer::Plain(ServerAddress::Network { port: PORT_REDIS, .. }))
    };
    (!servers.0.is_empty() && servers.0.iter().all(is_at_port)).then_some(Protocol::Resp2)
}

/// URLs are of one kind of server. Compared before any is taken, because what is spoken follows from the first one, and may be
/// changed by another only while no server has said anything.
fn check_schemes(context: &ErrorContext<'_>, given: &RunSpec) -> Resolved {
    let servers = given.server.iter().flat_map(|list| &list.0);
    let mut urls = servers.filter_map(|server| match server {
        NamedServer::Url(url) => Some(url),
        NamedServer::Plain(_) | NamedServer::Invalid(_) => None,
    });
    let Some(first) = urls.next() else { return Ok(()) };
    match urls.find(|url| url.scheme.is_redis != first.scheme.is_redis) {
        None => Ok(()),
        Some(other) => {
            let accepted = "URLs with the same --protocol";
            Err(context.invalid("server", other, accepted))
        }
    }
}

/// Fills in what this URL says, or finds that another option says something else.
fn apply_url(context: &ErrorContext<'_>, run: &mut RunSpec, given: &RunSpec, url: &ServerUrl) -> Resolved {
    let url_options = UrlOptions { context, url };
    // Which version of Redis's protocol is spoken no URL says, and of memcached's there are several.
    let protocol = match run.protocol {
        Some(protocol) if protocol.is_of_scheme(url.scheme.is_redis) => None,
        _ if url.scheme.is_redis => Some(Protocol::Resp2),
        None => None,
        Some(_) => Some(Protocol::MemcachedText),
    };
    let transport = url.scheme.transport;
    url_options.merge("protocol", &given.protocol, &mut run.protocol, protocol)?;
    url_options.merge("transport", &given.transport, &mut run.transport, Some(transport))?;
    url_options.merge("user", &given.user, &mut run.user, url.user.clone())?;
    url_options.merge("password", &given.password, &mut run.password, url.password.clone())?;
    url_options.merge(
        "database",
        &given.database,
        &mut run.database,
        url.database.map(|number| Count(number.into())),
    )
}

/// What a URL says, for messages.
struct UrlOptions<'a> {
    context: &'a ErrorContext<'a>,
    url: &'a ServerUrl,
}

impl UrlOptions<'_> {
    /// Sets an option that has no value to the URL's. A value that another option (`given`) or an earlier URL has set must be equal.
    fn merge<T: PartialEq + Display>(
        &self,
        option: &str,
        given: &Option<T>,
        current: &mut Option<T>,
        of_url: Option<T>,
    ) -> Resolved {
        let Self { context, url } = self;
        match (&current, of_url) {
            (_, None) => Ok(()),
            (Some(current), Some(of_url)) if *current == of_url => Ok(()),
            (None, of_url) => {
                *current = of_url;
                Ok(())
            }
            (Some(_), Some(_)) => Err(match given {
                Some(given) => context.invalid(option, given, format!("the value of --server {url}")),
                None => context.invalid("server", url, format!("URLs with the same --{option}")),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::login::Password;
    use crate::plan::{Protocol, Transport};
    use crate::resolve::tests::resolved;

    #[test]
    fn urls_fill_in_what_is_not_given() {
        // (plan) → protocol, transport, user, password, database, servers
        let table = [
            ("server = 'memcached://a'", Protocol::MemcachedText, Transport::Tcp, None, None, 0, "a:11211"),
            ("server = 'memcacheds://a:5'", Protocol::MemcachedText, Transport::Tls, None, None, 0, "a:5"),
            (
                "server = ['memcached+udp://a', 'b']\nprotocol = 'memcached-meta'",
                Protocol::MemcachedMeta,
                Transport::Udp,
                None,
                None,
                0,
                "a:11211 b:11211",
            ),
            ("server = 'redis://a'", Protocol::Resp2, Transport::Tcp, None, None, 0, "a:6379"),
            (
                "server = 'redis://a'\nprotocol = 'resp3'",
                Protocol::Resp3,
                Transport::Tcp,
                None,
                None,
                0,
                "a:6379",
            ),
            (
                "server = ['rediss://u:p@a/4', 'b']",
                Protocol::Resp2,
                Transport::Tls,
                Some("u"),
                Some("p"),
                4,
                "a:6379 b:6379",
            ),
            ("server = 'a:6379'", Protocol::Resp2, Transport::Tcp, None, None, 0, "a:6379"),
            (
                "server = ['a:6379', 'b:6379']",
                Protocol::Resp2,
                Transport::Tcp,
                None,
                None,
                0,
                "a:6379 b:6379",
            ),
            (
                "server = ['a:6379', 'b:7379']",
                Protocol::MemcachedText,
                Transport::Tcp,
                None,
                None,
                0,
                "a:6379 b:7379",
            ),
            (
                "server = 'a:6379'\nprotocol = 'memcached-text'",
                Protocol::MemcachedText,
                Transport::Tcp,
                None,
                None,
                0,
                "a:6379",
            ),
            (
                "server = 'memcached://a:6379'",
                Protocol::MemcachedText,
                Transport::Tcp,
                None,
                None,
                0,
                "a:6379",
            ),
            (
                "server = 'redis://u:p@a/4'\nuser = 'u'\npassword = 'p'\ndatabase = 4\ntransport = 'tcp'",
                Protocol::Resp2,
                Transport::Tcp,
                Some("u"),
                Some("p"),
                4,
                "a:6379",
            ),
        ];
        for (toml, protocol, transport, user, password, database, servers) in table {
            let plan = resolved(toml).unwrap();
            assert_eq!((plan.protocol, plan.transport), (protocol, transport), "{toml}");
            let login = &plan.login;
            let secret = login.password.as_ref().map(Password::secret);
            assert_eq!((login.user.as_deref(), secret, login.database), (user, password, database), "{toml}");
            let names: Vec<String> = plan.addresses().iter().map(ToString::to_string).collect();
            assert_eq!(names.join(" "), servers, "{toml}");
        }
    }

    #[test]
    fn contradictions_are_refused_and_show_no_password() {
        let table = [
            (
                "server = 'redis://a'\nprotocol = 'memcached-text'",
                "invalid value 'memcached-text' for --protocol: expected the value of --server redis://a:6379",
            ),
            (
                "server = 'memcached://a'\nprotocol = 'resp2'",
                "invalid value 'resp2' for --protocol: expected the value of --server memcached://a:11211",
            ),
            (
                "server = 'redis://a'\ntransport = 'tls'",
                "invalid value 'tls' for --transport: expected the value of --server redis://a:6379",
            ),
            (
                "server = 'redis://u:hunter2@a'\npassword = 'hunter3'",
                "invalid value '(secret)' for --password: expected the value of --server redis://u:(secret)@a:6379",
            ),
            (
                "server = ['redis://u:hunter2@a', 'redis://u:hunter3@b']",
                "invalid value 'redis://u:(secret)@b:6379' for --server: expected URLs with the same --password",
            ),
            (
                "server = ['memcached://a', 'redis://b', 'memcached://c']",
                "invalid value 'redis://b:6379' for --server: expected URLs with the same --protocol",
            ),
            (
                "server = ['memcached://a', 'redis://b']",
                "invalid value 'redis://b:6379' for --server: expected URLs with the same --protocol",
            ),
            (
                "server = ['redis://a', 'memcached://b']",
                "invalid value 'memcached://b:11211' for --server: expected URLs with the same --protocol",
            ),
            (
                "server = ['memcached+udp://a', 'memcached://b']",
                "invalid value 'memcached://b:11211' for --server: expected URLs with the same --transport",
            ),
            (
                "server = 'memcached+udp://a'\ntransport = 'tcp'",
                "invalid value 'tcp' for --transport: expected the value of --server memcached+udp://a:11211",
            ),
            (
                "server = ['redis://a', 'unix:/b']",
                "invalid value 'unix:/b' for --server: expected only paths or only hosts: all servers share one transport",
            ),
            (
                "server = 'memcached://u:hunter2@a'",
                "--user requires --protocol memcached-binary, resp2 or resp3",
            ),
        ];
        for (toml, message) in table {
            assert_eq!(resolved(toml).unwrap_err(), message, "{toml}");
        }
        let flawed = resolved("server = 'redis://u:hunter2@a:99999'").unwrap_err();
        assert!(
            flawed.starts_with("invalid value 'redis://(secret)@a:99999' for --server: expected HOST[:PORT]"),
            "{flawed}"
        );
    }
}
