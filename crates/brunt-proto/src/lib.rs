//! Codecs: a request becomes bytes, bytes become events. The whole contract of a protocol is on this page.
//!
//! A codec holds the parse state of one connection and nothing else. It never copies what it decodes and never blocks;
//! the same bytes, cut anywhere, say the same (pieces of values follow the cuts, and a reply that lies there whole may
//! be told by one event in place of several).

#![forbid(unsafe_code)]

// Codecs.
pub mod memcached;
pub mod message;
pub mod resp;

// What they share.
pub mod out;
mod pairs;
mod step;
pub mod template;

// Replies outside the load.
pub mod detection;
pub mod reply_buffer;

use brunt_plan::op::OpKind;
use brunt_plan::outcome::{ErrorPersistence, ReplyKind};
use brunt_plan::quoted_bytes::QuotedBytes;
use out::Out;
use resp::error::ErrorPrefix;

/// How replies find their requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matching {
    /// Replies come in the order of the requests on each connection.
    Fifo,
    /// Every reply carries the token of its request. An unknown token is no fault: the request has been given
    /// up since, or was to have no reply and failed.
    Token,
}

/// Does the reply to a retrieval name its keys? Where it does not, `key` is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyNames {
    /// Every key that it speaks of.
    Always,
    /// At least where the request had several; else the key is the one that was requested.
    OfSeveral,
    /// None. Every key of the request is told, found or missing, in the order of the request.
    Never,
}

/// The token of a reply that names no request, as some errors of a protocol with tokens do: on a stream it belongs to the
/// oldest request that waits. No request is sent with it.
pub const NO_TOKEN: u32 = u32::MAX;

/// The longest key of any protocol that we speak, in bytes: memcached's bound, which the plan keeps to.
pub const KEY_BYTES_MAX: usize = 250;

/// The keys of a request, written once by the caller into one run of bytes.
#[derive(Clone, Copy, Debug)]
pub struct Keys<'a> {
    /// Key texts, one behind the other.
    pub bytes: &'a [u8],
    /// Where each key ends in `bytes`; as many as there are keys, at least one, ascending.
    pub ends: &'a [u32],
}

impl<'a> Keys<'a> {
    /// The keys in order.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let (bytes, ends) = (self.bytes, self.ends);
        (0..ends.len()).map(move |index| {
            let start = if index == 0 { 0 } else { ends[index - 1] as usize };
            &bytes[start..ends[index] as usize]
        })
    }

    /// The first key: the only one of every op but a multi-get.
    pub fn first(&self) -> &'a [u8] {
        &self.bytes[..self.ends[0] as usize]
    }
}

/// A value to be sent: a short head of its own and a range of a block that outlives the run, so that a large value is
/// referenced and not copied.
#[derive(Clone, Copy, Debug)]
pub struct Value<'a> {
    /// The first bytes.
    pub head: &'a [u8],
    /// The block that the rest is cut from.
    pub block: &'a [u8],
    /// Where the rest begins in the block.
    pub offset: usize,
    /// How long the rest is.
    pub len: usize,
}

impl Value<'_> {
    /// No value at all.
    pub const NONE: Value<'static> = Value { head: &[], block: &[], offset: 0, len: 0 };

    /// Length of the whole value in bytes.
    pub fn total_len(&self) -> usize {
        self.head.len() + self.len
    }
}

/// An op with everything its bytes need.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// What is asked.
    pub kind: OpKind,
    /// Which keys.
    pub keys: Keys<'a>,
    /// The value it writes, [`Value::NONE`] where it writes none.
    pub value: Value<'a>,
    /// Client flags stored with the value.
    pub flags: u32,
    /// Time to live in seconds; 0 means no expiry.
    pub ttl_s: u32,
    /// Delta of incr and decr, unique of cas, and what the random fields of a raw command are drawn from.
    pub operand: u64,
    /// Ask for no reply where the protocol can.
    pub noreply: bool,
    /// What a token-matching protocol sends along; any but [`NO_TOKEN`].
    pub token: u32,
    /// The number of the command template that a raw command is made from, counted from 1; 0 for the other kinds.
    pub command: u16,
}

impl<'a> Request<'a> {
    /// One that writes nothing and is answered; a raw command is the first.
    pub const fn of(kind: OpKind, keys: Keys<'a>) -> Self {
        Self {
            kind,
            keys,
            value: Value::NONE,
            flags: 0,
            ttl_s: 0,
            operand: 0,
            noreply: false,
            token: 0,
            command: matches!(kind, OpKind::Raw) as u16,
        }
    }

    /// The key of a kind that has one.
    #[inline]
    pub(crate) fn only_key(&self) -> &'a [u8] {
        debug_assert_eq!(self.keys.ends.len(), 1, "{} has one key", self.kind);
        self.keys.first()
    }
}

/// What encoding a request came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// Commands on the wire (a binary multi-get is several).
    pub wire_requests: u32,
    /// Will there be a reply?
    pub replied: bool,
}

/// What a server says of a value that is to be renewed, so that one of many clients renews it (leases). Only memcached's
/// meta protocol says such things, and it also does to clients that never asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recache {
    /// This client is the one that is to renew the value.
    pub won: bool,
    /// The value is out of date and was handed out all the same.
    pub stale: bool,
    /// Another client was told to renew it.
    pub taken: bool,
}

impl Recache {
    /// Nothing is said.
    pub const NONE: Self = Self { won: false, stale: false, taken: false };
}

/// Which of a protocol's replies one is, in more detail than [`ReplyKind`] and in numbers of that protocol's own: two replies
/// are of one form if every operation can have both or neither, with the same meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form(pub u8);

/// What the decoder saw. A reply is `Begin`, any number of `Key` and `Value`, then `End`; or it is one `Found`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// The first byte of a reply is here.
    Begin,
    /// A key that the reply speaks of. Protocols that pass over missing keys emit hits only.
    Key {
        /// Found or explicitly missing.
        hit: bool,
        /// The key as the server wrote it; empty where the protocol does not repeat it.
        key: &'a [u8],
        /// Client flags.
        flags: u32,
        /// Length of the value, which follows in `Value` pieces.
        bytes: u32,
        /// The cas unique, 0 where none was requested.
        unique: u64,
        /// As in `End`.
        token: u32,
        /// Whether and by whom the value is to be renewed.
        recache: Recache,
    },
    /// A piece of the value of the last `Key`; the pieces add up to its `bytes`. Values of length 0 have no piece.
    Value(&'a [u8]),
    /// The reply is complete.
    End {
        /// What the server said. A retrieval that found nothing is `NotFound`.
        reply: ReplyKind,
        /// Which of the protocol's replies it was, for [`Codec::meaning`].
        form: Form,
        /// The number of a `Number` reply, a negative one in two's complement; else 0.
        number: u64,
        /// The token of the request, or [`NO_TOKEN`]; 0 with [`Matching::Fifo`].
        token: u32,
        /// The text of an error reply, or what stands for one that has none: never empty. Else empty.
        text: &'a [u8],
    },
    /// A whole reply that consists of one key, found, and its value: the usual one of a cache, told at once where it lies
    /// there in one piece. It stands for `Begin`, a `Key` that is a hit without unique and recache, `Value`, and an `End` with
    /// [`ReplyKind::Value`] and [`Codec::FOUND`]; a codec that never says it is right too.
    Found(Found<'a>),
    /// A line of a control exchange (statistics, version).
    Control(&'a [u8]),
    /// Bytes of a message that answers nothing (RESP3's push). It may be before, between and behind replies.
    Push {
        /// The message ends with these bytes.
        is_over: bool,
    },
    /// These bytes are no reply. The connection cannot be used any further.
    Bad(Malformed),
}

/// What [`Event::Found`] tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found<'a> {
    /// The key, or nothing where a token names the request.
    pub key: &'a [u8],
    /// Client flags.
    pub flags: u32,
    /// The whole value.
    pub value: &'a [u8],
    /// The token of the request.
    pub token: u32,
}

brunt_plan::named! {
    /// Why bytes are no reply.
    pub enum Malformed {
        /// A line that begins like no reply of the protocol.
        UnknownReply = "an unknown reply",
        /// A line longer than any reply can be.
        LineTooLong = "a line longer than any reply",
        /// A number that is none, or does not fit.
        BadNumber = "an invalid number",
        /// A value that is not followed by its line end.
        ValueNotTerminated = "a value without its line end",
        /// Values within values, more levels of them than are kept count of.
        TooDeep = "values nested deeper than in any reply",
        /// A value whose length is not told in advance.
        Streamed = "a streamed value, without its length",
        /// A key that the reply has told of before.
        Repeated = "a repeated key",
        /// A reply to another request than the datagram says.
        OtherRequest = "a reply to another request than the datagram names",
        /// A reply of the protocol, but none that the operation can have which it would answer: requests and replies are out of
        /// step.
        OutOfStep = "a reply that the operation cannot have",
    }
}

/// What a connection says before its first request, all of it at once. Each command of it has one reply, in order, and
/// [`ReplyKind::Ok`] alone lets the connection in.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionSetup<'a> {
    /// What is to be sent.
    pub bytes: &'a [u8],
    /// How many replies there will be; none to no bytes.
    pub replies: u32,
}

impl ConnectionSetup<'_> {
    /// Nothing is said.
    pub const NONE: ConnectionSetup<'static> = ConnectionSetup { bytes: &[], replies: 0 };
}

/// What a datagram turned out to be, for a codec over datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatagramAction<'a> {
    /// It continues the reply that is waited for in a place: its bytes are to be decoded, behind those that were left over of the
    /// same reply, and then those that are held behind it.
    Reply {
        /// Which place.
        place: usize,
        /// Its bytes of the reply.
        payload: &'a [u8],
        /// Its number in its train.
        sequence: u16,
        /// How many are held that follow it.
        held: u16,
    },
    /// It is to be held, because others are to come before it.
    Held {
        /// For which place.
        place: usize,
        /// Its bytes of the reply.
        payload: &'a [u8],
        /// Its number in its train.
        sequence: u16,
    },
    /// There is nothing to be done about it, and nothing to be said.
    Nothing,
    /// It is of no use.
    Discarded(DiscardReason),
}

/// A request whose reply is waited for no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedOut {
    /// The place where it waited.
    pub place: usize,
    /// Datagrams that have not come of the train in flight, of which some have; 0 where none is.
    pub missing: u16,
}

/// Why a datagram is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiscardReason {
    /// It answers a request that timed out, or one that is no longer known.
    Late,
    /// It has been here.
    Duplicate,
    /// It answers nothing that was sent, or a request that was to have no reply.
    Stray,
    /// It cannot be put in its order: it has overtaken too many.
    Disordered,
    /// It is no reply.
    Malformed,
}

/// [`Codec::encode_get`] of a codec that copies the key.
#[inline]
pub(crate) fn encode_copied_get<C: Codec>(
    codec: &mut C,
    key_len: usize,
    token: u32,
    out: &mut Out,
    write: impl FnOnce(&mut [u8]),
) -> Encoded {
    let mut key = [0; KEY_BYTES_MAX];
    let key = &mut key[..key_len];
    write(key);
    let keys = Keys { bytes: key, ends: &[key_len as u32] };
    codec.encode(&Request { token, ..Request::of(OpKind::Get, keys) }, out)
}

/// A protocol. One value per connection.
pub trait Codec: Clone + Send + 'static {
    /// How replies find their requests.
    const MATCHING: Matching;

    /// Does a retrieval's reply name its keys?
    const KEY_NAMES: KeyNames = KeyNames::Always;

    /// May a connection have something to say before its first request?
    const HAS_SETUP: bool = false;

    /// May an error reply send a request to another server (see [`resp::error`])?
    const REDIRECTS: bool = false;
    /// May each request, and each piece of a reply, be a datagram of its own ([`Codec::is_by_datagram`])? Then replies find their requests
    /// by what is before them in their datagrams, and [`Codec::decode`] reads what [`Codec::receive_datagram`] was shown last.
    const DATAGRAMS: bool = false;

    /// The longest run of bytes that [`Codec::decode`] may ask to see at once; a connection keeps this much aside.
    const UNIT_BYTES_MAX: usize;

    /// The form of the reply that [`Event::Found`] stands for.
    const FOUND: Form;

    /// An upper bound on the bytes that encoding appends, for a request with this many keys, this many key bytes in
    /// all and a value of this length, the value included.
    fn encoded_len_max(&self, keys: usize, key_bytes: usize, value_bytes: usize) -> usize;

    /// An upper bound on the bytes of the get of one key of this length.
    #[inline]
    fn get_len_max(&self, key_bytes: usize) -> usize {
        self.encoded_len_max(1, key_bytes, 0)
    }

    /// Appends one request.
    fn encode(&mut self, request: &Request<'_>, out: &mut Out) -> Encoded;

    /// Appends the get of one key, `key_len` bytes long, which `write` is to put where it belongs. The same bytes as those of
    /// [`Codec::encode`]; a codec that has them around the key spares it being copied.
    #[inline]
    fn encode_get(
        &mut self,
        key_len: usize,
        token: u32,
        out: &mut Out,
        write: impl FnOnce(&mut [u8]),
    ) -> Encoded {
        encode_copied_get(self, key_len, token, out, write)
    }

    /// Looks at the front of `input`: how many bytes are used up, and what they were. To be called until it asks for
    /// more, which is `None` with 0 used; the next input must begin with the same bytes. Every event but `Begin` and
    /// `Bad` uses up at least one byte, and no byte is used up without an event. After `Bad` it only asks for more.
    #[inline]
    fn decode<'a>(&mut self, input: &'a [u8]) -> (usize, Option<Event<'a>>) {
        match self.decode_found(input) {
            Some((used, found)) => (used, Some(Event::Found(found))),
            None if input.is_empty() => (0, None),
            None => self.decode_any(input),
        }
    }

    /// The short way of [`Codec::decode`]: [`Event::Found`], if that is what it would say, and its length; otherwise nothing,
    /// and nothing is used up.
    #[inline]
    fn decode_found<'a>(&mut self, _input: &'a [u8]) -> Option<(usize, Found<'a>)> {
        None
    }

    /// [`Codec::decode`] of at least one byte without the short way.
    fn decode_any<'a>(&mut self, input: &'a [u8]) -> (usize, Option<Event<'a>>);

    /// What the reply of an [`Event::End`] means as the answer to an op of this kind (RESP says `:0` to a delete that found
    /// nothing, and to an increment that came to zero); `None` if the protocol's documentation has no such reply to it. Errors
    /// are replies to every op.
    fn meaning(&self, kind: OpKind, reply: ReplyKind, form: Form) -> Option<ReplyKind>;

    /// What a connection says before its first request; nothing unless [`Codec::HAS_SETUP`].
    fn connection_setup(&self) -> ConnectionSetup<'_> {
        ConnectionSetup::NONE
    }

    /// What the part of the greeting is called that the reply of this number, from 0, answers.
    fn setup_step(&self, _number: u32) -> &'static str {
        ""
    }

    /// Does a setup request with this reply succeed?
    fn accepts_setup_reply(&self, reply: ReplyKind) -> bool {
        reply == ReplyKind::Ok
    }

    /// Why a connection is not let in, for a user: the reply of this number, from 0, has this text.
    fn setup_error(&self, _number: u32, _reply: ReplyKind, text: &[u8]) -> String {
        QuotedBytes(text).to_string()
    }

    /// What an error reply begins with, for protocols whose errors are told apart by their first word.
    fn error_prefix(_text: &[u8]) -> Option<ErrorPrefix> {
        None
    }

    /// Do replies come in the order of the requests on this connection? So they do on every one, unless the protocol has tokens; but where
    /// connections for datagrams are beside it, [`Codec::MATCHING`] is theirs.
    #[inline]
    fn is_in_order(&self) -> bool {
        Self::MATCHING == Matching::Fifo
    }

    /// For how long this error reply to a store holds.
    fn error_persistence(_reply: ReplyKind, _text: &[u8]) -> ErrorPersistence {
        ErrorPersistence::Transient
    }

    // --- Over datagrams ---

    /// Is this connection one for datagrams? Only asked where [`Codec::DATAGRAMS`].
    #[inline]
    fn is_by_datagram(&self) -> bool {
        Self::DATAGRAMS
    }

    /// The codec of a stream that is beside connections like this one.
    #[must_use]
    fn stream_codec(&self) -> Self {
        self.clone()
    }

    /// In how many places requests wait, each for its own reply.
    fn places(&self) -> usize {
        0
    }

    /// How many datagrams of a train may be held for those before them, at most.
    fn ahead_max(&self) -> u16 {
        0
    }

    /// A datagram has come.
    fn receive_datagram<'a>(&mut self, _datagram: &'a [u8]) -> DatagramAction<'a> {
        unreachable!("a stream has no datagrams")
    }

    /// Is there more of a reply to be read than was, of the one that the last datagram was for?
    fn is_reading(&self) -> bool {
        false
    }

    /// What is being decoded is not to be read: a train that was here before, or one that is no reply. The request goes on waiting.
    fn skip(&mut self) {}

    /// The request with this token is waited for no more.
    fn time_out(&mut self, _token: u32) -> Option<TimedOut> {
        None
    }
}
