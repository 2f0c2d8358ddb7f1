//! The fast paths: gets of a closed loop, each sent on the connection of its slot, and whole hits of simple gets.
//!
//! Everything else is left to [`super::Traffic::enqueue_due`] (other kinds, unusable connections, full queues) and
//! [`super::receiving`] (incomplete or wrong replies, several keys, operations in parts
//! or with fills). Lookups are made once per read, and equal samples are recorded together. Invariants: an operation queued here is
//! counted as scheduled and picked, on a connection's chain, and its connection is marked to be sent; one
//! that is received here has left its chain, freed its slot and is recorded.

use super::matching::is_requested;
use super::receiving::ReadTimes;
use super::{Traffic, give_back};
use crate::state::connections::Connections;
use crate::state::dispatch::Dispatch;
use crate::state::health::Health;
use crate::state::in_flight::Entry;
use crate::state::lane::{Checking, Lane, Picked};
use crate::state::recording::Recording;
use brunt_plan::op::{ClassId, KeyRef, Op, OpKind};
use brunt_plan::outcome::{Outcome, OutcomeClass, ReplyKind};
use brunt_plan::phase::Phase;
use brunt_plan::plan::MeterKind;
use brunt_proto::{Codec, Found};
use brunt_stats::recorder::RowHandle;
use brunt_stats::sample::{Sample, Times};
use brunt_workload::payload::Payload;
use brunt_workload::session::{DueOp, Next};
use brunt_workload::verify::{Expected, Integrity, Verifier};

/// The outcome of every operation handled here.
const HIT: Outcome = Outcome { class: OutcomeClass::Hit, reply: ReplyKind::Value };

impl<C: Codec> Traffic<C> {
    /// Handles simple hits from `used` on, and advances `used`. Returns what is found behind them and no simple hit, with its
    /// length.
    #[inline]
    pub(super) fn receive_fast_hits<'a>(
        &mut self,
        read: ReadTimes,
        input: &'a [u8],
        used: &mut usize,
    ) -> Option<(usize, Found<'a>)> {
        let Self { dispatch: Dispatch { lanes, routes, deadlines, .. }, connections, in_flight, .. } = self;
        let Self { servers, busy, recording, payload, .. } = self;
        let connection = &mut connections[read.index];
        let route = routes.get_mut(connection.route as usize);
        let lane_index = route.as_ref().map_or(u32::MAX, |route| in_flight.lane_of(route, &connection.chain));
        let health = &mut servers[usize::from(connection.server)];
        // The first reply after a failure ends pauses of other connections, and one of a retiring connection may close it.
        let is_plain = health.answers && !connection.retiring;
        let (Some(route), Some(lane), true) = (route, lanes.get_mut(lane_index as usize), is_plain) else {
            return connection.codec.decode_found(&input[*used..]);
        };
        let is_shared = !route.others.is_empty();
        let is_closed = !lane.session.is_open();
        let place = lane.place_of(read.index);
        let due_before_ns = lane.due_ns();
        let busy_lag_ns = busy.lag_ns(connection.server);
        let oldest = connection.chain.head;
        let mut equal_hits = EqualHits { last: None, count: 0 };
        let rest = loop {
            // Most reads end with a reply.
            let is_over = *used == input.len();
            let next = if is_over { None } else { connection.codec.decode_found(&input[*used..]) };
            let ended = match next {
                Some((_, Found { key, value, token, .. }))
                    if in_flight.answers_oldest(&connection.chain, token) =>
                {
                    let mut integrity = None;
                    let ended = in_flight.pop_simple(read.index, &mut connection.chain, |entry| {
                        if !is_shared || entry.lane() == lane_index {
                            integrity = check_fast_hit::<C>(lane, payload, entry, key, value);
                        }
                        integrity.is_some()
                    });
                    if integrity == Some(Integrity::Foreign) {
                        recording.counts.values_foreign += 1;
                    }
                    if ended.is_some_and(|entry| entry.row.is_measured()) {
                        recording.meter(MeterKind::ValueReceived, value.len() as u64);
                    }
                    ended
                }
                _ => None,
            };
            if !ended.is_some_and(|entry| equal_hits.takes(entry)) {
                equal_hits.record(read, busy_lag_ns, recording, health);
                let Some(entry) = ended else { break next };
                equal_hits = EqualHits { last: Some(Hit::of(entry)), count: 1 };
            }
            *used += next.map_or(0, |(step, _)| step);
            if let Some(entry) = ended {
                lane.session.record_outcome(entry.key(), HIT);
                if is_closed {
                    give_back(lane, connection, place, read.at_ns);
                }
            }
        };
        if equal_hits.last.is_none() {
            return rest;
        }
        connection.failures = 0;
        if busy_lag_ns.is_some() {
            if connection.outstanding() == 0 {
                busy.leave(connection.server);
            }
            if !route.waiting.is_empty() {
                // An unread reply delayed the operations that wait for its connection.
                busy.note_unread(
                    connection.server,
                    read.polled_ns.max(in_flight.get(oldest).sent_ns),
                    read.at_ns,
                );
            }
        }
        if !lane.binds_slots && connection.is_usable() {
            route.ready.set(read.index, connection.outstanding());
        }
        if lane.due_ns() != due_before_ns {
            deadlines.set(lane_index, lane.due_ns());
        }
        rest
    }
}

/// The integrity on a value, if this is the reply to a simple get and the value is intact, or foreign where that is
/// possible. Extended values are verified elsewhere.
#[inline(always)]
fn check_fast_hit<C: Codec>(
    lane: &Lane,
    payload: &Payload,
    entry: &Entry,
    key: &[u8],
    value: &[u8],
) -> Option<Integrity> {
    let KeyRef::Id(id) = entry.key() else { return None };
    let is_judged = entry.sent_ns != 0 && !lane.extends && !lane.is_audited;
    if !is_judged || !is_requested::<C>(&lane.keyspace, id, key) {
        return None;
    }
    let own_len = lane.keyspace.value_len(id);
    let expected = match lane.checking {
        Checking::Ours => Expected::Version { version: 0, len: own_len },
        Checking::Named => Expected::Named { len: value.len() as u32, own_len },
        Checking::Nothing => return Some(Integrity::Intact),
    };
    let integrity = Verifier::verify(payload, id, expected, value);
    matches!(integrity, Integrity::Intact | Integrity::Foreign).then_some(integrity)
}

/// What a hit's sample has of its operation.
#[derive(Clone, Copy)]
struct Hit {
    row: RowHandle,
    kind: OpKind,
    class: ClassId,
    intended_ns: u64,
    picked_ns: u64,
    sent_ns: u64,
}

impl Hit {
    #[inline]
    fn of(entry: &Entry) -> Self {
        let &Entry { row, kind, class, intended_ns, picked_ns, sent_ns, .. } = entry;
        Self { row, kind, class, intended_ns, picked_ns, sent_ns }
    }
}

/// Consecutive hits of one read with equal samples.
struct EqualHits {
    last: Option<Hit>,
    count: u32,
}

impl EqualHits {
    /// Adds an equal one. False if it differs.
    #[inline]
    fn takes(&mut self, entry: &Entry) -> bool {
        let Some(last) = &self.last else { return false };
        let takes = last.row == entry.row
            && last.intended_ns == entry.intended_ns
            && last.picked_ns == entry.picked_ns
            && last.sent_ns == entry.sent_ns;
        self.count += u32::from(takes);
        takes
    }

    /// Records them.
    #[inline(always)]
    fn record(
        &self,
        read: ReadTimes,
        busy_lag_ns: Option<u64>,
        recording: &mut Recording,
        health: &mut Health,
    ) {
        let Some(Hit { row, kind, class, intended_ns, picked_ns, sent_ns }) = self.last else { return };
        let ReadTimes { at_ns, polled_ns, .. } = read;
        let polled_before_ns = polled_ns.min(at_ns);
        let times = Times {
            intended_ns,
            picked_ns,
            sent_ns,
            polled_ns: polled_before_ns,
            first_byte_ns: at_ns,
            done_ns: at_ns,
        };
        let sample = Sample { op: kind.into(), class, outcome: HIT, busy_lag_ns, times };
        if let Some(span) = health.successes(sent_ns, polled_ns, at_ns, self.count) {
            recording.set.outage(span);
        }
        recording.set.server(health.server).answered += u64::from(self.count);
        recording.set.responded(health.server, row, times.response_ns(), self.count);
        recording.record_many(row, &sample, 1, 1, self.count);
    }
}

impl<C: Codec> Traffic<C> {
    /// Queues due gets of a lane with bound slots. Returns the first operation that is not queued here, if there is
    /// one.
    #[inline]
    pub(super) fn queue_fast_gets(&mut self, lane_index: u32, now_ns: u64) -> Option<DueOp> {
        let Self { dispatch, connections: Connections { all, dirty, .. }, busy, in_flight, .. } = self;
        let Self { recording, window, .. } = self;
        let lane = &mut dispatch.lanes[lane_index as usize];
        let (route, first_connection) = (lane.routes.start, lane.first_connection);
        let mut gets = Gets::default();
        let is_kept = busy.is_kept();
        let unusual = loop {
            if lane.due_ns() > now_ns {
                break None;
            }
            let (intended_ns, id, place) = match lane.session.take_next() {
                Next::Get { intended_ns, id, connection: Some(place) } => (intended_ns, id, place),
                Next::Get { intended_ns, id, connection } => {
                    break Some(DueOp { intended_ns, op: lane.session.get(id), connection });
                }
                Next::Other(issue) => break Some(issue),
            };
            let op = lane.session.get(id);
            let left = DueOp { intended_ns, op, connection: Some(place) };
            let index = first_connection + place;
            let connection = &mut all[index as usize];
            if !connection.is_usable() {
                break Some(left);
            }
            let phase = window.phase_of(intended_ns);
            let row = gets.row(recording, phase, &op);
            let picked =
                Picked { connection: Some(index), ..Picked::new(op, phase, row, intended_ns, now_ns, route) };
            let entry = in_flight.allocate(index, &picked, !lane.fills_misses);
            let key_len = lane.keyspace.key_len(id);
            let needed = connection.codec.get_len_max(key_len);
            let token = in_flight.token(entry);
            let is_first = is_kept && connection.outstanding() == 0;
            let is_queued =
                connection.queue_with(index, needed, entry, in_flight, recording, |codec, out| {
                    let write = |room: &mut [u8]| lane.keyspace.write_key_to(id, room);
                    codec.encode_get(key_len, token, out, write)
                });
            if !is_queued {
                break Some(left);
            }
            if is_kept {
                busy.enter_picked(connection.server, is_first, intended_ns, now_ns);
            }
            gets.count += 1;
            gets.total += 1;
            connection.reserved_calls -= 1;
            if !connection.dirty {
                connection.dirty = true;
                dirty.push(index);
            }
        };
        gets.settle(recording);
        recording.occupancy.enter(now_ns, gets.total);
        unusual
    }
}

/// Consecutive due gets of one class and phase, counted together.
#[derive(Default)]
struct Gets {
    last: Option<(Phase, RowHandle)>,
    count: u32,
    /// Count over all phases.
    total: u32,
}

impl Gets {
    /// The row of a get.
    #[inline]
    fn row(&mut self, recording: &mut Recording, phase: Phase, op: &Op) -> RowHandle {
        match self.last {
            Some((last, row)) if last == phase => row,
            _ => {
                self.settle(recording);
                let row = recording.row(phase, op);
                (self.last, self.count) = (Some((phase, row)), 0);
                row
            }
        }
    }

    /// Adds the count to the recording.
    #[inline]
    fn settle(&mut self, recording: &mut Recording) {
        if let Some((_, row)) = self.last.take() {
            recording.set.scheduled_many(row, self.count);
        }
    }
}
