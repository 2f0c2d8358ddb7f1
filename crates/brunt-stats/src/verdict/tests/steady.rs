//! The checks of the steady state: their words, and what fires when several do.
//!
//! Not the rules (those are tested where they are). `Ok` and `Err` are the language's here.

use super::super::CheckStatus;
use super::check;
use crate::histogram::Histogram;
use crate::latency::LatencySummary;
use crate::steady::warmup::WarmupEnd;
use crate::steady::{Beginning, Drift, Series, SeriesSteadiness, Shift, Steadiness, WarmUp};
use CheckStatus::{Caution, Skipped};

/// Four series without fault, but for what is changed in that of the p99.
pub(super) fn steady(change: impl Fn(&mut SeriesSteadiness)) -> Steadiness {
    let level = |series| SeriesSteadiness {
        series,
        warm_up: Ok(WarmUp { mser_ns: 1_500_000_000, ..WarmUp::default() }),
        course: Ok((Drift { z: -1.5, change: -0.02, fires: false }, Shift { p: 0.4, ..Shift::default() })),
    };
    let mut steady = Steadiness { series: Series::ALL.map(level).into(), ..Steadiness::default() };
    change(&mut steady.series[1]);
    steady
}

#[test]
fn a_window_that_does_not_begin_warm() {
    let with = |warm_up: WarmUp, trouble_ns: Option<u64>, requests: u64| {
        let latency = |value_ns| {
            let mut histogram = Histogram::new();
            histogram.record_many(value_ns, requests);
            LatencySummary::of(&histogram)
        };
        let beginning = Beginning {
            until_ns: warm_up.until_ns,
            warmup_needed_ns: 1_000_000_000 + warm_up.until_ns,
            with: latency(1_200_000),
            without: latency(800_000),
            trouble_ns,
        };
        check("WARM", move |evidence| {
            evidence.steady = steady(|held| held.warm_up = Ok(warm_up));
            evidence.steady.beginning = (!warm_up.is_endless).then_some(beginning.clone());
        })
    };
    let late = WarmUp { mser_ns: 2_500_000_000, until_ns: 2_500_000_000, change: 0.38, is_endless: false };
    for (trouble_ns, requests, message) in [
        (
            None,
            1_000,
            "p99 is +38.0 % in the first 2.50 s of the window, against the rest; the p99 of all requests is \
             1.20 ms, and 800 us without that part; --warmup 3.50 s would have covered it",
        ),
        (
            None,
            999,
            "p99 is +38.0 % in the first 2.50 s of the window, against the rest; --warmup 3.50 s would have \
             covered it",
        ),
        (
            Some(400_000_000),
            1_000,
            "p99 is +38.0 % in the first 2.50 s of the window, against the rest; the p99 of all requests is \
             1.20 ms, and 800 us without that part; in it, after 400 ms, a server or a connection failed",
        ),
    ] {
        let found = with(late, trouble_ns, requests);
        assert_eq!((found.status, found.text().as_str()), (Caution, message));
        assert_eq!((found.value, found.threshold), (0.38, 0.1));
        assert_eq!(found.fix.starts_with("raise --warmup"), trouble_ns.is_none(), "{}", found.fix);
    }
    let found = with(WarmUp { is_endless: true, change: -0.25, ..late }, None, 1_000);
    assert_eq!(
        (found.status, found.text().as_str()),
        (
            Caution,
            "p99 is -25.0 % from the beginning of the window to its middle, against the rest: no end of a warm-up is in \
             sight, and every number is of the whole window"
        )
    );
    for (end, is_late, words, fix) in [
        (WarmupEnd::Level, true, "", "raise --warmup"),
        (WarmupEnd::Longest, false, "; the warm-up was not level after 60 s", ""),
        (
            WarmupEnd::Longest,
            true,
            "; the warm-up was not level after 60 s",
            "give a longer --warmup than 60 s",
        ),
        (WarmupEnd::Trouble, true, "; the warm-up ended where a server or a connection failed", "find out"),
    ] {
        let found = check("WARM", move |evidence| {
            evidence.run.to_mut().warmup_end = Some(end);
            evidence.steady =
                steady(|held| held.warm_up = Ok(if is_late { late } else { WarmUp::default() }));
        });
        assert!(found.text().ends_with(words) && found.fix.starts_with(fix), "{found:?}");
        assert_eq!(found.status, if is_late { Caution } else { CheckStatus::Ok });
        assert!(end != WarmupEnd::Level || !found.text().contains("the warm-up"), "{found:?}");
    }
    let found = check("WARM", |_| {});
    assert_eq!(found.text(), "nothing begins otherwise than it goes on: p50, p99, throughput, hit ratio");
    let found = check("WARM", |evidence| {
        evidence.steady.series.iter_mut().for_each(|held| held.warm_up = Err("because".to_owned()));
    });
    assert_eq!((found.status, found.text().as_str()), (Skipped, "because"));
    assert_eq!(check("WARM", |evidence| evidence.steady.series.clear()).status, Skipped);
}

#[test]
fn a_series_that_drifts() {
    let drift = Drift { z: 4.25, change: 0.212, fires: true };
    let with = |drift: Drift, hit: Option<Drift>| {
        check("DRIFT", move |evidence| {
            evidence.steady = steady(|held| held.course = Ok((drift, Shift::default())));
            evidence.steady.series[3].course =
                hit.map(|hit| (hit, Shift::default())).ok_or("no keys".to_owned());
        })
    };
    let found = with(drift, None);
    assert_eq!(
        (found.status, found.text().as_str()),
        (Caution, "p99 went +21.2 % of its median over the window (Mann-Kendall Z 4.25)")
    );
    assert_eq!((found.value, found.threshold), (4.25, 3.023));
    let found = with(drift, Some(Drift { z: -6.5, change: -0.031, fires: true }));
    assert_eq!(found.text(), "hit ratio went -0.031 over the window (Mann-Kendall Z -6.50); p99 as well");
    let found = with(Drift { fires: false, ..drift }, None);
    assert_eq!(
        (found.status, found.text().as_str()),
        (
            CheckStatus::Ok,
            "no trend that is both certain and large in p50, p99, throughput: at most Z 4.25, p99 +21.2 % of its median"
        )
    );
}

#[test]
fn a_series_that_changes_its_level() {
    let shift = Shift { p: 0.000_34, at_ns: 6_200_000_000, change: 0.352, fires: true };
    let with = |shift: Shift, p50: Option<Shift>| {
        check("SHIFT", move |evidence| {
            evidence.steady = steady(|held| held.course = Ok((Drift::default(), shift)));
            evidence.steady.series[0].course = p50.map(|p50| (Drift::default(), p50)).ok_or("few".to_owned());
        })
    };
    let found = with(shift, None);
    assert_eq!(
        (found.status, found.text().as_str()),
        (Caution, "p99 went +35.2 % 6.20 s into the window (Pettitt p 0.0003)")
    );
    assert_eq!((found.value, found.threshold), (0.000_34, 0.002_5));
    let found = with(shift, Some(Shift { p: 1e-6, at_ns: 5_000_000_000, change: -0.2, fires: true }));
    assert_eq!(found.text(), "p50 went -20.0 % 5.00 s into the window (Pettitt p < 0.0001); p99 as well");
    let found = with(Shift { fires: false, ..shift }, None);
    assert_eq!(
        (found.status, found.text().as_str()),
        (
            CheckStatus::Ok,
            "no change of level that is both certain and large in p99, throughput, hit ratio: at least p 0.0003, p99 \
             +35.2 %"
        )
    );
}
