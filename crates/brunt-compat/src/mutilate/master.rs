//! A command line with agents: what is refused, and what is otherwise than it seems.
//!
//! Options without effect are in the table of `command_line.rs`.

use super::command_line::{CommandLine, refuse};
use brunt_plan::resolve::fleet::split;
use std::net::IpAddr;

impl CommandLine {
    /// Refuses what agents cannot do.
    pub(super) fn check_master(&self) -> Result<(), String> {
        if !self.has_agents() {
            return Ok(());
        }
        let is_single = self.scan.is_none() && self.search.is_none();
        let too_fast = self.measure_qps.filter(|own| *own > 0 && self.qps > 0 && *own >= self.qps);
        if let Some(own) = too_fast.filter(|_| is_single) {
            return Err(format!(
                "invalid value '{own}' for --measure_qps: expected less than --qps {}, for the rest is the agents'",
                self.qps
            ));
        }
        refuse(&[
            (
                self.agent_port == 0,
                "invalid value '0' for --agent_port: expected a port of TCP, from 1 to 65535",
            ),
            (
                self.unix_socket,
                "--unix_socket cannot be used with --agent: no agent opens a file that a master names",
            ),
            (
                self.read_file.is_some(),
                "--read_file cannot be used with --agent: the file is read on this host",
            ),
            (self.queries > 0, "--queries cannot be used with --agent: --time ends all agents at once"),
            (
                self.search.is_some() && self.threads == 0 && !self.agent_sampling,
                "--search judges reads of the master, and --threads 0 has none: add --agent-sampling or threads",
            ),
        ])
    }

    /// What of a master's options is otherwise than it seems.
    pub(super) fn master_warnings(&self) -> Vec<String> {
        let own = self.measure_qps.unwrap_or(0);
        let steps = self.scan.filter(|_| self.search.is_none() && self.threads > 0 && self.has_agents());
        let low_step = steps.filter(|range| {
            // A step of 0 is as fast as it goes.
            let slowest = if range.min == 0 { range.step } else { range.min };
            slowest <= range.max.min(own)
        });
        let far = self.agents.iter().find(|(host, _)| !is_this_host(host));
        // An IPv6 address without brackets is a host by itself.
        let host_of = |server: &String| split(server).map_or(server.clone(), |(host, _)| host.to_owned());
        let near = self.servers.iter().find(|server| is_this_host(&host_of(server)));
        let mut warnings = Vec::new();
        if let (Some((agent, _)), Some(server), false) = (far, near, self.loadonly) {
            let stored = match self.noload {
                true => "",
                false => {
                    ", whose server then holds only its share of the keys; load each host with --loadonly, and give --noload here"
                }
            };
            warnings.push(format!(
                "--server: agent {agent} looks '{server}' up itself, and finds its own host{stored}"
            ));
        }
        if low_step.is_some() {
            warnings.push(format!(
                "--scan: rates up to --measure_qps {own} are the master's alone; agents pause there"
            ));
        }
        if self.threads == 0 && !self.agent_sampling && !self.loadonly {
            warnings.push(
                "--threads: with 0 no row has a latency; --agent-sampling shows those of agents".to_owned(),
            );
        }
        warnings
    }
}

fn is_this_host(name: &str) -> bool {
    let address = name.trim_matches(['[', ']']).parse::<IpAddr>();
    name == "localhost" || address.is_ok_and(|address| address.is_loopback())
}
