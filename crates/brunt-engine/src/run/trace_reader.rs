//! Reads traces: one thread per file unpacks it, decodes its lines and distributes the records to workers.
//!
//! Record `i` of the file goes to worker `i` modulo the
//! number of all workers of a run, so that a number of requests is divided evenly; a fast worker waits for the
//! others when its blocks are used up. Invariant: memory is bounded: that of
//! [`TraceFile`], and [`BLOCKS`] blocks per worker.

use crate::process::start_thread;
use crate::run_error::TraceError;
use crate::state::lane::{Feeds, TraceFeed};
use crate::trace_file::TraceFile;
use brunt_plan::mix::Mix;
use brunt_plan::plan::{Plan, Trace};
use brunt_plan::recorded_request::RecordedRequest;
use brunt_plan::shard::{Shard, StreamPart};
use brunt_stats::run_record::{LineCounts, TraceRecord};
use brunt_workload::trace::{Block, KEY_LEN_MAX, Record, kind_in_mix};
use brunt_workload::trace_decoder::LineError;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, park_timeout};
use std::time::Duration;

/// Blocks per worker: records of 30 ms at 500 000 per second, longer than a busy host preempts this thread.
const BLOCKS: usize = 16;
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
            let Some(trace) = &class.trace else {
                feeds.iter_mut().for_each(|of_worker| of_worker.push(None));
                continue;
            };
            let refused = |error| TraceError { file: trace.file.clone(), error };
            let lines = open(trace).map_err(refused)?;
            let (mut ends, mut workers) = (Vec::new(), 1);
            for (shard, of_worker) in shards.iter().zip(&mut feeds) {
                let slice = &shard.classes[index];
                let connected = (!slice.connections.is_empty()).then(|| connect(slice.part));
                let (end, feed) = connected.unzip();
                workers = end.as_ref().map_or(workers, |_| u64::from(slice.part.of));
                ends.extend(end);
                of_worker.push(feed);
            }
            debug_assert!(
                ends.windows(2).all(|pair| pair[1].index == pair[0].index + 1),
                "workers of a host are neighbours"
            );
            let reader = Reader {
                prefix: class.keyspace.prefix.clone().into_bytes(),
                mix: class.mix.clone(),
                workers,
                ends,
                is_over: is_over.clone(),
                record: TraceRecord::new(&class.name, trace),
            };
            let thread = start_thread("brunt-trace", move || reader.read(lines));
            threads.push(thread.map_err(refused)?);
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
    let traces = plan.classes.iter().filter_map(|class| class.trace.as_ref());
    traces.into_iter().try_for_each(|trace| {
        open(trace).map(drop).map_err(|error| TraceError { file: trace.file.clone(), error })
    })
}

fn open(trace: &Trace) -> io::Result<TraceFile> {
    TraceFile::open(Path::new(&trace.file), trace.layout)
}

/// The reader's end of a worker's feed.
struct End {
    /// The worker's number.
    index: u64,
    block: Option<Block>,
    full: rtrb::Producer<Block>,
    spent: rtrb::Consumer<Block>,
    is_sated: Arc<AtomicBool>,
}

fn connect(part: StreamPart) -> (End, TraceFeed) {
    let (full, full_out) = rtrb::RingBuffer::new(BLOCKS);
    // The empty block of a new session comes back, too.
    let (mut spent, spent_out) = rtrb::RingBuffer::new(BLOCKS + 1);
    for _ in 1..BLOCKS {
        // The ring is new and has room for all.
        let _ = spent.push(Block::new());
    }
    let is_sated = Arc::new(AtomicBool::new(false));
    let end = End {
        index: u64::from(part.index),
        block: Some(Block::new()),
        full,
        spent: spent_out,
        is_sated: is_sated.clone(),
    };
    (end, TraceFeed { full: full_out, spent, is_sated })
}

impl End {
    /// The worker takes no more records.
    fn is_closed(&self) -> bool {
        self.is_sated.load(Ordering::Relaxed) || self.full.is_abandoned()
    }

    /// Adds a record to the current block, waiting for room.
    fn add(&mut self, prefix: &[u8], record: &Record<'_>, is_over: &AtomicBool) {
        while !self.is_closed() && !is_over.load(Ordering::Relaxed) {
            match self.block.as_mut().map(|block| block.push(prefix, record)) {
                Some(true) => return,
                Some(false) => self.hand_over(),
                None => self.find_block(),
            }
        }
    }

    fn hand_over(&mut self) {
        // There are no more blocks than the ring has places.
        let _ = self.block.take().map(|block| self.full.push(block));
    }

    fn find_block(&mut self) {
        match self.spent.pop() {
            // The first block that comes back has no memory.
            Ok(block) if block.has_memory() => {
                let mut block = block;
                block.clear();
                self.block = Some(block);
            }
            Ok(_) => {}
            Err(_) => park_timeout(LOOK),
        }
    }

    /// Hands over the last block.
    fn close(&mut self, is_over: &AtomicBool) {
        while self.block.is_none() && !self.is_closed() && !is_over.load(Ordering::Relaxed) {
            self.find_block();
        }
        if let Some(block) = &mut self.block {
            block.is_last = true;
        }
        self.hand_over();
    }
}

/// A trace that is being read.
struct Reader {
    prefix: Vec<u8>,
    mix: Mix,
    /// Number of workers of the whole run.
    workers: u64,
    ends: Vec<End>,
    is_over: Arc<AtomicBool>,
    record: TraceRecord,
}

impl Reader {
    fn read(mut self, mut file: TraceFile) -> TraceRecord {
        loop {
            match file.advance(|request| self.take(request)) {
                Ok(true) => {}
                Ok(false) => {
                    self.record.is_whole = true;
                    break;
                }
                Err(error) => {
                    self.record.error = Some(error.to_string());
                    break;
                }
            }
            if self.is_over.load(Ordering::Relaxed) || self.ends.iter().all(End::is_closed) {
                break;
            }
        }
        for end in &mut self.ends {
            end.close(&self.is_over);
        }
        let LineCounts { lines, passed_over, unsupported, unreadable, first_unreadable } =
            file.counts().clone();
        TraceRecord { lines, passed_over, unsupported, unreadable, first_unreadable, ..self.record }
    }

    fn take(&mut self, request: &RecordedRequest<'_>) -> Result<(), LineError> {
        let key = request.key;
        if key.len() > KEY_LEN_MAX - self.prefix.len() || !key.iter().all(u8::is_ascii_graphic) {
            return Err(LineError::Key);
        }
        let kind = kind_in_mix(request.kind, &self.mix);
        let (value_len, longest) = (request.value_len.unwrap_or(0), u64::from(Trace::VALUE_BYTES_MAX));
        for _ in 0..request.repeats {
            self.record.substituted += u64::from(kind != request.kind);
            self.record.cut += u64::from(value_len > longest);
            let worker = self.record.records % self.workers;
            self.record.records += 1;
            if let Some(end) = end_of(&mut self.ends, worker) {
                let record = Record { kind, key, value_len: value_len.min(longest) as u32 };
                end.add(&self.prefix, &record, &self.is_over);
            }
        }
        Ok(())
    }
}

/// The feed of a worker, if it is local; local workers have consecutive numbers.
fn end_of(ends: &mut [End], worker: u64) -> Option<&mut End> {
    let first = ends.first()?.index;
    ends.get_mut(worker.checked_sub(first)? as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loopback::plan as planned;
    use brunt_plan::op::OpKind;
    use brunt_plan::shard::shards;
    use brunt_workload::trace::Replay;
    use std::path::PathBuf;
    use std::thread::yield_now;

    /// A file of a test's own.
    fn file(name: &str, bytes: &[u8]) -> PathBuf {
        let path = std::env::temp_dir().join(format!("brunt-trace-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        path
    }

    fn plan(path: &std::path::Path, layout: &str) -> Plan {
        let text = format!("trace = '{}'\ntrace-layout = '{layout}'\nprefix = 'p:'", path.display());
        planned(&text)
    }

    /// The shards of a plan with this many workers.
    fn parts(plan: &Plan, of: u32) -> Vec<Shard> {
        shards(&Plan { threads: of, ..plan.clone() })
    }

    /// What a worker gets, as kinds, keys and lengths, until its last block; blocks go back as a session gives them back.
    fn all_of(feed: &mut TraceFeed) -> Vec<(OpKind, String, u32)> {
        let (mut replay, mut records) = (Replay::new(1), Vec::new());
        while !replay.is_over() {
            match feed.full.pop() {
                Ok(block) => assert!(feed.spent.push(replay.supply_block(block)).is_ok()),
                Err(_) => yield_now(),
            }
            while replay.has_next() {
                let taken = replay.take();
                let key = String::from_utf8(replay.key(taken.place).to_vec()).unwrap();
                records.push((taken.kind, key, replay.value(taken.place).1));
                replay.release_record(taken.place);
            }
        }
        records
    }

    fn feeds(plan: &Plan, of: u32) -> (TraceReaders, Vec<TraceFeed>) {
        let (readers, feeds) = TraceReaders::start(plan, &parts(plan, of)).unwrap();
        (readers, feeds.into_iter().map(|mut of_worker| of_worker.remove(0).unwrap()).collect())
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
        assert_eq!((record.lines, record.records, record.unreadable), (100_000, 100_000, 0));
        assert!(record.is_whole && record.error.is_none());
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn finished_workers_hold_up_no_other() {
        let lines: String = (0..80_000).map(|id| format!("1,1,read,k{id},1\n")).collect();
        let path = file("sated", lines.as_bytes());
        let (readers, mut feeds) = feeds(&plan(&path, "mutilate-read-write"), 2);
        feeds[0].is_sated.store(true, Ordering::Relaxed);
        assert_eq!(all_of(&mut feeds[1]).len(), 40_000);
        assert_eq!(readers.end()[0].records, 80_000);
        // And a run that ends early ends the reading.
        let (readers, _feeds) = self::feeds(&plan(&path, "mutilate-read-write"), 2);
        assert!(readers.end()[0].records < 80_000);
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
        assert_eq!((record.lines, record.records, record.unreadable, record.cut), (6, 2, 4, 1));
        let first = record.first_unreadable.unwrap();
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
        // The last four bytes are a checksum of what was packed.
        let mut damaged = packed.to_vec();
        *damaged.last_mut().unwrap() ^= 1;
        let damaged = file("damaged.zst", &[&damaged[..], packed].concat());
        let (readers, mut feeds) = self::feeds(&plan(&damaged, "mutilate-read-write"), 1);
        assert_eq!(all_of(&mut feeds[0])[..], expected[..2_000]);
        let record = readers.end().remove(0);
        assert!(record.error.is_some_and(|error| error.contains("checksum")) && !record.is_whole);
        [path, cut, damaged].iter().for_each(|path| std::fs::remove_file(path).unwrap());
    }

    /// Whatever their names say; and their layout, where they tell it.
    #[test]
    fn packed_files_are_told_by_their_first_bytes() {
        let text = b"key,op,size,op_count\nk,GET,5,3\nk,SET,6,1\nk,POP,6,1\n";
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut packer, text).unwrap();
        let gzip = packer.finish().unwrap();
        let told = |path: &std::path::Path| {
            let plan = planned(&format!("trace = '{}'\nprefix = 'p:'", path.display()));
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
        for (name, bytes) in [("plain.csv", text.to_vec()), ("gzip.csv", [&gzip[..], b""].concat())] {
            let path = file(name, &bytes);
            let (records, record) = told(&path);
            assert_eq!(records, expected, "{name}");
            assert_eq!((record.lines, record.passed_over, record.unreadable), (4, 1, 1));
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
        assert_eq!((record.lines, record.passed_over, record.unreadable), (5, 1, 1));
        assert_eq!(record.first_unreadable.unwrap().reason, "too many bytes for a line");
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
