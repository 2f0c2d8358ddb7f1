//! `brunt-bench draw`: takes one session through a closed loop of gets without a worker: draws keys, writes their text,
//! compares it, and gives the slots back.
//!
//! Not a timer, and no server, whose table of replies would have to hold the whole data set: what a get asks of
//! `brunt-workload` can be counted here for a data set of any size. Invariant: it fails unless every key that was written
//! is recognized as the one that was drawn.

use crate::shape::Shape;
use brunt_engine::in_process_run::Interface;
use brunt_plan::op::KeyRef;
use brunt_plan::outcome::{Outcome, OutcomeClass, ReplyKind};
use brunt_plan::plan::Plan;
use brunt_plan::popularity::Popularity;
use brunt_plan::shard::{Portion, StreamPart};
use brunt_workload::keys::KeyGenerator;
use brunt_workload::session::{Choices, Next, PhaseTimes, Session, SessionSpec};
use clap::{Args, value_parser};

/// Options of the command.
#[derive(Clone, Debug, Args)]
pub(crate) struct Draw {
    /// How many keys there are
    #[arg(long, value_parser = value_parser!(u64).range(1..=KEYS_MAX))]
    keys: u64,
    /// As in a plan
    #[arg(long, default_value = "uniform")]
    popularity: Popularity,
    /// How many gets to make
    #[arg(long, value_parser = value_parser!(u64).range(1..=OPS_MAX))]
    ops: u64,
}

/// Their digits fit any key of 30 bytes.
const KEYS_MAX: u64 = 1 << 53;
/// More would take too long to wait for.
const OPS_MAX: u64 = 1 << 53;
/// Of the session.
const SHAPE: Shape = Shape { connections: 16, depth: 1, interface: Interface::UNBOUNDED };

impl Draw {
    /// Draws gets and reports their number.
    ///
    /// # Errors
    /// A key was not the one that was drawn.
    pub(crate) fn run(self) -> Result<String, String> {
        let mut client = Client::new(&self.plan());
        for number in 0..self.ops {
            if !client.get() {
                return Err(format!("get {number} wrote another key than it drew"));
            }
        }
        Ok(format!("{} keys drawn, the last one {}", self.ops, client.key.escape_ascii()))
    }

    /// As `worker` has it, but for the keys.
    fn plan(&self) -> Plan {
        let Self { keys, popularity, .. } = self;
        SHAPE.plan(1, &format!("mix = 'get'\nkeys = {keys}\npopularity = '{popularity}'"))
    }
}

/// A session, and what it writes keys with.
struct Client {
    session: Session,
    keyspace: KeyGenerator,
    key: Vec<u8>,
    now_ns: u64,
}

impl Client {
    fn new(plan: &Plan) -> Self {
        let class = &plan.classes[0];
        let session = Session::new(SessionSpec {
            class_id: 0,
            session_id: 0,
            class,
            part: StreamPart { index: 0, of: 1 },
            portion: Portion { first: 0, width: 1, of: 1 },
            connections: SHAPE.connections as u32,
            budget: None,
            records: 0,
            seed: plan.seed,
            verify: 0.0,
            choices: Choices::of_session(class, StreamPart { index: 0, of: 1 }, plan.data_seed),
            copies: 1,
            begins_taken: false,
            window: PhaseTimes { start_ns: 0, measure_ns: 0, end_ns: u64::MAX },
        });
        let keyspace = KeyGenerator::new(&plan.data_sets()[0], plan.data_seed);
        let key = vec![0; keyspace.key_len_max()];
        Self { session, keyspace, key, now_ns: 0 }
    }

    /// One get from its draw to its end, without network. Is the written key the drawn one? This function is
    /// counted.
    #[inline(never)]
    fn get(&mut self) -> bool {
        let Next::Get { id, connection, .. } = self.session.take_next() else { return false };
        let key = &mut self.key[..self.keyspace.key_len(id)];
        self.keyspace.write_key_to(id, key);
        let is_right = self.keyspace.is_key_of(id, key);
        self.now_ns += 1_000;
        let outcome = Outcome { class: OutcomeClass::Hit, reply: ReplyKind::Value };
        self.session.record_outcome(KeyRef::Id(id), outcome);
        self.session.release(connection.unwrap_or(0), self.now_ns);
        is_right
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parsed;

    #[test]
    fn command_lines() {
        for (words, expected) in [
            ("--keys 7 --ops 9", ""),
            ("--ops 9 --popularity zipf --keys 7", ""),
            ("--ops 9", "--keys <KEYS>"),
            ("--keys 9", "--ops <OPS>"),
            ("--keys 0 --ops 9", "invalid value '0' for '--keys <KEYS>': 0 is not in 1..=9007199254740992"),
            ("--keys 9 --ops x", "invalid value 'x' for '--ops <OPS>'"),
            ("--keys 9 --ops 9 --popularity often", "invalid value 'often' for '--popularity"),
        ] {
            match parsed(words) {
                Ok(Draw { ops, .. }) => assert_eq!((ops, expected), (9, ""), "{words}"),
                Err(message) => {
                    assert!(!expected.is_empty() && message.contains(expected), "{words}: {message}");
                }
            }
        }
    }

    #[test]
    fn keys_of_every_size_of_a_data_set_are_drawn() {
        for (keys, popularity) in
            [(1, "uniform"), (1_000, "zipf"), (1_000_000_000, "uniform"), (1_000_000_000, "zipf")]
        {
            let said = Draw { keys, popularity: popularity.parse().unwrap(), ops: 1_000 }.run();
            assert!(said.as_ref().is_ok_and(|said| said.starts_with("1000 keys drawn, ")), "{said:?}");
        }
    }
}
