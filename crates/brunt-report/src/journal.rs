//! A journal: every interval of a run as it came, so that what was received is there when the program that received it is not.
//!
//! Not a result, which is made when a run ends and stands at the end of its journal. After the magic come frames of a length and a checksum
//! of four bytes each, lowest first, and an entry. Invariant: whatever the bytes are, a journal is read up to its first frame that is not
//! whole, or refused in one sentence; what is read comes to the counts and histograms of the intervals that it holds, exactly, and takes the
//! memory of one result.

use crate::json::{self, run_record};
use crate::stored::StoredResult;
use brunt_stats::agent_requests::AgentTotals;
use brunt_stats::interval::Interval;
use brunt_stats::live_run::{RunSoFar, times_until};
use brunt_stats::recorder::Layout;
use brunt_stats::run_record::RunRecord;
use brunt_stats::store::IntervalStore;
use brunt_stats::summary::Summary;
use brunt_stats::window::RunTimes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::io::{self, ErrorKind, Read};

/// What every journal begins with.
pub const MAGIC: &[u8] = b"brunt journal 1\n";
/// Length and checksum of an entry.
const HEAD_BYTES: usize = 8;

#[derive(Serialize, Deserialize)]
enum Entry<'a> {
    /// The result, in JSON, of a run that has recorded nothing yet.
    Begin(Cow<'a, str>),
    /// The times of its schedule; those that come later hold.
    Times(RunTimes),
    /// What a worker of any host recorded.
    Interval(Box<Cow<'a, Interval>>),
    /// Its result in JSON.
    End(Cow<'a, str>),
}

/// The beginning of a journal, of a run that has recorded nothing yet.
///
/// # Errors
/// It cannot be written as JSON.
pub fn begin(run: &RunSoFar) -> io::Result<Vec<u8>> {
    let frame = entry(&Entry::Begin(text_of(run.summary())?.into()))?;
    Ok([MAGIC, &frame].concat())
}

/// The times of a schedule, as an entry.
///
/// # Errors
/// None in practice.
pub fn times(times: RunTimes) -> io::Result<Vec<u8>> {
    entry(&Entry::Times(times))
}

/// An interval, as an entry.
///
/// # Errors
/// None in practice.
pub fn interval(interval: &Interval) -> io::Result<Vec<u8>> {
    entry(&Entry::Interval(Box::new(Cow::Borrowed(interval))))
}

/// The end of a journal: the result.
///
/// # Errors
/// It cannot be written as JSON.
pub fn end(summary: &Summary) -> io::Result<Vec<u8>> {
    entry(&Entry::End(text_of(summary)?.into()))
}

fn text_of(summary: &Summary) -> io::Result<String> {
    let mut text = Vec::new();
    json::write(summary, &mut text)?;
    String::from_utf8(text).map_err(io::Error::other)
}

fn entry(entry: &Entry<'_>) -> io::Result<Vec<u8>> {
    framed(&postcard::to_stdvec(entry).map_err(io::Error::other)?)
}

/// An entry's bytes with what stands before them.
///
/// # Errors
/// They are longer than an entry may be.
pub fn framed(payload: &[u8]) -> io::Result<Vec<u8>> {
    let length = u32::try_from(payload.len()).map_err(io::Error::other)?;
    Ok([&length.to_le_bytes()[..], &crc32fast::hash(payload).to_le_bytes(), payload].concat())
}

/// The next entry; `None` where it is not whole.
fn next_entry(journal: &mut impl Read) -> io::Result<Option<Entry<'static>>> {
    let mut head = [0; HEAD_BYTES];
    if let Err(error) = journal.read_exact(&mut head) {
        return if error.kind() == ErrorKind::UnexpectedEof { Ok(None) } else { Err(error) };
    }
    let [length, checksum] =
        [0, 4].map(|at| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]));
    // Memory is taken for what is there, whatever the length says.
    let mut payload = Vec::new();
    journal.take(length.into()).read_to_end(&mut payload)?;
    let is_whole = payload.len() as u64 == u64::from(length) && crc32fast::hash(&payload) == checksum;
    Ok(if is_whole { postcard::from_bytes(&payload).ok() } else { None })
}

/// What was received of a run, as far as its journal has been read.
struct Received {
    record: RunRecord,
    layout: Layout,
    store: IntervalStore,
    schedule: Option<RunTimes>,
    until_ns: u64,
    /// Of each agent.
    totals: Vec<AgentTotals>,
}

impl Received {
    /// Nothing yet, of a run whose result says so.
    fn begin(text: &str) -> Result<Self, String> {
        let begun: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let record = run_record(&begun)?;
        let layout = Layout::of(&record.plan);
        let store = IntervalStore::new(&layout).with_slices(record.plan.interval.map(|width| width.0));
        let totals = vec![AgentTotals::default(); record.agents.len()];
        Ok(Self { record, layout, store, schedule: None, until_ns: 0, totals })
    }

    fn set_times(&mut self, times: RunTimes) {
        self.schedule = Some(times);
        self.store.align(times.measure_ns);
        self.store.set_schedule(times.start_ns..times.end_ns);
    }

    fn push(&mut self, interval: &Interval) -> Result<(), String> {
        interval.check(&self.layout).map_err(|why| format!("a journal with {why}"))?;
        let agents = self.record.agents.iter().zip(&mut self.totals);
        for (_, totals) in agents.filter(|(agent, _)| agent.has_worker(interval.worker)) {
            totals.add(interval);
        }
        self.until_ns = self.until_ns.max(interval.end_ns);
        self.store.push(interval);
        Ok(())
    }

    /// The result that it comes to.
    fn cut(mut self, source: &str) -> Result<StoredResult, String> {
        self.store.end_lost();
        let record = &mut self.record;
        for (agent, totals) in record.agents.iter_mut().zip(&self.totals) {
            agent.requests = Some(totals.requests());
        }
        (record.run.intervals, record.is_cut) = (self.store, true);
        (record.run.times, record.run.interrupted) = (times_until(self.until_ns, self.schedule), false);
        let text = text_of(&Summary::build(self.record)).map_err(|error| error.to_string())?;
        StoredResult::parse(&text, source)
    }
}

/// The result that a journal comes to: the one at its end, or else that of what was received, which says so. `source` names it.
///
/// # Errors
/// What is wrong with it, in one sentence; for a user.
pub fn read(journal: &mut impl Read, source: &str) -> Result<StoredResult, String> {
    let named = |error: String| format!("{}: {error}", crate::text::printable(source));
    let unread = |error: io::Error| named(error.to_string());
    let mut magic = Vec::new();
    journal.take(MAGIC.len() as u64).read_to_end(&mut magic).map_err(unread)?;
    if magic != MAGIC {
        return Err(named("no journal".to_owned()));
    }
    let Some(Entry::Begin(text)) = next_entry(journal).map_err(unread)? else {
        return Err(named("a journal without its first entry".to_owned()));
    };
    let mut received = Received::begin(&text).map_err(named)?;
    while let Some(entry) = next_entry(journal).map_err(unread)? {
        match entry {
            Entry::Begin(_) => return Err(named("a journal of two runs".to_owned())),
            Entry::Times(times) => received.set_times(times),
            Entry::Interval(interval) => received.push(&interval).map_err(named)?,
            Entry::End(text) => return StoredResult::parse(&text, source),
        }
    }
    received.cut(source).map_err(named)
}

#[cfg(test)]
mod tests {
    use super::*;
    use brunt_plan::op::{KeyRef, Op, OpKind};
    use brunt_plan::outcome::{Outcome, ReplyKind};
    use brunt_plan::phase::Phase;
    use brunt_plan::resolve::{Host, resolve};
    use brunt_plan::spec::PlanSpec;
    use brunt_stats::check::{CheckId, CheckStatus};
    use brunt_stats::recorder::RecorderSet;
    use brunt_stats::sample::{Sample, Times};

    const MS: u64 = 1_000_000;
    const TIMES: RunTimes = RunTimes {
        start_ns: 1_000 * MS,
        measure_ns: 1_000 * MS,
        end_ns: 2_000 * MS,
        drained_ns: 0,
        prepare_ns: 0,
        epoch_us: None,
    };

    fn record() -> RunRecord {
        let spec = PlanSpec::from_toml("mix = 'get'\ntime = '1s'\nwarmup = '0s'\nrate = 100\n").unwrap();
        let mut record = RunRecord::of(resolve(&spec, &Host::of(vec![0], 1)).unwrap());
        record.run.intervals = IntervalStore::new(&Layout::of(&record.plan));
        record
    }

    /// Ten gets each, of which one is under way when the interval ends.
    fn made() -> Vec<Interval> {
        let mut set = RecorderSet::new(&Layout::of(&record().plan));
        let interval = |nth: u64| {
            let from_ns = (1_000 + 100 * nth) * MS;
            for due_ns in (0..10).map(|request| from_ns + request * 10 * MS) {
                let op = Op::of(OpKind::Get, KeyRef::Id(nth));
                set.scheduled(Phase::Measure, &op);
                set.sent(Phase::Measure, &op, 1, due_ns);
                if due_ns == from_ns {
                    continue;
                }
                let done_ns = due_ns + nth * MS;
                let times = Times {
                    intended_ns: due_ns,
                    picked_ns: due_ns,
                    sent_ns: due_ns,
                    done_ns,
                    ..Times::default()
                };
                let times = Times { polled_ns: done_ns, first_byte_ns: done_ns, ..times };
                let outcome = Outcome::of_reply(OpKind::Get, ReplyKind::Value);
                let sample = Sample { op: OpKind::Get.into(), class: 0, outcome, busy_lag_ns: None, times };
                set.record(Phase::Measure, &sample, 1, 1);
            }
            set.take_interval(0, from_ns, from_ns + 100 * MS)
        };
        (0..5).map(interval).collect()
    }

    fn journal() -> (Vec<u8>, Vec<usize>) {
        let mut bytes = begin(&RunSoFar::new(record(), None, 0, Vec::new())).unwrap();
        bytes.extend(times(TIMES).unwrap());
        let mut ends = vec![bytes.len()];
        for made in made() {
            bytes.extend(interval(&made).unwrap());
            ends.push(bytes.len());
        }
        (bytes, ends)
    }

    /// Wherever it is cut, and whatever stands behind the cut: whole intervals count, to the request.
    #[test]
    fn cut_journals_hold_what_was_received() {
        let (bytes, ends) = journal();
        for (whole, end) in (0..).zip(&ends) {
            let next = ends.get(whole as usize + 1).copied().unwrap_or(*end + 1);
            for (cut, behind) in
                [(*end, &b""[..]), (next - 1, b""), (*end, b"\x05\0\0\0\0\0\0\0hello"), (*end, &[0xff; 40])]
            {
                let held = [&bytes[..cut.min(bytes.len())], behind].concat();
                let summary = read(&mut held.as_slice(), "j").unwrap().summary().unwrap();
                let requests = &summary.total.requests;
                assert_eq!(
                    (requests.scheduled, requests.completed()),
                    (whole * 10, whole * 9),
                    "{cut} {behind:?}"
                );
                assert_eq!((requests.in_flight, summary.window.duration_ns()), (whole, whole * 100 * MS));
                assert!(requests.adds_up());
                let check = summary.status.check(CheckId::Broken).unwrap();
                let until = brunt_plan::quantity::time(whole * 100 * MS);
                let expected = format!(
                    "the journal ends before its run: this is what was received up to {until} of the window"
                );
                assert_eq!((check.status, &check.message), (CheckStatus::Invalid, &expected));
            }
        }
    }

    #[test]
    fn whole_journals_are_their_results() {
        let (mut bytes, _) = journal();
        let summary = |bytes: &[u8]| read(&mut &*bytes, "j").unwrap().summary().unwrap();
        let result = summary(&bytes);
        bytes.extend(end(&result).unwrap());
        assert_eq!(text_of(&summary(&bytes)).unwrap(), text_of(&result).unwrap());
    }

    #[test]
    fn what_is_no_journal_is_refused() {
        let (bytes, _) = journal();
        for (held, expected) in [
            (&b"{}"[..], "j: no journal"),
            (MAGIC, "j: a journal without its first entry"),
            (&bytes[..MAGIC.len() + 100], "j: a journal without its first entry"),
            (&[&bytes[..], &bytes[MAGIC.len()..]].concat(), "j: a journal of two runs"),
        ] {
            assert_eq!(read(&mut &*held, "j").map(|_| ()), Err(expected.to_owned()));
        }
    }
}
