//! Queueing the usual: gets of a closed loop, each on the connection whose slot it fills.
//!
//! Not everything else: other kinds, connections that take nothing now, and what finds no room are left for
//! [`super::Traffic::enqueue_due`], which can queue everything or let it wait. Invariant: what was queued here is counted as
//! scheduled and picked, on a connection's chain, and as one of those with something to send.

use super::Traffic;
use crate::state::ids::{NO_GROUP, NO_REDIRECT, NO_SHARED_SLOT};
use crate::state::lane::Picked;
use crate::state::recording::Recording;
use brunt_plan::op::Op;
use brunt_plan::phase::Phase;
use brunt_proto::Codec;
use brunt_stats::recorder::RowHandle;
use brunt_workload::session::{DueOp, Next};

impl<C: Codec> Traffic<C> {
    /// Takes what is due of a lane whose operations are bound to connections, and queues it. Yields the first operation
    /// that is not usual, if there is one.
    #[inline]
    pub(super) fn queue_fast_gets(&mut self, lane_index: u32, now_ns: u64) -> Option<DueOp> {
        let Self { lanes, routes, connections, busy, in_flight, recording, dirty, window, .. } = self;
        let lane = &mut lanes[lane_index as usize];
        let route = lane.routes.start;
        let first_connection = routes[route as usize].connections.start;
        let mut gets = Gets::default();
        let is_kept = busy.is_kept();
        let unusual = loop {
            if lane.due_ns() > now_ns {
                break None;
            }
            let (intended_ns, id, own) = match lane.session.take_next() {
                Next::Get { intended_ns, id, connection: Some(own) } => (intended_ns, id, own),
                Next::Get { intended_ns, id, connection } => {
                    break Some(DueOp { intended_ns, op: lane.session.get(id), connection });
                }
                Next::Other(issue) => break Some(issue),
            };
            let op = lane.session.get(id);
            let left = DueOp { intended_ns, op, connection: Some(own) };
            let index = first_connection + own;
            let connection = &mut connections[index as usize];
            if !connection.is_usable() {
                break Some(left);
            }
            let phase = window.phase_of(intended_ns);
            let picked = Picked {
                op,
                phase,
                account: gets.account(recording, phase, &op),
                intended_ns,
                picked_ns: now_ns,
                connection: Some(index),
                route,
                group: NO_GROUP,
                shared_slot: NO_SHARED_SLOT,
                redirect_state: NO_REDIRECT,
            };
            let entry = in_flight.allocate(index, &picked, !lane.fills_misses);
            let key_len = lane.keyspace.key_len(id);
            let needed = connection.codec.get_len_max(key_len);
            let token = in_flight.token(entry);
            let is_first = is_kept && connection.outstanding() == 0;
            let is_queued =
                connection.queue_with(index, needed, entry, in_flight, recording, |codec, out| {
                    let write = |place: &mut [u8]| lane.keyspace.write_key_to(id, place);
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
        recording.picked(now_ns, gets.total);
        unusual
    }
}

/// Gets of one class that became due one behind the other, counted together as long as they belong to one phase.
#[derive(Default)]
struct Gets {
    last: Option<(Phase, RowHandle)>,
    count: u32,
    /// Those of all phases.
    total: u32,
}

impl Gets {
    /// Where one is booked.
    #[inline]
    fn account(&mut self, recording: &mut Recording, phase: Phase, op: &Op) -> RowHandle {
        match self.last {
            Some((last, account)) if last == phase => account,
            _ => {
                self.settle(recording);
                let account = recording.account(phase, op);
                (self.last, self.count) = (Some((phase, account)), 0);
                account
            }
        }
    }

    /// Books what was counted.
    #[inline]
    fn settle(&mut self, recording: &mut Recording) {
        if let Some((_, account)) = self.last.take() {
            recording.scheduled_many(account, self.count);
        }
    }
}
