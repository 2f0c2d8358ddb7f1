//! Frames of made-up runs, character by character, as ratatui's test backend holds them.

use super::*;
use brunt_plan::op::{KeyRef, Op, OpKind};
use brunt_plan::outcome::{Outcome, ReplyKind};
use brunt_plan::phase::Phase;
use brunt_plan::plan::Plan;
use brunt_plan::resolve::{Host, resolve};
use brunt_plan::spec::PlanSpec;
use brunt_stats::connection::ConnectionEvent;
use brunt_stats::interval::{Interval, WorkerTime};
use brunt_stats::live_run::LiveRun;
use brunt_stats::recorder::{Layout as Recorded, RecorderSet};
use brunt_stats::run_record::{RunData, RunRecord};
use brunt_stats::sample::{Sample, Times};
use brunt_stats::server::{OutageKind, OutageKinds, OutageSpan};
use brunt_stats::store::IntervalStore;
use brunt_stats::usage::ClientUsage;
use brunt_stats::window::RunTimes;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;
const WINDOW: RunTimes = RunTimes {
    start_ns: 9 * S,
    measure_ns: 10 * S,
    end_ns: 70 * S,
    drained_ns: 0,
    prepare_ns: 0,
    epoch_us: None,
};

fn plan() -> Plan {
    let plan = PlanSpec::from_toml("server = [\"10.0.0.5:11211\"]\nseed = 1\nconnections = 8\nthreads = 1\n");
    resolve(&plan.unwrap(), &Host::of(vec![0, 1], 1)).unwrap()
}

/// What a worker records in 100 ms of a run that stands still in the fifth second of its window: what was due then is answered
/// when it is over.
fn interval(set: &mut RecorderSet, start_ns: u64) -> Interval {
    let since_ms = start_ns.saturating_sub(WINDOW.measure_ns) / MS;
    let response_ns = |index: u64| match since_ms {
        4_000..5_000 => None,
        5_000..5_100 => Some(1_000 * MS - index * 5 * MS),
        _ => Some(100_000 + index * 1_000),
    };
    let op = Op::of(OpKind::Get, KeyRef::Id(0));
    for index in 0..200 {
        let Some(response_ns) = response_ns(index) else { break };
        set.scheduled(Phase::Measure, &op);
        set.sent(Phase::Measure, &op, 1, 0);
        let intended_ns = start_ns + 50 * MS - response_ns.min(50 * MS);
        let done_ns = intended_ns + response_ns;
        let times = Times {
            intended_ns,
            picked_ns: intended_ns,
            sent_ns: intended_ns + 2_000,
            polled_ns: done_ns - 1_000,
            first_byte_ns: done_ns,
            done_ns,
        };
        let outcome = Outcome::of_reply(OpKind::Get, ReplyKind::Value);
        let sample = Sample { op: OpKind::Get.into(), class: 0, outcome, busy_lag_ns: None, times };
        set.record(Phase::Measure, &sample, 1, 1);
        set.server(0).answered += 1;
    }
    if since_ms == 0 {
        for event in [ConnectionEvent::Begun, ConnectionEvent::Established] {
            (0..8).for_each(|_| set.connection(Phase::Connect, event));
        }
    }
    if since_ms == 5_000 {
        set.outage(OutageSpan {
            server: 0,
            start_ns: WINDOW.measure_ns + 4 * S,
            end_ns: WINDOW.measure_ns + 5 * S,
            failed: 0,
            kinds: OutageKinds::NONE.with(OutageKind::Stalled),
        });
    }
    let worker_time = Some(WorkerTime { busy_ns: 39 * MS, run_delay_ns: Some(MS / 5) });
    Interval { worker_time, ..set.take_interval(0, start_ns, start_ns + 100 * MS) }
}

/// The view of a run, so many seconds after its window began.
fn seen(after_s: u64) -> View {
    let plan = plan();
    let layout = Recorded::of(&plan);
    let (mut set, mut store) = (RecorderSet::new(&layout), IntervalStore::new(&layout));
    store.align(WINDOW.measure_ns);
    let mut run = LiveRun::new(RunRecord { server: "10.0.0.5:11211".to_owned(), ..RunRecord::of(plan) });
    run.start(&RunData {
        times: WINDOW,
        usage: ClientUsage { counts_wake_ups: true, ..ClientUsage::default() },
        ..RunData::default()
    });
    // The warm-up has no replies.
    run.tick(WINDOW.measure_ns + 200 * MS);
    let mut so_far = None;
    for start_ns in (WINDOW.measure_ns..WINDOW.measure_ns + after_s * S).step_by(100 * MS as usize) {
        let interval = interval(&mut set, start_ns);
        store.push(&interval);
        run.push(&interval);
        so_far = run.tick(interval.end_ns).map(|at_ns| run.so_far(at_ns, &store)).or(so_far);
    }
    let mut glance = Glance::of(&run, &store, WINDOW.measure_ns + after_s * S);
    glance.course.clear();
    View { label: String::new(), glance, so_far }
}

fn frame(view: &View, width: u16, height: u16, switches: Switches) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let layout = Layout::default();
    let drawn = terminal.draw(|frame| draw(view, &switches, &layout, frame.area(), frame.buffer_mut()));
    drawn.unwrap();
    let cells = terminal.backend().buffer().content();
    let row = |row: &[ratatui::buffer::Cell]| {
        let text: String = row.iter().map(ratatui::buffer::Cell::symbol).collect();
        text.trim_end().to_owned()
    };
    cells.chunks(usize::from(width)).map(row).collect()
}

fn check(width: u16, height: u16, switches: Switches, expected: &str) {
    let found = frame(&seen(8), width, height, switches);
    assert_eq!(found.join("\n"), expected.trim_matches('\n'), "{width}x{height}:\n{}", found.join("\n"));
}

#[test]
fn a_stall_stands_where_it_was() {
    check(
        60,
        16,
        Switches::default(),
        "
measure 8.0s/1m00s [#.........] 2000/s p99 297us failed 0
last 1 s     p50 199 us, p99 297 us, max 299 us, 2000/s
response, ms     p50    p99  p99.9    max  done/s  hit%
all            0.201    300    930   1000    1750   100
  95% low      0.197    0.2    564
  95% high     0.205   open   open
response times by second: # most requests, . least
68.1ms       +
2.61ms       -
 100us  #### ###
        |0s
requests      14000 sent, 0 failed
outage, s            start   down  failed  kind
10.0.0.5:11211       +4.00   1.00       0  no-replies
so far        CAUTION: p50 may be quoted; p90 to p99.9 are
? help  o operation  h heat map  u unit  f freeze  q end
",
    );
    check(
        80,
        24,
        Switches::default(),
        "
measure 8.0s/1m00s [#.........] 2000/s p99 297us failed 0 52.0s left
last 1 s     p50 199 us, p99 297 us, max 299 us, 2000/s
closed loop   8 connections x depth 1 · get=9,set=1
target        10.0.0.5:11211, memcached-text · 100k keys 30 B, values 200 B
response, ms     p50    p90    p99  p99.9  p99.99    max  done/s  hit%  failed
all            0.201  0.282    300    930       -   1000    1750   100       0
  95% low      0.197  0.275    0.2    564
  95% high     0.205  0.288   open   open
response times by second: # most requests, . least
 215ms       +
31.6ms       =
4.64ms       -
 681us
 100us  #### ###
        |0s
requests      14000 sent, 0 failed · keys 14000 hit, 0 missed
backlog       0 in the system · send lag p99 2.00 us max 2.00 us
outage, s            start   down  back to 95 %  failed  kind
10.0.0.5:11211       +4.00   1.00          1.10       0  no-replies
p99 by second ▁▁▁▁ █▁▁  0.297 to 900 ms, log
so far        CAUTION: p50 may be quoted; p90 to p99.9 are an outage of
              10.0.0.5:11211 (1.00 s at +4.00 s)
  DATA        10.0.0.5:11211 gave no answer for 1.00 s of the window of 8.00 s:
? help  o operation  h heat map  u unit  f freeze  q end
",
    );
}

#[test]
fn a_stall_stands_where_it_was_on_large_screens() {
    check(
        112,
        40,
        Switches { is_without_heat: true, unit: Some(TimeUnit::Ms), ..Switches::default() },
        "
measure 8.0s/1m00s [#.........] 2000/s p99 297us failed 0 52.0s left
last 1 s     p50 199 us, p99 297 us, max 299 us, 2000/s
closed loop   8 connections x depth 1 · get=9,set=1
target        10.0.0.5:11211, memcached-text · 100k keys 30 B, values 200 B
response, ms     p50    p90    p99  p99.9  p99.99    max  done/s  hit%  failed
all            0.201  0.282    300    930       -   1000    1750   100       0
  95% low      0.197  0.275    0.2    564
  95% high     0.205  0.288   open   open
  client <=    0.002  0.002      0      0
get            0.201  0.282    300    930       -   1000    1750   100       0
set                -      -      -      -       -      -       0     -       0
requests      14000 sent, 0 failed · keys 14000 hit, 0 missed
backlog       0 in the system · send lag p99 2.00 us max 2.00 us
client        workers busy 39.0 % · run delay 0.2 %
server        8 connections open
outage, s            start   down  back to 95 %  failed  kind
10.0.0.5:11211       +4.00   1.00          1.10       0  no-replies
p99 by second ▁▁▁▁ █▁▁  0.297 to 900 ms, log
so far        CAUTION: p50 may be quoted; p90 to p99.9 are an outage of 10.0.0.5:11211 (1.00 s at
              +4.00 s)
  DATA        10.0.0.5:11211 gave no answer for 1.00 s of the window of 8.00 s: percentiles mix this
              time with the rest; p99 has no interval: the requests above waited for one outage ->

















? help  o operation  h heat map  u unit  f freeze  q end
",
    );
    check(
        60,
        18,
        Switches { has_help: true, is_frozen: true, ..Switches::default() },
        "
measure 8.0s/1m00s [#.........] 2000/s p99 297us failed 0
last 1 s     p50 199 us, p99 297 us, max 299 us, 2000/s
response, ms     p50    p99  p99.9    max  done/s  hit%
all            0.201    300    930   1000    1750   100
  95% low      0.197    0.2    564
  95% high     0.205   open   open
response times by second: # most requests, . least
68.1ms       +
2.61ms       -
 100us  #### ###
        |0s
requests      14000 sent, 0 failed
so far        CAUTION: p50 may be quoted; p90 to p99.9 are
q, Ctrl-C  end the run; the report follows
h, o       heat map on or off; next operation below all
u          times of the table in another unit
f          freeze the screen; the run goes on
?          hide this help                  frozen: f goes on
",
    );
}

/// Percentiles, servers, workers and checks stand at the right.
#[test]
fn a_large_screen_has_panels() {
    check(
        120,
        40,
        Switches::default(),
        "
measure 8.0s/1m00s [#.........] 2000/s p99 297us failed 0 52.0s left              response time by percentile so far
last 1 s     p50 199 us, p99 297 us, max 299 us, 2000/s                            440ms                *********
closed loop   8 connections x depth 1 · get=9,set=1                                204ms               *
target        10.0.0.5:11211, memcached-text · 100k keys 30 B, values 200 B       94.5ms              *
response, ms     p50    p90    p99  p99.9  p99.99    max  done/s  hit%  failed    43.8ms
all            0.201  0.282    300    930       -   1000    1750   100       0    20.3ms
  95% low      0.197  0.275    0.2    564                                         9.41ms
  95% high     0.205  0.288   open   open                                         4.36ms
  client <=    0.002  0.002      0      0                                         2.02ms
get            0.201  0.282    300    930       -   1000    1750   100       0     936us
set                -      -      -      -       -      -       0     -       0     434us
response times by second: # most requests, . least                                 201us *************
 4.64s                                                                                   50   90      99     99.9  99.99
 2.15s
 1.00s       .                                                                    server            done/s down/s
 464ms       +                                                                    10.0.0.5:11211      2000   1.00
 215ms       =
 100ms       =                                                                    worker             busy% delay%
46.4ms       -                                                                    0                   39.0    0.2
21.5ms       :
10.0ms       :                                                                    check             so far
4.64ms       :                                                                    DATA              CAUTION
2.15ms                                                                            4 ok, 1 skipped
1.00ms
 464us
 215us  #### ###
 100us  #### ###
        |0s
requests      14000 sent, 0 failed · keys 14000 hit, 0 missed
backlog       0 in the system · send lag p99 2.00 us max 2.00 us
client        workers busy 39.0 % · run delay 0.2 %
server        8 connections open
outage, s            start   down  back to 95 %  failed  kind
10.0.0.5:11211       +4.00   1.00          1.10       0  no-replies
p99 by second ▁▁▁▁ █▁▁  0.297 to 900 ms, log
so far        CAUTION: p50 may be quoted; p90 to p99.9 are an outage of
              10.0.0.5:11211 (1.00 s at +4.00 s)
  DATA        10.0.0.5:11211 gave no answer for 1.00 s of the window of 8.00 s:
              percentiles mix this time with the rest; p99 has no interval: the
? help  o operation  h heat map  u unit  f freeze  q end
",
    );
}

/// Pressed often enough, each operation stands below all of them, also where there is room for no other.
#[test]
fn operations_are_shown_one_by_one() {
    let seen = seen(8);
    // Bounds belong to the row above them: where they leave no room for an operation, they are left out.
    for (width, height, place) in [(60, 16, 1), (80, 30, 4)] {
        let below_all = |op| {
            let found = frame(&seen, width, height, Switches { op, ..Switches::default() });
            let all = found.iter().position(|line| line.starts_with("all ")).unwrap();
            [1, place]
                .map(|rows| found[all + rows].split(' ').find(|word| !word.is_empty()).unwrap().to_owned())
        };
        let names = |op| below_all(op)[1].clone();
        assert_eq!([1, 2, 3].map(names), ["get", "set", "get"], "{width}x{height}");
        assert_eq!(below_all(0)[0], "95%");
        assert_eq!(below_all(1)[0], if place == 1 { "get" } else { "95%" });
    }
}

/// A unit whose numbers do not fit is not shown.
#[test]
fn no_number_is_cut() {
    let seen = seen(8);
    for unit in [TimeUnit::Ns, TimeUnit::Us, TimeUnit::Ms, TimeUnit::S] {
        let found = frame(&seen, 60, 16, Switches { unit: Some(unit), ..Switches::default() });
        assert!(
            found.iter().any(|line| line.starts_with("response, ") && line.contains(" done/s")),
            "{found:#?}"
        );
    }
}

/// A terminal may become as small as its user likes.
#[test]
fn small_screens_show_the_progress_line() {
    let seen = seen(8);
    for (width, height) in [(59, 40), (200, 15), (60, 15), (1, 1)] {
        let found = frame(&seen, width, height, Switches::default());
        let line = crate::progress::status_text("", &seen.glance, usize::from(width), false);
        let lines: Vec<&str> = found.iter().map(String::as_str).filter(|line| !line.is_empty()).collect();
        assert_eq!(lines.concat(), line, "{width}x{height}");
    }
}

/// Whatever the size, nothing is cut in a way that a frame of another size is not: no panic, and the keys in the last line.
#[test]
fn every_size_has_a_frame() {
    let seen = seen(8);
    let widths = || (60..260).step_by(7);
    // Every height at the least and the largest width, every width at the least and the largest height, and a diagonal.
    let heights_of_ends = [60, 256].into_iter().flat_map(|width| (16..60).map(move |height| (width, height)));
    let widths_of_ends = [16, 59].into_iter().flat_map(|height| widths().map(move |width| (width, height)));
    let diagonal = widths().zip((16..60).step_by(3).cycle());
    for (width, height) in heights_of_ends.chain(widths_of_ends).chain(diagonal) {
        let found = frame(&seen, width, height, Switches::default());
        assert!(found.last().unwrap().starts_with(KEYS[0]), "{width}x{height}");
        assert!(found.iter().any(|line| line.starts_with("all ")), "{width}x{height}");
    }
}

fn second(times_ms: &[u64]) -> Arc<Second> {
    let mut histogram = Histogram::new();
    times_ms.iter().for_each(|ms| histogram.record(ms * 1_000_000));
    let mut second = Second::default();
    second.response = histogram.to_sparse();
    Arc::new(second)
}

/// Rows from the top, a digit for each cell that has anything: its step of heat.
fn drawn(seconds: &[Arc<Second>], columns: usize, rows: usize) -> Vec<String> {
    let held = HeatMap::of(seconds, columns, rows).unwrap();
    assert_eq!(held.cells.columns(), held.seconds.len());
    let cell = |column: usize, row: usize| match held.cells.ink_at(column, row) {
        Some(step) => char::from(b'0' + step as u8),
        None => '.',
    };
    (0..rows).map(|row| (0..held.seconds.len()).map(|column| cell(column, row)).collect()).collect()
}

#[test]
fn the_last_seconds_stand_at_the_right() {
    // A second without a reply, and one in which all that waited came.
    let seconds = [second(&[1, 1, 1, 1]), second(&[]), second(&[1, 1_000]), second(&[])];
    assert_eq!(drawn(&seconds, 4, 4), ["..6.", "....", "....", "6.6."]);
    assert_eq!(drawn(&seconds, 2, 4), ["6.", "..", "..", "6."]);
    assert!(HeatMap::of(&seconds, 1, 4).is_none(), "nothing was answered");
    assert!(HeatMap::of(&[], 4, 4).is_none());
}

#[test]
fn rows_are_named_by_their_least() {
    let seconds = [second(&[1, 10])];
    let held = HeatMap::of(&seconds, 1, 2).unwrap();
    let expected = [1e6 * 10f64.powf(7.0 / 12.0), 1e6];
    for (low_ns, expected) in held.low_ns.iter().zip(expected) {
        assert!((low_ns / expected - 1.0).abs() < 1e-9, "{low_ns} {expected}");
    }
    assert_eq!(held.low_ns.len(), 2);
}
