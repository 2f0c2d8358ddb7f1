//! How many connections were begun, and what became of each.
//!
//! Not why one failed or was lost (that is the table of faults) and not how long connecting took (that is a meter).
//! Invariant, at any time: `begun = established + failed + pending` and `established = retired + lost + open`, where
//! pending and open are what the differences say; a difference below zero is a defect of the tool.

use crate::counts::counts;

/// What happened to a connection. Every one is begun, then established or failed, then retired or lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionEvent {
    /// An attempt to connect began.
    Begun,
    /// It is there, and can carry requests.
    Established,
    /// The attempt came to nothing.
    Failed,
    /// It was established and we closed it, as the plan wants it.
    Retired,
    /// It was established and went away against the plan.
    Lost,
}

counts! {
    /// How often each of the events happened.
    pub struct ConnectionCounts {
        /// Attempts to connect.
        pub begun: u64,
        /// Attempts that succeeded.
        pub established: u64,
        /// Attempts that did not.
        pub failed: u64,
        /// Connections closed as planned.
        pub retired: u64,
        /// Connections lost.
        pub lost: u64,
    }
}

impl ConnectionCounts {
    /// Counts one event.
    pub fn record(&mut self, event: ConnectionEvent) {
        let count = match event {
            ConnectionEvent::Begun => &mut self.begun,
            ConnectionEvent::Established => &mut self.established,
            ConnectionEvent::Failed => &mut self.failed,
            ConnectionEvent::Retired => &mut self.retired,
            ConnectionEvent::Lost => &mut self.lost,
        };
        *count += 1;
    }

    /// Attempts that have not ended. Only of a whole run: an attempt may end in another interval than it began in.
    pub const fn pending(&self) -> u64 {
        self.begun.saturating_sub(self.established + self.failed)
    }

    /// Established connections. Only of a whole run.
    pub const fn open(&self) -> u64 {
        self.established.saturating_sub(self.retired + self.lost)
    }

    /// Did nothing end that had not begun? To be asked of a whole run.
    pub const fn adds_up(&self) -> bool {
        self.established + self.failed <= self.begun && self.retired + self.lost <= self.established
    }
}

#[cfg(test)]
mod tests {
    use super::ConnectionEvent::{Begun, Established, Failed, Lost, Retired};
    use super::*;

    #[test]
    fn only_begun_connections_can_end() {
        // Events → pending, open, balances.
        let table: [(&[ConnectionEvent], u64, u64, bool); 8] = [
            (&[], 0, 0, true),
            (&[Begun], 1, 0, true),
            (&[Begun, Begun, Begun, Established, Failed], 1, 1, true),
            (&[Begun, Begun, Established, Established, Retired, Lost], 0, 0, true),
            (&[Begun, Begun, Established, Established, Retired], 0, 1, true),
            (&[Established], 0, 1, false),
            (&[Begun, Failed, Established], 0, 1, false),
            (&[Begun, Established, Retired, Lost], 0, 0, false),
        ];
        for (events, pending, open, balances) in table {
            let mut counts = ConnectionCounts::default();
            events.iter().for_each(|event| counts.record(*event));
            assert_eq!(
                (counts.pending(), counts.open(), counts.adds_up()),
                (pending, open, balances),
                "{events:?}"
            );
            let mut doubled = counts;
            doubled.merge(&counts);
            assert_eq!((doubled.begun, doubled.lost), (counts.begun * 2, counts.lost * 2));
        }
    }
}
