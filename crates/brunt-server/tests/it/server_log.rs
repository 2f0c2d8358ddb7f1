//! Reads the binary log of a reference server; the tests of other crates do so with this, too.

use brunt_server::log::Record;

/// The records of a log. A last one that is cut off is left out: the server may have been killed while writing.
pub(crate) fn read(log: &[u8]) -> Result<Vec<Record>, String> {
    let parts = log.split_at_checked(32).filter(|(header, _)| header.starts_with(b"bruntlog"));
    let (header, records) = parts.ok_or("not a server log: it does not begin with the letters bruntlog")?;
    let layout = u64_at(header, 8);
    if layout != 1 | 32 << 32 {
        return Err(format!("a server log of version {}, expected version 1", layout as u32));
    }
    let record = |bytes: &[u8; 32]| Record {
        number: u64_at(bytes, 0),
        arrival_ns: u64_at(bytes, 8),
        departure_ns: u64_at(bytes, 16),
        connection: u64_at(bytes, 24) as u32,
        verb: bytes[28],
        flags: bytes[29],
    };
    Ok(records.as_chunks().0.iter().map(record).collect())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}
