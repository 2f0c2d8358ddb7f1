//! Front ends that look like other load generators: their command line becomes plans, a summary becomes their report.
//!
//! Not an engine: everything runs as any other plan does, and the numbers are ours. Each tool has a folder, and there its own
//! defaults; what several tools share of reading options is in [`options`], how our messages name a tool's options in [`names`], what they
//! all are to the program that carries them out in [`front_end`], and their names are in [`tools`]. Invariants: an option is honoured, repaired or
//! refused, never ignored in silence; docs/compat.md says which.

#![forbid(unsafe_code)]

pub mod front_end;
pub mod mcperf {
    //! mcperf: [`command_line`] → [`invocation`], which has the plan; a summary → [`report`], which
    //! has the text; and the front end that leads from one to the other.

    pub mod command_line;
    pub mod front_end;
    pub mod invocation;
    pub mod report;

    pub use front_end::read;
}
pub mod memaslap {
    //! memaslap: [`command_line`] and [`workload_file`] → [`invocation`], which has the plan; [`report`] from periods and summaries; and the
    //! front end that leads from one to the other.

    pub mod command_line;
    pub mod front_end;
    pub mod invocation;
    pub mod report;
    pub mod tally;
    pub mod workload_file;

    pub use front_end::read;
}
pub mod mutilate {
    //! mutilate, both generations: [`command_line`] → [`invocation`], which has the plans; [`report`] from a summary; and the front end
    //! that leads from one to the other.

    pub mod agents;
    pub mod command_line;
    pub mod front_end;
    pub mod generator;
    pub mod invocation;
    pub mod report;
    mod search;

    pub use front_end::read;
}
pub mod names;
pub mod options;
pub mod rpc_perf {
    //! rpc-perf of 2017: [`command_line`] and [`config`] → [`invocation`], which has the plan, with what [`request`] makes of workloads; the
    //! course of a run, by [`window`]s and second by second, becomes lines of its [`log`] and two files, [`slices`] as text and
    //! [`waterfall`] as a picture; and [`statistics`], which are looked at meanwhile.

    pub mod command_line;
    pub mod config;
    pub mod front_end;
    pub mod invocation;
    pub mod log;
    pub mod request;
    pub mod slices;
    pub mod statistics;
    pub mod waterfall;
    pub mod window;

    pub use front_end::read;
}
pub mod tools;
