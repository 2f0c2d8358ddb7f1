//! What clients send to the reference server.
//!
//! Invariant: the server answers the same however the bytes are cut, whatever they are.

use brunt_server::{Core, CoreOptions, Credentials, WireProtocol};

/// What connections speak: told by the first byte, or named.
const PROTOCOLS: [Option<WireProtocol>; 5] = [
    None,
    Some(WireProtocol::Inline),
    Some(WireProtocol::Echo),
    Some(WireProtocol::Ping),
    Some(WireProtocol::Thrift),
];

/// Small enough for values to be refused, and for items to be evicted.
fn core(first: u8) -> Core {
    let credentials = Credentials { user: "u".to_owned(), password: "p".to_owned() };
    Core::new(CoreOptions {
        memory_bytes: 4096,
        value_bytes_max: 1024,
        protocol: PROTOCOLS[usize::from(first) % PROTOCOLS.len()],
        credentials: (first >= 128).then_some(credentials),
        ..CoreOptions::default()
    })
}

/// Requests on a connection: the first byte says what it speaks, and whether it must log in.
pub fn server(data: &[u8]) {
    let Some((&first, data)) = data.split_first() else { return };
    let whole = replies(first, data, data.len().max(1));
    // Statistics count the bytes that have come.
    if [&b"bytes_read"[..], b"net_input_bytes"].iter().any(|name| contains(&whole, name)) {
        return;
    }
    // A byte at a time where that is not too many times.
    for piece in [13, 1 + data.len() / 512] {
        let cut = replies(first, data, piece);
        assert_eq!(cut.escape_ascii().to_string(), whole.escape_ascii().to_string(), "pieces of {piece}");
    }
}

fn contains(bytes: &[u8], name: &[u8]) -> bool {
    bytes.windows(name.len()).any(|window| window == name)
}

/// All that is answered.
fn replies(first: u8, data: &[u8], piece: usize) -> Vec<u8> {
    let (mut core, mut replies) = (core(first), Vec::new());
    core.connect(0);
    for bytes in data.chunks(piece) {
        core.receive(0, bytes, 0);
        while let Some(departure) = core.pop_due(0) {
            replies.extend_from_slice(departure.bytes);
        }
    }
    replies
}

/// Datagrams, each behind its length in one byte.
pub fn server_datagrams(data: &[u8]) {
    let (mut core, mut rest) = (core(0), data);
    core.connect_peer(0);
    while let Some((&len, behind)) = rest.split_first() {
        let (datagram, behind) = behind.split_at(behind.len().min(usize::from(len)));
        rest = behind;
        core.receive_datagram(0, datagram, 0);
        while let Some(departure) = core.pop_due(0) {
            // Its request's number, then which of how many it is.
            let number = |at: usize| u16::from_be_bytes([departure.bytes[at], departure.bytes[at + 1]]);
            assert_eq!(departure.bytes[..2], datagram[..2]);
            assert!(number(2) < number(4));
        }
    }
}
