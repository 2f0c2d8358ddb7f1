//! Where results go: files and standard output, made sure of before anything is measured, written when all is over.
//!
//! Not the formats (those are `brunt-report`'s). Invariant: a run that ends without a result leaves what was there before,
//! byte for byte.

use crate::cli;
use crate::exit::{Exit, Failure};
use anyhow::Context;
use brunt_report::campaign::{self, Campaign};
use brunt_report::comparison::Comparison;
use brunt_stats::summary::Summary;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Everything that was asked for.
pub(crate) struct Outputs {
    json: Option<Destination>,
    csv: Option<Destination>,
    samples: Option<Destination>,
    junit: Option<Destination>,
    /// `--allow-untrusted`, which JUnit agrees with.
    allow_untrusted: bool,
    /// Standard output belongs to one of them.
    text_goes_to_stderr: bool,
}

impl Outputs {
    /// Makes sure that every result can be written.
    pub(crate) fn open(flags: &cli::OutputFlags) -> Result<Self, Failure> {
        let asked = [
            ("--json", &flags.json),
            ("--csv", &flags.csv),
            ("--samples", &flags.samples),
            ("--junit", &flags.junit),
        ];
        let text_goes_to_stderr = is_standard_output_taken(&asked)?;
        Ok(Self {
            json: Destination::asked(flags.json.as_deref(), "--json")?,
            csv: Destination::asked(flags.csv.as_deref(), "--csv")?,
            samples: Destination::asked(flags.samples.as_deref(), "--samples")?,
            junit: Destination::asked(flags.junit.as_deref(), "--junit")?,
            allow_untrusted: flags.judging.allow_untrusted,
            text_goes_to_stderr,
        })
    }

    /// Writes every result that was asked for, the text first: it needs no file.
    pub(crate) fn write(self, summary: &Summary, quiet: bool) -> Result<(), Failure> {
        if !quiet {
            let mut text = Vec::new();
            brunt_report::text::write(summary, &mut text)?;
            write_text(&text, self.text_goes_to_stderr)?;
        }
        if let Some(out) = self.json {
            out.write(|out| brunt_report::json::write(summary, out))?;
        }
        if let Some(out) = self.csv {
            out.write(|out| brunt_report::csv::write(summary, out))?;
        }
        if let Some(out) = self.samples {
            let origin_ns = summary.window.measure_ns;
            out.write(|out| {
                brunt_report::samples::write(&summary.samples, summary.samples_overflow, origin_ns, out)
            })?;
        }
        if let Some(out) = self.junit {
            out.write(|out| brunt_report::junit::write(summary, self.allow_untrusted, out))?;
        }
        Ok(())
    }
}

impl Outputs {
    /// Writes a campaign, the text first.
    pub(crate) fn write_campaign(self, campaign: &Campaign, quiet: bool) -> Result<(), Failure> {
        if !quiet {
            let mut text = Vec::new();
            campaign::write_text(campaign, &mut text)?;
            write_text(&text, self.text_goes_to_stderr)?;
        }
        if let Some(out) = self.json {
            out.write(|out| campaign::write_json(campaign, out))?;
        }
        if let Some(out) = self.csv {
            out.write(|out| campaign::write_csv(campaign, out))?;
        }
        Ok(())
    }
}

/// Everything that was asked of a comparison.
pub(crate) struct CompareOutputs {
    json: Option<Destination>,
    junit: Option<Destination>,
    allow_untrusted: bool,
    text_goes_to_stderr: bool,
}

impl CompareOutputs {
    /// Makes sure that every result can be written.
    pub(crate) fn open(flags: &cli::CompareOutputFlags) -> Result<Self, Failure> {
        let text_goes_to_stderr =
            is_standard_output_taken(&[("--json", &flags.json), ("--junit", &flags.junit)])?;
        Ok(Self {
            json: Destination::asked(flags.json.as_deref(), "--json")?,
            junit: Destination::asked(flags.junit.as_deref(), "--junit")?,
            allow_untrusted: flags.judging.allow_untrusted,
            text_goes_to_stderr,
        })
    }

    /// Writes every result that was asked for, the text first.
    pub(crate) fn write(self, comparison: &Comparison, quiet: bool) -> Result<(), Failure> {
        if !quiet {
            let mut text = Vec::new();
            comparison.write_text(&mut text)?;
            write_text(&text, self.text_goes_to_stderr)?;
        }
        if let Some(out) = self.json {
            out.write(|out| comparison.write_json(out))?;
        }
        if let Some(out) = self.junit {
            out.write(|out| brunt_report::junit::write_comparison(comparison, self.allow_untrusted, out))?;
        }
        Ok(())
    }
}

fn write_text(text: &[u8], goes_to_stderr: bool) -> io::Result<()> {
    if goes_to_stderr { io::stderr().write_all(text) } else { io::stdout().write_all(text) }
}

/// Does one of the results go to standard output, so that the text must go elsewhere?
fn is_standard_output_taken(asked: &[(&str, &Option<PathBuf>)]) -> Result<bool, Failure> {
    let is_standard_output = |(_, path): &&(&str, &Option<PathBuf>)| path.as_deref() == Some(Path::new("-"));
    let taken: Vec<&str> = asked.iter().filter(is_standard_output).map(|(flag, _)| *flag).collect();
    if taken.len() > 1 {
        return Err(Failure::usage(format!(
            "{}: '-' was given to each; accepted: standard output for one of them, files for the others",
            taken.join(", ")
        )));
    }
    Ok(!taken.is_empty())
}

/// One place that a result goes to.
pub(crate) enum Destination {
    /// It, and nothing else goes there.
    StandardOutput,
    /// A file that was there, or could be made.
    File(Reserved),
}

/// A file that can be written, and has not been yet.
pub(crate) struct Reserved {
    file: File,
    path: PathBuf,
    /// It was not there before: a run without a result takes it away again.
    is_new: bool,
}

impl Destination {
    /// Makes sure that it can be written, if it was asked for.
    pub(crate) fn asked(path: Option<&Path>, flag: &str) -> Result<Option<Self>, Failure> {
        path.map(|path| Self::open(path, flag)).transpose()
    }

    /// Makes sure that it can be written; `-` is standard output.
    fn open(path: &Path, flag: &str) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Ok(Self::StandardOutput);
        }
        let is_new = !path.exists();
        let opened = OpenOptions::new().write(true).create(true).truncate(false).open(path);
        let file = opened.with_context(|| {
            format!("{flag}: '{}' was given; accepted: a file that can be written", path.display())
        });
        let file = file.map_err(|error| Failure::new(Exit::Usage, error))?;
        Ok(Self::File(Reserved { file, path: path.to_owned(), is_new }))
    }

    /// Writes it.
    pub(crate) fn write(self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        match self {
            Self::StandardOutput => write_buffered(io::stdout(), write),
            Self::File(mut reserved) => {
                reserved.is_new = false;
                // A pipe or a device has no length to cut.
                if reserved.file.metadata()?.is_file() {
                    reserved.file.set_len(0)?;
                }
                write_buffered(&reserved.file, write)
            }
        }
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if self.is_new {
            // If it cannot be taken away, an empty file is all the harm.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn write_buffered(out: impl Write, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut buffered = BufWriter::new(out);
    write(&mut buffered)?;
    buffered.flush()
}
