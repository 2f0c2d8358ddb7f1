//! Names by which an endpoint may be asked for. A page elsewhere whose name was pointed at this host (DNS rebinding) could otherwise read
//! what a browser here may.
//!
//! Ports are not looked at. Invariant: a name that others control is never one of them.

use crate::host_facts::host_name;
use std::net::IpAddr;

/// The names of an endpoint.
#[derive(Clone, Debug)]
pub(super) struct Hosts {
    /// Where it listens.
    ip: IpAddr,
    /// The name of this host.
    name: String,
}

impl Hosts {
    /// Of an endpoint that listens at this address.
    pub(super) fn of(ip: IpAddr) -> Self {
        Self { ip, name: host_name() }
    }

    /// Of a test's endpoint on the loopback interface.
    #[cfg(test)]
    pub(super) fn of_test() -> Self {
        Self::of(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST))
    }

    /// May an endpoint be asked for by this value of `Host`? By a name or an address of the loopback interface and by the address where it
    /// listens; beyond the loopback interface by the name of this host; at all addresses by any address.
    pub(super) fn include(&self, host: &str) -> bool {
        let Some(host) = without_port(host) else { return false };
        let literal = host.strip_prefix('[').map_or(host, |rest| rest.strip_suffix(']').unwrap_or(rest));
        if let Ok(ip) = literal.parse::<IpAddr>() {
            let ip = ip.to_canonical();
            return ip.is_loopback() || ip == self.ip.to_canonical() || self.ip.is_unspecified();
        }
        let name = host.strip_suffix('.').unwrap_or(host);
        name.eq_ignore_ascii_case("localhost")
            || !self.ip.is_loopback() && !name.is_empty() && name.eq_ignore_ascii_case(&self.name)
    }
}

/// The host in front of its port, if that is a number.
fn without_port(host: &str) -> Option<&str> {
    let (name, port) = match host.rfind(':') {
        Some(colon) if !host[colon..].contains(']') => host.split_at(colon),
        _ => (host, ""),
    };
    port.bytes().skip(1).all(|byte| byte.is_ascii_digit()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_others_control_are_refused() {
        // Where it listens → what may be asked for, and what may not.
        let table: [(&str, &[&str], &[&str]); 4] = [
            (
                "127.0.0.1",
                &[
                    "localhost",
                    "LocalHost:9090",
                    "localhost.",
                    "127.0.0.1:9090",
                    "127.8.9.1",
                    "[::1]:9090",
                    "[::1]",
                ],
                &[
                    "",
                    ":9090",
                    "evil.example",
                    "evil.example:9090",
                    "localhost.evil.example",
                    "127.0.0.1.evil.example",
                    "bench",
                    "192.0.2.1",
                    "localhost:x",
                    "[::2]",
                ],
            ),
            (
                "192.0.2.1",
                &["192.0.2.1:9090", "localhost", "bench:9090", "BENCH"],
                &["192.0.2.2", "evil.example"],
            ),
            (
                "0.0.0.0",
                &["192.0.2.1:9090", "[2001:db8::1]:9090", "127.0.0.1", "bench"],
                &["evil.example", "bench.evil.example", ""],
            ),
            ("::", &["192.0.2.1", "[2001:db8::1]", "localhost:1"], &["evil.example"]),
        ];
        for (ip, included, refused) in table {
            let hosts = Hosts { ip: ip.parse().unwrap(), name: "bench".to_owned() };
            included.iter().for_each(|host| assert!(hosts.include(host), "{host} at {ip}"));
            refused.iter().for_each(|host| assert!(!hosts.include(host), "{host} at {ip}"));
        }
    }
}
