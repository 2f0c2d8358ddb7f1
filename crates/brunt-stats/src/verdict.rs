//! Should these numbers be believed? Named checks, each with its numbers in plain words and what to do about it.
//!
//! Not an assertion of the user's (that compares a result with a wish) and not a statistic: every check compares a number
//! of the run with a threshold that is stated beside it. A run is as good as its worst check.

use crate::book::BookEntry;
use crate::connection::ConnectionCounts;
use crate::latency::ClientError;
use crate::quantile::Quantile;
use brunt_plan::outcome::OutcomeClass;

/// Client errors up to this are below what a kernel's wake-up costs, and never held against a run.
const LAG_FLOOR_NS: f64 = 10_000.0;
/// Share of a percentile that may be the client's.
const LAG: Limits = Limits { caution: 0.05, not_trusted: 0.20 };
/// Share of scheduled requests that may remain unsent.
const RATE: Limits = Limits { caution: 0.001, not_trusted: 0.01 };
/// By which share completions may fall short of the offered rate in the last half of the window.
const SATURATION: Limits = Limits { caution: 0.01, not_trusted: 0.05 };
/// A shortfall within this many standard deviations of a Poisson count is chance.
const SATURATION_DEVIATIONS: f64 = 4.0;
/// Share of sent requests that may fail.
const ERRORS: Limits = Limits { caution: 0.0, not_trusted: 0.01 };

/// A number above `caution` or `not_trusted` costs that status.
#[derive(Clone, Copy, Debug)]
struct Limits {
    caution: f64,
    not_trusted: f64,
}

impl Limits {
    fn judge(self, value: f64) -> CheckStatus {
        if value > self.not_trusted {
            CheckStatus::NotTrusted
        } else if value > self.caution {
            CheckStatus::Caution
        } else {
            CheckStatus::Ok
        }
    }
}

/// How one check came out, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CheckStatus {
    /// It does not apply to this run.
    Skipped,
    /// Nothing found.
    Ok,
    /// Read the numbers with care.
    Caution,
    /// The numbers do not show what they claim to.
    NotTrusted,
}

impl CheckStatus {
    /// The word in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Skipped => "skipped",
            Self::Ok => "ok",
            Self::Caution => "caution",
            Self::NotTrusted => "not_trusted",
        }
    }
}

/// What the checks come to, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// No check found anything.
    Trusted,
    /// At least one calls for care.
    Caution,
    /// At least one convicts the run.
    NotTrusted,
}

impl Status {
    /// The words in every report.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Trusted => "TRUSTED",
            Self::Caution => "CAUTION",
            Self::NotTrusted => "NOT TRUSTED",
        }
    }
}

/// One check.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// Its name: `EMPTY`, `SHORT`, `RATE`, `SAT`, `LAG`, `ERR`, `CONSERVE`, `VERIFY`.
    pub id: &'static str,
    /// How it came out.
    pub status: CheckStatus,
    /// What was found, with its numbers.
    pub message: String,
    /// What to do about it, in one line; empty where there is nothing to do.
    pub fix: &'static str,
    /// The number that was judged: a share for RATE, SAT and ERR, nanoseconds for LAG, a count for the others.
    pub value: f64,
    /// From where on it calls for care (or convicts, where there is no caution), in the unit of the value.
    pub threshold: f64,
}

impl Check {
    fn skipped(id: &'static str, message: &str, threshold: f64) -> Self {
        Self { id, status: CheckStatus::Skipped, message: message.to_owned(), fix: "", value: 0.0, threshold }
    }

    /// `fix` stays only where there is something to fix.
    fn judged(
        id: &'static str,
        status: CheckStatus,
        message: String,
        fix: &'static str,
        value: f64,
        threshold: f64,
    ) -> Self {
        let fix = if status > CheckStatus::Ok { fix } else { "" };
        Self { id, status, message, fix, value, threshold }
    }
}

/// Every check and what they come to.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The worst of the checks.
    pub status: Status,
    /// All of them, in a fixed order.
    pub checks: Vec<Check>,
}

/// How many requests the plan asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
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

/// One printed row of response times, for the client's share in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LagRow {
    /// Its name in the report.
    pub name: String,
    /// Its load is closed loop at least in part: a late client lowers the load instead of falsifying the latency, so
    /// its share calls for care but does not convict.
    pub is_closed_loop: bool,
    /// The client error of every percentile that is printed.
    pub errors: Vec<ClientError>,
}

/// What the checks look at.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    /// `None` when the plan names no number, or when the user interrupted the run.
    pub asked: Option<Asked>,
    /// `None` when every class is closed loop.
    pub open_loop: Option<OpenLoop>,
    /// `None` when every class is closed loop or the window has no length.
    pub last_half: Option<LastHalf>,
    /// Every printed row.
    pub lag_rows: Vec<LagRow>,
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
    /// The books of every (phase, class, op), what is still in flight included.
    pub books: Vec<BookEntry>,
    /// The connections of the whole run.
    pub connections: ConnectionCounts,
    /// Were values checked?
    pub is_verified: bool,
    /// Values read that could not be checked, because they are not ours.
    pub values_foreign: u64,
}

impl Verdict {
    /// Runs every check.
    pub fn of(evidence: &Evidence) -> Self {
        let checks = vec![
            empty(evidence),
            short(evidence),
            rate(evidence),
            saturation(evidence),
            lag(evidence),
            errors(evidence),
            conservation(evidence),
            verification(evidence),
        ];
        let worst = checks.iter().map(|check| check.status).max().unwrap_or(CheckStatus::Ok);
        let status = match worst {
            CheckStatus::Skipped | CheckStatus::Ok => Status::Trusted,
            CheckStatus::Caution => Status::Caution,
            CheckStatus::NotTrusted => Status::NotTrusted,
        };
        Self { status, checks }
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Was anything measured at all?
fn empty(evidence: &Evidence) -> Check {
    let Evidence { completed, unacknowledged, sent, .. } = *evidence;
    let (status, message) = match (completed, unacknowledged) {
        (0, 0) => (CheckStatus::NotTrusted, format!("none of {sent} requests sent was completed")),
        (0, _) => {
            (CheckStatus::Ok, format!("{unacknowledged} requests sent; none of them asked for a reply"))
        }
        _ => (CheckStatus::Ok, format!("{completed} requests completed")),
    };
    let fix =
        "see the errors and connection faults above; check that the server is the right one, or run longer";
    Check::judged("EMPTY", status, message, fix, (completed + unacknowledged) as f64, 0.0)
}

/// Was everything issued that the plan asks for by number?
fn short(evidence: &Evidence) -> Check {
    let Some(Asked { requests, issued, is_time_up, connections_end }) = evidence.asked else {
        let message = "no number of requests to reach: none is asked for, or the run was interrupted";
        return Check::skipped("SHORT", message, 0.0);
    };
    let missing = requests.saturating_sub(issued);
    let status = if missing == 0 || is_time_up { CheckStatus::Ok } else { CheckStatus::NotTrusted };
    let reason = match (missing, is_time_up, connections_end) {
        (0, ..) => "",
        (_, true, _) => ": the time was up first, as the plan has it",
        (_, _, true) => ": the last connection that the plan allows had ended",
        _ => ": the run ended early, because no connection could be had any more",
    };
    let message = format!("asked for {requests} requests, {issued} were issued{reason}");
    let fix = if connections_end {
        "ask for fewer --requests, or allow more with --connections-total and --calls-per-connection"
    } else {
        "see the outages and connection faults above; run again when the server stays, or raise --timeout"
    };
    Check::judged("SHORT", status, message, fix, missing as f64, 0.0)
}

/// Was everything sent that the schedule wanted?
fn rate(evidence: &Evidence) -> Check {
    let Some(OpenLoop { scheduled, unsent }) = evidence.open_loop else {
        return Check::skipped("RATE", "closed loop: nothing is due at a fixed time", RATE.caution);
    };
    let value = share(unsent, scheduled);
    let message = format!("{unsent} of {scheduled} scheduled requests were never sent ({})", percent(value));
    let fix = "lower --rate, or give it more --connections, --depth or --drain";
    Check::judged("RATE", RATE.judge(value), message, fix, value, RATE.caution)
}

/// Did the server keep up with the offered rate?
fn saturation(evidence: &Evidence) -> Check {
    let Some(LastHalf { offered, answered, seconds }) = evidence.last_half.filter(|half| half.offered > 0.0)
    else {
        return Check::skipped("SAT", "closed loop: the server's pace is the rate", SATURATION.caution);
    };
    let missing = offered - answered;
    let value = missing / offered;
    let is_chance = missing <= SATURATION_DEVIATIONS * offered.sqrt();
    let status = if is_chance { CheckStatus::Ok } else { SATURATION.judge(value) };
    let (answered_rate, offered_rate) = (answered / seconds, offered / seconds);
    let mut message = format!(
        "{answered_rate:.0} requests/s answered of {offered_rate:.0}/s offered in the last half of the window"
    );
    if status > CheckStatus::Ok {
        let growth = missing / seconds;
        message += &format!(
            "; the backlog grows by {growth:.0} requests/s, and percentiles with the length of the run"
        );
    }
    let fix = "offer less than the server can answer: lower --rate";
    Check::judged("SAT", status, message, fix, value, SATURATION.caution)
}

/// The client error of one percentile against its threshold.
struct Lag<'a> {
    row: &'a LagRow,
    error: &'a ClientError,
    status: CheckStatus,
    threshold_ns: f64,
}

impl<'a> Lag<'a> {
    fn of(row: &'a LagRow, error: &'a ClientError) -> Self {
        let limit_ns = |share: f64| LAG_FLOOR_NS.max(share * error.response_ns as f64);
        let limits = Limits { caution: limit_ns(LAG.caution), not_trusted: limit_ns(LAG.not_trusted) };
        let status = match limits.judge(error.error_ns as f64) {
            CheckStatus::NotTrusted if row.is_closed_loop => CheckStatus::Caution,
            status => status,
        };
        Self { row, error, status, threshold_ns: limits.caution }
    }

    fn excess(&self) -> f64 {
        self.error.error_ns as f64 / self.threshold_ns
    }
}

/// How much of the response times may be the client's own?
fn lag(evidence: &Evidence) -> Check {
    let judged =
        evidence.lag_rows.iter().flat_map(|row| row.errors.iter().map(move |error| Lag::of(row, error)));
    // p99.99 is printed with its client error but rests on too few requests to convict a run.
    let worst = judged
        .filter(|lag| lag.error.quantile <= Quantile::P999)
        .max_by(|one, other| one.status.cmp(&other.status).then(one.excess().total_cmp(&other.excess())));
    let Some(worst) = worst else {
        return Check::skipped("LAG", "too few samples for any percentile", LAG_FLOOR_NS);
    };
    let ClientError { quantile, response_ns, error_ns } = *worst.error;
    let name = &worst.row.name;
    let part = percent(share(error_ns, response_ns));
    let message = if worst.row.is_closed_loop {
        format!(
            "latency at this concurrency, client share <= {part}: {} of {} of the {quantile} of {name}",
            time(error_ns),
            time(response_ns)
        )
    } else {
        format!(
            "up to {} of the {quantile} of {name}, {}, may be the client's own ({part})",
            time(error_ns),
            time(response_ns)
        )
    };
    let fix = if worst.row.is_closed_loop {
        "give the client more processors (--threads), or use fewer --connections or less --depth"
    } else {
        "give the client more processors (--threads), or lower --rate"
    };
    Check::judged("LAG", worst.status, message, fix, error_ns as f64, worst.threshold_ns)
}

/// Did requests fail?
fn errors(evidence: &Evidence) -> Check {
    let Evidence { errors, timeouts, lost, sent, .. } = *evidence;
    let failed = errors + timeouts + lost;
    let value = share(failed, sent);
    let message = format!(
        "{failed} of {sent} requests failed ({}): {errors} errors, {timeouts} timed out, {lost} lost with their connection",
        percent(value)
    );
    let fix = "the latencies leave failed requests out: read \"including failures\", and the table of connection faults";
    Check::judged("ERR", ERRORS.judge(value), message, fix, value, ERRORS.caution)
}

/// Do the books balance?
fn conservation(evidence: &Evidence) -> Check {
    let fix = "this is a defect of the tool: please report it with the plan and the seed";
    let connections = &evidence.connections;
    if !connections.balances() {
        let ConnectionCounts { begun, established, failed, retired, lost } = connections;
        let message = format!(
            "the books of connections do not balance: {begun} begun, {established} established, {failed} failed; \
             {retired} retired, {lost} lost"
        );
        return Check::judged("CONSERVE", CheckStatus::NotTrusted, message, fix, 1.0, 0.0);
    }
    let broken: Vec<&BookEntry> = evidence.books.iter().filter(|entry| !entry.book.balances()).collect();
    let (status, message) = match broken.as_slice() {
        [] => (CheckStatus::Ok, "every request and every key is accounted for, exactly".to_owned()),
        [entry, ..] => {
            let BookEntry { phase, class, op, book } = entry;
            let (requests, keys) = (&book.requests, &book.keys);
            let message = format!(
                "{} books do not balance; the first is {op} of class {class} in {}: {} scheduled, {} sent, {} unsent, \
                 {} ended, {} in flight; {} keys asked, {} hit, {} missed, {} failed",
                broken.len(),
                phase.name(),
                requests.scheduled,
                requests.sent,
                requests.unsent,
                requests.ended(),
                requests.in_flight,
                keys.asked,
                keys.hit,
                keys.miss,
                keys.failed,
            );
            (CheckStatus::NotTrusted, message)
        }
    };
    Check::judged("CONSERVE", status, message, fix, broken.len() as f64, 0.0)
}

/// Were the values the ones that were stored?
fn verification(evidence: &Evidence) -> Check {
    let mismatches: u64 =
        evidence.books.iter().map(|entry| entry.book.requests.outcome(OutcomeClass::Mismatch)).sum();
    if mismatches == 0 && evidence.values_foreign > 0 {
        let message = format!(
            "{} values read were not written by this tool and could not be checked: store the data set first (preload)",
            evidence.values_foreign
        );
        return Check::skipped("VERIFY", &message, 0.0);
    }
    if mismatches == 0 && !evidence.is_verified {
        return Check::skipped("VERIFY", "values were not checked", 0.0);
    }
    let status = if mismatches == 0 { CheckStatus::Ok } else { CheckStatus::NotTrusted };
    let message = format!("{mismatches} replies held a value other than the one that was stored");
    let fix = "something else writes these keys, or the server is wrong: use a --prefix of your own";
    Check::judged("VERIFY", status, message, fix, mismatches as f64, 0.0)
}

/// A share in per cent with three significant digits.
fn percent(share: f64) -> String {
    significant(share * 100.0) + " %"
}

/// A time with three significant digits and a unit that suits it.
fn time(ns: u64) -> String {
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "us")];
    match units.into_iter().find(|(scale, _)| ns as f64 >= *scale) {
        Some((scale, unit)) => format!("{} {unit}", significant(ns as f64 / scale)),
        None => format!("{ns} ns"),
    }
}

fn significant(number: f64) -> String {
    let decimals = match number.abs() {
        0.0 => 0,
        below if below < 10.0 => 2,
        below if below < 100.0 => 1,
        _ => 0,
    };
    format!("{number:.decimals$}")
}

#[cfg(test)]
mod tests;
