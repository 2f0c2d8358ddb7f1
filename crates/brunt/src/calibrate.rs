//! `brunt calibrate`: the latency floor of brunt on this host, and the rate up to which client error stays small.
//!
//! Not a measurement of the user's server: the peers are the worker's own canned replies and the reference server. The
//! search is `brunt-stats`'s, each of its steps an ordinary measurement. Invariant: everything is bounded in time, the
//! bound is said beforehand, a calibration that was interrupted is not kept, and one that others disturbed says so.

use crate::calibration_step::STEP;
use crate::calibrations::{self, StoreResult};
use crate::cli;
use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::measurement::{Servers, Step, measure};
use crate::observers::Observers;
use crate::output::Outputs;
use crate::presentation::{LayoutFlags, Presentation};
use crate::progress::Progress;
use crate::run::read_plan;
use crate::terminal::say;
use brunt_engine::in_process_run::{self, RealTimeRun};
use brunt_engine::run::DataSets;
use brunt_plan::arrival::Arrival;
use brunt_plan::objective::Statistic;
use brunt_plan::plan::{Load, MeterKind, OpenRate, Plan, Timestamps, Wait};
use brunt_plan::quantile::Quantile;
use brunt_plan::units::{DurationNs, Rate};
use brunt_plan::warmup::Warmup;
use brunt_report::{calibration as report, instant, quantity};
use brunt_stats::calibration::{Calibration, DisturbedStep, LatencyFloor, Shape, WaitCost, disturbance};
use brunt_stats::check::{CheckId, CheckStatus};
use brunt_stats::headroom::{ERROR_LIMIT_NS, HeadroomSearch, Probe, SearchBounds, search};
use brunt_stats::judgement::Judgement;
use brunt_stats::latency::{ClientError, LatencySummary};
use brunt_stats::meter::Meter;
use brunt_stats::observer::RunPosition;
use brunt_stats::summary::Summary;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Requests of a step at the lowest rate: twice what a p99 takes.
const REQUESTS_MIN: u64 = 2_000;
/// And is no less than this: between requests that are further apart, processors fall asleep.
const RATE_MIN: u64 = 1_000;
/// No single host sends more.
const RATE_MAX: u64 = 10_000_000;
/// A step in which others took more of the workers' time than this is disturbed;
const LOST_MAX: f64 = 0.02;
/// at a low rate, whose lateness nothing else explains, more than this.
const LOST_MAX_LATE: f64 = 0.005;
/// The search ends when it knows the headroom to 5 %.
const RATIO: f64 = 1.05;
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
const WAIT_STEPS: u64 = (WAIT_RATES.len() * WAITS.len()) as u64;
/// A worker polls for replies once it had its CPU for a second.
const WAIT_WARMUP: DurationNs = DurationNs(1_500_000_000);
/// What a step takes beside its warm-up and window: connecting, storing few keys, ending.
const AROUND_NS: u64 = 150_000_000;
/// Measures, prints, and keeps what was measured.
pub(crate) fn calibrate(flags: &cli::Calibrate) -> Result<Exit, Failure> {
    let plan = read_plan(None, flags.spec())?;
    let outputs = Outputs::of_calibration(flags.json.as_deref())?;
    let stop = interrupt::flag().map_err(Failure::failed)?;
    let calibration = Calibrator::new(&plan, flags, &stop).calibrate()?;
    // First, so that whatever becomes of the outputs has no part in it.
    let kept = keep(&calibration);
    let presentation = Presentation::of(&LayoutFlags::default(), flags.quiet);
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

/// What goes over loopback at the lowest rate.
struct Loopback {
    floor: LatencyFloor,
    oversleep: Option<LatencyFloor>,
    shape: Shape,
}

/// What every step of a calibration needs.
struct Calibrator<'a> {
    plan: &'a Plan,
    quiet: bool,
    /// Ways of waiting are compared, too.
    compares_waits: bool,
    observers: Observers<'static>,
    stop: &'a AtomicBool,
    /// The lowest rate.
    lowest: u64,
    /// Steps so far.
    steps: u64,
    /// Those of them that others took time from.
    disturbed: Vec<DisturbedStep>,
}

impl<'a> Calibrator<'a> {
    fn new(plan: &'a Plan, flags: &cli::Calibrate, stop: &'a AtomicBool) -> Self {
        let (quiet, compares_waits) = (flags.quiet, !flags.quick);
        let lowest = (REQUESTS_MIN * 1_000_000_000).div_ceil(step_ns(plan)).max(RATE_MIN);
        let progress = cli::ProgressFlags {
            progress: None,
            tui: false,
            no_progress: false,
            http: None,
            quiet,
            layout: LayoutFlags::default(),
        };
        let observers = Observers::only(Progress::new(&progress));
        Self { plan, quiet, compares_waits, observers, stop, lowest, steps: 0, disturbed: Vec::new() }
    }

    fn calibrate(mut self) -> Result<Calibration, Failure> {
        if !self.quiet {
            let at_most =
                DurationNs::from_secs(bound_ns(self.plan, self.compares_waits).div_ceil(1_000_000_000));
            say(format_args!(
                "calibrating for up to {at_most}: leave this host alone, what else runs on it is taken for ours"
            ));
        }
        let servers = Servers::open(self.plan)?;
        let (in_process, in_process_cpu_ns) = self.in_process()?;
        let Loopback { floor: loopback, oversleep, shape } = self.loopback(&servers)?;
        let bounds = SearchBounds {
            lowest: self.lowest,
            highest: RATE_MAX,
            ratio: RATIO,
            measurements_max: MEASUREMENTS_MAX,
        };
        let HeadroomSearch { headroom, probes } = search(bounds, |rate| self.probe(&servers, rate))?;
        let waits = if self.compares_waits { self.waits(&servers)? } else { Vec::new() };
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
            disturbed: disturbance(&self.disturbed, self.steps, in_process, loopback),
        })
    }

    /// Response times of the loop alone at the lowest rate, and what a request costs it when there is always one.
    fn in_process(&self) -> Result<(LatencyFloor, u64), Failure> {
        let mut plan = self.plan.clone();
        plan.stop.time = plan.stop.time.min(Some(IN_PROCESS_MAX));
        // A worker has its share of the connections.
        let connections = &mut plan.classes[0].connections;
        *connections = (*connections / plan.threads).max(1);
        plan.threads = 1;
        let cost = self.run_in_real_time(&plan)?;
        set_rate(&mut plan, self.lowest);
        let slices = (0..FLOOR_SLICES).map(|_| Ok(self.run_in_real_time(&plan)?.response));
        let floor = least(&slices.collect::<Result<Vec<_>, Failure>>()?)?;
        Ok((floor, cost.cpu_ns / cost.measured.requests.sent.max(1)))
    }

    fn run_in_real_time(&self, plan: &Plan) -> Result<RealTimeRun, Failure> {
        let mut echoes = in_process_run::run_in_real_time(plan, self.stop)
            .map_err(|error| Failure::new(Exit::Failed, error))?;
        self.go_on()?;
        // The plan of a floor has one worker.
        Ok(echoes.swap_remove(0))
    }

    /// Ends a calibration that is interrupted.
    fn go_on(&self) -> Result<(), Failure> {
        if !self.stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        let message = "interrupted: the calibration was not finished, and nothing was kept";
        Err(Failure::message(Exit::Interrupted, message))
    }

    /// The floor over loopback.
    fn loopback(&mut self, servers: &Servers) -> Result<Loopback, Failure> {
        let mut slices = Vec::new();
        let mut oversleeps = Meter::new(MeterKind::Oversleep);
        let mut shape = Shape::default();
        for slice in 0..FLOOR_SLICES {
            let plan = Plan { meters: vec![MeterKind::Oversleep], ..self.plan.clone() };
            let data = if slice == 0 { DataSets::ToStore } else { DataSets::Stored };
            let summary = self.measure(plan, servers, self.lowest, data)?;
            self.judge(self.lowest, &summary);
            let meters = summary.meters.iter().filter(|meter| meter.kind == MeterKind::Oversleep);
            meters.for_each(|meter| oversleeps.merge(meter));
            shape = Shape::of(self.plan, &summary.record.run.usage);
            slices.push(summary.total.latency.response.summary);
        }
        Ok(Loopback { floor: least(&slices)?, oversleep: oversleep(&oversleeps), shape })
    }

    /// Notes and returns whether others took time from a step: less is enough at the lowest rate, at which a client that is late has time to
    /// spare.
    fn judge(&mut self, rate: u64, summary: &Summary) -> bool {
        let is_late = p99_error(summary).is_some_and(|error| error.error_ns > ERROR_LIMIT_NS);
        let most = if rate == self.lowest && is_late { LOST_MAX_LATE } else { LOST_MAX };
        let budget = summary.client_budget();
        let lost_ns = budget.waiting_ns + budget.stopped_ns;
        let is_disturbed = lost_ns as f64 > most * budget.wall_ns as f64;
        let step = is_disturbed.then(|| DisturbedStep { rate, message: budget.sentence() });
        self.disturbed.extend(step);
        is_disturbed
    }

    fn probe(&mut self, servers: &Servers, rate: u64) -> Result<Probe, Failure> {
        let summary = self.measure(self.plan.clone(), servers, rate, DataSets::Stored)?;
        self.judge(rate, &summary);
        let error = p99_error(&summary);
        Ok(Probe {
            rate,
            p99_ns: error.map(|error| error.response_ns),
            error_ns: error.map(|error| error.error_ns),
            is_saturated: is_saturated(&summary),
        })
    }

    /// What each way of waiting costs and gives at each rate.
    fn waits(&mut self, servers: &Servers) -> Result<Vec<WaitCost>, Failure> {
        let mut costs = Vec::new();
        // Where the kernel takes none, nothing is known of the wire.
        let timestamps = match brunt_engine::timestamps_work() {
            Ok(()) => Timestamps::Kernel,
            Err(_) => Timestamps::Off,
        };
        for (rate, wait) in WAIT_RATES.into_iter().flat_map(|rate| WAITS.map(|wait| (rate, wait))) {
            let mut plan = Plan { wait, timestamps, ..self.plan.clone() };
            plan.warmup = Warmup::For(WAIT_WARMUP);
            let summary = self.measure(plan, servers, rate, DataSets::Stored)?;
            let is_disturbed = self.judge(rate, &summary);
            let usage = &summary.record.run.usage;
            let values = |latency: &LatencySummary| {
                [Quantile::P50, Quantile::P90].map(|quantile| latency.percentile_ns(quantile))
            };
            let mut spans = summary.spans().into_iter().flatten();
            let wire = spans.find(|(kind, _)| *kind == MeterKind::WireAndServer);
            costs.push(WaitCost {
                wait: usage.wait.clone(),
                rate,
                response_ns: values(&summary.total.latency.response.summary),
                wire_ns: wire.map(|(_, span)| values(&span)).unwrap_or_default(),
                cpu_ns: (usage.cpu_user_ns + usage.cpu_system_ns) / summary.total.in_window.sent.max(1),
                is_saturated: is_saturated(&summary),
                is_disturbed,
            });
        }
        Ok(costs)
    }

    fn measure(
        &mut self,
        mut plan: Plan,
        servers: &Servers,
        rate: u64,
        data: DataSets,
    ) -> Result<Summary, Failure> {
        set_rate(&mut plan, rate);
        self.steps += 1;
        let most = steps_max(self.compares_waits);
        let label = format!("step {} of up to {most} · {}/s", self.steps, quantity::count(rate));
        // A disturbance that an ordinary run only names spoils a calibration.
        let judgement = Judgement { is_strict: true, ..Judgement::default() };
        let place = RunPosition { before: self.steps - 1, of: None, label };
        let step = Step { data, place, convergence: None, judgement };
        let summary = measure(&plan, servers, self.stop, &mut self.observers, &step);
        self.go_on()?;
        summary
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

fn set_rate(plan: &mut Plan, rate: u64) {
    let rate = OpenRate::Constant(Rate::per_second(rate));
    plan.classes[0].load = Load::Open { rate, arrival: Arrival::Poisson };
}

fn step_ns(plan: &Plan) -> u64 {
    plan.stop.time.unwrap_or(STEP).0
}

/// No calibration of this plan takes longer, on a host that keeps up.
fn bound_ns(plan: &Plan, compares_waits: bool) -> u64 {
    let around_ns = plan.warmup.longest().0 + plan.drain.0 + AROUND_NS;
    let steps = steps_max(compares_waits);
    let warmups_ns = if compares_waits { WAIT_STEPS * WAIT_WARMUP.0 } else { 0 };
    // What the loop alone costs, and its floor.
    let in_process_ns = (1 + FLOOR_SLICES) * (step_ns(plan).min(IN_PROCESS_MAX.0) + around_ns);
    in_process_ns + warmups_ns + steps * (step_ns(plan) + around_ns)
}

fn steps_max(compares_waits: bool) -> u64 {
    let waits = if compares_waits { WAIT_STEPS } else { 0 };
    MEASUREMENTS_MAX as u64 + REPEATS_MAX + FLOOR_SLICES + waits
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

fn oversleep(meter: &Meter) -> Option<LatencyFloor> {
    let percentiles = meter.summary().percentiles;
    let value =
        |quantile| percentiles.iter().find(|(held, _)| *held == quantile).and_then(|(_, value)| *value);
    Some(LatencyFloor { p50_ns: value(Quantile::P50)?, p99_ns: value(Quantile::P99)? })
}
