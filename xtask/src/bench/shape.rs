//! What is compared: shapes of load, and under each the kernel interfaces and policies of brunt and of the floor.
//!
//! Not a plan: everything else of the load is the same for all. Invariant: every policy of a shape is asked of the floor
//! too, so that each row of brunt's has one to be divided by.

use std::str::FromStr;

/// How a client asks the kernel, and when it asks for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Policy {
    /// `epoll` or `uring`, as both programs call them.
    pub(crate) io: &'static str,
    /// `eager` or `batch`.
    pub(crate) refill: &'static str,
    /// Completions per wait.
    pub(crate) gather: u32,
}

const fn policy(io: &'static str, refill: &'static str, gather: u32) -> Policy {
    Policy { io, refill, gather }
}

pub(crate) const EPOLL: Policy = policy("epoll", "eager", 1);
pub(crate) const URING: Policy = policy("uring", "eager", 1);
/// What `--profile peak` is compared with.
pub(crate) const PEAK: Policy = policy("uring", "batch", 8);

impl std::fmt::Display for Policy {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}, {}", self.io, self.refill)?;
        if self.gather > 1 {
            write!(formatter, ", gather {}", self.gather)?;
        }
        Ok(())
    }
}

/// One shape of load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shape {
    pub(crate) connections: u32,
    pub(crate) depth: u32,
    pub(crate) policies: &'static [Policy],
    /// What brunt's CPU per request may be, divided by the floor's.
    pub(crate) target: f64,
    /// The one policy that the target is for, and then against the best floor of all; without one: all, each against
    /// its own.
    pub(crate) target_policy: Option<Policy>,
}

const fn shape(connections: u32, depth: u32, target: f64) -> Shape {
    Shape { connections, depth, policies: &[EPOLL, URING], target, target_policy: None }
}

/// All shapes.
pub(crate) const SHAPES: [Shape; 5] = [
    shape(1, 1, 1.10),
    shape(16, 1, 1.10),
    shape(64, 1, 1.10),
    shape(16, 16, 1.15),
    Shape {
        policies: &[EPOLL, policy("epoll", "batch", 1), URING, policy("uring", "batch", 1), PEAK],
        target_policy: Some(PEAK),
        ..shape(64, 32, 1.3)
    },
];

impl std::fmt::Display for Shape {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}x{}", self.connections, self.depth)
    }
}

impl FromStr for Shape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = SHAPES.into_iter().find(|shape| shape.to_string() == text);
        known.ok_or_else(|| format!("expected some of {}", SHAPES.map(|shape| shape.to_string()).join(",")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_have_their_names_and_policies() {
        assert_eq!("64x32".parse(), Ok(SHAPES[4]));
        assert_eq!("2x2".parse::<Shape>(), Err("expected some of 1x1,16x1,64x1,16x16,64x32".to_owned()));
        assert_eq!(PEAK.to_string(), "uring, batch, gather 8");
        assert!(
            SHAPES
                .iter()
                .all(|shape| shape.target_policy.is_none_or(|policy| shape.policies.contains(&policy)))
        );
    }
}
