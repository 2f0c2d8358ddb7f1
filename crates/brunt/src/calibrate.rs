//! `brunt calibrate`: the floor of this tool on this host, and the rate up to which its own share stays small.
//!
//! Not a measurement of anybody's server: the peers are the worker's own canned replies and the reference server. The
//! search is `brunt-stats`'s, each of its steps an ordinary measurement. Invariant: everything is bounded in time, the
//! bound is said beforehand, and a calibration that was interrupted is not kept.

use crate::calibrations;
use crate::cli;
use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::measurement::{Servers, Step, measure};
use crate::output::Destination;
use crate::run::read_plan;
use brunt_engine::rehearsal::{self, Echo};
use brunt_engine::run::DataSets;
use brunt_plan::distribution::Arrival;
use brunt_plan::plan::{Load, MeterKind, OpenRate, Plan};
use brunt_plan::quantile::Quantile;
use brunt_plan::units::{DurationNs, Rate};
use brunt_report::{calibration as report, quantity};
use brunt_stats::calibration::{Calibration, Floor, Shape};
use brunt_stats::headroom::{Bounds, Probe, Search, search};
use brunt_stats::latency::LatencySummary;
use brunt_stats::meter::Meter;
use brunt_stats::summary::Summary;
use brunt_stats::verdict::CheckStatus;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Of a step, where the user does not say.
pub(crate) const STEP: DurationNs = DurationNs(1_000_000_000);
/// Below this a step holds too few requests at any rate that is low.
pub(crate) const STEP_MIN: DurationNs = DurationNs(100_000_000);
/// The median of more than ten times as many requests as a p99 needs is not worth a host that nobody may use for hours.
pub(crate) const STEP_MAX: DurationNs = DurationNs(60_000_000_000);
/// The lowest rate has at least so many requests in a step: twice what a p99 takes.
const REQUESTS_MIN: u64 = 2_000;
/// And is no less than this: between requests that are further apart, processors fall asleep.
const RATE_MIN: u64 = 1_000;
/// No single host sends more.
const RATE_MAX: u64 = 10_000_000;
/// The search ends when it knows the headroom to 5 %.
const RATIO: f64 = 1.05;
/// From 2 000/s to a million per second takes 10 doublings and 4 halvings, each of those up to three times.
const MEASUREMENTS_MAX: usize = 24;
/// Measurements that repeat the last rate.
const REPEATS_MAX: u64 = 2;
/// The floor is measured for so many steps.
const FLOOR_STEPS: u64 = 3;
/// The loop alone needs no longer: it has nobody to wait for.
const IN_PROCESS_MAX: DurationNs = DurationNs(2_000_000_000);
/// What a step takes beside its warm-up and window: connecting, storing few keys, ending.
const AROUND_NS: u64 = 150_000_000;
/// Few, so that a step begins soon; the reference server's time does not depend on them.
pub(crate) const KEYS: u64 = 1_000;

/// Measures, prints, and keeps what was measured.
pub(crate) fn calibrate(flags: &cli::Calibrate) -> Result<Exit, Failure> {
    let (run, class) = flags.spec();
    let plan = read_plan(None, run, class)?;
    let json = flags.json.as_deref().map(|path| Destination::open(path, "--json")).transpose()?;
    let stop = interrupt::flag()?;
    let calibration = Calibrator::new(&plan, flags.quiet, &stop).calibrate()?;
    // Standard output may belong to the object.
    let mut text: Box<dyn Write> = match flags.json.as_deref() {
        Some(path) if path == Path::new("-") => Box::new(io::stderr()),
        _ => Box::new(io::stdout()),
    };
    if !flags.quiet {
        report::write_text(&calibration, &mut text)?;
    }
    if let Some(out) = json {
        out.write(|out| report::write_json(&calibration, out))?;
    }
    let path = calibrations::path().ok_or_else(|| {
        let error =
            anyhow::anyhow!("cannot keep the calibration: neither XDG_STATE_HOME nor HOME names a directory");
        Failure::new(Exit::Failed, error)
    })?;
    let note = calibrations::keep(&path, &calibration).map_err(|error| {
        let error = anyhow::anyhow!("cannot keep the calibration in {}: {error}", path.display());
        Failure::new(Exit::Failed, error)
    })?;
    if !flags.quiet {
        note.iter().for_each(|note| eprintln!("note: {note}"));
        writeln!(text, "\nkept in {}: later runs show it and are compared with it", path.display())?;
    }
    Ok(Exit::Done)
}

/// What every step of a calibration needs.
struct Calibrator<'a> {
    plan: &'a Plan,
    quiet: bool,
    stop: &'a AtomicBool,
    /// The lowest rate.
    lowest: u64,
    /// Steps so far, for whoever watches.
    steps: u64,
}

impl<'a> Calibrator<'a> {
    fn new(plan: &'a Plan, quiet: bool, stop: &'a AtomicBool) -> Self {
        let lowest = (REQUESTS_MIN * 1_000_000_000).div_ceil(step_ns(plan)).max(RATE_MIN);
        Self { plan, quiet, stop, lowest, steps: 0 }
    }

    fn calibrate(mut self) -> Result<Calibration, Failure> {
        if !self.quiet {
            let at_most = DurationNs::from_secs(bound_ns(self.plan).div_ceil(1_000_000_000));
            eprintln!(
                "calibrating for up to {at_most}: leave this host alone, what else runs on it is taken for ours"
            );
        }
        let servers = Servers::open(self.plan)?;
        let (in_process, in_process_cpu_ns) = self.in_process()?;
        let floor = self.loopback(&servers)?;
        let bounds = Bounds {
            lowest: self.lowest,
            highest: RATE_MAX,
            ratio: RATIO,
            measurements_max: MEASUREMENTS_MAX,
        };
        let Search { headroom, probes } = search(bounds, |rate| self.probe(&servers, rate))?;
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Calibration {
            made_at_s: since_1970.as_secs(),
            brunt_version: env!("CARGO_PKG_VERSION").to_owned(),
            host: calibrations::this_host(),
            shape: Shape::of(self.plan, &floor.usage),
            in_process,
            in_process_cpu_ns,
            loopback: floor_of(&floor.total.latency.response.summary)?,
            floor_rate: self.lowest,
            oversleep: floor
                .meters
                .iter()
                .find(|meter| meter.kind == MeterKind::Oversleep)
                .and_then(oversleep),
            headroom,
            probes,
        })
    }

    /// Response times of the loop alone at the lowest rate, and what a request costs it when there is always one.
    fn in_process(&self) -> Result<(Floor, u64), Failure> {
        let mut plan = self.plan.clone();
        plan.stop.time = plan.stop.time.min(Some(IN_PROCESS_MAX));
        // A worker has its share of the connections.
        let connections = &mut plan.classes[0].connections;
        *connections = (*connections / plan.threads).max(1);
        plan.threads = 1;
        let cost = self.echo(&plan)?;
        set_rate(&mut plan, self.lowest);
        let response = self.echo(&plan)?.response;
        Ok((floor_of(&response)?, cost.cpu_ns / cost.measured.requests.sent.max(1)))
    }

    fn echo(&self, plan: &Plan) -> Result<Echo, Failure> {
        let echo = rehearsal::echo(plan, self.stop).map_err(|error| Failure::new(Exit::Failed, error))?;
        self.go_on()?;
        Ok(echo)
    }

    /// Whoever interrupts a calibration wants none.
    fn go_on(&self) -> Result<(), Failure> {
        if !self.stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        let error = anyhow::anyhow!("interrupted: the calibration was not finished, and nothing was kept");
        Err(Failure::new(Exit::Interrupted, error))
    }

    /// The floor over loopback, long enough for a p99 that means something.
    fn loopback(&mut self, servers: &Servers) -> Result<Summary, Failure> {
        let mut plan = self.plan.clone();
        plan.stop.time = Some(DurationNs(step_ns(&plan) * FLOOR_STEPS));
        plan.meters = vec![MeterKind::Oversleep];
        self.measure(plan, servers, self.lowest, DataSets::ToStore)
    }

    fn probe(&mut self, servers: &Servers, rate: u64) -> Result<Probe, Failure> {
        let summary = self.measure(self.plan.clone(), servers, rate, DataSets::Stored)?;
        let error = summary.total.client_error.iter().find(|error| error.quantile == Quantile::P99);
        let saturation = summary.verdict.checks.iter().find(|check| check.id == "SAT");
        Ok(Probe {
            rate,
            p99_ns: error.map(|error| error.response_ns),
            error_ns: error.map(|error| error.error_ns),
            is_saturated: saturation.is_some_and(|check| check.status > CheckStatus::Ok),
        })
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
        let most = MEASUREMENTS_MAX as u64 + REPEATS_MAX + 1;
        let label = format!("step {} of up to {most} · {}/s", self.steps, quantity::count(rate));
        let shown = cli::ProgressFlags { progress: None, no_progress: false, quiet: self.quiet };
        let summary = measure(&plan, servers, self.stop, &shown, &Step { data, label, convergence: None });
        self.go_on()?;
        summary
    }
}

fn set_rate(plan: &mut Plan, rate: u64) {
    let rate = OpenRate::Constant(Rate::per_second(rate));
    plan.classes[0].load = Load::Open { rate, arrival: Arrival::Poisson };
}

fn step_ns(plan: &Plan) -> u64 {
    plan.stop.time.unwrap_or(STEP).0
}

/// No calibration of this plan takes longer, on a host that keeps up.
fn bound_ns(plan: &Plan) -> u64 {
    let around_ns = plan.warmup.0 + plan.drain.0 + AROUND_NS;
    let steps = MEASUREMENTS_MAX as u64 + REPEATS_MAX;
    let in_process_ns = 2 * (step_ns(plan).min(IN_PROCESS_MAX.0) + around_ns);
    in_process_ns + FLOOR_STEPS * step_ns(plan) + around_ns + steps * (step_ns(plan) + around_ns)
}

fn floor_of(latency: &LatencySummary) -> Result<Floor, Failure> {
    let floor = latency.p50_ns().zip(latency.p99_ns()).map(|(p50_ns, p99_ns)| Floor { p50_ns, p99_ns });
    floor.ok_or_else(|| {
        let error = anyhow::anyhow!(
            "cannot tell the floor: {} requests completed, a p99 takes 1000; try a longer --time",
            latency.count
        );
        Failure::new(Exit::Failed, error)
    })
}

fn oversleep(meter: &Meter) -> Option<Floor> {
    let percentiles = meter.summary().percentiles;
    let value =
        |quantile| percentiles.iter().find(|(held, _)| *held == quantile).and_then(|(_, value)| *value);
    Some(Floor { p50_ns: value(Quantile::P50)?, p99_ns: value(Quantile::P99)? })
}
