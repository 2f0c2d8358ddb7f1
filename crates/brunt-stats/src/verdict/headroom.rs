//! The check of the load against what this client was found to be capable of on this host.
//!
//! Not whether the client was late (LAG saw that, in this very run): whether it works where it may become so.

use super::Evidence;
use crate::calibration::Lookup;
use crate::check::{Check, CheckStatus, Limits};
use crate::headroom::{Headroom, HeadroomLimit};
use crate::number_text::{percent, rounded};

/// Share of the headroom that may be used. There is no share that convicts: LAG does, when the client is late.
const HEADROOM: Limits = Limits { caution: 0.70, not_trusted: f64::INFINITY };

/// Was the load well below what the client can do?
pub(super) fn headroom(evidence: &Evidence<'_>) -> Check {
    let skipped = |message: &str| Check::skipped("HEADROOM", message, HEADROOM.caution);
    let fit = match &evidence.calibration {
        Lookup::Absent => return skipped("not calibrated: run `brunt calibrate`"),
        Lookup::Unfit(reason) => return skipped(reason),
        Lookup::Fit(fit) => fit,
    };
    let rate = evidence.busiest_rate;
    let Headroom { rate: known, limit, limit_rate } = fit.calibration.headroom;
    // Where no rate was within the limit, the headroom is less than the lowest that was tried.
    let bound = if limit == HeadroomLimit::Client { known.or(limit_rate) } else { known };
    let Some(bound) = bound.filter(|bound| *bound > 0) else {
        return skipped(
            "the calibration found no headroom: its reference server did not keep up with any rate",
        );
    };
    let value = rate / bound as f64;
    let status = HEADROOM.judge(value);
    let share = percent(value);
    let (rate, bound) = (rounded(rate), bound);
    let mut details = Vec::new();
    let mut message = format!("{rate} requests/s, {share} of the calibrated headroom of {bound}/s");
    match (limit, known, status) {
        (HeadroomLimit::Client, Some(_), CheckStatus::Ok) => {}
        (HeadroomLimit::Client, Some(_), _) => {
            details.push("above it the client's own share in the p99 exceeds 10 us".to_owned());
        }
        (HeadroomLimit::Client, None, CheckStatus::Ok) => {
            return skipped(&format!(
                "the headroom is below {bound}/s, the lowest rate that was calibrated, and no more is known"
            ));
        }
        (HeadroomLimit::Client, None, _) => {
            message = format!(
                "{rate} requests/s: the client's own share in the p99 exceeded 10 us already at {bound}/s, the lowest rate \
                 that was calibrated"
            );
        }
        (HeadroomLimit::Server | HeadroomLimit::Search, _, CheckStatus::Ok) => {
            message =
                format!("{rate} requests/s, {share} of {bound}/s, which is the least that the headroom is");
        }
        (HeadroomLimit::Server | HeadroomLimit::Search, ..) => {
            return skipped(&format!(
                "the headroom is at least {bound}/s, and no more is known: calibration ended there, at no limit of the \
                 client's"
            ));
        }
    }
    let fix = "use more --threads or a lower rate, or calibrate again if the host was busy then or has changed since";
    Check::judged("HEADROOM", status, message, fix, value, HEADROOM.caution).with(details)
}
