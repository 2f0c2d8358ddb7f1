//! Hashes: whether keys are split into the name of one and a field in it, and what can then be asked.
//!
//! Not the commands: those are the codec's.

use super::{ErrorContext, PlanError};
use crate::op::OpKind;
use crate::plan::{Class, Destination, Protocol};
use crate::spec::RunSpec;

/// A field is shorter than the longest key.
const FIELD_MAX: u64 = 249;

/// What has a command for one field of a hash, and means the same there.
const OF_FIELDS: [OpKind; 3] = [OpKind::Get, OpKind::Set, OpKind::Delete];

/// How many bytes at the end of a key are the field, if any.
pub(super) fn resolve(
    context: &ErrorContext<'_>,
    run: &RunSpec,
    default_destination: &Destination,
    classes: &[Class],
) -> Result<Option<u32>, PlanError> {
    let Some(given) = run.hash_field else { return Ok(None) };
    let refuse = |accepted: &str| Err(context.error("hash-field", given, accepted));
    let bytes = context.count("hash-field", run.hash_field, 0, 1, FIELD_MAX)?;
    let is_resp =
        |class: &&Class| class.own_destination.as_ref().unwrap_or(default_destination).protocol.is_resp();
    if !classes.iter().any(|class| is_resp(&class)) {
        return refuse("--hash-field together with --protocol resp2 or resp3, for hashes are Redis's");
    }
    let is_inline = |class: &Class| {
        class.own_destination.as_ref().unwrap_or(default_destination).protocol == Protocol::RespInline
    };
    if classes.iter().any(is_inline) {
        return refuse(
            "no --hash-field together with --protocol resp-inline; --command 'HGET {key} f' is a command of it",
        );
    }
    if run.cluster == Some(true) {
        return refuse("no --hash-field together with --cluster, where the whole key says who has it");
    }
    for class in classes.iter().filter(is_resp) {
        if class.ttl_s > 0 {
            return refuse("no --ttl beside --hash-field: hashes expire as a whole");
        }
        if class.mix.weights.iter().any(|(kind, _)| !OF_FIELDS.contains(kind)) {
            let accepted = "a --mix of get, set and delete beside --hash-field";
            return Err(context.error("mix", &class.mix, accepted));
        }
    }
    Ok(Some(bytes as u32))
}

#[cfg(test)]
mod tests {
    use super::super::tests::resolved;

    #[test]
    fn hash_fields_require_redis() {
        let plan = resolved("protocol = 'resp2'\nserver = 'a'\nhash-field = 4").unwrap();
        assert_eq!((plan.hash_field, plan.server_stats), (Some(4), false));
        let of_redis = "protocol = 'resp3'\nserver = 'a'\nhash-field = ";
        for (toml, message) in [
            (
                "hash-field = 4".to_owned(),
                "--hash-field: '4' was given; accepted: --hash-field together with",
            ),
            (format!("{of_redis}0"), "--hash-field: '0' was given; accepted: a whole number from 1 to 249"),
            (
                format!("{of_redis}4\ncluster = true"),
                "--hash-field: '4' was given; accepted: no --hash-field",
            ),
            (format!("{of_redis}4\nttl = '5s'"), "--hash-field: '4' was given; accepted: no --ttl"),
            (
                format!("{of_redis}4\nmix = 'get,incr'"),
                "--mix: 'get=1,incr=1' was given; accepted: a --mix of",
            ),
            (
                format!("{of_redis}4\nserver-stats = true"),
                "--server-stats: 'true' was given; accepted: false",
            ),
        ] {
            let error = resolved(&toml).unwrap_err();
            assert!(error.starts_with(message), "{toml}: {error}");
        }
    }
}
