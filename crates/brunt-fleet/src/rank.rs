//! Which part of a fleet an agent is: a number that the engine which placed it gave it.
//!
//! Pure: reads of the environment are an argument. Invariant: a rank is below the size of its fleet.

use brunt_plan::resolve::fleet::FLEET_MAX;
use serde::{Deserialize, Serialize};

/// Of a rank, of the size and of the attempt, in the environments of engines: Open MPI, libraries with PMI, Kubernetes (whose size and
/// attempt the manifest sets), and Slurm. What starts processes within a job of another engine comes first: to that engine it is one task.
const VARIABLES: [[&str; 3]; 4] = [
    ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "SLURM_RESTART_COUNT"],
    ["PMI_RANK", "PMI_SIZE", "SLURM_RESTART_COUNT"],
    ["JOB_COMPLETION_INDEX", "BRUNT_AGENTS", "BRUNT_ATTEMPT"],
    ["SLURM_PROCID", "SLURM_NTASKS", "SLURM_RESTART_COUNT"],
];

/// An agent's number, and how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rank {
    /// From 0.
    pub index: u32,
    /// The size of the fleet.
    pub of: u32,
    /// How often the engine has placed it before.
    pub attempt: u32,
}

impl Rank {
    /// A rank that is one of so many.
    ///
    /// # Errors
    /// It is not; for a user, behind the name of what gave it.
    pub fn new(index: u32, of: u32, attempt: u32) -> Result<Self, String> {
        match index < of && of <= FLEET_MAX {
            true => Ok(Self { index, of, attempt }),
            false => {
                Err(format!("rank {index} of {of}: expected a rank below a size of at most {FLEET_MAX}"))
            }
        }
    }

    /// What the first engine says that has set its variables; `None` where none has.
    ///
    /// # Errors
    /// A variable is no number, or there is a rank without a size; for a user.
    pub fn of_environment(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, String> {
        let number = |name: &str| match variable(name).filter(|text| !text.is_empty()) {
            None => Ok(None),
            Some(text) => match text.parse::<u32>() {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(format!("{name} is '{text}': expected a whole number")),
            },
        };
        for [rank, size, attempt] in VARIABLES {
            if let Some(index) = number(rank)? {
                let of = number(size)?.ok_or_else(|| format!("{rank} is set, but {size} is not"))?;
                let attempt = number(attempt)?.unwrap_or(0);
                return Self::new(index, of, attempt)
                    .map(Some)
                    .map_err(|why| format!("{rank}, {size}: {why}"));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_give_ranks() {
        let rank = |index, of, attempt| Ok(Some(Rank { index, of, attempt }));
        let refused = |why: &str| Err(why.to_owned());
        let table = [
            ("", Ok(None)),
            ("SLURM_PROCID=3 SLURM_NTASKS=8", rank(3, 8, 0)),
            ("SLURM_PROCID=3 SLURM_NTASKS=8 SLURM_RESTART_COUNT=2", rank(3, 8, 2)),
            ("JOB_COMPLETION_INDEX=0 BRUNT_AGENTS=1", rank(0, 1, 0)),
            ("JOB_COMPLETION_INDEX=63 BRUNT_AGENTS=64 BRUNT_ATTEMPT=1", rank(63, 64, 1)),
            ("JOB_COMPLETION_INDEX=0 BRUNT_AGENTS=1 BRUNT_ATTEMPT=", rank(0, 1, 0)),
            ("OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2", rank(1, 2, 0)),
            (
                "SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_RESTART_COUNT=1 OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2",
                rank(1, 2, 1),
            ),
            ("PMI_RANK=1 PMI_SIZE=2", rank(1, 2, 0)),
            ("JOB_COMPLETION_INDEX=0", refused("JOB_COMPLETION_INDEX is set, but BRUNT_AGENTS is not")),
            ("PMI_RANK=x PMI_SIZE=2", refused("PMI_RANK is 'x': expected a whole number")),
            (
                "PMI_RANK=2 PMI_SIZE=2",
                refused("PMI_RANK, PMI_SIZE: rank 2 of 2: expected a rank below a size of at most 1024"),
            ),
        ];
        for (environment, expected) in table {
            let variables = environment.split_whitespace().filter_map(|pair| pair.split_once('='));
            let variables: std::collections::HashMap<_, _> = variables.collect();
            let found = Rank::of_environment(|name| variables.get(name).map(|value| (*value).to_owned()));
            assert_eq!(found, expected, "{environment}");
        }
    }
}
