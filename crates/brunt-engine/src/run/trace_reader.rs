//! Reads traces: one thread per file unpacks it, decodes its lines and distributes the requests that they become to sessions.
//!
//! A session that is ahead waits for the others when its blocks are used up, and one that gets little is given blocks that are not full. One
//! that is behind, as its server is slow, gets more blocks, so that the others do not wait for it.
//! Invariants: memory is bounded: that of [`TraceFile`], of [`TraceSchedule`], [`BLOCKS`] blocks per session, and [`SPARE_RECORDS`]; what is
//! due before the time that a feed has reached is in its blocks.

use crate::clock::unix_ns;
use crate::process::start_thread;
use crate::run_error::TraceError;
use crate::state::lane::{FeedProgress, Feeds, TraceFeed};
use crate::trace_file::TraceFile;
use brunt_plan::choice::TraceLayout;
use brunt_plan::plan::{Plan, Trace};
use brunt_plan::shard::{Shard, requests_of};
use brunt_plan::trace_record::TraceRecord;
use brunt_workload::trace::{Block, Record};
use brunt_workload::trace_schedule::{ReplayRun, TraceSchedule};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, park_timeout};
use std::time::Duration;

/// Blocks per session: all of a worker have records of 250 ms at 500 000 per second, longer than a busy host preempts this thread.
const BLOCKS: usize = 16;
/// Records of a block of each session of a worker, together…
const WORKER_RECORDS: usize = 8192;
/// …and of one block.
const BLOCK_RECORDS_MIN: usize = 128;
const BLOCK_RECORDS_MAX: usize = 1024;
/// Records of all blocks that sessions get beyond those, about 50 MB.
const SPARE_RECORDS: usize = 1 << 19;
/// A session with so few blocks gets one that is not full.
const LOW_BLOCKS: usize = 1;
/// How often, by the schedule, sessions that get little are given what there is.
const SUPPLY_NS: u64 = 10_000_000;
/// Polling period of a full ring: a block lasts longer at the highest rates.
const LOOK: Duration = Duration::from_millis(1);

/// The threads that read a plan's traces.
pub(crate) struct TraceReaders {
    threads: Vec<JoinHandle<TraceRecord>>,
    is_over: Arc<AtomicBool>,
}

impl TraceReaders {
    /// Opens every trace of a plan and starts to read for these workers. Returns the feeds of each worker.
    pub(crate) fn start(plan: &Plan, shards: &[Shard]) -> Result<(Self, Vec<Feeds>), TraceError> {
        let is_over = Arc::new(AtomicBool::new(false));
        let mut feeds: Vec<Feeds> = shards.iter().map(|_| Vec::new()).collect();
        let mut threads = Vec::new();
        for (index, class) in plan.classes.iter().enumerate() {
            // Agents read what a controller only leads.
            let is_here = |shard: &Shard| !shard.classes[index].record_takers(class).0.is_empty();
            let Some(trace) = class.trace.as_ref().filter(|_| shards.iter().any(is_here)) else {
                feeds.iter_mut().for_each(|of_worker| of_worker.push(Vec::new().into_iter()));
                continue;
            };
            let file = open(trace)?;
            let (mut ends, mut takers) = (Vec::new(), 1);
            for (shard, of_worker) in shards.iter().zip(&mut feeds) {
                let (own, of) = shard.classes[index].record_takers(class);
                takers = if own.is_empty() { takers } else { of };
                let records = (WORKER_RECORDS / own.len().max(1)).clamp(BLOCK_RECORDS_MIN, BLOCK_RECORDS_MAX);
                let (of_shard, feeds): (Vec<_>, Vec<_>) = own.map(|taker| connect(taker, records)).unzip();
                ends.extend(of_shard);
                of_worker.push(feeds.into_iter());
            }
            // Takers of a host have consecutive numbers.
            debug_assert!(ends.windows(2).all(|pair| pair[1].taker == pair[0].taker + 1));
            let run = ReplayRun {
                class_id: index as u16,
                seed: plan.seed,
                data_seed: plan.data_seed,
                requests: requests_of(plan, index),
                warmup_ns: plan.warmup.longest().0,
                unit_ns: file.layout().unit_ns(),
                unix_s: class.protocol.is_memcached().then(|| unix_ns() / 1_000_000_000),
                tells_misses: file.layout() != TraceLayout::Monitor,
            };
            let reader = Reader {
                prefix: class.keyspace.prefix.clone().into_bytes(),
                schedule: TraceSchedule::new(class, trace, takers, run),
                ends: Ends { ends, spare_records: SPARE_RECORDS, is_over: is_over.clone() },
                trace: trace.clone(),
            };
            let thread = start_thread("brunt-trace", move || reader.read(file));
            threads.push(thread.map_err(|error| TraceError { file: trace.file.clone(), error })?);
        }
        Ok((Self { threads, is_over }, feeds))
    }

    /// Ends reading and returns the records of the files.
    pub(crate) fn end(mut self) -> Vec<TraceRecord> {
        self.is_over.store(true, Ordering::Relaxed);
        // A panic has printed its message already.
        self.threads.drain(..).filter_map(|thread| thread.join().ok()).collect()
    }
}

#[cfg(test)]
impl TraceReaders {
    /// Waits until the whole file is in the blocks.
    pub(crate) fn await_end(&self) {
        while !self.threads.iter().all(JoinHandle::is_finished) {
            park_timeout(LOOK);
        }
    }
}

impl Drop for TraceReaders {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// Checks that every trace of a plan can be opened.
///
/// # Errors
/// The first that cannot be opened.
pub fn check_traces(plan: &Plan) -> Result<(), TraceError> {
    plan.classes.iter().filter_map(|class| class.trace.as_ref()).try_for_each(|trace| open(trace).map(drop))
}

fn open(trace: &Trace) -> Result<TraceFile, TraceError> {
    let opened = TraceFile::open(Path::new(&trace.file), trace.layout, trace.replay.is_some());
    opened.map_err(|error| TraceError { file: trace.file.clone(), error })
}

/// The reader's end of a session's feed.
struct End {
    /// The session's number among those of all hosts.
    taker: u32,
    block: Option<Block>,
    /// Records of a block.
    records: usize,
    /// Full blocks for which the ring has no place yet, in their order.
    waiting: VecDeque<Block>,
    full: rtrb::Producer<Block>,
    spent: rtrb::Consumer<Block>,
    progress: Arc<FeedProgress>,
}

fn connect(taker: u32, records: usize) -> (End, TraceFeed) {
    let (full, full_out) = rtrb::RingBuffer::new(BLOCKS);
    // The empty block of a new session comes back, too.
    let (mut spent, spent_out) = rtrb::RingBuffer::new(BLOCKS + 1);
    for _ in 1..BLOCKS {
        // The ring is new and has room for all.
        let _ = spent.push(Block::new(records));
    }
    let progress = Arc::new(FeedProgress::default());
    let block = Some(Block::new(records));
    let waiting = VecDeque::new();
    let end = End { taker, block, records, waiting, full, spent: spent_out, progress: progress.clone() };
    (end, TraceFeed { full: full_out, spent, progress })
}

impl End {
    /// The session takes no more records.
    fn is_closed(&self) -> bool {
        self.progress.is_sated.load(Ordering::Relaxed) || self.full.is_abandoned()
    }

    fn hand_over(&mut self) {
        self.waiting.extend(self.block.take());
        self.fill_ring();
    }

    fn fill_ring(&mut self) {
        while !self.full.is_full()
            && let Some(block) = self.waiting.pop_front()
        {
            // There is a place.
            let _ = self.full.push(block);
        }
    }

    /// Takes a block that came back, or makes one of so many spare records.
    fn find_block(&mut self, spare_records: &mut usize) -> bool {
        while self.block.is_none() {
            if let Ok(mut block) = self.spent.pop() {
                block.clear();
                // The first block that comes back has no memory.
                self.block = Some(block).filter(Block::has_memory);
            } else if *spare_records >= self.records {
                *spare_records -= self.records;
                self.block = Some(Block::new(self.records));
            } else {
                return false;
            }
        }
        true
    }

    /// Hands over a block that is not full, where the session is about to need it, and says how far the file is read.
    fn keep_supplied(&mut self, reached_ns: u64) {
        self.fill_ring();
        let is_low = self.full.slots() + LOW_BLOCKS >= BLOCKS;
        if is_low && self.block.as_ref().is_some_and(|block| !block.is_empty()) {
            self.hand_over();
            self.find_block(&mut 0);
        }
        if self.waiting.is_empty() && self.block.as_ref().is_some_and(Block::is_empty) {
            self.progress.reached_ns.store(reached_ns, Ordering::Release);
        }
    }
}

/// The ends of all feeds of a host, whose sessions have consecutive numbers.
struct Ends {
    ends: Vec<End>,
    spare_records: usize,
    is_over: Arc<AtomicBool>,
}

impl Ends {
    /// Hands a record to its session, if it is one of this host, waiting for room.
    fn add(&mut self, prefix: &[u8], taker: u32, record: &Record<'_>) {
        let first = self.ends.first().map_or(0, |end| end.taker);
        let Some(index) = taker.checked_sub(first).filter(|index| (*index as usize) < self.ends.len()) else {
            return;
        };
        loop {
            let end = &mut self.ends[index as usize];
            let is_over = end.is_closed() || self.is_over.load(Ordering::Relaxed);
            if is_over || end.block.as_mut().is_some_and(|block| block.push(prefix, record)) {
                return;
            }
            end.hand_over();
            if !end.find_block(&mut self.spare_records) {
                self.keep_supplied(record.due_ns);
                park_timeout(LOOK);
            }
        }
    }

    fn keep_supplied(&mut self, reached_ns: u64) {
        self.ends.iter_mut().for_each(|end| end.keep_supplied(reached_ns));
    }

    /// Hands over the last block of each.
    fn close(&mut self) {
        let mut open: Vec<&mut End> = self.ends.iter_mut().collect();
        loop {
            open.retain_mut(|end| {
                let mut has_last = end.waiting.back().is_some_and(|block| block.is_last);
                if !has_last && end.find_block(&mut self.spare_records) {
                    has_last = true;
                    end.block.iter_mut().for_each(|block| block.is_last = true);
                    end.hand_over();
                }
                end.fill_ring();
                !(has_last && end.waiting.is_empty() || end.is_closed())
            });
            if open.is_empty() || self.is_over.load(Ordering::Relaxed) {
                return;
            }
            park_timeout(LOOK);
        }
    }
}

/// A trace that is being read.
struct Reader {
    prefix: Vec<u8>,
    schedule: TraceSchedule,
    ends: Ends,
    trace: Trace,
}

impl Reader {
    fn read(mut self, mut file: TraceFile) -> TraceRecord {
        loop {
            let is_whole = self.read_file(&mut file);
            self.schedule.record.lines.add(file.counts());
            if !is_whole {
                break;
            }
            self.schedule.record.is_whole = true;
            let Self { prefix, schedule, ends, .. } = &mut self;
            if !schedule.end_round(&mut |taker, record| ends.add(prefix, taker, record)) {
                break;
            }
            match open(&self.trace) {
                Ok(again) => file = again,
                Err(refusal) => {
                    self.schedule.record.error = Some(refusal.error.to_string());
                    break;
                }
            }
        }
        self.ends.close();
        self.schedule.record
    }

    /// Reads to the end of the file. False where it is not reached.
    fn read_file(&mut self, file: &mut TraceFile) -> bool {
        let Self { prefix, schedule, ends, .. } = self;
        let mut reached_ns = 0;
        loop {
            match file.advance(|request| {
                schedule.take(request, &mut |taker, record| ends.add(prefix, taker, record))
            }) {
                Ok(true) => {}
                Ok(false) => return true,
                Err(error) => {
                    schedule.record.error = Some(error.to_string());
                    return false;
                }
            }
            if schedule.reached_ns() >= reached_ns + SUPPLY_NS {
                reached_ns = schedule.reached_ns();
                ends.keep_supplied(reached_ns);
            }
            let is_over = ends.is_over.load(Ordering::Relaxed) || schedule.is_over();
            if is_over || ends.ends.iter().all(End::is_closed) {
                return false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loopback::plan as planned;
    use brunt_plan::op::OpKind;
    use brunt_plan::shard::shards;
    use brunt_workload::trace::TraceCursor;
    use std::collections::BTreeMap;
    use std::path::PathBuf;
    use std::thread::yield_now;

    /// A file of a test's own.
    fn file(name: &str, bytes: &[u8]) -> PathBuf {
        let path = std::env::temp_dir().join(format!("brunt-trace-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        path
    }

    fn plan(path: &std::path::Path, layout: &str) -> Plan {
        let text = format!(
            "trace = '{}'\ntrace-layout = '{layout}'\ntrace-order = 'lines'\nprefix = 'p:'",
            path.display()
        );
        planned(&text)
    }

    /// The shards of a plan with this many workers.
    fn parts(plan: &Plan, of: u32) -> Vec<Shard> {
        shards(&Plan { threads: of, ..plan.clone() })
    }

    /// What a worker gets, as kinds, keys and lengths, until its last block; blocks go back as a session gives them back.
    fn all_of(feed: &mut TraceFeed) -> Vec<(OpKind, String, u32)> {
        let (mut cursor, mut records) = (TraceCursor::new(1), Vec::new());
        while !cursor.is_over() {
            match feed.full.pop() {
                Ok(block) => drop(feed.spent.push(cursor.supply_block(block))),
                Err(_) => yield_now(),
            }
            while cursor.has_next() {
                let taken = cursor.take();
                let key = String::from_utf8(cursor.key(taken.place).to_vec()).unwrap();
                records.push((taken.kind, key, cursor.value(taken.place).1));
                cursor.release_record(taken.place);
            }
        }
        records
    }

    fn feeds(plan: &Plan, of: u32) -> (TraceReaders, Vec<TraceFeed>) {
        let (readers, feeds) = TraceReaders::start(plan, &parts(plan, of)).unwrap();
        (readers, feeds.into_iter().flat_map(|mut of_worker| of_worker.remove(0)).collect())
    }

    /// Far more than all blocks hold, so that each comes round several times.
    #[test]
    fn records_are_dealt_out_in_turn() {
        let count = 100_000;
        let lines: String = (0..count).map(|id| format!("1,1,read,k{id},{}\n", id % 9)).collect();
        let path = file("dealt", lines.as_bytes());
        let (readers, feeds) = feeds(&plan(&path, "mutilate-read-write"), 3);
        let takers: Vec<_> =
            feeds.into_iter().map(|mut feed| std::thread::spawn(move || all_of(&mut feed))).collect();
        for (worker, taker) in takers.into_iter().enumerate() {
            let expected = (worker..count).step_by(3);
            let expected: Vec<_> =
                expected.map(|id| (OpKind::Get, format!("p:k{id}"), id as u32 % 9)).collect();
            assert!(taker.join().unwrap() == expected, "{worker}");
        }
        let record = readers.end().remove(0);
        assert_eq!((record.lines.read, record.records, record.lines.unreadable), (100_000, 100_000, 0));
        assert!(record.is_whole && record.error.is_none());
        std::fs::remove_file(path).unwrap();
    }

    /// However many sessions there are: the same records of each key, in their order, in one of them.
    #[test]
    fn records_of_a_key_stay_together_and_in_order() {
        let count = 30_000;
        let lines: String = (0..count).map(|id| format!("1,1,read,k{},{id}\n", id * id % 301)).collect();
        let path = file("keys", lines.as_bytes());
        for (of, connections) in [(1, 1), (2, 7), (3, 16)] {
            let text = format!(
                "trace = '{}'\ntrace-layout = 'mutilate-read-write'\nconnections = {connections}\nthreads = {of}",
                path.display()
            );
            let (readers, feeds) = TraceReaders::start(&planned(&text), &parts(&planned(&text), of)).unwrap();
            let feeds: Vec<TraceFeed> = feeds.into_iter().flatten().flatten().collect();
            assert_eq!(feeds.len(), connections);
            let takers: Vec<_> =
                feeds.into_iter().map(|mut feed| std::thread::spawn(move || all_of(&mut feed))).collect();
            let mut found: BTreeMap<String, Vec<u32>> = BTreeMap::new();
            for taker in takers {
                let mut own: BTreeMap<String, Vec<u32>> = BTreeMap::new();
                taker
                    .join()
                    .unwrap()
                    .into_iter()
                    .for_each(|(_, key, len)| own.entry(key).or_default().push(len));
                assert!(own.keys().all(|key| !found.contains_key(key)), "a key has one session");
                found.extend(own);
            }
            let mut expected: BTreeMap<String, Vec<u32>> = BTreeMap::new();
            (0..count).for_each(|id| expected.entry(format!("k{}", id * id % 301)).or_default().push(id));
            assert!(found == expected, "{of} {connections}");
            assert_eq!(readers.end()[0].records, 30_000);
        }
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn finished_workers_hold_up_no_other() {
        let lines: String = (0..80_000).map(|id| format!("1,1,read,k{id},1\n")).collect();
        let path = file("sated", lines.as_bytes());
        let (readers, mut feeds) = feeds(&plan(&path, "mutilate-read-write"), 2);
        feeds[0].progress.is_sated.store(true, Ordering::Relaxed);
        assert_eq!(all_of(&mut feeds[1]).len(), 40_000);
        assert_eq!(readers.end()[0].records, 80_000);
        // And a run that ends early ends the reading.
        let (readers, _feeds) = self::feeds(&plan(&path, "mutilate-read-write"), 2);
        assert!(readers.end()[0].records < 80_000);
        std::fs::remove_file(path).unwrap();
    }

    /// As long as there are spare blocks; and it gets its own records afterwards, in their order.
    #[test]
    fn sessions_that_are_behind_hold_up_no_other() {
        let lines: String = (0..200_000).map(|id| format!("1,1,read,k{id},1\n")).collect();
        let path = file("behind", lines.as_bytes());
        let (readers, mut feeds) = feeds(&plan(&path, "mutilate-read-write"), 2);
        assert_eq!(all_of(&mut feeds[1]).len(), 100_000);
        let keys: Vec<String> = all_of(&mut feeds[0]).into_iter().map(|(_, key, _)| key).collect();
        assert!(
            keys.iter().eq((0..200_000).step_by(2).map(|id| format!("p:k{id}")).collect::<Vec<_>>().iter())
        );
        assert_eq!(readers.end()[0].records, 200_000);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn unreadable_lines_are_counted_and_skipped() {
        let long = "x".repeat(12 << 10);
        let key = "k".repeat(249);
        let text = format!(
            "T,App,Op,Key,ValueLen\r\n1,1,write,a,5\r\n\n{long}\n1,1,read,{key},1\n1,1,read,b,2000000"
        );
        let path = file("unreadable", text.as_bytes());
        let (readers, mut feeds) = feeds(&plan(&path, "mutilate-read-write"), 1);
        let records = [(OpKind::Set, "p:a".to_owned(), 5), (OpKind::Get, "p:b".to_owned(), 1_000_000)];
        assert_eq!(all_of(&mut feeds[0]), records);
        let record = readers.end().remove(0);
        assert_eq!((record.lines.read, record.records, record.lines.unreadable, record.cut), (6, 2, 4, 1));
        let first = record.lines.first_unreadable.unwrap();
        assert_eq!((first.line, first.text.as_str()), (1, "T,App,Op,Key,ValueLen\r"));
        std::fs::remove_file(path).unwrap();
    }

    /// What `zstd -19` made of 2 000 lines, twice, with a frame between them that holds a line as it is; and frames to pass over.
    #[test]
    fn packed_files_are_unpacked_frame_by_frame() {
        let packed = include_bytes!("trace_reader/packed.zst");
        let plain = b"7,1,write,plain,3\n";
        let head = [0x28, 0xB5, 0x2F, 0xFD, 0x20, plain.len() as u8, 1 | (plain.len() as u8) << 3, 0, 0];
        let frame = [&head[..], plain];
        let passed_over = [0x5A, 0x2A, 0x4D, 0x18, 3, 0, 0, 0, 1, 2, 3];
        let frames =
            [&passed_over[..], packed, &frame.concat(), &passed_over, &passed_over, packed, &passed_over];
        let path = file("packed.zst", &frames.concat());
        let (readers, mut feeds) = feeds(&plan(&path, "mutilate-read-write"), 1);
        let one = |id: u32| {
            let kind = if id.is_multiple_of(3) { OpKind::Set } else { OpKind::Get };
            (kind, format!("p:key{}", id % 50), id % 7)
        };
        let mut expected: Vec<_> = (0..2_000).map(one).collect();
        expected.push((OpKind::Set, "p:plain".to_owned(), 3));
        expected.extend((0..2_000).map(one));
        assert!(all_of(&mut feeds[0]) == expected);
        assert_eq!(readers.end()[0].records, 4_001);
        // Truncated in the last frame: earlier records were read, and the reason is reported.
        let cut = file("cut.zst", &[packed, &frame.concat()[..], &packed[..packed.len() / 2]].concat());
        let (readers, mut feeds) = self::feeds(&plan(&cut, "mutilate-read-write"), 1);
        assert_eq!(all_of(&mut feeds[0])[..], expected[..2_001]);
        let record = readers.end().remove(0);
        assert!(record.error.is_some() && !record.is_whole, "{record:?}");
        // With a window of 1 KiB and a checksum: of blocks that hold a line each all but the cut one were read, within the window, too.
        let block = [&[(plain.len() as u8) << 3, 0, 0], &plain[..]].concat();
        let blocks = [&[0x28, 0xB5, 0x2F, 0xFD, 4, 0][..], &block, &block, &block[..9]].concat();
        let cut_block = file("cut-block.zst", &blocks);
        let (readers, mut feeds) = self::feeds(&plan(&cut_block, "mutilate-read-write"), 1);
        assert_eq!(all_of(&mut feeds[0])[..], vec![expected[2_000].clone(); 2]);
        assert!(readers.end()[0].error.as_ref().is_some_and(|error| error.contains("cut or damaged")));
        // The last four bytes are a checksum of what was packed.
        let mut damaged = packed.to_vec();
        *damaged.last_mut().unwrap() ^= 1;
        let damaged = file("damaged.zst", &[&damaged[..], packed].concat());
        let (readers, mut feeds) = self::feeds(&plan(&damaged, "mutilate-read-write"), 1);
        assert_eq!(all_of(&mut feeds[0])[..], expected[..2_000]);
        let record = readers.end().remove(0);
        assert!(record.error.is_some_and(|error| error.contains("checksum")) && !record.is_whole);
        [path, cut, cut_block, damaged].iter().for_each(|path| std::fs::remove_file(path).unwrap());
    }

    /// Whatever their names say; and their layout, where they tell it.
    #[test]
    fn packed_files_are_told_by_their_first_bytes() {
        let text = b"key,op,size,op_count\nk,GET,5,3\nk,SET,6,1\nk,POP,6,1\n";
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut packer, text).unwrap();
        let gzip = packer.finish().unwrap();
        let told = |path: &std::path::Path| {
            let plan =
                planned(&format!("trace = '{}'\ntrace-order = 'lines'\nprefix = 'p:'", path.display()));
            let (readers, mut feeds) = feeds(&plan, 1);
            (all_of(&mut feeds[0]), readers.end().remove(0))
        };
        let key = || "p:k".to_owned();
        let expected = [
            (OpKind::Get, key(), 5),
            (OpKind::Get, key(), 5),
            (OpKind::Get, key(), 5),
            (OpKind::Set, key(), 6),
        ];
        let marked = [b"\xef\xbb\xbf", &text[..]].concat();
        for (name, bytes) in
            [("plain.csv", text.to_vec()), ("gzip.csv", gzip.clone()), ("marked.csv", marked)]
        {
            let path = file(name, &bytes);
            let (records, record) = told(&path);
            assert_eq!(records, expected, "{name}");
            assert_eq!((record.lines.read, record.lines.passed_over, record.lines.unreadable), (4, 1, 1));
            std::fs::remove_file(path).unwrap();
        }
        // Cut: what stands before is read.
        let cut = file("cut.gz", &gzip[..gzip.len() - 4]);
        let (records, record) = told(&cut);
        assert!(records == expected && record.error.is_some() && !record.is_whole, "{record:?}");
        let packed = file("packed-without-ending", include_bytes!("trace_reader/packed.zst"));
        let (readers, mut feeds) = feeds(&plan(&packed, "mutilate-read-write"), 1);
        assert_eq!((all_of(&mut feeds[0]).len(), readers.end()[0].records), (2_000, 2_000));
        [cut, packed].iter().for_each(|path| std::fs::remove_file(path).unwrap());
    }

    /// Records of a fixed length, of which the last one is cut, and a line of MONITOR that is longer than what is read at a time.
    #[test]
    fn pieces_of_any_length_are_found() {
        let record =
            |id: u64| [&1_u32.to_le_bytes()[..], &id.to_le_bytes(), &7_u32.to_le_bytes(), &[255; 8]].concat();
        let records: Vec<u8> = (0..20_000).flat_map(record).collect();
        let path = file("oracle", &records[..records.len() - 1]);
        let (readers, mut feeds) = feeds(&plan(&path, "oracle"), 1);
        let held = all_of(&mut feeds[0]);
        assert!(held.len() == 19_999 && held[19_998] == (OpKind::Get, "p:19998".to_owned(), 7));
        assert_eq!(readers.end()[0].error.as_deref(), Some("it ends within record 20000"));
        let head = "1.000000 [0 a:1] \"set\" \"k\" \"";
        let (long, longer) = ("\\x00".repeat(700_000), "x".repeat(9 << 20));
        let monitor = file(
            "monitor",
            format!("OK\n{head}1\"\n{head}{long}\"\n{head}{longer}\"\n{head}22\"").as_bytes(),
        );
        let (readers, mut feeds) = self::feeds(&plan(&monitor, "monitor"), 1);
        let lens: Vec<u32> = all_of(&mut feeds[0]).iter().map(|(.., len)| *len).collect();
        assert_eq!(lens, [1, 700_000, 2]);
        let record = readers.end().remove(0);
        assert_eq!((record.lines.read, record.lines.passed_over, record.lines.unreadable), (5, 1, 1));
        assert_eq!(record.lines.first_unreadable.unwrap().reason, "too many bytes for a line");
        [path, monitor].iter().for_each(|path| std::fs::remove_file(path).unwrap());
    }

    #[test]
    fn files_that_cannot_be_opened_are_refused_beforehand() {
        let (no_zstd, twitter) =
            (file("plain.zst", b"1,1,read,a,5\n"), file("other", b"time,key\n0,q,13,213,4,get,0\n"));
        let (no_gzip, empty) = (file("plain.gz", b"1,1,read,a,5\n"), file("empty", b""));
        let cut = file("short.zst", &include_bytes!("trace_reader/packed.zst")[..40]);
        for (path, reason) in [
            (std::env::temp_dir().join("brunt-no-such-trace"), "No such file"),
            (std::env::temp_dir(), "directory"),
            (no_zstd.clone(), "not a zstd file"),
            (no_gzip.clone(), "not a gzip file"),
            (empty.clone(), "it is empty"),
            (cut.clone(), ""),
            (
                twitter.clone(),
                "no line up to line 2 has the layout mutilate-read-write (brunt help trace-layout); line 1, \"time,key\", has fewer columns than the \
                 layout has",
            ),
        ] {
            let refused = check_traces(&plan(&path, "mutilate-read-write")).unwrap_err();
            assert!(refused.error.to_string().contains(reason), "{}", refused.error);
        }
        let of_any = planned(&format!("trace = '{}'", twitter.display()));
        let refused = check_traces(&of_any).unwrap_err().error.to_string();
        assert!(
            refused.starts_with("it does not tell its layout, as those of meta and monitor do"),
            "{refused}"
        );
        [no_zstd, twitter, no_gzip, empty, cut].iter().for_each(|path| std::fs::remove_file(path).unwrap());
    }
}
