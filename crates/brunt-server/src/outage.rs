//! Scripted outages: when the server is gone and when it is back.
//!
//! Only the calendar; `core` resets the connections and drops waiting replies, and the driver (a listening
//! socket, a simulated network) keeps it shut. An outage `[begin, end)` begins after the replies that leave at its very
//! begin, and a connection is welcome at its very end.

use crate::fifo::{self, Span};

/// A span in which the server is gone: every connection is reset at its begin and none is taken before its end.
pub type Outage = Span;

/// The calendar of the outages.
#[derive(Clone, Debug)]
pub(crate) struct Outages {
    /// Relative to the origin; ascending and apart from each other.
    spans: Vec<Span>,
    /// Spans before this index have begun.
    begun: usize,
    /// The arrival of the first scripted request.
    origin_ns: Option<u64>,
}

impl Outages {
    /// Outages that overlap or touch are one.
    pub(crate) fn new(outages: &[Outage]) -> Self {
        Self { spans: fifo::apart(outages), begun: 0, origin_ns: None }
    }

    /// Says when the scripted part begins. Later calls change nothing.
    pub(crate) fn begin_script(&mut self, now_ns: u64) {
        self.origin_ns.get_or_insert(now_ns);
    }

    /// Begin of the first outage that has not been begun.
    pub(crate) fn next_begin_ns(&self) -> Option<u64> {
        Some(self.spans.get(self.begun)?.on_clock(self.origin_ns?).0)
    }

    /// Begins the next outage and says when it ends.
    pub(crate) fn begin(&mut self) -> u64 {
        let origin_ns = self.origin_ns.expect("an outage begins at a time that counts from the origin");
        let (_, end_ns) = self.spans[self.begun].on_clock(origin_ns);
        self.begun += 1;
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

    #[test]
    fn the_calendar_by_hand() {
        let outages = [(300, 50), (100, 40), (140, 10)].map(|(at_ns, for_ns)| Outage { at_ns, for_ns });
        let mut calendar = Outages::new(&outages);
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

    #[test]
    fn texts() {
        assert_eq!("5s:500ms".parse::<Outage>().unwrap().to_string(), "5s:500ms");
        for text in ["5s:0", "5s", "", "x:1s"] {
            let message = text.parse::<Outage>().unwrap_err();
            assert!(message.starts_with(&format!("'{text}' is no span: expected AT:FOR")), "{message}");
        }
    }
}
