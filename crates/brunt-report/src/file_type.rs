//! The files that a result can be written as: the type of each, its endings, what it can be of, and how figures look.
//!
//! Not how they are written (that is `subject`'s). Invariant: a request that [`FileForm::check`] accepts has a writer; the lines of a campaign in NDJSON are written while it goes on.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

brunt_plan::named! {
    /// What a file holds, by the TYPE of `-o TYPE:PATH`.
    pub enum FileType {
        /// Read again by `brunt report` and `brunt compare`.
        Json = "json": "all that is known; brunt report and compare read it",
        /// One file without references.
        Html = "html": "a page with charts, which needs no network; of report up to six results",
        /// Of a run a line for each interval, of a campaign one for each run.
        Csv = "csv": "a row for each interval of a run, or each run of a campaign",
        /// The same of a run as JSON.
        Ndjson = "ndjson": "the same while the run goes on, a JSON object on each line",
        /// Response times over time.
        Hlog = "hlog": "the histograms of the intervals, as HdrHistogram logs them",
        /// The percentiles of all response times.
        Spectrum = "spectrum": "latency by percentile: as HdrHistogram prints it, or drawn (.svg, .png)",
        /// The samples that a plan asked to keep.
        Samples = "samples": "single requests with their six times, CSV",
        /// Test cases for continuous integration.
        Junit = "junit": "assertions and checks as JUnit XML",
        /// The short report.
        Markdown = "md": "status, numbers and assertions as Markdown, added to the file",
        /// Latency and throughput over time.
        Timeline = "timeline": "latency and throughput over time, drawn",
        /// Latency over throughput.
        Curve = "curve": "latency over throughput of a scan or search, drawn",
        /// Changes from A to B.
        Changes = "changes": "changes from A to B of a comparison, drawn",
    }
}

brunt_plan::named! {
    /// What a file can be of.
    pub enum SubjectKind {
        /// One run.
        Run = "a run",
        /// Results of runs, side by side.
        Runs = "several results",
        /// The same run several times.
        Repeat = "repeated runs",
        /// Runs at several loads.
        Scan = "a scan or search",
        /// Two sets of runs.
        Comparison = "a comparison",
    }
}

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// As text.
    Text,
    /// Drawn, as SVG.
    Svg,
    /// Drawn, as PNG.
    Png,
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

/// How figures look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FigureStyle {
    /// The width of all of them.
    pub width: FigureWidth,
    /// In colours instead of greys.
    pub is_coloured: bool,
}

/// Type and medium of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileForm {
    /// What it holds; `None`: the chart that shows most of the result.
    file_type: Option<FileType>,
    /// How it is written.
    pub medium: Medium,
    /// How it looks if it is drawn.
    pub style: FigureStyle,
}

/// A file that was asked for. Text form: `[TYPE:]PATH`, where the ending of PATH decides if there is no TYPE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRequest {
    /// What is written.
    pub form: FileForm,
    /// Where to; `-` is standard output.
    pub path: PathBuf,
}

impl FileType {
    /// The endings of paths that mean it.
    const fn endings(self) -> &'static [&'static str] {
        match self {
            Self::Spectrum => &["hgrm"],
            Self::Junit => &["xml"],
            Self::Samples | Self::Timeline | Self::Curve | Self::Changes => &[],
            Self::Json => &["json"],
            Self::Html => &["html"],
            Self::Csv => &["csv"],
            Self::Ndjson => &["ndjson"],
            Self::Hlog => &["hlog"],
            Self::Markdown => &["md"],
        }
    }

    /// What has it.
    const fn subjects(self) -> &'static [SubjectKind] {
        use SubjectKind::{Comparison, Repeat, Run, Runs, Scan};
        match self {
            Self::Json => &[Run, Repeat, Scan, Comparison],
            Self::Html | Self::Markdown => &SubjectKind::ALL,
            Self::Csv => &[Run, Repeat, Scan],
            Self::Ndjson => &[Run, Repeat, Scan],
            Self::Hlog | Self::Samples => &[Run],
            Self::Spectrum => &[Run, Runs],
            Self::Timeline => &[Run],
            Self::Junit => &[Run, Comparison],
            Self::Curve => &[Scan],
            Self::Changes => &[Comparison],
        }
    }

    const fn is_chart(self) -> bool {
        matches!(self, Self::Timeline | Self::Curve | Self::Changes)
    }
}

impl FileForm {
    /// What a file of this subject holds.
    pub fn of(self, subject: SubjectKind) -> FileType {
        self.file_type.unwrap_or(match subject {
            SubjectKind::Run | SubjectKind::Runs | SubjectKind::Repeat => FileType::Spectrum,
            SubjectKind::Scan => FileType::Curve,
            SubjectKind::Comparison => FileType::Changes,
        })
    }

    /// Checks that this subject has it.
    ///
    /// # Errors
    /// What has it; for a user.
    pub fn check(self, subject: SubjectKind) -> Result<(), String> {
        let file_type = self.of(subject);
        // Side by side only the chart is of several.
        let is_list =
            (file_type, self.medium, subject) == (FileType::Spectrum, Medium::Text, SubjectKind::Runs);
        if file_type.subjects().contains(&subject) && !is_list {
            return Ok(());
        }
        if self.file_type.is_none() {
            let held = FileType::ALL.into_iter().filter(|held| held.subjects().contains(&subject));
            let held = held.map(FileType::name).collect::<Vec<_>>().join(", ");
            return Err(format!("{} have no chart: expected {held}", subject.name()));
        }
        let subjects: Vec<&str> = file_type.subjects().iter().map(|kind| kind.name()).collect();
        Err(format!("{} is of {}, not of {}", file_type.name(), subjects.join(", or "), subject.name()))
    }

    /// As a user asks for it.
    pub fn option(self) -> String {
        let name =
            self.file_type.map_or(if self.medium == Medium::Png { "png" } else { "svg" }, FileType::name);
        format!("-o {name}")
    }
}

impl From<FileType> for FileForm {
    /// As text.
    fn from(file_type: FileType) -> Self {
        Self { file_type: Some(file_type), medium: Medium::Text, style: FigureStyle::default() }
    }
}

impl FromStr for FileRequest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let accepted = || {
            format!(
                "expected [TYPE:]PATH, such as result.json, json:- or spectrum:p99.svg; TYPE is one of {}, svg, png",
                FileType::NAMES.join(", ")
            )
        };
        let is_word = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphabetic());
        let (name, path) = match text.split_once(':') {
            Some((name, path)) if is_word(name) => (Some(name), path),
            _ => (None, text),
        };
        if path.is_empty() {
            return Err(accepted());
        }
        let ending = Path::new(path).extension().map(OsStr::to_ascii_lowercase).unwrap_or_default();
        let ending = ending.to_str().unwrap_or_default();
        let medium = |word: &str| match word {
            "svg" => Some(Medium::Svg),
            "png" => Some(Medium::Png),
            _ => None,
        };
        let (file_type, medium) = match name {
            Some(name) => match (FileType::from_name(name), medium(name)) {
                (Some(held), _) if held.is_chart() => (Some(held), medium(ending).unwrap_or(Medium::Svg)),
                (Some(FileType::Spectrum), _) => {
                    (Some(FileType::Spectrum), medium(ending).unwrap_or(Medium::Text))
                }
                (Some(held), _) => (Some(held), Medium::Text),
                (None, Some(medium)) => (None, medium),
                (None, None) => {
                    let meant =
                        FileType::NAMES.into_iter().find(|held| strsim::osa_distance(held, name) <= 1);
                    let meant = meant.map_or(String::new(), |held| format!(" ('{held}'?)"));
                    return Err(format!("unknown type '{name}'{meant}: {}", accepted()));
                }
            },
            None => match (
                FileType::ALL.into_iter().find(|held| held.endings().contains(&ending)),
                medium(ending),
            ) {
                (None, None) => return Err(format!("'{path}' has no known ending: {}", accepted())),
                (held, medium) => (held, medium.unwrap_or(Medium::Text)),
            },
        };
        Ok(Self { form: FileForm { file_type, medium, style: FigureStyle::default() }, path: path.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_come_from_the_name_or_the_ending() {
        // Text → option and medium, or what is said.
        let table = [
            ("r.json", Ok(("-o json", Medium::Text))),
            ("./a:b/r.JSON", Ok(("-o json", Medium::Text))),
            ("json:-", Ok(("-o json", Medium::Text))),
            ("run.hgrm", Ok(("-o spectrum", Medium::Text))),
            ("junit.xml", Ok(("-o junit", Medium::Text))),
            ("md:out", Ok(("-o md", Medium::Text))),
            ("spectrum:x.txt", Ok(("-o spectrum", Medium::Text))),
            ("spectrum:x.svg", Ok(("-o spectrum", Medium::Svg))),
            ("x.svg", Ok(("-o svg", Medium::Svg))),
            ("png:-", Ok(("-o png", Medium::Png))),
            ("curve:-", Ok(("-o curve", Medium::Svg))),
            ("timeline:x.PNG", Ok(("-o timeline", Medium::Png))),
            ("samples:x.csv", Ok(("-o samples", Medium::Text))),
            ("jsn:x", Err("unknown type 'jsn' ('json'?): expected [TYPE:]PATH")),
            ("pdf:x", Err("unknown type 'pdf': expected [TYPE:]PATH")),
            ("-", Err("'-' has no known ending: expected [TYPE:]PATH")),
            ("x.pdf", Err("'x.pdf' has no known ending")),
            ("json:", Err("expected [TYPE:]PATH, such as result.json")),
            ("", Err("expected [TYPE:]PATH, such as result.json")),
        ];
        for (text, expected) in table {
            match (text.parse::<FileRequest>(), expected) {
                (Ok(FileRequest { form, .. }), Ok((option, medium))) => {
                    assert_eq!((form.option().as_str(), form.medium), (option, medium), "{text}");
                }
                (Err(error), Err(said)) => assert!(error.starts_with(said), "{text}: {error}"),
                (held, _) => panic!("{text}: {held:?}"),
            }
        }
    }

    #[test]
    fn a_subject_has_what_its_kind_has() {
        let check = |text: &str, kind| text.parse::<FileRequest>().unwrap().form.check(kind);
        for text in ["r.json", "r.html", "r.md"] {
            for kind in [SubjectKind::Run, SubjectKind::Repeat, SubjectKind::Scan, SubjectKind::Comparison] {
                assert_eq!(check(text, kind), Ok(()), "{text} {kind:?}");
            }
        }
        assert_eq!(check("x.svg", SubjectKind::Scan), Ok(()));
        assert_eq!(
            check("curve:x.svg", SubjectKind::Run),
            Err("curve is of a scan or search, not of a run".to_owned())
        );
        assert!(check("x.hlog", SubjectKind::Repeat).is_err());
        assert!(check("x.hgrm", SubjectKind::Runs).is_err() && check("x.svg", SubjectKind::Runs).is_ok());
        assert!(check("x.svg", SubjectKind::Repeat).is_err());
    }
}
