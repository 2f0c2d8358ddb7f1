//! The reference server: by itself (`brunt serve`), and as a child process for a run that names no server.
//!
//! Not the server: flags become its options here, nothing more. A process of its own, because a thread of brunt's would take
//! brunt's CPU time, and be counted as its own. Invariant: a child listens on a free loopback port and exits when brunt does, however that ends.

use crate::cli;
use crate::exit::{Exit, Failure};
use crate::host;
use crate::interrupt;
use crate::terminal::show;
use brunt_engine::process::cannot;
use brunt_plan::cpus::CpuList;
use brunt_plan::resolve::Host;
use brunt_report::quantity;
use brunt_server::{CoreOptions, Credentials, DatagramFaults, Faults, Listen, Options};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context, bail};
use brunt_plan::plan::{DataSet, Plan, Protocol, Server, Transport};
use brunt_plan::server::ServerAddress;
use brunt_plan::size::SizeDistribution;
use brunt_workload::size::{SizeOf, Sizes};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// Serves until a signal comes.
pub(crate) fn serve(flags: &cli::Serve) -> Result<Exit, Failure> {
    if let Some(cpus) = &flags.cpus {
        stay_on(cpus)?;
    }
    host::raise_open_files();
    let loopback = || Listen::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, flags.port)));
    let options = Options {
        listen: flags.listen.clone().unwrap_or_else(loopback),
        datagrams: flags.udp,
        core: CoreOptions {
            memory_bytes: flags.memory.0,
            value_bytes_max: flags.value_max.0,
            seed: flags.seed,
            service: flags.service,
            stalls: flags.stall.clone(),
            outages: flags.outage.clone(),
            outage_forgets: flags.outage_forgets,
            drip: flags.drip,
            faults: Faults {
                drop_every: flags.drop_every,
                reset_every: flags.reset_every,
                cut_every: flags.cut_every,
                error_every: flags.error_every,
                wrong_every: flags.wrong_every,
            },
            miss_ids: flags.miss_ids,
            script_after: flags.script_after,
            protocol: flags.protocol,
            credentials: flags
                .password
                .clone()
                .map(|password| Credentials { user: flags.user.clone(), password }),
            division: flags.udp_trains,
            datagram_faults: DatagramFaults {
                drop_every: flags.udp_drop_every,
                duplicate_every: flags.udp_duplicate_every,
                swap_every: flags.udp_swap_every,
            },
            ..CoreOptions::default()
        },
        log: flags.log.clone(),
        die_with_parent: flags.die_with_parent,
        output_buffer_limit: usize::try_from(flags.output_buffer_limit.0).unwrap_or(usize::MAX),
        busy_poll: flags.busy_poll,
    };
    let interrupted = interrupt::descriptor().map_err(Failure::failed)?;
    let announce = |place: &Listen| {
        show(format!("listening on {place}\n"), false);
        Ok(())
    };
    let served = brunt_server::serve(options, Some(interrupted), announce);
    served.map_err(cannot("serve")).map_err(Failure::failed)?;
    Ok(Exit::Done)
}

/// Keeps this process on these processors.
fn stay_on(cpus: &CpuList) -> Result<(), Failure> {
    let mut set = CpuSet::new();
    cpus.0.iter().filter(|cpu| (**cpu as usize) < CpuSet::MAX_CPU).for_each(|cpu| set.set(*cpu as usize));
    sched_setaffinity(None, &set).map_err(|error| {
        let accepted = CpuList(brunt_engine::allowed_cpus());
        Failure::usage(format!(
            "invalid value '{cpus}' for --cpus: expected processors out of {accepted} ({error})"
        ))
    })
}

/// What the server takes per item beside key and value, generously.
const ITEM_OVERHEAD_BYTES: u64 = 128;
const MEMORY_MIN_BYTES: u64 = 64 << 20;
const VALUE_MIN_BYTES: u64 = 1 << 20;

/// Is it to be reached by UDP?
fn is_own_by_udp(server: &Server) -> bool {
    server.address.is_none() && server.transport == Transport::Udp
}

/// The protocol that the server must be told, because the first bytes of a connection do not tell it.
fn named_protocol(plan: &Plan) -> anyhow::Result<Option<Protocol>> {
    let servers = &plan.servers;
    let mut own = servers.iter().filter(|server| server.address.is_none()).map(|server| server.protocol);
    let is_named = |protocol: &Protocol| protocol.is_stateless() || *protocol == Protocol::RespInline;
    let named = own.clone().find(is_named);
    match own.find(|protocol| named.is_some_and(|named| named != *protocol)) {
        Some(other) => bail!(
            "--protocol: the reference server cannot serve both {} and {other} on one port: add a --server for each",
            named.map_or("", Protocol::name)
        ),
        None => Ok(named),
    }
}

/// A running reference server; dropping it ends it.
#[derive(Debug)]
pub(crate) struct Embedded {
    child: Child,
    /// Where it listens.
    pub address: ServerAddress,
}

impl Embedded {
    /// Starts one with room for the plan's data sets.
    pub(crate) fn start(plan: &Plan) -> anyhow::Result<Self> {
        let own = std::env::current_exe().context("cannot find the path of this program")?;
        let child = Command::new(own)
            .args(["serve", "--port", "0", "--die-with-parent"])
            .arg(format!("--memory={}", memory_bytes(plan)))
            .arg(format!("--value-max={}", value_max_bytes(plan)))
            .args(plan.servers.iter().any(is_own_by_udp).then_some("--udp"))
            .args(named_protocol(plan)?.map(|protocol| format!("--protocol={protocol}")))
            .args(left_over(&brunt_engine::allowed_cpus(), &plan.cpus).map(|cpus| format!("--cpus={cpus}")))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            // A terminal sends Ctrl-C and its own end to the whole group; we drain then, and need the server for it.
            .process_group(0)
            .spawn()
            .context("cannot start the reference server")?;
        // Owned from here on, so that it ends even if the announcement does not come.
        let mut embedded = Self { child, address: ServerAddress::network("127.0.0.1", 0) };
        let mut announcement = String::new();
        if let Some(stdout) = embedded.child.stdout.take() {
            BufReader::new(stdout)
                .read_line(&mut announcement)
                .context("the reference server said nothing")?;
        }
        let Some(port) = announcement.trim().rsplit_once(':').and_then(|(_, port)| port.parse().ok()) else {
            bail!("the reference server did not start; it said '{}'", announcement.trim());
        };
        embedded.address = ServerAddress::network("127.0.0.1", port);
        Ok(embedded)
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        // It may have ended already; then there is nothing to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The processors that workers which are pinned leave to the server; `None` where they are not pinned or leave none.
fn left_over(allowed: &[u32], pinned: &[u32]) -> Option<CpuList> {
    let others: Vec<u32> = allowed.iter().copied().filter(|cpu| !pinned.contains(cpu)).collect();
    (!pinned.is_empty() && !others.is_empty()).then_some(CpuList(others))
}

/// Refuses a data set that this host cannot hold beside everything else.
pub(crate) fn check_memory(plan: &Plan) -> Result<(), String> {
    let Some(most) = host::memory_bytes("MemAvailable").map(|bytes| bytes / 5 * 4) else { return Ok(()) };
    let needed = memory_bytes(plan);
    if needed <= most {
        return Ok(());
    }
    Err(format!(
        "--keys, --value-size: the reference server would need {} MiB for this data set: expected up to {} MiB here, or a \
         --server of your own",
        needed >> 20,
        most >> 20
    ))
}

/// Refuses to store more on servers of the user on this host than it has memory for.
pub(crate) fn check_storage(plan: &Plan, asked: &Host) -> Result<(), String> {
    let Some(most) = host::memory_bytes("MemTotal") else { return Ok(()) };
    let bytes = stored_bytes(plan);
    if !asked.server_is_here || !plan.preload || plan.needs_embedded() || bytes <= most {
        return Ok(());
    }
    let [bytes, most] = [bytes, most].map(quantity::bytes);
    Err(format!(
        "--keys, --value-size: storing {} keys takes {bytes} of the server, and this host has {most} of memory: expected fewer --keys, \
         or --no-preload",
        plan.preload_stores()
    ))
}

/// What the server takes for the data sets of a plan.
pub(crate) fn memory_bytes(plan: &Plan) -> u64 {
    let needed =
        |set: &DataSet<'_>| set.ids_held().saturating_mul(item_bytes(plan, set) + ITEM_OVERHEAD_BYTES);
    let data: u64 = plan.data_sets().iter().map(needed).fold(0, u64::saturating_add);
    data.saturating_add(data / 4).max(MEMORY_MIN_BYTES)
}

/// Bytes of a key and its value, on average.
fn item_bytes(plan: &Plan, set: &DataSet<'_>) -> u64 {
    // The mean, for the longest value that a law allows may be a thousand times that; of as many ids as tell it to a hundredth.
    let ids = set.ids_held().clamp(1, 1 << 18);
    let step = set.ids_held() / ids;
    let mean = |sizes: &SizeDistribution, of| {
        let sizes = Sizes::new(sizes.clone(), of, plan.data_seed);
        (0..ids).map(|nth| u64::from(sizes.len(nth * step))).sum::<u64>().div_ceil(ids)
    };
    mean(&set.keyspace.key_size, SizeOf::Key) + mean(&set.keyspace.value_size, SizeOf::Value)
}

/// Bytes of the keys and values that the preload of a plan stores, about.
pub(crate) fn stored_bytes(plan: &Plan) -> u64 {
    let stored = |set: &DataSet<'_>| set.ids_preloaded().saturating_mul(set.copies * item_bytes(plan, set));
    plan.data_sets().iter().map(stored).fold(0, u64::saturating_add)
}

fn value_max_bytes(plan: &Plan) -> u64 {
    let longest = plan.classes.iter().map(|class| u64::from(class.keyspace.value_size.max())).max();
    longest.unwrap_or(0).max(VALUE_MIN_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_runs_on_cpus_without_workers() {
        let table: [(&[u32], &[u32], Option<&str>); 4] = [
            (&[0, 1, 2, 3], &[1], Some("0,2-3")),
            (&[0, 1], &[], None),
            (&[0, 1], &[0, 1], None),
            (&[4, 5], &[5], Some("4")),
        ];
        for (allowed, pinned, expected) in table {
            let list = left_over(allowed, pinned).map(|list| list.to_string());
            assert_eq!(list.as_deref(), expected, "{pinned:?} of {allowed:?}");
        }
    }
}
