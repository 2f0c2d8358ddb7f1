//! What a cluster did beside answering, in a paragraph, and its nodes side by side.
//!
//! Not errors: errors that redirections ended in are counted among the other errors.

use crate::paragraph::{self, printable};
use crate::quantity;
use crate::server;
use crate::table::Table;
use brunt_stats::cluster::HOPS_MAX;
use brunt_stats::summary::Summary;

/// All slots of a cluster.
const SLOTS: u64 = 16_384;

pub(super) fn write(out: &mut String, summary: &Summary) {
    let Some(record) = &summary.record.run.cluster else { return };
    let counts = &summary.counts().redirections;
    let mut facts = vec![format!(
        "redirections: moved {}, ask {}, tryagain {}",
        counts.moved, counts.ask, counts.try_again
    )];
    if counts.operations > 0 {
        facts.push(format!(
            "{} redirected, {} at most",
            quantity::things(counts.operations, "request"),
            quantity::things(u64::from(counts.hops_max), "hop")
        ));
    }
    if counts.too_many > 0 {
        facts.push(format!("{} failed after {HOPS_MAX} hops: too many redirections", counts.too_many));
    }
    if counts.unknown > 0 {
        let node = counts.unknown_node.as_ref();
        let first = node.map_or(String::new(), |node| printable(&format!(" (first: {node})")));
        facts.push(format!(
            "{} failed, sent to nodes that were not known at the start{first}",
            counts.unknown
        ));
    }
    let slots =
        [("of nodes not known at the start", record.slots.elsewhere), ("unassigned", record.slots.unserved)];
    for (whose, number) in slots.into_iter().filter(|(_, number)| *number > 0) {
        facts.push(format!("{} {whose}", quantity::things(u64::from(number), "slot")));
    }
    if !record.is_final {
        facts.push("no node says who has which slot at the end".to_owned());
    }
    paragraph::facts(out, "cluster", &facts);
}

/// The nodes side by side: who has how much of the keys at the end, and sent how much elsewhere.
pub(super) fn nodes(out: &mut String, summary: &Summary) {
    let Some(record) = &summary.record.run.cluster else { return };
    let mut table = Table::new(&["node", "slots", "share", "redirected"]);
    for (index, slots) in record.slots.of_servers.iter().copied().map(u64::from).enumerate() {
        let redirected = summary.servers().get(index).map_or(0, |counts| counts.redirected);
        table.push(vec![
            printable(&server::name(summary, index)),
            slots.to_string(),
            quantity::share(slots, SLOTS),
            redirected.to_string(),
        ]);
    }
    paragraph::separate(out);
    table.write(out);
    out.push('\n');
}
