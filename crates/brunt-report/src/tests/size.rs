//! How long a result is: of ten minutes and of a day of seven kinds of operations at 20 000 requests a second.
//!
//! Not what is in it. The made-up response times are spread over a factor of twenty, as those of a busy server are, with a tail.

use super::{json_text_of, run::host};
use brunt_plan::op::OpKind;
use brunt_plan::outcome::{Outcome, ReplyKind};
use brunt_plan::phase::Phase;
use brunt_plan::resolve::resolve;
use brunt_plan::spec::PlanSpec;
use brunt_stats::calibration::Lookup;
use brunt_stats::recorder::{Layout, RecorderSet};
use brunt_stats::run_data::{RunData, RunTimes};
use brunt_stats::sample::{Sample, Times};
use brunt_stats::statistics::{ServerRecord, Snapshot};
use brunt_stats::store::IntervalStore;
use brunt_stats::summary::{Environment, RunRecord, Summary};
use brunt_stats::verdict::Judgement;

const S: u64 = 1_000_000_000;
const RATE: u64 = 20_000;
const KINDS: &str = "get=4,set=1,mget=1,gets=1,incr=1,delete=1,touch=1";
/// The longest result file of one run.
const BYTES_MAX: usize = 2_000_000;

/// A run of so many slices of `slice_s` seconds each.
fn run(slices: u64, slice_s: u64) -> Summary {
    let seconds = slices * slice_s;
    let spec = format!(
        "server = 'cache:11211'\nrate = {RATE}\nmix = '{KINDS}'\ntime = '{seconds}s'\nwarmup = 0\npreload = false\n"
    );
    let plan = resolve(&PlanSpec::from_toml(&spec).unwrap(), &host()).unwrap();
    let layout = Layout::of(&plan);
    let mut store = IntervalStore::new(&layout);
    store.align(S);
    store.bound(S..S + seconds * S);
    let mut set = RecorderSet::new(&layout);
    set.set_window(S, S + seconds * S);
    let mut state = 1_u64;
    let kinds: Vec<OpKind> = layout.kinds[0].clone();
    for slice in 0..slices {
        let start_ns = S + slice * slice_s * S;
        // A quarter of the requests of a second, each four times, and of a long slice one of four hundred.
        let times_each: u32 = if slice_s > 10 { 400 } else { 4 };
        let count = RATE * slice_s / u64::from(times_each);
        for _ in 0..count {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (spread, kind) = ((state >> 20) % 100_000, kinds[(state >> 50) as usize % kinds.len()]);
            let took_ns = 40_000 + (spread * spread / 13_000) + 500_000_000 / (100_000 - spread);
            let times = Times {
                intended_ns: start_ns,
                picked_ns: start_ns + spread % 700,
                sent_ns: start_ns + spread % 700 + 1_000,
                polled_ns: start_ns + took_ns,
                first_byte_ns: start_ns + took_ns,
                done_ns: start_ns + took_ns,
            };
            let outcome = Outcome::of_reply(kind, ReplyKind::None);
            let outcome = Outcome { class: brunt_plan::outcome::OutcomeClass::Done, ..outcome };
            let sample = Sample { op: kind, class: 0, outcome, busy_lag_ns: Some(spread % 3_000), times };
            let account = set.account(Phase::Measure, 0, kind);
            set.scheduled_many(account, times_each);
            set.sent_many(account, times_each, times_each, times.sent_ns);
            set.record_many(account, &sample, 1, 1, times_each);
        }
        store.push(&set.take_interval(0, start_ns, start_ns + slice_s * S));
    }
    let mut said = ServerRecord::default();
    for second in 0..seconds.min(20_000) {
        let rows: Vec<(String, String)> = [
            "cmd_get",
            "cmd_set",
            "get_hits",
            "total_items",
            "bytes",
            "curr_items",
            "rusage_user",
            "rusage_system",
        ]
        .map(|name| (name.to_owned(), (1_000_000 + second * 20_000).to_string()))
        .into();
        let at_ns = S + second * S;
        said.push(Snapshot::new(
            at_ns,
            at_ns,
            rows.iter().map(|(name, value)| (name.as_str(), value.as_str())),
        ));
    }
    let end_ns = S + seconds * S;
    let times = RunTimes { start_ns: S, measure_ns: S, end_ns, drained_ns: end_ns, prepare_ns: 0 };
    Summary::build(RunRecord {
        plan,
        run: RunData { intervals: store, times, server_records: vec![said], ..RunData::default() },
        environment: Environment::default(),
        server: "cache:11211".to_owned(),
        agents: Vec::new(),
        preload: None,
        values_checked: true,
        convergence: None,
        calibration: Lookup::Absent,
        judgement: Judgement::default(),
    })
}

#[test]
fn ten_minutes_and_a_day_are_short() {
    // Slices of 100 ms would be merged to these.
    for (name, slices, slice_s) in [("ten minutes", 600, 1), ("a day", 600, 144)] {
        let summary = run(slices, slice_s);
        let text = json_text_of(&super::Run { summary, measured: Vec::new(), warm_up: Vec::new() });
        let record = text.lines().find(|line| line.starts_with("  \"record\"")).map_or(0, str::len);
        println!("{name}: {} bytes, {record} of them the record", text.len());
        assert!(text.len() <= BYTES_MAX, "{name}: {} bytes, {record} of them the record", text.len());
        assert!(record > 300_000, "{name}: {record} bytes: the run is not what it should be");
    }
}
