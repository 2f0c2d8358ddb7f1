//! A class with the plan around it, as rules look at it.

use super::error::ErrorContext;
use crate::op::OpKind;
use crate::plan::{Class, Plan};
use crate::spec::{ClassSpec, RunSpec};
use std::borrow::Cow;
use toml::{Table, Value};

/// A class of a plan.
pub(super) struct Case<'a> {
    pub plan: &'a Plan,
    pub run: &'a RunSpec,
    pub class: &'a Class,
    pub spec: &'a ClassSpec,
    /// The options of both.
    pub given: Given<'a>,
    /// The class, in messages.
    pub context: ErrorContext<'a>,
}

impl Case<'_> {
    pub(super) fn sends(&self, kind: OpKind) -> bool {
        self.class.mix.contains(kind)
    }

    pub(super) fn sends_any(&self, is_meant: fn(OpKind) -> bool) -> bool {
        self.class.mix.weights.iter().any(|(kind, _)| is_meant(*kind))
    }

    pub(super) fn has_own_servers(&self) -> bool {
        self.class.own_destination.is_some() || !self.class.routes.is_empty()
    }
}

/// The options that a run has, or a class and its run, as a plan file gives them.
pub(super) struct Given<'a> {
    run: Cow<'a, Table>,
    class: Table,
}

/// Why every table of options can be written.
const IS_TOML: &str =
    "an option's value is a boolean, a number below 2^63, a text, or a list or table of them";

impl Given<'_> {
    pub(super) fn of_run(run: &RunSpec) -> Self {
        Self { run: Cow::Owned(Table::try_from(run).expect(IS_TOML)), class: Table::new() }
    }

    pub(super) fn with_class(&self, class: &ClassSpec) -> Given<'_> {
        Given { run: Cow::Borrowed(&self.run), class: Table::try_from(class).expect(IS_TOML) }
    }

    /// The value of an option, which the class may have in place of the run's.
    fn value(&self, key: &str) -> Option<&Value> {
        self.class.get(key).or_else(|| self.run.get(key))
    }

    /// The first of these options, separated by commas, that is given: with the word behind it, if there is one.
    pub(super) fn first<'a>(&self, options: &'a str) -> Option<&'a str> {
        options.split(", ").find(|option| {
            let (key, word) = option.split_once(' ').map_or((*option, None), |(key, word)| (key, Some(word)));
            match (self.value(key), word) {
                (None, _) => false,
                (Some(Value::Boolean(is_on)), _) => *is_on,
                (Some(Value::Array(values)), _) => !values.is_empty(),
                (Some(Value::String(text)), Some(word)) => text.split(':').next() == Some(word),
                (Some(_), word) => word.is_none(),
            }
        })
    }
}
