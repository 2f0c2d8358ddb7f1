//! Spans `AT:FOR` of stalls and outages, as texts and sorted.
//!
//! Both times are nanoseconds and both
//! count from the arrival of the first scripted request: a start counted from the start of the process would mean
//! nothing to a client that comes later.

use brunt_plan::units::DurationNs;
use std::fmt;
use std::str::FromStr;

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

impl fmt::Display for Span {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", DurationNs(self.at_ns), DurationNs(self.for_ns))
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
