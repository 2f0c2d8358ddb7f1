//! `brunt serve`: the reference server by itself.
//!
//! Not the server: flags become its options here, nothing more.

use crate::cli;
use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::limits;
use crate::terminal::Page;
use brunt_engine::process::cannot;
use brunt_plan::cpus::CpuList;
use brunt_server::{CoreOptions, Credentials, DatagramFaults, Faults, Listen, Options};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};

/// Serves until a signal comes.
pub(crate) fn serve(flags: &cli::Serve) -> Result<Exit, Failure> {
    if let Some(cpus) = &flags.cpus {
        stay_on(cpus)?;
    }
    limits::raise_open_files();
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
    let announce = |place: &Listen| Page.write_all(format!("listening on {place}\n").as_bytes());
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
