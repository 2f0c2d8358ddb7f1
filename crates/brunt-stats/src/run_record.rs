//! What a summary is built from: the data of a run, and what only its controller knows.
//!
//! A result file holds it, so that every report can be made again from the file.

use crate::agent::AgentRecord;
use crate::calibration::Lookup;
use crate::convergence::Convergence;
use crate::interval::HostMapping;
use crate::judgement::Judgement;
use crate::run_data::RunData;
use brunt_plan::plan::Plan;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a summary is built from, and nothing else: what the run yielded, and what only its leader knows.
#[derive(Clone, Debug)]
pub struct RunRecord {
    /// The plan that ran.
    pub plan: Plan,
    /// What was measured.
    pub run: RunData,
    /// The host.
    pub environment: Environment,
    /// What the server says of itself, in a line.
    pub server: String,
    /// The hosts that carried the plan out, where that was not this one alone.
    pub agents: Vec<AgentRecord>,
    /// How preload went; `None` where the plan has none.
    pub preload: Option<PreloadResult>,
    /// Were the values read compared with those stored?
    pub values_checked: bool,
    /// The precision that was asked for, with the looks that were taken at it.
    pub convergence: Option<Convergence>,
    /// What is known of this client on this host.
    pub calibration: Lookup,
    /// How the run is to be judged.
    pub judgement: Judgement,
}

impl RunRecord {
    /// Of a run of which nothing but its plan is known.
    pub fn of(plan: Plan) -> Self {
        Self {
            plan,
            run: RunData::default(),
            environment: Environment::default(),
            server: String::new(),
            agents: Vec::new(),
            preload: None,
            values_checked: true,
            convergence: None,
            calibration: Lookup::Absent,
            judgement: Judgement::default(),
        }
    }

    /// Adds the record of another part of the same run, as those of several agents are. Its window is taken to begin at the same instant.
    /// What only one host can say of itself stays that of the first. What servers said is dropped: it is of the load of all parts, in the
    /// window of one.
    ///
    /// # Errors
    /// What the two do not have in common.
    pub fn merge(&mut self, mut other: Self) -> Result<(), &'static str> {
        let clock_shift_ns = self.run.times.measure_ns as i64 - other.run.times.measure_ns as i64;
        let first_worker = self.run.usage.workers.len() as u32;
        let place = HostMapping { clock_shift_ns, first_worker, ..HostMapping::default() };
        other.run.map_host(&place);
        other.run.intervals.map_host(&place);
        self.run.intervals.merge(&other.run.intervals)?;
        self.run.server_records.clear();
        other.run.server_records.clear();
        self.run.merge(other.run);
        self.agents.extend(other.agents);
        Ok(())
    }
}

/// What was found on the host, as name and value, and the version of the tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// Version of brunt.
    pub brunt_version: String,
    /// What the host calls itself.
    pub host: String,
    /// Facts by name, in the order to print them.
    pub facts: Vec<(String, String)>,
}

/// How preload went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PreloadResult {
    /// Keys to store.
    pub wanted: u64,
    /// Keys that the server confirmed.
    pub confirmed: u64,
    /// Were they stored by an earlier run of the campaign?
    pub is_earlier: bool,
    /// From the first attempt to connect until the last key was confirmed.
    pub duration_ns: u64,
}
