//! Hashes: whether keys are split into the name of one and a field in it, and what can then be asked.

use super::{RUN, Resolved};
use crate::op::OpKind;
use crate::plan::{Class, Destination, Protocol};
use crate::spec::RunSpec;

/// A field is shorter than the longest key.
const FIELD_MAX: u64 = 249;

/// What has a command for one field of a hash, and means the same there.
const OF_FIELDS: [OpKind; 3] = [OpKind::Get, OpKind::Set, OpKind::Delete];

/// How many bytes at the end of a key are the field, if any.
pub(super) fn resolve(
    run: &RunSpec,
    default_destination: &Destination,
    classes: &[Class],
) -> Resolved<Option<u32>> {
    if run.hash_field.is_none() {
        return Ok(None);
    }
    let conflict = |other: &str| Err(RUN.conflicts("hash-field", other));
    let bytes = RUN.count("hash-field", run.hash_field, 0, 1, FIELD_MAX)?;
    let is_resp =
        |class: &&Class| class.own_destination.as_ref().unwrap_or(default_destination).protocol.is_resp();
    if !classes.iter().any(|class| is_resp(&class)) {
        return Err(RUN.requires("hash-field", "--protocol resp2 or resp3"));
    }
    let is_inline = |class: &Class| {
        class.own_destination.as_ref().unwrap_or(default_destination).protocol == Protocol::RespInline
    };
    if classes.iter().any(is_inline) {
        return conflict("--protocol resp-inline; use --command 'HGET {key} f'");
    }
    if run.cluster == Some(true) {
        return conflict("--cluster, which places keys by all of their bytes");
    }
    for class in classes.iter().filter(is_resp) {
        if class.ttl_s > 0 {
            return conflict("--ttl: hashes expire as a whole");
        }
        if class.mix.weights.iter().any(|(kind, _)| !OF_FIELDS.contains(kind)) {
            let accepted = "get, set and delete only with --hash-field";
            return Err(RUN.invalid("mix", &class.mix, accepted));
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
            ("hash-field = 4".to_owned(), "--hash-field requires --protocol resp2 or resp3"),
            (format!("{of_redis}0"), "invalid value '0' for --hash-field: expected an integer from 1 to 249"),
            (
                format!("{of_redis}4\ncluster = true"),
                "--hash-field cannot be used with --cluster, which places keys by all of their bytes",
            ),
            (
                format!("{of_redis}4\nttl = '5s'"),
                "--hash-field cannot be used with --ttl: hashes expire as a whole",
            ),
            (
                format!("{of_redis}4\nmix = 'get,incr'"),
                "invalid value 'get=1,incr=1' for --mix: expected get, set and delete only with --hash-field",
            ),
            (
                format!("{of_redis}4\nserver-stats = true"),
                "--server-stats cannot be used with --hash-field: Redis counts hashes, brunt counts keys",
            ),
        ] {
            let error = resolved(&toml).unwrap_err();
            assert!(error.starts_with(message), "{toml}: {error}");
        }
    }
}
