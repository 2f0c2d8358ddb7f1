//! Open-loop schedules: one for all connections of a session, or one that restarts with each connection.
//!
//! Invariant: the times of a connection's calls are a function of the plan, the seed, the connection's ordinal and when
//! it stood; the first is that instant itself.

use crate::arrivals::Arrivals;
use brunt_plan::arrival::Arrival;
use brunt_plan::op::ClassId;
use brunt_plan::units::Rate;

/// The schedule of an open loop.
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
