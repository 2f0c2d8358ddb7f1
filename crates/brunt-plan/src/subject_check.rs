//! Whether a run of a plan reports the number that an objective names.

use crate::objective::{Metric, Subject};
use crate::op::OpKind;
use crate::plan::{Class, Plan};
use crate::quantile::Quantile;

impl Plan {
    /// Checks that a run of this plan reports the number.
    ///
    /// # Errors
    /// Why it does not, and what it reports instead; for a user.
    pub fn check_subject(&self, subject: &Subject) -> Result<(), String> {
        if let Some(quantile) = subject.percentile().filter(|quantile| !self.quantiles().contains(quantile)) {
            let names: Vec<String> = self.quantiles().iter().map(Quantile::to_string).collect();
            return Err(format!(
                "{quantile} is not reported: expected {}, or another one named in --percentiles",
                names.join(", ")
            ));
        }
        let sent = |class: &Class| {
            let ops =
                class.ops().into_iter().filter(|op| subject.op.is_none_or(|name| name == self.op_name(*op)));
            ops.map(|op| (op.kind(), class.requests_reply(op.kind()))).collect::<Vec<_>>()
        };
        let sent: Vec<(OpKind, bool)> = self.classes.iter().flat_map(sent).collect();
        if let (Some(op), true) = (subject.op, sent.is_empty()) {
            let names = self.op_names().into_iter().map(|name| name.to_string());
            let names = names.collect::<Vec<_>>().join(", ");
            return Err(format!("operation '{op}' is not sent: expected {names}, or none for all requests"));
        }
        let (has_number, reason) = match subject.metric {
            Metric::Hit => {
                (sent.iter().any(|(kind, _)| kind.is_retrieval()), "only get, gets and mget hit or miss")
            }
            Metric::Response(_) | Metric::Service(_) | Metric::Rate => {
                (sent.iter().any(|(_, is_answered)| *is_answered), "no reply is requested (--noreply)")
            }
            Metric::Errors | Metric::Unsent => (true, ""),
        };
        if has_number {
            Ok(())
        } else {
            Err(format!(
                "'{subject}' is not reported, {reason}: expected errors, unsent or another operation"
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::objective::Objective;
    use crate::resolve::{Host, resolve};
    use crate::spec::PlanSpec;
    #[test]
    fn objectives_need_a_reported_number() {
        let table = [
            ("", "p99 < 1ms", ""),
            ("", "set.errors < 1%", ""),
            ("", "p75 < 1ms", "p75 is not reported: expected p50, p90, p95, p99,"),
            ("percentiles = '75,99.5'", "service.p99.5 < 1ms", ""),
            ("percentiles = '75,99.5'", "p95 < 1ms", ""),
            ("percentiles = '75,99.5'", "p98 < 1ms", "p98 is not reported: expected p50, p75,"),
            ("", "mget.p99 < 1ms", "operation 'mget' is not sent: expected get, set, or none"),
            ("", "set.hit > 0", "'set.hit' is not reported, only get, gets and mget hit or miss: expected"),
            ("mix = 'set'", "hit > 0", "'hit' is not reported, only get, gets and mget hit or miss"),
            ("mix = 'get'", "set.p99 < 1ms", "operation 'set' is not sent: expected get, or none"),
            ("mix = 'get'\non-miss = 'set'", "set.p99 < 1ms", ""),
            (
                "noreply = true",
                "set.p99 < 1ms",
                "'set.p99' is not reported, no reply is requested (--noreply)",
            ),
            (
                "noreply = true",
                "set.rate > 1",
                "'set.rate' is not reported, no reply is requested (--noreply)",
            ),
            ("noreply = true", "p99 < 1ms", ""),
            ("noreply = true", "set.unsent <= 0", ""),
        ];
        let host = Host { allowed_cpus: vec![0], random_seed: 1 };
        for (plan, objective, expected) in table {
            let plan = resolve(&PlanSpec::from_toml(plan).unwrap(), &host).unwrap();
            let found = plan
                .check_subject(&objective.parse::<Objective>().unwrap().subject)
                .err()
                .unwrap_or_default();
            assert!(
                found.starts_with(expected) && found.is_empty() == expected.is_empty(),
                "{objective}: {found}"
            );
        }
    }
}
