//! `brunt calibrate`: the latency floor of brunt on this host, and the rate up to which client error stays small.
//!
//! Not a measurement of the user's server: the peers are the worker's own canned replies and the reference server. The
//! search is `brunt-stats`'s, each of its steps an ordinary measurement. Invariant: everything is bounded in time, the
//! bound is said beforehand, a calibration that was interrupted is not kept, and one that others disturbed says so.

use crate::calibrations::{self, StoreResult};
use crate::cli::{self, ProgressFlags};
use crate::exit::{Exit, Failure};
use crate::input;
use crate::measurement::{Runner, Servers, interrupted};
use crate::output::Outputs;
use crate::run::read_plan;
use crate::terminal::say;
use brunt_engine::in_process_run::{self, RealTimeRun};
use brunt_plan::objective::Statistic;
use brunt_plan::plan::{MeterKind, Plan, Timestamps, Wait};
use brunt_plan::quantile::Quantile;
use brunt_plan::spec::PlanSpec;
use brunt_plan::units::{Count, DurationNs, Rate};
use brunt_plan::warmup::Warmup;
use brunt_report::{calibration as report, instant, quantity};
use brunt_stats::calibration::{Calibration, LatencyFloor, Shape, WaitCost, disturbance};
use brunt_stats::check::{CheckId, CheckStatus, Judgement};
use brunt_stats::headroom::{ERROR_LIMIT_NS, Probe, search};
use brunt_stats::latency::{ClientError, LatencySummary};
use brunt_stats::meter::Meter;
use brunt_stats::summary::Summary;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

/// Requests of a step at the lowest rate: twice what a p99 takes.
const REQUESTS_MIN: u64 = 2_000;
/// And is no less than this: between requests that are further apart, processors fall asleep.
const RATE_MIN: u64 = 1_000;
/// A step in which others took more of the workers' time than this is disturbed;
const LOST_MAX: f64 = 0.02;
/// at a low rate, whose lateness nothing else explains, more than this.
const LOST_MAX_LATE: f64 = 0.005;
/// From 2 000/s to a million per second takes 10 doublings and 4 halvings, each of those up to three times.
const MEASUREMENTS_MAX: usize = 24;
/// Measurements that repeat the last rate.
const REPEATS_MAX: u64 = 2;
/// Measurements of the floor, each as long as a step; the least counts.
const FLOOR_SLICES: u64 = 3;
/// The loop alone needs no longer, for it waits for no server: at [`RATE_MIN`] this holds half as much again as a
/// p99 takes.
const IN_PROCESS_MAX: DurationNs = DurationNs(1_500_000_000);
/// Rates at which ways of waiting are compared, per second.
const WAIT_RATES: [u64; 4] = [1_000, 5_000, 20_000, 50_000];
const WAITS: [Wait; 3] = [Wait::Hybrid, Wait::Spin, Wait::Sleep];
/// A worker polls for replies once it had its CPU for a second.
const WAIT_WARMUP: DurationNs = DurationNs(1_500_000_000);
/// What a step takes beside its warm-up and window: connecting, storing few keys, ending.
const AROUND_NS: u64 = 150_000_000;

/// Measures, prints, and keeps what was measured.
pub(crate) fn calibrate(flags: &cli::Calibrate) -> Result<Exit, Failure> {
    let plan = read_plan(None, flags.spec())?;
    calibrations::path().iter().for_each(|path| input::note(path));
    let outputs = Outputs::of_json(flags.output.as_slice())?;
    let progress = ProgressFlags { quiet: flags.quiet, ..ProgressFlags::default() };
    // A disturbance that an ordinary run only names spoils a calibration.
    let judgement = Judgement { is_strict: true, ..Judgement::default() };
    let runner = Runner::open(&progress, &[], judgement)?;
    let calibrator = Calibrator::new(&plan, runner, !flags.quick)?;
    if !flags.quiet {
        let at_most = DurationNs::from_secs(calibrator.bound_ns().div_ceil(1_000_000_000));
        say(format_args!(
            "calibrating for up to {at_most}: leave this host alone, what else runs on it is taken for ours"
        ));
    }
    let calibration = calibrator.calibrate().map_err(|failure| match failure.exit {
        Exit::Interrupted => {
            let message = "interrupted: the calibration was not finished, and nothing was kept";
            Failure::message(Exit::Interrupted, message)
        }
        _ => failure,
    })?;
    // First, so that whatever becomes of the outputs has no part in it.
    let kept = keep(&calibration);
    let presentation = progress.presentation();
    let delivery = outputs.deliver(
        presentation.form,
        |_, out| report::write_json(&calibration, out),
        |goes_to_stderr, out| {
            if flags.quiet {
                return Ok(());
            }
            report::write_text(&calibration, &presentation.layout(goes_to_stderr), out)?;
            kept.as_ref().map_or(Ok(()), |(keeping, path)| write_kept(keeping, path, out))
        },
    );
    match kept? {
        (StoreResult::Kept(Some(note)), _) if !flags.quiet => say(format_args!("note: {note}")),
        _ => {}
    }
    Ok(delivery.exit(Exit::Done))
}

/// Keeps a calibration, and says where.
fn keep(calibration: &Calibration) -> Result<(StoreResult, PathBuf), Failure> {
    let path = calibrations::path().ok_or_else(|| {
        Failure::failed("cannot keep the calibration: neither XDG_STATE_HOME nor HOME names a directory")
    })?;
    let keeping = calibrations::keep(&path, calibration).map_err(|error| {
        Failure::failed(format!("cannot keep the calibration in {}: {error}", path.display()))
    })?;
    Ok((keeping, path))
}

fn write_kept(keeping: &StoreResult, path: &Path, text: &mut dyn Write) -> io::Result<()> {
    let path = path.display();
    match keeping {
        StoreResult::Kept(_) => {
            writeln!(text, "\nkept in {path}: later runs show it and are compared with it")
        }
        StoreResult::EarlierStays(made_at_s) => {
            let day = instant::date(*made_at_s);
            writeln!(text, "\nnot kept: the calibration of {day} in {path} was not disturbed, and stays")
        }
    }
}

/// What every step of a calibration needs.
struct Calibrator<'a> {
    plan: &'a Plan,
    servers: Servers,
    runner: Runner<'static>,
    /// Ways of waiting are compared, too.
    compares_waits: bool,
    step_ns: u64,
    /// The lowest rate.
    lowest: u64,
    /// Rates of steps that others took time from, and what took it.
    disturbed: Vec<(u64, String)>,
}

impl<'a> Calibrator<'a> {
    fn new(plan: &'a Plan, runner: Runner<'static>, compares_waits: bool) -> Result<Self, Failure> {
        let step_ns = plan.stop.time.map_or(1, |time| time.0);
        let lowest = (REQUESTS_MIN * 1_000_000_000).div_ceil(step_ns).max(RATE_MIN);
        let servers = Servers::open(plan)?;
        Ok(Self { plan, servers, runner, compares_waits, step_ns, lowest, disturbed: Vec::new() })
    }

    fn wait_steps(&self) -> u64 {
        if self.compares_waits { (WAIT_RATES.len() * WAITS.len()) as u64 } else { 0 }
    }

    fn steps_max(&self) -> u64 {
        MEASUREMENTS_MAX as u64 + REPEATS_MAX + FLOOR_SLICES + self.wait_steps()
    }

    /// No calibration takes longer, on a host that keeps up.
    fn bound_ns(&self) -> u64 {
        let around_ns = self.plan.warmup.longest().0 + self.plan.drain.0 + AROUND_NS;
        // What the loop alone costs, and its floor.
        let in_process_ns = (1 + FLOOR_SLICES) * (self.step_ns.min(IN_PROCESS_MAX.0) + around_ns);
        in_process_ns + self.wait_steps() * WAIT_WARMUP.0 + self.steps_max() * (self.step_ns + around_ns)
    }

    fn calibrate(mut self) -> Result<Calibration, Failure> {
        let (in_process, in_process_cpu_ns) = self.in_process()?;
        let (loopback, oversleep, shape) = self.loopback()?;
        let (headroom, probes) = search(self.lowest, MEASUREMENTS_MAX, |rate| self.probe(rate))?;
        let waits = if self.compares_waits { self.waits()? } else { Vec::new() };
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Calibration {
            made_at_s: since_1970.as_secs(),
            brunt_version: env!("CARGO_PKG_VERSION").to_owned(),
            host: calibrations::this_host(),
            shape,
            in_process,
            in_process_cpu_ns,
            loopback,
            floor_rate: self.lowest,
            oversleep,
            headroom,
            probes,
            waits,
            disturbed: disturbance(&self.disturbed, self.runner.made, in_process, loopback),
        })
    }

    /// Response times of the loop alone at the lowest rate, and what a request costs it when there is always one.
    fn in_process(&self) -> Result<(LatencyFloor, u64), Failure> {
        let Plan { classes, threads, .. } = self.plan;
        let measure = |rate: Option<u64>| -> Result<RealTimeRun, Failure> {
            let plan = self.plan.changed(|spec| {
                spec.run.time = spec.run.time.min(Some(IN_PROCESS_MAX));
                // A worker has its share of the connections.
                spec.base.connections = Some(Count(u64::from(classes[0].connections / threads).max(1)));
                spec.run.threads = Some(Count(1));
                spec.base.rate = rate.map(Rate::per_second);
            });
            let stop = &self.runner.stop;
            let run = in_process_run::run_in_real_time(&plan.map_err(Failure::usage)?, stop);
            let run = run.map_err(|error| Failure::new(Exit::Failed, error))?;
            if stop.load(Ordering::Relaxed) { Err(interrupted()) } else { Ok(run) }
        };
        let cost = measure(None)?;
        let slices = (0..FLOOR_SLICES).map(|_| Ok(measure(Some(self.lowest))?.response));
        let floor = least(&slices.collect::<Result<Vec<_>, Failure>>()?)?;
        Ok((floor, cost.cpu_ns / cost.measured.requests.sent.max(1)))
    }

    /// The floor over loopback, how late timed sleeps end, and what was calibrated.
    fn loopback(&mut self) -> Result<(LatencyFloor, Option<LatencyFloor>, Shape), Failure> {
        let mut slices = Vec::new();
        let mut oversleeps = Meter::new(MeterKind::Oversleep);
        let mut shape = Shape::default();
        for _ in 0..FLOOR_SLICES {
            let (summary, _) =
                self.step(self.lowest, |spec| spec.run.meter = Some(vec![MeterKind::Oversleep]))?;
            let meters = summary.meters.iter().filter(|meter| meter.kind == MeterKind::Oversleep);
            meters.for_each(|meter| oversleeps.merge(meter));
            shape = Shape::of(self.plan, &summary.record.run.usage);
            slices.push(summary.total.latency.response.summary);
        }
        let percentiles = oversleeps.summary().percentiles;
        let late = |quantile| percentiles.iter().find(|(held, _)| *held == quantile)?.1;
        let oversleep = late(Quantile::P50).zip(late(Quantile::P99));
        let oversleep = oversleep.map(|(p50_ns, p99_ns)| LatencyFloor { p50_ns, p99_ns });
        Ok((least(&slices)?, oversleep, shape))
    }

    fn probe(&mut self, rate: u64) -> Result<Probe, Failure> {
        let (summary, _) = self.step(rate, |_| {})?;
        let error = p99_error(&summary);
        Ok(Probe {
            rate,
            p99_ns: error.map(|error| error.response_ns),
            error_ns: error.map(|error| error.error_ns),
            is_saturated: is_saturated(&summary),
        })
    }

    /// What each way of waiting costs and gives at each rate.
    fn waits(&mut self) -> Result<Vec<WaitCost>, Failure> {
        // Where the kernel takes none, nothing is known of the wire.
        let timestamps = match brunt_engine::timestamps_work() {
            Ok(()) => Timestamps::Kernel,
            Err(_) => Timestamps::Off,
        };
        let settings = WAIT_RATES.into_iter().flat_map(|rate| WAITS.map(|wait| (rate, wait)));
        let cost = |(rate, wait)| {
            let (summary, is_disturbed) = self.step(rate, |PlanSpec { run, .. }| {
                (run.wait, run.timestamps) = (Some(wait), Some(timestamps));
                run.warmup = Some(Warmup::For(WAIT_WARMUP));
            })?;
            let usage = &summary.record.run.usage;
            let values = |latency: &LatencySummary| {
                [Quantile::P50, Quantile::P90].map(|quantile| latency.percentile_ns(quantile))
            };
            let mut spans = summary.spans().into_iter().flatten();
            let wire = spans.find(|(kind, _)| *kind == MeterKind::WireAndServer);
            Ok(WaitCost {
                wait: usage.wait.clone(),
                rate,
                response_ns: values(&summary.total.latency.response.summary),
                wire_ns: wire.map(|(_, span)| values(&span)).unwrap_or_default(),
                cpu_ns: (usage.cpu_user_ns + usage.cpu_system_ns) / summary.total.in_window.sent.max(1),
                is_saturated: is_saturated(&summary),
                is_disturbed,
            })
        };
        settings.map(cost).collect()
    }

    /// Measures a rate. Says, too, and notes whether others took time from it: less is enough at the lowest rate, at which a client that is late
    /// has time to spare.
    fn step(&mut self, rate: u64, change: impl FnOnce(&mut PlanSpec)) -> Result<(Summary, bool), Failure> {
        let plan = self.plan.changed(|spec| {
            spec.base.rate = Some(Rate::per_second(rate));
            change(spec);
        });
        let (step, most) = (self.runner.made + 1, self.steps_max());
        let label = format!("step {step} of up to {most} · {}/s", quantity::count(rate));
        let summary = self.runner.measure_whole(&mut self.servers, &plan.map_err(Failure::usage)?, &label)?;
        let is_late = p99_error(&summary).is_some_and(|error| error.error_ns > ERROR_LIMIT_NS);
        let most = if rate == self.lowest && is_late { LOST_MAX_LATE } else { LOST_MAX };
        let budget = summary.client_budget();
        let lost_ns = budget.waiting_ns + budget.stopped_ns;
        let is_disturbed = lost_ns as f64 > most * budget.wall_ns as f64;
        self.disturbed.extend(is_disturbed.then(|| (rate, budget.sentence())));
        Ok((summary, is_disturbed))
    }
}

/// Did the server not keep up?
fn is_saturated(summary: &Summary) -> bool {
    summary.status.status_of(CheckId::Load) > CheckStatus::Ok
}

/// The client's own share in the p99 by its clock readings, as its kernel is no part of the rate that it can keep; `None` where too few
/// requests completed.
fn p99_error(summary: &Summary) -> Option<ClientError> {
    let error = summary.total.client_error.iter().find(|error| error.quantile == Quantile::P99)?;
    let delay_ns = summary.total.stack_delay.ns(Statistic::Percentile(error.quantile));
    Some(ClientError { error_ns: error.error_ns.saturating_sub(delay_ns), ..*error })
}

/// The least of several measurements; one with too few requests for a p99 does not count.
fn least(slices: &[LatencySummary]) -> Result<LatencyFloor, Failure> {
    let floor_of =
        |slice: &LatencySummary| Some(LatencyFloor { p50_ns: slice.p50_ns()?, p99_ns: slice.p99_ns()? });
    LatencyFloor::least(slices.iter().filter_map(floor_of)).ok_or_else(|| {
        let most = slices.iter().map(|slice| slice.count).max().unwrap_or(0);
        Failure::failed(format!(
            "cannot tell the floor: at most {} requests of a step completed, a p99 takes 1000; leave this host alone, or \
             give a longer --time",
            quantity::count(most)
        ))
    })
}
