//! The traces that an agent has, found by what is in them: a plan that comes over the network names no file of this host.
//!
//! Invariant: a file that is replayed has the size and the digest that the plan tells; both are taken once, when the agent starts; a
//! file whose size or time of change is another before a run is refused.

use brunt_engine::input_file::open_regular;
use brunt_plan::plan::Plan;
use brunt_plan::spec::PlanSpec;
use brunt_plan::trace_identity::TraceIdentity;
use ring::digest::{Context, SHA256};
use std::collections::HashMap;
use std::io::{self, Read};
use std::time::SystemTime;

/// Bytes read at a time.
const CHUNK_BYTES: usize = 1 << 20;

/// A trace of this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentTrace {
    /// Where it is.
    pub path: String,
    /// What is in it.
    pub identity: TraceIdentity,
    /// When it was changed last, before it was read.
    pub modified: Option<SystemTime>,
}

impl AgentTrace {
    /// Reads what is in a trace, all of it.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(path: String) -> io::Result<Self> {
        let mut file = open_regular(path.as_ref())?;
        let modified = file.metadata()?.modified().ok();
        let (mut context, mut bytes, mut chunk) = (Context::new(&SHA256), 0, vec![0; CHUNK_BYTES]);
        loop {
            let len = file.read(&mut chunk)?;
            if len == 0 {
                break;
            }
            context.update(&chunk[..len]);
            bytes += len as u64;
        }
        let mut sha256 = [0; 32];
        sha256.copy_from_slice(context.finish().as_ref());
        Ok(Self { path, identity: TraceIdentity { sha256, bytes }, modified })
    }
}

/// The traces of a plan's classes, as their texts are.
fn texts(spec: &mut PlanSpec) -> impl Iterator<Item = &mut String> {
    spec.classes.iter_mut().chain([&mut spec.base]).filter_map(|class| class.trace.as_mut())
}

/// Lets a specification tell what is in its traces instead of where they are.
///
/// # Errors
/// Of `identify`; for a user.
pub fn tell_contents<E>(
    spec: &mut PlanSpec,
    mut identify: impl FnMut(&str) -> Result<TraceIdentity, E>,
) -> Result<(), E> {
    for text in texts(spec).filter(|text| text.parse::<TraceIdentity>().is_err()) {
        *text = identify(text)?.to_string();
    }
    Ok(())
}

/// The plan with the paths of the traces that it tells the contents of.
///
/// # Errors
/// One is not among those that are there; for a user, behind the name of the agent.
pub(crate) fn with_paths(plan: &Plan, own: &[AgentTrace]) -> Result<Plan, String> {
    let traces = plan.classes.iter().filter_map(|class| class.trace.as_ref());
    let told = |file: &String| Ok((file.clone(), path_of(file, own)?));
    let paths = traces.map(|trace| told(&trace.file)).collect::<Result<HashMap<_, _>, String>>()?;
    let changed = plan.changed(|spec| {
        for text in texts(spec) {
            *text = paths.get(text).unwrap_or(text).clone();
        }
    });
    changed.map_err(|error| error.to_string())
}

fn path_of(told: &str, own: &[AgentTrace]) -> Result<String, String> {
    let is_it = |trace: &&AgentTrace| told.parse() == Ok(trace.identity);
    let Some(trace) = own.iter().find(is_it) else {
        let has: Vec<String> =
            own.iter().map(|trace| format!("{} is {}", trace.path, trace.identity)).collect();
        let has = if has.is_empty() { "it has none".to_owned() } else { has.join(", ") };
        return Err(format!("has another trace than the plan, {told}: {has} (brunt agent --trace FILE)"));
    };
    match std::fs::metadata(&trace.path) {
        Ok(now) if (now.len(), now.modified().ok()) == (trace.identity.bytes, trace.modified) => {
            Ok(trace.path.clone())
        }
        Ok(_) => Err(format!("finds that '{}' has changed since it started: restart the agent", trace.path)),
        Err(error) => Err(format!("cannot read '{}': {error}", trace.path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_are_found_by_what_is_in_them() {
        let path = std::env::temp_dir().join(format!("brunt-agent-trace-{}", std::process::id()));
        let path = path.display().to_string();
        std::fs::write(&path, b"abc").unwrap();
        let trace = AgentTrace::read(path.clone()).unwrap();
        let identity = trace.identity;
        // FIPS 180-2, B.1.
        let told = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad,3";
        assert_eq!((identity.to_string().as_str(), told.parse()), (told, Ok(identity)));
        let own = [trace];
        assert_eq!(path_of(told, &own), Ok(path.clone()));
        let other = told.replace(",3", ",4");
        let refused = path_of(&other, &own).unwrap_err();
        assert!(
            refused.starts_with(&format!("has another trace than the plan, {other}: {path} is {told}")),
            "{refused}"
        );
        assert!(path_of(told, &[]).unwrap_err().contains("it has none"));
        // Of the same size.
        std::fs::write(&path, b"abd").unwrap();
        std::fs::File::open(&path).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        assert!(path_of(told, &own).unwrap_err().contains("has changed since it started"));
        std::fs::remove_file(&path).unwrap();
        assert!(path_of(told, &own).unwrap_err().starts_with("cannot read"));
        assert!(AgentTrace::read("/dev/zero".to_owned()).is_err());
        let mut spec =
            PlanSpec::from_toml(&format!("[[class]]\ntrace = 'a'\n[[class]]\ntrace = '{told}'")).unwrap();
        tell_contents(&mut spec, |_| Ok::<_, ()>(identity)).unwrap();
        assert!(texts(&mut spec).all(|text| text == told) && spec.first_file().is_none());
    }
}
