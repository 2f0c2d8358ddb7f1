//! Options of the core.
//!
//! Plain data: nothing here changes once the server has started.

use crate::connection::{Credentials, WireProtocol};
use crate::faults::Faults;
use crate::fifo::{Outage, Stall};
#[cfg(doc)]
use crate::log::Record;
use crate::outbox::Drip;
use crate::service::Service;
use crate::udp::{DatagramFaults, Division};
use std::num::NonZeroU64;

/// How the time that is given relates to the world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Epoch {
    /// The given clock when the server started, in nanoseconds.
    pub start_ns: u64,
    /// Unix time when the server started, in seconds; absolute expiry times are read with it.
    pub start_unix_s: u64,
}

/// What a core is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreOptions {
    /// Bound on the store, in bytes.
    pub memory_bytes: u64,
    /// The longest value, in bytes.
    pub value_bytes_max: u64,
    /// Seed of the service times.
    pub seed: u64,
    /// Law of the service times.
    pub service: Service,
    /// When the server is frozen, counted from the arrival of the first scripted request.
    pub stalls: Vec<Stall>,
    /// When the server is gone, counted like the stalls. Requests that wait when an outage begins were carried out at
    /// their arrival, like all, and are never answered.
    pub outages: Vec<Outage>,
    /// Every outage empties the store, as a restart of memcached does; else the items are there again after it.
    pub outage_forgets: bool,
    /// What goes wrong and how often.
    pub faults: Faults,
    /// Replies leave in pieces. The queue is not held up by it: the next request is served while a reply drips.
    pub drip: Option<Drip>,
    /// Retrievals of keys whose digits at the end are a multiple of this number find nothing, from the start and whatever
    /// was stored: misses that depend on the key alone.
    pub miss_ids: Option<NonZeroU64>,
    /// How many data commands (a preload, say) are served before the script begins: without service time, stalls,
    /// outages, faults or dripping. Service times and faults count requests from there.
    pub script_after: u64,
    /// Keep a [`Record`] of every data command, to be taken with [`Core::take_records`](crate::Core::take_records).
    pub record: bool,
    /// Once replies of this many bytes are due to a connection, its next request waits until they are taken and
    /// [`Core::receive`](crate::Core::receive) is called again, if only with no bytes.
    pub due_bytes_max: usize,
    /// The longest reply, in bytes; a longer one is refused for lack of memory.
    pub reply_bytes_max: usize,
    /// How the given time relates to the world.
    pub epoch: Epoch,
    /// What every connection speaks; the first byte of each tells where there is none.
    pub protocol: Option<WireProtocol>,
    /// The only login that is accepted; without one, none is needed.
    pub credentials: Option<Credentials>,
    /// How replies are divided among datagrams.
    pub division: Division,
    /// What goes wrong with datagrams on their way and how often.
    pub datagram_faults: DatagramFaults,
}

impl Default for CoreOptions {
    /// 1 GiB, values up to 1 MiB (memcached's own bound), nothing scripted.
    fn default() -> Self {
        Self {
            memory_bytes: 1 << 30,
            value_bytes_max: 1 << 20,
            seed: 1,
            service: Service::None,
            stalls: Vec::new(),
            outages: Vec::new(),
            outage_forgets: false,
            faults: Faults::default(),
            drip: None,
            miss_ids: None,
            script_after: 0,
            record: false,
            due_bytes_max: usize::MAX,
            reply_bytes_max: usize::MAX,
            epoch: Epoch::default(),
            protocol: None,
            credentials: None,
            division: Division::default(),
            datagram_faults: DatagramFaults::default(),
        }
    }
}
