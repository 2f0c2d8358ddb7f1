//! Intended times of a session: the one place in which open loop and closed loop differ.
//!
//! Yields intended times on the engine's clock, in order (but see [`ClosedLoopSlots`] without a think time). A loop that
//! is partly open would be a further variant of [`Schedule`], without a change for its callers.

use crate::arrivals::Arrivals;
use brunt_plan::arrival::Arrival;
use brunt_plan::op::ClassId;
use brunt_plan::units::Rate;

/// The source of a session's intended times.
#[derive(Clone, Debug)]
pub enum Schedule {
    /// Open loop: due times whatever the server does.
    Open(Box<Calls>),
    /// Closed loop: a slot is due when the previous request of the slot is done, and thought over.
    Closed(ClosedLoopSlots),
    /// The records of a trace come with their times: when that at hand is due, which the session sets with every record.
    Recorded(u64),
}

impl Schedule {
    /// The next intended time in ns; `u64::MAX` where there is none until a slot is released, or ever.
    #[inline]
    pub fn peek_ns(&self) -> u64 {
        match self {
            Self::Open(calls) => calls.peek_ns(),
            Self::Closed(slots) => slots.peek_ns(),
            Self::Recorded(due_ns) => *due_ns,
        }
    }

    /// Takes the next intended time: names the connection where the schedule binds it, and the intended time after it, as
    /// [`Schedule::peek_ns`] would.
    #[inline]
    pub fn take(&mut self) -> (Option<u32>, u64) {
        match self {
            Self::Open(calls) => (None, calls.take()),
            Self::Closed(slots) => (slots.take(), slots.peek_ns()),
            Self::Recorded(due_ns) => (None, *due_ns),
        }
    }
}

/// A slot that is free from `due_ns` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FreeSlot {
    due_ns: u64,
    connection: u32,
}

/// The slots of a closed loop: `depth` for each connection, free or with a request in flight.
#[derive(Clone, Debug)]
pub struct ClosedLoopSlots {
    /// Free slots in the order in which they are taken: those with the numbers from `first` up to `end`, each in the place of
    /// its number's low bits. A power of two, at least `count`.
    ///
    /// With a think time that is by due time, those of one time in the order of their release: a queue and no heap, for think
    /// time is constant and replies are seen nearly in order, so that a released slot belongs at the end or close to it. Think
    /// times that vary will want a heap here. Without one it is the order of release: whatever is free is due already, and
    /// slots that were held back until their connection had answered everything come late and many at a time.
    ring: Box<[FreeSlot]>,
    first: usize,
    end: usize,
    count: usize,
    think_ns: u64,
    /// The latest due time of all slots so far.
    latest_ns: u64,
}

impl ClosedLoopSlots {
    /// `depth` slots for each of `connections`, all due at `start_ns`, each connection's first slot before any second.
    pub fn new(connections: u32, depth: u32, think_ns: u64, start_ns: u64) -> Self {
        let mut slots: Vec<FreeSlot> = (0..depth)
            .flat_map(|_| (0..connections).map(|connection| FreeSlot { due_ns: start_ns, connection }))
            .collect();
        let count = slots.len();
        slots.resize(count.next_power_of_two(), FreeSlot { due_ns: start_ns, connection: 0 });
        Self { ring: slots.into_boxed_slice(), first: 0, end: count, count, think_ns, latest_ns: start_ns }
    }

    /// No slot is free until it is released.
    pub fn take_all(&mut self) {
        self.first = self.end;
    }

    /// How many slots have a request in flight.
    #[inline]
    pub fn in_flight(&self) -> usize {
        self.count - (self.end - self.first)
    }

    /// When a slot whose request is done at `done_ns` is due again.
    #[inline]
    pub fn due_after_ns(&self, done_ns: u64) -> u64 {
        done_ns.saturating_add(self.think_ns)
    }

    /// The latest time that is known to have passed: a request was done then, or was taken, which never happens before it is
    /// due. Where all slots are taken, so is the one with the latest due time.
    pub fn passed_ns(&self) -> u64 {
        if self.first == self.end { self.latest_ns } else { self.latest_ns.saturating_sub(self.think_ns) }
    }

    /// Where the slot with this number lies.
    #[inline]
    fn place(&self, number: usize) -> usize {
        number & (self.ring.len() - 1)
    }

    #[inline]
    fn peek_ns(&self) -> u64 {
        if self.first == self.end { u64::MAX } else { self.ring[self.place(self.first)].due_ns }
    }

    #[inline]
    fn take(&mut self) -> Option<u32> {
        if self.first == self.end {
            return None;
        }
        let slot = self.ring[self.place(self.first)];
        self.first += 1;
        Some(slot.connection)
    }

    /// Frees a slot of `connection` whose request was done at `done_ns`: when the next slot is due, as
    /// [`Schedule::peek_ns`] says it.
    #[inline]
    pub fn release(&mut self, connection: u32, done_ns: u64) -> u64 {
        assert!(self.in_flight() > 0, "more slots released than taken");
        let due_ns = self.due_after_ns(done_ns);
        let at = self.place(self.end);
        self.ring[at] = FreeSlot { due_ns, connection };
        self.end += 1;
        if due_ns >= self.latest_ns {
            self.latest_ns = due_ns;
        } else if self.think_ns > 0 {
            self.move_forward();
        }
        self.peek_ns()
    }

    /// Moves the last slot before those that are due after it.
    #[cold]
    fn move_forward(&mut self) {
        let mut number = self.end - 1;
        let slot = self.ring[self.place(number)];
        while number > self.first {
            let before = self.ring[self.place(number - 1)];
            if before.due_ns <= slot.due_ns {
                break;
            }
            let at = self.place(number);
            self.ring[at] = before;
            number -= 1;
        }
        let at = self.place(number);
        self.ring[at] = slot;
    }
}

/// The schedule of an open loop: one for all connections of a session, or one that begins anew with each connection. The times of a
/// connection's calls are a function of the plan, the seed, the connection's ordinal and when it stood; the first is that instant itself.
#[derive(Clone, Debug)]
pub struct Calls {
    arrivals: Arrivals,
    /// Zero of the arrivals on the engine's clock, in ns.
    start_ns: u64,
    /// Calls of the established connection that have not been taken; none without such a connection. Without a bound there are more than any
    /// run takes.
    left: u64,
    /// What the arrivals of each connection are drawn from; nothing where they are those of all.
    of_connections: Option<(u64, ClassId)>,
    /// One less than the arrivals of the largest operation. These pass before the first operation, so that each is due with the
    /// last of its own.
    passed: u64,
}

impl Calls {
    /// Those of all connections, from `start_ns` on.
    pub(crate) fn of_all(arrivals: Arrivals, start_ns: u64) -> Self {
        Self { arrivals, start_ns, left: u64::MAX, of_connections: None, passed: 0 }
    }

    /// Calls of one connection after another, none of which is established yet.
    pub(crate) fn of_connections(arrival: &Arrival, rate: Rate, seed: u64, class: ClassId) -> Self {
        let arrivals = Arrivals::of_calls(arrival, rate, seed, class);
        Self { arrivals, start_ns: 0, left: 0, of_connections: Some((seed, class)), passed: 0 }
    }

    /// Those of the client with this number, as if it were a connection that is open from `start_ns` on.
    pub(crate) fn of_client(mut self, client: u32, start_ns: u64) -> Self {
        self.begin(u64::from(client), start_ns, u64::MAX);
        Self { of_connections: None, ..self }
    }

    /// The calls of a schedule in which an operation takes up to `size` arrivals, including its own.
    pub(crate) fn in_groups(self, size: u16) -> Self {
        Self { passed: u64::from(size.saturating_sub(1)), ..self }
    }

    /// Do they begin anew with every connection?
    #[inline]
    pub(crate) fn follow_connection(&self) -> bool {
        self.of_connections.is_some()
    }

    /// The connection of this ordinal is open from `start_ns` on, and is to have `calls` calls.
    pub(crate) fn begin(&mut self, connection: u64, start_ns: u64, calls: u64) {
        if let Some((seed, class)) = self.of_connections {
            self.arrivals.restart(seed, class, connection, calls);
            (0..self.passed).for_each(|_| self.arrivals.advance());
            (self.start_ns, self.left) = (start_ns, calls);
        }
    }

    /// The connection is gone: no further call of it is due.
    pub(crate) fn end(&mut self) {
        if self.follow_connection() {
            self.left = 0;
        }
    }

    /// When the next call is due; `u64::MAX` where there is none before another connection is established.
    #[inline]
    pub(crate) fn peek_ns(&self) -> u64 {
        if self.left == 0 { u64::MAX } else { self.arrivals.peek_ns().saturating_add(self.start_ns) }
    }

    /// Takes it. Yields when the one after it is due. Not inlined: it would crowd the registers of the closed loop, which has less
    /// to do.
    #[inline(never)]
    pub(crate) fn take(&mut self) -> u64 {
        self.left -= 1;
        self.arrivals.advance();
        self.peek_ns()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes everything that is due before `until_ns`, as (due, connection).
    fn taken(slots: &mut ClosedLoopSlots, until_ns: u64) -> Vec<(u64, u32)> {
        let mut taken = Vec::new();
        while slots.peek_ns() < until_ns {
            let due_ns = slots.peek_ns();
            taken.push((due_ns, slots.take().unwrap()));
        }
        taken
    }

    #[test]
    fn every_slot_is_free_at_the_start_connections_in_turn() {
        let mut slots = ClosedLoopSlots::new(3, 2, 0, 50);
        assert_eq!(slots.peek_ns(), 50);
        assert_eq!(taken(&mut slots, 51), [(50, 0), (50, 1), (50, 2), (50, 0), (50, 1), (50, 2)]);
        assert_eq!((slots.peek_ns(), slots.in_flight()), (u64::MAX, 6));
    }

    #[test]
    fn a_slot_is_due_when_done_and_thought_over_in_order_of_time() {
        let releases: [(u32, u64); 6] = [(0, 30), (1, 10), (2, 20), (0, 20), (1, 30), (2, 5)];
        let mut slots = ClosedLoopSlots::new(3, 2, 1_000, 0);
        taken(&mut slots, 1);
        for (connection, done_ns) in releases {
            slots.release(connection, done_ns);
        }
        let expected = [(1_005, 2), (1_010, 1), (1_020, 2), (1_020, 0), (1_030, 0), (1_030, 1)];
        assert_eq!(taken(&mut slots, 2_000), expected);
    }

    #[test]
    fn without_a_think_time_slots_are_taken_as_they_were_released() {
        let mut slots = ClosedLoopSlots::new(2, 2, 0, 0);
        taken(&mut slots, 1);
        let due: Vec<u64> = [(0, 30), (1, 10), (1, 20)]
            .map(|(connection, done_ns)| slots.release(connection, done_ns))
            .into();
        assert_eq!(due, [30, 30, 30]);
        assert_eq!(taken(&mut slots, 40), [(30, 0), (10, 1), (20, 1)]);
        assert_eq!(slots.passed_ns(), 30);
    }

    #[test]
    #[should_panic(expected = "more slots released than taken")]
    fn a_slot_cannot_be_released_twice() {
        let mut slots = ClosedLoopSlots::new(1, 1, 0, 0);
        slots.take();
        slots.release(0, 1);
        slots.release(0, 2);
    }

    #[test]
    fn slots_go_round_in_order_of_time() {
        // Any number of slots, a ring of a power of two: releases by a fixed pattern of delays against a sorted list.
        for (connections, depth) in [(1, 1), (3, 1), (3, 5), (8, 4), (7, 9)] {
            let mut slots = ClosedLoopSlots::new(connections, depth, 7, 0);
            let mut expected: Vec<(u64, u64)> =
                (0..u64::from(connections * depth)).map(|order| (0, order)).collect();
            for round in 0..2_000u64 {
                let (due_ns, _) = expected.remove(0);
                assert_eq!(slots.peek_ns(), due_ns, "{connections} x {depth}");
                let connection = slots.take().unwrap();
                let done_ns = round + round * 11 % 5;
                slots.release(connection, done_ns);
                expected.push((done_ns + 7, 1_000 + round));
                expected.sort_unstable();
            }
        }
    }

    fn calls(arrival: &str) -> Calls {
        Calls::of_connections(&arrival.parse().unwrap(), Rate::per_second(1_000), 7, 0)
    }

    /// The calls of a connection that is established at `start_ns`, until none is left.
    fn times_ns(calls: &mut Calls, connection: u64, start_ns: u64, count: u64) -> Vec<u64> {
        calls.begin(connection, start_ns, count);
        let mut times_ns = Vec::new();
        while calls.peek_ns() < u64::MAX {
            times_ns.push(calls.peek_ns());
            calls.take();
        }
        times_ns
    }

    #[test]
    fn every_connection_restarts_the_schedule() {
        let mut even = calls("uniform");
        assert_eq!(even.peek_ns(), u64::MAX);
        for start_ns in [5, 7_000, 123_456_789] {
            let expected: Vec<u64> = (0..4).map(|call| start_ns + call * 1_000_000).collect();
            assert_eq!(times_ns(&mut even, 1, start_ns, 4), expected);
        }
        even.begin(2, 0, 10);
        even.take();
        even.end();
        assert_eq!(even.peek_ns(), u64::MAX);
    }

    /// The first operation of three is due with the third arrival.
    #[test]
    fn operations_of_several_arrivals_are_due_with_the_last() {
        let mut even = calls("uniform").in_groups(3);
        for start_ns in [5, 7_000] {
            let expected: Vec<u64> = (2..6).map(|call| start_ns + call * 1_000_000).collect();
            assert_eq!(times_ns(&mut even, 1, start_ns, 4), expected);
        }
        assert_eq!(calls("uniform").in_groups(3).of_client(1, 50).peek_ns(), 2_000_050);
        assert_eq!(calls("uniform").in_groups(0).of_client(1, 50).peek_ns(), 50);
    }

    /// Whatever was drawn for those before.
    #[test]
    fn gaps_depend_on_the_ordinal_of_the_connection_alone() {
        for arrival in ["poisson", "uniform:0,2", "fb_ia", "mmpp:4,100ms,0.1"] {
            let mut calls = calls(arrival);
            let first = times_ns(&mut calls, 3, 0, 20);
            assert_eq!(first[0], 0, "{arrival}");
            let other = times_ns(&mut calls, 4, 0, 5);
            let again = times_ns(&mut calls, 3, 500, 20);
            assert!(again.iter().zip(&first).all(|(again, first)| again - 500 == *first), "{arrival}");
            assert_ne!(other, first[..5], "{arrival}");
        }
    }

    /// mcperf draws the gaps of all its connections from one sequence: one for each call but the first, and one where there is no
    /// other.
    #[test]
    fn connections_one_after_another_have_the_gaps_of_mcperf() {
        for (count, drawn_each) in [(5, 4), (2, 1), (1, 1)] {
            let mut calls = calls("mcperf:u0.0005,0.0015@2");
            let Ok(Arrival::Mcperf(draw)) = "mcperf:u0.0005,0.0015@2".parse() else { panic!("no draw") };
            let mut numbers = crate::rand48::Draws::new(draw);
            for connection in 0..50 {
                let times_ns = times_ns(&mut calls, connection, 1_000, count);
                let gaps_ns: Vec<f64> = times_ns.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
                let drawn: Vec<f64> = (0..drawn_each).map(|_| numbers.next_number() * 1e9).collect();
                let off = |(gap_ns, drawn): (&f64, &f64)| (gap_ns - drawn).abs() > 1.0;
                assert!(
                    !gaps_ns.iter().zip(&drawn).any(off),
                    "connection {connection}: {gaps_ns:?}, not {drawn:?}"
                );
                assert_eq!((times_ns[0], gaps_ns.len() as u64), (1_000, count - 1));
            }
        }
    }

    #[test]
    fn gaps_have_the_mean_of_the_rate() {
        for arrival in ["poisson", "uniform:0,2", "exponential:9", "mmpp:4,1ms,0.1"] {
            let mut calls = calls(arrival);
            let (connections, count) = (4_000, 26);
            let last_ns =
                |connection| *times_ns(&mut calls, connection, 0, count).last().expect("it has calls");
            let sum_ns: u64 = (0..connections).map(last_ns).sum();
            let mean_ns = sum_ns as f64 / (connections * (count - 1)) as f64;
            assert!((mean_ns / 1e6 - 1.0).abs() < 0.05, "{arrival}: {mean_ns}");
        }
    }
}
