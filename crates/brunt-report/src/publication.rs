//! Figures for papers: the charts of the HTML page in the sizes of a column or a page, as SVG or PNG.
//!
//! Not the charts (those are `html`'s): here they get a size, a legend inside the picture, and a description of where their numbers come
//! from. Invariants: the same result is the same bytes; letters are outlines of 8 points.

use crate::campaign::html::Curve;
use crate::campaign::{Campaign, head_facts};
use crate::comparison::Comparison;
use crate::file_type::{FigureStyle, FigureWidth, FileType, Medium};
use crate::html::chart::{Chart, Key, MOST, Note, SAMPLE, Size, keys};
use crate::html::over_time::Course;
use crate::html::spectrum::{self, Spectrum};
use crate::run_document::head;
use crate::subject::Subject;
use brunt_picture::{
    Anchor, Ink, Picture, Point, Text, Theme, text_width, write_printed_png, write_printed_svg,
};
use brunt_stats::status::Status;
use brunt_stats::summary::Summary;
use std::io::{self, Write};

/// Pixels to an inch of paper: names of 12 pixels are 8 points high, of which an inch has 72.
const INCH: f64 = 72.0 * 12.0 / 8.0;
const LEGEND_SIZE: f64 = 12.0;
const LEGEND_ROW: f64 = 16.0;
const LEGEND_GAP: f64 = 14.0;
/// Of the height of a row on a page.
const ROW_PART: f64 = 0.68;
/// Results in one figure.
const RESULTS_MAX: usize = 4;
/// Columns of time in a figure.
const COLUMNS_MAX: u64 = 150;

/// A figure that can be written.
#[derive(Debug)]
pub struct Figure {
    picture: Picture,
    theme: Theme,
}

impl Figure {
    /// Writes it.
    ///
    /// # Errors
    /// What `out` returns.
    pub(crate) fn write(&self, medium: Medium, out: &mut dyn Write) -> io::Result<()> {
        let write = if medium == Medium::Png { write_printed_png } else { write_printed_svg };
        write(&self.picture, self.theme, out)
    }
}

impl Subject<'_> {
    /// Draws a figure.
    ///
    /// # Errors
    /// What these results lack for it; for a user.
    pub(crate) fn figure(self, figure: FileType, style: FigureStyle) -> Result<Figure, String> {
        let is_wide = style.width == FigureWidth::Page;
        let sheet = match (figure, self) {
            (FileType::Timeline, Self::Run(run)) => timeline(run, is_wide),
            (FileType::Curve, Self::Campaign(campaign)) => curve(campaign, is_wide),
            (FileType::Changes, Self::Comparison(comparison)) => changes(comparison),
            (FileType::Spectrum, Self::Run(_) | Self::Runs(_)) => spectrum(&self.runs(), is_wide),
            _ => Err(format!("{} is of something else", figure.name())),
        }?;
        let mut picture = sheet.draw(INCH * if is_wide { 7.0 } else { 10.0 / 3.0 });
        picture.description = self.description();
        let theme = if style.is_coloured { Theme::Light } else { Theme::Grey };
        Ok(Figure { picture, theme })
    }

    /// Single runs with their names.
    fn runs(&self) -> Vec<(&str, &Summary)> {
        match self {
            Self::Run(run) => vec![("the run", run)],
            Self::Runs(runs) => runs.iter().map(|(name, run)| (name.as_str(), run)).collect(),
            Self::Campaign(_) | Self::Comparison(_) => Vec::new(),
        }
    }

    /// Version, size, seeds and plans of what is drawn.
    fn description(self) -> String {
        let version = env!("CARGO_PKG_VERSION");
        let of_run = |(name, summary): &(&str, &Summary)| {
            let (record, requests) = (&summary.record, summary.total.latency.response.summary.count);
            let (brunt, plan) = (&record.environment.brunt_version, &record.plan);
            let plan_file = plan.spec.to_toml();
            format!("{name}: brunt {brunt}, {requests} requests, seed {}\n{plan_file}", plan.seed)
        };
        match self {
            Self::Run(_) | Self::Runs(_) => self.runs().iter().map(of_run).collect::<Vec<_>>().join("\n"),
            Self::Campaign(campaign) => {
                let seeds: Vec<String> = campaign.runs.iter().map(|run| run.seed.to_string()).collect();
                let (head, seeds, runs) = (head_facts(campaign), seeds.join(", "), campaign.runs.len());
                format!("brunt {version}, {runs} runs: {}; seeds {seeds}", facts(&head))
            }
            Self::Comparison(comparison) => format!("brunt {version}: {}", facts(&comparison.head_facts())),
        }
    }
}

/// In one line.
fn facts(labelled: &[head::Labelled]) -> String {
    let line = |(label, facts): &head::Labelled| format!("{label} {}", facts.join(", "));
    labelled.iter().map(line).collect::<Vec<_>>().join("; ")
}

/// One chart, or two of which the first takes a part of the width, or of the height, below their legend.
struct Sheet {
    title: &'static str,
    charts: Vec<Chart>,
    part: f64,
    is_below: bool,
    /// With the legend; `None`: as high as the rows of the chart.
    inches: Option<f64>,
}

impl Sheet {
    fn draw(&self, width: f64) -> Picture {
        let Self { title, charts, part, is_below, inches } = self;
        let (legend, top) = legend(charts, width);
        let margin = charts[0].margin();
        let margins = if *is_below { 2.0 * margin } else { margin };
        let rows = top + margins + charts[0].height * ROW_PART;
        let height = inches.map_or(rows, |inches| inches * INCH);
        let mut picture = Picture::new(width as u32, height as u32, Ink::Page, *title);
        picture.place(legend, Point { x: 0.0, y: 0.0 });
        let (mut at, plots) = (Point { x: 0.0, y: top }, height - top - margins);
        for (chart, part) in charts.iter().zip([*part, 1.0 - part]) {
            let size = match is_below {
                true => Size { width, height: (plots * part).floor() },
                false if charts.len() > 1 => Size { width: (width * part).floor(), height: plots },
                false => Size { width, height: plots },
            };
            picture.place(chart.draw(size), at);
            if *is_below { at.y += size.height + margin } else { at.x += size.width }
        }
        picture
    }
}

/// The legend, and how high it is.
fn legend(charts: &[Chart], width: f64) -> (Picture, f64) {
    let mut picture = Picture::new(width as u32, 1, Ink::Page, "");
    let (mut x, mut y) = (0.0, 0.0);
    for Key { name, sample, .. } in keys(charts) {
        let length = SAMPLE.x + 5.0 + text_width(&name, LEGEND_SIZE);
        if x > 0.0 && x + length > width {
            (x, y) = (0.0, y + LEGEND_ROW);
        }
        picture.place(sample, Point { x, y: y + 1.0 });
        let at = Point { x: x + SAMPLE.x + 5.0, y: y + LEGEND_SIZE };
        let (anchor, ink) = (Anchor::Start, Ink::Text);
        picture.text(Text { at, anchor, size: LEGEND_SIZE, ink, halo: None, content: name });
        x += length + LEGEND_GAP;
    }
    (picture, y + LEGEND_ROW)
}

fn spectrum(runs: &[(&str, &Summary)], is_wide: bool) -> Result<Sheet, String> {
    if runs.len() > RESULTS_MAX {
        return Err(format!("{} results given: expected up to {RESULTS_MAX}", runs.len()));
    }
    // Of several, with its status where nothing of it may be quoted.
    let name = |(name, summary): &(&str, &Summary)| match (runs.len(), summary.status.is_invalid()) {
        (1, _) => String::new(),
        (_, true) => format!("{name} (INVALID)"),
        (_, false) => (*name).to_owned(),
    };
    let names: Vec<String> = runs.iter().map(name).collect();
    let spectra = names.iter().zip(runs).map(|(shown, (name, run))| {
        Spectrum::of(shown, run).ok_or_else(|| format!("{name} has too few replies for a distribution"))
    });
    let spectra = spectra.collect::<Result<Vec<_>, String>>()?;
    let mut charts = vec![spectrum::chart(&spectra, !is_wide)];
    charts.extend(is_wide.then(|| spectrum::service_chart(&spectra)));
    charts.iter_mut().for_each(|chart| chart.x.1 = "percentile");
    let inches = Some(if is_wide { 2.6 } else { 2.2 });
    Ok(Sheet { title: "Latency by percentile", charts, part: 0.55, is_below: false, inches })
}

fn timeline(run: &Summary, is_wide: bool) -> Result<Sheet, String> {
    let course = Course::of(run, COLUMNS_MAX).filter(Course::has_replies);
    let course = course.ok_or("the run has no replies")?;
    let mut charts = vec![course.latencies(is_wide), course.rates()];
    if run.status.is_invalid() {
        let note = Note::new((MOST, MOST), (-6.0, 14.0), Anchor::End, Ink::Invalid, Status::Invalid.name());
        charts[0].notes.insert(0, note);
    }
    let inches = Some(if is_wide { 3.0 } else { 2.4 });
    Ok(Sheet { title: "Response times and throughput over time", charts, part: 0.62, is_below: true, inches })
}

fn curve(campaign: &Campaign, is_wide: bool) -> Result<Sheet, String> {
    let Curve { mut charts, .. } =
        Curve::of(campaign).ok_or("fewer than two runs of the result have a p99")?;
    charts.truncate(if is_wide { 2 } else { 1 });
    let inches = Some(if is_wide { 2.6 } else { 2.2 });
    Ok(Sheet { title: "Latency over throughput", charts, part: 0.6, is_below: false, inches })
}

fn changes(comparison: &Comparison) -> Result<Sheet, String> {
    let forest = comparison.forest().ok_or("no quantity is known of both sides")?;
    let charts = vec![forest];
    Ok(Sheet { title: "Changes from A to B", charts, part: 1.0, is_below: false, inches: None })
}
