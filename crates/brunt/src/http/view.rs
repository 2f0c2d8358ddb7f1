//! `--http`: the runs of a command as pages, once a second.
//!
//! Not the texts (those are `brunt-report`'s) and not the way they are asked for ([`Endpoint`]'s). Invariant: what is shown is of one
//! instant, every worker's taken together.

use super::pages::EVENT_STREAM;
use super::{Endpoint, HttpAddress, Text, text};
use crate::exit::Failure;
use crate::host;
use brunt_compat::front_end::Page;
use brunt_plan::objective::Objective;
use brunt_plan::plan::Plan;
use brunt_report::live::{self, State};
use brunt_report::metrics::{self, Bounds, OutageTotals, Scrape};
use brunt_stats::live_run::RunSoFar;
use brunt_stats::observer::{Event, Observer, RunPosition};
use brunt_stats::summary::Summary;
use std::io::{self, Write};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

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
    run: ShownRun,
    /// Of the run, once it has ended.
    result: Option<Arc<Summary>>,
}

/// A run of the command; before the first one, nothing.
#[derive(Clone)]
struct ShownRun {
    place: RunPosition,
    plan_id: String,
    bounds: Arc<Bounds>,
    /// What was said of outages. Taken by the thread that writes metrics.
    outages: Arc<Mutex<OutageTotals>>,
    so_far: Option<Arc<RunSoFar>>,
    has_failed: bool,
}

impl ShownRun {
    fn new(objectives: &[Objective], place: RunPosition, plan_id: String) -> Self {
        let (bounds, outages) = (Arc::new(Bounds::of(objectives)), Arc::default());
        Self { place, plan_id, bounds, outages, so_far: None, has_failed: false }
    }

    fn state(&self) -> State<'_> {
        match &self.so_far {
            None => State::Starting,
            Some(so_far) if self.has_failed => State::Failed(so_far),
            Some(so_far) => State::Running(so_far),
        }
    }

    fn metrics(&self, state: State<'_>) -> Arc<[u8]> {
        // It holds whole numbers, whatever became of a thread that wrote them.
        let outages = &mut *self.outages.lock().unwrap_or_else(PoisonError::into_inner);
        let Self { plan_id, bounds, .. } = self;
        metrics::text(state, &mut Scrape { plan_id, bounds, host: host::counters(), outages })
            .into_bytes()
            .into()
    }
}

impl HttpView {
    /// Listens; response times are counted up to the bounds of these objectives, too.
    pub(crate) fn open(address: HttpAddress, objectives: &[Objective]) -> Result<Self, Failure> {
        let run = ShownRun::new(objectives, RunPosition::default(), String::new());
        let endpoint = Endpoint::open("--http", address, PAGES.to_vec(), texts_of_run(&run))?;
        Ok(Self { endpoint, objectives: objectives.to_vec(), run, result: None })
    }

    /// Puts up what the run, or all runs of the command, came to.
    fn put_result(
        &mut self,
        summary: Arc<Summary>,
        html: impl FnOnce() -> Vec<u8> + Send + 'static,
        json: impl FnOnce() -> Vec<u8> + Send + 'static,
    ) {
        let (run, for_metrics) = (self.run.clone(), summary.clone());
        let page = Arc::new(text(|| html().into()));
        let for_events = page.clone();
        self.endpoint.put(vec![
            text(move || Arc::clone(&**page)),
            text(move || events(&String::from_utf8_lossy(&for_events))),
            text(move || run.metrics(State::Ended(&for_metrics))),
            text(|| json().into()),
        ]);
        self.result = Some(summary);
    }
}

impl Observer for HttpView {
    fn is_live(&self) -> bool {
        true
    }

    fn observe(&mut self, event: &Event<'_>) {
        match event {
            Event::Run { plan, place, .. } => {
                self.run = ShownRun::new(&self.objectives, RunPosition::clone(place), plan_id(plan));
                self.result = None;
            }
            Event::Live { run, recorded, second_ns: Some(at_ns), .. } => {
                self.run.so_far = Some(run.so_far(*at_ns, recorded));
            }
            Event::Ended { summary: None } => self.run.has_failed = true,
            Event::Ended { summary: Some(summary) } => {
                let summary = Arc::new(Summary::clone(summary).with_assertions(&self.objectives));
                let [for_html, for_json] = [0; 2].map(|_| summary.clone());
                let html = move || written(|out| brunt_report::html::write(&for_html, out));
                let json = move || written(|out| brunt_report::json::write(&for_json, out));
                return self.put_result(summary, html, json);
            }
            Event::Concluded { html, json } => {
                let Some(summary) = self.result.clone() else { return };
                // What writes them is borrowed, so that they are written here: once for a command.
                let (html, json) = (html(), json());
                return self.put_result(summary, || html, || json);
            }
            _ => return,
        }
        self.endpoint.put(texts_of_run(&self.run));
    }
}

impl Drop for HttpView {
    /// The command is over: those who follow it have the last page before the process ends.
    fn drop(&mut self) {
        self.endpoint.finish();
    }
}

/// What is on the pages of a run. Each is written when it is asked for.
fn texts_of_run(run: &ShownRun) -> Vec<Text> {
    let [for_page, for_metrics, for_json] = [0; 3].map(|_| run.clone());
    let page: Box<dyn FnOnce() -> brunt_report::html::Page + Send> =
        Box::new(move || brunt_report::html::Page::live(for_page.state(), &for_page.place.label));
    let page = Arc::new(LazyLock::new(page));
    let changing = page.clone();
    vec![
        text(move || written(|out| page.write(out)).into()),
        text(move || events(&changing.changing_part())),
        text(move || for_metrics.metrics(for_metrics.state())),
        text(move || written(|out| live::write_json(for_json.state(), &for_json.place, out)).into()),
    ]
}

/// The page as an event, as the HTML standard has it (server-sent events).
fn events(text: &str) -> Arc<[u8]> {
    let mut events = String::from("retry: 2000\nevent: page\n");
    for line in text.lines() {
        events.extend(["data: ", line, "\n"]);
    }
    events.push('\n');
    events.into_bytes().into()
}

/// Tells a plan from others, whatever its seed.
fn plan_id(plan: &Plan) -> String {
    let mut spec = plan.spec.clone();
    spec.run.seed = None;
    format!("{:016x}", rapidhash::v3::rapidhash_v3(spec.to_toml().as_bytes()))
}

/// What this writes.
pub(crate) fn written(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Vec<u8> {
    let mut text = Vec::new();
    // Memory takes everything, and every key of a plan is text.
    let _ = write(&mut text);
    text
}
