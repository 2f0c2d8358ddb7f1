//! The servers of a specification of which nothing says what they speak: asked once, before the plan is resolved.
//!
//! Invariant: what a server answers stands in the specification as if it had been given, so that plans, agents and results have it.

use crate::exit::{Exit, Failure};
use crate::measurement::find;
use brunt_engine::{RunError, ServerFailure, TlsSettings, ask_protocol};
use brunt_plan::plan::{Protocol, Transport};
use brunt_plan::resolve::tls;
use brunt_plan::server::ServerAddress;
use brunt_plan::spec::{PlanSpec, RunSpec};
use brunt_plan::url::{NamedServer, ServerList};
use std::convert::Infallible;
use std::net::UdpSocket;

/// The servers that no option and no scheme says a protocol of. Only memcached takes datagrams.
fn unknown(
    servers: Option<&ServerList>,
    protocol: Option<Protocol>,
    transport: Option<Transport>,
) -> Vec<ServerAddress> {
    let is_told = protocol.is_some() || transport == Some(Transport::Udp);
    let plain = |server: &NamedServer| match server {
        NamedServer::Plain(address) => Some(address.at_port(Protocol::MemcachedText.default_port())),
        NamedServer::Url(_) | NamedServer::Invalid(_) => None,
    };
    let addresses = servers.filter(|_| !is_told).and_then(|list| list.0.iter().map(plain).collect());
    addresses.unwrap_or_default()
}

/// Are servers asked before this is resolved?
pub(crate) fn is_needed(spec: &PlanSpec) -> bool {
    assume(&mut spec.clone(), Protocol::MemcachedText) > 0
}

/// Writes down that all speak this which would be asked. Returns how many questions that is.
pub(crate) fn assume(spec: &mut PlanSpec, protocol: Protocol) -> usize {
    let Ok(questions) = fill_in(spec, |_, _, _| Ok::<_, Infallible>(protocol));
    questions
}

/// Asks what is unknown, and writes it down. Returns the answer as what follows a message, if there is one.
pub(crate) fn ask(spec: &mut PlanSpec) -> Result<String, Failure> {
    let answer = |run: &RunSpec, servers: &[ServerAddress], transport: Option<Transport>| {
        let (mut known, mut failed) = (None, None);
        for server in servers {
            match (ask_one(run, server, transport.unwrap_or(Transport::Tcp).for_server(server)), known) {
                (Ok(protocol), Some((one, spoken))) if spoken != protocol => {
                    return Err(Failure::usage(format!(
                        "--server: {one} speaks {spoken} and {server} {protocol}: expected servers of one protocol, or a class for each"
                    )));
                }
                (Ok(protocol), _) => known = Some((server, protocol)),
                // One that is down leaves the question to the others.
                (Err(failure), _) if is_down(&failure) => failed = failed.or(Some(failure)),
                (Err(failure), _) => return Err(failure),
            }
        }
        let no_answer = || failed.unwrap_or_else(|| Failure::usage("no server to ask"));
        known.map(|(_, protocol)| protocol).ok_or_else(no_answer)
    };
    let questions = fill_in(spec, answer)?;
    let spoken = spec.run.protocol.filter(|_| questions > 0);
    Ok(spoken.map_or(String::new(), |protocol| format!("; asked, the server answered in {protocol}")))
}

/// Sets the protocol of the run and that of each class with servers of its own, where it is unknown, to what `answer` says of
/// (options of the run, servers, transport). Returns how often it was asked.
fn fill_in<E>(
    spec: &mut PlanSpec,
    answer: impl Fn(&RunSpec, &[ServerAddress], Option<Transport>) -> Result<Protocol, E>,
) -> Result<usize, E> {
    let run = spec.run.clone();
    let is_said = run.protocol.is_some()
        || run.server.iter().flat_map(|list| &list.0).any(|server| matches!(server, NamedServer::Url(_)));
    let mut questions = 0;
    let mut fill = |list: &mut Option<ServerList>, protocol: &mut Option<Protocol>, transport| {
        let servers = unknown(list.as_ref(), *protocol, transport);
        if !servers.is_empty() {
            questions += 1;
            *protocol = Some(answer(&run, &servers, transport)?);
            // The port that was asked, which is another one's usual port.
            *list = ServerList::of(&servers);
        }
        Ok::<_, E>(())
    };
    fill(&mut spec.run.server, &mut spec.run.protocol, run.transport)?;
    for class in spec.classes.iter_mut().filter(|_| !is_said) {
        fill(&mut class.server, &mut class.protocol, class.transport.or(run.transport))?;
    }
    Ok(questions)
}

fn is_down(failure: &Failure) -> bool {
    let error = failure.error.downcast_ref();
    matches!(error, Some(RunError::Server { failure: ServerFailure::Unreachable, .. }))
}

fn ask_one(run: &RunSpec, server: &ServerAddress, transport: Transport) -> Result<Protocol, Failure> {
    let tls = (transport == Transport::Tls).then(|| TlsSettings::read(&tls(run)));
    let tls = tls.transpose().map_err(Failure::usage)?;
    let endpoint = find(server, transport, run.ip_version.unwrap_or_default(), tls.as_ref())?;
    ask_protocol(&endpoint).map_err(|error| Failure::new(Exit::Unreachable, error))
}

/// Do all servers run on this host, as far as their names can be found, and does no other host generate load?
pub(crate) fn server_is_here(spec: &PlanSpec) -> bool {
    let version = spec.run.ip_version.unwrap_or_default();
    let is_here = |server: &ServerAddress| {
        let Ok(endpoint) = find(server, Transport::Tcp, version, None) else { return true };
        let first = endpoint.addresses.first().and_then(brunt_engine::Address::network);
        // Only an address of this host can be bound to.
        first.is_none_or(|first| UdpSocket::bind((first.ip(), 0)).is_ok())
    };
    !spec.run.has_agents() && spec.server_lists().flat_map(|(_, list)| list.addresses()).all(is_here)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_without_scheme_and_protocol_are_asked() {
        let table = [
            ("", false),
            ("server = 'a'", true),
            ("server = 'a:6379'", true),
            ("server = 'unix:/run/x'", true),
            ("server = 'redis://a'", false),
            ("server = ['redis://a', 'b']", false),
            ("server = 'a'\nprotocol = 'resp3'", false),
            ("server = 'a'\ntransport = 'udp'", false),
            ("server = 'a'\ntransport = 'tls'", true),
            ("server = 'redis://a'\n[[class]]\nserver = 'b'", false),
            ("[[class]]\nserver = 'b'", true),
            ("[[class]]\nserver = 'b'\nprotocol = 'resp2'", false),
        ];
        for (toml, expected) in table {
            assert_eq!(is_needed(&PlanSpec::from_toml(toml).unwrap()), expected, "{toml}");
        }
    }

    #[test]
    fn answers_stand_in_the_plan() {
        let mut spec =
            PlanSpec::from_toml("server = 'a'\n[[class]]\n[[class]]\nserver = ['b:1', 'c']").unwrap();
        let answer = |_: &RunSpec, servers: &[ServerAddress], _| {
            Ok::<_, ()>(if servers.len() == 1 { Protocol::Resp2 } else { Protocol::MemcachedText })
        };
        fill_in(&mut spec, answer).unwrap();
        assert_eq!(
            spec.to_toml(),
            "server = [\"a:11211\"]\nprotocol = \"resp2\"\n\n[[class]]\n\n[[class]]\nserver = [\"b:1\", \"c:11211\"]\n\
             protocol = \"memcached-text\"\n"
        );
    }

    #[test]
    fn addresses_of_this_host_are_known() {
        let table = [
            ("", true),
            ("server = '127.0.0.1'", true),
            ("server = '[::1]:5'", true),
            ("server = 'unix:/run/x'", true),
            ("server = '192.0.2.1'", false),
            ("server = ['127.0.0.1', '192.0.2.1']", false),
            ("[[class]]\nserver = '192.0.2.1'", false),
            ("server = '127.0.0.1'\n[[class]]\nroute = [{ ops = ['set'], server = '192.0.2.1' }]", false),
            ("server = '127.0.0.1'\nagent = ['b']", false),
        ];
        for (toml, expected) in table {
            assert_eq!(server_is_here(&PlanSpec::from_toml(toml).unwrap()), expected, "{toml}");
        }
    }
}
