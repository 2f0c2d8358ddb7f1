//! `brunt mutilate`, and a link of that name: mutilate's command line run as plans, its report printed.
//!
//! Not where options are read or rows are written: that is `brunt-compat`. Invariant: standard output holds what mutilate's would,
//! and everything else is a line on standard error.

mod agents;

use crate::cli::ProgressFlags;
use crate::destination::{Destination, Document};
use crate::exit::Failure;
use crate::interrupt;
use crate::measurement::{Lead, Servers, Step, Told, measure};
use crate::observers::Observers;
use crate::output::note_files;
use crate::terminal::{Page, say, show};
use brunt_compat::mutilate::agents::Crew;
use brunt_compat::mutilate::command_line::{Asked, Refusal, SearchBound, parse};
use brunt_compat::mutilate::help::HELP;
use brunt_compat::mutilate::invocation::{Campaign, Invocation};
use brunt_compat::mutilate::report::{self, Layout};
use brunt_compat::mutilate::search::Search;
use brunt_compat::mutilate::{EXIT_REFUSED, Generation, VERSION};
use brunt_engine::run::DataSets;
use brunt_engine::{NoTrace, check_traces};
use brunt_fleet::Fleet;
use brunt_plan::plan::Plan;
use brunt_plan::resolve::{Host, resolve};
use brunt_plan::server::ServerAddress;
use brunt_plan::spec::PlanSpec;
use brunt_plan::units::DurationNs;
use brunt_stats::summary::Summary;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::cell::Cell;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime};

/// Ctrl-C, as the shell counts it.
const EXIT_INTERRUPTED: u8 = 130;
/// Agents that have nothing to do hear from us this often.
const TEND: Duration = Duration::from_millis(250);
const SILENT: ProgressFlags = ProgressFlags { progress: None, no_progress: true, quiet: true };

/// The name of a tool that we stand in for.
pub(crate) fn generation_of(name: &str) -> Option<Generation> {
    match name {
        "mutilate" => Some(Generation::First),
        "mutilate-g2" => Some(Generation::Second),
        _ => None,
    }
}

/// Carries out a command line, without the program's name.
pub(crate) fn mutilate(arguments: &[String], generation: Generation) -> ExitCode {
    let began = Instant::now();
    let ended = parse(arguments).map_err(Ended::from).and_then(|asked| match asked {
        Asked::Help => {
            show(HELP, false);
            Ok(())
        }
        Asked::Version => {
            show(format!("{VERSION}\n"), false);
            Ok(())
        }
        Asked::Agent(mode) => agents::serve(&mode),
        Asked::Run(line) => {
            let host =
                Host { allowed_cpus: brunt_engine::allowed_cpus(), random_seed: crate::run::random_seed() };
            let invocation = Invocation::new(&line, generation, &host.allowed_cpus)?;
            let stop = interrupt::flag()?;
            let (crews, is_stored, save) = (Vec::new(), Cell::new(false), Cell::new(None));
            Session { invocation, host, began, stop, crews, is_stored, save }.run()
        }
    });
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(Ended::Interrupted) => ExitCode::from(EXIT_INTERRUPTED),
        Err(Ended::Wrong(Refusal { code, message })) => {
            // Also where mutilate is told to be quiet: a failure without a reason helps nobody.
            say(format_args!("mutilate: {message}"));
            ExitCode::from(code)
        }
    }
}

/// Why a command line was not carried out to its end.
enum Ended {
    Wrong(Refusal),
    Interrupted,
}

impl From<Refusal> for Ended {
    fn from(refusal: Refusal) -> Self {
        Self::Wrong(refusal)
    }
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Self {
        Self::Wrong(Refusal { code: EXIT_REFUSED, message: error.to_string() })
    }
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Self {
        match failure.exit {
            crate::exit::Exit::Interrupted => Self::Interrupted,
            _ => Self::Wrong(Refusal { code: EXIT_REFUSED, message: format!("{:#}", failure.error) }),
        }
    }
}

/// A command line that is being carried out.
struct Session {
    invocation: Invocation,
    host: Host,
    began: Instant,
    stop: Arc<AtomicBool>,
    /// The agents, in their order.
    crews: Vec<Crew>,
    /// Every key is where it belongs.
    is_stored: Cell<bool>,
    /// Where the latencies of the one run that is reported go, until they are there.
    save: Cell<Option<Destination>>,
}

impl Session {
    fn run(&mut self) -> Result<(), Ended> {
        self.invocation.warnings.iter().for_each(|warning| self.say(&format!("warning: {warning}")));
        self.verbose(2, &format!("options->records = {}", self.invocation.records));
        let fleet = self.enlist()?;
        let is_led = fleet.is_some();
        let invocation = &self.invocation;
        let mut loading = self.plan(&invocation.loading())?;
        // A window of no length: the run is over when everything is stored, and nothing is asked for.
        loading.stop.time = Some(DurationNs(0));
        let measuring = self.plan(&invocation.measuring(0))?;
        check_traces(&measuring).map_err(|NoTrace { file, error }| Refusal {
            code: EXIT_REFUSED,
            message: format!("--read_file: cannot read '{file}' ({error}); accepted: the path of a file"),
        })?;
        self.save.set(destination_of(invocation, &measuring)?);
        let servers = Servers::open(&loading)?.led(fleet, self.lead());
        self.name_servers();
        // Agents store their shares before the first run that they are in.
        if !is_led && (invocation.loads || invocation.campaign == Campaign::LoadOnly) {
            self.verbose(1, "Loading database.");
            measure(&loading, &servers, &self.stop, &mut Observers::of(&SILENT), &Step::default())?;
            self.verbose(2, "Finished loading.");
            self.is_stored.set(invocation.loads);
        }
        match invocation.campaign {
            Campaign::LoadOnly => Ok(()),
            Campaign::Run => {
                let summary = self.measure(&servers, invocation.qps)?;
                self.report(&summary, None)?;
                check_whole(&summary)
            }
            Campaign::Scan(range) => {
                report::write_scan_head(&mut Page)?;
                let mut qps = range.min;
                while qps <= range.max {
                    let summary = self.measure(&servers, qps)?;
                    let mut row = Vec::new();
                    report::write_scan_row(&mut row, &summary, self.layout(), qps)?;
                    let is_read = show(row, false);
                    self.remark(&summary, &format!("target {qps}: "));
                    check_whole(&summary)?;
                    // Nothing else comes of a scan.
                    if !is_read {
                        break;
                    }
                    qps += range.step;
                }
                Ok(())
            }
            Campaign::Search(bound) => self.search(&servers, bound),
        }
    }

    /// Meets the agents, where they are asked for and have something to do.
    fn enlist(&mut self) -> Result<Option<Fleet>, Ended> {
        let Some(led) =
            self.invocation.led.as_ref().filter(|_| self.invocation.campaign != Campaign::LoadOnly)
        else {
            return Ok(None);
        };
        let fleet = agents::enlist(led)?;
        self.crews = agents::crews(&fleet);
        for (record, crew) in fleet.records().iter().zip(&self.crews) {
            let Crew { threads, weight } = crew;
            self.verbose(
                1,
                &format!("agent {} ({}): {threads} threads of weight {weight}", record.name, record.host),
            );
        }
        let warning = self.invocation.crew_warning(&self.crews);
        warning.iter().for_each(|warning| self.say(&format!("warning: {warning}")));
        Ok(Some(fleet))
    }

    /// How agents are led.
    fn lead(&self) -> Lead {
        let is_sampled = self.invocation.led.as_ref().is_some_and(|led| led.sampling);
        Lead {
            threads: Some(self.invocation.threads),
            told: if is_sampled { Told::Meters } else { Told::Nothing },
        }
    }

    fn search(&self, servers: &Servers, bound: SearchBound) -> Result<(), Ended> {
        let SearchBound { percentile, bound_us } = bound;
        self.inform(&format!("Search-mode.  Find QPS @ {bound_us}us {percentile}th percentile."));
        let mut search = Search::new(bound_us);
        let mut qps = self.invocation.qps;
        let mut peak = None;
        let mut best = None;
        loop {
            let summary = match self.measure(servers, qps) {
                Ok(summary) if !summary.record.run.interrupted => summary,
                // What was found until then is shown.
                Ok(_) | Err(Ended::Interrupted) => {
                    self.report_best(best.as_ref(), peak, &search, bound)?;
                    return Err(Ended::Interrupted);
                }
                Err(ended) => return Err(ended),
            };
            check_whole(&summary)?;
            let achieved = report::rate(&summary, self.layout());
            // Where nothing was read nothing can be judged, and the bound is not met.
            let nth_us =
                report::read_percentile_us(&summary, self.layout(), percentile).unwrap_or(f64::INFINITY);
            match peak {
                None => self.inform(&format!("peak qps = {achieved:.0}, nth = {nth_us:.1}")),
                Some(_) => {
                    self.inform(&format!("cur_qps = {qps}, get_qps = {achieved:.6}, nth = {nth_us:.6}"))
                }
            }
            peak = peak.or(Some(achieved));
            let decision = search.decide(achieved, nth_us);
            if decision.is_best {
                best = Some(summary);
            }
            match decision.next_qps {
                Some(next) => qps = next,
                None => break,
            }
        }
        self.report_best(best.as_ref(), peak, &search, bound)
    }

    /// The best run of a search, if there has been any.
    fn report_best(
        &self,
        best: Option<&Summary>,
        peak: Option<f64>,
        search: &Search,
        SearchBound { percentile, bound_us }: SearchBound,
    ) -> Result<(), Ended> {
        let Some(summary) = best else { return Ok(()) };
        if !search.has_met() {
            self.say(&format!(
                "warning: no run had a {percentile}th percentile of at most {bound_us} us; the last one is shown"
            ));
        }
        self.report(summary, peak)
    }

    /// One measurement of the stored data set.
    fn measure(&self, servers: &Servers, qps: u64) -> Result<Summary, Ended> {
        let plan = self.plan(&self.invocation.leading(qps, &self.crews))?;
        self.wait(servers)?;
        let data = if self.is_stored.get() { DataSets::Stored } else { DataSets::ToStore };
        let summary = measure(
            &plan,
            servers,
            &self.stop,
            &mut Observers::of(&SILENT),
            &Step { data, ..Step::default() },
        )?;
        self.is_stored.set(self.invocation.loads);
        for agent in &summary.record.agents {
            let us = agent.clock_error_ns as f64 / 1e3;
            self.verbose(1, &format!("agent {}: clock known to {us:.1} us", agent.name));
        }
        let (window, now) = (&summary.window, unix_seconds());
        let ago = |at_ns: u64| window.drained_ns.saturating_sub(at_ns) as f64 / 1e9;
        self.verbose(1, &format!("started at {:.6}", now - ago(window.measure_ns)));
        let time_s = self.invocation.time_s;
        self.verbose(1, &format!("stopped at {:.6}  options.time = {time_s}", now - ago(window.end_ns)));
        let requests = &summary.total.requests;
        if !summary.record.run.interrupted && requests.scheduled > 0 && requests.completed() == 0 {
            return Err(Refusal { code: EXIT_REFUSED, message: no_reply(&summary) }.into());
        }
        Ok(summary)
    }

    /// Until `--wait` allows what is measured, warm-up before it.
    fn wait(&self, servers: &Servers) -> Result<(), Ended> {
        let before_s = self.invocation.wait_s.saturating_sub(self.invocation.warmup_s);
        let until = self.began + Duration::from_secs(before_s);
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        self.verbose(1, &format!("Sleeping {:.1}s for -W.", left.as_secs_f64()));
        // Ctrl-C ends it, and agents want to hear from us.
        let interrupted = interrupt::descriptor()?;
        while let Ok(left) = Timespec::try_from(until.saturating_duration_since(Instant::now()).min(TEND)) {
            if left == Timespec::default() {
                break;
            }
            servers.tend()?;
            match poll(&mut [PollFd::new(&interrupted, PollFlags::IN)], Some(&left)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Err(Ended::Interrupted),
                Err(error) => return Err(io::Error::from(error).into()),
            }
        }
        Ok(())
    }

    fn report(&self, summary: &Summary, peak_qps: Option<f64>) -> Result<(), Ended> {
        let saved = self.save.take().map_or(Ok(()), |destination| {
            let ended_s = self.began.elapsed().as_secs_f64();
            let since_s = summary.window.drained_ns.saturating_sub(summary.window.measure_ns) as f64 / 1e9;
            let measured_after_s = ended_s - since_s;
            destination.write(|out| report::write_samples(out, summary, self.layout(), measured_after_s))
        });
        let mut page = Vec::new();
        report::write_report(&mut page, summary, self.layout(), peak_qps)?;
        if let Some(path) = &self.invocation.save {
            writeln!(page, "Saving latency samples to {path}.")?;
        }
        show(page, false);
        self.remark(summary, "");
        Ok(saved.map_err(|message| Refusal { code: EXIT_REFUSED, message })?)
    }

    /// Says what is to be said of a run; `of` tells it from others.
    fn remark(&self, summary: &Summary, of: &str) {
        if self.invocation.misswindow > 0 {
            let windows = report::miss_windows(summary, self.invocation.misswindow, self.invocation.follows);
            windows
                .iter()
                .for_each(|(requests, part)| self.say(&format!("note: misswindow {requests},{part:.4}")));
        }
        for (kind, remark) in report::remarks(summary, self.layout()) {
            self.say(&format!("{kind}: {of}{remark}"));
        }
    }

    fn layout(&self) -> Layout {
        Layout {
            generation: self.invocation.generation,
            successful: self.invocation.successful,
            legacy_latency: self.invocation.legacy_latency,
            masters_rows: self.invocation.led.as_ref().is_some_and(|led| !led.sampling),
        }
    }

    fn plan(&self, spec: &PlanSpec) -> Result<Plan, Ended> {
        let refused = |error: brunt_plan::resolve::PlanError| Refusal {
            code: EXIT_REFUSED,
            message: error.to_string(),
        };
        Ok(resolve(spec, &self.host).map_err(refused)?)
    }

    /// What mutilate says of its servers and its distributions when it is asked for everything.
    fn name_servers(&self) {
        for server in &self.invocation.servers {
            match server {
                ServerAddress::Network { host, .. } => {
                    self.verbose(2, &format!("Resolved {host} to {server}"));
                }
                ServerAddress::Unix { .. } => {}
            }
            for generator in &self.invocation.generators {
                self.verbose(2, generator);
            }
            self.verbose(2, &format!("Connected to {server}."));
        }
    }

    fn say(&self, text: &str) {
        if !self.invocation.quiet {
            say(text);
        }
    }

    /// A line of mutilate's log, at its usual level.
    fn inform(&self, text: &str) {
        self.say(&format!("mutilate(0): {text}"));
    }

    /// One for which it has to be asked: its level stands where mutilate has a line of its source.
    fn verbose(&self, level: usize, text: &str) {
        if self.invocation.verbose >= level {
            self.say(&format!("mutilate({level}): {text}"));
        }
    }
}

/// Where `--save` goes. For mutilate `-` is a file of that name.
fn destination_of(invocation: &Invocation, plan: &Plan) -> Result<Option<Destination>, Ended> {
    note_files(plan);
    let path = invocation.save.as_ref().map(|path| Path::new(if path == "-" { "./-" } else { path }));
    let asked: Vec<_> = path.into_iter().map(|path| (Document::Save, path)).collect();
    Ok(Destination::open_all(&asked)?.pop())
}

/// Of a run without any valid reply: what there was instead.
fn no_reply(summary: &Summary) -> String {
    let said = match (&summary.counts().first_error, &summary.counts().first_garbage) {
        (Some(text), _) => format!("; it said: {text}"),
        (None, Some(garbage)) => format!("; of what came: {}", garbage.reason),
        (None, None) => String::new(),
    };
    format!("{} gave no valid reply to any request{said}", summary.record.server)
}

/// Was the run not cut short, by Ctrl-C or by a file that cannot be read to its end?
fn check_whole(summary: &Summary) -> Result<(), Ended> {
    if summary.record.run.interrupted {
        return Err(Ended::Interrupted);
    }
    match summary.record.run.traces.iter().find_map(|record| Some((record, record.error.as_ref()?))) {
        None => Ok(()),
        Some((record, error)) => {
            let message =
                format!("--read_file: '{}' ends behind line {}: {error}", record.file, record.lines);
            Err(Refusal { code: EXIT_REFUSED, message }.into())
        }
    }
}

fn unix_seconds() -> f64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}
