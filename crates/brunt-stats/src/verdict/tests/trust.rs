//! What an ordinary judgement makes of what the checks find: the status of the run, its sentence, and the words of its percentiles.

use super::*;
use crate::latency::ClientError;

/// A run without fault that gives four percentiles.
pub(super) fn ordinary() -> Evidence<'static> {
    let quantiles = [Quantile::P50, Quantile::P90, Quantile::P99, Quantile::P999];
    let errors =
        quantiles.map(|quantile| ClientError { quantile, response_ns: 400_000, error_ns: 3_000 }).into();
    let intervals =
        quantiles.map(|quantile| PercentileInterval { quantile, ..interval(30, 950, Some(1_050)) }).into();
    let row =
        LagRow { name: "all requests".to_owned(), is_closed_loop: false, errors, intervals, unanswered: 0.0 };
    let of_get = LagRow { name: "get".to_owned(), ..row.clone() };
    Evidence { judgement: Judgement::default(), lag_rows: vec![row, of_get], ..clean() }
}

fn judged(change: impl Fn(&mut Evidence<'_>)) -> Verdict {
    let mut evidence = ordinary();
    change(&mut evidence);
    Verdict::of(&evidence)
}

type Change = fn(&mut Evidence<'_>);

#[test]
fn a_verdict_is_one_sentence() {
    let table: [(Change, Status, &str); 16] = [
        (|_| {}, Status::Trusted, "TRUSTED up to p99.9"),
        // The client's share of one percentile of one kind of op.
        (
            |evidence| evidence.lag_rows[1].errors[3].error_ns = 80_001,
            Status::Caution,
            "TRUSTED up to p99 · CAUTION p99.9: client",
        ),
        (|evidence| evidence.lag_rows[1].errors[3].error_ns = 80_000, Status::Trusted, "TRUSTED up to p99.9"),
        (
            |evidence| evidence.lag_rows[0].errors[1].error_ns = 390_000,
            Status::Caution,
            "TRUSTED up to p50 · CAUTION p90: client",
        ),
        // Most of the median of all requests: then nothing is known of the server.
        (
            |evidence| evidence.lag_rows[0].errors[0].error_ns = 200_000,
            Status::Caution,
            "CAUTION p50: client",
        ),
        (
            |evidence| evidence.lag_rows[0].errors[0].error_ns = 200_001,
            Status::NotTrusted,
            "NOT TRUSTED: LAG",
        ),
        (
            |evidence| evidence.lag_rows[1].errors[0].error_ns = 399_000,
            Status::Caution,
            "CAUTION p50: client",
        ),
        (
            |evidence| evidence.lag_rows[0].intervals[3].high_ns = None,
            Status::Caution,
            "TRUSTED up to p99 · CAUTION p99.9: thin",
        ),
        (
            |evidence| evidence.lag_rows[0].intervals[2].high_ns = Some(1_500),
            Status::Caution,
            "TRUSTED up to p90 · CAUTION p99: wide",
        ),
        (
            |evidence| {
                evidence.lag_rows[0].errors[3].error_ns = 390_000;
                evidence.lag_rows[0].intervals[2].batches_reached = 3;
            },
            Status::Caution,
            "TRUSTED up to p90 · CAUTION p99: thin · CAUTION p99.9: client",
        ),
        // As many failed as lie above a p99.
        (
            |evidence| {
                evidence.lag_rows[0].unanswered = 0.011;
                (evidence.timeouts, evidence.completed) = (1_000, 99_000);
            },
            Status::Caution,
            "TRUSTED up to p90 · CAUTION p99 p99.9: failed",
        ),
        // One of many: the percentiles stand, and the run has failures.
        (|evidence| evidence.timeouts = 1, Status::Caution, "TRUSTED up to p99.9 · CAUTION: ERR"),
        // Causes: what they did to the numbers is told by the numbers.
        (
            |evidence| {
                evidence.run.to_mut().host.stolen_ns = Some(2_000_000_000);
                evidence.run.to_mut().usage.workers = vec![worker(0.96, 0.03)];
            },
            Status::Trusted,
            "TRUSTED up to p99.9",
        ),
        (|evidence| evidence.completed = 999, Status::NotTrusted, "NOT TRUSTED: SAMPLES"),
        (
            |evidence| {
                evidence.open_loop = Some(OpenLoop { scheduled: 100_000, unsent: 1_001, abandoned: 0 })
            },
            Status::NotTrusted,
            "NOT TRUSTED: RATE",
        ),
        (
            |evidence| {
                evidence.open_loop = Some(OpenLoop { scheduled: 100_000, unsent: 1_001, abandoned: 1_000 })
            },
            Status::Caution,
            "TRUSTED up to p99.9 · CAUTION: RATE",
        ),
    ];
    for (index, (change, status, sentence)) in table.into_iter().enumerate() {
        let verdict = judged(change);
        assert_eq!(
            (verdict.status, verdict.sentence().as_str()),
            (status, sentence),
            "row {index}: {verdict:#?}"
        );
    }
}

#[test]
fn the_word_of_a_percentile() {
    let words = |change: Change| {
        let verdict = judged(change);
        verdict.percentiles.iter().map(Trust::to_string).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(words(|_| {}), "ok ok ok ok");
    assert_eq!(
        words(|evidence| evidence.last_half =
            Some(LastHalf { offered: 50_000.0, answered: 20_000.0, seconds: 5.0 })),
        "sat! sat! sat! sat!"
    );
    assert_eq!(words(|evidence| evidence.run.to_mut().host.clock.backwards = 1), "host! host! host! host!");
    // A series of the p50 speaks of those up to p90, that of the p99 of those above.
    let drifts = |series: crate::steady::Series| {
        move |evidence: &mut Evidence<'_>| {
            let held = evidence.steady.series.iter_mut().find(|held| held.series == series);
            let (drift, _) = held.unwrap().course.as_mut().unwrap();
            (drift.fires, drift.z, drift.change) = (true, 9.0, 0.5);
        }
    };
    let words_of = |series| {
        judged(drifts(series)).percentiles.iter().map(Trust::to_string).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(words_of(crate::steady::Series::P50), "drift? drift? ok ok");
    assert_eq!(words_of(crate::steady::Series::P99), "ok ok drift? drift?");
    assert_eq!(words_of(crate::steady::Series::HitRatio), "drift? drift? drift? drift?");
    // What may be the client's is told before what may have changed because of it.
    let both = judged(|evidence| {
        drifts(crate::steady::Series::P99)(evidence);
        evidence.lag_rows[0].errors[3].error_ns = 90_000;
    });
    assert_eq!(
        both.percentiles.iter().map(Trust::to_string).collect::<Vec<_>>(),
        ["ok", "ok", "drift?", "client?"]
    );
}

/// A row has the words of what was found of it alone, and of what concerns the whole run.
#[test]
fn the_words_of_a_row() {
    let words = |change: Change| {
        let verdict = judged(change);
        let of_row = |row: &Vec<Trust>| row.iter().map(Trust::to_string).collect::<Vec<_>>().join(" ");
        verdict.rows.iter().map(of_row).collect::<Vec<_>>()
    };
    assert_eq!(words(|_| {}), ["ok ok ok ok", "ok ok ok ok"]);
    assert_eq!(
        words(|evidence| evidence.lag_rows[1].errors[3].error_ns = 80_001),
        ["ok ok ok ok", "ok ok ok client?"]
    );
    assert_eq!(
        words(|evidence| evidence.lag_rows[0].intervals[3].high_ns = None),
        ["ok ok ok thin?", "ok ok ok ok"]
    );
    assert_eq!(
        words(|evidence| {
            evidence.run.to_mut().host.clock.backwards = 1;
            evidence.lag_rows[1].errors.truncate(2);
        }),
        ["host! host! host! host!", "host! host!"]
    );
    // Most of a median convicts where it is that of all requests.
    assert_eq!(
        words(|evidence| evidence.lag_rows[1].errors[0].error_ns = 399_000),
        ["ok ok ok ok", "client? ok ok ok"]
    );
}

/// Bytes that are no reply to more than one request in a hundred: what else came is not known to be right.
#[test]
fn malformed_bytes_are_never_trusted() {
    let with = |malformed, is_strict| {
        let verdict = judged(|evidence| {
            evidence.judgement.is_strict = is_strict;
            evidence.faults.sent = 100_000;
            evidence.run.to_mut().counts.datagrams.malformed = malformed;
        });
        (verdict.status, verdict.sentence())
    };
    for is_strict in [false, true] {
        assert_eq!(with(1_001, is_strict).0, Status::NotTrusted);
        assert_eq!(with(1_000, is_strict).0, Status::Caution);
    }
}

#[test]
fn strict_and_allowed() {
    let late = |judgement: Judgement| {
        judged(move |evidence| {
            evidence.judgement = judgement.clone();
            evidence.lag_rows[0].errors[3].error_ns = 100_000;
            evidence.run.to_mut().host.stolen_ns = Some(2_000_000_000);
        })
    };
    let found = |verdict: Verdict| (verdict.status, verdict.sentence());
    let caution = (Status::Caution, "TRUSTED up to p99 · CAUTION p99.9: client".to_owned());
    assert_eq!(found(late(Judgement::default())), caution);
    let strict = Judgement { is_strict: true, allowed: Vec::new() };
    assert_eq!(found(late(strict.clone())), (Status::NotTrusted, "NOT TRUSTED: LAG STEAL".to_owned()));
    let allowed = Judgement { allowed: vec!["LAG".to_owned()], ..Judgement::default() };
    assert_eq!(found(late(allowed)), (Status::Trusted, "TRUSTED up to p99.9".to_owned()));
    // What is accepted hides nothing else.
    let late_and_wide = |allowed: &[&str]| {
        judged(|evidence| {
            evidence.judgement.allowed = allowed.iter().map(|id| (*id).to_owned()).collect();
            evidence.lag_rows[0].errors[2].error_ns = 200_000;
            evidence.lag_rows[0].intervals[2].high_ns = Some(1_500);
        })
    };
    assert_eq!(late_and_wide(&[]).sentence(), "TRUSTED up to p90 · CAUTION p99: client");
    assert_eq!(late_and_wide(&["LAG"]).sentence(), "TRUSTED up to p90 · CAUTION p99: wide");
    assert_eq!(late_and_wide(&["LAG", "CI-THIN"]).sentence(), "TRUSTED up to p99.9");
    let both = Judgement { allowed: vec!["LAG".to_owned(), "STEAL".to_owned()], ..strict };
    assert_eq!(found(late(both)), (Status::Trusted, "TRUSTED up to p99.9".to_owned()));
}
