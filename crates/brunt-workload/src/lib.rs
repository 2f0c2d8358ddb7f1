//! What to send and when: the only place that draws.
//!
//! The way through this crate: a class of the plan and its place among streams → [`session::Session`], which asks its
//! [`schedule::Schedule`] when, its `source::KindChooser` what and its [`popularity::KeyChooser`] which key. An op names
//! keys and values by id; [`keys::KeyGenerator`] and [`payload::Payload`] turn ids into bytes, [`verify::Verifier`] checks
//! bytes that come back, and [`placement::Router`] says which server a key lives on. Everything is a function of (plan,
//! seeds): nothing here reads a clock or a socket, and nothing allocates after construction.

#![forbid(unsafe_code)]

// What a session does next.
mod client_window;
pub mod session;
mod source;
pub mod trace;

// What files of others say.
mod monitor_line;
pub mod trace_decoder;
pub mod trace_schedule;

// When.
pub mod arrivals;
mod intensity;
mod mmpp;
pub mod schedule;

// Which key, and on which server.
mod alias;
pub mod miss_delays;
pub mod placement;
pub mod popularity;
mod zipf;

// What keys and values are, and whether a received value is right.
pub mod keys;
pub mod payload;
pub mod size;
pub mod verify;
pub mod version_tracker;

// Random numbers and distributions.
mod hash;
mod quantile_function;
pub mod rand48;
pub mod rng;

// Tests.
#[cfg(test)]
mod goodness_of_fit;

#[cfg(test)]
mod tests {
    use brunt_plan::plan::{Class, Plan};
    use brunt_plan::spec::PlanSpec;

    /// The class of a plan of this text, of whatever options.
    pub(crate) fn class(toml: &str) -> Class {
        let plan = PlanSpec::from_toml(toml)
            .and_then(|spec| Plan::restored(spec).map_err(|error| error.to_string()));
        plan.unwrap().classes.remove(0)
    }
}
