//! Where agents that dial the controller arrive, each with the rank that its engine gave it.
//!
//! It only looks: nothing here waits for an agent, so that those that are silent do not delay the others. Invariant: memory is bounded by
//! [`NEWCOMERS_MAX`] connections that have not shown who they are, each for a few seconds.

use crate::credentials::ControllerCredentials;
use crate::message::{AgentInfo, ToAgent};
use crate::message_channel::MessageChannel;
use crate::newcomer::Newcomer;
use crate::rank::Rank;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

/// Connections that are on their way in at a time; others wait in the kernel's queue.
const NEWCOMERS_MAX: usize = 1024;
/// Time limit for telling an agent why it is refused.
pub(crate) const REFUSAL_MAX: Duration = Duration::from_millis(100);

/// Interval of notes on peers that are refused.
const STRANGER_INTERVAL: Duration = Duration::from_secs(1);

/// The door of a fleet of a size that is known.
pub(crate) struct Door {
    listener: TcpListener,
    pub(crate) size: u32,
    credentials: ControllerCredentials,
    newcomers: Vec<Newcomer>,
    /// Tells the user what happens at it.
    pub(crate) note: fn(&str),
    /// When the user was last told of a peer that is no agent of this fleet, and how many there were since.
    told: Option<Instant>,
    untold: u32,
}

/// An agent that is authenticated and has said what it is.
pub(crate) struct Arrival {
    pub(crate) link: MessageChannel,
    pub(crate) info: AgentInfo,
}

/// Who has a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) attempt: u32,
    pub(crate) is_lost: bool,
}

impl Door {
    /// # Errors
    /// The socket cannot be looked at without waiting.
    pub(crate) fn new(
        listener: TcpListener,
        size: u32,
        credentials: ControllerCredentials,
        note: fn(&str),
    ) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(Self { listener, size, credentials, newcomers: Vec::new(), note, told: None, untold: 0 })
    }

    /// Takes in who has come, and returns who has shown who it is.
    pub(crate) fn arrivals(&mut self) -> Vec<Arrival> {
        let mut strangers = Vec::new();
        while self.newcomers.len() < NEWCOMERS_MAX {
            match self.listener.accept() {
                Ok((socket, peer)) => {
                    let name = SocketAddr::new(peer.ip().to_canonical(), peer.port()).to_string();
                    match Newcomer::new(name.clone(), socket, &self.credentials) {
                        Ok(newcomer) => self.newcomers.push(newcomer),
                        Err(why) => strangers.push(format!("{name} {why}")),
                    }
                }
                // No connection waits, or there is no room for another connection yet.
                Err(_) => break,
            }
        }
        let mut arrived = Vec::new();
        self.newcomers.retain_mut(|newcomer| match newcomer.advance(&self.credentials) {
            Ok(None) => true,
            Ok(Some((link, info))) => {
                arrived.push(Arrival { link, info });
                false
            }
            Err(why) => {
                strangers.push(format!("{} {why}", newcomer.name));
                false
            }
        });
        strangers.iter().for_each(|stranger| self.tell_of(stranger));
        arrived
    }

    /// Tells the user of a peer that is refused, once in a while: any host may send any number.
    fn tell_of(&mut self, stranger: &str) {
        if self.told.is_some_and(|told| told.elapsed() < STRANGER_INTERVAL) {
            self.untold += 1;
            return;
        }
        let others = match std::mem::take(&mut self.untold) {
            0 => String::new(),
            others => format!(", and {others} others before it"),
        };
        self.told = Some(Instant::now());
        (self.note)(&format!("{stranger}: refused{others}"));
    }

    /// Tells an arrival why it is not taken, and the user.
    pub(crate) fn refuse(&self, mut arrival: Arrival, why: &str) {
        (self.note)(&format!("refused an agent on {}: {why}", arrival.info.host));
        // One that is lost does not read this.
        let _ = arrival.link.send_message(&ToAgent::Refuse { reason: why.to_owned() });
        arrival.link.drain(Instant::now() + REFUSAL_MAX);
    }

    /// Where connections come in, to wait for one.
    pub(crate) fn listener(&self) -> &TcpListener {
        &self.listener
    }
}

/// Which rank an arrival takes in a fleet of this size, where `holder` says who has a rank; an error is why it takes none.
pub(crate) fn rank_of(
    info: &AgentInfo,
    size: u32,
    version: &str,
    holder: impl Fn(u32) -> Option<Holder>,
) -> Result<Rank, String> {
    if info.version != version {
        return Err(format!("brunt {} cannot join a fleet of brunt {version}", info.version));
    }
    let rank = info.rank.ok_or("an agent needs a rank to join a fleet: --rank R --of N")?;
    let Rank { index, of, attempt } = Rank::new(rank.index, rank.of, rank.attempt)?;
    if of != size {
        return Err(format!("rank {index} of {of} cannot join a fleet of {size}"));
    }
    match holder(index) {
        Some(held) if !held.is_lost && attempt <= held.attempt => Err(format!(
            "rank {index} is taken, by attempt {} of it; this is attempt {attempt}",
            held.attempt
        )),
        _ => Ok(rank),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn strangers_are_named_once_a_second() {
        static NOTES: AtomicU32 = AtomicU32::new(0);
        fn count(_: &str) {
            NOTES.fetch_add(1, Ordering::Relaxed);
        }
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let mut door = Door::new(listener, 1, ControllerCredentials::OPEN, count).unwrap();
        (0..100).for_each(|_| door.tell_of("a stranger"));
        assert_eq!((NOTES.load(Ordering::Relaxed), door.untold), (1, 99));
        door.told = None;
        door.tell_of("a stranger");
        assert_eq!((NOTES.load(Ordering::Relaxed), door.untold), (2, 0));
    }

    #[test]
    fn ranks_are_taken_once_unless_by_a_later_attempt() {
        let [none, held, lost] =
            [None, Some(Holder { attempt: 1, is_lost: false }), Some(Holder { attempt: 1, is_lost: true })];
        let rank = |index, of, attempt| Some(Rank { index, of, attempt });
        let table = [
            (rank(2, 4, 0), "1.0", none, Ok(2)),
            (rank(2, 4, 2), "1.0", held, Ok(2)),
            (rank(2, 4, 1), "1.0", lost, Ok(2)),
            (rank(2, 4, 1), "1.0", held, Err("rank 2 is taken, by attempt 1 of it; this is attempt 1")),
            (rank(2, 8, 0), "1.0", none, Err("rank 2 of 8 cannot join a fleet of 4")),
            (rank(4, 4, 0), "1.0", none, Err("rank 4 of 4: expected a rank below a size of at most 1024")),
            (None, "1.0", none, Err("an agent needs a rank to join a fleet: --rank R --of N")),
            (rank(2, 4, 0), "0.9", none, Err("brunt 0.9 cannot join a fleet of brunt 1.0")),
        ];
        for (rank, version, holder, expected) in table {
            let (host, version) = ("h".to_owned(), version.to_owned());
            let info = AgentInfo { host, version, threads: 1, weight: 1, rank };
            let taken = rank_of(&info, 4, "1.0", |_| holder).map(|rank| rank.index);
            assert_eq!(taken, expected.map_err(str::to_owned), "{info:?}");
        }
    }
}
