//! Hosts side by side: rows of a run that was merged from its parts, and parts that are not of one run.

use super::run::{self, Run};
use super::text::{PIPE, report_of, text_of};
use super::{json_text_of, output};
use crate::document::Level;
use crate::html;
use crate::stored::StoredResult;
use brunt_stats::check::CheckId;
use brunt_stats::summary::Summary;

fn merged(parts: &[Run]) -> Result<Summary, String> {
    let stored = |part| StoredResult::parse(&json_text_of(part), "part").unwrap();
    StoredResult::merged(&parts.iter().map(stored).collect::<Vec<_>>())
}

/// Of each host what it recorded itself; the one whose responses take longer is the worst, and the report says so.
#[test]
fn hosts_of_parts_are_rows() {
    let summary = merged(&[run::part(0, 0, None), run::part(1, 900_000, None)]).unwrap();
    let rows: Vec<_> = summary.hosts().into_iter().map(|row| (&row.agent.name[..], row.requests)).collect();
    // Responses of 100 us and 1 ms, that become 25 ns longer with each request; a bucket is a hundredth wide.
    for ((name, requests), (expected, least_ns)) in
        rows.into_iter().zip([("rank 1", 1_000_000), ("rank 0", 100_000)])
    {
        assert_eq!((name, requests.completed, requests.failed), (expected, 1_000, 0));
        for (found, place) in [(requests.p50_ns, 500), (requests.p99_ns, 990), (requests.max_ns, 999)] {
            let exact = (least_ns + 2 * place * 25) as f64;
            assert!((found.unwrap() as f64 / exact - 1.0).abs() < 0.01, "{name}: {found:?} is not {exact}");
        }
    }
    let text = report_of(&summary, &PIPE, Level::Long);
    let (_, part) = text.split_once("== hosts\n").unwrap();
    assert_eq!(
        part.lines().take(3).collect::<Vec<_>>(),
        [
            "host, ms          done  failed    p50    p99  clock  busy%  checks",
            "rank_1            1000       0  1.025  1.050   20.0      2  -",
            "rank_0            1000       0  0.125  0.150   20.0      2  -",
        ]
    );
    assert!(
        text_of(&summary, &PIPE)
            .contains("hosts         rank 1 is the worst of 2 · p99 1.05 ms, of the median host 150 us")
    );
    let page = output(|out| html::write(&summary, out));
    let (_, section) = page.split_once("<section id=\"hosts\"").unwrap();
    let (section, _) = section.split_once("</section>").unwrap();
    assert_eq!(
        (section.matches("<th scope=row>").count(), section.matches("<svg").count()),
        (2, 2),
        "{section}"
    );
    // One host has nothing to be compared with.
    let alone = run::part(0, 0, None).summary;
    let texts = [report_of(&alone, &PIPE, Level::Long), output(|out| html::write(&alone, out))];
    assert!(texts.iter().all(|text| !text.contains("the worst of") && !text.contains("id=\"hosts\"")));
}

/// A host that is lost is worse than one that is slow, and one whose requests fail.
#[test]
fn hosts_are_ordered_by_their_checks() {
    let mut record = merged(&[run::part(0, 0, None), run::part(1, 900_000, None)]).unwrap().record;
    let requests = record.agents[0].requests.unwrap();
    let mut add = |name: &str, failed, lost: Option<&str>| {
        let mut agent = record.agents[0].clone();
        (agent.name, agent.first_worker) =
            (name.to_owned(), record.plan.threads + record.agents.len() as u32);
        agent.requests = Some(brunt_stats::agent_requests::AgentRequests { failed, ..requests });
        agent.lost = lost.map(str::to_owned);
        record.agents.push(agent);
    };
    add("fails", 11, None);
    add("holds", 10, None);
    add("lost", 0, Some("closed the connection"));
    let summary = Summary::build(record);
    let found: Vec<_> = summary.hosts().into_iter().map(|row| (row.agent.name.clone(), row.checks)).collect();
    let expected = [
        ("lost", vec![CheckId::Broken]),
        ("fails", vec![CheckId::Data]),
        ("rank 1", vec![]),
        ("rank 0", vec![]),
        ("holds", vec![]),
    ];
    assert_eq!(found, expected.map(|(name, checks)| (name.to_owned(), checks)));
}

/// Microseconds by which the second part began later, whether both were told their starts → are they of one run? Clocks are known to 20 ms
/// each, and are read 100 ms before or after.
#[test]
fn parts_of_another_start_are_refused() {
    const TOLD_US: u64 = 1_795_132_800_000_000;
    let table = [
        (true, 0, Ok(())),
        (true, 1, Err("they began 1.00 us apart")),
        (false, 140_000, Ok(())),
        (false, 141_000, Err("they began 141 ms apart, and their clocks agree to 140 ms")),
        (false, 600_000_000, Err("they began 600 s apart, and their clocks agree to 140 ms")),
    ];
    for (is_told, later_us, expected) in table {
        let told = |start_us| is_told.then_some(start_us);
        let (one, mut other) = (run::part(0, 0, told(TOLD_US)), run::part(1, 0, told(TOLD_US + later_us)));
        if !is_told {
            let times = &mut other.summary.record.run.times;
            times.epoch_us = times.epoch_us.map(|epoch_us| epoch_us + later_us);
        }
        let found = merged(&[one, other]).map(drop);
        let expected = expected.map_err(|why| {
            format!("part and part are no parts of one run: {why}; accepted: parts with one start")
        });
        assert_eq!(found, expected, "{is_told} {later_us}");
    }
}
