//! Prebuilt requests, and the one length that all their replies have.
//!
//! A few thousand keys drawn once, evenly over a data set, and sent in that order repeatedly. Invariant: every
//! request was sent once before the load, and its reply was a hit of equal length.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// How many requests are built: enough that they are no few hot keys of the server, and small enough for a cache.
const COUNT: usize = 4096;
/// Requests made before the load proper: every one once, and the first twice.
pub(crate) const TRIES: u64 = COUNT as u64 + 1;
/// Requests tried out in one go.
const TRIED_TOGETHER: usize = 64;
/// How long a reply is awaited while requests are tried out.
const PATIENCE: Duration = Duration::from_secs(2);
/// Keys have this many bytes: the number in decimal, as `brunt` writes them too.
const KEY_BYTES: usize = 30;

/// Prebuilt requests of equal length, one after the other.
#[derive(Debug)]
pub(crate) struct Requests {
    bytes: Vec<u8>,
    request_len: usize,
    reply_len: u32,
}

impl Requests {
    /// Gets of keys drawn evenly from `0..keys`; the reply length is unknown yet.
    pub(crate) fn new(keys: u64) -> Self {
        let mut state = 1_u64;
        let mut bytes = Vec::new();
        for _ in 0..COUNT {
            // Knuth's multiplier for 64 bits: the upper half is even enough to draw a few thousand keys.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let id = ((u128::from(state) * u128::from(keys)) >> 64) as u64;
            bytes.extend_from_slice(format!("get {id:0KEY_BYTES$}\r\n").as_bytes());
        }
        Self { request_len: bytes.len() / COUNT, bytes, reply_len: 0 }
    }

    /// Bytes of one reply.
    #[inline]
    pub(crate) const fn reply_len(&self) -> u32 {
        self.reply_len
    }

    /// The last `count` of the first `up_to` in the endless row, or where these do not lie together, others.
    #[inline]
    pub(crate) fn slice(&self, up_to: u64, count: u32) -> &[u8] {
        let end = (up_to % COUNT as u64) as usize;
        let count = count as usize;
        let start = end.saturating_sub(count);
        &self.bytes[start * self.request_len..(start + count) * self.request_len]
    }

    /// Asks for every key once, and learns the length of the replies.
    ///
    /// # Errors
    /// A key is not there, values differ in length, or the connection fails.
    pub(crate) fn try_out(&mut self, stream: &mut TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        self.reply_len = self.length_of_a_reply(stream)?;
        let reply_len = self.reply_len as usize;
        let mut replies = vec![0; TRIED_TOGETHER * reply_len];
        for requests in self.bytes.chunks(TRIED_TOGETHER * self.request_len) {
            stream.write_all(requests)?;
            // Where one is shorter, the missing bytes never come.
            stream.read_exact(&mut replies).map_err(|error| not_alike(&error.to_string()))?;
            for (request, reply) in requests.chunks(self.request_len).zip(replies.chunks(reply_len)) {
                let key = &request[b"get ".len()..][..KEY_BYTES];
                if reply.get(b"VALUE ".len()..).is_none_or(|rest| !rest.starts_with(key)) || !is_whole(reply)
                {
                    return Err(not_alike(&String::from_utf8_lossy(reply)));
                }
            }
        }
        stream.set_read_timeout(None)
    }

    fn length_of_a_reply(&self, stream: &mut TcpStream) -> io::Result<u32> {
        stream.write_all(&self.bytes[..self.request_len])?;
        let mut reply = Vec::new();
        let mut piece = [0; 4096];
        while !is_whole(&reply) {
            let len = match stream.read(&mut piece) {
                // The kernel does so when it clears away an io_uring that this thread had before.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                outcome => outcome?,
            };
            reply.extend_from_slice(&piece[..len]);
            if len == 0 || reply.starts_with(b"END") || reply.starts_with(b"ERROR") {
                return Err(not_alike(&String::from_utf8_lossy(&reply)));
            }
        }
        u32::try_from(reply.len()).map_err(io::Error::other)
    }
}

/// It begins and ends as the reply to a get that hit.
fn is_whole(reply: &[u8]) -> bool {
    reply.starts_with(b"VALUE ") && reply.ends_with(b"\r\nEND\r\n")
}

fn not_alike(what: &str) -> io::Error {
    io::Error::other(format!(
        "not every key is there with a value of the same length; store them first (a try came to: {what})"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Requests {
        pub(crate) fn of_equal_length(reply_len: u32) -> Self {
            Self { reply_len, ..Self::new(10_000) }
        }

        pub(crate) fn request_len(&self) -> usize {
            self.request_len
        }
    }

    #[test]
    fn requests_are_gets_for_keys_all_over_the_data_set() {
        let requests = Requests::new(100);
        assert_eq!(requests.request_len, b"get \r\n".len() + KEY_BYTES);
        let mut asked = [0_u32; 100];
        for request in requests.bytes.chunks(requests.request_len) {
            let text = std::str::from_utf8(request).unwrap();
            let key = text.strip_prefix("get ").and_then(|rest| rest.strip_suffix("\r\n")).unwrap();
            asked[key.parse::<usize>().unwrap()] += 1;
        }
        // 4096 draws from 100: 41 each, with a standard deviation of 6.4; five of them is never.
        assert!(asked.iter().all(|asked| (9..=73).contains(asked)), "{asked:?}");
    }

    #[test]
    fn every_slice_has_its_length_and_begins_with_a_request() {
        let requests = Requests::of_equal_length(1);
        for (up_to, count) in
            [(4, 4), (5, 1), (4095, 4), (4096, 4), (4097, 4), (4098, 1), (1 << 40, 32), (7, 0)]
        {
            let slice = requests.slice(up_to, count);
            assert_eq!(slice.len(), count as usize * requests.request_len, "{up_to} {count}");
            assert!(
                slice.is_empty() || slice.starts_with(b"get ") && slice.ends_with(b"\r\n"),
                "{up_to} {count}"
            );
        }
    }
}
