//! What is known of this client on this host, beside the run it was measured for.
//!
//! Not the calibration itself (its page is [`crate::calibration`]) and no judgement: HEADROOM compares.

use crate::paragraph::{self, printable};
use crate::quantity;
use crate::wall_clock::date;
use brunt_stats::calibration::{CalibrationMatch, Lookup};
use brunt_stats::headroom::{Headroom, HeadroomLimit};
use brunt_stats::summary::Summary;

pub(super) fn write(out: &mut String, summary: &Summary) {
    match &summary.record.calibration {
        Lookup::Absent => {}
        Lookup::Unfit(reason) => {
            paragraph::prose(out, "floor", &printable(&format!("not known: {reason}")));
        }
        Lookup::Fit(fit) => paragraph::facts(out, "floor", &facts(fit, summary.total.rate.busiest())),
    }
}

fn facts(fit: &CalibrationMatch, rate: f64) -> Vec<String> {
    let CalibrationMatch { calibration, differences } = fit;
    let [p50, p99] = [calibration.loopback.p50_ns, calibration.loopback.p99_ns].map(quantity::time);
    let facts = [
        format!("of this client over loopback: p50 {p50}, p99 {p99}"),
        headroom(&calibration.headroom, rate),
        format!("calibrated {}", date(calibration.made_at_s)),
    ];
    facts.into_iter().chain(differences.iter().map(|difference| printable(difference))).collect()
}

/// How many times the rate of the run the client is known to be capable of.
fn headroom(headroom: &Headroom, rate: f64) -> String {
    let times = |bound: u64| match rate {
        0.0 => format!("{bound}/s"),
        rate => format!("{}x", quantity::significant(bound as f64 / rate)),
    };
    match (headroom.rate, headroom.limit, headroom.limit_rate) {
        (Some(bound), HeadroomLimit::Client, _) => format!("headroom {}", times(bound)),
        (None, HeadroomLimit::Client, Some(lowest)) => {
            format!("headroom below {lowest}/s")
        }
        (Some(bound), ..) => format!("headroom at least {}", times(bound)),
        (None, ..) => "headroom not known".to_owned(),
    }
}
