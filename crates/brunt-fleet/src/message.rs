//! What controller and agents say to each other once they know each other.
//!
//! Not how it travels. A version of the protocol is a version of these types: whatever changes them changes
//! [`crate::agent_handshake::VERSION`], and two versions do not talk. Invariants: no message from a controller names a file of the agent's
//! host; what an agent says of itself can be shown (`printable`). Times are CLOCK_MONOTONIC of the agent's host, in nanoseconds.

use crate::rank::Rank;
use brunt_engine::coordinator::{RemoteError, Stop};
use brunt_engine::run::RunData;
use brunt_plan::shard::Portion;
use brunt_plan::trace_record::TraceRecord;
use brunt_stats::interval::Interval;
use brunt_stats::sample::Sample;
use brunt_stats::worker_counts::ErrorReplies;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

/// From the controller to an agent.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToAgent {
    /// The controller is there.
    Alive,
    /// What does your clock show?
    Ping {
        /// Comes back with the answer.
        number: u64,
    },
    /// Connect, and store your share of the data.
    Prepare(Assignment),
    /// Everyone is ready: the schedule begins then.
    Start {
        /// On the agent's clock.
        monotonic_ns: u64,
    },
    /// The schedule ends early.
    Stop(Stop),
    /// The run is off.
    Leave,
    /// You are no part of this fleet.
    Refuse {
        /// For its user.
        reason: String,
    },
}

/// What an agent is to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    /// The plan of all agents together, as a plan file that names no other file.
    pub plan: String,
    /// The password for the servers, which no plan file shows.
    pub password: Option<String>,
    /// Connections to the servers show a certificate, which the agent has.
    pub shows_certificate: bool,
    /// Which of that plan's workers are this agent's: the first.
    pub first_worker: u32,
    /// And how many.
    pub workers: u32,
    /// What of the arrivals the first of them has; those of the others follow it, and are as wide.
    pub portion: Portion,
    /// An earlier run has stored the data.
    pub is_stored: bool,
}

/// From an agent to the controller.
#[derive(Debug, Serialize, Deserialize)]
pub enum FromAgent {
    /// The agent is there.
    Alive,
    /// Who it is: the first thing that it says.
    AgentInfo(AgentInfo),
    /// What its clock shows.
    Pong {
        /// Of the question.
        number: u64,
        /// When it was answered.
        monotonic_ns: u64,
    },
    /// Every connection is established and every key of its part is confirmed.
    Ready,
    /// One of its workers recorded this.
    Interval(Box<Interval>),
    /// Its part is over.
    Ended {
        /// Everything but the intervals and the raw samples.
        #[serde(deserialize_with = "run_data")]
        data: Box<RunData>,
        /// These.
        samples: Vec<Sample>,
    },
    /// Its part came to nothing.
    Failed(#[serde(deserialize_with = "failure")] RemoteError),
}

/// Who an agent is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentInfo {
    /// The name of its host.
    #[serde(deserialize_with = "text")]
    pub host: String,
    /// Its version of brunt.
    #[serde(deserialize_with = "text")]
    pub version: String,
    /// How many workers it takes on where nothing else is asked for; at least 1.
    pub threads: u32,
    /// How much of the load each of them takes on, beside workers elsewhere; at least 1.
    pub weight: u32,
    /// Its number in a fleet that it joins.
    pub rank: Option<Rank>,
}

/// A message as bytes.
///
/// # Errors
/// It cannot be written; for a user, behind the name of the recipient.
pub fn encode<M: Serialize>(message: &M) -> Result<Vec<u8>, String> {
    postcard::to_stdvec(message).map_err(|error| format!("cannot be sent a message ({error})"))
}

/// A message from bytes, which must hold nothing else.
///
/// # Errors
/// They cannot be read; for a user, behind the name of the sender.
pub fn decode<M: DeserializeOwned>(bytes: &[u8]) -> Result<M, String> {
    match postcard::take_from_bytes(bytes) {
        Ok((message, [])) => Ok(message),
        Ok((_, rest)) => Err(format!("sent a message with {} bytes behind its end", rest.len())),
        Err(_) => Err("sent a message that cannot be read".to_owned()),
    }
}

/// The longest text: a reason that quotes a line of a plan.
const CHARACTERS_MAX: usize = 1000;

/// More first words of error replies than any protocol has.
const ERROR_WORDS_MAX: usize = 64;

/// Text that another host sent, as it may be shown: it moves no cursor and ends no line. So every text of an agent is decoded, and no other
/// code has to think of it: the text without control characters and those that change the direction of writing, as far as it may be long.
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
fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    String::deserialize(deserializer).map(|text| printable(&text))
}

/// For why an agent failed.
fn failure<'de, D: Deserializer<'de>>(deserializer: D) -> Result<RemoteError, D::Error> {
    let RemoteError { is_server_error, reason } = RemoteError::deserialize(deserializer)?;
    Ok(RemoteError { is_server_error, reason: printable(&reason) })
}

/// For what an agent counted. What only the controller has to say, of servers, is not taken from it.
fn run_data<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<RunData>, D::Error> {
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
    for TraceRecord { class, file, lines, error, .. } in &mut data.traces {
        let of_line =
            lines.first_unreadable.iter_mut().flat_map(|first| [&mut first.text, &mut first.reason]);
        let texts = [class, file].into_iter().chain(of_line).chain(error);
        texts.for_each(|text| *text = printable(text));
    }
    data.server_records = Vec::new();
    Ok(data)
}

#[cfg(test)]
mod tests {
    use super::*;
    use brunt_plan::op::OpKind;
    use brunt_plan::outcome::{Outcome, ReplyKind};
    use brunt_stats::connection::FirstError;
    use brunt_stats::sample::Times;

    /// Changing these bytes changes the protocol, and needs another version of it.
    #[test]
    fn messages_have_the_bytes_of_their_version() {
        let assignment = Assignment {
            plan: "seed = 1".to_owned(),
            password: Some("pw".to_owned()),
            shows_certificate: true,
            first_worker: 3,
            workers: 300,
            portion: Portion { first: 6, width: 2, of: 700 },
            is_stored: true,
        };
        let rank = Some(Rank { index: 2, of: 4, attempt: 1 });
        let info = AgentInfo { host: "a".to_owned(), version: "0.1".to_owned(), threads: 2, weight: 3, rank };
        let to_agent: [(ToAgent, &[u8]); 7] = [
            (ToAgent::Alive, &[0]),
            (ToAgent::Ping { number: 300 }, &[1, 0xac, 2]),
            (ToAgent::Prepare(assignment), b"\x02\x08seed = 1\x01\x02pw\x01\x03\xac\x02\x06\x02\xbc\x05\x01"),
            (ToAgent::Start { monotonic_ns: 5 }, &[3, 5]),
            (ToAgent::Stop(Stop::Interrupted), &[4, 1]),
            (ToAgent::Leave, &[5]),
            (ToAgent::Refuse { reason: "x".to_owned() }, b"\x06\x01x"),
        ];
        for (message, bytes) in to_agent {
            assert_eq!(encode(&message).unwrap(), bytes, "{message:?}");
            assert_eq!(format!("{:?}", decode::<ToAgent>(bytes).unwrap()), format!("{message:?}"));
        }
        let from_agent: [(FromAgent, &[u8]); 5] = [
            (FromAgent::Alive, &[0]),
            (FromAgent::AgentInfo(info), b"\x01\x01a\x030.1\x02\x03\x01\x02\x04\x01"),
            (FromAgent::Pong { number: 1, monotonic_ns: 2 }, &[2, 1, 2]),
            (FromAgent::Ready, &[3]),
            (
                FromAgent::Failed(RemoteError { is_server_error: true, reason: "x".to_owned() }),
                b"\x06\x01\x01x",
            ),
        ];
        for (message, bytes) in from_agent {
            assert_eq!(encode(&message).unwrap(), bytes, "{message:?}");
            assert_eq!(format!("{:?}", decode::<FromAgent>(bytes).unwrap()), format!("{message:?}"));
        }
    }

    #[test]
    fn malformed_messages_are_rejected() {
        for bytes in [&[][..], &[9], &[1], &[4, 2], &[2, 0xff, 0xff, 0xff, 0xff, 0x0f]] {
            let why = decode::<ToAgent>(bytes).unwrap_err();
            assert_eq!(why, "sent a message that cannot be read", "{bytes:?}");
        }
        let why = decode::<ToAgent>(&[0, 0]).unwrap_err();
        assert_eq!(why, "sent a message with 1 bytes behind its end");
    }

    #[test]
    fn run_results_survive_encoding() {
        let mut data = RunData::default();
        (data.counts.samples_overflow, data.counts.first_error) = (7, Some(FirstError::new(b"no")));
        let times = Times { done_ns: 9, ..Times::default() };
        let outcome = Outcome::of_reply(OpKind::Get, ReplyKind::Value);
        let sample = Sample { op: OpKind::Get.into(), class: 0, outcome, busy_lag_ns: None, times };
        let message = FromAgent::Ended { data: Box::new(data.clone()), samples: vec![sample] };
        let FromAgent::Ended { data: found, samples } = decode(&encode(&message).unwrap()).unwrap() else {
            panic!("another message")
        };
        assert_eq!((found.counts, samples), (data.counts, vec![sample]));
    }

    /// Whatever an agent says, no terminal and no document gets its control characters.
    #[test]
    fn text_of_agents_is_printable() {
        let bad = || "a\x1b[2J\n".to_owned();
        let info = AgentInfo { host: bad(), version: bad(), threads: 1, weight: 1, rank: None };
        let mut data = RunData::default();
        (data.usage.io, data.usage.io_reason, data.host.clock.source) = (bad(), Some(bad()), Some(bad()));
        data.counts.redirections.unknown_node = Some(bad());
        let messages = [
            FromAgent::AgentInfo(info),
            FromAgent::Failed(RemoteError { is_server_error: false, reason: bad() }),
            FromAgent::Ended { data: Box::new(data), samples: Vec::new() },
        ];
        for message in messages {
            let decoded = format!("{:?}", decode::<FromAgent>(&encode(&message).unwrap()).unwrap());
            let escaped = |text: &str| text.contains("u{1b}") || text.contains("\\n");
            assert!(escaped(&format!("{message:?}")) && !escaped(&decoded), "{decoded}");
        }
    }

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
