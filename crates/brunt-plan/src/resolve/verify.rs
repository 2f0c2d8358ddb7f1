//! What `--verify` requires: values that name their keys and versions, and memory for what is known of every key.

use super::{RUN, Resolved, object_window};
use crate::plan::{Placement, Plan, ValueForm};
use crate::version::Version;

/// What [`Plan::verify`] may take, and what a key takes of it: see `brunt-workload/src/version_tracker.rs`.
const BYTES_MAX: u64 = 8 << 30;
const BYTES_PER_KEY: u64 = 40;
/// The head of a value: `brunt-workload/src/payload.rs`.
const VALUE_BYTES_MIN: u32 = 16;

/// Can the fraction of a plan be verified?
pub(super) fn check(plan: &Plan) -> Resolved {
    let Some(fraction) = plan.verify else { return Ok(()) };
    if fraction.per_billion == 0 {
        return Err(RUN.invalid("verify", fraction, "a fraction above 0, e.g. 10%"));
    }
    object_window::check_verify(plan)?;
    // What a window has written, it knows itself.
    let tracked = || plan.classes.iter().filter(|class| class.popularity.window().is_none());
    let requires = |other: String| Err(RUN.requires("verify", other));
    if let Some(class) = tracked().find(|class| class.keyspace.value_size.min() < VALUE_BYTES_MIN) {
        return requires(format!(
            "--value-size of at least {VALUE_BYTES_MIN} bytes, which hold key and version; class '{}' has {}",
            class.name, class.keyspace.value_size
        ));
    }
    if let Some(class) = tracked().find(|class| class.keyspace.value_form != ValueForm::Random) {
        return requires(format!(
            "--value-form random, whose values name their keys; class '{}' has {}",
            class.name, class.keyspace.value_form
        ));
    }
    let is_sure = plan.placement.is_by_key() || plan.placement == Placement::ByThread;
    if plan.has_placement() && !is_sure {
        return requires(
            "--placement by key or by-thread: with any other a key may have been written on any server"
                .to_owned(),
        );
    }
    if let Some(class) = plan.classes.iter().find(|class| class.mix.extends()) {
        let reason =
            format!("append and prepend, whose values grow; class '{}' has --mix {}", class.name, class.mix);
        return Err(RUN.conflicts("verify", reason));
    }
    let threads = u64::from(plan.threads);
    let writers_max = u64::from(Version::WRITERS_MAX);
    if threads * plan.classes.len() as u64 > writers_max {
        return requires(format!(
            "at most {writers_max} threads times classes, each of which numbers its writes"
        ));
    }
    let keys = tracked().fold(0_u64, |sum, class| sum.saturating_add(class.keyspace.keys));
    let keys_max = BYTES_MAX / BYTES_PER_KEY / threads;
    if keys > keys_max {
        return requires(format!("at most {keys_max} --keys with {threads} threads, for memory"));
    }
    Ok(())
}
