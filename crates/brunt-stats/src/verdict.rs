//! Should these numbers be believed? Named checks, each with its numbers in plain words and what to do about it.
//!
//! Not an assertion of the user's (that compares a result with a wish) and not a statistic: every check compares a number
//! of the run with a threshold that is stated beside it. What makes the whole run worthless convicts it; what concerns some
//! percentiles is told of these (`trust.rs`); what others did to the host is a cause, and no verdict of its own.

mod accounting;
mod cause;
mod confidence;
pub mod explanation;
mod fault;
mod headroom;
mod host;
mod lag;
mod lag_row;
mod lateness;
pub mod little;
mod load;
mod outage;
mod repeat;
mod server;
mod server_evidence;
mod stall;
mod steady;
mod trust;

pub use cause::{Cause, CauseKind};
pub use fault::FaultEvidence;
pub use host::{CPU, STEAL};
pub use lag_row::LagRow;
pub(crate) use outage::of_servers as outages_of_servers;
pub use outage::{DownServer, MeasuredOutage};
pub(crate) use server_evidence::server_evidence;
pub use server_evidence::{CacheEvidence, ServerEvidence};
pub use trust::{Trust, TrustWord};

use crate::batch::BATCHES;
use crate::calibration::Lookup;
use crate::check::{Check, CheckStatus};
use crate::confidence::PercentileInterval;
use crate::connection::ConnectionCounts;
use crate::goal::UntilResult;
use crate::repeat::Spread;
use crate::request_counts::CountEntry;
use crate::run_data::RunData;
use crate::steady::Steadiness;
use brunt_plan::quantile::Quantile;
use little::{ClosedLoop, InSystem};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

brunt_plan::named! {
    /// What the checks come to, from best to worst.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Status {
        /// No check found anything.
        Trusted = "TRUSTED",
        /// At least one calls for care.
        Caution = "CAUTION",
        /// At least one convicts the run.
        NotTrusted = "NOT TRUSTED",
    }
}

/// With fewer requests a run shows nothing but that it ran: a p99 rests on ten of a thousand.
const SAMPLES_MIN: u64 = 1_000;

/// What these find makes the whole run worthless; all others call for care at the most, but where the user is strict.
const OF_THE_WHOLE_RUN: [&str; 9] =
    ["SAMPLES", "RATE", "SAT", "LAG", "CLOCK", "FAULT", "CONSERVE", "LITTLE", "VERIFY"];
/// What these find explains what others find, and costs no status: LAG and the bounds of every number tell what it came to.
const EXPLAINING: [&str; 4] = ["CPU", "STEAL", "COLO", "HEADROOM"];

/// What may explain the findings of checks, in the order in which they are asked: what disturbs a run from outside comes before what
/// the client is like by itself.
const CANDIDATES: [cause::Candidate; 13] = [
    fault::lost_agent,
    fault::cause,
    outage::cause,
    accounting::error_replies,
    load::cause,
    lateness::long_stop,
    lateness::too_many_threads,
    lateness::busy_client,
    lateness::shared_processor,
    lateness::neighbour,
    lateness::stop,
    server::cause,
    lateness::wake_ups,
];

/// How strictly a user wants a run to be judged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Judgement {
    /// As for a publication: every check may convict, and client error must be a smaller fraction of a percentile.
    pub is_strict: bool,
    /// What these checks find is accepted: one of [`crate::check::CHECKS`] each.
    pub allowed: Vec<String>,
}

impl Judgement {
    /// Is what this check finds accepted?
    pub fn allows(&self, id: &str) -> bool {
        self.allowed.iter().any(|allowed| allowed == id)
    }
}

/// Every check and what they come to.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// What the checks and the percentiles come to.
    pub status: Status,
    /// How far each percentile that is given may be trusted, ascending.
    pub percentiles: Vec<Trust>,
    /// Trust in the percentiles of each printed row: all requests, then by class, where there are several, all of it and its operations.
    pub rows: Vec<Vec<Trust>>,
    /// All checks, in a fixed order.
    pub checks: Vec<Check>,
    /// How it was judged.
    pub judgement: Judgement,
    /// What was found, by what explains it.
    pub(crate) causes: Vec<Cause>,
}

/// How many requests the plan asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestTarget {
    /// Requests that the plan wants scheduled in the measured window.
    pub requests: u64,
    /// Requests that were, follow-ups not counted.
    pub issued: u64,
    /// The measured window lasted as long as the plan lets it at most.
    pub is_time_up: bool,
    /// The plan bounds the number of connections.
    pub connections_end: bool,
}

/// Requests that an open loop made due in the measured window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenLoop {
    /// Scheduled; follow-ups, which no schedule offered, are not counted.
    pub scheduled: u64,
    /// Never sent.
    pub unsent: u64,
    /// How many of these were given up because their server did not answer.
    pub abandoned: u64,
}

/// The last half of the measured window of the open-loop classes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LastHalf {
    /// What the plan offered in it: rate × time.
    pub offered: f64,
    /// What was answered in it.
    pub answered: f64,
    /// How long it is, in seconds; above 0.
    pub seconds: f64,
}

/// An agent that was lost while it measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LostAgent {
    /// Its address as the user gave it.
    pub name: String,
    /// What became of it.
    pub reason: String,
    /// How long after the window began that was noticed, 0 before; `None` in results of versions that did not record it.
    pub after_ns: Option<u64>,
    /// An interruption had ended the run before.
    pub after_interruption: bool,
}

/// What the checks look at.
#[derive(Clone, Debug, Default)]
pub struct Evidence<'a> {
    /// What was measured.
    pub run: Cow<'a, RunData>,
    /// `None` when the plan names no number, or when the user interrupted the run.
    pub asked: Option<RequestTarget>,
    /// `None` when every class is closed loop.
    pub open_loop: Option<OpenLoop>,
    /// `None` when every class is closed loop or the window has no length.
    pub last_half: Option<LastHalf>,
    /// How it is to be judged.
    pub judgement: Judgement,
    /// Every printed row.
    pub lag_rows: Vec<LagRow>,
    /// The percentiles of the report's table.
    pub shown: Vec<Quantile>,
    /// The confidence intervals of the response time of all requests.
    pub intervals: Vec<PercentileInterval>,
    /// How many times 100 ms the window lasted.
    pub slices: u64,
    /// What became of the precision that the plan asks for.
    pub until: Option<UntilResult>,
    /// Warm-up, drift and changes of level.
    pub steady: Steadiness,
    /// Drift and changes of level beside the time of outages, where there were any.
    pub steady_beside: Steadiness,
    /// When the measured window began, on the run's clock.
    pub measure_ns: u64,
    /// How long it was.
    pub window_ns: u64,
    /// What is known of this client on this host.
    pub calibration: Lookup,
    /// Requests per second of the window that were offered, sent or completed, whichever is most.
    pub busiest_rate: f64,
    /// Measured requests that were sent.
    pub sent: u64,
    /// Of these, how many completed.
    pub completed: u64,
    /// Of these, how many asked for no reply.
    pub unacknowledged: u64,
    /// Of these, how many were answered with an error.
    pub errors: u64,
    /// Of these, how many timed out.
    pub timeouts: u64,
    /// Of these, how many were lost with their connection.
    pub lost: u64,
    /// Measured requests that were given up before they were sent.
    pub abandoned: u64,
    /// The servers that were down for a while.
    pub down_servers: Vec<DownServer>,
    /// The outages that reached into what was measured, by start.
    pub outages: Vec<MeasuredOutage>,
    /// The books of every (phase, class, op), what is still in flight included.
    pub books: Vec<CountEntry>,
    /// The connections of the whole run.
    pub connections: ConnectionCounts,
    /// What went wrong with them.
    pub faults: FaultEvidence,
    /// Were values checked?
    pub is_verified: bool,
    /// Does the plan ask for values to be checked in full?
    pub is_verify_asked: bool,
    /// An agent that was lost while it measured.
    pub lost_agent: Option<LostAgent>,
    /// Several hosts carried the plan out.
    pub is_fleet: bool,
    /// The servers are reached by Unix sockets.
    pub is_by_unix_socket: bool,
    /// They are reached by UDP.
    pub is_by_udp: bool,
    /// Were the servers' certificates verified? `None` without TLS.
    pub is_peer_verified: Option<bool>,
    /// No operation but the user's own commands.
    pub has_own_commands_only: bool,
    /// Were connections begun after the schedule was?
    pub connects_in_schedule: bool,
    /// Operations in the system.
    pub in_system: InSystem,
    /// The classes whose slots are known to be taken all the time.
    pub closed_loops: Vec<ClosedLoop>,
    /// What the servers said of themselves.
    pub servers: ServerEvidence,
}

impl Evidence<'_> {
    /// How long a batch of the window is.
    fn batch_ns(&self) -> u64 {
        self.window_ns / BATCHES
    }
}

/// The checks that speak against ending a run early, asked while it goes on: what the window holds so far is not steady,
/// or not the server's.
pub(crate) fn while_running(evidence: &Evidence<'_>) -> Vec<Check> {
    let mut checks = vec![steady::warm(evidence), steady::drift(evidence), steady::shift(evidence)];
    // In a closed loop a late client lowers the load, and no length of the run makes it less late.
    if evidence.lag_rows.iter().any(|row| !row.is_closed_loop) {
        checks.push(lag::lag(evidence));
    }
    checks
}

impl Verdict {
    /// What can be said of a run that goes on: without checks of what workers, host and servers tell at the end, and of what has not
    /// ended.
    pub(crate) fn so_far(evidence: &Evidence<'_>) -> Self {
        let checks = vec![
            load::samples(evidence),
            load::rate(evidence),
            load::saturation(evidence),
            lag::lag(evidence),
            confidence::thin(evidence),
            steady::warm(evidence),
            steady::drift(evidence),
            steady::shift(evidence),
            accounting::errors(evidence),
            fault::faults(evidence),
        ];
        Self::of_checks(evidence, checks)
    }

    /// Runs every check.
    pub fn of(evidence: &Evidence<'_>) -> Self {
        let checks = vec![
            load::samples(evidence),
            load::short(evidence),
            load::rate(evidence),
            load::saturation(evidence),
            lag::lag(evidence),
            stall::stall(evidence),
            host::cpu(evidence),
            host::steal(evidence),
            host::clock(evidence),
            host::colocation(evidence),
            host::network(evidence),
            confidence::thin(evidence),
            confidence::until(evidence),
            steady::warm(evidence),
            steady::drift(evidence),
            steady::shift(evidence),
            headroom::headroom(evidence),
            accounting::errors(evidence),
            fault::faults(evidence),
            accounting::conservation(evidence),
            little::little(evidence),
            accounting::verification(evidence),
            server::identity(evidence),
            server::agreement(evidence),
            server::cache(evidence),
            repeat::single(),
        ];
        Self::of_checks(evidence, checks)
    }

    fn of_checks(evidence: &Evidence<'_>, checks: Vec<Check>) -> Self {
        let judgement = evidence.judgement.clone();
        let mut checks: Vec<Check> = checks.into_iter().map(|check| judgement.weighed(check)).collect();
        let causes = cause::all(evidence, &checks, &CANDIDATES);
        // Why the client was late is known only now.
        let lags = checks.iter_mut().filter(|check| check.id == "LAG" && check.status > CheckStatus::Ok);
        let of_lag = causes.iter().find(|cause| cause.ids().any(|id| id == "LAG"));
        if let Some(cause) = of_lag {
            lags.for_each(|check| check.fix = cause.fix.clone());
        }
        let places = 0..evidence.lag_rows.len();
        let rows = places.clone().map(|row| trust::of_percentiles(evidence, &checks, row..row + 1)).collect();
        let percentiles = trust::of_percentiles(evidence, &checks, places);
        let of_checks = checks.iter().filter(|check| judgement.counts(check.id));
        let of_percentiles =
            percentiles.iter().filter(|trust| trust.is_shown && !judgement.allows(trust.check));
        let found = of_checks.map(|check| check.status).chain(of_percentiles.map(|trust| trust.status));
        let status = match found.max().unwrap_or(CheckStatus::Ok) {
            CheckStatus::Skipped | CheckStatus::Ok => Status::Trusted,
            CheckStatus::Caution => Status::Caution,
            CheckStatus::NotTrusted => Status::NotTrusted,
        };
        Self { status, percentiles, rows, checks, judgement, causes }
    }

    /// What was found, as few causes, the one that explains most first. Every check that found something is in one of them.
    pub fn causes(&self) -> &[Cause] {
        &self.causes
    }

    /// The percentiles of the table, of which alone the run's status and its headline speak.
    pub fn shown_percentiles(&self) -> impl Iterator<Item = &Trust> {
        self.percentiles.iter().filter(|trust| trust.is_shown)
    }

    /// What accounts for what this check found.
    pub fn cause_of(&self, id: &str) -> Option<&Cause> {
        self.causes.iter().find(|cause| cause.ids().any(|held| held == id))
    }

    /// What the run is told by before anything else: an outage, or what explains why it is not trusted or calls for care.
    pub fn leading_cause(&self) -> Option<&Cause> {
        let doubted = |id: &str| {
            let of_percentiles = || self.shown_percentiles().filter(|trust| trust.status > CheckStatus::Ok);
            !self.judgement.allows(id)
                && (self.reasons().contains(&id) || of_percentiles().any(|trust| trust.check == id))
        };
        let leads = |cause: &&Cause| match cause.kind {
            CauseKind::LostAgent | CauseKind::Outage => true,
            // That is how this client is, and the word of each percentile tells it.
            CauseKind::WakeUps | CauseKind::ShortOutage | CauseKind::Finding => false,
            // What no check calls for care by itself explains a percentile, and not the run.
            _ => {
                let is_shown = cause.checks.iter().any(|id| !self.judgement.allows(id));
                is_shown && (cause.sets_load || cause.ids().any(doubted))
            }
        };
        self.causes.first().filter(leads)
    }

    /// What the run comes to, in parts: what explains most, up to which percentile it is trusted, and what speaks against the others.
    pub fn headline(&self) -> Vec<String> {
        trust::headline(self)
    }

    /// The headline as one sentence.
    pub fn sentence(&self) -> String {
        self.headline().join(" · ")
    }

    /// The checks on which the status rests: neither causes nor what is allowed, with those that percentiles bear the words of.
    pub fn reasons(&self) -> Vec<&'static str> {
        let status = match self.status {
            Status::Trusted => return Vec::new(),
            Status::Caution => CheckStatus::Caution,
            Status::NotTrusted => CheckStatus::NotTrusted,
        };
        let of_checks = self.checks.iter().filter(|check| check.status == status && self.counts(check));
        let of_percentiles = self.shown_percentiles().filter(|trust| trust.status == status);
        let ids = of_checks.map(|check| check.id).chain(of_percentiles.map(|trust| trust.check));
        let mut reasons = Vec::new();
        ids.filter(|id| !self.judgement.allows(id)).for_each(|id| {
            if !reasons.contains(&id) {
                reasons.push(id);
            }
        });
        reasons
    }

    /// Does what a check found cost the run its status? Not what only explains what others find, and not what the user accepts.
    pub fn counts(&self, check: &Check) -> bool {
        self.judgement.counts(check.id)
    }
}

impl Judgement {
    fn counts(&self, id: &str) -> bool {
        (self.is_strict || !EXPLAINING.contains(&id)) && !self.allows(id)
    }

    /// A check as it counts: only some convict, unless the user is strict.
    fn weighed(&self, check: Check) -> Check {
        let most = match self.is_strict || OF_THE_WHOLE_RUN.contains(&check.id) {
            true => CheckStatus::NotTrusted,
            false => CheckStatus::Caution,
        };
        Check { status: check.status.min(most), ..check }
    }
}

impl Verdict {
    /// Of a campaign: as good as the worst of the runs that count, and of what the runs say of each other. `spreads` has a
    /// name for each number that was compared.
    pub fn of_campaign(
        runs: impl IntoIterator<Item = Status>,
        spreads: &[(String, Spread)],
        judgement: &Judgement,
    ) -> Self {
        let check = repeat::agreement(spreads);
        let is_doubted = check.status == CheckStatus::Caution && !judgement.allows(check.id);
        let own = if is_doubted { Status::Caution } else { Status::Trusted };
        let status = runs.into_iter().fold(own, Status::max);
        Self {
            status,
            percentiles: Vec::new(),
            rows: Vec::new(),
            checks: vec![check],
            judgement: judgement.clone(),
            causes: Vec::new(),
        }
    }

    /// Of a campaign over several settings: the same, but where each setting was run once it says that, and how it could
    /// have been otherwise.
    pub fn of_settings(
        runs: impl IntoIterator<Item = Status>,
        spreads: &[(String, Spread)],
        judgement: &Judgement,
        can_repeat: bool,
    ) -> Self {
        let mut verdict = Self::of_campaign(runs, spreads, judgement);
        if spreads.iter().all(|(_, spread)| spread.runs < 2) {
            let how = if can_repeat { " (--repeat K)" } else { "" };
            let message = format!("each setting was run once: run-to-run spread unknown{how}");
            verdict.checks.iter_mut().for_each(|check| check.message.clone_from(&message));
        }
        verdict
    }
}

#[cfg(test)]
mod tests;
