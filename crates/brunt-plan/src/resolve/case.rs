//! A class with the plan around it, as rules look at it.

use super::error::ErrorContext;
use crate::op::OpKind;
use crate::plan::{Class, Plan, Protocol, Transport};
use crate::spec::{ClassSpec, RunSpec};
use toml::{Table, Value};

/// A class of a plan; of rules for the run the first one.
pub(super) struct Case<'a> {
    pub plan: &'a Plan,
    pub run: &'a RunSpec,
    pub class: &'a Class,
    pub spec: &'a ClassSpec,
    /// Which of them, in messages.
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

    pub(super) fn any(&self, is_meant: fn(&Class) -> bool) -> bool {
        self.plan.classes.iter().any(is_meant)
    }

    pub(super) fn speaks(&self, is_meant: fn(Protocol) -> bool) -> bool {
        self.plan.protocols().into_iter().any(is_meant)
    }

    pub(super) fn is_tcp(&self) -> bool {
        self.plan.uses_transport(Transport::Tcp) || self.plan.uses_transport(Transport::Tls)
    }
}

/// The options that a run has, or a class and its run, as a plan file gives them.
pub(super) struct Given(Table);

/// Why every table of options can be written.
const IS_TOML: &str =
    "an option's value is a boolean, a number below 2^63, a text, or a list or table of them";

impl Given {
    pub(super) fn of_run(run: &RunSpec) -> Self {
        Self(Table::try_from(run).expect(IS_TOML))
    }

    pub(super) fn of(case: &Case<'_>) -> Self {
        let mut options = Self::of_run(case.run);
        options.0.extend(Table::try_from(case.spec).expect(IS_TOML));
        options
    }

    /// The first of these options, separated by commas, that is given: with the word behind it, if there is one.
    pub(super) fn first<'a>(&self, options: &'a str) -> Option<&'a str> {
        options.split(", ").find(|option| {
            let (key, word) = option.split_once(' ').map_or((*option, None), |(key, word)| (key, Some(word)));
            match (self.0.get(key), word) {
                (None, _) => false,
                (Some(Value::Boolean(is_on)), _) => *is_on,
                (Some(Value::Array(values)), _) => !values.is_empty(),
                (Some(Value::String(text)), Some(word)) => text.split(':').next() == Some(word),
                (Some(_), word) => word.is_none(),
            }
        })
    }
}
