//! Which requests the records of a trace become: whose they are, when they are due, and what changes on the way.
//!
//! Not the file, and not the sending. In open loop every request has its time from here, by the rate of the class or by the trace, because
//! sessions get as many records as their keys have; in closed loop none has. Records of a replay are held until those of their second are known, because whole seconds say how many
//! requests are due, not when. Invariants: times never fall; all requests of a key have one taker and the order of the file; every host
//! that reads the same file makes the same requests; whatever a rule changes or leaves out is counted, request by request.

use crate::arrivals::Arrivals;
use crate::rng::{Draw, Purpose, Rng};
use crate::size::{SizeOf, Sizes};
use crate::trace::{KEY_LEN_MAX, Record, kind_in_mix};
use crate::trace_decoder::LineError;
use brunt_plan::arrival::Arrival;
use brunt_plan::mix::Mix;
use brunt_plan::op::{ClassId, OpKind};
use brunt_plan::plan::{Class, Load, OnMiss, Replay, Trace, TraceOrder, TraceRepeat};
use brunt_plan::recorded_request::RecordedRequest;
use brunt_plan::shard::{Portion, StreamPart};
use brunt_plan::trace_record::TraceRecord;
use brunt_plan::units::Rate;
use rapidhash::fast::GlobalState;
use rapidhash::v3::{RapidSecrets, rapidhash_v3_nano_inline};
use std::collections::HashSet;
use std::ops::Range;

const SECOND_NS: u64 = 1_000_000_000;
/// Records, bytes of keys and requests of a second that are held at most: 200 MB. A second with more is spread in parts.
const HELD_MAX: usize = 1 << 20;
const KEY_BYTES_MAX: usize = 1 << 26;
const REQUESTS_MAX: u64 = 1 << 23;
/// Keys whose last size and time to live are remembered, by their hash; a power of two.
const VALUES: usize = 1 << 18;
/// memcached takes a longer time to live for a Unix time.
const TTL_MAX_S: u64 = 30 * 24 * 3600;

/// What a replay needs to know of its run.
#[derive(Clone, Copy, Debug)]
pub struct ReplayRun {
    /// Number of the class.
    pub class_id: ClassId,
    /// The run's seed.
    pub seed: u64,
    /// That of the data.
    pub data_seed: u64,
    /// How many requests are due after the warm-up, at most.
    pub requests: Option<u64>,
    /// How long the warm-up is.
    pub warmup_ns: u64,
    /// How exact the times of the records are.
    pub unit_ns: u64,
    /// The Unix time at the start, where a long time to live is sent as a date.
    pub unix_s: Option<u64>,
    /// A retrieval without a length missed; other layouts tell no misses.
    pub tells_misses: bool,
}

/// Takes a request: the number of its taker, and what is sent.
pub type Hand<'a> = dyn FnMut(u32, &Record<'_>) + 'a;

/// A record of the second that is being read.
#[derive(Clone, Debug)]
struct HeldRecord {
    kind: OpKind,
    key: Range<usize>,
    hash: u64,
    value_len: Option<u64>,
    ttl_s: u32,
    repeats: u32,
    at_ns: u64,
}

/// What was last seen of the value of a key.
#[derive(Clone, Copy, Debug, Default)]
struct LastValue {
    hash: u64,
    len: u32,
    /// Of the last store, if one was seen.
    ttl_s: Option<u32>,
}

/// A replay of a class's trace.
#[derive(Clone, Debug)]
struct Pace {
    replay: Replay,
    run: ReplayRun,
    is_poisson: bool,
    fills: bool,
    held: Vec<HeldRecord>,
    held_requests: u64,
    keys: Vec<u8>,
    /// The latest time of a record so far, and the one that rounds of the file count from.
    latest_ns: u64,
    round_ns: u64,
    round: u64,
    values: Vec<LastValue>,
    /// The keys so far, by their hash, in a preload: about 10 bytes of each.
    seen: HashSet<u64, GlobalState>,
    /// Reused for each second.
    fractions: Vec<u64>,
    missed: Vec<u64>,
}

/// Makes requests of records.
#[derive(Clone, Debug)]
pub struct TraceSchedule {
    mix: Mix,
    prefix_len: usize,
    order: TraceOrder,
    takers: u32,
    ttl_s: u32,
    /// Of an open loop that has a rate.
    arrivals: Option<Box<Arrivals>>,
    pace: Option<Box<Pace>>,
    run: ReplayRun,
    /// Of values whose length no record tells, unless it is replayed.
    value_sizes: Sizes,
    /// When the last request is due.
    due_ns: u64,
    key: Vec<u8>,
    /// What became of all requests. Who reads the file counts its lines.
    pub record: TraceRecord,
    left: u64,
    deals: RapidSecrets,
    samples: RapidSecrets,
}

impl TraceSchedule {
    /// The schedule of a class that has this trace, for so many takers on all hosts.
    pub fn new(class: &Class, trace: &Trace, takers: u32, run: ReplayRun) -> Self {
        let pace = trace.replay.as_ref().map(|replay| {
            let arrival = if let Load::Open { arrival, .. } = &class.load { Some(arrival) } else { None };
            let fills = class.on_miss == OnMiss::Set;
            Box::new(Pace {
                replay: replay.clone(),
                run,
                is_poisson: arrival == Some(&Arrival::Poisson),
                fills,
                held: Vec::new(),
                held_requests: 0,
                keys: Vec::new(),
                latest_ns: 0,
                round_ns: 0,
                round: 0,
                values: vec![LastValue::default(); if fills { VALUES } else { 1 }],
                seen: HashSet::default(),
                fractions: Vec::new(),
                missed: Vec::new(),
            })
        });
        let arrivals = match &class.load {
            Load::Open { rate, arrival } if pace.is_none() => {
                let all = Portion::even(StreamPart { index: 0, of: 1 });
                let arrivals = Arrivals::new(arrival, rate, all, run.seed, run.class_id, run.warmup_ns);
                Some(Box::new(arrivals))
            }
            Load::Open { .. } | Load::Closed { .. } => None,
        };
        Self {
            mix: class.mix.clone(),
            prefix_len: class.keyspace.prefix.len(),
            order: trace.order,
            takers,
            ttl_s: class.ttl_s,
            arrivals: arrivals.filter(|_| class.has_timed_records()),
            left: run.requests.filter(|_| class.has_timed_records()).unwrap_or(u64::MAX),
            pace,
            run,
            value_sizes: Sizes::new(class.keyspace.value_size.clone(), SizeOf::Value, run.data_seed),
            due_ns: 0,
            key: Vec::with_capacity(2 * KEY_LEN_MAX),
            record: TraceRecord::new(&class.name, trace),
            // Not the hash of values, and not of each other: what is in a sample must not have one taker.
            deals: RapidSecrets::seed(1),
            samples: RapidSecrets::seed(2),
        }
    }

    /// Are there as many requests as there are to be?
    pub const fn is_over(&self) -> bool {
        self.left == 0
    }

    /// No request that is still to come is due before this, from the start of the schedule.
    pub const fn reached_ns(&self) -> u64 {
        self.due_ns
    }

    /// Takes a record, and hands over the requests that are known then.
    ///
    /// # Errors
    /// It has a key that is not sent, or no time although it is replayed.
    pub fn take(&mut self, request: &RecordedRequest<'_>, hand: &mut Hand<'_>) -> Result<(), LineError> {
        if self.pace.is_some() {
            return self.hold(request, hand);
        }
        let key = request.key;
        if !self.is_sendable(key) {
            return Err(LineError::Key);
        }
        // Lines are sent as by mutilate: a length that is not told is 0, and no value expires that would not without them.
        let (hash, ttl_ns, default_len) = match self.order {
            TraceOrder::Lines => (None, None, 0),
            TraceOrder::Keys => {
                let hash = rapidhash_v3_nano_inline::<true, false>(key, &self.deals);
                (Some(hash), request.ttl_ns, self.value_sizes.len(hash))
            }
        };
        let kind = kind_in_mix(request.kind, &self.mix);
        let (len, is_cut) = limited(request.value_len.unwrap_or(default_len.into()));
        for _ in 0..request.repeats {
            if let Some(arrivals) = &mut self.arrivals {
                self.due_ns = arrivals.peek_ns();
                arrivals.advance();
            }
            let due_ns = self.due_ns;
            if !count_down(&mut self.left, due_ns >= self.run.warmup_ns) {
                break;
            }
            let ttl_s = ttl_ns.map_or(self.ttl_s, |ttl_ns| self.run.sent_ttl_s(ttl_ns, due_ns));
            let record = Record { ttl_s, due_ns, ..Record::of(kind, key, len) };
            let taker = match hash {
                Some(hash) => part_of(hash, self.takers),
                None => (self.record.records % u64::from(self.takers)) as u32,
            };
            hand(taker, &record);
            self.record.records += 1;
            self.record.raised_ttls += u64::from(ttl_ns.is_some_and(|ttl_ns| ttl_ns < SECOND_NS));
            self.record.substituted += u64::from(kind != request.kind);
            self.record.cut += u64::from(is_cut);
        }
        Ok(())
    }

    /// The file has ended: hands over the requests of its last second. Is it to be read again? Then what follows is a unit of time later.
    pub fn end_round(&mut self, hand: &mut Hand<'_>) -> bool {
        self.hand_over_second(hand);
        // Another round of a file without a request would have none either.
        let Some(pace) = self.pace.as_mut().filter(|_| self.record.records > 0) else { return false };
        pace.round += 1;
        pace.round_ns = pace.latest_ns + pace.run.unit_ns;
        pace.replay.repeat != TraceRepeat::Once && !pace.replay.is_preload
    }

    /// Has a key, as it is behind the prefix, bytes that may be sent?
    fn is_sendable(&self, key: &[u8]) -> bool {
        key.len() + self.prefix_len <= KEY_LEN_MAX && key.iter().all(|byte| *byte > b' ' && *byte != 0x7f)
    }

    /// Adds a record to its second; what was held before is handed over when that is over.
    fn hold(&mut self, request: &RecordedRequest<'_>, hand: &mut Hand<'_>) -> Result<(), LineError> {
        let hash = rapidhash_v3_nano_inline::<true, false>(request.key, &self.samples);
        let Some(pace) = &mut self.pace else { return Ok(()) };
        let time_ns = pace.round_ns.checked_add_signed(request.time_ns.ok_or(LineError::Untimed)?);
        let at_ns = time_ns.unwrap_or(0).max(pace.latest_ns);
        let is_of_next = at_ns / SECOND_NS != pace.latest_ns / SECOND_NS;
        let is_full = pace.held.len() == HELD_MAX
            || pace.keys.len() >= KEY_BYTES_MAX
            || pace.held_requests >= REQUESTS_MAX;
        self.record.clamped_times += u64::from(time_ns.is_none_or(|time_ns| time_ns < at_ns));
        self.record.overfull_seconds += u64::from(is_full && !is_of_next);
        if is_of_next || is_full {
            self.hand_over_second(hand);
        }
        let Some(pace) = &mut self.pace else { return Ok(()) };
        pace.latest_ns = at_ns;
        let mut requests = u64::from(request.repeats) * u64::from(pace.replay.copies);
        if u128::from(hash) * 1_000_000_000 >= u128::from(pace.replay.sample.per_billion) << 64 {
            self.record.sampled_out += requests;
            return Ok(());
        }
        let mut repeats = request.repeats;
        if pace.replay.is_preload {
            let is_found =
                pace.seen.insert(hash) && request.kind.is_retrieval() && request.value_len.is_some();
            repeats = u32::from(is_found);
            let stored = u64::from(repeats) * u64::from(pace.replay.copies);
            self.record.not_stored += requests - stored;
            requests = stored;
            if !is_found {
                return Ok(());
            }
        }
        let kind = match pace.replay.is_all_gets {
            true => OpKind::Get,
            false => kind_in_mix(request.kind, &self.mix),
        };
        let ttl_ns = request.ttl_ns.map(|ttl_ns| pace.sent_ttl_ns(ttl_ns, at_ns));
        self.record.raised_ttls += if ttl_ns.is_some_and(|ttl_ns| ttl_ns < SECOND_NS) { requests } else { 0 };
        let stored_ns = pace.run_ns(at_ns.into(), 1);
        let ttl_s = ttl_ns.map_or(self.ttl_s, |ttl_ns| self.run.sent_ttl_s(ttl_ns, stored_ns));
        self.record.substituted += if kind == request.kind || pace.replay.is_preload { 0 } else { requests };
        pace.held_requests += requests;
        let start = pace.keys.len();
        pace.keys.extend_from_slice(request.key);
        let key = start..pace.keys.len();
        let value_len = request.value_len;
        pace.held.push(HeldRecord { kind, key, hash, value_len, ttl_s, repeats, at_ns });
        Ok(())
    }

    /// Hands over all that is held, which are requests of one second.
    fn hand_over_second(&mut self, hand: &mut Hand<'_>) {
        let Some(mut pace) = self.pace.take() else { return };
        pace.remember_values();
        self.record.replaced_by_fills += pace.drop_replaced();
        let copies = pace.replay.copies;
        let count: u64 = pace.held.iter().map(|record| u64::from(record.repeats) * u64::from(copies)).sum();
        pace.draw_fractions(count);
        let mut nth = 0;
        let held = std::mem::take(&mut pace.held);
        'second: for record in &held {
            let (value_len, is_cut, ttl_s) = pace.value_of(record);
            let kind = record.kind;
            for copy in 0..copies {
                let is_hashed = self.write_key(&pace.keys[record.key.clone()], copy, &pace);
                let taker =
                    part_of(rapidhash_v3_nano_inline::<true, false>(&self.key, &self.deals), self.takers);
                for _ in 0..record.repeats {
                    self.due_ns = self.due_ns.max(pace.time_ns(record, nth, count));
                    nth += 1;
                    let due_ns = self.due_ns;
                    if !count_down(&mut self.left, due_ns >= self.run.warmup_ns) {
                        break 'second;
                    }
                    hand(taker, &Record { kind, key: &self.key, value_len, ttl_s, due_ns });
                    self.record.records += 1;
                    self.record.cut += u64::from(is_cut);
                    self.record.hashed_keys += u64::from(is_hashed);
                    self.record.unsized_retrievals += u64::from(pace.fills && value_len.is_none());
                }
            }
        }
        pace.held = held;
        pace.held.clear();
        pace.held_requests = 0;
        pace.keys.clear();
        self.pace = Some(pace);
    }

    /// Writes the key of a copy of a record as it is sent. Returns whether it had to be hashed.
    fn write_key(&mut self, recorded: &[u8], copy: u32, pace: &Pace) -> bool {
        use std::io::Write;
        self.key.clear();
        self.key.extend_from_slice(recorded);
        // Writing into memory does not fail.
        if pace.round > 0 && pace.replay.repeat == TraceRepeat::NewKeys {
            let _ = write!(self.key, "+{}", pace.round);
        }
        // The first copy, too: its key could be that of another key's copy.
        if pace.replay.copies > 1 {
            let _ = write!(self.key, ".{copy}");
        }
        let is_sendable = self.is_sendable(&self.key);
        if !is_sendable {
            let hash = rapidhash_v3_nano_inline::<true, false>(&self.key, &self.samples);
            self.key.clear();
            let _ = write!(self.key, "~{hash:016x}");
        }
        !is_sendable
    }
}

impl ReplayRun {
    /// The time to live of what is stored at this time of the run, as it is sent.
    fn sent_ttl_s(&self, ttl_ns: u64, at_ns: u64) -> u32 {
        let ttl_s = ttl_ns.div_ceil(SECOND_NS);
        let sent = match self.unix_s {
            Some(unix_s) if ttl_s > TTL_MAX_S => unix_s + at_ns / SECOND_NS + ttl_s,
            _ => ttl_s.max(1),
        };
        u32::try_from(sent).unwrap_or(u32::MAX)
    }
}

impl Pace {
    /// A time of the trace that is a fraction, in nanoseconds of the run: the warm-up may have a speed of its own.
    fn run_ns(&self, numerator: u128, denominator: u128) -> u64 {
        let (warmup_ns, speed) = (self.run.warmup_ns, self.replay.speed);
        let head = self.head_ns() * denominator;
        match self.replay.warmup_speed {
            None => scaled_ns(numerator, denominator, speed),
            Some(of_warmup) if numerator < head => scaled_ns(numerator, denominator, of_warmup),
            Some(_) => warmup_ns.saturating_add(scaled_ns(numerator - head, denominator, speed)),
        }
    }

    /// How much of the trace the warm-up takes, where that has a speed of its own.
    fn head_ns(&self) -> u128 {
        let speed = self.replay.warmup_speed.map_or(0, |speed| speed.micro_per_second);
        u128::from(self.run.warmup_ns) * u128::from(speed) / 1_000_000
    }

    /// How long what is stored at a time of the trace is to live in the run.
    fn sent_ttl_ns(&self, ttl_ns: u64, at_ns: u64) -> u64 {
        match u128::from(at_ns) < self.head_ns() {
            true => self.run_ns(u128::from(at_ns) + u128::from(ttl_ns), 1) - self.run_ns(at_ns.into(), 1),
            false => scaled_ns(ttl_ns.into(), 1, self.replay.speed),
        }
    }

    /// Remembers how long the values of keys are, and live.
    fn remember_values(&mut self) {
        for record in self.held.iter().filter(|_| self.fills) {
            let Some(len) = record.value_len else { continue };
            let last = &mut self.values[record.hash as usize % VALUES];
            let ttl_s = last.ttl_s.filter(|_| last.hash == record.hash && record.kind.is_retrieval());
            let ttl_s = if record.kind.is_retrieval() { ttl_s } else { Some(record.ttl_s) };
            *last = LastValue { hash: record.hash, len: limited(len).0, ttl_s };
        }
    }

    /// Leaves out the sets of this second that followed the misses of it, where misses are filled. Returns of how many requests.
    fn drop_replaced(&mut self) -> u64 {
        if !self.fills || !self.run.tells_misses {
            return 0;
        }
        let is_missed = |record: &&HeldRecord| record.kind.is_retrieval() && record.value_len.is_none();
        self.missed.clear();
        self.missed.extend(self.held.iter().filter(is_missed).map(|record| record.hash));
        self.missed.sort_unstable();
        let (missed, mut replaced) = (&self.missed, 0);
        let copies = u64::from(self.replay.copies);
        self.held.retain(|record| {
            let stays = record.kind != OpKind::Set || missed.binary_search(&record.hash).is_err();
            replaced += if stays { 0 } else { u64::from(record.repeats) * copies };
            stays
        });
        replaced
    }

    /// How long the value is that a record stores, or that is stored where it misses, whether that was cut, and how long it lives.
    fn value_of(&self, record: &HeldRecord) -> (Option<u32>, bool, u32) {
        let last = &self.values[record.hash as usize % self.values.len()];
        let last = Some(last).filter(|last| self.fills && last.hash == record.hash);
        let is_retrieval = record.kind.is_retrieval();
        let ttl_s = last.and_then(|last| last.ttl_s).filter(|_| is_retrieval).unwrap_or(record.ttl_s);
        match record.value_len.map(limited) {
            Some((len, is_cut)) => (Some(len), is_cut, ttl_s),
            None if is_retrieval => (last.map(|last| last.len), false, ttl_s),
            None => (Some(0), false, ttl_s),
        }
    }

    /// Draws where in the second its requests are due, if that is drawn.
    fn draw_fractions(&mut self, count: u64) {
        if !self.is_poisson || self.run.unit_ns < SECOND_NS {
            return;
        }
        // The numbers depend on the second alone, so every host that reads the file draws the same.
        let second = self.held.first().map_or(0, |record| record.at_ns / SECOND_NS);
        let seed = self.run.seed ^ second.rotate_left(32);
        let mut rng = Rng::for_stream(seed, Purpose::SharedArrivals, self.run.class_id, second as u32);
        self.fractions.clear();
        self.fractions.extend((0..count).map(|_| rng.below(SECOND_NS)));
        self.fractions.sort_unstable();
    }

    /// When the nth of the requests of a second is due.
    fn time_ns(&self, record: &HeldRecord, nth: u64, count: u64) -> u64 {
        if self.run.unit_ns < SECOND_NS {
            return self.run_ns(record.at_ns.into(), 1);
        }
        let second_ns = record.at_ns - record.at_ns % SECOND_NS;
        match self.is_poisson {
            true => self.run_ns((second_ns + self.fractions[nth as usize]).into(), 1),
            // In the middle of the nth of so many parts.
            false => {
                let parts = 2 * u128::from(count);
                let numerator =
                    u128::from(second_ns) * parts + u128::from(2 * nth + 1) * u128::from(SECOND_NS);
                self.run_ns(numerator, parts)
            }
        }
    }
}

/// Is a request one of those that are left? It is taken off them if it counts; without a bound there are more than any run takes.
fn count_down(left: &mut u64, counts: bool) -> bool {
    let is_left = *left > 0;
    *left -= u64::from(is_left && counts);
    is_left
}

/// A time of the trace that is a fraction, in nanoseconds at this speed, rounded down.
fn scaled_ns(numerator: u128, denominator: u128, speed: Rate) -> u64 {
    let scaled = numerator.saturating_mul(1_000_000) / (denominator * u128::from(speed.micro_per_second));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// A length as it is sent, and whether it was cut.
fn limited(len: u64) -> (u32, bool) {
    let longest = u64::from(Trace::VALUE_BYTES_MAX);
    (len.min(longest) as u32, len > longest)
}

/// Which of so many equal parts of all hashes this one is in.
fn part_of(hash: u64, parts: u32) -> u32 {
    ((u128::from(hash) * u128::from(parts)) >> 64) as u32
}

#[cfg(test)]
mod tests;
