//! memcached's datagrams: requests and replies of the text protocols with a header of eight bytes, and what a script does to
//! them on their way.
//!
//! No socket. The source is the part on UDP of memcached's `doc/protocol.txt`; where it leaves a question, memcached 1.6.18
//! was asked. A request is one datagram with an id of the client's choice, and every datagram of its reply bears that id. A
//! reply is one train of numbered datagrams or, as memcached has it since 1.6, one for each value and line of it.
//!
//! Invariant: numbers of faults count datagrams of replies in the order of their replies, over all clients.

use crate::faults::Every;
use crate::stats::Counters;
use std::ops::Range;
use std::str::FromStr;

/// Bytes in front of every datagram.
pub(crate) const HEADER_BYTES: usize = 8;
/// The longest datagram. All of a train but the last are as long.
const DATAGRAM_BYTES_MAX: usize = 1400;
/// The most that a datagram carries of a reply.
const PAYLOAD_BYTES_MAX: usize = DATAGRAM_BYTES_MAX - HEADER_BYTES;

/// What memcached says to a request of several datagrams.
pub(crate) const SEVERAL_DATAGRAMS: &[u8] = b"SERVER_ERROR multi-packet request not supported\r\n";

brunt_plan::named! {
    /// Of what a train of datagrams consists.
    #[derive(Default)]
    pub enum Division {
        /// All of a reply.
        #[default]
        Reply = "reply",
        /// One value or line of it, as memcached since 1.6.
        Key = "key",
    }
}

impl FromStr for Division {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::from_name(text)
            .ok_or_else(|| format!("'{text}' is no division of replies: expected reply or key"))
    }
}

/// What happens to datagrams of replies on their way; nothing by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatagramFaults {
    /// Every N-th is lost.
    pub drop_every: Option<Every>,
    /// Every N-th arrives twice, unless it is lost.
    pub duplicate_every: Option<Every>,
    /// Of those that another one of the same reply follows, every N-th changes places with it. (Replies to several requests
    /// keep their order, as they leave one queue: one that is held for the next might wait for ever.)
    pub swap_every: Option<Every>,
}

/// Where the trains of a reply end, as its protocol has it. Nothing is noted unless each value is to have its own.
#[derive(Debug, Default)]
pub(crate) struct Trains {
    is_noted: bool,
    /// Where the present train begins.
    begin: usize,
    ends: Vec<usize>,
}

impl Trains {
    /// Begins with a reply that will be written from here on.
    pub(crate) fn begin(&mut self, at: usize, division: Division) {
        self.ends.clear();
        (self.begin, self.is_noted) = (at, division == Division::Key);
    }

    /// No reply is being written that goes out in datagrams.
    pub(crate) fn end(&mut self) {
        self.is_noted = false;
    }

    /// A train ends here, even if there is nothing in it.
    pub(crate) fn cut(&mut self, at: usize) {
        if self.is_noted {
            self.begin = at;
            self.ends.push(at);
        }
    }

    /// Ends the train before this byte, unless it is empty.
    pub(crate) fn end_train(&mut self, at: usize) {
        if at > self.begin {
            self.cut(at);
        }
    }
}

/// One datagram on its way: its header, and where its payload is.
type Datagram = ([u8; HEADER_BYTES], Range<usize>);

/// What makes datagrams of replies.
#[derive(Debug)]
pub(crate) struct Framer {
    faults: DatagramFaults,
    /// Datagrams so far that a script applied to, and those among them that another one followed.
    number: u64,
    followed_number: u64,
}

impl Framer {
    pub(crate) fn new(faults: DatagramFaults) -> Self {
        Self { faults, number: 0, followed_number: 0 }
    }

    /// The datagrams of the reply that lies at `reply`, as they arrive at the client: with their faults, if the script has
    /// begun.
    pub(crate) fn frame(
        &mut self,
        request_id: [u8; 2],
        reply: Range<usize>,
        trains: &Trains,
        is_scripted: bool,
        counters: &mut Counters,
    ) -> Vec<Datagram> {
        let mut datagrams = trains_of(request_id, reply, &trains.ends);
        if !is_scripted {
            return datagrams;
        }
        let mut at = 0;
        while at + 1 < datagrams.len() {
            self.followed_number += 1;
            let is_swapped = hits(self.faults.swap_every, self.followed_number);
            if is_swapped {
                datagrams.swap(at, at + 1);
                counters.datagrams_swapped += 1;
            }
            at += 1 + usize::from(is_swapped);
        }
        let mut arriving = Vec::with_capacity(datagrams.len());
        for datagram in datagrams {
            self.number += 1;
            if hits(self.faults.drop_every, self.number) {
                counters.datagrams_dropped += 1;
                continue;
            }
            if hits(self.faults.duplicate_every, self.number) {
                counters.datagrams_duplicated += 1;
                arriving.push(datagram.clone());
            }
            arriving.push(datagram);
        }
        arriving
    }
}

/// Is the datagram of this number, from 1, one of them?
fn hits(every: Option<Every>, number: u64) -> bool {
    every.is_some_and(|every| every.hits(number - 1))
}

/// The trains of a reply in order: up to each of these ends, and up to its own.
fn trains_of(request_id: [u8; 2], reply: Range<usize>, ends: &[usize]) -> Vec<Datagram> {
    let mut datagrams = Vec::new();
    let mut from = reply.start;
    for &to in ends.iter().chain([&reply.end]) {
        let is_over = from == reply.end;
        let total = (to - from).div_ceil(PAYLOAD_BYTES_MAX);
        if total == 0 && !is_over {
            datagrams.push((header(request_id, 0, 0), from..from));
        }
        for sequence in 0..total {
            let payload = from + sequence * PAYLOAD_BYTES_MAX;
            datagrams
                .push((header(request_id, sequence, total), payload..to.min(payload + PAYLOAD_BYTES_MAX)));
        }
        from = to;
    }
    datagrams
}

/// Numbers in network order; the last two bytes are reserved. Trains above 65 535 datagrams (91 MB) wrap, as the field does.
fn header(request_id: [u8; 2], sequence: usize, total: usize) -> [u8; HEADER_BYTES] {
    let ([s0, s1], [t0, t1]) = ((sequence as u16).to_be_bytes(), (total as u16).to_be_bytes());
    [request_id[0], request_id[1], s0, s1, t0, t1, 0, 0]
}

/// The id of a request, how many datagrams it has, and what it says; `None` if it is too short to have a header.
pub(crate) fn request(datagram: &[u8]) -> Option<([u8; 2], u16, &[u8])> {
    let (&[i0, i1, _, _, t0, t1, _, _], payload) = datagram.split_first_chunk::<HEADER_BYTES>()?;
    Some(([i0, i1], u16::from_be_bytes([t0, t1]), payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sequences of the datagrams that arrive, for replies with these numbers of datagrams.
    fn arriving(faults: DatagramFaults, replies: &[usize]) -> (Vec<Vec<u8>>, [u64; 3]) {
        let (mut framer, mut counters) = (Framer::new(faults), Counters::default());
        let mut arriving = Vec::new();
        for &datagrams in replies {
            let reply = 10..10 + datagrams * PAYLOAD_BYTES_MAX;
            let framed = framer.frame([1, 2], reply, &Trains::default(), true, &mut counters);
            assert!(framed.iter().all(|(header, _)| usize::from(header[5]) == datagrams));
            arriving.push(framed.iter().map(|(header, _)| header[3]).collect());
        }
        (arriving, [counters.datagrams_dropped, counters.datagrams_duplicated, counters.datagrams_swapped])
    }

    #[test]
    fn faults_by_hand() {
        let every = Every::new;
        let none = DatagramFaults::default();
        assert_eq!(arriving(none, &[1, 3]), (vec![vec![0], vec![0, 1, 2]], [0, 0, 0]));
        let lossy = DatagramFaults { drop_every: every(2), ..none };
        assert_eq!(arriving(lossy, &[1, 3, 1]), (vec![vec![0], vec![1], vec![0]], [2, 0, 0]));
        let double = DatagramFaults { duplicate_every: every(3), drop_every: every(2), ..none };
        assert_eq!(arriving(double, &[1, 5]), (vec![vec![0], vec![1, 1, 3]], [3, 1, 0]));
        // Of five datagrams of a reply four are followed; the second of them changes places with the third.
        let swapped = DatagramFaults { swap_every: every(2), ..none };
        assert_eq!(arriving(swapped, &[1, 5]), (vec![vec![0], vec![0, 2, 1, 3, 4]], [0, 0, 1]));
    }

    #[test]
    fn trains_end_where_they_are_cut() {
        let mut trains = Trains::default();
        trains.begin(10, Division::Key);
        trains.cut(10);
        trains.end_train(10);
        trains.end_train(14);
        trains.end_train(14);
        let id = [7, 7];
        let expected = vec![
            (header(id, 0, 0), 10..10),
            (header(id, 0, 1), 10..14),
            (header(id, 0, 2), 14..1406),
            (header(id, 1, 2), 1406..1500),
        ];
        assert_eq!(trains_of(id, 10..1500, &trains.ends), expected);
        trains.begin(10, Division::Reply);
        trains.cut(12);
        assert_eq!(trains_of(id, 10..20, &trains.ends), [(header(id, 0, 1), 10..20)]);
    }

    #[test]
    fn texts() {
        for division in [Division::Reply, Division::Key] {
            assert_eq!(division.name().parse(), Ok(division));
        }
        assert!("keys".parse::<Division>().unwrap_err().contains("reply or key"));
    }
}
