//! Spans `AT:FOR` of stalls and outages.
//!
//! Only texts and arithmetic; what happens in a span is said by those who have one. Both times are nanoseconds and both
//! count from the arrival of the first scripted request: a start counted from the start of the process would mean
//! nothing to a client that comes later.

use brunt_plan::units::DurationNs;
use std::fmt;

/// A span as (begin, length).
pub(crate) type Span = (u64, u64);

/// Reads `AT:FOR`, two durations of which the second is above 0; `noun` is what the message calls it.
pub(crate) fn parse(text: &str, noun: &str) -> Result<Span, String> {
    let duration = |part: &str| part.parse::<DurationNs>().ok().map(|duration| duration.0);
    text.split_once(':')
        .and_then(|(at, length)| Some((duration(at)?, duration(length)?)))
        .filter(|(at_ns, for_ns)| *for_ns > 0 && at_ns.checked_add(*for_ns).is_some())
        .ok_or_else(|| {
            format!("'{text}' is no {noun}: expected AT:FOR, two durations such as 5s:1s or 500ms:20ms")
        })
}

/// Writes the form that [`parse`] reads.
pub(crate) fn write((at_ns, for_ns): Span, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(formatter, "{}:{}", DurationNs(at_ns), DurationNs(for_ns))
}

/// The same spans ascending and apart: those that overlap or touch are one, from the first begin to the last end.
pub(crate) fn apart(spans: impl IntoIterator<Item = Span>) -> Vec<Span> {
    let mut ascending: Vec<Span> = spans.into_iter().collect();
    ascending.sort_unstable();
    let mut apart: Vec<Span> = Vec::with_capacity(ascending.len());
    for (at_ns, for_ns) in ascending {
        match apart.last_mut() {
            Some((last_at_ns, last_for_ns)) if at_ns <= *last_at_ns + *last_for_ns => {
                *last_for_ns = (*last_for_ns).max(at_ns + for_ns - *last_at_ns);
            }
            _ => apart.push((at_ns, for_ns)),
        }
    }
    apart
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjacent_spans_merge() {
        let table: [(&[Span], &[Span]); 5] = [
            (&[], &[]),
            (&[(200, 200), (100, 50), (120, 80)], &[(100, 300)]),
            (&[(100, 200), (150, 10)], &[(100, 200)]),
            (&[(5, 5), (10, 1)], &[(5, 6)]),
            (&[(11, 1), (5, 5)], &[(5, 5), (11, 1)]),
        ];
        for (spans, expected) in table {
            assert_eq!(apart(spans.iter().copied()), expected, "{spans:?}");
        }
    }
}
