//! CSV for plots and spreadsheets: a run over time, one line per second or as much longer as its slices are; its raw samples; the runs of a campaign.
//!
//! Invariants: what is not known is empty; the lines of the measured window are the `intervals` of the JSON, and before them come those of the
//! warm-up. docs/results.md says what every column means.

use crate::campaign::table::status_word;
use crate::campaign::{Campaign, CampaignQuestion, PercentileEstimate, RunPurpose};
use crate::server;
use brunt_plan::phase::Phase;
use brunt_plan::plan::Plan;
use brunt_plan::quantile::Quantile;
use brunt_stats::interval::Activity;
use brunt_stats::sample::Sample;
use brunt_stats::server_stats::ServerSpan;
use brunt_stats::summary::Summary;
use brunt_stats::timeline::TimelinePoint;
use brunt_stats::usage::ClientShares;
use std::fmt::Display;
use std::io::{self, Write};

/// The columns.
const HEADING: &str = "start_ns,end_ns,phase,scheduled,sent,completed,failed,completed_per_s,p50_ns,p99_ns,max_ns,\
     server_requests,server_hit_ratio,server_evictions,server_items,server_bytes,server_cpu_ns,server_count,\
     client_busy,client_busiest,client_run_delay,client_most_delayed,client_stolen";

/// Least length of the pieces, where none is asked for.
const WIDTH_NS: u64 = 1_000_000_000;

/// Writes a heading and a line for every row of the schedule, warm-up first. The last of either may cover less.
///
/// # Errors
/// What `out` returns. A line is one small write: give it a buffered writer.
pub fn write(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{HEADING}")?;
    let (measure_ns, servers) = (summary.window.measure_ns, &summary.record.run.server_records);
    for (phase, _, point) in summary.rows(WIDTH_NS) {
        let width_ns = summary.timeline().row_ns(point.start_ns, WIDTH_NS);
        let span = server::piece(servers, width_ns, point.start_ns, point.end_ns);
        line(measure_ns, phase, &point, span, out)?;
    }
    Ok(())
}

fn line(
    measure_ns: u64,
    phase: Phase,
    point: &TimelinePoint,
    servers: Option<(ServerSpan, usize)>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Activity { scheduled, sent, completed, failed } = point.activity.without(&point.preload);
    let [start_ns, end_ns] =
        [point.start_ns, point.end_ns].map(|at_ns| at_ns.wrapping_sub(measure_ns) as i64);
    let per_s = completed as f64 * 1e9 / (point.end_ns - point.start_ns).max(1) as f64;
    write!(out, "{start_ns},{end_ns},{},{scheduled},{sent},{completed},{failed},{per_s:.3}", phase.name())?;
    let [p50, p99, max] = [point.latency.p50_ns, point.latency.p99_ns, point.latency.max_ns].map(cell);
    write!(out, ",{p50},{p99},{max}")?;
    server_cells(servers, out)?;
    let ClientShares { busy, busiest, run_delay, most_delayed, stolen } =
        point.client.shares().unwrap_or_default();
    for share in [busy, busiest, run_delay, most_delayed, stolen] {
        write!(out, ",{}", cell(share.map(|share| format!("{share:.3}"))))?;
    }
    writeln!(out)
}

/// What is not known is empty.
pub(crate) fn cell(value: Option<impl Display>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

/// What the servers say of the same time, all of them together that were there, and how many those were; empty where none does.
fn server_cells(found: Option<(ServerSpan, usize)>, out: &mut dyn Write) -> io::Result<()> {
    let servers = cell(found.map(|(_, servers)| servers));
    let span = found.map(|(span, _)| span).unwrap_or_default();
    let ratio = span.hit_ratio().map_or(String::new(), |ratio| format!("{ratio:.6}"));
    let [requests, evictions, items, bytes, cpu_ns] =
        [span.requests, span.evictions, span.items, span.bytes, span.cpu_ns].map(cell);
    write!(out, ",{requests},{ratio},{evictions},{items},{bytes},{cpu_ns},{servers}")
}

/// The columns.
const SAMPLE_HEADING: &str =
    "op,class,outcome,reply,intended_ns,picked_ns,sent_ns,polled_ns,first_byte_ns,done_ns,busy_lag_ns";

/// Writes a heading and a line for every sample that the plan asked to keep, in their order. `class` is the index of the class in the plan; the
/// six times are nanoseconds from the beginning of the measured window, so what happened before it is negative. `busy_lag_ns` is a length of time,
/// and empty where it is not kept. Where samples did not fit, a last line that begins with `#` says so: a part must not be taken for the whole.
pub(crate) fn write_samples(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    let (plan, origin_ns) = (&summary.record.plan, summary.window.measure_ns);
    let overflow = summary.counts().samples_overflow;
    samples(&summary.record.run.samples, overflow, plan, origin_ns, out)
}

fn samples(
    samples: &[Sample],
    overflow: u64,
    plan: &Plan,
    origin_ns: u64,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "{SAMPLE_HEADING}")?;
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
        writeln!(out, "# {overflow} more samples did not fit: raise samples-max")?;
    }
    Ok(())
}

/// The columns.
const CAMPAIGN_HEADING: &str = "run,repetition,purpose,option,setting,seed,duration_ns,offered_per_s,completed_per_s,p50_ns,p99_ns,p99_low_ns,\
    p99_high_ns,p99.9_ns,client_error_p99_ns,cpu_ns_per_request,status,limit,step";

/// Writes a heading and a line for every run.
pub(crate) fn write_campaign(campaign: &Campaign, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{CAMPAIGN_HEADING}")?;
    let is_search = matches!(campaign.question, CampaignQuestion::Search { .. });
    for (index, run) in campaign.runs.iter().enumerate() {
        let value = |quantile| cell(run.percentile(quantile).map(|found: PercentileEstimate| found.value_ns));
        let interval = run.percentile(Quantile::P99).and_then(|found| found.interval_ns);
        let cells = [
            index.to_string(),
            run.place.repetition.to_string(),
            purpose(run.place.purpose),
            cell(run.place.setting.map(|setting| setting.option())),
            cell(run.place.setting.map(|setting| setting.as_f64())),
            run.seed.to_string(),
            run.result.window.duration_ns.to_string(),
            cell(run.offered()),
            run.completed().to_string(),
            value(Quantile::P50),
            value(Quantile::P99),
            cell(interval.map(|(low_ns, _)| low_ns)),
            cell(interval.and_then(|(_, high_ns)| high_ns)),
            value(Quantile::P999),
            cell(run.client_error_ns()),
            cell(run.result.client_cpu_ns()),
            status_word(run).0.to_owned(),
            cell(run.is_limited.then(|| run.limit.bottleneck.name())),
            cell(is_search.then(|| run.step.name())),
        ];
        writeln!(out, "{}", cells.join(","))?;
    }
    Ok(())
}

fn purpose(purpose: RunPurpose) -> String {
    match purpose {
        RunPurpose::Step => "step".to_owned(),
        RunPurpose::Pair => "pair".to_owned(),
        RunPurpose::Connections(count) => format!("connections={count}"),
    }
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
        let plan = resolve(&spec, &Host::of(vec![0], 1)).unwrap();
        super::samples(samples, overflow, &plan, 1_000, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, format!("{SAMPLE_HEADING}\n{expected}"));
        let commas = |line: &str| line.matches(',').count();
        assert!(
            text.lines()
                .filter(|line| !line.starts_with('#'))
                .all(|line| commas(line) == commas(SAMPLE_HEADING))
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
             # 7 more samples did not fit: raise samples-max\n",
        );
    }
}
