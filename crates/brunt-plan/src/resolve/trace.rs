//! Traces: the file of a class that replays one, and what is left of the trace's operations in the protocol.

use super::{ErrorContext, Resolved};
use crate::mix::Mix;
use crate::op::OpKind;
use crate::plan::{Class, Destination, Trace};
use crate::spec::{ClassSpec, RunSpec};

/// The trace of a class, if it has one.
pub(super) fn resolve(context: &ErrorContext<'_>, spec: &ClassSpec) -> Resolved<Option<Trace>> {
    match (&spec.trace, spec.trace_layout) {
        (None, None) => Ok(None),
        (Some(file), Some(layout)) if !file.is_empty() => Ok(Some(Trace { file: file.clone(), layout })),
        (Some(file), _) => Err(context.invalid("trace", file, "the path of a file, and trace-layout")),
        (None, Some(_)) => Err(context.requires("trace-layout", "trace")),
    }
}

/// What a trace may ask for, before the protocol is known.
pub(super) fn mix(trace: &Trace) -> Mix {
    let weights = trace.layout.kinds().iter().map(|kind| (*kind, 1)).collect();
    Mix { weights, commands: Vec::new() }
}

/// Removes kinds that the protocol lacks from the mixes: the trace reader substitutes them.
pub(super) fn limit_mixes(run: &RunSpec, default: &Destination, classes: &mut [Class]) {
    for class in classes.iter_mut().filter(|class| class.trace.is_some()) {
        let protocol = class.protocol(default.protocol);
        let is_stored = |kind: OpKind| run.hash_field.is_none() || kind.has_field_command();
        class.mix.weights.retain(|(kind, _)| protocol.supports(*kind) && is_stored(*kind));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::resolved;

    #[test]
    fn trace_options_resolve() {
        let of_trace = "trace = 't.csv'\ntrace-layout = 'twitter'\n";
        let mix = |toml: &str| resolved(&format!("{of_trace}{toml}")).unwrap().classes[0].mix.to_string();
        let memcached = "get=1,gets=1,set=1,add=1,replace=1,append=1,prepend=1,cas=1,incr=1,decr=1,delete=1";
        assert_eq!(mix(""), memcached);
        assert_eq!(
            mix("protocol = 'resp2'\nserver = 'a'"),
            "get=1,set=1,add=1,replace=1,append=1,incr=1,decr=1,delete=1"
        );
        assert_eq!(mix("protocol = 'resp2'\nserver = 'a'\nhash-field = 1"), "get=1,set=1,delete=1");
        let plan = resolved(of_trace).unwrap();
        assert_eq!((plan.stop.time, plan.stop.requests), (None, None), "it ends with its last line");
        assert!(!plan.data_sets()[0].has_counters && !plan.data_sets()[0].extends);
    }

    #[test]
    fn options_that_conflict_with_a_trace_are_refused() {
        let of_trace = "trace = 't.csv'\ntrace-layout = 'words'\n";
        for (toml, message) in [
            (
                "trace = 't.csv'".to_owned(),
                "invalid value 't.csv' for trace: expected the path of a file, and trace-layout",
            ),
            ("trace-layout = 'reads'".to_owned(), "trace-layout requires trace"),
            (format!("{of_trace}mix = 'get'"), "--mix cannot be used with trace, which names the operations"),
            (
                format!("{of_trace}transport = 'udp'"),
                "trace cannot be used with --transport udp: requests must fit into datagrams",
            ),
            (
                format!("{of_trace}verify = '5%'"),
                "trace cannot be used with --verify, which checks the keys of a data set",
            ),
        ] {
            let error = resolved(&toml).unwrap_err();
            assert!(error.starts_with(message), "{toml}: {error}");
        }
    }
}
