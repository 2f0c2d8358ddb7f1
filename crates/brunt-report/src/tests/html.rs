//! Pages of made-up runs: what is in them, that they are well-formed and whole, and that nothing hostile gets through.

use super::run::{self, Run, S, ordinary};
use super::{all_runs, json_text_of, output};
use crate::file_type::FileType;
use crate::html::Page;
use crate::html::chart::{Mark, Values};
use crate::html::over_time::Course;
use crate::live::State;
use crate::stored::StoredResult;
use crate::subject::Subject;
use brunt_plan::label::Label;
use brunt_stats::connection::FirstError;
use brunt_stats::live_run::RunSoFar;
use brunt_stats::server_stats::ServerRecord;
use brunt_stats::summary::Summary;
use brunt_stats::usage::ClientTime;

/// The longest page, whatever the run.
pub(super) const BYTES_MAX: usize = 250_000;
/// With rows as long as the user wants them.
const BYTES_MAX_OF_INTERVALS: usize = 2_000_000;

pub(super) fn page_of(run: &Run) -> String {
    output(|out| crate::html::write(&run.summary, out))
}

fn html_of(subject: &Subject<'_>) -> String {
    output(|out| subject.write(FileType::Html.into(), out))
}

/// The drawings of a page, each as the document that a browser sees.
pub(super) fn drawings(page: &str) -> Vec<roxmltree::Document<'_>> {
    let (mut drawings, mut start, mut depth) = (Vec::new(), 0, 0);
    for (at, _) in page.match_indices("svg") {
        if page[..at].ends_with("</") {
            depth -= 1;
            if depth == 0 {
                let text = &page[start..at + "svg>".len()];
                drawings
                    .push(roxmltree::Document::parse(text).unwrap_or_else(|error| panic!("{error}: {text}")));
            }
        } else if page[..at].ends_with('<') {
            if depth == 0 {
                start = at - 1;
            }
            depth += 1;
        }
    }
    assert_eq!(depth, 0, "a drawing that does not end");
    drawings
}

/// A page without these parts.
fn without(page: &str, parts: &[(&str, &str)]) -> String {
    let mut text = page.to_owned();
    for (open, close) in parts {
        while let Some(start) = text.find(open) {
            let end = start + text[start..].find(close).expect("it ends") + close.len();
            text.replace_range(start..end, "");
        }
    }
    text
}

const SCRIPT: (&str, &str) = ("<script", "</script>");

/// Has a page a number that is none? The packed result in its script may spell anything.
fn has_nan(page: &str) -> bool {
    without(page, &[SCRIPT]).contains("NaN")
}

/// What a page says without its drawings, style and script, a line for each of its own.
fn words(page: &str) -> String {
    let text = without(page, &[("<style", "</style>"), SCRIPT, ("<svg ", "</svg>")]);
    let mut words = String::new();
    for (index, piece) in text.split('<').enumerate() {
        let (tag, piece) = if index == 0 { ("", piece) } else { piece.split_once('>').expect("a tag ends") };
        if ["td", "th"].iter().any(|cell| tag.split(' ').next() == Some(cell)) {
            words.push_str(" | ");
        }
        words.push_str(piece);
    }
    let lines = words.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

/// The links of a page that lead to no part of it.
fn dead_links(page: &str) -> Vec<&str> {
    let links = page.split("<a href=\"#").skip(1).filter_map(|rest| rest.split('"').next());
    links.filter(|id| !page.contains(&format!("id=\"{id}\""))).collect()
}

fn ordinary_runs() -> [(&'static str, Run); 7] {
    [
        ("closed loop", ordinary::closed()),
        ("open loop", ordinary::open()),
        ("outage", ordinary::outage()),
        ("overload", ordinary::overload()),
        ("own commands", ordinary::commands()),
        ("cluster", ordinary::cluster()),
        ("many operations", ordinary::many()),
    ]
}

#[test]
fn pages_of_any_run_are_well_formed_and_load_nothing() {
    for (name, run) in all_runs().into_iter().chain(ordinary_runs()) {
        let page = page_of(&run);
        for drawing in drawings(&page) {
            let numbers = drawing.descendants().flat_map(|node| node.attributes().collect::<Vec<_>>());
            let odd: Vec<_> =
                numbers.filter(|held| held.value().contains("NaN") || held.value().contains("inf")).collect();
            assert!(odd.is_empty(), "{name}: {odd:?}");
        }
        let outside = page.split("<script>").next().unwrap();
        for address in ["http:", "https:", "src=", "url(//", "@import", "<link", "style="] {
            assert!(!outside.contains(address), "{name}: {address}");
        }
        assert_eq!(page.matches("<script").count(), 2, "{name}");
        assert_eq!(dead_links(&page), [""; 0], "{name}");
        assert!(page.len() <= BYTES_MAX, "{name}: {} bytes", page.len());
    }
}

/// What is drawn of this class.
fn of_class<'a>(
    drawings: &'a [roxmltree::Document<'a>],
    class: &str,
) -> impl Iterator<Item = roxmltree::Node<'a, 'a>> {
    let nodes = drawings.iter().flat_map(roxmltree::Document::descendants);
    nodes.filter(move |node| node.attribute("class") == Some(class))
}

/// Of this shape.
fn shapes(group: roxmltree::Node<'_, '_>, name: &str) -> usize {
    group.children().filter(|node| node.has_tag_name(name)).count()
}

/// The drawing that says this of itself.
fn strip<'a>(drawings: &'a [roxmltree::Document<'a>], label: &str) -> Option<&'a [roxmltree::Document<'a>]> {
    let is_it = |drawing: &roxmltree::Document<'_>| {
        drawing.root_element().attribute("aria-label").is_some_and(|held| held.starts_with(label))
    };
    drawings.iter().position(is_it).map(|at| &drawings[at..=at])
}

/// Fewer than a hundred requests are dots; the foot of printed pages has the seed.
#[test]
fn charts_suit_what_they_show() {
    let [few, open] = [ordinary::few(), ordinary::open()].map(|run| page_of(&run));
    let lines = |page| {
        let drawings = drawings(page);
        let group = of_class(&drawings, "service").find(|node| node.has_tag_name("g")).unwrap();
        shapes(group, "polyline")
    };
    assert_eq!([lines(&few), lines(&open)], [0, 1]);
    for (page, seed) in [(&few, 5), (&open, 2)] {
        let foot = page.split("@bottom-left{content:\"").nth(1).unwrap().split('"').next().unwrap();
        assert!(foot.ends_with(&format!(" · seed {seed}")), "{foot}");
    }
}

#[test]
fn pages_of_campaigns_and_comparisons_have_every_run() {
    let (campaigns, mut without_chart) = (super::campaign::all(), Vec::new());
    for (name, campaign) in &campaigns {
        let page = html_of(&Subject::Campaign(campaign));
        assert!(!has_nan(&page) && page.len() <= BYTES_MAX, "{name}");
        let links = page.matches("<a href=\"#run-").count();
        assert_eq!(links, campaign.runs.len(), "{name}");
        for run in 1..=links {
            assert_eq!(page.matches(&format!("<h3 id=\"run-{run}\">")).count(), 1, "{name}");
        }
        if !page.contains("<figure") {
            without_chart.push(*name);
        }
    }
    // One run of them counts.
    assert_eq!(without_chart, ["search_undecided", "search_below", "repeat_ended_after_one"]);
    insta::assert_snapshot!("page_of_a_scan", words(&html_of(&Subject::Campaign(&campaigns[0].1))));
    let comparisons = super::comparison::all();
    for (name, comparison) in &comparisons {
        let page = html_of(&Subject::Comparison(comparison));
        assert!(!has_nan(&page) && page.len() <= BYTES_MAX, "{name}");
        assert!(drawings(&page).iter().any(|drawing| drawing.input_text().contains("<g")), "{name}");
    }
    insta::assert_snapshot!("page_of_a_comparison", words(&html_of(&Subject::Comparison(&comparisons[0].1))));
}

#[test]
fn the_page_of_a_stored_result_is_that_of_the_run() {
    for (name, run) in ordinary_runs() {
        let again = StoredResult::parse(&json_text_of(&run), name).unwrap().summary().unwrap();
        let page = page_of(&run);
        assert!(page_of(&Run { summary: again, ..run }) == page, "{name}");
    }
}

/// The record of a server that is asked at such a distance for so many seconds, and is restarted half-way if it is.
fn asked_every(step_ns: u64, seconds: u64, is_restarted: bool) -> ServerRecord {
    let (start_ns, end_ns) = (99_000_000_000, (100 + seconds) * 1_000_000_000);
    let instants = (0..).map(|index| start_ns + index * step_ns).take_while(|at_ns| *at_ns < end_ns);
    let said = instants.map(|at_ns| {
        let is_after = is_restarted && at_ns > u64::midpoint(start_ns, end_ns);
        let (pid, count) = if is_after { (8, at_ns / 1_000_000 - start_ns / 2_000_000) } else { (7, at_ns / 1_000_000) };
        let hits = count * (80 + at_ns / step_ns % 7) / 100;
        (at_ns, format!("pid {pid} cmd_get {count} get_hits {hits} get_misses {} cmd_set 0 rusage_user {}.5 rusage_system 0", count - hits, count / 1_000))
    });
    run::server_record(&said.collect::<Vec<_>>())
}

#[test]
fn strips_of_servers_are_bounded_and_know_their_silences() {
    let long = run::long(900, "");
    // Of a long run few answers are kept, and their distance is no silence.
    for (step_ns, is_restarted, silences) in
        [(4_000_000_000, false, 0), (4_000_000_000, true, 1), (200_000_000, true, 1)]
    {
        let mut summary = run::long(900, "").summary;
        summary.record.run.server_records = vec![asked_every(step_ns, 900, is_restarted)];
        let page = html_of(&Subject::Run(&summary));
        assert!(page.len() <= BYTES_MAX, "{} bytes", page.len());
        let drawings = drawings(&page);
        let group = of_class(strip(&drawings, "server CPU").unwrap(), "result-0").next().unwrap();
        let counts = ["polygon", "polyline"].map(|name| shapes(group, name));
        assert_eq!(counts, [silences, silences + 1], "{step_ns} {is_restarted}");
        let points = group.children().filter_map(|node| node.attribute("points"));
        assert!(points.map(|points| points.split(' ').count()).sum::<usize>() <= 600);
    }
    assert!(page_of(&long).contains("No statistics of servers over time."));
}

/// Of a run without such times the page says so.
#[test]
fn strips_of_the_client_show_all_workers_the_worst_and_the_thresholds() {
    let run = ordinary::outage();
    let lines = |page: &str, label: &str| {
        let drawings = drawings(page);
        strip(&drawings, label).map(|strip| {
            ["client", "worst-worker", "threshold"]
                .map(|class| shapes(of_class(strip, class).next().unwrap(), "polyline"))
        })
    };
    let labels = ["Share of time in which workers were busy", "Share of time that others took"];
    let page = page_of(&run);
    let found = labels.map(|label| lines(&page, label));
    assert_eq!(found, [Some([1, 1, 1]), Some([1, 1, 0])]);
    let mut result: serde_json::Value = serde_json::from_str(&json_text_of(&run)).unwrap();
    let mut record = crate::json::unpacked(result["record"].as_str().unwrap()).unwrap();
    let slices = record["intervals"]["totals"]["timeline"]["slices"].as_array_mut().unwrap();
    let nothing = serde_json::to_value(ClientTime::default()).unwrap();
    slices.iter_mut().for_each(|slice| slice[1]["client"] = nothing.clone());
    result["record"] = crate::json::packed(&record).unwrap().into();
    let unobserved = StoredResult::parse(&result.to_string(), "unobserved").unwrap().summary().unwrap();
    let page = html_of(&Subject::Run(&unobserved));
    assert_eq!(labels.map(|label| lines(&page, label)), [None, None]);
    assert!(page.contains("How busy the client was over time is not in this result."));
    let row = |summary: &Summary| {
        let csv = output(|out| crate::csv::write(summary, out));
        let row = csv.lines().last().unwrap().split(',').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(csv.lines().next().unwrap().split(',').count(), row.len());
        row[row.len() - 5..].join(" ")
    };
    assert_eq!(row(&unobserved), "    ");
    assert_eq!(row(&run.summary), "0.461 0.521 0.001 0.002 0.000");
}

/// What fails most of all is as high as its share of the axis says.
#[test]
fn failed_bars_keep_their_proportion() {
    let failing = ordinary::failing();
    let course = Course::of(&failing.summary, 20).unwrap();
    let chart = course.rates();
    let Values::Number(most) = chart.y.0 else { panic!("{:?}", chart.y.0) };
    let marks = |class: &str| {
        let series = chart.series.iter().find(|series| series.class == class).unwrap();
        series.marks.clone()
    };
    let failed = marks("failed");
    assert_eq!(failed.len(), 30, "a bar for each column of 100 ms");
    for mark in failed {
        let Mark::Bar(_, _, per_second, _) = mark else { panic!("{mark:?}") };
        assert!((8_900.0..=9_100.0).contains(&per_second), "{per_second}");
        assert!(per_second < most, "{per_second} on an axis to {most}");
    }
}

/// A limit that came and went is marked, and is no point of the curve.
#[test]
fn curves_join_the_runs_that_met_no_limit_below_others() {
    let campaigns = super::campaign::all();
    for (name, joined, crossed) in [("scan_to_the_server", 8, 1), ("scan_spoiled_below", 0, 0)] {
        let campaign = &campaigns.iter().find(|(held, _)| *held == name).unwrap().1;
        let page = html_of(&Subject::Campaign(campaign));
        let drawings = drawings(&page);
        let group = |class: &str| of_class(&drawings, class).next().unwrap();
        let lines = group("p99").children().filter(|node| node.has_tag_name("polyline"));
        // Whiskers have two.
        let points = |line: roxmltree::Node<'_, '_>| line.attribute("points").unwrap().split(' ').count();
        let points = lines.map(points).filter(|count| *count > 2).sum::<usize>();
        let crosses = shapes(group("limit"), "polygon");
        assert_eq!((points, crosses), (joined, crossed), "{name}");
    }
}

#[test]
fn several_runs_lie_side_by_side() {
    let runs: Vec<(String, Summary)> =
        ordinary_runs().into_iter().map(|(name, run)| (name.to_owned(), run.summary)).collect();
    for count in [2, crate::html::RESULTS_MAX] {
        let page = html_of(&Subject::Runs(&runs[..count]));
        let drawings = drawings(&page);
        let group = |class: &str| of_class(&drawings, class).count();
        assert_eq!(group("heat"), count);
        assert!((0..count).all(|index| group(&format!("result-{index}")) == 2), "{count}");
        assert!(page.len() <= BYTES_MAX, "{count}: {} bytes", page.len());
    }
    // The one that has a distribution keeps its name.
    let one = [runs[0].clone(), ("without replies".to_owned(), run::empty().summary)];
    let page = html_of(&Subject::Runs(&one));
    let spectrum = page.split("id=\"spectrum\"").nth(1).unwrap().split("</section>").next().unwrap();
    let shown = words(spectrum);
    assert!(shown.lines().any(|line| line == one[0].0) && !shown.contains("service time"), "{shown}");
    let page = html_of(&Subject::Runs(&runs[..3]));
    insta::assert_snapshot!("page_of_several_runs", words(&page));
}

#[test]
fn charts_show_what_happened() {
    let marks = |run: &Run, class: &str, name: &str| {
        let page = page_of(run);
        of_class(&drawings(&page), class).map(|group| shapes(group, name)).sum::<usize>()
    };
    let outage = ordinary::outage();
    // In each of the five charts over time, of which two are of the client.
    assert_eq!(marks(&outage, "outage", "polygon"), 5 * outage.summary.outages.len());
    assert!(marks(&outage, "silent", "polygon") >= 3);
    assert_eq!(marks(&outage, "max", "path"), 1);
    // The edges of an outage lie above the heat map, and its area below.
    let page = page_of(&outage);
    let drawings = drawings(&page);
    let groups = drawings.iter().flat_map(roxmltree::Document::descendants);
    let classes: Vec<&str> = groups
        .filter(|node| node.children().any(|child| child.is_element()))
        .filter_map(|node| node.attribute("class"))
        .filter(|class| ["heat", "outage", "max"].contains(class))
        .collect();
    assert_eq!(classes[..4], ["outage", "heat", "max", "outage"]);
    let closed = ordinary::closed();
    for class in ["response", "service", "p50", "p99", "done"] {
        assert!(marks(&closed, class, "polyline") > 0, "{class}");
    }
    assert_eq!(marks(&closed, "offered", "polyline"), 0);
    assert!(marks(&ordinary::open(), "offered", "polyline") > 0);
}

#[test]
fn words_of_a_page() {
    insta::assert_snapshot!("page_of_an_outage", words(&page_of(&ordinary::outage())));
}

#[test]
fn what_users_and_servers_wrote_stays_text() {
    let hostile = "</script><img src=x onerror=\"alert(1)\">'&\u{1b}[2J";
    let mut run = ordinary::outage();
    let record = &mut run.summary.record;
    let label = Label { key: hostile.to_owned(), value: hostile.to_owned() };
    record.plan = record.plan.changed(|spec| spec.run.label = Some(vec![label])).unwrap();
    record.environment.facts.push((hostile.to_owned(), hostile.to_owned()));
    record.environment.host = hostile.to_owned();
    record.server = hostile.to_owned();
    record.run.counts.first_error = Some(FirstError::new(hostile.as_bytes()));
    let page = page_of(&run);
    assert!(!page.contains("<img"));
    assert!(!page.contains('\u{1b}'));
    // The two ends of our own.
    assert_eq!(page.matches("</script").count(), 2);
    assert!(page.matches("&lt;img src=x onerror=&quot;alert(1)&quot;&gt;").count() >= 6);
}

#[test]
fn pages_with_rows_of_intervals_are_bounded() {
    let run = run::long(900, "interval = '100ms'");
    let page = page_of(&run);
    assert!((BYTES_MAX..=BYTES_MAX_OF_INTERVALS).contains(&page.len()), "{} bytes", page.len());
}

/// The page of a run as it was at an instant.
fn live_page_of(run: &Run, at_ns: u64, server: Option<&str>) -> String {
    let mut record = run.summary.record.clone();
    let times = record.run.times;
    record.run.usage = Default::default();
    if let Some(server) = server {
        record.run.counts.first_error = Some(FirstError::new(server.as_bytes()));
    }
    let so_far = RunSoFar::new(record, Some(times), at_ns, Vec::new());
    output(|out| Page::live(State::Running(&so_far), "").write(out))
}

/// At any point of a run its page is whole and bounded, says how far it is, and has no status.
#[test]
fn pages_of_runs_that_go_on_are_whole() {
    let measured = all_runs().into_iter().filter(|(_, run)| run.summary.window.duration_ns() > 0);
    for (name, run) in measured.chain([("outage", ordinary::outage())]) {
        let window = run.summary.window;
        let warm_up_ns = window.start_ns.midpoint(window.measure_ns);
        let middle_ns = window.measure_ns.midpoint(window.end_ns);
        for (at_ns, phase) in [
            (window.start_ns / 2, ""),
            (warm_up_ns, "warmup, "),
            (middle_ns, "measure, "),
            (window.end_ns, "drain"),
        ] {
            let phase =
                if warm_up_ns == window.measure_ns && phase == "warmup, " { "measure, " } else { phase };
            let page = live_page_of(&run, at_ns, None);
            drawings(&page);
            assert_eq!(dead_links(&page), [""; 0], "{name} at {at_ns}");
            assert!(page.len() < BYTES_MAX, "{name}: {} bytes", page.len());
            assert!(page.contains(&format!("<h1>running: {phase}")), "{name} at {at_ns}: {phase}");
            assert!(
                page.contains("<header class=\"neutral\">") && !page.contains("id=\"accounting\""),
                "{name}"
            );
        }
        let page = live_page_of(&run, middle_ns, Some("</script><img src=x>"));
        assert!(!page.contains("<img"), "{name}");
    }
    let none = output(|out| Page::live(State::Starting, "").write(out));
    assert!(none.contains("<h1>no run has begun</h1>"));
}

/// Columns thin out, so that what is sent once a second does not grow with the run.
#[test]
fn what_is_sent_of_a_long_run_is_bounded() {
    let run = run::long(900, "");
    let page = live_page_of(&run, run.summary.window.end_ns - S, None);
    let sent = page.len() - page.find("<main>").unwrap();
    assert!(sent < 90_000, "{sent} bytes a second");
}
