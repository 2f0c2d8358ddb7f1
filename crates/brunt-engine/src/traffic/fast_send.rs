//! The fast path of sending: gets of a closed loop, each on the connection of its slot.
//!
//! Everything else is left to [`super::Traffic::enqueue_due`]: other kinds, unusable connections, full queues.
//! Invariant: an operation queued here is counted as scheduled and picked, on a connection's chain, and its
//! connection is marked to be sent.

use super::Traffic;
use crate::state::connections::Connections;
use crate::state::lane::Picked;
use crate::state::recording::Recording;
use brunt_plan::op::Op;
use brunt_plan::phase::Phase;
use brunt_proto::Codec;
use brunt_stats::recorder::RowHandle;
use brunt_workload::session::{DueOp, Next};

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
        recording.picked(now_ns, gets.total);
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
