//! Figures for papers: the charts of the HTML page in the sizes of a column or a page, as SVG or PNG.
//!
//! Not the charts (those are `html`'s): here they get a size, a legend inside the picture, and a description of where their numbers come
//! from. Invariants: the same result is the same bytes; letters are outlines of 8 points.

use crate::campaign::curve::Curve;
use crate::campaign::{Campaign, CampaignQuestion};
use crate::comparison::Comparison;
use crate::html::course::Course;
use crate::html::frame::{Frame, Key, SAMPLE, Size};
use crate::html::overlay;
use crate::html::spectrum::Spectrum;
use crate::run_document::head;
use crate::subject::Subject;
use brunt_picture::{
    Anchor, Ink, Paper, Picture, Point, Text, Theme, text_width, write_printed_png, write_printed_svg,
};
use brunt_stats::summary::Summary;
use std::io::{self, Write};
use std::str::FromStr;

/// Names of 12 pixels are 8 points high.
const PAPER: Paper = Paper { points_per_pixel: 8.0 / 12.0, dots_per_inch: 600.0 };
/// Pixels to an inch of paper.
const INCH: f64 = 72.0 * 12.0 / 8.0;
const LEGEND_SIZE: f64 = 12.0;
const LEGEND_ROW: f64 = 16.0;
const LEGEND_GAP: f64 = 14.0;
/// Of a quantity in a comparison.
const CHANGE_HEIGHT: f64 = 30.0;
/// Results in one figure.
const RESULTS_MAX: usize = 4;
/// Columns of time in a figure.
const COLUMNS_MAX: u64 = 150;

brunt_plan::named! {
    /// What a figure shows; described is which results have it.
    pub enum FigureType {
        /// Latency over throughput.
        Curve = "curve": "a result of brunt scan or brunt search",
        /// Latency by percentile.
        Spectrum = "spectrum": "results of single runs",
        /// Latency and throughput over time.
        Timeline = "timeline": "the result of a single run",
        /// Changes from A to B.
        Changes = "changes": "a result of brunt compare",
    }
}

/// A kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Svg,
    Png,
}

/// A figure and the file that it goes to, as `TYPE=PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FigureRequest {
    /// What it shows.
    pub figure: FigureType,
    /// Where it goes.
    pub path: String,
    format: Format,
}

impl FromStr for FigureRequest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = FigureType::NAMES.join(", ");
        let Some((name, path)) = text.split_once('=') else {
            return Err(format!("expected TYPE=PATH, e.g. spectrum=p99.svg; TYPE is one of {names}"));
        };
        let figure = FigureType::from_name(name)
            .ok_or_else(|| format!("'{name}' is no figure: expected one of {names}"))?;
        let ending = path.rsplit_once('.').map(|(stem, ending)| (stem, ending.to_ascii_lowercase()));
        let format = match ending.as_ref().filter(|(stem, _)| !stem.is_empty()).map(|(_, ending)| &**ending) {
            Some("svg") => Format::Svg,
            Some("png") => Format::Png,
            _ => {
                return Err(format!(
                    "'{path}' has no known ending: expected a path that ends in .svg or .png"
                ));
            }
        };
        Ok(Self { figure, path: path.to_owned(), format })
    }
}

brunt_plan::named! {
    /// How wide a figure is.
    #[derive(Default)]
    pub enum FigureWidth {
        /// One of two columns of a page.
        #[default]
        Column = "column",
        /// Both.
        Page = "page",
    }
}

impl FromStr for FigureWidth {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::from_name(text).ok_or_else(|| "expected column (3.33 in) or page (7 in)".to_owned())
    }
}

impl FigureWidth {
    fn pixels(self) -> f64 {
        INCH * match self {
            Self::Column => 10.0 / 3.0,
            Self::Page => 7.0,
        }
    }
}

/// How figures look.
#[derive(Clone, Copy, Debug, Default)]
pub struct FigureStyle {
    /// The width of all of them.
    pub width: FigureWidth,
    /// In colours instead of greys.
    pub is_coloured: bool,
}

/// A figure that can be written.
#[derive(Debug)]
pub struct Figure {
    picture: Picture,
    theme: Theme,
    format: Format,
}

impl Figure {
    /// Writes it.
    ///
    /// # Errors
    /// What `out` returns.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        match self.format {
            Format::Svg => write_printed_svg(&self.picture, self.theme, PAPER, out),
            Format::Png => write_printed_png(&self.picture, self.theme, PAPER, out),
        }
    }
}

impl Subject<'_> {
    /// Draws a figure.
    ///
    /// # Errors
    /// Why these results do not have it; for a user.
    pub fn figure(self, request: &FigureRequest, style: FigureStyle) -> Result<Figure, String> {
        let drawn = match (request.figure, self) {
            (FigureType::Spectrum, Self::Runs(runs)) => spectrum(runs, style.width),
            (FigureType::Timeline, Self::Runs([(_, run)])) => timeline(run, style.width),
            (FigureType::Curve, Self::Campaign(campaign)) => curve(campaign, style.width),
            (FigureType::Changes, Self::Comparison(comparison)) => changes(comparison, style.width),
            (figure, _) => {
                Err(format!("{} given: {} takes {}", self.name(), figure.name(), figure.describe()))
            }
        };
        let mut picture = drawn.map_err(|reason| {
            format!("invalid value '{}={}' for --figure: {reason}", request.figure.name(), request.path)
        })?;
        picture.describe(self.description());
        let theme = if style.is_coloured { Theme::Light } else { Theme::Grey };
        Ok(Figure { picture, theme, format: request.format })
    }

    fn name(self) -> String {
        match self {
            Self::Run(_) | Self::Runs([_]) => "the result of a single run".to_owned(),
            Self::Runs(runs) => format!("{} results of single runs", runs.len()),
            Self::Campaign(campaign) => format!("a result of kind {}", campaign.question.kind()),
            Self::Comparison(_) => "a result of brunt compare".to_owned(),
        }
    }

    /// Version, size, seeds and plans of what is drawn.
    fn description(self) -> String {
        match self {
            // It has no name, and no figure.
            Self::Run(_) => String::new(),
            Self::Runs(runs) => {
                let of_run = |(name, summary): &(String, Summary)| {
                    let record = &summary.record;
                    format!(
                        "{name}: brunt {}, {} requests, seed {}\n{}",
                        record.environment.brunt_version,
                        summary.total.latency.response.summary.count,
                        record.plan.seed,
                        record.plan.spec.to_toml()
                    )
                };
                runs.iter().map(of_run).collect::<Vec<_>>().join("\n")
            }
            Self::Campaign(campaign) => {
                let seeds = campaign.runs.iter().map(|run| run.seed.to_string()).collect::<Vec<_>>();
                let head = crate::campaign::head_facts(campaign);
                let runs = campaign.runs.len();
                format!(
                    "brunt {}, {runs} runs: {}; seeds {}",
                    env!("CARGO_PKG_VERSION"),
                    facts(&head),
                    seeds.join(", ")
                )
            }
            Self::Comparison(comparison) => {
                let head = comparison.head_facts();
                format!("brunt {}: {}", env!("CARGO_PKG_VERSION"), facts(&head))
            }
        }
    }
}

/// In one line.
fn facts(labelled: &[head::Labelled]) -> String {
    let line = |(label, facts): &head::Labelled| format!("{label} {}", facts.join(", "));
    labelled.iter().map(line).collect::<Vec<_>>().join("; ")
}

/// A page with a legend at its top, and where there is room below that.
struct Sheet {
    picture: Picture,
    top: f64,
    height: f64,
}

impl Sheet {
    fn new(title: &str, width: f64, height: f64, keys: Vec<Key>) -> Self {
        let mut picture = Picture::new(width as u32, height as u32, Ink::Page, title);
        let (mut x, mut y) = (0.0, 0.0);
        for Key { name, sample, .. } in keys {
            let length = SAMPLE.x + 5.0 + text_width(&name, LEGEND_SIZE);
            if x > 0.0 && x + length > width {
                (x, y) = (0.0, y + LEGEND_ROW);
            }
            picture.place(Key::picture(sample), Point { x, y: y + 1.0 });
            let at = Point { x: x + SAMPLE.x + 5.0, y: y + LEGEND_SIZE };
            picture.text(Text {
                at,
                anchor: Anchor::Start,
                size: LEGEND_SIZE,
                ink: Ink::Text,
                halo: None,
                content: name,
            });
            x += length + LEGEND_GAP;
        }
        let top = y + LEGEND_ROW;
        Self { picture, top, height: height - top }
    }

    /// Lays a chart below the legend, or beside or below another one.
    fn place(&mut self, frame: Frame, x: f64, y: f64) {
        self.picture.place(frame.picture, Point { x, y: self.top + y });
    }
}

fn spectrum(runs: &[(String, Summary)], width: FigureWidth) -> Result<Picture, String> {
    if runs.len() > RESULTS_MAX {
        return Err(format!("{} results given: expected up to {RESULTS_MAX}", runs.len()));
    }
    let mut spectra = Vec::new();
    for (name, run) in runs {
        let known = Spectrum::of(run);
        spectra.push(known.ok_or_else(|| format!("{name} has too few replies for a distribution"))?);
    }
    let keys = match spectra.as_slice() {
        [one] => one.keys(),
        _ => overlay::keys(&runs.iter().map(named).collect::<Vec<_>>()),
    };
    let inches = if width == FigureWidth::Column { 2.2 } else { 2.6 };
    let title = "Latency by percentile";
    let mut sheet = Sheet::new(title, width.pixels(), inches * INCH, keys);
    let is_wide = width == FigureWidth::Page;
    let left = if is_wide { (width.pixels() * 0.55).floor() } else { width.pixels() };
    let height = sheet.height - Frame::margin(true);
    let size = Size { width: left, height };
    let frame = match spectra.as_slice() {
        [one] if is_wide => one.response(size),
        [one] => one.chart(size),
        several => overlay::chart(several, size),
    };
    sheet.place(frame, 0.0, 0.0);
    if is_wide {
        let size = Size { width: width.pixels() - left, height };
        sheet.place(overlay::service(&spectra, size), left, 0.0);
    }
    Ok(sheet.picture)
}

/// The name of a run in a legend, with its status where nothing of it may be quoted.
fn named((name, summary): &(String, Summary)) -> String {
    if summary.status.is_invalid() { format!("{name} (INVALID)") } else { name.clone() }
}

fn timeline(run: &Summary, width: FigureWidth) -> Result<Picture, String> {
    let course = Course::of(run, COLUMNS_MAX).filter(Course::has_replies);
    let course = course.ok_or("the run has no replies")?;
    let has_heat = width == FigureWidth::Page;
    let inches = if has_heat { 3.0 } else { 2.4 };
    let title = "Response times and throughput over time";
    let mut sheet = Sheet::new(title, width.pixels(), inches * INCH, course.keys(has_heat));
    let plots = sheet.height - 2.0 * Frame::margin(false);
    let [latencies, rates] =
        [0.62, 0.38].map(|part| Size { width: width.pixels(), height: (plots * part).floor() });
    let mut frame = course.latencies(latencies, has_heat);
    if run.status.is_invalid() {
        let at = Point { x: frame.plot.right() - 6.0, y: frame.plot.y + 14.0 };
        frame.note(at, Anchor::End, Ink::Invalid, "INVALID".to_owned());
    }
    sheet.place(frame, 0.0, 0.0);
    sheet.place(course.rates(rates), 0.0, latencies.height + Frame::margin(false));
    Ok(sheet.picture)
}

fn curve(campaign: &Campaign, width: FigureWidth) -> Result<Picture, String> {
    if matches!(campaign.question, CampaignQuestion::Repeat { .. }) {
        return Err(format!("a result of kind repeat given: curve takes {}", FigureType::Curve.describe()));
    }
    let curve = Curve::of(campaign).ok_or("fewer than two runs of the result have a p99")?;
    let is_wide = width == FigureWidth::Page;
    let inches = if is_wide { 2.6 } else { 2.2 };
    let mut keys = curve.keys();
    keys.retain(|key| is_wide || !key.class.ends_with("cpu"));
    let mut sheet = Sheet::new("Latency over throughput", width.pixels(), inches * INCH, keys);
    let height = sheet.height - Frame::margin(true);
    let left = if is_wide { (width.pixels() * 0.6).floor() } else { width.pixels() };
    let cost = curve.cpu(Size { width: width.pixels() - left, height }).filter(|_| is_wide);
    let left = if cost.is_some() { left } else { width.pixels() };
    sheet.place(curve.latencies(Size { width: left, height }), 0.0, 0.0);
    if let Some(cost) = cost {
        sheet.place(cost, left, 0.0);
    }
    Ok(sheet.picture)
}

fn changes(comparison: &Comparison, width: FigureWidth) -> Result<Picture, String> {
    let frame = comparison.forest(width.pixels(), CHANGE_HEIGHT);
    let frame = frame.ok_or("no quantity is known of both sides")?;
    let (title, keys) = ("Changes from A to B", Comparison::forest_keys());
    let below = Sheet::new(title, width.pixels(), 0.0, Comparison::forest_keys()).top;
    let height = below + f64::from(frame.picture.size().1);
    let mut sheet = Sheet::new(title, width.pixels(), height, keys);
    sheet.place(frame, 0.0, 0.0);
    Ok(sheet.picture)
}
