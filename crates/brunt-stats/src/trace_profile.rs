//! What a trace holds, learnt in one pass: rates, operations, sizes, the keys with their popularity, and what an LRU would have hit.
//!
//! Not the file, and not its unreadable lines. Invariants: counts of requests and keys, sums and simulations are exact, as far as no two keys have the
//! same hash of 64 bits; percentiles are at most 0.1 % too high; beside about 60 bytes for each key, and 16 for each size of a cache, memory does not grow with the
//! trace.

use crate::histogram::Histogram;
use brunt_plan::op::OpKind;
use brunt_plan::quantile::Quantile;
use brunt_plan::recorded_request::RecordedRequest;
use rapidhash::fast::GlobalState;
use rapidhash::v3::{RapidSecrets, rapidhash_v3_nano_inline};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

const SECOND_NS: u64 = 1_000_000_000;
const MILLISECOND_NS: u64 = 1_000_000;

/// What is known of a key.
#[derive(Clone, Copy, Debug, Default)]
struct KeyEntry {
    requests: u64,
    /// As they were told last.
    object_bytes: Option<u64>,
}

/// What requests say, whatever their keys and times.
#[derive(Clone, Debug, Default)]
struct RequestCounts {
    kinds: [u64; OpKind::COUNT],
    without_value: u64,
    stores: u64,
    key_sizes: Histogram,
    value_sizes: Histogram,
    ttls_ms: Histogram,
}

/// Learns what a trace holds.
#[derive(Clone, Debug)]
pub struct TraceProfile {
    counts: RequestCounts,
    times: Times,
    ids: HashMap<u64, u32, GlobalState>,
    keys: Vec<KeyEntry>,
    /// Of each key, if the hottest are to be named, and how many of them.
    texts: Vec<Box<[u8]>>,
    top: usize,
    caches: Vec<Lru>,
    secrets: RapidSecrets,
}

/// What a trace held.
#[derive(Clone, Debug, Serialize)]
pub struct ProfileSummary {
    /// Requests, with their repeats.
    pub requests: u64,
    /// How many of each kind that there is.
    pub operations: BTreeMap<&'static str, u64>,
    /// Retrievals whose record has no value, or none of a known length.
    pub retrievals_without_value: u64,
    /// Requests that store.
    pub stores: u64,
    /// When; `None` where the trace has no times.
    pub rate: Option<RateSummary>,
    /// Lengths of keys, as far as records tell them, by request.
    pub key_bytes: Option<SizeSummary>,
    /// The same of values.
    pub value_bytes: Option<SizeSummary>,
    /// How long values live, of stores that say it.
    pub ttl_ns: Option<SizeSummary>,
    /// Different keys.
    pub keys: u64,
    /// Those that were asked for once.
    pub keys_once: u64,
    /// Keys of whose objects no record has told how long they are.
    pub keys_without_size: u64,
    /// Bytes of all objects, of each as they were told last.
    pub object_bytes: u64,
    /// Of the hottest 1, 10, 100 ... keys.
    pub hottest: Vec<HotKeys>,
    /// `None` where too few keys were asked for often.
    pub zipf: Option<ZipfLaw>,
    /// The hottest keys.
    pub top: Vec<HotKey>,
    /// What caches would have done.
    pub lru: Vec<CacheHits>,
}

/// The hottest keys together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HotKeys {
    /// How many keys.
    pub keys: u64,
    /// Requests for them.
    pub requests: u64,
}

/// A key that was asked for often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HotKey {
    /// Its text; bytes that do not print are escaped.
    pub key: String,
    /// How often.
    pub requests: u64,
}

/// The law by which the hottest keys are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ZipfLaw {
    /// Its exponent.
    pub exponent: f64,
    /// How many of the hottest keys it rests on.
    pub keys: u64,
}

/// What a cache would have done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CacheHits {
    /// Its size.
    pub bytes: u64,
    /// Retrievals that it would have answered.
    pub hits: u64,
    /// The others.
    pub misses: u64,
}

/// Sizes in short; quantiles are at most 0.1 % too high.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names are those of statistics")]
pub struct SizeSummary {
    pub count: u64,
    pub mean: f64,
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    #[serde(rename = "p99.9")]
    pub p999: u64,
    pub max: u64,
}

/// When requests came.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RateSummary {
    /// From the first to the last; of whole seconds to the end of the last.
    pub span_ns: u64,
    /// Requests per second of the span.
    pub mean_per_s: f64,
    /// Requests in the second that has the most.
    pub busiest_second: u64,
    /// Times that are before another one that stands above.
    pub falling_times: u64,
    /// How long each part of the span is but the last, which takes up to half as much more or less.
    pub part_ns: u64,
    /// Requests per second in each part.
    pub parts_per_s: Vec<f64>,
}

impl TraceProfile {
    /// Nothing was learnt yet. Caches of these sizes are simulated, and the texts of so many keys kept.
    pub fn new(cache_bytes: &[u64], top: usize) -> Self {
        Self {
            counts: RequestCounts::default(),
            times: Times { bin_ns: MILLISECOND_NS, is_in_seconds: true, ..Times::default() },
            ids: HashMap::default(),
            keys: Vec::new(),
            texts: Vec::new(),
            top,
            caches: cache_bytes.iter().map(|bytes| Lru::new(*bytes)).collect(),
            secrets: RapidSecrets::seed(0),
        }
    }

    /// Learns a request.
    pub fn add(&mut self, request: &RecordedRequest<'_>) {
        let repeats = u64::from(request.repeats);
        self.counts.add(request, repeats);
        if let Some(time_ns) = request.time_ns {
            self.times.add(time_ns, repeats);
        }
        let id = self.count_key(request, repeats);
        let object_bytes = self.keys[id as usize].object_bytes.unwrap_or(0);
        self.caches.iter_mut().for_each(|cache| cache.ask(id, request.kind, object_bytes, repeats));
    }

    /// Counts a request for its key. Yields the key's number.
    fn count_key(&mut self, request: &RecordedRequest<'_>, repeats: u64) -> u32 {
        let hash = rapidhash_v3_nano_inline::<true, false>(request.key, &self.secrets);
        let new = self.keys.len() as u32;
        let id = *self.ids.entry(hash).or_insert(new);
        if id == new {
            self.keys.push(KeyEntry::default());
            self.texts.extend((self.top > 0).then(|| request.key.into()));
        }
        let entry = &mut self.keys[id as usize];
        entry.requests += repeats;
        // Other kinds that carry a value carry a part of it.
        if request.kind.is_retrieval() || is_store(request.kind) {
            entry.object_bytes = request.object_bytes().or(entry.object_bytes);
        }
        id
    }

    /// What it came to.
    pub fn summary(self) -> ProfileSummary {
        let hot = |(requests, text): (u64, &[u8])| HotKey { key: text.escape_ascii().to_string(), requests };
        let named = self.keys.iter().zip(&self.texts);
        let mut top: Vec<(u64, &[u8])> = named.map(|(entry, text)| (entry.requests, &text[..])).collect();
        top.sort_unstable_by_key(|(requests, text)| (Reverse(*requests), *text));
        let mut counts: Vec<u64> = self.keys.iter().map(|key| key.requests).collect();
        counts.sort_unstable_by_key(|count| Reverse(*count));
        let tens = (0..).map(|power| 10_usize.pow(power)).take_while(|number| *number <= counts.len());
        let sum = |number: usize| counts[..number].iter().sum();
        let sizes = self.keys.iter().filter_map(|key| key.object_bytes);
        let kinds = OpKind::ALL.into_iter().zip(self.counts.kinds).filter(|(_, count)| *count > 0);
        ProfileSummary {
            requests: self.counts.kinds.iter().sum(),
            operations: kinds.map(|(kind, count)| (kind.name(), count)).collect(),
            retrievals_without_value: self.counts.without_value,
            stores: self.counts.stores,
            rate: self.times.summary(),
            key_bytes: SizeSummary::of(&self.counts.key_sizes, 1),
            value_bytes: SizeSummary::of(&self.counts.value_sizes, 1),
            ttl_ns: SizeSummary::of(&self.counts.ttls_ms, MILLISECOND_NS),
            keys: counts.len() as u64,
            keys_once: counts.iter().rev().take_while(|count| **count == 1).count() as u64,
            keys_without_size: (counts.len() - sizes.clone().count()) as u64,
            object_bytes: sizes.fold(0, u64::saturating_add),
            hottest: tens.map(|number| HotKeys { keys: number as u64, requests: sum(number) }).collect(),
            zipf: zipf_law(&counts),
            top: top.into_iter().take(self.top).map(hot).collect(),
            lru: self.caches.iter().map(|cache| cache.counted).collect(),
        }
    }
}

impl RequestCounts {
    fn add(&mut self, request: &RecordedRequest<'_>, repeats: u64) {
        let RecordedRequest { kind, key_len, value_len, ttl_ns, .. } = *request;
        self.kinds[kind as usize] += repeats;
        key_len.into_iter().for_each(|len| self.key_sizes.record_many(u64::from(len), repeats));
        value_len.into_iter().for_each(|len| self.value_sizes.record_many(len, repeats));
        if kind.is_retrieval() && value_len.is_none() {
            self.without_value += repeats;
        }
        if kind.carries_value() {
            self.stores += repeats;
            ttl_ns.into_iter().for_each(|ttl_ns| self.ttls_ms.record_many(ttl_ns / MILLISECOND_NS, repeats));
        }
    }
}

/// Does it leave the whole value there?
const fn is_store(kind: OpKind) -> bool {
    matches!(kind, OpKind::Set | OpKind::Add | OpKind::Replace | OpKind::Cas)
}

/// Keys that were asked for more rarely do not tell the exponent: their order is chance.
const HEAD_REQUESTS_MIN: u64 = 100;
/// Of fewer keys none is told.
const HEAD_KEYS_MIN: usize = 20;
/// More tell it no better.
const HEAD_KEYS_MAX: usize = 100_000;
/// The steepest law that is told.
const EXPONENT_MAX: f64 = 8.0;

/// The exponent under which the counts of the hottest keys, those that were asked for 100 times and more, are likeliest: the one for which the
/// mean logarithm of their rank is the one that they have.
fn zipf_law(counts: &[u64]) -> Option<ZipfLaw> {
    let head = counts.iter().take(HEAD_KEYS_MAX).take_while(|count| **count >= HEAD_REQUESTS_MIN);
    let head: Vec<(f64, f64)> =
        head.enumerate().map(|(rank, count)| (((rank + 1) as f64).ln(), *count as f64)).collect();
    if head.len() < HEAD_KEYS_MIN {
        return None;
    }
    let mean = |weight: &dyn Fn(&(f64, f64)) -> f64| {
        let sum: f64 = head.iter().map(weight).sum();
        head.iter().map(|pair| weight(pair) * pair.0).sum::<f64>() / sum
    };
    let seen = mean(&|(_, count)| *count);
    let (mut low, mut high) = (0.0, EXPONENT_MAX);
    // Each step halves the interval; the last is far below what is printed.
    for _ in 0..32 {
        let middle = (low + high) / 2.0;
        // A steeper law has lower ranks.
        match mean(&|(log_rank, _)| (-middle * log_rank).exp()) > seen {
            true => low = middle,
            false => high = middle,
        }
    }
    Some(ZipfLaw { exponent: (low + high) / 2.0, keys: head.len() as u64 })
}

/// Parts of the span that are told at most.
const PARTS_MAX: usize = 32;
/// Parts that are counted at most.
const BINS_MAX: usize = 4_000;

/// Requests over time.
#[derive(Clone, Debug, Default)]
struct Times {
    bins: Vec<u64>,
    bin_ns: u64,
    last_ns: u64,
    is_in_seconds: bool,
    falling: u64,
    /// Of the second of `last_ns`, and of the one that had the most.
    this_second: u64,
    busiest_second: u64,
}

impl Times {
    fn add(&mut self, time_ns: i64, repeats: u64) {
        let (told_ns, time_ns) = (time_ns, self.last_ns.max(time_ns.max(0) as u64));
        self.falling += u64::from(told_ns < time_ns as i64);
        self.is_in_seconds &= time_ns.is_multiple_of(SECOND_NS);
        if time_ns / SECOND_NS > self.last_ns / SECOND_NS {
            self.this_second = 0;
        }
        self.last_ns = time_ns;
        self.this_second += repeats;
        self.busiest_second = self.busiest_second.max(self.this_second);
        while time_ns / self.bin_ns >= BINS_MAX as u64 {
            self.widen();
        }
        let at = (time_ns / self.bin_ns) as usize;
        if self.bins.len() <= at {
            self.bins.resize(at + 1, 0);
        }
        self.bins[at] += repeats;
    }

    /// Makes the bins longer: 2, 4, 8, 40, 200, 1000 ms, of which a second is a multiple, then twice each time.
    fn widen(&mut self) {
        let factor = if (8 * MILLISECOND_NS..SECOND_NS).contains(&self.bin_ns) { 5 } else { 2 };
        self.bins = self.bins.chunks(factor).map(|bins| bins.iter().sum()).collect();
        self.bin_ns *= factor as u64;
    }

    fn summary(&self) -> Option<RateSummary> {
        let requests: u64 = self.bins.iter().sum();
        if requests == 0 {
            return None;
        }
        let span_ns = self.last_ns + if self.is_in_seconds { SECOND_NS } else { 0 };
        let least = if self.is_in_seconds { SECOND_NS } else { self.bin_ns };
        let least = least.max(self.bin_ns);
        let part_ns = span_ns.div_ceil(PARTS_MAX as u64).div_ceil(least).max(1) * least;
        // What is left at the end belongs to the part before, unless it is half as long.
        let count = ((span_ns + part_ns / 2) / part_ns).max(1) as usize;
        let mut parts = vec![0; count];
        for (bins, index) in self.bins.chunks((part_ns / self.bin_ns) as usize).zip(0..) {
            parts[index.min(count - 1)] += bins.iter().sum::<u64>();
        }
        let len_ns =
            |index: usize| if index + 1 < count { part_ns } else { span_ns - index as u64 * part_ns };
        let parts = parts.into_iter().zip(0..);
        Some(RateSummary {
            span_ns,
            mean_per_s: per_second(requests, span_ns),
            busiest_second: self.busiest_second,
            falling_times: self.falling,
            part_ns,
            parts_per_s: parts.map(|(sum, index)| per_second(sum, len_ns(index))).collect(),
        })
    }
}

fn per_second(requests: u64, ns: u64) -> f64 {
    if ns == 0 { 0.0 } else { requests as f64 * SECOND_NS as f64 / ns as f64 }
}

impl SizeSummary {
    /// In short, in this unit; `None` without any.
    fn of(sizes: &Histogram, unit: u64) -> Option<Self> {
        let quantile = |quantile| Some(sizes.quantile(quantile)?.saturating_mul(unit));
        Some(Self {
            count: sizes.count(),
            mean: sizes.moments().mean()? * unit as f64,
            p50: quantile(Quantile::P50)?,
            p90: quantile(Quantile::P90)?,
            p99: quantile(Quantile::P99)?,
            p999: quantile(Quantile::P999)?,
            max: sizes.max()?.saturating_mul(unit),
        })
    }
}

/// Objects by the time of their last use, with room for so many bytes of them: a ring through all that are in it, from the last used to the
/// first, whose node 0 is no object.
#[derive(Clone, Debug)]
struct Lru {
    counted: CacheHits,
    held: u64,
    nodes: Vec<Node>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    previous: u32,
    next: u32,
    bytes: u64,
}

/// The link of what is not in the ring.
const NOWHERE: u32 = u32::MAX;

impl Lru {
    fn new(capacity: u64) -> Self {
        let counted = CacheHits { bytes: capacity, hits: 0, misses: 0 };
        Self { counted, held: 0, nodes: vec![Node { previous: 0, next: 0, bytes: 0 }] }
    }

    /// What a request does: retrievals count, and fill where they miss; stores fill; deletions empty; others count as a use of what is there.
    fn ask(&mut self, id: u32, kind: OpKind, bytes: u64, repeats: u64) {
        let node = id as usize + 1;
        if self.nodes.len() <= node {
            self.nodes.resize(node + 1, Node { previous: NOWHERE, next: NOWHERE, bytes: 0 });
        }
        let was_held = self.holds(node);
        let old_bytes = self.nodes[node].bytes;
        if was_held {
            self.remove(node);
        }
        let fills = kind.is_retrieval() || matches!(kind, OpKind::Set | OpKind::Add);
        match kind {
            OpKind::Delete => {}
            _ if fills || (was_held && is_store(kind)) => self.insert(node, bytes),
            _ if was_held => self.insert(node, old_bytes),
            _ => {}
        }
        if kind.is_retrieval() {
            let first = u64::from(was_held);
            let further = if self.holds(node) { repeats - 1 } else { 0 };
            self.counted.hits += first + further;
            self.counted.misses += repeats - first - further;
        }
    }

    fn holds(&self, node: usize) -> bool {
        self.nodes[node].next != NOWHERE
    }

    fn remove(&mut self, node: usize) {
        let Node { previous, next, bytes } = self.nodes[node];
        self.nodes[previous as usize].next = next;
        self.nodes[next as usize].previous = previous;
        self.nodes[node].next = NOWHERE;
        self.held -= bytes;
    }

    /// Puts it in front of all others, for which the last ones go. What is larger than the cache is never in it.
    fn insert(&mut self, node: usize, bytes: u64) {
        if bytes > self.counted.bytes {
            return;
        }
        while self.held > self.counted.bytes - bytes {
            self.remove(self.nodes[0].previous as usize);
        }
        let front = self.nodes[0].next;
        self.nodes[node] = Node { previous: 0, next: front, bytes };
        self.nodes[front as usize].previous = node as u32;
        self.nodes[0].next = node as u32;
        self.held += bytes;
    }
}

#[cfg(test)]
mod tests;
