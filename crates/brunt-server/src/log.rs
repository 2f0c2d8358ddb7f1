//! The binary log of all data commands, for tests that compare a client's numbers with it.
//!
//! All numbers are little endian. A header of 32 bytes:
//!
//! | bytes | field |
//! |---|---|
//! | 0–7 | the letters `bruntlog` |
//! | 8–11 | version of this layout, 1 |
//! | 12–15 | bytes of a record, 32 |
//! | 16–23 | number of the first scripted request |
//! | 24–31 | seed of the service times |
//!
//! then records of 32 bytes, in the order of arrival:
//!
//! | bytes | field |
//! |---|---|
//! | 0–7 | request number, from 0 |
//! | 8–15 | arrival in nanoseconds of CLOCK_MONOTONIC (in a simulation, of its clock) |
//! | 16–23 | departure, the same clock |
//! | 24–27 | connection, numbered from 0 in order of acceptance |
//! | 28 | verb, [`Verb`](crate::text::Verb) as a number |
//! | 29 | flags, see [`FLAG_NOREPLY`] and its neighbours |
//! | 30–31 | 0 |
//!
//! The departure is the one computed, which the reply leaves at or shortly after. A log is complete once the server has
//! been idle for 10 ms (unless it busy-polls) or has seen a connection close; a server that is killed under load may
//! lose the last records.

use std::io::{self, BufWriter, Write};

const VERSION: u32 = 1;
const RECORD_BYTES: usize = 32;

/// Flag: the client wanted no reply.
pub const FLAG_NOREPLY: u8 = 1;
/// Flag: carried out, never answered, connection dead.
pub const FLAG_DROPPED: u8 = 2;
/// Flag: refused by script.
pub const FLAG_ERROR: u8 = 4;
/// Flag: answered with wrong values. Not set where the fault was due but no byte was there to be wrong.
pub const FLAG_WRONG: u8 = 8;
/// Flag: carried out, never answered, connection reset at the departure.
pub const FLAG_RESET: u8 = 16;
/// Flag: the reply was cut in the middle and the connection closed behind it. Not set where there was no reply to cut, nor,
/// as with [`FLAG_WRONG`], where a multi-get is several commands and the first of them had none.
pub const FLAG_CUT: u8 = 32;
/// Flag: carried out, never answered, because an outage begins before the departure; also where the reply drips and its
/// first pieces leave in time.
pub const FLAG_LOST: u8 = 64;

/// One data command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Number over all connections in order of arrival, from 0.
    pub number: u64,
    /// When the read that completed it returned, in nanoseconds.
    pub arrival_ns: u64,
    /// When its reply is due, in nanoseconds.
    pub departure_ns: u64,
    /// The connection, numbered from 0 in order of acceptance.
    pub connection: u32,
    /// The verb as a number.
    pub verb: u8,
    /// The sum of the flags.
    pub flags: u8,
}

/// A log being written.
#[derive(Debug)]
pub struct Log<W: Write> {
    out: BufWriter<W>,
}

impl<W: Write> Log<W> {
    /// Begins a log. Buffers 256 KiB, so that a busy server writes once in 8192 requests.
    pub fn begin(out: W, script_after: u64, seed: u64) -> io::Result<Self> {
        let mut out = BufWriter::with_capacity(8192 * RECORD_BYTES, out);
        out.write_all(b"bruntlog")?;
        out.write_all(&[VERSION.to_le_bytes(), (RECORD_BYTES as u32).to_le_bytes()].concat())?;
        out.write_all(&[script_after.to_le_bytes(), seed.to_le_bytes()].concat())?;
        out.flush()?;
        Ok(Self { out })
    }

    /// Appends a record.
    pub fn push(&mut self, record: &Record) -> io::Result<()> {
        self.out.write_all(&record.to_bytes())
    }

    /// Is anything held back?
    pub fn is_behind(&self) -> bool {
        !self.out.buffer().is_empty()
    }

    /// Writes what is held back.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Record {
    fn to_bytes(self) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        bytes[..8].copy_from_slice(&self.number.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.arrival_ns.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.departure_ns.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.connection.to_le_bytes());
        bytes[28] = self.verb;
        bytes[29] = self.flags;
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_layout_is_fixed() {
        let record = Record {
            number: 0x0102_0304_0506_0708,
            arrival_ns: 1,
            departure_ns: 2,
            connection: 3,
            verb: 4,
            flags: 5,
        };
        let expected = [
            8, 7, 6, 5, 4, 3, 2, 1, // number
            1, 0, 0, 0, 0, 0, 0, 0, // arrival
            2, 0, 0, 0, 0, 0, 0, 0, // departure
            3, 0, 0, 0, 4, 5, 0, 0,
        ];
        assert_eq!(record.to_bytes(), expected);
    }
}
