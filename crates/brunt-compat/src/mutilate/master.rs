//! A master's options beside the rest of its command line: what is refused, and what has no effect.

use super::command_line::CommandLine;
use super::host_options::MasterOptions;
use brunt_plan::resolve::fleet::split;
use std::net::IpAddr;

impl MasterOptions {
    /// Refuses what agents cannot do.
    pub(super) fn check(&self, line: &CommandLine) -> Result<(), String> {
        let is_single = line.scan.is_none() && line.search.is_none();
        if let Some(own) =
            self.measure_qps.filter(|own| *own > 0 && line.qps > 0 && *own >= line.qps && is_single)
        {
            return Err(format!(
                "invalid value '{own}' for --measure_qps: expected less than --qps {}, for the rest is the agents'",
                line.qps
            ));
        }
        if line.queries > 0 {
            return Err("--queries cannot be used with --agent: --time ends all agents at once".to_owned());
        }
        if line.search.is_some() && line.threads == 0 && !self.sampling {
            return Err("--search judges reads of the master, and --threads 0 has none: add --agent-sampling or threads".to_owned());
        }
        Ok(())
    }

    /// What of this has no effect, or another than it seems.
    pub(super) fn warnings(&self, line: &CommandLine) -> Vec<String> {
        let own = self.measure_qps.unwrap_or(0);
        let steps = line.scan.filter(|_| line.search.is_none());
        let has_low_step = steps.is_some_and(|range| {
            // A step of 0 is as fast as it goes.
            let slowest = if range.min == 0 { range.step } else { range.min };
            slowest <= range.max.min(own)
        });
        let is_measuring =
            [self.measure_qps.is_some(), self.measure_connections.is_some(), self.measure_depth.is_some()];
        let far = self.agents.iter().find(|(host, _)| !is_this_host(host));
        // An IPv6 address without brackets is a host by itself.
        let host_of = |server: &String| split(server).map_or(server.clone(), |(host, _)| host.to_owned());
        let near = line.servers.iter().find(|server| is_this_host(&host_of(server)));
        let mut warnings = Vec::new();
        if let (Some((agent, _)), Some(server)) = (far, near.filter(|_| !line.unix_socket && !line.loadonly))
        {
            let stored = match line.noload {
                true => "",
                false => {
                    ", whose server then holds only its share of the keys; load each host with --loadonly, and give --noload here"
                }
            };
            warnings.push(format!(
                "--server: agent {agent} looks '{server}' up itself, and finds its own host{stored}"
            ));
        }
        if has_low_step && line.threads > 0 {
            warnings.push(format!(
                "--scan: rates up to --measure_qps {own} are the master's alone; agents pause there"
            ));
        }
        if line.threads == 0 && is_measuring.contains(&true) {
            warnings.push("--measure_connections, --measure_qps, --measure_depth: without effect; with --threads 0 the master measures \
                 nothing".to_owned());
        }
        if line.threads == 0 && !self.sampling && !line.loadonly {
            warnings.push(
                "--threads: with 0 no row has a latency; --agent-sampling shows those of agents".to_owned(),
            );
        }
        let raw = [(line.save.is_some(), "--save"), (line.misswindow > 0, "--misswindow")];
        for (_, long) in raw.iter().filter(|(is_given, _)| *is_given && line.threads == 0) {
            warnings.push(format!(
                "{long}: without effect; single requests are the master's, and with --threads 0 it sends none"
            ));
        }
        if self.sampling && line.successful {
            warnings.push("--agent-sampling: without effect; --successful shows single requests, and those of agents stay with \
                 them".to_owned());
        }
        if line.loadonly {
            warnings.push("--agent: without effect; with --loadonly the master stores everything".to_owned());
        }
        warnings
    }
}

fn is_this_host(name: &str) -> bool {
    let address = name.trim_matches(['[', ']']).parse::<IpAddr>();
    name == "localhost" || address.is_ok_and(|address| address.is_loopback())
}
