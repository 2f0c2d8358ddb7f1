//! The head of the report: what was run, in two lines where a plan has one class.
//!
//! All of the plan is in `--details`. The first line names the model, because what a latency means depends on it.

use crate::details::header::{arrival_text, dispersion, end_with_agent, operations, rate_text, size};
use crate::page::Page;
use crate::quantity;
use brunt_plan::plan::{Class, Load, OpenRate, Plan, SessionScope, Transport};
use brunt_stats::summary::Summary;

/// Classes that have a line of their own.
const CLASSES_MAX: usize = 4;
/// Servers that are named.
const SERVERS_MAX: usize = 3;

/// Facts beside a label.
pub(crate) type Labelled = (String, Vec<String>);

pub(super) fn write(page: &mut Page<'_>, summary: &Summary) {
    for (label, facts) in lines(summary) {
        page.facts(&label, &facts);
    }
}

/// The lines by label.
pub(crate) fn lines(summary: &Summary) -> Vec<Labelled> {
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
                let others = format!("+{} more: --details", classes.len() - CLASSES_MAX);
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
        (None, SessionScope::Client { connections }) => {
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
        .servers()
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
    let mut facts =
        vec![format!("{}, {}{transport}{of_cluster}{sockets}", names.join(" "), plan.protocol.name())];
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
pub(crate) fn window(summary: &Summary) -> Vec<String> {
    let (window, record) = (&summary.window, &summary.record);
    let warmup_ns = window.measure_ns.saturating_sub(window.start_ns);
    let mut length = quantity::time(window.duration_ns());
    if warmup_ns > 0 {
        let end = record.run.warmup_end.map(|end| format!(", which {}", end.describe())).unwrap_or_default();
        length += &format!(" after {} warm-up{end}", quantity::time(warmup_ns));
    }
    let mut facts = vec![length];
    if record.run.interrupted {
        facts.push(end_with_agent(record).unwrap_or_else(|| "interrupted".to_owned()));
    }
    facts.extend(record.plan.stop.requests.map(|requests| format!("at most {requests} requests")));
    facts.extend(record.plan.stop.until.as_ref().map(|look| format!("until {}", look.until)));
    if !record.agents.is_empty() {
        facts.push(quantity::things(record.agents.len() as u64, "agent"));
    }
    facts.push(format!("seed {}", record.plan.seed));
    facts.push(format!("brunt {}", record.environment.brunt_version));
    facts
}
