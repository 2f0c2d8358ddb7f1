//! Numbers as the messages of checks have them.

pub(crate) use brunt_plan::quantity::{percent, time};

/// An estimate of a count, such as a rate: a whole number.
pub(crate) fn rounded(number: f64) -> String {
    format!("{:.0}", number.round())
}

pub(crate) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
