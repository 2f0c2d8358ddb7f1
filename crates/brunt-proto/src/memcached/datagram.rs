//! Codecs over datagrams: one of the text protocols behind memcached's header of eight bytes.
//!
//! The caller has the sockets and the memory for early datagrams, and asks here what to do with each datagram. An id
//! of a request is the number of a place and, in the bits above it, how often that was used before; the place has a codec of its
//! own, because replies overtake one another, and knows the token of the request that waits in it. Places are taken in turn, so that
//! an id comes back as late as can be. A stream that is beside such sockets has no places: it is read and written by the protocol's codec
//! alone. Invariant: nothing that bears an id of another request reaches the codec of a place.

use super::udp::{AHEAD_MAX, DATAGRAM_ROOM, HEADER_BYTES, Header, Reassembly, ReassemblyStep};
use crate::out::Out;
use crate::{
    Codec, DatagramAction, DiscardReason, Encoded, Event, Form, Found, KeyNames, Malformed, Matching,
    NO_TOKEN, Request, TimedOut,
};
use brunt_plan::op::OpKind;
use brunt_plan::outcome::{ErrorPersistence, ReplyKind};
use std::collections::VecDeque;

/// No place.
const NOWHERE: usize = usize::MAX;
/// No place, as a number of 16 bits.
const NO_PLACE: u16 = u16::MAX;
/// The fewest places, however few requests wait at a time: a duplicate is recognised until its place is reused.
const PLACES_MIN: usize = 32;
/// The most places, so that each has at least four ids.
const PLACES_MAX: usize = 1 << 14;

/// The key of a value ends within these bytes of its first datagram.
const NAMED_BYTES: usize = 300;

/// The most requests of a connection that may wait at a time.
pub const WAITING_MAX: usize = PLACES_MAX / 2;

/// State of a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// No request waits in it, and the last one was answered; or there was none.
    #[default]
    Answered,
    /// No request waits in it, and the last one timed out.
    TimedOut,
    /// No request waits in it, and the last one was to have no reply.
    Silent,
    /// A request waits for its reply.
    Waiting,
}

/// Where one request after the other waits for its reply.
#[derive(Clone, Debug)]
struct PendingRequest<C> {
    codec: C,
    /// The codec's state before the train that is being read.
    before: C,
    reassembly: Reassembly,
    /// A key of the reply was told of.
    has_key: bool,
    /// The first datagram of the train in flight, and the last that was read; where trains are read in order.
    first: u64,
    last: u64,
    /// Its reply cannot be put together any more.
    is_broken: bool,
    token: u32,
    /// What the request asks.
    kind: OpKind,
    /// Requests that had this place, modulo 2³².
    used: u32,
    state: State,
    /// What is left of the train in flight is not to be read.
    skips: bool,
    /// Of those in which a request waits, the ones whose requests came just before and just after.
    older: u16,
    younger: u16,
}

/// One of the text protocols over datagrams: the state of one socket.
#[derive(Debug)]
pub struct DatagramCodec<C> {
    fresh: C,
    places: Box<[PendingRequest<C>]>,
    /// Free places, the one that is free longest first.
    resting: VecDeque<u16>,
    /// Bits of an id that are the number of a place.
    place_bits: u32,
    /// How many datagrams one of a train may overtake.
    ahead_max: u16,
    /// Datagrams of the longest train of one key of a multi-get.
    key_train_max: u16,
    /// The place whose reply is being read.
    current: usize,
    /// Where a request has waited longest, and where one has waited least.
    oldest: u16,
    youngest: u16,
}

impl<C: Codec> DatagramCodec<C> {
    /// For a socket with at most `waiting` requests at a time, and at most `ahead_max` datagrams of a reply held
    /// for those before them.
    ///
    /// # Panics
    /// If they are more than [`WAITING_MAX`].
    pub fn new(fresh: C, waiting: usize, ahead_max: u16) -> Self {
        assert!(waiting <= WAITING_MAX, "the plan bounds what waits on a connection");
        let count = (2 * waiting).next_power_of_two().max(PLACES_MIN);
        let place = PendingRequest {
            codec: fresh.clone(),
            before: fresh.clone(),
            reassembly: Reassembly::default(),
            has_key: false,
            first: 0,
            last: 0,
            is_broken: false,
            token: NO_TOKEN,
            kind: OpKind::Get,
            used: 0,
            state: State::Answered,
            skips: false,
            older: NO_PLACE,
            younger: NO_PLACE,
        };
        Self {
            fresh,
            places: vec![place; count].into_boxed_slice(),
            resting: (0..count as u16).collect(),
            place_bits: count.trailing_zeros(),
            ahead_max: ahead_max.min(AHEAD_MAX),
            key_train_max: 1,
            current: NOWHERE,
            oldest: NO_PLACE,
            youngest: NO_PLACE,
        }
    }

    /// The codec for multi-gets of which one key may take this many datagrams. A train of that many and fewer, but for one, may be a key's, and is read
    /// in order: what another one's datagram in it would do shows nowhere but in the value. Whatever shows that something is missing breaks
    /// the reply, whose request then times out; a longer train is a whole reply, whose datagrams are put in order.
    #[must_use]
    pub fn with_key_trains(mut self, key_train_max: u16) -> Self {
        self.key_train_max = key_train_max.max(1);
        self
    }

    /// Is it that of a stream?
    #[inline]
    fn is_stream(&self) -> bool {
        self.places.is_empty()
    }

    /// The protocol's codec, of a connection on which nothing was sent.
    pub fn into_dialect(self) -> C {
        self.fresh
    }

    /// A request comes to the place that has rested longest. Yields its number.
    #[inline]
    fn take_place(&mut self, token: u32, kind: OpKind) -> u16 {
        let number = self.resting.pop_front().expect("no more requests wait than the plan lets wait");
        let place = &mut self.places[usize::from(number)];
        place.codec.clone_from(&self.fresh);
        place.reassembly = Reassembly::default();
        (place.has_key, place.skips, place.is_broken) = (false, false, false);
        (place.token, place.kind, place.state) = (token, kind, State::Waiting);
        (place.older, place.younger) = (self.youngest, NO_PLACE);
        self.join(self.youngest, number);
        self.youngest = number;
        number
    }

    /// The second of these is the one behind the first; either may be the end.
    #[inline]
    fn join(&mut self, older: u16, younger: u16) {
        match self.places.get_mut(usize::from(older)) {
            Some(place) => place.younger = younger,
            None => self.oldest = younger,
        }
        match self.places.get_mut(usize::from(younger)) {
            Some(place) => place.older = older,
            None => self.youngest = older,
        }
    }

    /// A request has left its place.
    #[inline]
    fn leave_place(&mut self, number: usize, state: State) {
        let place = &mut self.places[number];
        place.state = state;
        let (older, younger) = (place.older, place.younger);
        self.join(older, younger);
        // There is room for all places.
        self.resting.push_back(number as u16);
    }

    /// The header of the request that has this place now.
    #[inline]
    fn put_header(&mut self, number: u16, out: &mut Out) {
        let place = &mut self.places[usize::from(number)];
        let id = (place.used << self.place_bits) as u16 | number;
        place.used = place.used.wrapping_add(1);
        out.put(&Header::request(id).to_bytes());
    }

    /// What a datagram of this id is to the place with that number, unless a request waits there under it.
    #[inline]
    fn discard_reason(&self, request_id: u16, number: usize) -> Option<DiscardReason> {
        let place = &self.places[number];
        // Of more uses than there are ids of a place every one was sent some time.
        let generations = 1u32 << (u16::BITS - self.place_bits);
        let generation = u32::from(request_id >> self.place_bits);
        let is_last = place.used > 0 && generation == (place.used - 1) % generations;
        match place.state {
            State::Waiting if is_last => None,
            State::Answered if is_last => Some(DiscardReason::Duplicate),
            State::Silent if is_last => Some(DiscardReason::Stray),
            _ if generation < place.used => Some(DiscardReason::Late),
            _ => Some(DiscardReason::Stray),
        }
    }

    /// The request that waits where a reply is being read has got all of it.
    #[inline]
    fn end(&mut self, token: u32) {
        if token == self.places[self.current].token {
            self.leave_place(self.current, State::Answered);
            self.current = NOWHERE;
        }
    }
}

impl<C> PendingRequest<C> {
    /// What a datagram is, if not the next one of a train that is read in order; `None` if it is that, or of a train that is not.
    fn out_of_order(&mut self, header: Header, payload: &[u8], key_train_max: u16) -> Option<DiscardReason> {
        let may_be_keys = |total: u16| (2..=key_train_max).contains(&total);
        let under_way = self.reassembly.total();
        if self.kind != OpKind::Mget || !(may_be_keys(header.total) || may_be_keys(under_way)) {
            return None;
        }
        let own = fingerprint(header, payload);
        let is_first = under_way == 0 && header.sequence == 0;
        if own == self.last || !is_first && own == self.first {
            return Some(DiscardReason::Duplicate);
        }
        let is_of_it = is_first || header.total == under_way && header.sequence > 0;
        if !is_of_it || self.reassembly.ahead(header) > 0 {
            self.is_broken = true;
            return Some(DiscardReason::Disordered);
        }
        (self.first, self.last) = (if is_first { own } else { self.first }, own);
        None
    }
}

/// Tells a datagram from others of its reply: its header, its length, and as much of it as names a key (FNV-1a).
fn fingerprint(header: Header, payload: &[u8]) -> u64 {
    let length = (payload.len() as u16).to_be_bytes();
    let named = payload.iter().take(NAMED_BYTES).chain(&length);
    let bytes = header.to_bytes().into_iter().chain(named.copied());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Is this how a reply begins, with a key? Read where a key has been told of, it is a copy of the first train.
fn is_first_key<C: Codec>(fresh: &mut C, input: &[u8]) -> bool {
    let mut used = 0;
    while let (step, Some(event)) = fresh.decode(&input[used..]) {
        match event {
            Event::Begin => used += step,
            event => return matches!(event, Event::Key { .. }),
        }
    }
    false
}

impl<C: Codec> Clone for DatagramCodec<C> {
    fn clone(&self) -> Self {
        Self {
            fresh: self.fresh.clone(),
            places: self.places.clone(),
            resting: self.resting.clone(),
            ..*self
        }
    }

    /// Takes no memory where both are for as many requests.
    fn clone_from(&mut self, source: &Self) {
        self.fresh.clone_from(&source.fresh);
        self.places.clone_from(&source.places);
        self.resting.clone_from(&source.resting);
        (self.place_bits, self.current) = (source.place_bits, source.current);
        (self.ahead_max, self.key_train_max) = (source.ahead_max, source.key_train_max);
        (self.oldest, self.youngest) = (source.oldest, source.youngest);
    }
}

impl<C: Codec> Codec for DatagramCodec<C> {
    /// By the id, whatever the protocol has beside it.
    const MATCHING: Matching = Matching::Token;

    const KEY_NAMES: KeyNames = C::KEY_NAMES;

    const DATAGRAMS: bool = true;

    const UNIT_BYTES_MAX: usize = C::UNIT_BYTES_MAX;

    const FOUND: Form = C::FOUND;

    #[inline]
    fn encoded_len_max(&self, keys: usize, key_bytes: usize, value_bytes: usize) -> usize {
        HEADER_BYTES + self.fresh.encoded_len_max(keys, key_bytes, value_bytes)
    }

    #[inline]
    fn encode(&mut self, request: &Request<'_>, out: &mut Out) -> Encoded {
        if self.is_stream() {
            return self.fresh.encode(request, out);
        }
        let number = self.take_place(request.token, request.kind);
        self.put_header(number, out);
        let encoded = self.fresh.encode(request, out);
        if !encoded.replied {
            self.leave_place(usize::from(number), State::Silent);
        }
        encoded
    }

    #[inline]
    fn encode_get(
        &mut self,
        key_len: usize,
        token: u32,
        out: &mut Out,
        write: impl FnOnce(&mut [u8]),
    ) -> Encoded {
        if self.is_stream() {
            return self.fresh.encode_get(key_len, token, out, write);
        }
        let number = self.take_place(token, OpKind::Get);
        self.put_header(number, out);
        self.fresh.encode_get(key_len, token, out, write)
    }

    #[inline]
    fn decode_found<'a>(&mut self, input: &'a [u8]) -> Option<(usize, Found<'a>)> {
        if self.is_stream() {
            let (used, found) = self.fresh.decode_found(input)?;
            let token = if C::MATCHING == Matching::Fifo { NO_TOKEN } else { found.token };
            return Some((used, Found { token, ..found }));
        }
        let place = self.places.get_mut(self.current)?;
        let (used, found) = place.codec.decode_found(input)?;
        let is_own = C::MATCHING == Matching::Fifo || [NO_TOKEN, place.token].contains(&found.token);
        // What is wrong with another one, `decode_any` says.
        if !is_own || place.codec.meaning(place.kind, ReplyKind::Value, C::FOUND).is_none() {
            return None;
        }
        let token = place.token;
        self.end(token);
        Some((used, Found { token, ..found }))
    }

    /// Reads the reply of the place that the last datagram was for; nothing once that is over. Of a stream it reads what is there: a reply
    /// that bears no token is the oldest request's.
    #[inline]
    fn decode_any<'a>(&mut self, input: &'a [u8]) -> (usize, Option<Event<'a>>) {
        if self.is_stream() {
            let (used, mut event) = self.fresh.decode_any(input);
            if C::MATCHING == Matching::Fifo
                && let Some(
                    Event::Key { token, .. } | Event::Found(Found { token, .. }) | Event::End { token, .. },
                ) = &mut event
            {
                *token = NO_TOKEN;
            }
            return (used, event);
        }
        let Some(place) = self.places.get_mut(self.current) else { return (0, None) };
        let (used, mut event) = place.codec.decode(input);
        let own = place.token;
        // Errors name no request, and nor does anything in a protocol without tokens.
        let is_own = |token: &u32| C::MATCHING == Matching::Fifo || *token == NO_TOKEN;
        if let Some(Event::Key { token, .. } | Event::Found(Found { token, .. }) | Event::End { token, .. }) =
            &event
            && !is_own(token)
            && *token != own
        {
            // The id is of one request and what is behind it of another: it belongs to none.
            return (0, Some(Event::Bad(Malformed::OtherRequest)));
        }
        let said = match &event {
            Some(Event::Found(_)) => Some((ReplyKind::Value, C::FOUND)),
            Some(Event::End { reply, form, .. }) => Some((*reply, *form)),
            _ => None,
        };
        // The decoder says so too: the request goes on waiting, so it must keep its place.
        if let Some((reply, form)) = said
            && place.codec.meaning(place.kind, reply, form).is_none()
        {
            return (0, Some(Event::Bad(Malformed::OutOfStep)));
        }
        match &mut event {
            Some(Event::Key { token, .. }) => {
                place.has_key = true;
                if is_own(token) {
                    *token = own;
                }
            }
            Some(Event::Found(Found { token, .. }) | Event::End { token, .. }) => {
                if is_own(token) {
                    *token = own;
                }
                self.end(*token);
            }
            Some(Event::Bad(reason)) => {
                let mut fresh = self.fresh.clone();
                if place.has_key && is_first_key(&mut fresh, input) {
                    *reason = Malformed::Repeated;
                }
            }
            _ => {}
        }
        (used, event)
    }

    #[inline]
    fn meaning(&self, kind: OpKind, reply: ReplyKind, form: Form) -> Option<ReplyKind> {
        self.fresh.meaning(kind, reply, form)
    }

    fn error_persistence(reply: ReplyKind, text: &[u8]) -> ErrorPersistence {
        C::error_persistence(reply, text)
    }

    #[inline]
    fn is_in_order(&self) -> bool {
        self.is_stream() && C::MATCHING == Matching::Fifo
    }

    #[inline]
    fn is_by_datagram(&self) -> bool {
        !self.is_stream()
    }

    fn stream_codec(&self) -> Self {
        Self { fresh: self.fresh.clone(), places: Box::new([]), resting: VecDeque::new(), ..*self }
    }

    fn places(&self) -> usize {
        self.places.len()
    }

    fn ahead_max(&self) -> u16 {
        self.ahead_max
    }

    fn receive_datagram<'a>(&mut self, datagram: &'a [u8]) -> DatagramAction<'a> {
        self.current = NOWHERE;
        let Some((header, payload)) = Header::split(datagram).filter(|_| datagram.len() < DATAGRAM_ROOM)
        else {
            return DatagramAction::Discarded(DiscardReason::Malformed);
        };
        let number = usize::from(header.request_id) & (self.places.len() - 1);
        if let Some(discard_reason) = self.discard_reason(header.request_id, number) {
            return DatagramAction::Discarded(discard_reason);
        }
        let place = &mut self.places[number];
        if place.is_broken {
            return DatagramAction::Discarded(DiscardReason::Disordered);
        }
        if self.key_train_max > 1
            && let Some(discard_reason) = place.out_of_order(header, payload, self.key_train_max)
        {
            return DatagramAction::Discarded(discard_reason);
        }
        if place.reassembly.ahead(header) > self.ahead_max {
            return DatagramAction::Discarded(DiscardReason::Disordered);
        }
        if place.reassembly.is_between() {
            // To be gone back to, should this turn out to be a train that was here before.
            place.before.clone_from(&place.codec);
        }
        match place.reassembly.receive(header, payload.len()) {
            ReassemblyStep::Next { .. } if place.skips => {
                place.skips = !place.reassembly.is_between();
                DatagramAction::Nothing
            }
            ReassemblyStep::Next { held } => {
                self.current = number;
                DatagramAction::Reply { place: number, payload, sequence: header.sequence, held }
            }
            ReassemblyStep::Ahead => {
                DatagramAction::Held { place: number, payload, sequence: header.sequence }
            }
            ReassemblyStep::Hollow => DatagramAction::Nothing,
            ReassemblyStep::Duplicate => DatagramAction::Discarded(DiscardReason::Duplicate),
            ReassemblyStep::Disordered => DatagramAction::Discarded(DiscardReason::Disordered),
            ReassemblyStep::Malformed => DatagramAction::Discarded(DiscardReason::Malformed),
        }
    }

    fn is_reading(&self) -> bool {
        self.current != NOWHERE
    }

    fn skip(&mut self) {
        let Some(place) = self.places.get_mut(self.current) else { return };
        place.codec.clone_from(&place.before);
        place.skips = !place.reassembly.is_between();
        self.current = NOWHERE;
    }

    fn time_out(&mut self, token: u32) -> Option<TimedOut> {
        // The oldest request times out first, so that this is the first one.
        let mut number = usize::from(self.oldest);
        while self.places.get(number)?.token != token {
            number = usize::from(self.places[number].younger);
        }
        let missing = self.places[number].reassembly.missing();
        self.leave_place(number, State::TimedOut);
        Some(TimedOut { place: number, missing })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Keys;
    use crate::memcached::{MetaCodec, TextCodec};

    /// A get of this token, and the id that it bears.
    fn ask<C: Codec>(codec: &mut DatagramCodec<C>, token: u32, noreply: bool) -> u16 {
        let mut out = Out::with_room(300);
        let kind = if noreply { OpKind::Delete } else { OpKind::Get };
        let keys = Keys { bytes: b"key", ends: &[3] };
        codec.encode(&Request { token, noreply, ..Request::of(kind, keys) }, &mut out);
        let (header, _) = Header::split(out.contiguous().unwrap()).unwrap();
        assert_eq!(header, Header::request(header.request_id));
        header.request_id
    }

    fn datagram(id: u16, sequence: u16, total: u16, payload: &[u8]) -> Vec<u8> {
        let header = Header { request_id: id, sequence, total, reserved: 0 };
        [&header.to_bytes(), payload].concat()
    }

    /// What a datagram is, and of one that is read whose token its events bear and what they end with.
    fn receive_datagram<C: Codec>(
        codec: &mut DatagramCodec<C>,
        datagram: &[u8],
    ) -> (String, Option<(u32, ReplyKind)>) {
        match codec.receive_datagram(datagram) {
            DatagramAction::Discarded(discard_reason) => (format!("{discard_reason:?}"), None),
            DatagramAction::Nothing => ("Nothing".to_owned(), None),
            DatagramAction::Held { sequence, .. } => (format!("Held {sequence}"), None),
            DatagramAction::Reply { payload, held, .. } => {
                let (mut used, mut end) = (0, None);
                while let (step, Some(event)) = codec.decode(&payload[used..]) {
                    used += step;
                    match event {
                        Event::Found(Found { token, .. }) => end = Some((token, ReplyKind::Value)),
                        Event::End { token, reply, .. } => end = Some((token, reply)),
                        Event::Bad(reason) => return (format!("{reason:?}"), None),
                        _ => {}
                    }
                }
                (format!("Reply, {held} held, {}", if codec.is_reading() { "more" } else { "over" }), end)
            }
        }
    }

    /// A stream beside them has no header, and what bears no token in its protocol bears none.
    #[test]
    fn streams_use_the_plain_codec() {
        let mut text = DatagramCodec::new(TextCodec::default(), 4, 2).stream_codec();
        assert!(text.is_in_order() && !text.is_by_datagram());
        let mut out = Out::with_room(300);
        let get = |token| Request { token, ..Request::of(OpKind::Get, Keys { bytes: b"key", ends: &[3] }) };
        text.encode(&get(5), &mut out);
        assert_eq!(out.contiguous().unwrap(), b"get key\r\n");
        assert!(matches!(text.decode(b"END\r\n"), (0, Some(Event::Begin))));
        let ended = text.decode(b"END\r\n");
        assert!(matches!(ended, (5, Some(Event::End { token: NO_TOKEN, .. }))), "{ended:?}");
        let mut meta = DatagramCodec::new(MetaCodec::new(), 4, 2).stream_codec();
        assert!(!meta.is_in_order() && !meta.is_by_datagram());
        let mut out = Out::with_room(300);
        meta.encode(&get(5), &mut out);
        let mut alone = Out::with_room(300);
        MetaCodec::new().encode(&get(5), &mut alone);
        assert_eq!(out.contiguous(), alone.contiguous());
    }

    /// Id and token of a reply belong to one request, or the reply to none, and no place is lost.
    #[test]
    fn ids_and_tokens_belong_together() {
        let mut codec = DatagramCodec::new(MetaCodec::new(), 4, 2);
        let asked = [5, 6].map(|token| {
            let mut out = Out::with_room(300);
            let keys = Keys { bytes: b"key", ends: &[3] };
            codec.encode(&Request { token, ..Request::of(OpKind::Get, keys) }, &mut out);
            let (header, request) = Header::split(out.contiguous().unwrap()).unwrap();
            let opaque = request.split(|byte| *byte == b' ').find(|word| word.starts_with(b"O")).unwrap();
            (header.request_id, [b"EN ", opaque.trim_ascii_end(), b"\r\n"].concat())
        });
        for (one, other) in [(0, 1), (1, 0)] {
            let crossed = datagram(asked[one].0, 0, 1, &asked[other].1);
            assert_eq!(receive_datagram(&mut codec, &crossed), ("OtherRequest".to_owned(), None));
            codec.skip();
        }
        for ((id, reply), token) in asked.iter().zip([5, 6]) {
            let (read, end) = receive_datagram(&mut codec, &datagram(*id, 0, 1, reply));
            assert_eq!((read.as_str(), end.map(|(token, _)| token)), ("Reply, 0 held, over", Some(token)));
        }
    }

    const FOUND: &[u8] = b"VALUE key 0 2\r\nab\r\nEND\r\n";

    #[test]
    fn replies_find_their_requests_in_any_order() {
        let mut codec = DatagramCodec::new(TextCodec::new(), 4, 2);
        let ids = [70, 71, 72].map(|token| ask(&mut codec, token, false));
        assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2]);
        let over = |token, reply| ("Reply, 0 held, over".to_owned(), Some((token, reply)));
        assert_eq!(receive_datagram(&mut codec, &datagram(ids[2], 0, 1, FOUND)), over(72, ReplyKind::Value));
        assert_eq!(
            receive_datagram(&mut codec, &datagram(ids[0], 0, 1, b"END\r\n")),
            over(70, ReplyKind::NotFound)
        );
        // In two pieces, and between them a copy.
        let [front, back] = [&FOUND[..17], &FOUND[17..]];
        assert_eq!(receive_datagram(&mut codec, &datagram(ids[1], 0, 2, front)).0, "Reply, 0 held, more");
        assert_eq!(receive_datagram(&mut codec, &datagram(ids[1], 0, 2, front)).0, "Duplicate");
        assert_eq!(receive_datagram(&mut codec, &datagram(ids[1], 1, 2, back)), over(71, ReplyKind::Value));
        assert_eq!(codec.decode(FOUND), (0, None), "nothing is read once it is over");
    }

    #[test]
    fn discarded_datagrams_are_classified() {
        let mut codec = DatagramCodec::new(MetaCodec::new(), 4, 2);
        let [answered, given_up, waiting] = [1, 2, 3].map(|token| ask(&mut codec, token, false));
        let silent = ask(&mut codec, 4, true);
        let reply = b"HD OsAAAAAAAA\r\n";
        let said =
            |codec: &mut DatagramCodec<MetaCodec>, datagram: &[u8]| receive_datagram(codec, datagram).0;
        let error = datagram(answered, 0, 1, b"SERVER_ERROR out of memory\r\n");
        assert_eq!(
            receive_datagram(&mut codec, &error).1,
            Some((1, ReplyKind::ServerError)),
            "it names no request"
        );
        assert_eq!(said(&mut codec, &error), "Duplicate");
        assert_eq!(codec.time_out(2), Some(TimedOut { place: usize::from(given_up), missing: 0 }));
        assert_eq!(codec.time_out(2), None);
        assert_eq!(said(&mut codec, &datagram(given_up, 0, 1, reply)), "Late");
        assert_eq!(said(&mut codec, &datagram(silent, 0, 1, reply)), "Stray");
        assert_eq!(said(&mut codec, &datagram(silent + 1, 0, 1, reply)), "Stray");
        assert_eq!(said(&mut codec, &datagram(waiting | 0x8000, 0, 1, reply)), "Stray");
        assert_eq!(said(&mut codec, &datagram(waiting, 1, 3, reply)), "Held 1");
        assert_eq!(said(&mut codec, &datagram(waiting, 3, 9, reply)), "Disordered");
        assert_eq!(said(&mut codec, &datagram(waiting, 1, 1, reply)), "Malformed");
        assert_eq!(said(&mut codec, &[1, 2, 3]), "Malformed");
        assert_eq!(said(&mut codec, &vec![0; DATAGRAM_ROOM]), "Malformed", "it may have been cut");
    }

    /// What cannot be read is passed over, and the right reply is read all the same.
    #[test]
    fn malformed_trains_are_ignored() {
        let mut codec = DatagramCodec::new(TextCodec::new(), 4, 2);
        let id = ask(&mut codec, 7, false);
        assert_eq!(receive_datagram(&mut codec, &datagram(id, 0, 2, b"nonsense\r\n")).0, "UnknownReply");
        codec.skip();
        assert_eq!(receive_datagram(&mut codec, &datagram(id, 1, 2, b"more of it\r\n")).0, "Nothing");
        assert_eq!(receive_datagram(&mut codec, &datagram(id, 0, 1, FOUND)).1, Some((7, ReplyKind::Value)));
    }

    /// A reply that is none to the request is passed over as well: the request keeps its place.
    #[test]
    fn replies_to_other_requests_are_ignored() {
        for wrong in [&b"STORED\r\n"[..], b"VERSION 1.6\r\n", b"1\r\n", b"VALUE key 0 2 7\r\nab\r\nEND\r\n"] {
            let mut codec = DatagramCodec::new(TextCodec::new(), 4, 2);
            let id = ask(&mut codec, 7, false);
            assert_eq!(receive_datagram(&mut codec, &datagram(id, 0, 1, wrong)).0, "OutOfStep");
            codec.skip();
            assert_eq!(
                receive_datagram(&mut codec, &datagram(id, 0, 1, FOUND)).1,
                Some((7, ReplyKind::Value))
            );
        }
    }

    /// The first train of a multi-get's reply in the meta protocol cannot be behind another.
    #[test]
    fn copies_of_the_first_train_are_duplicates() {
        let mut codec = DatagramCodec::new(MetaCodec::new(), 4, 2);
        let keys = Keys { bytes: b"ab", ends: &[1, 2] };
        let mut out = Out::with_room(300);
        codec.encode(&Request { token: 5, ..Request::of(OpKind::Mget, keys) }, &mut out);
        let id = Header::split(out.contiguous().unwrap()).unwrap().0.request_id;
        let first = datagram(id, 0, 1, b"VA 1 ka f0 Om@@@@@@@E\r\nx\r\n");
        assert_eq!(receive_datagram(&mut codec, &first).0, "Reply, 0 held, more");
        assert_eq!(receive_datagram(&mut codec, &first).0, "Repeated");
        codec.skip();
        assert_eq!(
            receive_datagram(&mut codec, &datagram(id, 0, 1, b"VA 1 kb f0 Oq@@@@@@@E\r\ny\r\n")).0,
            "Reply, 0 held, more"
        );
        assert_eq!(
            receive_datagram(&mut codec, &datagram(id, 0, 1, b"MN\r\n")).1,
            Some((5, ReplyKind::Value))
        );
    }

    /// Values of two datagrams, each key's a train of its own: in order they are read, copies are known, and what lacks one is not put
    /// together with another key's.
    #[test]
    fn trains_of_keys_are_read_in_order() {
        let value = |key: char| format!("VALUE {key} 0 6\r\n{key}{key}{key}").into_bytes();
        let rest = |key: char| format!("{key}{key}{key}\r\n").into_bytes();
        let last = |key: char| format!("{key}{key}{key}\r\nEND\r\n").into_bytes();
        let two = |id, sequence, payload: Vec<u8>| datagram(id, sequence, 2, &payload);
        // Which datagrams come, and what they are.
        let more = "Reply, 0 held, more";
        let table: [(&[&str], &[&str]); 7] = [
            (&["a0", "a1", "b0", "bE"], &[more, more, more, "Reply, 0 held, over"]),
            (
                &["a0", "a0", "a1", "a1", "b0", "b0", "bE", "bE"],
                &[
                    more,
                    "Duplicate",
                    more,
                    "Duplicate",
                    more,
                    "Duplicate",
                    "Reply, 0 held, over",
                    "Duplicate",
                ],
            ),
            // The rest of the first value is lost.
            (&["a0", "b0", "bE"], &[more, "Disordered", "Disordered"]),
            // The front of it is.
            (&["a1", "b0", "bE"], &["Disordered", "Disordered", "Disordered"]),
            // The front of the second.
            (&["a0", "a1", "bE"], &[more, more, "Disordered"]),
            (&["a0", "a1", "E"], &[more, more, "Reply, 0 held, over"]),
            (&["a0", "E"], &[more, "Disordered"]),
        ];
        for (come, expected) in table {
            let mut codec = DatagramCodec::new(TextCodec::new(), 4, 8).with_key_trains(2);
            let keys = Keys { bytes: b"ab", ends: &[1, 2] };
            let mut out = Out::with_room(300);
            codec.encode(&Request { token: 5, ..Request::of(OpKind::Mget, keys) }, &mut out);
            let id = Header::split(out.contiguous().unwrap()).unwrap().0.request_id;
            let mut left = Vec::new();
            for (name, said) in come.iter().zip(expected) {
                let key = name.chars().next().unwrap();
                let bytes = match &name[name.len() - 1..] {
                    _ if *name == "E" => datagram(id, 0, 1, b"END\r\n"),
                    "0" => two(id, 0, value(key)),
                    "1" => two(id, 1, rest(key)),
                    _ => two(id, 1, last(key)),
                };
                // What the engine keeps: an event that is cut.
                let read = match codec.receive_datagram(&bytes) {
                    DatagramAction::Reply { payload, .. } => {
                        left.extend_from_slice(payload);
                        while let (step, Some(_)) = codec.decode(&left) {
                            left.drain(..step);
                        }
                        format!("Reply, 0 held, {}", if codec.is_reading() { "more" } else { "over" })
                    }
                    DatagramAction::Discarded(discard_reason) => format!("{discard_reason:?}"),
                    other => format!("{other:?}"),
                };
                assert_eq!(read, *said, "{come:?}: {name}");
            }
            let is_over = expected.iter().any(|said| said.ends_with("over"));
            assert_eq!(codec.time_out(5).is_none(), is_over, "{come:?}");
        }
    }

    /// Requests come, are answered and timed out in any order: who waits longest is always the first.
    #[test]
    fn pending_requests_are_ordered_by_age() {
        let mut codec = DatagramCodec::new(TextCodec::new(), 8, 0);
        let fresh = codec.clone();
        for round in 0..2u32 {
            let mut waiting: Vec<(u32, u16)> = Vec::new();
            for step in 0..5_000u32 {
                let token = round << 16 | step;
                // Eight at most; which one leaves is drawn by a step that meets every place.
                if waiting.len() == 8 || step % 7 == 3 && !waiting.is_empty() {
                    let (token, id) = waiting.remove(step as usize * 5 % waiting.len());
                    if step % 2 == 0 {
                        assert!(codec.time_out(token).is_some());
                        assert_eq!(codec.time_out(token), None, "only once");
                        assert_eq!(receive_datagram(&mut codec, &datagram(id, 0, 1, FOUND)).0, "Late");
                    } else {
                        assert_eq!(
                            receive_datagram(&mut codec, &datagram(id, 0, 1, FOUND)).1,
                            Some((token, ReplyKind::Value))
                        );
                        assert_eq!(codec.time_out(token), None, "it was answered");
                    }
                }
                waiting.push((token, ask(&mut codec, token, false)));
                ask(&mut codec, u32::MAX - 1, true);
                let mut ages = Vec::new();
                let mut at = codec.oldest;
                while let Some(place) = codec.places.get(usize::from(at)) {
                    ages.push(place.token);
                    at = place.younger;
                }
                assert_eq!(ages, waiting.iter().map(|(token, _)| *token).collect::<Vec<_>>());
            }
            codec.clone_from(&fresh);
            assert_eq!((codec.oldest, codec.youngest), (NO_PLACE, NO_PLACE));
        }
    }

    #[test]
    fn ids_are_reused_as_late_as_possible() {
        for waiting in [1, 16, 100, WAITING_MAX] {
            let mut codec = DatagramCodec::new(TextCodec::new(), waiting, 0);
            let mut seen = std::collections::HashSet::new();
            for number in 0..=u32::from(u16::MAX) {
                let id = ask(&mut codec, number, false);
                assert!(seen.insert(id), "{waiting}: {id} again after {number}");
                assert_eq!(
                    receive_datagram(&mut codec, &datagram(id, 0, 1, FOUND)).1,
                    Some((number, ReplyKind::Value))
                );
            }
            let again = ask(&mut codec, 9, false);
            assert_eq!(
                receive_datagram(&mut codec, &datagram(again, 0, 1, FOUND)).1,
                Some((9, ReplyKind::Value))
            );
        }
    }

    #[test]
    fn a_reset_forgets_everything() {
        let fresh = DatagramCodec::new(TextCodec::new(), 4, 2);
        let mut codec = fresh.clone();
        let ids = [1, 2].map(|token| ask(&mut codec, token, false));
        assert_eq!(
            receive_datagram(&mut codec, &datagram(ids[0], 0, 2, &FOUND[..9])).0,
            "Reply, 0 held, more"
        );
        codec.clone_from(&fresh);
        assert_eq!(receive_datagram(&mut codec, &datagram(ids[1], 0, 1, FOUND)).0, "Stray");
        assert_eq!([3, 4].map(|token| ask(&mut codec, token, false)), ids);
    }
}
