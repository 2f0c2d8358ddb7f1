//! How far each percentile may be trusted, in one word, and the run in one sentence.
//!
//! A word is what the checks found of a percentile: the worst of all rows that are printed, or of one row. Invariant: only percentiles that
//! the run, or the row, gives have a word.

use super::lag::Lag;
use super::{Cause, Evidence, LagRow, Status, Verdict};
use crate::check::{Check, CheckStatus};
use crate::confidence::PercentileInterval;
use crate::steady::Series;
use brunt_plan::quantile::Quantile;
use std::fmt;
use std::ops::Range;

/// Half an interval of more than this share of its percentile tells the percentile to two digits at most.
const WIDE: f64 = 0.20;

brunt_plan::named! {
    /// What speaks against a percentile, from the worst to none.
    pub enum TrustWord {
        /// Values or books are wrong.
        Wrong = "wrong",
        /// The clock is.
        Host = "host",
        /// The server did not keep up: the percentile grows with the length of the run.
        Saturated = "sat",
        /// As many requests failed as lie above it, or more.
        Failed = "failed",
        /// The window did not begin warm.
        Warm = "warm",
        /// Client error is a notable fraction of it.
        Client = "client",
        /// Something changed within the window.
        Drift = "drift",
        /// Its interval rests on a few bursts, has no upper end, or there is none.
        Thin = "thin",
        /// Its interval is wide.
        Wide = "wide",
        /// Nothing.
        Ok = "ok",
    }
}

/// What is to be thought of one percentile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trust {
    /// Which.
    pub quantile: Quantile,
    /// The worst that was found of it.
    pub word: TrustWord,
    /// How bad that is.
    pub status: CheckStatus,
    /// The check that found it; empty where nothing was found.
    pub check: &'static str,
    /// The report's table has it.
    pub is_shown: bool,
}

/// As in a table: `ok`, `client?`, `sat!`.
impl fmt::Display for Trust {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = match self.status {
            CheckStatus::Skipped | CheckStatus::Ok => "",
            CheckStatus::Caution => "?",
            CheckStatus::NotTrusted => "!",
        };
        write!(formatter, "{}{mark}", self.word.name())
    }
}

/// Every percentile that the first of these rows gives, ascending: the worst of what was found of it in any of them.
pub(super) fn of_percentiles(evidence: &Evidence<'_>, checks: &[Check], rows: Range<usize>) -> Vec<Trust> {
    let first = evidence.lag_rows.get(rows.start);
    let given = first.into_iter().flat_map(|row| &row.errors);
    given.map(|error| of_percentile(evidence, checks, &rows, error.quantile)).collect()
}

fn of_percentile(
    evidence: &Evidence<'_>,
    checks: &[Check],
    places: &Range<usize>,
    quantile: Quantile,
) -> Trust {
    let status_of = |id: &str| {
        checks.iter().find(|check| check.id == id).map_or(CheckStatus::Skipped, |check| check.status)
    };
    let is_shown = evidence.shown.contains(&quantile);
    let found = |word: TrustWord, check: &'static str, status: CheckStatus| {
        (status > CheckStatus::Ok).then_some(Trust { quantile, word, status, check, is_shown })
    };
    let caution = |is_so: bool| if is_so { CheckStatus::Caution } else { CheckStatus::Ok };
    let steady = |check: &'static str| match is_of_series(evidence, check, quantile) {
        true => status_of(check),
        false => CheckStatus::Ok,
    };
    let rows = &evidence.lag_rows[places.clone()];
    let candidates = [
        found(TrustWord::Wrong, "VERIFY", status_of("VERIFY")),
        found(TrustWord::Wrong, "CONSERVE", status_of("CONSERVE")),
        found(TrustWord::Host, "CLOCK", status_of("CLOCK")),
        found(TrustWord::Saturated, "SAT", status_of("SAT")),
        found(
            TrustWord::Failed,
            "ERR",
            caution(rows.iter().any(|row| row.unanswered >= quantile.share_above())),
        ),
        found(TrustWord::Warm, "WARM", steady("WARM")),
        found(TrustWord::Drift, "DRIFT", steady("DRIFT")),
        found(TrustWord::Drift, "SHIFT", steady("SHIFT")),
        found(TrustWord::Client, "LAG", client(evidence, places, quantile)),
        found(TrustWord::Thin, "CI-THIN", caution(is_thin(rows, quantile))),
        found(TrustWord::Wide, "CI-THIN", caution(is_wide(rows, quantile))),
    ];
    // Of equals the one that is first; what the user accepts hides nothing else.
    let worst = candidates.into_iter().flatten().min_by_key(|trust| {
        (evidence.judgement.allows(trust.check), std::cmp::Reverse(trust.status), trust.word)
    });
    worst.unwrap_or(Trust { quantile, word: TrustWord::Ok, status: CheckStatus::Ok, check: "", is_shown })
}

/// Client error of it, in the worst of the rows that give it.
fn client(evidence: &Evidence<'_>, places: &Range<usize>, quantile: Quantile) -> CheckStatus {
    let of_row = |index: usize| {
        let row = &evidence.lag_rows[index];
        let error = row.errors.iter().find(|error| error.quantile == quantile)?;
        Some(Lag::of(row, error, index == 0, evidence.judgement.is_strict).status)
    };
    let worst = places.clone().filter_map(of_row).max().unwrap_or(CheckStatus::Ok);
    // What rests on so few requests as a p99.99 does not convict a run.
    if quantile > Quantile::P999 { worst.min(CheckStatus::Caution) } else { worst }
}

/// The interval of a percentile in each row that gives it.
fn intervals(rows: &[LagRow], quantile: Quantile) -> impl Iterator<Item = Option<&PercentileInterval>> {
    let given = rows.iter().filter(move |row| row.errors.iter().any(|error| error.quantile == quantile));
    given.map(move |row| row.intervals.iter().find(|interval| interval.quantile == quantile))
}

fn is_thin(rows: &[LagRow], quantile: Quantile) -> bool {
    intervals(rows, quantile).any(|interval| interval.is_none_or(PercentileInterval::is_marked))
}

fn is_wide(rows: &[LagRow], quantile: Quantile) -> bool {
    let is_wide =
        |interval: &PercentileInterval| interval.relative_half_width().is_none_or(|half| half > WIDE);
    intervals(rows, quantile).flatten().any(is_wide)
}

/// Does what a check of the steady state found concern this percentile? The p50 stands for those up to p90, the p99 for those
/// above, and throughput and hit ratio for all.
fn is_of_series(evidence: &Evidence<'_>, check: &str, quantile: Quantile) -> bool {
    let concerns = |series: Series| match series {
        Series::P50 => quantile <= Quantile::P90,
        Series::P99 => quantile > Quantile::P90,
        Series::Throughput | Series::HitRatio => true,
    };
    Series::ALL.into_iter().any(|series| concerns(series) && evidence.steady.fires(check, series))
}

/// What the run comes to: `TRUSTED up to p99`, `CAUTION p99.9: client`, `CAUTION: ERR`, behind what explains most of it.
pub(super) fn headline(verdict: &Verdict) -> Vec<String> {
    let cause = verdict.leading_cause().map(|cause| cause.sentence.clone());
    cause.into_iter().chain(judged(verdict)).collect()
}

fn judged(verdict: &Verdict) -> Vec<String> {
    let convicting = |check: &&Check| check.status == CheckStatus::NotTrusted && verdict.counts(check);
    let ids =
        |checks: &mut dyn Iterator<Item = &Check>| checks.map(|check| check.id).collect::<Vec<_>>().join(" ");
    if verdict.status == Status::NotTrusted {
        let convicted = ids(&mut verdict.checks.iter().filter(convicting));
        return vec![format!("{}: {convicted}", Status::NotTrusted.name())];
    }
    let accepted = |trust: &Trust| trust.status <= CheckStatus::Ok || verdict.judgement.allows(trust.check);
    let mut parts = Vec::new();
    let trusted = verdict.shown_percentiles().take_while(|trust| accepted(trust)).last();
    match trusted {
        Some(trust) => parts.push(format!("{} up to {}", Status::Trusted.name(), trust.quantile)),
        None if verdict.status == Status::Trusted => parts.push(Status::Trusted.name().to_owned()),
        None => {}
    }
    let doubted: Vec<&Trust> = verdict.shown_percentiles().filter(|trust| !accepted(trust)).collect();
    for alike in doubted.chunk_by(|one, next| one.word == next.word) {
        let names: Vec<String> = alike.iter().map(|trust| trust.quantile.to_string()).collect();
        parts.push(format!("{} {}: {}", Status::Caution.name(), names.join(" "), alike[0].word.name()));
    }
    // What a word tells already, or the cause in front, is not told twice.
    let leading: Vec<&str> = verdict.leading_cause().into_iter().flat_map(Cause::ids).collect();
    let is_told = |id: &str| doubted.iter().any(|trust| trust.check == id) || leading.contains(&id);
    let others =
        |check: &&Check| check.status == CheckStatus::Caution && verdict.counts(check) && !is_told(check.id);
    let others = ids(&mut verdict.checks.iter().filter(others));
    if !others.is_empty() {
        parts.push(format!("{}: {others}", Status::Caution.name()));
    }
    parts
}
