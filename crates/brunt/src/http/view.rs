//! `--http`: the runs of a command as pages, taken once a second from what the control thread keeps.
//!
//! Not the texts (those are `brunt-report`'s) and not the way they are asked for ([`Endpoint`]'s). Invariant: what is shown is of one
//! instant, every worker's taken together.

use super::{EVENT_STREAM, Endpoint, HttpAddress, Text};
use crate::exit::Failure;
use brunt_compat::front_end::Page;
use brunt_plan::objective::Objective;
use brunt_plan::plan::Plan;
use brunt_report::html::LivePage;
use brunt_report::live::{self, Bounds, HostCounters, LiveRun, RunHeader};
use brunt_report::metrics;
use brunt_stats::measured_window::MeasuredWindow;
use brunt_stats::observer::{Event, Observer, Watch};
use brunt_stats::run_so_far::RunSoFar;
use brunt_stats::summary::Summary;
use rustix::param::clock_ticks_per_second;
use std::fs;
use std::io;
use std::sync::{Arc, LazyLock};

const SECOND_NS: u64 = 1_000_000_000;

/// Where they are.
const PAGES: [Page; 4] = [
    Page { path: Some("/"), content_type: "text/html; charset=utf-8" },
    Page { path: Some("/events"), content_type: EVENT_STREAM },
    Page { path: Some("/metrics"), content_type: metrics::CONTENT_TYPE },
    Page { path: Some("/summary.json"), content_type: "application/json" },
];

/// Shows the runs of a command.
pub(crate) struct HttpView {
    /// Where.
    pub endpoint: Endpoint,
    objectives: Vec<Objective>,
    run: Option<LiveRun>,
    result: Option<RunResult>,
}

/// Documents of a run that has ended, or of all runs of a command.
#[derive(Clone)]
struct RunResult {
    json: Arc<[u8]>,
    html: Arc<[u8]>,
}

impl RunResult {
    /// As `--json` and `--html` have them.
    fn of(summary: &Summary) -> io::Result<Self> {
        let (mut json, mut html) = (Vec::new(), Vec::new());
        brunt_report::json::write(summary, &mut json)?;
        brunt_report::html::write(summary, &mut html)?;
        Ok(Self { json: json.into(), html: html.into() })
    }
}

impl HttpView {
    /// Listens; response times are counted up to the bounds of these objectives, too.
    pub(crate) fn open(address: HttpAddress, objectives: &[Objective]) -> Result<Self, Failure> {
        let endpoint = Endpoint::open("--http", address, PAGES.to_vec(), texts(None, None, None, false))?;
        Ok(Self { endpoint, objectives: objectives.to_vec(), run: None, result: None })
    }

    fn announced(&self, event: &Event<'_>) -> Option<RunHeader> {
        let Event::Run { plan, server, place } = event else { return None };
        Some(RunHeader {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            plan: Plan::clone(plan),
            plan_id: plan_id(plan),
            server: (*server).to_owned(),
            place: (*place).clone(),
            bounds: Bounds::of(&self.objectives),
        })
    }

    /// Puts up what there is.
    fn show(&mut self, so_far: Option<&Arc<RunSoFar>>) {
        if let Some(run) = &mut self.run {
            run.host = host_counters();
        }
        self.endpoint.put(texts(self.run.clone(), so_far.cloned(), self.result.clone(), false));
    }
}

impl Observer for HttpView {
    fn watch(&self) -> Watch {
        if self.endpoint.is_watched() { Watch::SoFar } else { Watch::Seconds }
    }

    fn observe(&mut self, event: &Event<'_>) {
        if let Some(announced) = self.announced(event) {
            (self.run, self.result) = (Some(LiveRun::new(announced)), None);
            self.show(None);
        }
        let Some(run) = &mut self.run else { return };
        match event {
            Event::Started(times) => run.start(MeasuredWindow::of(times)),
            Event::Interval(interval) => run.told(interval),
            Event::Statistics { server, snapshot } => run.hear(*server, snapshot),
            Event::Second { at_ns, recorded, so_far } => {
                run.look(*at_ns, recorded);
                self.show(*so_far);
            }
            Event::Ended { summary, .. } => {
                run.end(*summary);
                let summary = summary.map(|summary| summary.clone().with_assertions(&self.objectives));
                // Memory takes everything.
                self.result = summary.and_then(|summary| RunResult::of(&summary).ok());
                self.show(None);
            }
            Event::Concluded { html, json } => {
                self.result = Some(RunResult { json: (*json).into(), html: (*html).into() });
                self.show(None);
            }
            _ => {}
        }
    }
}

impl Drop for HttpView {
    /// The command is over: those who follow it have the last page before the process ends.
    fn drop(&mut self) {
        self.endpoint.put(texts(self.run.take(), None, self.result.take(), true));
        self.endpoint.finish();
    }
}

/// What is on the pages: a run at its last whole second, or its result when it has ended. Each is written when it is asked for.
fn texts(
    run: Option<LiveRun>,
    so_far: Option<Arc<RunSoFar>>,
    result: Option<RunResult>,
    is_over: bool,
) -> Vec<Text> {
    let run = Arc::new(run);
    let of_metrics = so_far.clone();
    let page = {
        let run = run.clone();
        let page: Box<dyn FnOnce() -> LivePage + Send> =
            Box::new(move || LivePage::of((*run).as_ref(), so_far.as_ref().map(|so_far| so_far.summary())));
        Arc::new(LazyLock::new(page))
    };
    let (changing, measured, known) = (page.clone(), run.clone(), run);
    let (html, json) = result.map(|result| (result.html, result.json)).unzip();
    let of_event = html.clone();
    let event = move || {
        let text = of_event.map_or_else(
            || changing.changing_part(),
            |html: Arc<[u8]>| String::from_utf8_lossy(&html).into_owned(),
        );
        events(&text, is_over)
    };
    vec![
        Text::new(Box::new(move || html.unwrap_or_else(|| written(|out| page.write(out))))),
        Text::new(Box::new(move || event().into_bytes().into())),
        Text::new(Box::new(move || {
            let so_far = of_metrics.as_ref().map(|so_far| so_far.summary());
            metrics::text((*measured).as_ref(), so_far).into_bytes().into()
        })),
        Text::new(Box::new(move || {
            json.unwrap_or_else(|| written(|out| live::json::write((*known).as_ref(), out)))
        })),
    ]
}

fn written(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> Arc<[u8]> {
    let mut text = Vec::new();
    // Memory takes everything, and every key of a plan is text.
    let _ = write(&mut text);
    text.into()
}

/// The page as an event, and whether there will be no other, as the HTML standard has it (server-sent events).
fn events(text: &str, is_over: bool) -> String {
    let mut events = String::from("retry: 2000\nevent: page\n");
    for line in text.lines() {
        events.extend(["data: ", line, "\n"]);
    }
    events.push('\n');
    if is_over {
        events.push_str("event: end\ndata:\n\n");
    }
    events
}

/// Tells a plan from others, whatever its seed.
fn plan_id(plan: &Plan) -> String {
    let mut spec = plan.spec.clone();
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
