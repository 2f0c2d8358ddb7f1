//! The host a run was made on, as facts for the report.
//!
//! Facts only, nothing judged; a fact that the host does not tell is left out.

use crate::host_facts::first_line;
use brunt_plan::cpus::CpuList;
use std::fs;

/// Model of the first processor.
pub(crate) fn processor() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Processors that this process may run on, such as `0-3,5`.
pub(crate) fn allowed_cpus() -> String {
    CpuList(brunt_engine::allowed_cpus()).to_string()
}

/// What this host calls itself.
pub(crate) fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Name and value of everything that is known.
pub(crate) fn facts() -> Vec<(String, String)> {
    let system = rustix::system::uname();
    let clocksource = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let governor = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
    let facts = [
        ("kernel", Some(system.release().to_string_lossy().into_owned())),
        ("machine", Some(system.machine().to_string_lossy().into_owned())),
        ("processor", processor()),
        ("allowed_cpus", Some(allowed_cpus())),
        ("clocksource", first_line(clocksource)),
        ("governor", first_line(governor)),
    ];
    facts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}
