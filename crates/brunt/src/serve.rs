//! `brunt serve`: the reference server by itself.
//!
//! Not the server: flags become its options here, nothing more.

use crate::cli;
use crate::exit::{Exit, Failure};
use brunt_server::{CoreOptions, Faults, Options};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};

/// Serves until a signal ends the process.
pub(crate) fn serve(flags: &cli::Serve) -> Result<Exit, Failure> {
    let options = Options {
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, flags.port)),
        core: CoreOptions {
            memory_bytes: flags.memory.0,
            value_bytes_max: flags.value_max.0,
            seed: flags.seed,
            service: flags.service,
            stalls: flags.stall.clone(),
            faults: Faults {
                drop_every: flags.drop_every,
                error_every: flags.error_every,
                wrong_every: flags.wrong_every,
            },
            script_after: flags.script_after,
            ..CoreOptions::default()
        },
        log: flags.log.clone(),
        die_with_parent: flags.die_with_parent,
        busy_poll: flags.busy_poll,
    };
    brunt_server::serve(options, &mut io::stdout())?;
    Ok(Exit::Done)
}
