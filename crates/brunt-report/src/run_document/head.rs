//! The head of the report: what was run, in three lines where a plan has one class; host and plan in a long report.
//!
//! The first line names the model, because what a latency means depends on it.

use crate::document::{Content, Document};
use crate::quantity;
use crate::text::printable;
use brunt_plan::arrival::Arrival;
use brunt_plan::plan::{Class, KeyForm, Load, OpenRate, Path, Plan, SessionScope, Transport};
use brunt_plan::size::{SizeDistribution, SizeRange};
use brunt_plan::units::Rate;
use brunt_stats::run_record::RunRecord;
use brunt_stats::summary::Summary;
use brunt_stats::usage::AgentRecord;

/// Classes that have a line of their own.
const CLASSES_MAX: usize = 4;
/// Servers that are named.
const SERVERS_MAX: usize = 3;

/// Facts beside a label.
pub(crate) type Labelled = (String, Vec<String>);

pub(super) fn write(document: &mut Document, summary: &Summary) {
    lines(summary).into_iter().for_each(|(label, facts)| document.facts(label, facts));
}

/// Host and plan.
pub(super) fn part(document: &mut Document, summary: &Summary) {
    document.heading("host");
    document.facts("server", vec![summary.record.server.clone()]);
    document.facts("host", host(summary));
    summary.record.agents.iter().for_each(|agent| document.facts("agent", agent_facts(agent)));
    document.heading("plan");
    document.push(0, Content::Verbatim(summary.record.plan.spec.to_toml()));
}

pub(crate) fn host(summary: &Summary) -> Vec<String> {
    let facts = summary.record.environment.facts.iter();
    facts.map(|(name, fact)| format!("{name} {fact}")).collect()
}

/// The lines by label.
pub(crate) fn lines(summary: &Summary) -> Vec<Labelled> {
    let mut lines = load_lines(summary);
    lines.push(("window".to_owned(), window(summary)));
    lines
}

/// Those that are known before a run has ended.
pub(crate) fn load_lines(summary: &Summary) -> Vec<Labelled> {
    let plan = &summary.record.plan;
    let mut lines = Vec::new();
    match plan.classes.as_slice() {
        [class] => lines.push((model(class).to_owned(), load(plan, class, None))),
        classes => {
            for class in classes.iter().take(CLASSES_MAX) {
                let facts = [vec![model(class).to_owned()], load(plan, class, None)].concat();
                lines.push((class.name.clone(), facts));
            }
            if classes.len() > CLASSES_MAX {
                let others = format!("+{} more: --report full", classes.len() - CLASSES_MAX);
                lines.push((String::new(), vec![others]));
            }
        }
    }
    lines.push(target(summary));
    lines
}

/// The head of a campaign, from its first run, without the option that its runs differ by.
pub(crate) fn of_campaign(summary: &Summary, varied: Option<&str>) -> Vec<Labelled> {
    let first = match summary.record.plan.classes.as_slice() {
        [class] => (model(class).to_owned(), load(&summary.record.plan, class, varied)),
        classes => ("classes".to_owned(), vec![format!("{} side by side", classes.len())]),
    };
    vec![first, target(summary), ("window".to_owned(), window(summary))]
}

const fn model(class: &Class) -> &'static str {
    match class.load {
        Load::Open { .. } => "open loop",
        Load::Closed { .. } => "closed loop",
    }
}

/// When it sends, on what, and what.
fn load(plan: &Plan, class: &Class, varied: Option<&str>) -> Vec<String> {
    let mut facts = Vec::new();
    match &class.load {
        Load::Open { rate, arrival } => {
            let arrival_fact = arrival_text(arrival);
            facts.push(match rate {
                OpenRate::Constant(_) if varied == Some("rate") => arrival_fact,
                OpenRate::Constant(rate) => format!("{} {arrival_fact}", rate_text(*rate)),
                OpenRate::Profile(profile) => format!("rate {profile} {arrival_fact}"),
                OpenRate::Recorded => format!("times of the trace, {arrival_fact} within a second"),
                OpenRate::PerConnection(rate) => {
                    format!("{} {arrival_fact} on each connection", rate_text(*rate))
                }
            });
            facts.extend(dispersion(arrival, rate));
        }
        Load::Closed { think } => {
            facts.extend((think.0 > 0).then(|| format!("think time {}", quantity::time(think.0))));
        }
    }
    facts.push(connections(class, varied));
    facts.extend(lifetime(class));
    facts.extend(operations(plan, class));
    facts
}

fn connections(class: &Class, varied: Option<&str>) -> String {
    let connections = match (&class.connections_of, class.sessions) {
        (Some(owner), _) => format!("the connections of {owner}"),
        (None, SessionScope::Client { connections }) if class.trace.is_none() => {
            format!("{} connections, {connections} a client,", class.connections)
        }
        (None, _) => quantity::things(u64::from(class.connections), "connection"),
    };
    match varied {
        Some("connections") => format!("depth {}", class.depth),
        Some("depth") => connections,
        _ => format!("{connections} x depth {}", class.depth),
    }
}

/// How long connections live, where they come and go by plan.
fn lifetime(class: &Class) -> Option<String> {
    let lifetime = &class.lifetime;
    let facts = [
        lifetime.connect_rate.map(|rate| format!("{} opened", rate_text(rate))),
        lifetime.calls.map(|calls| match calls {
            1 => "1 request each".to_owned(),
            calls => format!("{calls} requests each"),
        }),
        lifetime.reconnect_every.map(|every| format!("renewed every {}", quantity::time(every.0))),
        lifetime.total.map(|total| format!("{total} in all")),
    ];
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    (!facts.is_empty()).then(|| format!("connections: {}", facts.join(", ")))
}

/// The servers, the protocol, the transport, and the keys and values.
fn target(summary: &Summary) -> Labelled {
    let plan = &summary.record.plan;
    let mut names: Vec<String> = plan
        .servers
        .iter()
        .map(|server| server.address.as_ref().map_or("reference server".to_owned(), ToString::to_string))
        .collect();
    names.dedup();
    let others = names.len().saturating_sub(SERVERS_MAX);
    names.truncate(SERVERS_MAX);
    if others > 0 {
        names.push(format!("{others} more"));
    }
    let transport = match plan.transport {
        Transport::Tcp => String::new(),
        other => format!(" over {other}"),
    };
    let of_cluster = if plan.is_cluster { ", cluster" } else { "" };
    let sockets = plan.sockets.to_string();
    let mut protocols: Vec<&str> = plan.classes.iter().map(|class| class.protocol.name()).collect();
    protocols.dedup();
    let protocols = protocols.join(" and ");
    let mut facts = vec![format!("{}, {protocols}{transport}{of_cluster}{sockets}", names.join(" "))];
    facts.extend(data(summary));
    ("target".to_owned(), facts)
}

/// Keys and values: `100k keys 30 B, values 200 B`.
fn data(summary: &Summary) -> Vec<String> {
    let plan = &summary.record.plan;
    let is_drawn = plan.classes.iter().any(|class| class.trace.is_none());
    if !is_drawn && !plan.preload {
        return Vec::new();
    }
    let mut facts = Vec::new();
    for set in plan.data_sets() {
        let keyspace = set.keyspace;
        let has_window = plan
            .classes
            .iter()
            .any(|class| class.keyspace == *keyspace && class.popularity.window().is_some());
        // Of windows their popularity says how many there are.
        let keys =
            if has_window { "keys".to_owned() } else { format!("{} keys", in_thousands(keyspace.keys)) };
        facts.push(format!("{keys} {}, values {}", size(&keyspace.key_size), size(&keyspace.value_size)));
        if keyspace.key_form != KeyForm::default() {
            facts.push(format!("key form {}", keyspace.key_form));
        }
        for class in plan.classes.iter().filter(|class| class.keyspace == *keyspace && class.trace.is_none())
        {
            let popularity = class.popularity.to_string();
            if popularity != "uniform" && !facts.contains(&popularity) {
                facts.push(popularity);
            }
        }
    }
    facts
}

/// A round number as it was typed: `100k`.
fn in_thousands(number: u64) -> String {
    match number {
        0 => "0".to_owned(),
        _ if number.is_multiple_of(1_000_000) => format!("{}M", number / 1_000_000),
        _ if number.is_multiple_of(1_000) => format!("{}k", number / 1_000),
        _ => number.to_string(),
    }
}

/// How long was measured, and what repeats it.
fn window(summary: &Summary) -> Vec<String> {
    let (window, record) = (&summary.window, &summary.record);
    let warmup_ns = window.measure_ns.saturating_sub(window.start_ns);
    let mut length = quantity::time(window.duration_ns());
    if warmup_ns > 0 {
        let end = record.run.warmup_end.map(|end| format!(", which {}", end.describe())).unwrap_or_default();
        length += &format!(" after {} warm-up{end}", quantity::time(warmup_ns));
    }
    let mut facts = vec![length];
    if record.run.interrupted {
        facts.push("interrupted".to_owned());
    }
    facts.extend(record.plan.stop.requests.map(|requests| format!("at most {requests} requests")));
    facts.extend(record.plan.stop.until.as_ref().map(|look| format!("until {}", look.until)));
    facts.extend(hosts(record));
    facts.push(format!("seed {}", record.plan.seed));
    facts.push(format!("brunt {}", record.environment.brunt_version));
    facts
}

/// The hosts that carried it out, where that was not this one alone, and how well the instant is known at which all began.
fn hosts(record: &RunRecord) -> Option<String> {
    /// Agents' clocks are compared much better; those of hosts without a controller are what their operator makes of them.
    const TOLD_NS: u64 = 1_000_000;
    let agents = &record.agents;
    let error_ns = agents.iter().map(|agent| agent.clock_error_ns).max()?;
    let mut text = quantity::things(agents.len() as u64, "agent");
    if let [AgentRecord { first_worker, workers, .. }] = agents[..]
        && workers < record.plan.threads
    {
        let last = first_worker.saturating_add(workers).saturating_sub(1);
        text = format!("a part: workers {first_worker} to {last} of {}", record.plan.threads);
    }
    if error_ns >= TOLD_NS {
        text += &format!(", clock known to {}", quantity::time(error_ns));
    }
    Some(text)
}

fn agent_facts(agent: &AgentRecord) -> Vec<String> {
    let AgentRecord {
        name, host, first_worker, workers, weight, clock_error_ns, lost, lost_after_ns, ..
    } = agent;
    let weighing = if *weight == 1 { String::new() } else { format!(", each of weight {weight}") };
    let mut facts = vec![
        format!("{} on {}", printable(name), printable(host)),
        format!("{} from number {first_worker}{weighing}", quantity::things(u64::from(*workers), "worker")),
        format!("clock known to {}", quantity::time(*clock_error_ns)),
    ];
    let when = match agent.lost_after_interruption {
        true => "the interruption".to_owned(),
        false => format!("{} of the schedule", quantity::time(lost_after_ns.unwrap_or(0))),
    };
    facts.extend(lost.as_ref().map(|why| format!("LOST after {when}: it {}", printable(why))));
    facts
}

/// What is sent, and where to.
fn operations(plan: &Plan, class: &Class) -> Vec<String> {
    let mut facts = vec![match &class.trace {
        Some(trace) => {
            let layout = trace.layout.map(|layout| format!(" ({layout})")).unwrap_or_default();
            printable(&format!("trace {}{layout}", trace.file))
        }
        None => plan.mix_text(class),
    }];
    if class.mix.contains(brunt_plan::op::OpKind::Mget) {
        facts.push(format!("{} keys per mget", class.multiget));
    }
    if class.replicas > 1 {
        facts.push(format!("changes to {} replicas", class.replicas));
    }
    facts.extend(destinations(plan, class));
    facts
}

/// Where its operations go, as far as that is not said of all classes.
fn destinations(plan: &Plan, class: &Class) -> Vec<String> {
    let owner = class.connections_of.as_ref().unwrap_or(&class.name);
    let Some(spec) = plan.spec.classes.iter().find(|spec| spec.name.as_ref() == Some(owner)) else {
        return Vec::new();
    };
    let routes = spec.route.as_deref().unwrap_or_default();
    let way = |place: usize, path: &Path| {
        let (what, servers) = match place.checked_sub(1).and_then(|place| routes.get(place)) {
            None if spec.server.is_none() && spec.protocol.is_none() && spec.transport.is_none() => {
                return None;
            }
            None => (class.protocol.name().to_owned(), &spec.server),
            Some(route) => {
                let ops: Vec<&str> = path.ops.iter().map(|kind| kind.name()).collect();
                (ops.join(" and "), &route.server)
            }
        };
        let servers = servers.as_ref().map_or(String::new(), |servers| format!(" to {servers}"));
        Some(printable(&format!("{what} over {}{servers}", path.transport)))
    };
    class.paths.iter().enumerate().filter_map(|(place, path)| way(place, path)).collect()
}

fn arrival_text(arrival: &Arrival) -> String {
    match arrival {
        Arrival::Parametric(_) | Arrival::Mcperf(_) => format!("gaps of {arrival}, scaled to the rate"),
        Arrival::Poisson | Arrival::Uniform | Arrival::Mmpp(_) => arrival.to_string(),
    }
}

/// What bursts do to counts, where there are bursts; it grows with the rate.
fn dispersion(arrival: &Arrival, rate: &OpenRate) -> Option<String> {
    let Arrival::Mmpp(mmpp) = arrival else { return None };
    let idc = quantity::significant(mmpp.idc(rate.highest()));
    Some(match rate {
        OpenRate::Constant(_) | OpenRate::PerConnection(_) => format!("index of dispersion {idc}"),
        OpenRate::Profile(_) | OpenRate::Recorded => format!("index of dispersion {idc} at the highest rate"),
    })
}

/// The rate as it was asked for, to the last digit.
fn rate_text(rate: Rate) -> String {
    if rate.micro_per_second.is_multiple_of(1_000_000) {
        format!("{}/s", rate.micro_per_second / 1_000_000)
    } else {
        rate.to_string()
    }
}

/// A size as it was asked for, to the last byte.
fn size(size: &SizeDistribution) -> String {
    match size {
        SizeDistribution::Fixed(bytes) => format!("{bytes} B"),
        SizeDistribution::Uniform { min, max } => format!("{min} to {max} B"),
        SizeDistribution::Parametric { distribution, min, max } => {
            format!("{distribution}, {min} to {max} B")
        }
        SizeDistribution::Mutilate { distribution, min, max } => {
            format!("{distribution} as mutilate has it, {min} to {max} B")
        }
        SizeDistribution::Mcperf(draw) => {
            format!("{draw}, {} to {} B", draw.size_min(), draw.size_max())
        }
        SizeDistribution::Ranges(ranges) => {
            let range =
                |range: &SizeRange| format!("{} to {} B ({} %)", range.min, range.max, range.share * 100.0);
            ranges.iter().map(range).collect::<Vec<_>>().join(", ")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brunt_plan::resolve::{Host, resolve};
    use brunt_plan::spec::PlanSpec;

    fn plan(toml: &str) -> Plan {
        let host = Host::of(vec![0, 1], 1);
        resolve(&PlanSpec::from_toml(toml).unwrap(), &host).unwrap()
    }

    #[test]
    fn arrivals_say_how_they_are_spaced() {
        for (toml, expected) in [
            ("rate = '200k'", vec!["200000/s poisson"]),
            // 1 + 2 · 1000/s · 0.1 s · 0.1 · 3².
            (
                "rate = '1k'\narrival = 'mmpp:4,100ms,0.1'",
                vec!["1000/s mmpp:4,100ms,0.1", "index of dispersion 181"],
            ),
            (
                "rate-profile = '0s=0,5s=1k'\narrival = 'mmpp:4,100ms,0.1'",
                vec!["rate 0s=0/s,5s=1000/s mmpp:4,100ms,0.1", "index of dispersion 181 at the highest rate"],
            ),
            ("call-rate = '1k'\ncall-arrival = 'poisson'", vec!["1000/s poisson on each connection"]),
            ("rate = 5\narrival = 'fb_ia'", vec!["5/s gaps of fb_ia, scaled to the rate"]),
        ] {
            let plan = plan(toml);
            let facts = load(&plan, &plan.classes[0], None);
            assert_eq!(facts[..expected.len()], expected);
        }
    }

    #[test]
    fn sizes_say_how_they_are_cut() {
        for (text, expected) in [
            ("4KiB", "4096 B"),
            ("uniform:10,1000", "10 to 1000 B"),
            ("fb_value", "fb_value, 0 to 1000000 B"),
            ("normal:200,50@1..64KiB", "normal:200,50, 1 to 65536 B"),
        ] {
            assert_eq!(size(&text.parse().unwrap()), expected);
        }
    }
}
