//! A journal: every interval of a run as it came, so that what was received is there when the program that received it is not.
//!
//! Not a result, which is made when a run ends and stands at the end of its journal. After the magic come frames of a length and a checksum
//! of four bytes each, lowest first, and an entry. Invariant: whatever the bytes are, a journal is read up to its first frame that is not
//! whole, or refused in one sentence; what is read comes to the counts and histograms of the intervals that it holds, exactly.

use crate::json::{self, run_record};
use crate::quantity;
use crate::stored::StoredResult;
use brunt_stats::interval::Interval;
use brunt_stats::live_run::RunSoFar;
use brunt_stats::recorder::Layout;
use brunt_stats::store::IntervalStore;
use brunt_stats::summary::Summary;
use brunt_stats::window::RunTimes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::io;

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
    let frame = framed(&Entry::Begin(text_of(run.summary())?.into()))?;
    Ok([MAGIC, &frame].concat())
}

/// The times of a schedule, as an entry.
///
/// # Errors
/// None in practice.
pub fn times(times: RunTimes) -> io::Result<Vec<u8>> {
    framed(&Entry::Times(times))
}

/// An interval, as an entry.
///
/// # Errors
/// None in practice.
pub fn interval(interval: &Interval) -> io::Result<Vec<u8>> {
    framed(&Entry::Interval(Box::new(Cow::Borrowed(interval))))
}

/// The end of a journal: the result.
///
/// # Errors
/// It cannot be written as JSON.
pub fn end(summary: &Summary) -> io::Result<Vec<u8>> {
    framed(&Entry::End(text_of(summary)?.into()))
}

fn text_of(summary: &Summary) -> io::Result<String> {
    let mut text = Vec::new();
    json::write(summary, &mut text)?;
    String::from_utf8(text).map_err(io::Error::other)
}

fn framed(entry: &Entry<'_>) -> io::Result<Vec<u8>> {
    let payload = postcard::to_stdvec(entry).map_err(io::Error::other)?;
    let length = u32::try_from(payload.len()).map_err(io::Error::other)?;
    Ok([&length.to_le_bytes()[..], &crc32fast::hash(&payload).to_le_bytes(), &payload].concat())
}

/// The first entry, and what is behind it; `None` where it is not whole.
fn first_entry(bytes: &[u8]) -> Option<(Entry<'static>, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>()?;
    let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let (payload, rest) = rest.split_at_checked(number(0) as usize)?;
    if crc32fast::hash(payload) != number(4) {
        return None;
    }
    Some((postcard::from_bytes(payload).ok()?, rest))
}

/// The result that a journal comes to: the one at its end, or else that of what was received, with a note that says how far that reaches.
/// `source` names it.
///
/// # Errors
/// What is wrong with it, in one sentence; for a user.
pub fn read(bytes: &[u8], source: &str) -> Result<(StoredResult, Option<String>), String> {
    let named = |error: &str| format!("{}: {error}", crate::text::printable(source));
    let mut rest = bytes.strip_prefix(MAGIC).ok_or_else(|| named("no journal"))?;
    let (mut begun, mut schedule, mut intervals) = (None, None, Vec::new());
    while let Some((entry, behind)) = first_entry(rest) {
        rest = behind;
        match entry {
            Entry::Begin(text) => begun = Some(text),
            Entry::Times(times) => schedule = Some(times),
            Entry::Interval(interval) => intervals.push(interval.into_owned()),
            Entry::End(text) => return StoredResult::parse(&text, source).map(|result| (result, None)),
        }
    }
    let begun = begun.ok_or_else(|| named("a journal without its first entry"))?;
    let begun: Value = serde_json::from_str(&begun).map_err(|error| named(&error.to_string()))?;
    let mut record = run_record(&begun).map_err(|error| named(&error))?;
    let layout = Layout::of(&record.plan);
    let mut store = IntervalStore::new(&layout).with_slices(record.plan.interval.map(|width| width.0));
    if let Some(times) = schedule {
        store.align(times.measure_ns);
        store.set_schedule(times.start_ns..times.end_ns);
    }
    for interval in &intervals {
        interval.check(&layout).map_err(|why| named(&format!("a journal with {why}")))?;
        store.push(interval);
    }
    store.end_lost();
    let until_ns = intervals.iter().map(|interval| interval.end_ns).max().unwrap_or(0);
    record.run.intervals = store;
    let so_far = RunSoFar::new(record, schedule, until_ns, Vec::new());
    let summary = Summary::build(so_far.summary().record.clone());
    let note = format!(
        "the journal ends before its run: this is what was received up to {} of the window, of {}",
        quantity::time(summary.window.duration_ns()),
        quantity::things(intervals.len() as u64, "interval"),
    );
    StoredResult::parse(&text_of(&summary).map_err(|error| named(&error.to_string()))?, source)
        .map(|result| (result, Some(note)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use brunt_plan::op::{KeyRef, Op, OpKind};
    use brunt_plan::outcome::{Outcome, ReplyKind};
    use brunt_plan::phase::Phase;
    use brunt_plan::resolve::{Host, resolve};
    use brunt_plan::spec::PlanSpec;
    use brunt_stats::recorder::RecorderSet;
    use brunt_stats::run_record::RunRecord;
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
                let (result, note) = read(&held, "j").unwrap();
                let summary = result.summary().unwrap();
                let requests = &summary.total.requests;
                assert_eq!(
                    (requests.scheduled, requests.completed()),
                    (whole * 10, whole * 9),
                    "{cut} {behind:?}"
                );
                assert_eq!((requests.in_flight, summary.window.duration_ns()), (whole, whole * 100 * MS));
                assert!(requests.adds_up());
                let note = note.unwrap();
                assert!(
                    note.starts_with("the journal ends before its run: ")
                        && note.contains(&format!("of {whole} interval")),
                    "{note}"
                );
            }
        }
    }

    #[test]
    fn whole_journals_are_their_results() {
        let (mut bytes, _) = journal();
        let summary = read(&bytes, "j").unwrap().0.summary().unwrap();
        bytes.extend(end(&summary).unwrap());
        let (result, note) = read(&bytes, "j").unwrap();
        let mut again = Vec::new();
        json::write(&result.summary().unwrap(), &mut again).unwrap();
        assert_eq!((String::from_utf8(again).unwrap(), note), (text_of(&summary).unwrap(), None));
    }

    #[test]
    fn what_is_no_journal_is_refused() {
        let (bytes, _) = journal();
        for (held, expected) in [
            (&b"{}"[..], "j: no journal"),
            (MAGIC, "j: a journal without its first entry"),
            (&bytes[..MAGIC.len() + 100], "j: a journal without its first entry"),
        ] {
            assert_eq!(read(held, "j").map(|_| ()), Err(expected.to_owned()));
        }
    }
}
