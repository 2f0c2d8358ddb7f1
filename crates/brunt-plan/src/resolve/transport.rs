//! What carries the bytes: the transport, and what depends on it.
//!
//! Not where the servers are (that is the target's).

use super::{Complaint, PlanError};
use crate::plan::{Timestamps, Transport};
use crate::spec::RunSpec;

/// The transport: as given, else as the servers are named.
pub(super) fn resolve(complaint: &Complaint<'_>, run: &RunSpec) -> Result<Transport, PlanError> {
    let servers = run.server.as_ref().map(|list| list.0.as_slice()).unwrap_or_default();
    let path = servers.iter().find(|server| server.is_unix());
    let has_hosts = servers.iter().any(|server| !server.is_unix());
    match (run.transport, path) {
        (_, Some(path)) if has_hosts => {
            let accepted = "paths of sockets only, or hosts only: a run has one transport";
            Err(complaint.error("server", path, accepted))
        }
        (Some(Transport::Unix), None) => {
            let accepted = "--transport unix together with --server unix:PATH";
            Err(complaint.error("transport", Transport::Unix, accepted))
        }
        (None | Some(Transport::Unix), Some(_)) => Ok(Transport::Unix),
        (Some(given), Some(path)) => {
            Err(complaint.error("transport", given, format!("unix, for --server {path} is a path")))
        }
        (given, None) => Ok(given.unwrap_or(Transport::Tcp)),
    }
}

/// The kernel stamps the segments of TCP.
pub(super) fn resolve_timestamps(complaint: &Complaint<'_>, run: &RunSpec) -> Result<Timestamps, PlanError> {
    let timestamps = run.timestamps.unwrap_or(Timestamps::Off);
    match (timestamps, resolve(complaint, run)?) {
        (Timestamps::Off, _) | (_, Transport::Tcp) => Ok(timestamps),
        (Timestamps::Kernel, other) => {
            Err(complaint.error("timestamps", timestamps, format!("off with --transport {other}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::plan::{Plan, Transport};
    use crate::resolve::{Host, resolve};
    use crate::spec::PlanSpec;

    fn resolved(toml: &str) -> Result<Plan, String> {
        let host = Host { allowed_cpus: vec![0, 1], random_seed: 1 };
        resolve(&PlanSpec::from_toml(toml).unwrap(), &host).map_err(|error| error.to_string())
    }

    #[test]
    fn servers_say_what_carries_the_bytes() {
        let table = [
            ("", Transport::Tcp),
            ("server = 'a'", Transport::Tcp),
            ("server = 'unix:/a'", Transport::Unix),
            ("server = ['unix:/a', 'unix:/b']\ntransport = 'unix'", Transport::Unix),
            ("server = 'unix:/a'\nprotocol = 'resp3'", Transport::Unix),
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
        ];
        for (toml, message) in table {
            assert_eq!(resolved(toml).unwrap_err(), message, "{toml}");
        }
    }
}
