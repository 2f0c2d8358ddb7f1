//! `--http`: the runs of a command as pages, taken once a second from what the control thread keeps.
//!
//! Not the texts (those are `brunt-report`'s) and not the way they are asked for ([`Endpoint`]'s). Invariant: what is shown is of one
//! instant, every worker's taken together.

use super::{Endpoint, HttpAddress, Text};
use crate::exit::Failure;
use brunt_compat::front_end::Page;
use brunt_plan::objective::Objective;
use brunt_plan::plan::Plan;
use brunt_plan::spec::PlanSpec;
use brunt_report::live::{self, Bounds, HostCounters, LiveRun, RunHeader};
use brunt_report::metrics;
use brunt_stats::measured_window::MeasuredWindow;
use brunt_stats::observer::{Event, Observer};
use brunt_stats::summary::Summary;
use rustix::param::clock_ticks_per_second;
use std::fs;
use std::sync::Arc;

const SECOND_NS: u64 = 1_000_000_000;

/// Where they are.
const PAGES: [Page; 2] = [
    Page { path: Some("/metrics"), content_type: metrics::CONTENT_TYPE },
    Page { path: Some("/summary.json"), content_type: "application/json" },
];

/// Shows the runs of a command.
pub(crate) struct HttpView {
    /// Where.
    pub endpoint: Endpoint,
    bounds: Bounds,
    run: Option<LiveRun>,
}

impl HttpView {
    /// Listens; response times are counted up to the bounds of these objectives, too.
    pub(crate) fn open(address: HttpAddress, objectives: &[Objective]) -> Result<Self, Failure> {
        let endpoint = Endpoint::open("--http", address, PAGES.to_vec(), texts(None, None))?;
        Ok(Self { endpoint, bounds: Bounds::of(objectives), run: None })
    }

    fn announced(&self, event: &Event<'_>) -> Option<RunHeader> {
        let Event::Run { plan, server, place } = event else { return None };
        Some(RunHeader {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            plan: Plan::clone(plan),
            plan_id: plan_id(plan),
            server: (*server).to_owned(),
            place: (*place).clone(),
            bounds: self.bounds.clone(),
        })
    }

    /// Puts up what there is.
    fn show(&mut self, result: Option<Arc<[u8]>>) {
        if let Some(run) = &mut self.run {
            run.host = host_counters();
        }
        self.endpoint.put(texts(self.run.clone(), result));
    }
}

impl Observer for HttpView {
    fn wants_so_far(&self) -> bool {
        true
    }

    fn observe(&mut self, event: &Event<'_>) {
        if let Some(announced) = self.announced(event) {
            self.run = Some(LiveRun::new(announced));
            self.show(None);
        }
        let Some(run) = &mut self.run else { return };
        match event {
            Event::Started(times) => run.start(MeasuredWindow::of(times)),
            Event::Statistics { server, snapshot } => run.hear(*server, snapshot),
            Event::SoFar(so_far) => {
                run.look(so_far.at_ns, &so_far.record.run.intervals);
                self.show(None);
            }
            Event::Ended { summary, .. } => {
                run.end(*summary);
                self.show(summary.and_then(result));
            }
            _ => {}
        }
    }
}

/// What is on the pages: a run at its last whole second, and its result when it has ended.
fn texts(run: Option<LiveRun>, result: Option<Arc<[u8]>>) -> Vec<Text> {
    let run = Arc::new(run);
    let measured = run.clone();
    let known = move || {
        let mut text = Vec::new();
        // Memory takes everything, and every key of a plan is text.
        let _ = live::json::write((*run).as_ref(), &mut text);
        text.into()
    };
    vec![
        Text::new(Box::new(move || metrics::text((*measured).as_ref()).into_bytes().into())),
        Text::new(Box::new(move || result.unwrap_or_else(known))),
    ]
}

/// The result of a run, as `--json` has it.
fn result(summary: &Summary) -> Option<Arc<[u8]>> {
    let mut text = Vec::new();
    brunt_report::json::write(summary, &mut text).ok()?;
    Some(text.into())
}

/// Tells a plan from others, whatever its seed.
fn plan_id(plan: &Plan) -> String {
    let mut spec = PlanSpec::from(plan);
    spec.run.seed = None;
    format!("{:016x}", rapidhash::v3::rapidhash_v3(spec.to_toml().as_bytes()))
}

/// What the kernel says of this process and of the host; 0, or nothing, where it does not.
fn host_counters() -> HostCounters {
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let tick_ns = SECOND_NS / clock_ticks_per_second().max(1);
    let (user, system) = cpu_ticks(&text("/proc/self/stat")).unwrap_or_default();
    HostCounters {
        cpu_user_ns: user * tick_ns,
        cpu_system_ns: system * tick_ns,
        stolen_ns: brunt_engine::host::ticks(&text("/proc/stat"), "cpu").map(|ticks| ticks.stolen * tick_ns),
    }
}

/// User and system time of a process. Its name, the second field, may hold anything.
fn cpu_ticks(stat: &str) -> Option<(u64, u64)> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_of_a_process_is_read() {
        let rest = "R 1 2 3 4 5 6 7 8 9 10 250 31 0 0 20";
        let table = [
            (format!("7 (brunt) {rest}"), Some((250, 31))),
            (format!("7 (a) b 1 (c) {rest}"), Some((250, 31))),
            ("7 (brunt) R 1 2".to_owned(), None),
            (String::new(), None),
        ];
        for (stat, expected) in table {
            assert_eq!(cpu_ticks(&stat), expected, "{stat}");
        }
    }
}
