//! The check of what runs say of each other: do they measure one number?
//!
//! Not of anything inside a run. One run alone cannot be checked for it, and says so.

use crate::check::{Check, CheckStatus};
use crate::number_text::{percent, significant};
use crate::repeat::{I2_MAX, Spread};

/// One run.
pub(super) fn single() -> Check {
    Check::skipped("REPEAT", "one run: run-to-run spread unknown", I2_MAX)
}

/// Several runs, with the numbers that were compared.
pub(super) fn agreement(spreads: &[(String, Spread)]) -> Check {
    let compared = spreads.iter().filter(|(_, spread)| spread.runs > 1);
    let known = compared.clone().filter_map(|(name, spread)| Some((name, spread, spread.heterogeneity?.i2)));
    let worst = known.clone().max_by(|one, other| {
        let order = |(_, spread, i2): &(&String, &Spread, f64)| (spread.is_hysteresis(), *i2);
        order(one).0.cmp(&order(other).0).then(order(one).1.total_cmp(&order(other).1))
    });
    match (worst, compared.count()) {
        (None, 0) => single(),
        (None, _) => {
            let message = "some run has no confidence interval, or a thin one (~): nothing to hold the spread of the runs against";
            Check::skipped("REPEAT", message, I2_MAX)
        }
        (Some((name, spread, i2)), _) => {
            let range = percent(spread.relative_range());
            let (status, message) = if spread.is_hysteresis() {
                let message = format!(
                    "HYSTERESIS: runs disagree more than their own CIs allow: {name} differs by {range}, I2 {}",
                    percent(i2)
                );
                (CheckStatus::Caution, message)
            } else {
                let runs = spread.runs;
                let message =
                    format!("{runs} runs agree: {name} differs by {range}, I2 {} %", significant(i2 * 100.0));
                (CheckStatus::Ok, message)
            };
            let fix = "quote the range, not a run, or find what differs from run to run (memory layout, a restart, a neighbour)";
            Check::judged("REPEAT", status, message, fix, i2, I2_MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::check::CheckStatus;
    use crate::repeat::{Estimate, Spread};
    use crate::verdict::{Judgement, Status, Verdict};

    fn spread(name: &str, values: &[f64], half_width: Option<f64>) -> (String, Spread) {
        let estimates: Vec<Estimate> = values.iter().map(|&value| Estimate { value, half_width }).collect();
        (name.to_owned(), Spread::of(&estimates).unwrap())
    }

    #[test]
    fn agreement_of_runs() {
        let agree = || spread("p50", &[99.0, 100.0, 101.0], Some(2.0));
        let differ = || spread("p99", &[90.0, 100.0, 110.0], Some(2.0));
        let table = [
            (
                vec![spread("p99", &[100.0], Some(1.0))],
                CheckStatus::Skipped,
                "one run: run-to-run spread unknown",
            ),
            (vec![], CheckStatus::Skipped, "one run: run-to-run spread unknown"),
            (
                vec![spread("p99", &[1.0, 2.0], None)],
                CheckStatus::Skipped,
                "some run has no confidence interval, or a thin one (~)",
            ),
            (vec![agree()], CheckStatus::Ok, "3 runs agree: p50 differs by 2.00 %, I2 0 %"),
            (
                vec![agree(), differ()],
                CheckStatus::Caution,
                "HYSTERESIS: runs disagree more than their own CIs allow: p99 differs by 20.0 %, I2 99.0 %",
            ),
        ];
        for (spreads, status, message) in table {
            let verdict = Verdict::of_campaign([Status::Trusted; 3], &spreads, &Judgement::default());
            let check = &verdict.checks[0];
            assert_eq!((check.id, check.status), ("REPEAT", status), "{}", check.message);
            assert!(check.message.starts_with(message), "{}", check.message);
            assert_eq!(verdict.status == Status::Caution, status == CheckStatus::Caution);
            let allowed = Judgement { allowed: vec!["REPEAT".to_owned()], ..Judgement::default() };
            assert_eq!(
                Verdict::of_campaign([Status::Trusted; 3], &spreads, &allowed).status,
                Status::Trusted
            );
        }
    }

    #[test]
    fn a_campaign_is_as_good_as_its_worst_run() {
        let status =
            |runs: &[Status]| Verdict::of_campaign(runs.iter().copied(), &[], &Judgement::default()).status;
        assert_eq!(status(&[]), Status::Trusted);
        assert_eq!(status(&[Status::Trusted, Status::Caution]), Status::Caution);
        assert_eq!(status(&[Status::NotTrusted, Status::Caution]), Status::NotTrusted);
    }
}
