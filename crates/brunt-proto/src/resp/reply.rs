//! A whole reply, gathered and parsed: for requests outside the load.
//!
//! Not for load: this copies and allocates. The codec does framing and limits, so that this refuses what the codec refuses;
//! memory is bounded by [`REPLY_BYTES_MAX`]. The same bytes, cut anywhere, come to the same.

use super::RespCodec;
use super::line::{self, Length};
use crate::Event;
use crate::reply_buffer::{ReplyBuffer, ReplyError};
use crate::step::LINE_END;

/// No reply is longer. A map of a thousand nodes takes about 300 kB.
pub const REPLY_BYTES_MAX: usize = 4 << 20;

/// A value of a reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// A string of any sort, without the format of a verbatim one.
    Text(&'a [u8]),
    /// An integer.
    Number(i64),
    /// A null.
    Null,
    /// An error of any sort: its text.
    Error(&'a [u8]),
    /// Elements; of a map, keys and values in turn, as version 2 writes maps anyway.
    List(Vec<Value<'a>>),
    /// A double, a boolean or a big number: its text.
    Other(&'a [u8]),
}

impl<'a> Value<'a> {
    /// The value under this key of a map.
    pub fn field(&self, name: &str) -> Option<&Value<'a>> {
        let Self::List(list) = self else { return None };
        let (pairs, _) = list.as_chunks::<2>();
        pairs.iter().find(|[key, _]| *key == Value::Text(name.as_bytes())).map(|[_, value]| value)
    }

    /// The number that it is.
    pub fn number(&self) -> Option<i64> {
        if let Self::Number(number) = self { Some(*number) } else { None }
    }
}

/// A reply as far as it has come.
#[derive(Clone, Debug, Default)]
pub struct WholeReply(ReplyBuffer<RespCodec>);

impl WholeReply {
    /// Takes in bytes. True: the reply is whole, and [`WholeReply::value`] has it.
    ///
    /// # Errors
    /// This is no reply, whatever follows.
    pub fn take(&mut self, bytes: &[u8]) -> Result<bool, ReplyError> {
        self.0.take(bytes, REPLY_BYTES_MAX, |event, rest| match event {
            Event::Bad(_) => Err(ReplyError::unexpected(rest)),
            _ => Ok(()),
        })
    }

    /// What the reply is; nothing before it is whole.
    pub fn value(&self) -> Option<Value<'_>> {
        Reader { rest: self.0.whole()? }.value()
    }
}

/// Takes apart what the codec has found to be whole; how deep that is, the codec has bounded.
struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn value(&mut self) -> Option<Value<'a>> {
        loop {
            let &sort = self.rest.first()?;
            return match sort {
                b'$' | b'=' | b'!' => self.string(sort),
                b'*' | b'~' | b'%' => self.elements(),
                b'|' => {
                    self.elements()?;
                    continue;
                }
                _ => self.scalar(sort),
            };
        }
    }

    fn scalar(&mut self, sort: u8) -> Option<Value<'a>> {
        let (text, used) = line::text(self.rest).ok()?;
        self.rest = &self.rest[used..];
        let body = &text[1..];
        Some(match sort {
            b'+' => Value::Text(body),
            b'-' => Value::Error(body),
            b':' => Value::Number(line::integer(body).ok()?),
            b'_' => Value::Null,
            _ => Value::Other(body),
        })
    }

    /// The length at the front, which is passed over with its line end.
    fn length(&mut self) -> Option<Length> {
        let (length, at) = line::length(self.rest).ok()?;
        self.rest = self.rest.get(at + LINE_END.len()..)?;
        Some(length)
    }

    fn string(&mut self, sort: u8) -> Option<Value<'a>> {
        let Length::Of(bytes) = self.length()? else { return Some(Value::Null) };
        let (text, rest) = self.rest.split_at_checked(bytes as usize)?;
        self.rest = rest.get(LINE_END.len()..)?;
        Some(match sort {
            b'!' => Value::Error(text),
            b'=' => Value::Text(text.get(super::FORMAT_BYTES as usize..)?),
            _ => Value::Text(text),
        })
    }

    fn elements(&mut self) -> Option<Value<'a>> {
        let times = if matches!(self.rest[0], b'%' | b'|') { 2 } else { 1 };
        let Length::Of(elements) = self.length()? else { return Some(Value::Null) };
        // Grows with what is there, not with what the head promises.
        let mut list = Vec::new();
        for _ in 0..elements * times {
            list.push(self.value()?);
        }
        Some(Value::List(list))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gathers a stream in one piece, and at every cut: the result is the same.
    fn gather(stream: &[u8]) -> Result<Option<WholeReply>, ReplyError> {
        let take = |pieces: &[&[u8]]| {
            let mut reply = WholeReply::default();
            let mut is_whole = false;
            for piece in pieces {
                is_whole = reply.take(piece)?;
            }
            Ok(is_whole.then_some(reply))
        };
        let whole: Result<Option<WholeReply>, ReplyError> = take(&[stream]);
        for cut in 0..stream.len() {
            let (front, back) = stream.split_at(cut);
            let in_two = take(&[front, back]);
            let values = [&whole, &in_two]
                .map(|reply| reply.as_ref().map(|reply| reply.as_ref().map(WholeReply::value)));
            // How much of garbage is quoted follows what is there.
            match &whole {
                Err(ReplyError::Unexpected(_)) => assert!(matches!(in_two, Err(ReplyError::Unexpected(_)))),
                _ => assert_eq!(values[0], values[1], "cut at {cut}"),
            }
        }
        whole
    }

    #[test]
    fn replies_parse() {
        use Value::{Error, List, Null, Number, Other, Text};
        let table: [(&str, Value<'_>); 17] = [
            ("+PONG\r\n", Text(b"PONG")),
            ("-ERR no\r\n", Error(b"ERR no")),
            (":-5\r\n", Number(-5)),
            ("$5\r\nhello\r\n", Text(b"hello")),
            ("$0\r\n\r\n", Text(b"")),
            ("$-1\r\n", Null),
            ("*-1\r\n", Null),
            ("_\r\n", Null),
            ("=15\r\ntxt:Some string\r\n", Text(b"Some string")),
            ("!21\r\nSYNTAX invalid syntax\r\n", Error(b"SYNTAX invalid syntax")),
            (",1.5\r\n", Other(b"1.5")),
            ("#t\r\n", Other(b"t")),
            ("*0\r\n", List(vec![])),
            ("*2\r\n:1\r\n*1\r\n$1\r\nx\r\n", List(vec![Number(1), List(vec![Text(b"x")])])),
            ("%1\r\n$1\r\na\r\n~1\r\n:1\r\n", List(vec![Text(b"a"), List(vec![Number(1)])])),
            ("|1\r\n+ttl\r\n:5\r\n*2\r\n|1\r\n+a\r\n%0\r\n:1\r\n:2\r\n", List(vec![Number(1), Number(2)])),
            (">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n:1\r\n", Number(1)),
        ];
        for (stream, expected) in table {
            let reply = gather(stream.as_bytes()).expect("a reply").expect("a whole one");
            assert_eq!(reply.value(), Some(expected), "{stream:?}");
        }
    }

    #[test]
    fn anything_but_one_reply_is_refused() {
        assert_eq!(
            gather(b"VERSION 1\r\n").unwrap_err(),
            ReplyError::Unexpected("VERSION 1\\r\\n".to_owned())
        );
        assert_eq!(gather(b":1\r\n:2\r\n").unwrap_err(), ReplyError::Surplus);
        assert!(gather(b"*2\r\n:1\r\n").expect("it may still become one").is_none());
        let mut endless = WholeReply::default();
        let line = [b'x'; 1 << 16];
        assert_eq!(endless.take(b"$536870912\r\n"), Ok(false));
        let end = (0..).find_map(|_| endless.take(&line).err());
        assert_eq!(end, Some(ReplyError::TooLong(REPLY_BYTES_MAX)));
    }

    #[test]
    fn fields_are_found_in_maps_of_both_versions() {
        for stream in ["%2\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n:2\r\n", "*4\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n:2\r\n"]
        {
            let reply = gather(stream.as_bytes()).expect("a reply").expect("a whole one");
            let value = reply.value().expect("it is whole");
            assert_eq!(value.field("b").and_then(Value::number), Some(2));
            assert_eq!(value.field("c"), None);
        }
    }
}
