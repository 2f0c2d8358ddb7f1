//! Mistakes in a plan, as messages for a user: one form for each kind of mistake.

use crate::op::OpKind;
use crate::plan::Class;
use crate::spec::flag;
use crate::units::Count;
use std::fmt;

/// A message that names the option, what is wrong with it and what is expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError(String);

impl PlanError {
    /// An option, as a flag, does nothing without another one.
    pub fn requires(flag: &str, other: impl fmt::Display) -> Self {
        Self(format!("{flag} requires {other}"))
    }

    /// The value is above a limit that follows from something else.
    pub fn exceeds(option_and_value: &str, limit: impl fmt::Display) -> Self {
        Self(format!("{option_and_value} exceeds {limit}"))
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for PlanError {}

/// What an option comes to, or why it cannot be so.
pub(super) type Resolved<T = ()> = Result<T, PlanError>;

/// The part of a plan that an error is about.
#[derive(Clone, Copy)]
pub(super) struct ErrorContext<'a> {
    /// The class, where there are several.
    pub class: Option<&'a str>,
    /// The operations of a route.
    pub route: Option<&'a [OpKind]>,
}

impl<'a> ErrorContext<'a> {
    /// The run, or its only class.
    pub(super) const RUN: Self = Self { class: None, route: None };

    /// One of these classes.
    pub(super) fn of_class(class: &'a Class, classes: &[Class]) -> Self {
        Self { class: (classes.len() > 1).then_some(class.name.as_str()), route: None }
    }

    /// The option, and what of the plan it belongs to.
    fn name(&self, option: &str) -> String {
        let flag = match self.route {
            Some(ops) => {
                let ops: Vec<&str> = ops.iter().map(|op| op.name()).collect();
                format!("{option} (route of {})", ops.join(" "))
            }
            None => flag(option),
        };
        match self.class {
            Some(class) => format!("{flag} (class '{class}')"),
            None => flag,
        }
    }

    /// The option has a value that it cannot have.
    pub(super) fn invalid(
        &self,
        option: &str,
        value: impl fmt::Display,
        expected: impl fmt::Display,
    ) -> PlanError {
        PlanError(format!("invalid value '{value}' for {}: expected {expected}", self.name(option)))
    }

    /// The option does nothing without another one.
    pub(super) fn requires(&self, option: &str, other: impl fmt::Display) -> PlanError {
        PlanError::requires(&self.name(option), other)
    }

    /// The option contradicts another one.
    pub(super) fn conflicts(&self, option: &str, other: impl fmt::Display) -> PlanError {
        PlanError(format!("{} cannot be used with {other}", self.name(option)))
    }

    pub(super) fn exceeds(
        &self,
        option: &str,
        value: impl fmt::Display,
        limit: impl fmt::Display,
    ) -> PlanError {
        PlanError::exceeds(&self.name(&format!("{option} {value}")), limit)
    }

    /// The option cannot be used with the first of these that is there.
    pub(super) fn excludes<T: fmt::Display>(&self, option: &str, others: &[(T, bool)]) -> Resolved {
        match others.iter().find(|(_, is_there)| *is_there) {
            Some((other, _)) => Err(self.conflicts(option, other)),
            None => Ok(()),
        }
    }

    /// `given` or the default, if it lies within `min..=max`.
    pub(super) fn count(
        &self,
        option: &str,
        given: Option<Count>,
        default: u64,
        min: u64,
        max: u64,
    ) -> Result<u64, PlanError> {
        let value = given.map_or(default, |count| count.0);
        if (min..=max).contains(&value) {
            Ok(value)
        } else {
            Err(self.invalid(option, value, format!("an integer from {min} to {max}")))
        }
    }
}
