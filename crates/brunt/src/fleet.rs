//! `brunt fleet`: a plan as a job of Slurm, or as manifests of Kubernetes, which place a controller and its agents.
//!
//! Not a scheduler: what is printed is for an engine that places, restarts and ends processes. Invariants: nothing is connected, and
//! nothing is printed that no fleet could run; a script has no secret in it, manifests have those of their fleet in their Secret alone.

mod kubernetes;
mod slurm;

use crate::agent::{check_threads, tell_traces};
use crate::asking;
use crate::cli::{Fleet, FleetPlan};
use crate::exit::{Exit, Failure};
use crate::run::PlanRequest;
use crate::terminal::print;
use anyhow::Context;
use brunt_fleet::credentials;
use brunt_plan::plan::{Plan, Protocol};
use brunt_plan::spec::{PlanSpec, RunSpec};
use brunt_plan::units::Count;
use brunt_plan::url::{NamedServer, ServerUrl};
use std::path::Path;

/// Prints what an engine takes.
pub(crate) fn fleet(flags: &Fleet) -> Result<Exit, Failure> {
    let text = match flags {
        Fleet::Slurm(slurm) => slurm::script(slurm, &planned(&slurm.fleet)?),
        Fleet::Kubernetes(kubernetes) => {
            let mut planned = planned(&kubernetes.fleet)?;
            let target = kubernetes::take_target_files(&mut planned.spec)?;
            kubernetes::manifests(kubernetes, &planned, &[new_secrets()?, target].concat())
        }
    };
    let printed = print(text.as_bytes(), false).context("cannot write standard output");
    printed.map_err(|error| Failure::new(Exit::Failed, error))?;
    Ok(Exit::Done)
}

/// The plan of a fleet, and the files that its agents have.
struct Planned {
    /// It names no trace, but tells what is in it.
    spec: PlanSpec,
    /// Where all agents have the traces.
    traces: Vec<String>,
    /// How long the run takes at most, where that can be told.
    seconds: Option<u64>,
}

fn longest_seconds(plan: &Plan) -> Option<u64> {
    let window = plan.stop.time.filter(|_| plan.stop.requests.is_none())?;
    let preload = if plan.preload { plan.preload_ns()? } else { 0.0 };
    let run = [window, plan.warmup.longest(), plan.drain].map(|length| length.0 as f64).iter().sum::<f64>();
    Some(((preload + run) / 1e9).ceil() as u64)
}

/// The plan of a fleet of this size, which could run.
fn planned(flags: &FleetPlan) -> Result<Planned, Failure> {
    let mut asked = PlanRequest::read(Some(&flags.plan), PlanSpec::default())?;
    // No server is where its agents are.
    asked.host.server_is_here = false;
    if has_password(&asked.spec) {
        return Err(Failure::usage(
            "password cannot be used with brunt fleet, whose text others can read: expected a plan without one",
        ));
    }
    let run = &mut asked.spec.run;
    for file in [&mut run.tls_ca, &mut run.tls_cert, &mut run.tls_key].into_iter().flatten() {
        let absolute = std::path::absolute(&*file).map_err(Failure::usage)?;
        *file = absolute.display().to_string();
    }
    if let Some(Count(size)) =
        run.fleet.replace(Count(flags.agents.into())).filter(|size| size.0 != u64::from(flags.agents))
    {
        return Err(Failure::usage(format!(
            "--agents {} cannot be used with a plan whose fleet is {size}: expected the same number, or a plan without fleet",
            flags.agents
        )));
    }
    check_threads(run)?;
    let traces = tell_traces(&mut asked.spec)?;
    let mut sent = asked.spec.clone();
    (sent.run.tls_ca, sent.run.tls_cert, sent.run.tls_key) = (None, None, None);
    if let Some(option) = sent.first_file() {
        let message =
            format!("{option} cannot be used with brunt fleet: agents do not have the file it names");
        return Err(Failure::usage(message));
    }
    let judged = |protocol| {
        let mut trial = asked.without_agents();
        asking::assume(&mut trial.spec, protocol);
        trial.plan()
    };
    let plan =
        judged(Protocol::MemcachedText).or_else(|failure| judged(Protocol::Resp2).map_err(|_| failure))?;
    Ok(Planned { spec: asked.spec, traces, seconds: longest_seconds(&plan) })
}

fn has_password(spec: &PlanSpec) -> bool {
    let is_secret = |server: &NamedServer| {
        matches!(server, NamedServer::Url(ServerUrl { password: Some(_), .. }) | NamedServer::Invalid(_))
    };
    spec.run.password.is_some() || spec.server_lists().flat_map(|(_, list)| &list.0).any(is_secret)
}

/// The contents of a new folder for `--auth`, by the names of its files.
fn new_secrets() -> Result<Vec<(String, String)>, Failure> {
    let scratch = tempfile::tempdir().map_err(Failure::failed)?;
    let folder = scratch.path().join("auth");
    credentials::create(&folder).map_err(Failure::failed)?;
    let read = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        std::fs::read_to_string(path).map(|text| (name, text)).map_err(Failure::failed)
    };
    credentials::files(&folder).iter().map(|path| read(path)).collect()
}

/// The options of an agent that name the target's files of TLS, and traces, each as `written` has it.
fn file_options(Planned { spec, traces, .. }: &Planned, written: impl Fn(&str, &str) -> String) -> String {
    let RunSpec { tls_ca, tls_cert, tls_key, .. } = &spec.run;
    let files = [("--target-ca", tls_ca), ("--target-cert", tls_cert), ("--target-key", tls_key)];
    let files = files.into_iter().filter_map(|(option, path)| Some((option, path.as_ref()?)));
    let traces = traces.iter().map(|path| ("--trace", path));
    files.chain(traces).map(|(option, path)| written(option, path)).collect()
}

/// The template with a value in the place of each `@NAME@`. What is in a value stays as it is.
fn filled(template: &str, values: &[(&str, &str)]) -> String {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, behind)) = rest.split_once('@') {
        text.push_str(before);
        let known = behind.split_once('@').and_then(|(name, behind)| {
            values.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value, behind))
        });
        let (value, behind) = known.unwrap_or(("@", behind));
        text.push_str(value);
        rest = behind;
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_take_the_place_of_names() {
        let values = [("A", "@B@"), ("B", "2")];
        for (template, expected) in
            [("@A@/@B@", "@B@/2"), ("TERM@60\n@B@", "TERM@60\n2"), ("a@b", "a@b"), ("@@B@", "@2"), ("", "")]
        {
            assert_eq!(filled(template, &values), expected);
        }
    }
}
