//! Text that another host sent, as it may be shown.
//!
//! Applied where a message is decoded, so that no other code has to think of it. Invariant: what comes out moves no cursor, ends no
//! line, and has at most [`CHARACTERS_MAX`] characters.

use brunt_engine::coordinator::RemoteError;
use brunt_engine::run::RunData;
use brunt_stats::worker_counts::ErrorReplies;
use serde::{Deserialize, Deserializer};

/// The longest text: a reason that quotes a line of a plan.
const CHARACTERS_MAX: usize = 1000;

/// More first words of error replies than any protocol has.
const ERROR_WORDS_MAX: usize = 64;

/// The text without control characters and those that change the direction of writing, as far as it may be long.
pub(crate) fn printable(text: &str) -> String {
    let is_shown = |character: char| {
        !character.is_control()
            && !matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    let shown = |character: char| match character {
        '\n' | '\t' => ' ',
        other if is_shown(other) => other,
        _ => '?',
    };
    text.chars().take(CHARACTERS_MAX).map(shown).collect()
}

/// For a field that is a text.
pub(crate) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    String::deserialize(deserializer).map(|text| printable(&text))
}

/// For why an agent failed.
pub(crate) fn failure<'de, D: Deserializer<'de>>(deserializer: D) -> Result<RemoteError, D::Error> {
    let RemoteError { is_server_error, reason } = RemoteError::deserialize(deserializer)?;
    Ok(RemoteError { is_server_error, reason: printable(&reason) })
}

/// For what an agent counted. What only the controller has to say, of servers and traces, is not taken from it.
pub(crate) fn run_data<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<RunData>, D::Error> {
    let mut data = Box::<RunData>::deserialize(deserializer)?;
    let usage = &mut data.usage;
    let texts = [&mut usage.io_reason, &mut usage.timestamps_reason, &mut data.host.clock.source];
    let texts = texts.into_iter().flatten().chain([&mut usage.io, &mut usage.wait]);
    texts.for_each(|text| *text = printable(text));
    let redirections = &mut data.counts.redirections;
    redirections.unknown_node = redirections.unknown_node.as_deref().map(printable);
    if let Some(first) = &mut data.counts.first_malformed {
        first.reason = printable(&first.reason).into();
    }
    let mut replies = ErrorReplies::default();
    for (word, times) in data.counts.error_replies.rows().into_iter().take(ERROR_WORDS_MAX) {
        replies.count(printable(word).into(), times);
    }
    data.counts.error_replies = replies;
    (data.server_records, data.traces) = (Vec::new(), Vec::new());
    Ok(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_replaced() {
        let table = [
            ("load-1 Größe 1µs", "load-1 Größe 1µs"),
            ("a\x1b[2J\x1b]0;title\x07b\x7f\r", "a?[2J?]0;title?b??"),
            ("one\n\ttwo", "one  two"),
            ("\u{9b}31m \u{202e}txt \u{2066}\u{feff}", "?31m ?txt ??"),
        ];
        for (text, expected) in table {
            assert_eq!(printable(text), expected);
        }
        assert_eq!(printable(&"é".repeat(5000)).chars().count(), CHARACTERS_MAX);
    }
}
