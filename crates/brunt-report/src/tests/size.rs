//! How long a result is: of ten minutes and of a day of seven kinds of operations at 20 000 requests a second.
//!
//! Not what is in it. The made-up response times are spread over a factor of twenty, as those of a busy server are, with a tail.

use super::json_text_of;
use super::run::{Run, host, times};
use crate::stored::StoredResult;
use brunt_plan::op::OpKind;
use brunt_plan::outcome::{Outcome, ReplyKind};
use brunt_plan::phase::Phase;
use brunt_plan::resolve::resolve;
use brunt_plan::spec::PlanSpec;
use brunt_stats::interval::{CpuTime, Interval, WorkerTime};
use brunt_stats::recorder::{Layout, RecorderSet};
use brunt_stats::run_record::{RunData, RunRecord};
use brunt_stats::sample::Sample;
use brunt_stats::server_stats::{ServerRecord, Snapshot};
use brunt_stats::store::IntervalStore;
use brunt_stats::summary::Summary;
use brunt_stats::timeline::row_ns_after;
use brunt_stats::window::RunTimes;

const S: u64 = 1_000_000_000;
const RATE: u64 = 20_000;
const KINDS: &str = "get=4,set=1,mget=1,gets=1,incr=1,delete=1,touch=1";
/// The longest result file of one run.
const BYTES_MAX: usize = 2_000_000;

/// What a memcached says of itself that is kept.
const SAID: &str = "cmd_get cmd_set cmd_touch get_hits get_misses cas_hits cas_badval cas_misses incr_hits incr_misses decr_hits \
                    decr_misses delete_hits delete_misses touch_hits touch_misses evictions total_items total_connections \
                    listen_disabled_num rusage_user rusage_system curr_items bytes limit_maxbytes curr_connections threads uptime pid";

/// A run of so many slices of `slice_s` seconds each, against so many servers.
fn run(slices: u64, slice_s: u64, servers: u64) -> Run {
    let seconds = slices * slice_s;
    let names: Vec<String> = (0..servers).map(|server| format!("'cache-{server}:11211'")).collect();
    let names = names.join(", ");
    let spec = format!(
        "server = [{names}]\nconnections = {servers}\nrate = {RATE}\nmix = '{KINDS}'\ntime = '{seconds}s'\nwarmup = 0\npreload = false\n"
    );
    let plan = resolve(&PlanSpec::from_toml(&spec).unwrap(), &host()).unwrap();
    let layout = Layout::of(&plan);
    let mut store = IntervalStore::new(&layout);
    store.align(S);
    store.set_schedule(S..S + seconds * S);
    let mut set = RecorderSet::new(&layout);
    set.set_window(S, S + seconds * S);
    let mut state = 1_u64;
    let kinds: Vec<OpKind> = layout.ops[0].iter().map(|op| op.kind()).collect();
    for slice in 0..slices {
        let start_ns = S + slice * slice_s * S;
        // A part of the requests of a second, each so many times, and less of a long slice.
        let times_each: u32 = match (slice_s, servers) {
            (11.., _) => 400,
            (_, 2..) => 40,
            _ => 4,
        };
        let count = RATE * slice_s / u64::from(times_each);
        for _ in 0..count {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (spread, kind) = ((state >> 20) % 100_000, kinds[(state >> 50) as usize % kinds.len()]);
            let took_ns = 40_000 + (spread * spread / 13_000) + 500_000_000 / (100_000 - spread);
            let times = times(start_ns, spread % 700, spread % 700 + 1_000, took_ns, took_ns);
            let outcome = Outcome::of_reply(kind, ReplyKind::None);
            let outcome = Outcome { class: brunt_plan::outcome::OutcomeClass::Done, ..outcome };
            let sample =
                Sample { op: kind.into(), class: 0, outcome, busy_lag_ns: Some(spread % 3_000), times };
            let account = set.row_handle(Phase::Measure, 0, kind.into());
            set.scheduled_many(account, times_each);
            set.sent_many(account, times_each, times_each, times.sent_ns);
            set.record_many(account, &sample, 1, 1, times_each);
        }
        let (length_ns, part) = (slice_s * S, start_ns / S % 97 + 1);
        let worker_time =
            Some(WorkerTime { busy_ns: length_ns / part, run_delay_ns: Some(length_ns / 9_001 / part) });
        let cpu_time = Some(CpuTime { total_ns: 8 * length_ns, stolen_ns: length_ns / 77 / part });
        let interval = set.take_interval(0, start_ns, start_ns + length_ns);
        store.push(&Interval { worker_time, cpu_time, ..interval });
    }
    let mut said = ServerRecord::default();
    let period_ns = row_ns_after(seconds * S, S);
    for number in 0..=seconds * S / period_ns {
        let count = (1_000_000 + number * 20_000).to_string();
        let rows = SAID.split(' ').enumerate().map(|(index, name)| {
            // A third of what it says changes.
            (name, if index % 3 == 0 { count.as_str() } else { "1234567" })
        });
        let at_ns = S + number * period_ns;
        said.push(Snapshot::new(at_ns, at_ns, rows));
    }
    said.prepared = said.snapshots().first().cloned();
    let end_ns = S + seconds * S;
    let times =
        RunTimes { start_ns: S, measure_ns: S, end_ns, drained_ns: end_ns, prepare_ns: 0, epoch_us: None };
    let summary = Summary::build(RunRecord {
        run: RunData {
            intervals: store,
            times,
            server_records: vec![said; servers as usize],
            ..RunData::default()
        },
        server: names,
        ..RunRecord::of(plan)
    });
    Run { summary, measured: Vec::new(), warm_up: Vec::new(), intervals: Vec::new() }
}

#[test]
fn ten_minutes_and_a_day_are_short() {
    // Slices of 100 ms would be merged to these.
    for (name, slices, slice_s, servers) in [
        ("ten minutes", 600, 1, 1),
        ("ten minutes of 16 servers", 600, 1, 16),
        ("ten minutes of 300 servers", 600, 1, 300),
        ("a day", 600, 144, 1),
    ] {
        let run = run(slices, slice_s, servers);
        let text = json_text_of(&run);
        let record = text.lines().find(|line| line.starts_with("  \"record\"")).map_or(0, str::len);
        println!("{name}: {} bytes, {record} of them the record", text.len());
        assert!(text.len() <= BYTES_MAX, "{name}: {} bytes, {record} of them the record", text.len());
        assert!(record > 300_000, "{name}: {record} bytes: the run is not what it should be");
        check_grid(name, &run.summary);
        let page = super::html::page_of(&run);
        let result = page.split("id=\"result\">").nth(1).and_then(|rest| rest.find('<')).unwrap_or(0);
        println!("{name}: a page of {} bytes, {result} of them the result", page.len());
        assert!(result > 10_000, "{name}: the page keeps {result} bytes of the result");
        assert!(page.len() <= super::html::BYTES_MAX, "{name}: a page of {} bytes", page.len());
        let again = StoredResult::parse(&text, name).unwrap().summary().unwrap();
        assert!(json_text_of(&Run { summary: again, ..run }) == text, "{name}: reported again");
    }
}

/// The page names the servers that answered most, the rest in a row; and the plan is cut.
#[test]
fn the_page_of_a_thousand_servers_is_short() {
    for servers in [300, 1_024] {
        let page = super::html::page_of(&run(8, 1, servers));
        assert!(page.len() <= super::html::BYTES_MAX, "{servers} servers: a page of {} bytes", page.len());
        println!("{servers} servers: a page of {} bytes", page.len());
        let others = servers - 31;
        assert!(page.contains(&format!("rest-{others}")) && page.matches("scope=row>cache-").count() == 31);
        assert_eq!(page.contains("more characters, all in the JSON"), servers == 1_024);
        assert_eq!(page.contains("<pre id=\"toml\">"), servers == 300);
    }
}

/// What servers said is where rows over time begin, each so many rows from the next.
fn check_grid(name: &str, summary: &Summary) {
    let (measure_ns, row_ns) = (summary.window.measure_ns, summary.timeline().row_ns(S, S));
    for record in &summary.record.run.server_records {
        let held = record.snapshots();
        let rows: Vec<u64> = held.iter().map(|held| (held.at_ns - measure_ns) / row_ns).collect();
        assert!(
            held.iter().zip(&rows).all(|(held, row)| held.at_ns == measure_ns + row * row_ns),
            "{name}: {rows:?}"
        );
        let steps: Vec<u64> = rows.windows(2).map(|pair| pair[1] - pair[0]).collect();
        // The last one ends the run; that before it may be the nearest to a row behind the end.
        let steps = &steps[..steps.len().saturating_sub(2)];
        assert!(steps.iter().all(|step| step.is_power_of_two() && *step == steps[0]), "{name}: {rows:?}");
    }
}
