//! How a command shows what it came to: in which form, and as its reader's terminal has it.
//!
//! Not the forms (those are `brunt-report`'s). Invariant: the form and its unit are the user's choice alone; width, colours and characters are the
//! stream's, and no number depends on them.

use crate::plan_flags::WordParser;
use crate::terminal::columns_of;
use brunt_report::document::Level;
use brunt_report::layout::{Layout, TimeUnit};
use clap::{Args, ColorChoice};
use std::io;
use std::str::FromStr;

/// How a report is laid out, which is no part of a plan.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "Results")]
pub(crate) struct LayoutFlags {
    /// How much is printed: short; full, all that is known (intervals, phases, connections, host, every check); or brief, one line of
    /// key=value, always with the same keys [default: short]
    #[arg(long, value_name = "FORM", value_parser = WordParser(&ReportForm::NAMES, ReportForm::read), hide_possible_values = true)]
    pub report: Option<ReportForm>,
    /// Unit of the times in tables: ns, us, ms or s [default: the one with the narrowest cells]
    #[arg(long, value_name = "UNIT", value_parser = WordParser(&TimeUnit::NAMES, TimeUnit::from_str), hide_possible_values = true)]
    pub unit: Option<TimeUnit>,
    /// Colours: auto (on terminals, but for NO_COLOR and TERM=dumb), always or never
    #[arg(long, value_name = "WHEN", default_value_t = ColorChoice::Auto, hide_possible_values = true)]
    pub color: ColorChoice,
}

brunt_plan::named! {
    /// How much is printed.
    pub enum ReportForm {
        /// One line.
        Brief = "brief",
        /// What most readers want.
        Short = "short",
        /// All that is known.
        Full = "full",
    }
}

impl ReportForm {
    fn read(text: &str) -> Result<Self, String> {
        Self::from_name(text).ok_or_else(|| "expected brief, short or full".to_owned())
    }
}

/// How much is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Errors alone.
    Nothing,
    /// One line of `key=value`.
    Brief,
    /// A report of this length.
    Report(Level),
}

/// Form of a report, with the options of its layout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Presentation {
    pub(crate) form: Form,
    flags: LayoutFlags,
}

impl Presentation {
    pub(crate) const fn of(flags: &LayoutFlags, is_quiet: bool) -> Self {
        let form = match (is_quiet, flags.report) {
            (true, _) => Form::Nothing,
            (false, Some(ReportForm::Brief)) => Form::Brief,
            (false, Some(ReportForm::Full)) => Form::Report(Level::Long),
            (false, Some(ReportForm::Short) | None) => Form::Report(Level::Short),
        };
        Self { form, flags: *flags }
    }

    /// The layout on the stream that the text goes to.
    pub(crate) fn layout(&self, goes_to_stderr: bool) -> Layout {
        let columns = match goes_to_stderr {
            true => columns_of(io::stderr()),
            false => columns_of(io::stdout()),
        };
        Layout {
            unit: self.flags.unit,
            columns,
            is_coloured: is_coloured(self.flags.color, columns.is_some(), &variable),
            is_ascii: is_ascii(&variable),
        }
    }
}

/// An environment variable, where it is set and not empty.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Are colours wanted? `--color` beats the environment; by convention an empty NO_COLOR is none.
pub(crate) fn is_coloured(
    choice: ColorChoice,
    is_terminal: bool,
    variable: &dyn Fn(&str) -> Option<String>,
) -> bool {
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => {
            is_terminal
                && variable("NO_COLOR").is_none()
                && variable("TERM").is_none_or(|term| term != "dumb")
        }
    }
}

/// Does the locale know nothing but ASCII? The first of these that is set decides, as POSIX has it.
fn is_ascii(variable: &dyn Fn(&str) -> Option<String>) -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(variable).unwrap_or_default();
    let locale = locale.to_ascii_lowercase();
    !(locale.contains("utf-8") || locale.contains("utf8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_for_terminals() {
        use ColorChoice::{Always, Auto, Never};
        for (choice, is_terminal, no_color, term, expected) in [
            (Auto, true, None, Some("xterm"), true),
            (Auto, true, None, None, true),
            (Auto, true, Some("1"), Some("xterm"), false),
            (Auto, true, None, Some("dumb"), false),
            (Auto, false, None, Some("xterm"), false),
            (Always, false, Some("1"), Some("dumb"), true),
            (Never, true, None, Some("xterm"), false),
        ] {
            let variable = |name: &str| match name {
                "NO_COLOR" => no_color.map(str::to_owned),
                _ => term.map(str::to_owned),
            };
            assert_eq!(
                is_coloured(choice, is_terminal, &variable),
                expected,
                "{choice} {no_color:?} {term:?}"
            );
        }
    }

    #[test]
    fn the_first_locale_that_is_set_decides() {
        for (all, lang, expected) in [
            (None, Some("C.UTF-8"), false),
            (None, Some("en_GB.utf8"), false),
            (Some("C"), Some("en_GB.UTF-8"), true),
            (Some("de_DE.UTF-8"), None, false),
            (None, Some("POSIX"), true),
            (None, None, true),
        ] {
            let variable = |name: &str| match name {
                "LC_ALL" => all.map(str::to_owned),
                "LANG" => lang.map(str::to_owned),
                _ => None,
            };
            assert_eq!(is_ascii(&variable), expected, "{all:?} {lang:?}");
        }
    }
}
