//! Raw samples as CSV, one line each, for output of every observation.
//!
//! Nothing is derived: response time, service time and send lag are differences of these columns, and their definitions
//! are in docs/method.md.

use crate::csv::cell;
use brunt_plan::plan::Plan;
use brunt_stats::sample::Sample;
use std::io::{self, Write};

/// The columns.
const HEADING: &str =
    "op,class,outcome,reply,intended_ns,picked_ns,sent_ns,polled_ns,first_byte_ns,done_ns,busy_lag_ns";

/// Writes a heading and a line for every sample, in the order given. `class` is the index of the class in the plan; the
/// six times are nanoseconds relative to `origin_ns`, the beginning of the measured window, so what happened before it
/// is negative. `busy_lag_ns` is a length of time, and empty where it is not kept. Where samples did not fit (`overflow` of them), a last line that begins with `#` says so: a part must
/// not be taken for the whole.
///
/// # Errors
/// What `out` returns. A line is one small write: give it a buffered writer.
pub fn write(
    samples: &[Sample],
    overflow: u64,
    plan: &Plan,
    origin_ns: u64,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "{HEADING}")?;
    // Exact while the instants are within 292 years of each other.
    let relative = |at_ns: u64| at_ns.wrapping_sub(origin_ns) as i64;
    for Sample { op, class, outcome, busy_lag_ns, times } in samples {
        let (ended, reply) = (outcome.class.name(), outcome.reply.name());
        write!(out, "{},{class},{ended},{reply},{},", plan.op_name(*op), relative(times.intended_ns))?;
        write!(out, "{},{},", relative(times.picked_ns), relative(times.sent_ns))?;
        let [polled, first_byte, done] = [times.polled_ns, times.first_byte_ns, times.done_ns].map(relative);
        writeln!(out, "{polled},{first_byte},{done},{}", cell(*busy_lag_ns))?;
    }
    if overflow > 0 {
        writeln!(out, "# {overflow} more samples did not fit: raise --samples-max")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use brunt_plan::op::{OpId, OpKind};
    use brunt_plan::outcome::{Outcome, OutcomeClass, ReplyKind};
    use brunt_plan::resolve::{Host, resolve};
    use brunt_plan::spec::PlanSpec;
    use brunt_stats::sample::Times;

    fn check(samples: &[Sample], overflow: u64, expected: &str) {
        let mut out = Vec::new();
        let spec = PlanSpec::from_toml("command = ['PING', 'HGET h {key}']\nprotocol = 'resp2'").unwrap();
        let plan = resolve(&spec, &Host { allowed_cpus: vec![0], random_seed: 1 }).unwrap();
        write(samples, overflow, &plan, 1_000, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, format!("{HEADING}\n{expected}"));
        let commas = |line: &str| line.matches(',').count();
        assert!(
            text.lines().filter(|line| !line.starts_with('#')).all(|line| commas(line) == commas(HEADING))
        );
    }

    #[test]
    fn a_line_for_every_sample() {
        let times = |first: u64| Times {
            intended_ns: first,
            picked_ns: first + 10,
            sent_ns: first + 200,
            polled_ns: first + 3_000,
            first_byte_ns: first + 4_000,
            done_ns: first + 4_001,
        };
        let hit = Sample {
            op: OpKind::Get.into(),
            class: 0,
            outcome: Outcome::of_reply(OpKind::Get, ReplyKind::Value),
            busy_lag_ns: Some(77),
            times: times(1_500),
        };
        let late = Sample {
            op: OpKind::Set.into(),
            class: 1,
            outcome: Outcome::without_reply(OutcomeClass::Timeout),
            busy_lag_ns: None,
            times: times(700),
        };
        check(&[], 0, "");
        let command = Sample { op: OpId::of_command(1), ..hit };
        check(&[command], 0, "HGET,0,hit,value,500,510,700,3500,4500,4501,77\n");
        check(&[hit], 0, "get,0,hit,value,500,510,700,3500,4500,4501,77\n");
        check(
            &[late, hit],
            7,
            "set,1,timeout,none,-300,-290,-100,2700,3700,3701,\n\
             get,0,hit,value,500,510,700,3500,4500,4501,77\n\
             # 7 more samples did not fit: raise --samples-max\n",
        );
    }
}
