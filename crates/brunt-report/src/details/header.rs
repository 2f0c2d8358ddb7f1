//! The head of the report: what was run, in the words of the plan, with what was found on the way.
//!
//! Not the plan itself (JSON embeds that). The first line names the model, because what a latency means depends on it.

use crate::paragraph::{self, printable};
use crate::quantity;
use brunt_plan::arrival::Arrival;
use brunt_plan::destination::Server;
use brunt_plan::plan::{
    Class, KeyForm, Keyspace, Load, OpRoute, OpenRate, Plan, Protocol, Transport, ValueForm,
};
use brunt_plan::server::ServerAddress;
use brunt_plan::size::{SizeDistribution, SizeRange};
use brunt_plan::units::Rate;
use brunt_stats::agent::AgentRecord;
use brunt_stats::run_record::RunRecord;
use brunt_stats::summary::Summary;

pub(super) fn write(out: &mut String, summary: &Summary) {
    let plan = &summary.record.plan;
    if let [class] = plan.classes.as_slice() {
        paragraph::facts(out, "", &load(plan, class));
    } else {
        out.push_str(&format!("{} classes side by side\n", plan.classes.len()));
        for class in &plan.classes {
            let mut facts = vec![class.name.clone()];
            facts.extend(load(plan, class));
            paragraph::facts(out, "class", &facts);
        }
    }
    let seeds = [format!("seed {}", plan.seed), format!("data seed {}", plan.data_seed)];
    write_without_load(out, summary, &seeds);
}

/// What is fixed beside the load: what runs of one campaign have in common, but for their seeds.
fn write_without_load(out: &mut String, summary: &Summary, seeds: &[String]) {
    let plan = &summary.record.plan;
    paragraph::facts(out, "window", &window(summary));
    // Beside a trace without preload no keys are stored or drawn.
    let is_used = |keyspace: &Keyspace| {
        plan.preload || plan.classes.iter().any(|class| class.trace.is_none() && class.keyspace == *keyspace)
    };
    for set in plan.data_sets().into_iter().filter(|set| is_used(set.keyspace)) {
        paragraph::facts(out, "data", &data(set.keyspace, &plan.classes));
    }
    let unverified = if plan.tls.is_insecure { ", certificates not verified" } else { "" };
    for (servers, protocol, transport) in ways(summary) {
        let wire = [
            printable(&servers),
            protocol.name().to_owned(),
            format!("{transport}{}{unverified}", plan.sockets),
        ];
        paragraph::facts(out, "server", &wire);
    }
    for agent in &summary.record.agents {
        paragraph::facts(out, "agent", &agent_facts(agent));
    }
    paragraph::facts(out, "seeds", seeds);
    let facts =
        summary.record.environment.facts.iter().map(|(name, fact)| printable(&format!("{name} {fact}")));
    let version = format!("brunt {}", summary.record.environment.brunt_version);
    paragraph::facts(out, "host", &std::iter::once(version).chain(facts).collect::<Vec<_>>());
}

/// The servers, by what is spoken to them and what carries it.
fn ways(summary: &Summary) -> Vec<(String, Protocol, Transport)> {
    let plan = &summary.record.plan;
    if !plan.has_destinations() {
        return vec![(summary.record.server.clone(), plan.protocol, plan.transport)];
    }
    let mut ways: Vec<(String, Protocol, Transport)> = Vec::new();
    for Server { address, protocol, transport } in plan.servers() {
        let name = address.map_or_else(|| summary.record.server.clone(), |address| address.to_string());
        match ways.iter_mut().find(|way| (way.1, way.2) == (protocol, transport)) {
            Some((names, ..)) => names.push_str(&format!(", {name}")),
            None => ways.push((name, protocol, transport)),
        }
    }
    ways
}

fn agent_facts(agent: &AgentRecord) -> Vec<String> {
    let AgentRecord { name, host, first_worker, workers, weight, clock_error_ns, lost, .. } = agent;
    let weighing = if *weight == 1 { String::new() } else { format!(", each of weight {weight}") };
    let mut facts = vec![
        format!("{} on {}", printable(name), printable(host)),
        format!("{} from number {first_worker}{weighing}", quantity::things(u64::from(*workers), "worker")),
        format!("clock known to {}", quantity::time(*clock_error_ns)),
    ];
    let consequence =
        if agent.lost_after_interruption { "after the interruption" } else { "which ended the run" };
    facts.extend(lost.as_ref().map(|why| format!("LOST: it {}, {consequence}", printable(why))));
    facts
}

/// The head of a campaign, from its first run: facts of the load without the option that it varies, and the lines below.
pub(crate) fn of_campaign(summary: &Summary, varied: Option<&str>) -> (Vec<String>, String) {
    let plan = &summary.record.plan;
    let facts = match plan.classes.as_slice() {
        [class] => {
            let model = match &class.load {
                Load::Open { arrival, .. } => vec!["open loop".to_owned(), arrival_text(arrival)],
                Load::Closed { .. } => vec!["closed loop".to_owned()],
            };
            let is_shape_varied = matches!(varied, Some("connections" | "depth"));
            model
                .into_iter()
                .chain(beside_model(plan, class).into_iter().skip(usize::from(is_shape_varied)))
                .collect()
        }
        classes => vec![format!("{} classes side by side", classes.len())],
    };
    let mut lines = String::new();
    let seeds = [format!("first seed {}", plan.seed), format!("data seed {}", plan.data_seed)];
    write_without_load(&mut lines, summary, &seeds);
    (facts, lines)
}

fn load(plan: &Plan, class: &Class) -> Vec<String> {
    let facts: Vec<String> = match &class.load {
        Load::Open { rate, arrival } => {
            let rate_fact = match rate {
                OpenRate::Constant(rate) => rate_text(*rate),
                OpenRate::Profile(profile) => format!("rate by profile {profile}"),
                OpenRate::PerConnection(rate) => format!("{} on each connection", rate_text(*rate)),
            };
            let facts = ["open loop".to_owned(), arrival_text(arrival), rate_fact];
            facts.into_iter().chain(dispersion(arrival, rate)).collect()
        }
        Load::Closed { think } => {
            let think = (think.0 > 0).then(|| format!("think time {}", quantity::time(think.0)));
            let model = "closed loop: latency at this concurrency".to_owned();
            std::iter::once(model).chain(think).collect()
        }
    };
    facts.into_iter().chain(beside_model(plan, class)).collect()
}

fn beside_model(plan: &Plan, class: &Class) -> Vec<String> {
    let connections = match &class.connections_of {
        Some(owner) => format!("the connections of {owner}"),
        None => quantity::things(u64::from(class.connections), "connection"),
    };
    [vec![format!("{connections} × depth {}", class.depth)], operations(plan, class)].concat()
}

/// What is sent, and where to.
pub(crate) fn operations(plan: &Plan, class: &Class) -> Vec<String> {
    let mut facts = vec![match &class.trace {
        Some(trace) => printable(&format!("trace {} ({})", trace.file, trace.layout)),
        None => plan.mix_text(class),
    }];
    if class.mix.contains(brunt_plan::op::OpKind::Mget) {
        facts.push(format!("{} keys per mget", class.multiget));
    }
    if class.replicas > 1 {
        facts.push(format!("changes to {} replicas", class.replicas));
    }
    facts.extend(destinations(class));
    facts
}

/// Where its operations go, as far as that is not said of all classes.
fn destinations(class: &Class) -> Vec<String> {
    let to = |servers: &[ServerAddress]| {
        let names: Vec<String> = servers.iter().map(ToString::to_string).collect();
        if names.is_empty() { String::new() } else { format!(" to {}", names.join(", ")) }
    };
    let own = class.own_destination.as_ref();
    let own =
        own.map(|own| printable(&format!("{} over {}{}", own.protocol, own.transport, to(&own.servers))));
    let route = |route: &OpRoute| {
        let ops: Vec<&str> = route.ops.iter().map(|kind| kind.name()).collect();
        printable(&format!("{} over {}{}", ops.join(" and "), route.transport, to(&route.servers)))
    };
    own.into_iter().chain(class.routes.iter().map(route)).collect()
}

pub(crate) fn arrival_text(arrival: &Arrival) -> String {
    match arrival {
        Arrival::Parametric(_) | Arrival::Mcperf(_) => format!("gaps of {arrival}, scaled to the rate"),
        Arrival::Poisson | Arrival::Uniform | Arrival::Mmpp(_) => arrival.to_string(),
    }
}

/// What bursts do to counts, where there are bursts; it grows with the rate.
pub(crate) fn dispersion(arrival: &Arrival, rate: &OpenRate) -> Option<String> {
    let Arrival::Mmpp(mmpp) = arrival else { return None };
    let idc = quantity::significant(mmpp.idc(rate.highest()));
    Some(match rate {
        OpenRate::Constant(_) | OpenRate::PerConnection(_) => format!("index of dispersion {idc}"),
        OpenRate::Profile(_) => format!("index of dispersion {idc} at the highest rate"),
    })
}

/// The rate as it was asked for, to the last digit.
pub(crate) fn rate_text(rate: Rate) -> String {
    if rate.micro_per_second.is_multiple_of(1_000_000) {
        format!("{}/s", rate.micro_per_second / 1_000_000)
    } else {
        rate.to_string()
    }
}

fn window(summary: &Summary) -> Vec<String> {
    let window = &summary.window;
    let warmup_ns = window.measure_ns.saturating_sub(window.start_ns);
    let mut facts = vec![format!("{} measured", quantity::time(window.duration_ns()))];
    if warmup_ns > 0 {
        let end = summary
            .record
            .run
            .warmup_end
            .map(|end| format!(", which {}", end.describe()))
            .unwrap_or_default();
        facts.push(format!("warm-up {} before it{end}", quantity::time(warmup_ns)));
    }
    if let Some(requests) = summary.record.plan.stop.requests {
        facts.push(format!("at most {requests} requests"));
    }
    if let Some(look) = &summary.record.plan.stop.until {
        facts.push(format!("until {}", look.until));
    }
    if let (Some(_), Some(max_time)) = (&summary.record.plan.stop.until, summary.record.plan.stop.time) {
        facts.push(format!("at most {}", quantity::time(max_time.0)));
    }
    if summary.record.run.interrupted {
        let interrupted = || "interrupted: the schedule was cut short".to_owned();
        facts.push(end_with_agent(&summary.record).unwrap_or_else(interrupted));
    }
    facts
}

/// Of a run that an agent ended by its loss: that it did.
pub(crate) fn end_with_agent(record: &RunRecord) -> Option<String> {
    let lost = record.agents.iter().find(|agent| agent.lost.is_some() && !agent.lost_after_interruption)?;
    Some(format!("ended when agent {} was lost", printable(&lost.name)))
}

fn data(keyspace: &Keyspace, classes: &[Class]) -> Vec<String> {
    let mut facts = vec![
        // Of windows their popularity says how many there are.
        match classes.iter().any(|class| class.keyspace == *keyspace && class.popularity.window().is_some()) {
            true => format!("keys of {}", size(&keyspace.key_size)),
            false => format!("{} of {}", quantity::things(keyspace.keys, "key"), size(&keyspace.key_size)),
        },
        format!("values of {}", size(&keyspace.value_size)),
    ];
    if !keyspace.prefix.is_empty() {
        facts.push(format!("prefix {}", printable(&keyspace.prefix)));
    }
    if keyspace.key_form != KeyForm::default() {
        facts.push(format!("key form {}", keyspace.key_form));
    }
    if keyspace.first_key > 0 {
        facts.push(format!("first key {}", keyspace.first_key));
    }
    if keyspace.value_form != ValueForm::default() {
        facts.push(format!("value form {}", keyspace.value_form));
    }
    // Classes that share a data set may each ask for its keys in their own way.
    for class in classes.iter().filter(|class| class.keyspace == *keyspace && class.trace.is_none()) {
        let fact = format!("popularity {}", class.popularity);
        if !facts.contains(&fact) {
            facts.push(fact);
        }
    }
    facts
}

/// A size as it was asked for, to the last byte.
pub(crate) fn size(size: &SizeDistribution) -> String {
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
        let host = Host { allowed_cpus: vec![0, 1], random_seed: 1 };
        resolve(&PlanSpec::from_toml(toml).unwrap(), &host).unwrap()
    }

    #[test]
    fn arrivals_say_how_they_are_spaced() {
        for (toml, expected) in [
            ("rate = '200k'", vec!["open loop", "poisson", "200000/s"]),
            // 1 + 2 · 1000/s · 0.1 s · 0.1 · 3².
            (
                "rate = '1k'\narrival = 'mmpp:4,100ms,0.1'",
                vec!["open loop", "mmpp:4,100ms,0.1", "1000/s", "index of dispersion 181"],
            ),
            (
                "rate-profile = '0s=0,5s=1k'\narrival = 'mmpp:4,100ms,0.1'",
                vec![
                    "open loop",
                    "mmpp:4,100ms,0.1",
                    "rate by profile 0s=0/s,5s=1000/s",
                    "index of dispersion 181 at the highest rate",
                ],
            ),
            (
                "call-rate = '1k'\ncall-arrival = 'poisson'",
                vec!["open loop", "poisson", "1000/s on each connection"],
            ),
            ("rate = 5\narrival = 'fb_ia'", vec!["open loop", "gaps of fb_ia, scaled to the rate", "5/s"]),
        ] {
            let plan = plan(toml);
            let facts = load(&plan, &plan.classes[0]);
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
