//! Queueing the usual: gets of a closed loop, each on the connection whose slot it fills.
//!
//! Not everything else: other kinds, connections that take nothing now, and what finds no room are left for
//! [`super::Traffic::take_on`], which can queue everything or let it wait. Invariant: what was queued here is counted as
//! scheduled and picked, on a connection's chain, and as one of those with something to send.

use super::Traffic;
use crate::group::NO_GROUP;
use crate::lane::Picked;
use crate::lease::NO_LEASE;
use crate::recording::Recording;
use brunt_plan::op::{KeyRef, OpKind};
use brunt_plan::phase::Phase;
use brunt_proto::{Codec, Keys, Request, Value};
use brunt_stats::recorder::Account;
use brunt_workload::session::Issue;

impl<C: Codec> Traffic<C> {
    /// Takes what is due of a lane whose operations are bound to connections, and queues it. Yields the first operation
    /// that is not usual, if there is one.
    #[inline]
    pub(super) fn ask_straight(&mut self, lane_index: u32, now_ns: u64) -> Option<Issue> {
        let Self { lanes, routes, connections, in_flight, recording, dirty, key_bytes, window, .. } = self;
        let lane = &mut lanes[lane_index as usize];
        let route = lane.routes.start;
        let first_connection = routes[route as usize].connections.start;
        let mut gets = Gets::default();
        let unusual = loop {
            if lane.due_ns() > now_ns {
                break None;
            }
            let issue = lane.session.take();
            let (OpKind::Get, KeyRef::Id(id), Some(own)) = (issue.op.kind, issue.op.key, issue.connection)
            else {
                break Some(issue);
            };
            let index = first_connection + own;
            let connection = &mut connections[index as usize];
            if !connection.is_usable() {
                break Some(issue);
            }
            let phase = window.phase_of(issue.intended_ns);
            let picked = Picked {
                op: issue.op,
                phase,
                account: gets.account(recording, phase, &issue),
                intended_ns: issue.intended_ns,
                picked_ns: now_ns,
                connection: Some(index),
                route,
                group: NO_GROUP,
                lease: NO_LEASE,
            };
            let entry = in_flight.fill(&picked, !lane.follows);
            key_bytes.clear();
            lane.keyspace.write_key(id, key_bytes);
            let request = Request {
                kind: OpKind::Get,
                keys: Keys { bytes: key_bytes, ends: &[key_bytes.len() as u32] },
                value: Value::NONE,
                flags: 0,
                ttl_s: 0,
                operand: 0,
                noreply: false,
                token: 0,
                template: 0,
            };
            if !connection.queue(&request, entry, in_flight, recording) {
                break Some(issue);
            }
            gets.count += 1;
            gets.total += 1;
            connection.promised -= 1;
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
    last: Option<(Phase, Account)>,
    count: u32,
    /// Those of all phases.
    total: u32,
}

impl Gets {
    /// Where one is booked.
    #[inline]
    fn account(&mut self, recording: &mut Recording, phase: Phase, issue: &Issue) -> Account {
        match self.last {
            Some((last, account)) if last == phase => account,
            _ => {
                self.settle(recording);
                let account = recording.account(phase, &issue.op);
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
