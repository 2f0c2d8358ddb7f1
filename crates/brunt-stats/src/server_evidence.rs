//! What the checks of the servers' own account look at, gathered from their records and our counts: brunt's counts beside the server's
//! counters, kind by kind, and the state of the cache.
//!
//! Not a judgement: that is [`crate::status`]'s. Invariant: what only the server can know of our requests widens the range on our side, so
//! that a difference is one whatever became of them.

use crate::request_counts::{CountEntry, OpCounts};
use crate::run_record::RunRecord;
use crate::server_stats::{CounterReset, Growth, ServerRecord, ServerSpan, ServerStat};
use crate::window::RunTimes;
use brunt_plan::op::OpKind;
use brunt_plan::outcome::ReplyKind;
use brunt_plan::plan::{Plan, Protocol};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Differences of counts that a sentence has; the rest is in the JSON.
const DIFFERENCES_TOLD: usize = 3;

/// What the servers said of themselves, for the checks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerEvidence {
    /// Our counts and the servers'; none where a server did not tell its own from beginning to end.
    pub comparisons: Vec<StatComparison>,
    /// Servers whose counters began anew.
    pub counter_resets: Vec<(String, CounterReset)>,
    /// Two names of one server.
    pub same: Option<(String, String)>,
    /// The state of the cache; `None` where a server does not tell it.
    pub cache: Option<CacheEvidence>,
}

impl ServerEvidence {
    /// What the servers said, beside what we did.
    pub(crate) fn of(record: &RunRecord, window: &RunTimes) -> Self {
        let RunRecord { plan, run, .. } = record;
        let records = &run.server_records;
        let span = run.servers_in(window);
        // An earlier run stored the data sets, and had its load after that.
        let is_earlier = record.preload.is_some_and(|preload| preload.is_earlier);
        let cache = span.map(|window_span| CacheEvidence {
            window: window_span,
            preload: kept_of_preload(plan, is_earlier, records),
            growth: Growth::of_stocks(records, &(window.measure_ns..window.end_ns)),
        });
        let mut evidence = Self { cache, ..Self::default() };
        if records.is_empty() || records.iter().any(|record| !record.is_complete) {
            return evidence;
        }
        let names = plan.polled_server_names();
        let name =
            |index: usize| names.get(index).cloned().flatten().unwrap_or_else(|| "the server".to_owned());
        let resets = records.iter().enumerate();
        let resets = resets.filter_map(|(index, record)| Some((name(index), record.counter_reset()?)));
        evidence.counter_resets = resets.collect();
        evidence.same = same(records).map(|(one, other)| (name(one), name(other)));
        if evidence.counter_resets.is_empty() {
            let request_counts: Vec<CountEntry> = run.intervals.request_counts.entries().collect();
            evidence.comparisons = agreement(plan, &request_counts, records);
            // Those that replicas of changed keys may never have been sent.
            let missed = run.counts.replicas_missed;
            evidence.comparisons.iter_mut().for_each(|one| one.least = one.least.saturating_sub(missed));
        }
        evidence
    }

    /// What the servers counted fewer of than we have answers of, as a sentence, with the largest difference.
    pub(crate) fn fewer_than_ours(&self) -> Option<(String, u64)> {
        let (differences, most) = self.differences(false)?;
        Some((format!("a server did not count what we had answers of: {differences}"), most))
    }

    /// What they counted more of than we sent, as a sentence: others use them.
    pub(crate) fn more_than_ours(&self) -> Option<String> {
        let (differences, _) = self.differences(true)?;
        Some(format!("others use the server, too: {differences}"))
    }

    /// The largest differences of one sign; the rest is in the JSON.
    fn differences(&self, is_more: bool) -> Option<(String, u64)> {
        let is_so = |one: &&StatComparison| one.difference() != 0 && (one.difference() > 0) == is_more;
        let mut wrong: Vec<&StatComparison> = self.comparisons.iter().filter(is_so).collect();
        wrong.sort_by_key(|one| std::cmp::Reverse(one.difference().unsigned_abs()));
        let most = wrong.first()?.difference().unsigned_abs();
        let mut texts: Vec<String> = wrong.iter().take(DIFFERENCES_TOLD).map(|one| difference(one)).collect();
        if let Some(more @ 1..) = wrong.len().checked_sub(DIFFERENCES_TOLD) {
            texts.push(format!("{more} more"));
        }
        Some((texts.join(", "), most))
    }
}

/// The state of the cache, all servers together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CacheEvidence {
    /// What went on in the measured window.
    pub window: ServerSpan,
    /// Keys that preload stored and that nothing but an eviction or another client could have removed by the end of the
    /// preload, and how many items there were then.
    pub preload: Option<(u64, u64)>,
    /// How the number of items and their bytes went through the window.
    pub growth: Vec<Growth>,
}

fn difference(one: &StatComparison) -> String {
    let StatComparison { statistic, least, most, counted } = one;
    let ours = if least == most { most.to_string() } else { format!("{least} to {most}") };
    format!("{} is {counted} and ours {ours}", statistic.name())
}

/// Two places in the plan that are one server.
fn same(records: &[ServerRecord]) -> Option<(usize, usize)> {
    (1..records.len()).find_map(|index| {
        let held = records[..index].iter().position(|record| record.is_same_server(&records[index]))?;
        Some((held, index))
    })
}

/// Keys that preload must have left at least, and the items that there were when it was over. Nothing is known where
/// keys expire by themselves, or where the load of an earlier run has deleted some. Data sets may share keys, so only
/// the largest counts.
pub(crate) fn kept_of_preload(plan: &Plan, is_earlier: bool, records: &[ServerRecord]) -> Option<(u64, u64)> {
    let sets = plan.data_sets();
    let deletes = plan.classes.iter().any(|class| class.mix.contains(OpKind::Delete));
    if !plan.preload || (is_earlier && deletes) || sets.iter().any(|set| set.ttl_s > 0) {
        return None;
    }
    let stored = sets
        .iter()
        .map(|set| set.ids_preloaded().saturating_mul(set.copies * u64::from(set.replicas)))
        .max()?;
    let present = |record: &ServerRecord| record.prepared.as_ref()?.items();
    Some((stored, records.iter().map(present).sum::<Option<u64>>()?))
}

/// One counter of the servers beside brunt's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StatComparison {
    /// Its name.
    #[schemars(with = "String")]
    pub statistic: ServerStat,
    /// What brunt counted at the least.
    pub least: u64,
    /// At the most.
    pub most: u64,
    /// What the servers counted.
    pub counted: u64,
}

impl StatComparison {
    /// How many more the servers counted than we can have done; negative, how many fewer than we have done at least.
    pub fn difference(&self) -> i64 {
        if self.counted > self.most {
            (self.counted - self.most) as i64
        } else {
            -(self.least.saturating_sub(self.counted) as i64)
        }
    }
}

/// Every statistic that all servers give and whose counters went on from the first snapshot to the last.
///
/// memcached counts a store, of whatever kind, once it has taken in the value, stored or not; a retrieval by its keys; a change that found its key apart from one that did not, but for a touch in
/// meta commands (`mg` with `T`), which is a miss of a retrieval where it finds none. What became of a request that was
/// lost, timed out, ended in an error or asked for no reply is known to the server alone: our side of each comparison
/// is a range, whose ends meet where every request has its answer.
///
/// Redis counts calls of each command, carried out with an error or not, and keys of commands that read. What it refuses before
/// it carries it out (`MOVED`, `OOM`, `NOPERM`) it does not count as a call. A user's own commands may call anything: what
/// they are called by is not compared, nor are keys, and nothing where they are scripts.
pub fn agreement(
    plan: &Plan,
    request_counts: &[CountEntry],
    records: &[ServerRecord],
) -> Vec<StatComparison> {
    // What such a server counts of the one and of the other is not known.
    if plan.has_server_with_two_protocols() {
        return Vec::new();
    }
    let families = [false, true].map(|is_resp| ServerFamily::of(plan, request_counts, records, is_resp));
    let comparison = |statistic: &ServerStat| {
        families.iter().find_map(|ServerFamily { ours, records }| {
            let (least, most) = ours.range(*statistic)?;
            let counted = counted(records, *statistic)?;
            Some(StatComparison { statistic: *statistic, least, most, counted })
        })
    };
    ServerStat::ALL.iter().filter_map(comparison).collect()
}

/// The classes of a plan that speak as memcached's clients do, or as Redis's, and the servers that they talk to.
struct ServerFamily<'a> {
    ours: ClientCounts<'a>,
    records: Vec<&'a ServerRecord>,
}

impl<'a> ServerFamily<'a> {
    fn of(
        plan: &'a Plan,
        request_counts: &'a [CountEntry],
        records: &'a [ServerRecord],
        is_resp: bool,
    ) -> Self {
        let protocol = |entry: &&CountEntry| plan.classes[usize::from(entry.class)].protocol;
        let request_counts =
            request_counts.iter().filter(|entry| protocol(entry).is_resp() == is_resp).collect();
        let (servers, polled_servers) = (&plan.servers, plan.polled_servers());
        let is_its = |index: usize| {
            let server = polled_servers.get(index).map(|server| &servers[*server]);
            server.unwrap_or(&servers[0]).protocol.is_resp() == is_resp
        };
        let records =
            records.iter().enumerate().filter(|(index, _)| is_its(*index)).map(|(_, record)| record);
        Self { ours: ClientCounts { plan, request_counts, is_resp }, records: records.collect() }
    }
}

/// What all servers counted from the first snapshot to the last; `None` where one of them does not say.
fn counted(records: &[&ServerRecord], statistic: ServerStat) -> Option<u64> {
    // No server was asked for its statistics.
    records.first()?;
    let of = |record: &&ServerRecord| {
        let (first, last) = (record.snapshots().first()?, record.snapshots().last()?);
        last.get(statistic)?.checked_sub(first.get(statistic)?)
    };
    records.iter().map(of).sum()
}

/// The stores, as the server has them.
const STORES: [OpKind; 6] =
    [OpKind::Set, OpKind::Add, OpKind::Replace, OpKind::Append, OpKind::Prepend, OpKind::Cas];

/// Two ranges together.
fn sum(one: (u64, u64), other: (u64, u64)) -> (u64, u64) {
    (one.0 + other.0, one.1 + other.1)
}

/// Which answers to a change a statistic counts.
#[derive(Clone, Copy)]
enum CountedReplies {
    Anything,
    This(ReplyKind),
}

impl CountedReplies {
    /// How many the replicas gave together, at least and at most, where each change went to `replicas` of them. Our counts have one of them for
    /// each change: a refusal where there was any.
    fn on_replicas(self, counts: &OpCounts, replicas: u64) -> (u64, u64) {
        let completed = counts.requests.completed();
        match self {
            Self::Anything => (completed * replicas, completed * replicas),
            Self::This(reply @ (ReplyKind::NotFound | ReplyKind::NotStored | ReplyKind::Exists)) => {
                let refused = counts.requests.reply(reply);
                (refused, refused * replicas)
            }
            Self::This(reply) => {
                let done = counts.requests.reply(reply);
                (done * replicas, done * replicas + (completed - done) * (replicas - 1))
            }
        }
    }
}

struct ClientCounts<'a> {
    plan: &'a Plan,
    request_counts: Vec<&'a CountEntry>,
    is_resp: bool,
}

impl ClientCounts<'_> {
    /// The least and the most; `None` for a statistic that does not count our requests.
    fn range(&self, statistic: ServerStat) -> Option<(u64, u64)> {
        if self.is_resp { self.of_redis(statistic) } else { self.of_memcached(statistic) }
    }

    fn of_redis(&self, statistic: ServerStat) -> Option<(u64, u64)> {
        let names: Vec<String> =
            self.plan.commands.iter().map(|command| name_of(&command.template)).collect();
        let is_script = |name: &String| name.starts_with("eval") || name.starts_with("fcall");
        let counts_keys = matches!(statistic, ServerStat::KeyspaceHits | ServerStat::KeyspaceMisses);
        let own = statistic.name().strip_prefix("cmdstat_");
        let is_theirs = |name: &String| counts_keys || own == Some(name.as_str()) || is_script(name);
        if names.iter().any(is_theirs) {
            return None;
        }
        // Without a time to live a touch is a TOUCH, which reads, with one an EXPIRE.
        let expires = |entry: &CountEntry| self.plan.classes[usize::from(entry.class)].ttl_s > 0;
        let touched = |with_ttl: bool, said: CountedReplies| {
            self.changes_of(|entry| entry.op.kind() == OpKind::Touch && expires(entry) == with_ttl, said)
        };
        let calls = |kinds: &[OpKind]| Some(self.changes(kinds, CountedReplies::Anything));
        match statistic {
            ServerStat::KeyspaceHits => Some(sum(
                self.keys(|counts| counts.keys.hit),
                touched(false, CountedReplies::This(ReplyKind::Touched)),
            )),
            ServerStat::KeyspaceMisses => Some(sum(
                self.keys(|counts| counts.keys.miss),
                touched(false, CountedReplies::This(ReplyKind::NotFound)),
            )),
            ServerStat::CallsGet => calls(&[OpKind::Get]),
            ServerStat::CallsMget => Some(self.multi_gets()),
            ServerStat::CallsSet => calls(&[OpKind::Set, OpKind::Add, OpKind::Replace]),
            ServerStat::CallsAppend => calls(&[OpKind::Append]),
            ServerStat::CallsIncr => calls(&[OpKind::Incr]),
            ServerStat::CallsDecr => calls(&[OpKind::Decr]),
            ServerStat::CallsDel => calls(&[OpKind::Delete]),
            ServerStat::CallsTouch => Some(touched(false, CountedReplies::Anything)),
            ServerStat::CallsExpire => Some(touched(true, CountedReplies::Anything)),
            _ => None,
        }
    }

    fn of_memcached(&self, statistic: ServerStat) -> Option<(u64, u64)> {
        // A command of the user's may be counted as any of these.
        if self.request_counts.iter().any(|entry| entry.op.kind() == OpKind::Raw) {
            return None;
        }
        let replied =
            |kind: OpKind, reply: ReplyKind| Some(self.changes(&[kind], CountedReplies::This(reply)));
        let is_meta = |entry: &CountEntry| {
            let class = &self.plan.classes[usize::from(entry.class)];
            class.protocol == Protocol::MemcachedMeta
        };
        let touches = |of_meta: bool, said: CountedReplies| {
            self.changes_of(|entry| entry.op.kind() == OpKind::Touch && is_meta(entry) == of_meta, said)
        };
        let as_get = touches(true, CountedReplies::This(ReplyKind::NotFound));
        match statistic {
            ServerStat::CmdGet => Some(sum(self.keys(|counts| counts.keys.hit + counts.keys.miss), as_get)),
            ServerStat::GetHits => Some(self.keys(|counts| counts.keys.hit)),
            ServerStat::GetMisses => Some(sum(self.keys(|counts| counts.keys.miss), as_get)),
            ServerStat::CmdSet => Some(self.changes(&STORES, CountedReplies::Anything)),
            ServerStat::CasHits => replied(OpKind::Cas, ReplyKind::Stored),
            ServerStat::CasBadval => replied(OpKind::Cas, ReplyKind::Exists),
            ServerStat::CasMisses => replied(OpKind::Cas, ReplyKind::NotFound),
            ServerStat::IncrHits => replied(OpKind::Incr, ReplyKind::Number),
            ServerStat::IncrMisses => replied(OpKind::Incr, ReplyKind::NotFound),
            ServerStat::DecrHits => replied(OpKind::Decr, ReplyKind::Number),
            ServerStat::DecrMisses => replied(OpKind::Decr, ReplyKind::NotFound),
            ServerStat::DeleteHits => replied(OpKind::Delete, ReplyKind::Deleted),
            ServerStat::DeleteMisses => replied(OpKind::Delete, ReplyKind::NotFound),
            ServerStat::CmdTouch => Some(sum(
                touches(false, CountedReplies::Anything),
                touches(true, CountedReplies::This(ReplyKind::Touched)),
            )),
            ServerStat::TouchHits => replied(OpKind::Touch, ReplyKind::Touched),
            ServerStat::TouchMisses => Some(touches(false, CountedReplies::This(ReplyKind::NotFound))),
            _ => None,
        }
    }

    /// Changes whose answer says that the server counted them, and those that may have been counted besides.
    fn changes(&self, kinds: &[OpKind], said: CountedReplies) -> (u64, u64) {
        self.changes_of(|entry| kinds.contains(&entry.op.kind()), said)
    }

    fn changes_of(&self, is_meant: impl Fn(&CountEntry) -> bool, said: CountedReplies) -> (u64, u64) {
        let (mut least, mut most) = (0, 0);
        for CountEntry { class, counts, .. } in self.request_counts.iter().filter(|entry| is_meant(entry)) {
            let requests = &counts.requests;
            let replicas = u64::from(self.plan.classes[usize::from(*class)].replicas);
            let (fewest, highest) = said.on_replicas(counts, replicas);
            // Of a change that was never sent to one replica others may have had their part.
            let in_parts = if replicas > 1 { requests.unsent } else { 0 };
            let open = requests.sent - requests.completed() + in_parts;
            least += fewest;
            most += highest + open * replicas;
        }
        (least, most)
    }

    /// Bounds of the number of multi-get commands; a multi-get that was split counts as several.
    fn multi_gets(&self) -> (u64, u64) {
        let (mut least, mut most) = (0, 0);
        for CountEntry { class, counts, .. } in
            self.request_counts.iter().filter(|entry| entry.op.kind() == OpKind::Mget)
        {
            let requests = &counts.requests;
            let parts_max = u64::from(self.plan.classes[usize::from(*class)].multiget);
            let in_parts = if self.plan.server_count() > 1 { requests.unsent } else { 0 };
            let open = requests.sent - requests.completed();
            // How many parts those have that were answered is known only where all were, and where none of them was sent on:
            // what a node of a cluster sends elsewhere it counts as rejected, and we as a request on the wire.
            let is_known = open + in_parts == 0 && !self.plan.is_cluster;
            least += if is_known { requests.wire_requests } else { requests.completed() };
            most += requests.wire_requests + (requests.in_flight + in_parts) * parts_max;
        }
        (least, most)
    }

    /// Bounds of the number of keys in retrievals.
    fn keys(&self, certain: impl Fn(&OpCounts) -> u64) -> (u64, u64) {
        let (mut least, mut open) = (0, 0);
        for entry in self.request_counts.iter().filter(|entry| entry.op.is_retrieval()) {
            let CountEntry { class, op, counts, .. } = entry;
            let class = &self.plan.classes[usize::from(*class)];
            let keys_max = if op.kind() == OpKind::Mget { u64::from(class.multiget) } else { 1 };
            // A multi-get of which one server never got its part is unsent, though others may have theirs.
            let in_parts = if self.plan.server_count() > 1 { counts.requests.unsent } else { 0 };
            least += certain(counts);
            open += counts.keys.failed + (counts.requests.in_flight + in_parts) * keys_max;
        }
        (least, least + open)
    }
}

/// The command that a template sends, as Redis's statistics call it.
fn name_of(template: &str) -> String {
    template.split_whitespace().next().unwrap_or_default().trim_matches(['"', '\'']).to_lowercase()
}
