//! The parts of the worker that instructions are booked under, and what tells them apart.
//!
//! Names of crates and of their public functions decide, so that work within a crate moves nothing from one part to
//! another. Invariant: every instruction belongs to exactly one part.

/// A part of the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Which operation comes next, and when.
    Schedule,
    /// From an operation to its bytes, those of its key among them.
    Encode,
    /// From bytes to events.
    Decode,
    /// Comparing what was read with what was stored.
    Check,
    /// Books, histograms, meters.
    Record,
    /// Everything else: connections, operations in flight, timers.
    Loop,
}

impl Part {
    pub(super) const COUNT: usize = Self::ALL.len();
    pub(super) const ALL: [Self; 6] =
        [Self::Schedule, Self::Encode, Self::Decode, Self::Check, Self::Record, Self::Loop];

    /// As in tables and in the baseline.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Schedule => "schedule",
            Self::Encode => "encode",
            Self::Decode => "decode",
            Self::Check => "check",
            Self::Record => "record",
            Self::Loop => "loop",
        }
    }

    /// The part of an instruction that is in these functions, each inlined into the next: the outermost that has
    /// a part decides, as it says what the inner ones are there for.
    pub(super) fn of<'a>(innermost_first: impl DoubleEndedIterator<Item = &'a str>) -> Self {
        innermost_first.rev().find_map(Self::of_function).unwrap_or(Self::Loop)
    }

    fn of_function(name: &str) -> Option<Self> {
        // Of the loop's own calls for keys, a get makes these for the check alone.
        let checks = [
            "brunt_workload::verify::",
            "KeyGenerator::is_key_of",
            "KeyGenerator::id_of_key",
            "KeyGenerator::value_len",
        ];
        if checks.iter().any(|check| name.contains(check)) {
            Some(Self::Check)
        } else if name.contains("brunt_workload::") {
            Some(Self::Schedule)
        } else if name.contains("brunt_proto::") && name.contains("::decode") {
            Some(Self::Decode)
        } else if name.contains("brunt_proto::") {
            Some(Self::Encode)
        } else if name.contains("brunt_stats::") || name.contains("brunt_engine::state::recording::") {
            Some(Self::Record)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outermost_known_function_decides_the_part() {
        let place = "brunt_engine::traffic::Traffic<C>::place";
        let put = "brunt_proto::out::Out::put";
        let table: [(&[&str], Part); 10] = [
            (&[place], Part::Loop),
            (&["core::slice::index", place], Part::Loop),
            (&["core::slice::index", "brunt_workload::keys::KeyGenerator::write_key", place], Part::Schedule),
            (
                &[put, "<brunt_proto::memcached::text::TextCodec as brunt_proto::Codec>::encode", place],
                Part::Encode,
            ),
            (&["<brunt_proto::memcached::text::TextCodec as brunt_proto::Codec>::decode"], Part::Decode),
            (
                &["<brunt_proto::memcached::text::TextCodec as brunt_proto::Codec>::decode_found", place],
                Part::Decode,
            ),
            (&["brunt_engine::traffic::Traffic<C>::decode"], Part::Loop),
            (
                &[
                    "brunt_workload::keys::KeyGenerator::is_key_of",
                    "brunt_engine::traffic::Traffic<C>::decode",
                ],
                Part::Check,
            ),
            (
                &["brunt_stats::histogram::index", "brunt_engine::state::recording::Recording::record"],
                Part::Record,
            ),
            (&[], Part::Loop),
        ];
        for (functions, expected) in table {
            assert_eq!(Part::of(functions.iter().copied()), expected, "{functions:?}");
        }
    }
}
