//! Requests and replies of memcached's text protocol in a stream of pieces, each with the time when it was complete.
//!
//! Not a codec: it finds where a message ends and whether it belongs to a get, and takes everything else on trust.
//! Invariant: a message is complete at the latest time of its bytes; behind a byte that is needed and was not captured
//! no message is found.

use super::stream::Piece;

/// What a request wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Get,
    Other,
    /// No reply will come.
    Unanswered,
}

/// A whole request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) time_ns: u64,
    pub(super) kind: Kind,
}

/// What a line says about the bytes that follow.
enum Line {
    /// So many bytes belong to the message, and then another line.
    Data(u64),
    /// The message ends this number of bytes after the line.
    End(u64),
}

/// Cuts a stream into lines and data.
struct Cutter {
    line: Vec<u8>,
    /// Bytes to pass over.
    skip: u64,
    /// The message ends with them.
    is_last: bool,
    time_ns: u64,
}

impl Cutter {
    /// Takes the pieces of a stream; `line` says what a line means, `end` gets the time of each whole message.
    fn cut<'a>(
        pieces: impl Iterator<Item = (u64, Piece<'a>)>,
        mut line: impl FnMut(&[u8]) -> Line,
        mut end: impl FnMut(u64),
    ) {
        let mut cutter = Self { line: Vec::new(), skip: 0, is_last: false, time_ns: 0 };
        for (start, piece) in pieces {
            let length = piece.end - start;
            let mut at = 0;
            while at < length {
                cutter.time_ns = cutter.time_ns.max(piece.time_ns);
                if cutter.skip > 0 {
                    let skipped = cutter.skip.min(length - at);
                    cutter.skip -= skipped;
                    at += skipped;
                } else {
                    let Some(&byte) = piece.bytes.get(at as usize) else { return };
                    at += 1;
                    cutter.line.push(byte);
                    if byte != b'\n' {
                        continue;
                    }
                    (cutter.skip, cutter.is_last) = match line(cutter.line.trim_ascii_end()) {
                        Line::Data(skip) => (skip, false),
                        Line::End(skip) => (skip, true),
                    };
                    cutter.line.clear();
                }
                if cutter.skip == 0 && cutter.is_last {
                    end(cutter.time_ns);
                    (cutter.is_last, cutter.time_ns) = (false, 0);
                }
            }
        }
    }
}

/// The requests in a client's stream.
pub(super) fn requests<'a>(pieces: impl Iterator<Item = (u64, Piece<'a>)>) -> Vec<Request> {
    let (mut kinds, mut times) = (Vec::new(), Vec::new());
    let line = |line: &[u8]| {
        let (kind, data) = request(line);
        kinds.push(kind);
        Line::End(data)
    };
    Cutter::cut(pieces, line, |time_ns| times.push(time_ns));
    // The last line may lack its data.
    times.into_iter().zip(kinds).map(|(time_ns, kind)| Request { time_ns, kind }).collect()
}

/// What a request line wants, and how many bytes of data follow.
fn request(line: &[u8]) -> (Kind, u64) {
    let mut words = words(line);
    let verb = words.next().unwrap_or_default();
    let kind = match verb {
        b"get" | b"gets" => Kind::Get,
        b"quit" => Kind::Unanswered,
        _ if line.ends_with(b" noreply") => Kind::Unanswered,
        _ => Kind::Other,
    };
    let has_data = matches!(verb, b"set" | b"add" | b"replace" | b"append" | b"prepend" | b"cas");
    // verb key flags exptime bytes
    let data = if has_data { words.nth(3).and_then(number).map_or(0, |bytes| bytes + 2) } else { 0 };
    (kind, data)
}

/// The times of the replies in a server's stream.
pub(super) fn replies<'a>(pieces: impl Iterator<Item = (u64, Piece<'a>)>) -> Vec<u64> {
    let mut times = Vec::new();
    let line = |line: &[u8]| {
        let mut words = words(line);
        match words.next().unwrap_or_default() {
            // VALUE key flags bytes
            b"VALUE" => Line::Data(words.nth(2).and_then(number).map_or(0, |bytes| bytes + 2)),
            b"STAT" => Line::Data(0),
            _ => Line::End(0),
        }
    };
    Cutter::cut(pieces, line, |time_ns| times.push(time_ns));
    times
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| *byte == b' ').filter(|word| !word.is_empty())
}

fn number(word: &[u8]) -> Option<u64> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Data, and how many bytes of it were captured.
    type Sent<'a> = (&'a [u8], usize);
    type Found = (u64, Kind);

    /// The pieces of a stream, at times 1, 2, ...
    fn pieces<'a>(data: &[Sent<'a>]) -> Vec<(u64, Piece<'a>)> {
        let mut at = 0;
        let piece = |(index, &(data, captured)): (usize, &Sent<'a>)| {
            let start = at;
            at += data.len() as u64;
            (start, Piece { end: at, time_ns: index as u64 + 1, bytes: &data[..captured] })
        };
        data.iter().enumerate().map(piece).collect()
    }

    fn whole(data: &[u8]) -> Sent<'_> {
        (data, data.len())
    }

    #[test]
    fn requests_are_found() {
        use Kind::{Get, Other, Unanswered};
        let table: [(&[Sent<'_>], &[Found]); 6] = [
            (&[whole(b"get a\r\nget b\r\n"), whole(b"gets c d\r\n")], &[(1, Get), (1, Get), (2, Get)]),
            // In several segments: the time is that of the last byte.
            (&[whole(b"ge"), whole(b"t a\r"), whole(b"\nget b\r\n")], &[(3, Get), (3, Get)]),
            (&[whole(b"set a 0 0 5\r\nhel"), whole(b"lo\r\nversion\r\n")], &[(2, Other), (2, Other)]),
            (&[whole(b"set a 0 0 2 noreply\r\nhi\r\nquit\r\n")], &[(1, Unanswered), (1, Unanswered)]),
            // Data need not have been captured, a line must.
            (&[(b"set a 0 0 5\r\nhello\r\n", 14), whole(b"get a\r\n")], &[(1, Other), (2, Get)]),
            (&[whole(b"get a\r\n"), (b"get b\r\n", 3), whole(b"get c\r\n")], &[(1, Get)]),
        ];
        for (data, expected) in table {
            let found: Vec<_> = requests(pieces(data).into_iter())
                .into_iter()
                .map(|request| (request.time_ns, request.kind))
                .collect();
            assert_eq!(found, expected, "{data:?}");
        }
    }

    #[test]
    fn replies_are_found() {
        let table: [(&[Sent<'_>], &[u64]); 5] = [
            (&[whole(b"VALUE a 0 2\r\nhi\r\nEND\r\nEND\r\n"), whole(b"STORED\r\n")], &[1, 1, 2]),
            (&[whole(b"VALUE a 0 5\r\nhe"), whole(b"llo\r\nEN"), whole(b"D\r\n")], &[3]),
            // Two values, one of which contains what looks like an end.
            (&[whole(b"VALUE a 0 5\r\nEND\r\n\r\nVALUE b 0 0\r\n\r\nEND\r\n")], &[1]),
            (&[whole(b"STAT pid 1\r\nSTAT uptime 2\r\nEND\r\nERROR\r\n")], &[1, 1]),
            // Values need not have been captured, what follows must.
            (&[(b"VALUE a 0 5\r\nhello\r\n", 15), whole(b"END\r\n"), (b"END\r\n", 4)], &[2]),
        ];
        for (data, expected) in table {
            assert_eq!(replies(pieces(data).into_iter()), expected, "{data:?}");
        }
    }
}
