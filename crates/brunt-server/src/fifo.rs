//! The virtual queue: one server, one line, first in, first out, over all connections together.
//!
//! Only arithmetic on times; it holds no request. The recursion is Lindley's: `departure = max(arrival, previous
//! departure) + service`, extended by scripted stalls in which the server does no work. Departures never decrease, so
//! the replies need a plain queue and no heap. Spans, `AT:FOR` of stalls and outages, are nanoseconds from the arrival of the first
//! scripted request: a start counted from the start of the process would mean nothing to a client that comes later.

use brunt_plan::units::DurationNs;
use std::str::FromStr;

/// A span in which the server is frozen.
pub type Stall = Span;

/// The state of the queue: when the last departure was, and which stalls are still to come.
#[derive(Clone, Debug)]
pub struct Fifo {
    /// Those that are passed have ended before the last departure.
    stalls: Calendar,
    departure_ns: u64,
}

impl Fifo {
    /// An empty queue. Stalls that overlap or touch are one stall from the first begin to the last end.
    pub fn new(stalls: &[Stall]) -> Self {
        Self { stalls: Calendar::new(stalls), departure_ns: 0 }
    }

    /// Says when the scripted part begins. Later calls change nothing.
    pub fn begin_script(&mut self, now_ns: u64) {
        self.stalls.begin_script(now_ns);
    }

    /// Throws away all waiting work: the server is idle from `now_ns` on. Stalls go on as scripted.
    pub fn restart(&mut self, now_ns: u64) {
        // Work that is thrown away may have been pushed past stalls that are still to come.
        self.stalls.passed = 0;
        self.departure_ns = now_ns;
    }

    /// Takes a request into the queue and says when it departs. Arrivals are given in the order of the queue.
    ///
    /// Service neither begins nor goes on during a stall `[begin, end)`: work that would overlap it is finished after
    /// it, later by exactly the time lost. Work that is done at the very begin of a stall still departs.
    pub fn depart(&mut self, arrival_ns: u64, service_ns: u64) -> u64 {
        let mut now_ns = arrival_ns.max(self.departure_ns);
        let mut rest_ns = service_ns;
        while let Some((begin_ns, end_ns)) = self.stalls.next() {
            if now_ns < end_ns {
                if now_ns < begin_ns && now_ns.saturating_add(rest_ns) <= begin_ns {
                    break;
                }
                rest_ns -= begin_ns.saturating_sub(now_ns);
                now_ns = end_ns;
            }
            self.stalls.passed += 1;
        }
        self.departure_ns = now_ns.saturating_add(rest_ns);
        self.departure_ns
    }
}

/// A span of time. Text form `AT:FOR`, such as `5s:1s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// When it begins, in nanoseconds after the arrival of the first scripted request.
    pub at_ns: u64,
    /// How long it lasts, in nanoseconds; above 0.
    pub for_ns: u64,
}

impl Span {
    /// When it begins and ends on a clock that shows `origin_ns` when the first scripted request arrives.
    pub(crate) fn on_clock(self, origin_ns: u64) -> (u64, u64) {
        (origin_ns.saturating_add(self.at_ns), origin_ns.saturating_add(self.at_ns + self.for_ns))
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let duration = |part: &str| part.parse::<DurationNs>().ok().map(|duration| duration.0);
        text.split_once(':')
            .and_then(|(at, length)| Some(Self { at_ns: duration(at)?, for_ns: duration(length)? }))
            .filter(|span| span.for_ns > 0 && span.at_ns.checked_add(span.for_ns).is_some())
            .ok_or_else(|| {
                format!("'{text}' is no span: expected AT:FOR, two durations such as 5s:1s or 500ms:20ms")
            })
    }
}

/// Sorts spans and merges those that overlap or touch into one.
pub(crate) fn apart(spans: &[Span]) -> Vec<Span> {
    let mut ascending = spans.to_vec();
    ascending.sort_unstable();
    let mut apart: Vec<Span> = Vec::with_capacity(ascending.len());
    for span in ascending {
        match apart.last_mut() {
            Some(last) if span.at_ns <= last.at_ns + last.for_ns => {
                last.for_ns = last.for_ns.max(span.at_ns + span.for_ns - last.at_ns);
            }
            _ => apart.push(span),
        }
    }
    apart
}

/// A span in which the server is gone: every connection is reset at its begin and none is taken before its end.
pub type Outage = Span;

/// Scripted spans, and when the script began.
#[derive(Clone, Debug)]
pub(crate) struct Calendar {
    /// Relative to the origin; ascending and apart from each other.
    spans: Vec<Span>,
    /// Spans before this index have been passed; of outages, have begun.
    passed: usize,
    /// The arrival of the first scripted request.
    origin_ns: Option<u64>,
}

impl Calendar {
    /// Spans that overlap or touch are one.
    pub(crate) fn new(spans: &[Span]) -> Self {
        Self { spans: apart(spans), passed: 0, origin_ns: None }
    }

    /// Begin and end of the first span that has not been passed.
    fn next(&self) -> Option<(u64, u64)> {
        Some(self.spans.get(self.passed)?.on_clock(self.origin_ns?))
    }

    /// Says when the scripted part begins. Later calls change nothing.
    pub(crate) fn begin_script(&mut self, now_ns: u64) {
        self.origin_ns.get_or_insert(now_ns);
    }

    /// Begin of the first outage that has not been begun.
    pub(crate) fn next_begin_ns(&self) -> Option<u64> {
        self.next().map(|(begin_ns, _)| begin_ns)
    }

    /// Begins the next outage and says when it ends.
    pub(crate) fn begin(&mut self) -> u64 {
        let (_, end_ns) = self.next().expect("an outage begins at a time that counts from the origin");
        self.passed += 1;
        end_ns
    }

    /// Is `now_ns` in an outage?
    pub(crate) fn is_gone(&self, now_ns: u64) -> bool {
        self.ahead(now_ns).is_some_and(|(begin_ns, _)| begin_ns <= now_ns)
    }

    /// The first begin or end after `now_ns`.
    pub(crate) fn next_change_ns(&self, now_ns: u64) -> Option<u64> {
        self.ahead(now_ns).map(|(begin_ns, end_ns)| if begin_ns > now_ns { begin_ns } else { end_ns })
    }

    /// Begin and end of the outage that is, or of the next.
    fn ahead(&self, now_ns: u64) -> Option<(u64, u64)> {
        let origin_ns = self.origin_ns?;
        self.spans.iter().map(|span| span.on_clock(origin_ns)).find(|(_, end_ns)| now_ns < *end_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each row is (arrival, service, expected departure), in the order of the queue.
    fn check(stalls: &[(u64, u64)], rows: &[(u64, u64, u64)]) {
        let stalls: Vec<_> = stalls.iter().map(|&(at_ns, for_ns)| Stall { at_ns, for_ns }).collect();
        let mut fifo = Fifo::new(&stalls);
        for &(arrival_ns, service_ns, departure_ns) in rows {
            fifo.begin_script(arrival_ns);
            assert_eq!(
                fifo.depart(arrival_ns, service_ns),
                departure_ns,
                "{stalls:?} {arrival_ns} {service_ns}"
            );
        }
    }

    #[test]
    fn lindley_by_hand() {
        check(
            &[],
            &[
                (100, 30, 130), // an empty server
                (110, 30, 160), // waits 20
                (115, 10, 170), // waits 45
                (170, 10, 180), // arrives at the instant the server falls idle
                (500, 0, 500),  // no work, no wait
                (400, 5, 505),  // an arrival stamp from before the last departure waits like any other
            ],
        );
    }

    #[test]
    fn stalls_by_hand() {
        // Origin 1000, frozen in [1100, 1200).
        check(&[(100, 100)], &[(1000, 50, 1050), (1060, 40, 1100), (1100, 10, 1210), (1150, 10, 1220)]);
        // Work of 50 begun at 1080: 20 before the stall, 30 after it.
        check(&[(100, 100)], &[(1000, 0, 1000), (1080, 50, 1230)]);
        // Without service: held to the end of the stall, free at its end.
        check(
            &[(100, 100)],
            &[(1000, 0, 1000), (1099, 0, 1099), (1100, 0, 1200), (1150, 0, 1200), (1201, 0, 1201)],
        );
        // One long piece of work through two stalls: 300 of work, 100 + 50 lost.
        check(&[(100, 100), (300, 50)], &[(1000, 300, 1450)]);
        // The first request is itself in the stall.
        check(&[(0, 100)], &[(1000, 10, 1110)]);
        // A stall without requests is over.
        check(&[(100, 100)], &[(1000, 10, 1010), (2000, 10, 2010)]);
        // Overlapping and touching stalls, in any order, are one: [1100, 1400).
        check(&[(200, 200), (100, 50), (120, 80)], &[(1000, 0, 1000), (1100, 0, 1400)]);
        check(&[(100, 200), (150, 10)], &[(1000, 0, 1000), (1100, 0, 1300)]);
    }

    #[test]
    fn a_restart_drops_work_and_keeps_stalls() {
        let mut fifo = Fifo::new(&[Stall { at_ns: 100, for_ns: 100 }]);
        fifo.begin_script(1000);
        assert_eq!(fifo.depart(1000, 500), 1600, "pushed past the stall");
        fifo.restart(1050);
        assert_eq!(fifo.depart(1060, 80), 1240, "40 before the stall, 40 after it");
    }

    /// The same path by single steps of a nanosecond of work.
    #[test]
    fn stalls_match_a_step_by_step_simulation() {
        let stalls = [
            Stall { at_ns: 40, for_ns: 25 },
            Stall { at_ns: 90, for_ns: 10 },
            Stall { at_ns: 300, for_ns: 7 },
        ];
        for spacing in 1..20u64 {
            for service_ns in 0..25u64 {
                let mut fifo = Fifo::new(&stalls);
                fifo.begin_script(1000);
                let mut clock_ns = 0;
                for number in 0..40 {
                    let arrival_ns = 1000 + number * spacing;
                    clock_ns = arrival_ns.max(clock_ns);
                    let frozen =
                        |at: u64| stalls.iter().any(|s| (s.at_ns..s.at_ns + s.for_ns).contains(&(at - 1000)));
                    let mut work_ns = service_ns;
                    if work_ns == 0 {
                        while frozen(clock_ns) {
                            clock_ns += 1;
                        }
                    }
                    while work_ns > 0 {
                        work_ns -= u64::from(!frozen(clock_ns));
                        clock_ns += 1;
                    }
                    assert_eq!(
                        fifo.depart(arrival_ns, service_ns),
                        clock_ns,
                        "{spacing} {service_ns} {number}"
                    );
                }
            }
        }
    }

    #[test]
    fn texts() {
        let table = [
            ("5s:1s", Some((5_000_000_000, 1_000_000_000))),
            ("500ms:20ms", Some((500_000_000, 20_000_000))),
            ("0:1s", Some((0, 1_000_000_000))),
            ("5s:0", None),
            ("5:1", None),
            ("5s", None),
            ("5s:1s:1s", None),
            ("", None),
        ];
        for (text, expected) in table {
            let parsed = text.parse::<Stall>();
            let times = parsed.clone().ok().map(|stall| (stall.at_ns, stall.for_ns));
            assert_eq!(times, expected, "{text:?}");
            assert!(parsed.err().is_none_or(|message| message.contains("AT:FOR")));
        }
    }

    #[test]
    fn adjacent_spans_merge() {
        type Pairs = &'static [(u64, u64)];
        let table: [(Pairs, Pairs); 5] = [
            (&[], &[]),
            (&[(200, 200), (100, 50), (120, 80)], &[(100, 300)]),
            (&[(100, 200), (150, 10)], &[(100, 200)]),
            (&[(5, 5), (10, 1)], &[(5, 6)]),
            (&[(11, 1), (5, 5)], &[(5, 5), (11, 1)]),
        ];
        for (spans, expected) in table {
            let spans_of = |pairs: Pairs| -> Vec<Span> {
                pairs.iter().map(|&(at_ns, for_ns)| Span { at_ns, for_ns }).collect()
            };
            assert_eq!(apart(&spans_of(spans)), spans_of(expected), "{spans:?}");
        }
    }

    #[test]
    fn the_calendar_by_hand() {
        let outages = [(300, 50), (100, 40), (140, 10)].map(|(at_ns, for_ns)| Outage { at_ns, for_ns });
        let mut calendar = Calendar::new(&outages);
        assert_eq!((calendar.next_begin_ns(), calendar.next_change_ns(0)), (None, None), "no origin yet");
        calendar.begin_script(1000);
        calendar.begin_script(2000);
        // Gone in [1100, 1150) and [1300, 1350).
        let table = [
            (1000, false, Some(1100)),
            (1099, false, Some(1100)),
            (1100, true, Some(1150)),
            (1149, true, Some(1150)),
            (1150, false, Some(1300)),
            (1349, true, Some(1350)),
            (1350, false, None),
        ];
        for (now_ns, gone, change_ns) in table {
            assert_eq!(
                (calendar.is_gone(now_ns), calendar.next_change_ns(now_ns)),
                (gone, change_ns),
                "{now_ns}"
            );
        }
        assert_eq!((calendar.next_begin_ns(), calendar.begin()), (Some(1100), 1150));
        assert_eq!((calendar.next_begin_ns(), calendar.begin()), (Some(1300), 1350));
        assert_eq!(calendar.next_begin_ns(), None);
    }
}
