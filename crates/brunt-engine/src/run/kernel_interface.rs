//! Choice of the kernel interface: what the plan requires, or the best that works here.
//!
//! Invariant: a plan that names an interface gets it or an error.

use crate::io::uring;
use brunt_plan::plan::{IoChoice, Plan};
use serde::{Deserialize, Serialize};
use std::io;

/// An interface to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KernelInterface {
    /// epoll.
    Epoll,
    /// io_uring.
    Uring,
}

impl KernelInterface {
    /// The word of `--io`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Epoll => IoChoice::Epoll.name(),
            Self::Uring => IoChoice::Uring.name(),
        }
    }
}

/// The chosen interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The interface.
    pub interface: KernelInterface,
    /// Why not a better one, which the plan would have allowed.
    pub reason: Option<String>,
}

/// Probes the io_uring features that brunt requires. The error names what does not work.
pub fn io_uring_works() -> Result<(), String> {
    uring::probe::probe_io_uring()
}

/// Did memory run out?
pub(crate) fn is_out_of_memory(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENOMEM)
}

/// The fallback if rings worked in the probe but cannot be created later.
pub(crate) fn without_io_uring(error: &io::Error) -> Chosen {
    let reason = format!("io_uring: {} when workers started", uring::probe::refusal(error));
    Chosen { interface: KernelInterface::Epoll, reason: Some(reason) }
}

/// Chooses for a plan whose workers need these rings; an error if the interface that it names is unavailable.
pub(crate) fn choose(plan: &Plan, rings: &[uring::Shape]) -> Result<Chosen, String> {
    choose_by(plan, || io_uring_works().and_then(|()| uring::probe::make_all(rings)))
}

fn choose_by(plan: &Plan, io_uring: impl Fn() -> Result<(), String>) -> Result<Chosen, String> {
    let epoll = |reason| Ok(Chosen { interface: KernelInterface::Epoll, reason });
    let uring = Chosen { interface: KernelInterface::Uring, reason: None };
    match plan.io {
        IoChoice::Epoll => epoll(None),
        IoChoice::Auto => match io_uring() {
            Ok(()) => Ok(uring),
            Err(why) => epoll(Some(format!("io_uring: {why}"))),
        },
        IoChoice::Uring => io_uring().map(|()| uring),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brunt_plan::resolve::{Host, resolve};
    use brunt_plan::spec::PlanSpec;

    #[test]
    fn auto_takes_the_best_working_interface() {
        // plan, does io_uring work → interface and reason, or error
        let table = [
            ("", true, Ok(("uring", ""))),
            ("", false, Ok(("epoll", "io_uring: broken"))),
            ("io = 'epoll'", true, Ok(("epoll", ""))),
            ("io = 'uring'", true, Ok(("uring", ""))),
            ("io = 'uring'", false, Err("broken")),
        ];
        for (toml, works, expected) in table {
            let spec = PlanSpec::from_toml(toml).unwrap();
            let plan = resolve(&spec, &Host { allowed_cpus: vec![0], random_seed: 1 }).unwrap();
            let chosen = choose_by(&plan, || if works { Ok(()) } else { Err("broken".to_owned()) });
            let chosen = chosen.map(|chosen| (chosen.interface.name(), chosen.reason.unwrap_or_default()));
            let expected = expected.map(|(name, reason)| (name, reason.to_owned()));
            assert_eq!(chosen, expected.map_err(str::to_owned), "{toml}");
        }
    }
}
