//! The latency by percentile of several results in one chart.
//!
//! Invariant: a line ends with the last percentile that ten requests of its result lie above.

use super::frame::{self, Frame, Key, Size};
use super::heat;
use super::markup::Markup;
use super::spectrum::{Level, SERVICE, Spectrum, axes, band, maximum, polyline, rarity};
use crate::layout::Layout;
use crate::run_document::latency::times_table;
use brunt_picture::{Fill, Ink};
use brunt_plan::quantile::Quantile;

/// Draws the response times of each with its interval.
pub(crate) fn chart(spectra: &[Spectrum<'_>], size: Size) -> Frame {
    let (low, high) = range(spectra);
    let mut frame = axes(most(spectra), (low, high), "response time", size);
    frame.draw(|picture, frame| {
        for (index, Spectrum { summary, levels, most }) in spectra.iter().enumerate() {
            let stroke = frame::result_stroke(index);
            let at = |level: &Level, ns: u64| frame.at(rarity(level.quantile), ns as f64);
            picture.group(frame::RESULT_CLASSES[index], |picture| {
                band(picture, levels, &at, high, Fill::faint(stroke.ink, 0.14));
                let points = levels.iter().map(|level| at(level, level.response_ns)).collect();
                polyline(picture, points, stroke);
                maximum(picture, frame, summary, levels, *most, stroke.ink);
            });
        }
    });
    frame
}

/// Draws the service times of each, on axes like those of the response times.
pub(crate) fn service(spectra: &[Spectrum<'_>], size: Size) -> Frame {
    let mut frame = axes(most(spectra), range(spectra), "service time", size);
    frame.draw(|picture, frame| {
        for (index, Spectrum { levels, .. }) in spectra.iter().enumerate() {
            let stroke = if spectra.len() == 1 { SERVICE } else { frame::result_stroke(index) };
            let at = |level: &Level| Some(frame.at(rarity(level.quantile), level.service_ns? as f64));
            polyline(picture, levels.iter().filter_map(at).collect(), stroke);
        }
    });
    frame
}

/// The ends of an axis for the response and service times of all of them.
fn range(spectra: &[Spectrum<'_>]) -> (f64, f64) {
    let latencies = spectra.iter().map(|held| &held.summary.total.latency);
    let histograms = latencies.flat_map(|latency| [&latency.response, &latency.service]);
    let histograms: Vec<_> = histograms.map(|held| held.histogram.to_sparse()).collect();
    let edges = heat::edges(histograms.iter());
    (edges[0], edges[edges.len() - 1])
}

/// The end of an axis for all of them.
pub(crate) fn most(spectra: &[Spectrum<'_>]) -> f64 {
    spectra.iter().map(|held| held.most).fold(1.0, f64::max)
}

/// The legend: each result by its name.
pub(crate) fn keys(names: &[String]) -> Vec<Key> {
    let of_result = |(index, name): (usize, &String)| Key {
        name: name.clone(),
        class: frame::RESULT_CLASSES[index],
        sample: frame::line_sample(frame::result_stroke(index)),
    };
    let mut keys: Vec<Key> = names.iter().enumerate().map(of_result).collect();
    let sample = frame::area_sample(Fill::faint(Ink::Series(0), 0.14));
    keys.push(Key { name: "95 % interval".to_owned(), class: "", sample });
    keys
}

/// The numbers of the chart, a column for each result.
pub(super) fn table(markup: &mut Markup, spectra: &[Spectrum<'_>], names: &[String]) {
    let mut quantiles: Vec<Quantile> =
        spectra.iter().flat_map(|held| held.levels.iter().map(|level| level.quantile)).collect();
    quantiles.sort_unstable();
    quantiles.dedup();
    let value = |held: &Spectrum<'_>, quantile: Quantile| {
        let level = held.levels.iter().find(|level| level.quantile == quantile);
        level.map(|level| level.response_ns)
    };
    let row = |quantile: &Quantile| {
        (quantile.to_string(), spectra.iter().map(|held| value(held, *quantile)).collect())
    };
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let grid = times_table("percentile", &names, quantiles.iter().map(row).collect(), &Layout::default());
    markup.grid("Response time by percentile", &grid, None);
}
