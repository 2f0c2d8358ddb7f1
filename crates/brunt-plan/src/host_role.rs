//! The host that runs a class where a run has agents: every agent, or the controller alone.

use crate::units::serde_as_text;
use std::fmt;
use std::str::FromStr;

/// The hosts that run a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostRole {
    /// All agents, which divide the class between them.
    #[default]
    Agents,
    /// The controller alone. Its host carries no other load, so its measurements are undisturbed.
    Controller,
}

impl HostRole {
    const fn name(self) -> &'static str {
        match self {
            Self::Agents => "agents",
            Self::Controller => "controller",
        }
    }
}

impl FromStr for HostRole {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Agents, Self::Controller]
            .into_iter()
            .find(|host_role| host_role.name() == text)
            .ok_or_else(|| "expected agents or controller".to_owned())
    }
}

impl fmt::Display for HostRole {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
serde_as_text!(HostRole);
