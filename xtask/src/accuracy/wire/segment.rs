//! TCP segments with data, or that open a connection, out of a capture file.
//!
//! Reads what tcpdump writes on the loopback interface: pcap with nanoseconds in this machine's byte order, Ethernet, IPv4.
//! Invariant: a packet that is anything else is left out; a file that is anything else is an error.

use anyhow::{Context, ensure};

/// Of the file, and of each packet in it.
const FILE_HEADER: usize = 24;
const PACKET_HEADER: usize = 16;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
const ETHERNET: u32 = 1;
const ETHERNET_HEADER: usize = 14;
const TCP: u8 = 6;
const SYN: u8 = 2;

/// Which of the two ends sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Server,
}

/// One segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment<'a> {
    /// By the wall clock, since 1970.
    pub(super) time_ns: u64,
    pub(super) client_port: u16,
    pub(super) from: Side,
    pub(super) sequence: u32,
    /// It opens the connection: its first byte has the sequence number behind this one.
    pub(super) is_syn: bool,
    /// Bytes of data on the wire.
    pub(super) length: usize,
    /// Those of them that were captured: all, or the first ones.
    pub(super) bytes: &'a [u8],
}

/// The segments from and to a server's port, in the order of their capture.
///
/// # Errors
/// It is not a capture file of the expected kind.
pub(super) fn segments(file: &[u8], server_port: u16) -> anyhow::Result<Vec<Segment<'_>>> {
    let header = file.get(..FILE_HEADER).context("the capture has no header")?;
    ensure!(word(header, 0) == NANOSECONDS, "the capture has no nanoseconds");
    ensure!(word(header, 20) == ETHERNET, "the capture is not of an Ethernet or loopback interface");
    let (mut at, mut segments) = (FILE_HEADER, Vec::new());
    while let Some(header) = file.get(at..at + PACKET_HEADER) {
        let time_ns = u64::from(word(header, 0)) * 1_000_000_000 + u64::from(word(header, 4));
        let start = at + PACKET_HEADER;
        let end = start + word(header, 8) as usize;
        let packet = file.get(start..end).context("the capture ends within a packet")?;
        segments.extend(segment(time_ns, packet, server_port));
        at = end;
    }
    Ok(segments)
}

fn segment(time_ns: u64, packet: &[u8], server_port: u16) -> Option<Segment<'_>> {
    let ip = packet.get(ETHERNET_HEADER..)?;
    let is_tcp_over_ipv4 = packet[12..14] == [0x08, 0x00] && *ip.get(9)? == TCP;
    if !is_tcp_over_ipv4 {
        return None;
    }
    let ip_header = usize::from(ip[0] & 0xf) * 4;
    let tcp = ip.get(ip_header..)?;
    let headers = ip_header + usize::from(tcp.get(12)? >> 4) * 4;
    let length = usize::from(half(ip, 2)).checked_sub(headers)?;
    let is_syn = *tcp.get(13)? & SYN != 0;
    if length == 0 && !is_syn {
        return None;
    }
    let (source, destination) = (half(tcp, 0), half(tcp, 2));
    let (client_port, from) = match (source == server_port, destination == server_port) {
        (true, _) => (destination, Side::Server),
        (_, true) => (source, Side::Client),
        _ => return None,
    };
    let bytes = ip.get(headers..).unwrap_or_default();
    let bytes = &bytes[..bytes.len().min(length)];
    let sequence = u32::from_be_bytes(tcp[4..8].try_into().ok()?);
    Some(Segment { time_ns, client_port, from, sequence, is_syn, length, bytes })
}

/// Four bytes in this machine's order.
fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Two bytes in the network's order.
fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER_PORT: u16 = 11211;

    /// A packet as it is in the file: of `data`, the first `captured` bytes.
    fn packet(ports: [u16; 2], protocol: u8, flags: u8, data: &[u8], captured: usize) -> Vec<u8> {
        let mut bytes = vec![0; 12];
        bytes.extend([0x08, 0x00]);
        let total = (20 + 32 + data.len()) as u16;
        bytes.extend([0x45, 0]);
        bytes.extend(total.to_be_bytes());
        bytes.extend([0, 0, 0, 0, 64, protocol, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1]);
        bytes.extend(ports.map(u16::to_be_bytes).concat());
        bytes.extend(7_u32.to_be_bytes());
        bytes.extend([0, 0, 0, 0, 0x80, flags]);
        bytes.extend([0; 18]);
        bytes.extend(&data[..captured]);
        let mut record = [1_u32, 5, bytes.len() as u32, u32::from(total) + 14].map(u32::to_ne_bytes).concat();
        record.extend(bytes);
        record
    }

    fn file(packets: &[Vec<u8>]) -> Vec<u8> {
        let mut file = [NANOSECONDS, 0, 0, 0, 384, ETHERNET].map(u32::to_ne_bytes).concat();
        file.extend(packets.concat());
        file
    }

    #[test]
    fn captures_are_read() {
        const PUSH: u8 = 0x18;
        let capture = file(&[
            packet([40000, SERVER_PORT], TCP, SYN, b"", 0),
            packet([40000, SERVER_PORT], TCP, PUSH, b"get a\r\n", 7),
            packet([SERVER_PORT, 40000], TCP, 0x10, b"", 0),
            packet([SERVER_PORT, 40000], TCP, PUSH, b"END\r\n", 3),
            packet([SERVER_PORT, 40000], 17, PUSH, b"END\r\n", 5),
            packet([40000, 22], TCP, PUSH, b"other", 5),
        ]);
        let expected = Segment {
            time_ns: 1_000_000_005,
            client_port: 40000,
            from: Side::Client,
            sequence: 7,
            is_syn: true,
            length: 0,
            bytes: b"",
        };
        let request = Segment { is_syn: false, length: 7, bytes: b"get a\r\n", ..expected };
        let reply = Segment { from: Side::Server, length: 5, bytes: b"END", ..request };
        assert_eq!(segments(&capture, SERVER_PORT).unwrap(), [expected, request, reply]);
    }

    #[test]
    fn other_files_are_rejected() {
        let packet = packet([40000, SERVER_PORT], TCP, 0x18, b"get a\r\n", 7);
        let mut microseconds = file(&[]);
        microseconds[..4].copy_from_slice(&0xa1b2_c3d4_u32.to_ne_bytes());
        let cut = file(&[packet[..30].to_vec()]);
        let table: [(&[u8], &str); 3] =
            [(b"", "no header"), (&microseconds, "no nanoseconds"), (&cut, "within a packet")];
        for (bytes, part) in table {
            let error = segments(bytes, SERVER_PORT).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
