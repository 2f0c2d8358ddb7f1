//! Our own output: a summary becomes text and pages for a person, JSON for a script, JUnit XML for continuous integration, and
//! CSV of the run over time and of raw samples.
//!
//! Not statistics: every number is one of the summary's, or the quotient of two of them. Pure: a report is written to
//! what it is given, and the same summary always gives the same bytes. The way through this crate: [`run_document`] lays
//! out what a performance engineer reads first, [`json::write`] is the schema `brunt.summary.v1` that scripts rely on,
//! [`html::write`] draws it as a page, [`publication`] draws its charts for papers, [`csv::write`] has a line per second, as [`ndjson`]
//! has while the run goes on, [`hlog::write`] their histograms, [`samples::write`] lists the samples that a plan asked to keep;
//! [`calibration`] is the page, the object and the file of `brunt calibrate`; [`result::read`] takes results in again,
//! and [`comparison::Comparison`] puts two sets of them side by side.

#![forbid(unsafe_code)]
// `json!` takes a step of it for every key of a summary.
#![recursion_limit = "256"]

pub mod annotations;
pub mod assertion_text;
pub mod bar_scale;
pub mod brief;
pub mod calibration;
pub mod campaign;
pub mod comparison;
mod cost;
pub mod csv;
pub mod document;
mod figure;
mod grid;
pub mod hlog;
pub mod html;
mod indented;
mod instant;
pub mod json;
pub mod junit;
pub mod layout;
pub mod live;
pub mod markdown;
mod metered;
mod metric;
pub mod metrics;
pub mod ndjson;
mod page;
mod paragraph;
pub mod publication;
pub mod quantity;
mod reasons;
mod record;
pub mod result;
mod row;
pub mod run_document;
pub mod samples;
mod server;
pub mod spectrum;
pub mod stored;
mod table;
mod text;
pub mod wall_clock;

#[cfg(test)]
mod tests;
