//! memcached's binary protocol: frames out, frames in.
//!
//! Not UDP framing, not what a login says (that is [`sasl`]'s), and no opcode that a plan has no op for. The source is memcached's
//! `doc/protocol-binary.xml`; where it leaves a question, memcached 1.6.18 was asked. Invariant: every request that is
//! replied to is answered by one `End` or `Found`, whichever of its frames fails.

mod pairs;
pub mod sasl;

use crate::memcached::line::persistence;
use crate::out::Out;
use crate::step::{BAD_NUMBER, Step, Stop, UNKNOWN, as_event};
use crate::{
    Codec, ConnectionSetup, Encoded, Event, Form, Found, KEY_BYTES_MAX, KeyNames, Malformed, Matching,
    Recache, Request,
};
use brunt_plan::op::OpKind;
use brunt_plan::outcome::{ErrorPersistence, ReplyKind};
use brunt_plan::quoted_bytes::QuotedBytes;
use sasl::SaslLogin;
use std::sync::Arc;

/// The binary protocol's codec: the parse state of one connection.
///
/// What the [`Codec`] contract leaves open:
///
/// - A get of one key is `GET`, whose reply tells neither key nor unique; a gets is `GETK`, whose reply is taken to tell
///   both. A multi-get is one `GETKQ` for each key and a `NOOP`: missing keys are passed over, uniques are told.
/// - An error to one key ends its multi-get; what is still to come of that is `Push`, with a `Begin` before what comes first.
/// - What text tells apart is told apart by opcode too: a status of "not found" is `NotStored` for a replace, one of "exists"
///   is `NotStored` for an add.
/// - A cas with unique 0 asks for a unique that is never current, since 0 would make it a set.
/// - `touch` has no quiet form; the others report failures in spite of it, under a token that no request has.
/// - A `Control` event is a whole frame: the challenge to a login, which an `End` with `Value` follows.
/// - The last byte before an `End` is told with the event before and used up by the `End`, as frames have no byte that
///   ends them.
#[derive(Clone, Debug, Default)]
pub struct BinaryCodec {
    expects: Expects,
    progress: Progress,
    setup: Setup,
}

/// What a connection sends before its first request.
#[derive(Clone, Debug, Default)]
enum Setup {
    /// Nothing.
    #[default]
    None,
    /// [`NOOP`].
    Noop,
    /// A login, which a server with users requires before any other request.
    Login(Arc<SaslLogin>),
}

/// What the next byte belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Expects {
    /// A frame.
    #[default]
    Frame,
    /// A value of which this many bytes, at least one, are still to be told.
    Value { remaining: u32 },
    /// The byte that was left for the end of the reply.
    End { reply: ReplyKind, form: Form, token: u32 },
    /// Nothing: the bytes were malformed.
    Nothing,
}

/// What the reply being read has consisted of so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Progress {
    /// No byte of it is here.
    #[default]
    Idle,
    /// `Begin` is told, no frame is read.
    Begun,
    /// The only value of a reply.
    Single { token: u32, form: Form },
    /// At least one key of a multi-get.
    Batch { token: u32, hit: bool },
    /// What follows an error of a multi-get, up to its noop.
    Remains { token: u32 },
}

/// What a frame asks for; the reply repeats it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Opcode {
    Get = 0x00,
    Set = 0x01,
    Add = 0x02,
    Replace = 0x03,
    Delete = 0x04,
    Increment = 0x05,
    Decrement = 0x06,
    Noop = 0x0a,
    GetK = 0x0c,
    GetKQ = 0x0d,
    Append = 0x0e,
    Prepend = 0x0f,
    Touch = 0x1c,
    SaslAuth = 0x21,
}

impl Opcode {
    const ALL: [Self; 14] = [
        Self::Get,
        Self::Set,
        Self::Add,
        Self::Replace,
        Self::Delete,
        Self::Increment,
        Self::Decrement,
        Self::Noop,
        Self::GetK,
        Self::GetKQ,
        Self::Append,
        Self::Prepend,
        Self::Touch,
        Self::SaslAuth,
    ];

    /// The byte of a change that is replied to only if it fails.
    const fn quiet(self) -> u8 {
        match self {
            Self::Append | Self::Prepend => self as u8 + 0x0b,
            _ => self as u8 + 0x10,
        }
    }

    /// The opcode of a reply, quiet or not.
    fn of(byte: u8) -> Option<Self> {
        let byte = match byte {
            0x11..=0x16 => byte - 0x10,
            0x19 | 0x1a => byte - 0x0b,
            byte => byte,
        };
        Self::ALL.into_iter().find(|opcode| *opcode as u8 == byte)
    }
}

/// Where a frame begins.
const REQUEST_MAGIC: u8 = 0x80;
const REPLY_MAGIC: u8 = 0x81;

const HEADER_BYTES: usize = 24;

/// Every server of the protocol replies to it at once. Others do as well: to Redis and to memcached's text protocol its opcode is the end of
/// a line, and they reply with an error. To a get they would reply nothing.
const NOOP: [u8; HEADER_BYTES] = {
    let mut bytes = [0; HEADER_BYTES];
    bytes[0] = REQUEST_MAGIC;
    bytes[1] = Opcode::Noop as u8;
    bytes
};

/// Extras of a storage command: flags and time to live.
const STORAGE_EXTRAS: usize = 8;
/// Extras of an increment: delta, what to begin with, time to live.
const ARITHMETIC_EXTRAS: usize = 20;
/// Extras of a value: its flags.
const VALUE_EXTRAS: usize = 4;

/// The time to live that keeps an increment from making the key it does not find.
const MAKE_NONE: u32 = u32::MAX;

/// A unique that no server gives away: they count from 1.
const NEVER_CURRENT: u64 = u64::MAX;

/// The longest frame without a value. Texts stay far below 1 KiB.
const FRAME_BYTES_MAX: usize = BinaryCodec::UNIT_BYTES_MAX;

impl Codec for BinaryCodec {
    const MATCHING: Matching = Matching::Token;

    const KEY_NAMES: KeyNames = KeyNames::OfSeveral;

    const HAS_SETUP: bool = true;

    const UNIT_BYTES_MAX: usize = 2048;

    const FOUND: Form = pairs::form(Opcode::Get, Status::Success);

    #[inline]
    fn encoded_len_max(&self, keys: usize, key_bytes: usize, value_bytes: usize) -> usize {
        (keys + 1) * HEADER_BYTES + ARITHMETIC_EXTRAS + key_bytes + value_bytes
    }

    /// Retrievals ask for every key; they and `touch` ignore `noreply`. The other kinds have one key.
    ///
    /// # Panics
    ///
    /// If the kind is `Raw`: this protocol has no command templates, and a plan that asks for them is refused.
    #[inline(always)] // Where the kind is known, so is the way, and nothing is left of the choice.
    fn encode(&mut self, request: &Request<'_>, out: &mut Out) -> Encoded {
        if request.kind == OpKind::Get && request.keys.ends.len() == 1 {
            put_get(Opcode::Get as u8, request.keys.first(), request.token, out);
            return Encoded { wire_requests: 1, replied: true };
        }
        encode_any(request, out)
    }

    // Always: as a call it would write what it found to memory, to be read again.
    #[inline(always)]
    fn decode_found<'a>(&mut self, input: &'a [u8]) -> Option<(usize, Found<'a>)> {
        let is_idle = self.progress == Progress::Idle && self.expects == Expects::Frame;
        if is_idle { found(input) } else { None }
    }

    #[inline(never)]
    fn decode_any<'a>(&mut self, input: &'a [u8]) -> (usize, Option<Event<'a>>) {
        let step = match self.expects {
            Expects::Frame if self.progress == Progress::Idle => {
                self.progress = Progress::Begun;
                return (0, Some(Event::Begin));
            }
            Expects::Frame => self.frame(input),
            Expects::Value { remaining } => self.value(input, remaining),
            Expects::End { reply, form, token } => Ok((1, self.end(reply, form, 0, token, &[]))),
            Expects::Nothing => return (0, None),
        };
        as_event(step, || self.expects = Expects::Nothing)
    }

    #[inline]
    fn meaning(&self, kind: OpKind, reply: ReplyKind, form: Form) -> Option<ReplyKind> {
        pairs::PAIRS.meaning(kind, reply, form)
    }

    fn connection_setup(&self) -> ConnectionSetup<'_> {
        match &self.setup {
            Setup::None => ConnectionSetup::NONE,
            Setup::Noop => ConnectionSetup { bytes: &NOOP, replies: 1 },
            Setup::Login(login) => ConnectionSetup { bytes: login.bytes(), replies: 1 },
        }
    }

    fn setup_step(&self, _number: u32) -> &'static str {
        if matches!(self.setup, Setup::Login(_)) { "SASL PLAIN" } else { "NOOP" }
    }

    /// A `NOOP` alone is decoded as the end of a multi-get that found nothing.
    fn accepts_setup_reply(&self, reply: ReplyKind) -> bool {
        reply == if matches!(self.setup, Setup::Login(_)) { ReplyKind::Ok } else { ReplyKind::NotFound }
    }

    fn error_persistence(reply: ReplyKind, text: &[u8]) -> ErrorPersistence {
        persistence(reply, text)
    }

    fn setup_error(&self, _number: u32, reply: ReplyKind, text: &[u8]) -> String {
        match &self.setup {
            Setup::Login(_) => SaslLogin::refusal(reply, text),
            _ if reply == ReplyKind::ClientError => {
                format!("{}; a server with users requires user and --password", QuotedBytes(text))
            }
            _ => QuotedBytes(text).to_string(),
        }
    }
}

// --- Requests ---

/// [`Codec::encode`] without the short way of a single key.
fn encode_any(request: &Request<'_>, out: &mut Out) -> Encoded {
    let replied = !request.noreply;
    let byte_of = |opcode: Opcode| if replied { opcode as u8 } else { opcode.quiet() };
    match request.kind {
        OpKind::Get | OpKind::Gets if request.keys.ends.len() == 1 => {
            let opcode = if request.kind == OpKind::Gets { Opcode::GetK } else { Opcode::Get };
            put_get(opcode as u8, request.keys.first(), request.token, out);
            return Encoded { wire_requests: 1, replied: true };
        }
        OpKind::Get | OpKind::Gets | OpKind::Mget => return batch(request, out),
        OpKind::Set | OpKind::Cas => storage(byte_of(Opcode::Set), request, out),
        OpKind::Add => storage(byte_of(Opcode::Add), request, out),
        OpKind::Replace => storage(byte_of(Opcode::Replace), request, out),
        OpKind::Append => extension(byte_of(Opcode::Append), request, out),
        OpKind::Prepend => extension(byte_of(Opcode::Prepend), request, out),
        OpKind::Incr => arithmetic(byte_of(Opcode::Increment), request, out),
        OpKind::Decr => arithmetic(byte_of(Opcode::Decrement), request, out),
        OpKind::Delete => put_get(byte_of(Opcode::Delete), request.only_key(), request.token, out),
        OpKind::Touch => {
            put_head(Opcode::Touch as u8, &request.ttl_s.to_be_bytes(), 0, request, out);
            return Encoded { wire_requests: 1, replied: true };
        }
        OpKind::Raw => unreachable!("a plan with raw commands is refused for memcached"),
    }
    Encoded { wire_requests: 1, replied }
}

/// A frame that is all key: retrievals and deletes.
#[inline]
fn put_get(opcode: u8, key: &[u8], token: u32, out: &mut Out) {
    out.put_around(&Header::request(opcode, key, 0, key.len(), token).to_bytes(), key, b"");
}

/// A quiet get for each key, and a noop, which is always replied to.
fn batch(request: &Request<'_>, out: &mut Out) -> Encoded {
    for key in request.keys.iter() {
        put_get(Opcode::GetKQ as u8, key, request.token, out);
    }
    put_get(Opcode::Noop as u8, b"", request.token, out);
    Encoded { wire_requests: request.keys.ends.len() as u32 + 1, replied: true }
}

/// Set, add, replace; with a unique, cas.
#[inline]
fn storage(opcode: u8, request: &Request<'_>, out: &mut Out) {
    let mut extras = [0; STORAGE_EXTRAS];
    extras[..4].copy_from_slice(&request.flags.to_be_bytes());
    extras[4..].copy_from_slice(&request.ttl_s.to_be_bytes());
    let unique = match (request.kind, request.operand) {
        (OpKind::Cas, 0) => NEVER_CURRENT,
        (OpKind::Cas, unique) => unique,
        _ => 0,
    };
    put_head(opcode, &extras, unique, request, out);
    out.put_value(&request.value);
}

/// Append and prepend, which leave flags and time to live as they are.
#[inline]
fn extension(opcode: u8, request: &Request<'_>, out: &mut Out) {
    put_head(opcode, &[], 0, request, out);
    out.put_value(&request.value);
}

/// Increment and decrement of what is there: a missing key stays missing.
fn arithmetic(opcode: u8, request: &Request<'_>, out: &mut Out) {
    let mut extras = [0; ARITHMETIC_EXTRAS];
    extras[..8].copy_from_slice(&request.operand.to_be_bytes());
    extras[16..].copy_from_slice(&MAKE_NONE.to_be_bytes());
    put_head(opcode, &extras, 0, request, out);
}

/// All of a frame but its value.
#[inline]
fn put_head(opcode: u8, extras: &[u8], unique: u64, request: &Request<'_>, out: &mut Out) {
    let key = request.only_key();
    let body = extras.len() + key.len() + request.value.total_len();
    let header = Header { unique, ..Header::request(opcode, key, extras.len(), body, request.token) };
    out.put_around(&header.to_bytes(), extras, b"");
    out.put(key);
}

// --- Frames ---

/// What every frame begins with, numbers in network order. The byte behind the length of the extras, a data type, is 0 and
/// not looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    magic: u8,
    opcode: u8,
    key_len: u16,
    extras_len: u8,
    /// 0 in requests.
    status: u16,
    /// Extras, key and value.
    body_len: u32,
    token: u32,
    unique: u64,
}

impl Header {
    #[inline]
    fn request(opcode: u8, key: &[u8], extras_len: usize, body_len: usize, token: u32) -> Self {
        debug_assert!(key.len() <= usize::from(u16::MAX) && u32::try_from(body_len).is_ok());
        Self {
            magic: REQUEST_MAGIC,
            opcode,
            key_len: key.len() as u16,
            extras_len: extras_len as u8,
            status: 0,
            body_len: body_len as u32,
            token,
            unique: 0,
        }
    }

    #[inline]
    fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0] = self.magic;
        bytes[1] = self.opcode;
        bytes[2..4].copy_from_slice(&self.key_len.to_be_bytes());
        bytes[4] = self.extras_len;
        bytes[6..8].copy_from_slice(&self.status.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.body_len.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.token.to_be_bytes());
        bytes[16..].copy_from_slice(&self.unique.to_be_bytes());
        bytes
    }

    #[inline]
    fn of(bytes: &[u8; HEADER_BYTES]) -> Self {
        let [magic, opcode, k0, k1, extras_len, _, s0, s1, b0, b1, b2, b3, t0, t1, t2, t3, unique @ ..] =
            *bytes;
        Self {
            magic,
            opcode,
            key_len: u16::from_be_bytes([k0, k1]),
            extras_len,
            status: u16::from_be_bytes([s0, s1]),
            body_len: u32::from_be_bytes([b0, b1, b2, b3]),
            token: u32::from_be_bytes([t0, t1, t2, t3]),
            unique: u64::from_be_bytes(unique),
        }
    }

    /// Length of extras and key, which must fit the body.
    fn front_len(self) -> Option<usize> {
        let front = usize::from(self.extras_len) + usize::from(self.key_len);
        Some(front).filter(|front| *front <= self.body_len as usize)
    }
}

/// How a reply says that it is well.
const SUCCESS: u16 = 0x00;
const NOT_FOUND: u16 = 0x01;
const CONTINUES: u16 = 0x21;

/// What a status comes to: those that tell a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Status {
    Success,
    NotFound,
    Exists,
    NotStored,
    /// No status: a success, of a multi-get that has found nothing.
    Nothing,
    /// Any other.
    Error,
}

impl Status {
    const fn of(status: u16) -> Self {
        match status {
            SUCCESS => Self::Success,
            NOT_FOUND => Self::NotFound,
            0x02 => Self::Exists,
            0x05 => Self::NotStored,
            _ => Self::Error,
        }
    }
}

/// Statuses with what such a reply says and a text for one that has none. What no document names is the server's error.
const STATUSES: [(u16, ReplyKind, &[u8]); 15] = [
    (0x03, ReplyKind::ServerError, b"value too large (status 0x0003)"),
    (0x04, ReplyKind::ClientError, b"invalid arguments (status 0x0004)"),
    (0x06, ReplyKind::ClientError, b"non-numeric value (status 0x0006)"),
    // Not this server's partition.
    (0x07, ReplyKind::Redirect, b"wrong server (status 0x0007)"),
    (0x08, ReplyKind::ServerError, b"authentication error (status 0x0008)"),
    (0x09, ReplyKind::ServerError, b"authentication continues (status 0x0009)"),
    (0x20, ReplyKind::ClientError, b"authentication error (status 0x0020)"),
    (CONTINUES, ReplyKind::ClientError, b"authentication continues (status 0x0021)"),
    (0x24, ReplyKind::ClientError, b"no access (status 0x0024)"),
    (0x81, ReplyKind::Error, b"unknown command (status 0x0081)"),
    (0x82, ReplyKind::ServerError, b"out of memory (status 0x0082)"),
    (0x83, ReplyKind::Error, b"not supported (status 0x0083)"),
    (0x84, ReplyKind::ServerError, b"internal error (status 0x0084)"),
    (0x85, ReplyKind::ServerError, b"busy (status 0x0085)"),
    (0x86, ReplyKind::ServerError, b"temporary failure (status 0x0086)"),
];

/// What a status other than success means as the answer to this opcode.
fn declined(opcode: Opcode, status: u16) -> ReplyKind {
    match (Status::of(status), opcode) {
        (Status::NotFound, Opcode::Replace) | (Status::Exists, Opcode::Add) => ReplyKind::NotStored,
        (Status::NotFound, _) => ReplyKind::NotFound,
        (Status::Exists, _) => ReplyKind::Exists,
        (Status::NotStored, _) => ReplyKind::NotStored,
        _ => {
            let known = STATUSES.iter().find(|(known, ..)| *known == status);
            known.map_or(ReplyKind::ServerError, |(_, reply, _)| *reply)
        }
    }
}

/// May a success bring a body that is looked at no further: of a login a text, of a touch the flags?
const fn may_have_body(opcode: Opcode, header: Header) -> bool {
    match opcode {
        Opcode::SaslAuth => true,
        Opcode::Touch => header.body_len == header.extras_len as u32,
        _ => false,
    }
}

/// What success means as the answer to this opcode, if it is an answer of its own.
const fn done(opcode: Opcode) -> ReplyKind {
    match opcode {
        Opcode::Set | Opcode::Add | Opcode::Replace | Opcode::Append | Opcode::Prepend => ReplyKind::Stored,
        Opcode::Delete => ReplyKind::Deleted,
        Opcode::Touch => ReplyKind::Touched,
        _ => ReplyKind::Ok,
    }
}

/// The text of an error, or that of its status where it has none.
fn text_or_status(text: &[u8], status: u16) -> &[u8] {
    if !text.is_empty() {
        return text;
    }
    STATUSES.iter().find(|(known, ..)| *known == status).map_or(b"unknown status", |(.., text)| text)
}

// --- Replies ---

const TOO_LONG: Stop = Stop::Bad(Malformed::LineTooLong);

/// The first eight bytes of a get's reply: magic, `GET`, no key, extras for the flags, success.
const FOUND: [u8; 8] = [REPLY_MAGIC, Opcode::Get as u8, 0, 0, VALUE_EXTRAS as u8, 0, 0, 0];

/// The short way: a whole value of a single key, if that is what lies at the front. Its length, and what it holds.
#[inline(always)]
fn found(input: &[u8]) -> Option<(usize, Found<'_>)> {
    let (header, rest) = input.split_first_chunk::<HEADER_BYTES>()?;
    let (flags, rest) = rest.split_first_chunk::<VALUE_EXTRAS>()?;
    if !header.starts_with(&FOUND) {
        return None;
    }
    let Header { body_len, token, .. } = Header::of(header);
    let value = rest.get(..(body_len as usize).checked_sub(VALUE_EXTRAS)?)?;
    let found = Found { key: &[], flags: u32::from_be_bytes(*flags), value, token };
    Some((HEADER_BYTES + body_len as usize, found))
}

impl BinaryCodec {
    /// The codec of a connection that begins with this login, or with a `NOOP`.
    pub fn with_setup(login: Option<Arc<SaslLogin>>) -> Self {
        Self { setup: login.map_or(Setup::Noop, Setup::Login), ..Self::default() }
    }

    /// Reads a frame; of one with a value, what is before it.
    fn frame<'a>(&mut self, input: &'a [u8]) -> Step<(usize, Event<'a>)> {
        if input.first().is_some_and(|magic| *magic != REPLY_MAGIC) {
            return Err(UNKNOWN);
        }
        let header = Header::of(input.first_chunk().ok_or(Stop::Short)?);
        let opcode = Opcode::of(header.opcode).ok_or(UNKNOWN)?;
        if !self.progress.admits(opcode, header.token) {
            return Err(UNKNOWN);
        }
        let front_len = header.front_len().ok_or(BAD_NUMBER)?;
        if header.status == SUCCESS && matches!(opcode, Opcode::Get | Opcode::GetK | Opcode::GetKQ) {
            return self.value_frame(input, opcode, header);
        }
        let frame_len = HEADER_BYTES + header.body_len as usize;
        if frame_len > FRAME_BYTES_MAX {
            return Err(TOO_LONG);
        }
        let frame = input.get(..frame_len).ok_or(Stop::Short)?;
        let text = &frame[HEADER_BYTES + front_len..];
        let form = pairs::form_of(header.opcode, Status::of(header.status));
        match (opcode, header.status) {
            (Opcode::GetKQ, _) => {
                let key = &frame[HEADER_BYTES + usize::from(header.extras_len)..HEADER_BYTES + front_len];
                Ok((frame_len, self.key_without_value(header, key, text)))
            }
            (Opcode::Noop, SUCCESS) if header.body_len == 0 => Ok((frame_len, self.noop(header.token))),
            (Opcode::Increment | Opcode::Decrement, SUCCESS) => {
                let number = u64::from_be_bytes(text.try_into().map_err(|_| BAD_NUMBER)?);
                Ok((frame_len, self.end(ReplyKind::Number, form, number, header.token, &[])))
            }
            (Opcode::SaslAuth, CONTINUES) => {
                // The last byte is left for the event that ends the reply.
                self.expects = Expects::End { reply: ReplyKind::Value, form, token: header.token };
                Ok((frame_len - 1, Event::Control(frame)))
            }
            (_, SUCCESS) if header.body_len > 0 && !may_have_body(opcode, header) => Err(UNKNOWN),
            (_, SUCCESS) => Ok((frame_len, self.end(done(opcode), form, 0, header.token, &[]))),
            (_, status) => {
                let text = text_or_status(text, status);
                Ok((frame_len, self.failed(declined(opcode, status), form, header.token, text)))
            }
        }
    }

    /// Reads what is before a value.
    fn value_frame<'a>(
        &mut self,
        input: &'a [u8],
        opcode: Opcode,
        header: Header,
    ) -> Step<(usize, Event<'a>)> {
        let Header { key_len, extras_len, body_len, token, unique, .. } = header;
        let (extras_len, key_len) = (usize::from(extras_len), usize::from(key_len));
        if extras_len != VALUE_EXTRAS {
            return Err(BAD_NUMBER);
        }
        if key_len > KEY_BYTES_MAX {
            return Err(TOO_LONG);
        }
        let (flags, rest) = input[HEADER_BYTES..].split_first_chunk().ok_or(Stop::Short)?;
        let key = rest.get(..key_len).ok_or(Stop::Short)?;
        let flags = u32::from_be_bytes(*flags);
        let front_len = extras_len + key_len;
        let bytes = body_len - front_len as u32;
        // As in the other protocols only a gets is told the number, which is sent as this.
        let unique = if opcode == Opcode::GetK { unique } else { 0 };
        let used = HEADER_BYTES + front_len;
        let form = pairs::form(opcode, Status::Success);
        let event = Event::Key { hit: true, key, flags, bytes, unique, token, recache: Recache::NONE };
        let is_only = opcode != Opcode::GetKQ;
        self.expects = match bytes {
            0 if is_only => Expects::End { reply: ReplyKind::Value, form, token },
            0 => Expects::Frame,
            remaining => Expects::Value { remaining },
        };
        self.progress = match self.progress {
            Progress::Remains { .. } => return Ok((used, Event::Push { is_over: false })),
            _ if is_only => Progress::Single { token, form },
            _ => Progress::Batch { token, hit: true },
        };
        Ok((used - usize::from(is_only), event))
    }

    /// Passes on what is visible of a value. Of the only one, what has been told runs a byte ahead of what is used up.
    fn value<'a>(&mut self, input: &'a [u8], remaining: u32) -> Step<(usize, Event<'a>)> {
        let ahead = usize::from(matches!(self.progress, Progress::Single { .. }));
        let piece = &input[ahead..input.len().min(ahead + remaining as usize)];
        if piece.is_empty() {
            return Err(Stop::Short);
        }
        let remaining = remaining - piece.len() as u32;
        self.expects = match (remaining, self.progress) {
            (1.., _) => Expects::Value { remaining },
            (0, Progress::Single { token, form }) => Expects::End { reply: ReplyKind::Value, form, token },
            (0, _) => Expects::Frame,
        };
        let event = match self.progress {
            Progress::Remains { .. } => Event::Push { is_over: false },
            _ => Event::Value(piece),
        };
        Ok((piece.len(), event))
    }

    /// A quiet get that was answered after all: its key is missing, or it failed and its multi-get with it.
    fn key_without_value<'a>(&mut self, header: Header, key: &'a [u8], text: &'a [u8]) -> Event<'a> {
        let token = header.token;
        let hit = match self.progress {
            Progress::Remains { .. } => return Event::Push { is_over: false },
            Progress::Batch { hit, .. } => hit,
            _ => false,
        };
        if header.status == NOT_FOUND {
            self.progress = Progress::Batch { token, hit };
            let recache = Recache::NONE;
            return Event::Key { hit: false, key, flags: 0, bytes: 0, unique: 0, token, recache };
        }
        self.progress = Progress::Remains { token };
        let text = text_or_status(text, header.status);
        let form = pairs::form(Opcode::GetKQ, Status::of(header.status));
        Event::End { reply: declined(Opcode::GetKQ, header.status), form, number: 0, token, text }
    }

    /// The end of a multi-get: of its reply, or of what an error had left of it.
    fn noop<'a>(&mut self, token: u32) -> Event<'a> {
        match self.progress {
            Progress::Remains { .. } => {
                self.progress = Progress::Idle;
                Event::Push { is_over: true }
            }
            Progress::Batch { hit: true, .. } => {
                self.end(ReplyKind::Value, pairs::form(Opcode::Noop, Status::Success), 0, token, &[])
            }
            _ => self.end(ReplyKind::NotFound, pairs::form(Opcode::Noop, Status::Nothing), 0, token, &[]),
        }
    }

    /// Closes the reply with something else than success.
    fn failed<'a>(&mut self, reply: ReplyKind, form: Form, token: u32, text: &'a [u8]) -> Event<'a> {
        if let Progress::Remains { .. } = self.progress {
            self.progress = Progress::Idle;
            return Event::Push { is_over: true };
        }
        self.end(reply, form, 0, token, if reply.is_error() { text } else { &[] })
    }

    /// Closes the reply.
    #[inline]
    fn end<'a>(
        &mut self,
        reply: ReplyKind,
        form: Form,
        number: u64,
        token: u32,
        text: &'a [u8],
    ) -> Event<'a> {
        (self.expects, self.progress) = (Expects::Frame, Progress::Idle);
        Event::End { reply, form, number, token, text }
    }
}

impl Progress {
    /// May a frame with this opcode and token come next?
    fn admits(self, opcode: Opcode, token: u32) -> bool {
        match self {
            Self::Idle | Self::Begun => true,
            Self::Single { .. } => false,
            Self::Batch { token: own, .. } | Self::Remains { token: own } => {
                own == token && matches!(opcode, Opcode::GetKQ | Opcode::Noop)
            }
        }
    }
}

#[cfg(test)]
mod tests;
