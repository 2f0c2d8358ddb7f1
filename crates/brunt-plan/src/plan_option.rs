//! A plan option as a flag: names, form and help of each row in [`crate::spec::OPTIONS`].
//!
//! A flag's text is read as the plan file's value of the same key. Invariant: what an option accepts, its type decides.

/// How often a flag is given, and with what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionForm {
    /// Once, with a value.
    Text,
    /// Repeatedly, with a value each.
    List,
    /// Without a value: sets the option to this. `--no-...` if false.
    Switch(bool),
}

/// An option of plans and its flag.
#[derive(Clone, Copy, Debug)]
pub struct PlanOption {
    /// The field of the specification.
    pub field: &'static str,
    /// The section of the help.
    pub heading: &'static str,
    /// The flag of one letter.
    pub short: Option<char>,
    /// How often, and with what.
    pub form: OptionForm,
    /// The placeholder of the value.
    pub value_name: &'static str,
    /// The words that its value is one of, for shells to complete; its type decides whether it accepts other texts, too.
    pub words: &'static [&'static str],
    /// The value of the flag without one.
    pub alone: Option<&'static str>,
    /// Is `@FILE` accepted?
    pub is_or_file: bool,
    /// May a value begin with a hyphen?
    pub allows_hyphen: bool,
    /// The option that it cannot be used with.
    pub excludes: Option<&'static str>,
    /// What it sets, its format, an example, its default.
    pub help: &'static str,
}

/// An option with one value.
pub(crate) const fn text(value_name: &'static str, help: &'static str) -> PlanOption {
    PlanOption {
        field: "",
        heading: "",
        short: None,
        form: OptionForm::Text,
        value_name,
        words: &[],
        alone: None,
        is_or_file: false,
        allows_hyphen: false,
        excludes: None,
        help,
    }
}

/// An option with a list of values, one for each time that its flag is given.
pub(crate) const fn list(value_name: &'static str, help: &'static str) -> PlanOption {
    PlanOption { form: OptionForm::List, ..text(value_name, help) }
}

/// An option that its flag switches on.
pub(crate) const fn switch(help: &'static str) -> PlanOption {
    PlanOption { form: OptionForm::Switch(true), ..text("", help) }
}

/// An option that its flag, `--no-...`, switches off.
pub(crate) const fn switch_off(help: &'static str) -> PlanOption {
    PlanOption { form: OptionForm::Switch(false), ..text("", help) }
}

impl PlanOption {
    pub(crate) const fn short(self, letter: char) -> Self {
        Self { short: Some(letter), ..self }
    }

    pub(crate) const fn words(self, words: &'static [&'static str]) -> Self {
        Self { words, ..self }
    }

    pub(crate) const fn alone(self, value: &'static str) -> Self {
        Self { alone: Some(value), ..self }
    }

    pub(crate) const fn or_file(self) -> Self {
        Self { is_or_file: true, ..self }
    }

    pub(crate) const fn allow_hyphen(self) -> Self {
        Self { allows_hyphen: true, ..self }
    }

    pub(crate) const fn excludes(self, option: &'static str) -> Self {
        Self { excludes: Some(option), ..self }
    }

    /// The key in a plan file.
    pub fn key(&self) -> String {
        self.field.replace('_', "-")
    }

    /// The flag, without dashes in front.
    pub fn flag(&self) -> String {
        let no = if self.form == OptionForm::Switch(false) { "no-" } else { "" };
        format!("{no}{}", self.key())
    }
}
