//! The kernel timestamps of one connection: which byte's is awaited, and what the error queue says of it.
//!
//! Not which requests are stamped (`state/stamper.rs`). Invariant: a timestamp of another byte than the last one of the awaited
//! request is never taken for that of the request.

use super::kernel_stamps;
use super::{Stamps, Transmitted};
use std::os::fd::AsFd;

/// The timestamps of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ConnectionStamps {
    /// Bytes sent since timestamps were switched on, modulo 2³², as the kernel counts them.
    sent: u32,
    /// The byte whose stamp is awaited.
    awaited: Option<u32>,
    transmitted: Transmitted,
}

impl ConnectionStamps {
    /// Counts bytes that the socket took.
    pub(super) fn add_sent(&mut self, bytes: usize) {
        self.sent = self.sent.wrapping_add(bytes as u32);
    }

    /// The last byte sent is that of a stamped request.
    pub(super) fn await_last(&mut self) {
        self.awaited = Some(self.sent.wrapping_sub(1));
        self.transmitted = Transmitted::Unknown;
    }

    /// Is a stamp awaited?
    pub(super) fn is_awaited(&self) -> bool {
        self.awaited.is_some()
    }

    /// Empties the error queue of the connection's socket. Returns whether there was anything in it.
    pub(super) fn drain_error_queue(&mut self, socket: impl AsFd, syscalls: &mut u64) -> bool {
        let mut any = false;
        loop {
            *syscalls += 1;
            // An error here is that of an empty queue, or one of the socket, which a read will meet too.
            let Ok(entry) = kernel_stamps::take_transmission(socket.as_fd()) else { return any };
            any = true;
            // Of several the first: a packet that is sent again is stamped again.
            if let (Some(transmission), Some(awaited), Transmitted::Unknown | Transmitted::OtherByte) =
                (entry, self.awaited, self.transmitted)
            {
                self.transmitted = match transmission.byte == awaited {
                    true => Transmitted::At(transmission.at_ns),
                    false => Transmitted::OtherByte,
                };
            }
        }
    }

    /// Ends the wait with the arrival of the reply.
    pub(super) fn take(
        &mut self,
        socket: Option<impl AsFd>,
        received_ns: Option<u64>,
        syscalls: &mut u64,
    ) -> Stamps {
        if let (Transmitted::Unknown, Some(socket)) = (self.transmitted, socket) {
            self.drain_error_queue(socket, syscalls);
        }
        self.awaited = None;
        Stamps { transmitted: std::mem::take(&mut self.transmitted), received_ns }
    }
}
