//! One step of a decoder: what the visible bytes say, that they do not say it yet, or that they never will.
//!
//! Invariant: what is said is said by the first bytes, however many more are visible; [`Stop::Short`] stands for "not
//! enough of them", and is said of the same bytes again.

use crate::{Event, Malformed};

/// Why bytes cannot be told yet, or never will.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// They go on behind the visible ones.
    Short,
    /// They are nothing of the protocol.
    Bad(Malformed),
}

pub(crate) type Step<T> = Result<T, Stop>;

pub(crate) const UNKNOWN: Stop = Stop::Bad(Malformed::UnknownReply);
pub(crate) const OUT_OF_STEP: Stop = Stop::Bad(Malformed::OutOfStep);
pub(crate) const BAD_NUMBER: Stop = Stop::Bad(Malformed::BadNumber);

/// What ends a line in every protocol of lines.
pub(crate) const LINE_END: &[u8] = b"\r\n";

/// The position behind the line end at `at`; `otherwise` if something else is there.
#[inline]
pub(crate) fn line_end(line: &[u8], at: usize, otherwise: Stop) -> Step<usize> {
    match line.get(at..) {
        Some([b'\r', b'\n', ..]) => Ok(at + LINE_END.len()),
        None | Some([] | [b'\r']) => Err(Stop::Short),
        _ => Err(otherwise),
    }
}

/// A step as [`crate::Codec::decode`] tells it; after `refuse` the codec expects nothing more.
#[inline]
pub(crate) fn as_event<'a>(
    step: Step<(usize, Event<'a>)>,
    refuse: impl FnOnce(),
) -> (usize, Option<Event<'a>>) {
    match step {
        Ok((used, event)) => (used, Some(event)),
        Err(Stop::Short) => (0, None),
        Err(Stop::Bad(malformed)) => {
            refuse();
            (0, Some(Event::Bad(malformed)))
        }
    }
}
