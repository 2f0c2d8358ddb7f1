//! Replies to `stats`, golden and broken, whole and in pieces.

use super::*;
use proptest::prelude::*;

/// What memcached 1.6.18 says when it has just been started; line ends as in a text file.
const MEMCACHED: &str = include_str!("golden/memcached-1.6.18.txt");
/// What `brunt serve` says after some traffic.
const REFERENCE: &str = include_str!("golden/brunt-serve.txt");

fn wire(text: &str) -> Vec<u8> {
    text.replace('\n', "\r\n").into_bytes()
}

fn rows_of(reply: &StatsReply) -> Vec<(String, String)> {
    reply.rows().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// The lines of a golden reply, taken apart another way.
fn expected(text: &str) -> Vec<(String, String)> {
    let of = |line: &str| {
        let mut words = line.splitn(3, ' ');
        (words.next() == Some("STAT"))
            .then(|| (words.next().unwrap().to_owned(), words.next().unwrap().to_owned()))
    };
    text.lines().filter_map(of).collect()
}

#[test]
fn whole_replies_and_replies_cut_at_every_byte() {
    for (text, lines) in [(MEMCACHED, 92), (REFERENCE, 39)] {
        let (bytes, expected) = (wire(text), expected(text));
        assert_eq!(expected.len(), lines);
        for cut in 0..=bytes.len() {
            let mut reply = StatsReply::default();
            assert_eq!(reply.take(&bytes[..cut]), Ok(cut == bytes.len()), "{cut}");
            assert_eq!(reply.rows().count(), if cut == bytes.len() { lines } else { 0 });
            if cut < bytes.len() {
                assert_eq!(reply.take(&bytes[cut..]), Ok(true), "{cut}");
            }
            assert_eq!(rows_of(&reply), expected, "{cut}");
        }
        let mut reply = StatsReply::default();
        let ends: Vec<_> = bytes.chunks(1).map(|byte| reply.take(byte).unwrap()).collect();
        assert_eq!(ends.iter().position(|is_whole| *is_whole), Some(bytes.len() - 1));
        assert_eq!(rows_of(&reply), expected);
    }
}

#[test]
fn other_replies_are_refused() {
    let declined = |text: &str| Err(ReplyError::Unexpected(text.to_owned()));
    let table: [(&[u8], Result<bool, ReplyError>); 14] = [
        (b"", Ok(false)),
        (b"STAT pid 1", Ok(false)),
        (b"STAT pid 1\r\nEND\r\n", Ok(true)),
        (b"STAT version 1.6 with blanks\r\nSTAT empty \r\nEND\r\n", Ok(true)),
        (b"ERROR\r\n", declined("ERROR")),
        (b"STAT pid 1\r\nSERVER_ERROR out of memory\r\n", declined("SERVER_ERROR out of memory")),
        (b"CLIENT_ERROR bad\x1b[2J\r\n", declined("CLIENT_ERROR bad\\x1b[2J")),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", declined("HTTP/1.1 400 Bad Request")),
        (b"-ERR unknown command 'stats'\r\n", declined("-ERR unknown command 'stats'")),
        (b"VERSION 1.6.18\r\n", declined("VERSION 1.6.18")),
        (b"STAT nameless\r\nEND\r\n", declined("STAT nameless")),
        (b"VALUE key 0 1\r\n", declined("VALUE key 0 1")),
        (b"END\r\n", Err(ReplyError::Empty)),
        (b"STAT pid 1\r\nEND\r\nSTORED\r\n", Err(ReplyError::Surplus)),
    ];
    for (bytes, expected) in table {
        let text = bytes.escape_ascii();
        assert_eq!(StatsReply::default().take(bytes), expected, "{text}");
        let mut reply = StatsReply::default();
        let found = bytes.chunks(1).map(|byte| reply.take(byte)).find(|found| *found != Ok(false));
        match (found, expected) {
            // A byte at a time, what follows the end comes after the reply was whole.
            (Some(Ok(true)), Ok(true) | Err(ReplyError::Surplus)) | (None, Ok(false)) => {}
            (Some(Err(ReplyError::Unexpected(found))), Err(ReplyError::Unexpected(whole))) => {
                assert!(whole.starts_with(&found), "{text}: {found}");
            }
            (found, expected) => assert_eq!(found, Some(expected), "{text}"),
        }
    }
}

#[test]
fn endless_replies_are_refused() {
    let mut reply = StatsReply::default();
    let line = b"STAT counter 12345\r\n";
    let lines = REPLY_BYTES_MAX / line.len();
    for _ in 0..lines {
        assert_eq!(reply.take(line), Ok(false));
    }
    assert_eq!(reply.take(line), Err(ReplyError::TooLong(REPLY_BYTES_MAX)));
    assert!(reply.0.bytes.capacity() <= 2 * REPLY_BYTES_MAX, "memory is bounded");
    let mut reply = StatsReply::default();
    assert!(reply.take(&[b'x'; REPLY_BYTES_MAX + 1]).is_err());
}

proptest! {
    /// Whatever comes, however cut: no panic, and the same rows or a refusal.
    #[test]
    fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..300), cut in 0usize..300) {
        let cut = cut.min(bytes.len());
        let (mut whole, mut parts) = (StatsReply::default(), StatsReply::default());
        let once = whole.take(&bytes);
        let twice = parts.take(&bytes[..cut]).and_then(|_| parts.take(&bytes[cut..]));
        prop_assert_eq!(once.is_ok(), twice.is_ok());
        prop_assert_eq!(rows_of(&whole), rows_of(&parts));
    }
}
