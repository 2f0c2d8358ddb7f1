//! What services for continuous integration show: the summary as Markdown, read by a reader that is not ours, and annotations.

use super::{all_runs, asserted, campaign, comparison, output};
use crate::annotations;
use crate::file_type::FileType;
use crate::markdown::{BYTES_MAX, escaped, fenced};
use crate::subject::Subject;
use brunt_plan::label::Label;
use brunt_stats::summary::Summary;
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

fn markdown_of(summary: &Summary) -> String {
    output(|out| Subject::Run(summary).write(FileType::Markdown.into(), out))
}

fn annotations_of(summary: &Summary) -> String {
    output(|out| Subject::Run(summary).write_annotations(out))
}

fn events(text: &str) -> impl Iterator<Item = Event<'_>> {
    Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH)
}

/// The heading, the cells of each row of each table, and the blocks of code with their language.
#[derive(Debug, Default)]
struct Document {
    headings: Vec<String>,
    tables: Vec<Vec<Vec<String>>>,
    code: Vec<(String, String)>,
}

fn read(text: &str) -> Document {
    let mut document = Document::default();
    let mut held = String::new();
    for event in events(text) {
        match event {
            Event::Start(Tag::Table(_)) => document.tables.push(Vec::new()),
            Event::Start(Tag::TableHead | Tag::TableRow) => {
                document.tables.last_mut().unwrap().push(Vec::new());
            }
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) => {
                document.code.push((language.to_string(), String::new()));
                held.clear();
            }
            Event::Start(_) => held.clear(),
            Event::Text(text) => held += &text,
            Event::End(TagEnd::Heading(_)) => document.headings.push(held.clone()),
            Event::End(TagEnd::TableCell) => {
                document.tables.last_mut().unwrap().last_mut().unwrap().push(held.clone());
            }
            Event::End(TagEnd::CodeBlock) => document.code.last_mut().unwrap().1 = held.clone(),
            _ => {}
        }
    }
    document
}

#[test]
fn summaries_and_annotations_of_runs() {
    for (name, run) in ["open_loop", "overload"].into_iter().zip(asserted()) {
        insta::assert_snapshot!(format!("markdown_{name}"), markdown_of(&run.summary));
        insta::assert_snapshot!(format!("annotations_{name}"), annotations_of(&run.summary));
    }
}

#[test]
fn a_reader_of_markdown_finds_status_tables_and_plan() {
    for run in asserted().into_iter().chain(all_runs().map(|(_, run)| run)) {
        let Summary { assertions, record, .. } = &run.summary;
        let text = markdown_of(&run.summary);
        let Document { headings, tables, code } = read(&text);
        assert_eq!(headings, [format!("{}.", run.summary.status.headline())]);
        assert!((2..=8).contains(&tables[0].len()), "{text}");
        for table in &tables {
            assert!(table.iter().all(|row| row.len() == table[0].len()), "{table:?}");
        }
        let asserted = assertions.iter().map(|held| held.objective.to_string());
        let of_assertions = tables.iter().filter(|table| table[0][0] == "assertion");
        let mut found: Vec<&String> = of_assertions.flatten().map(|row| &row[0]).skip(1).collect();
        let mut asserted: Vec<String> = asserted.collect();
        found.sort();
        asserted.sort();
        assert_eq!(found, asserted.iter().collect::<Vec<_>>());
        let [(language, plan)] = &code[..] else { panic!("{code:?}") };
        let again = brunt_plan::spec::PlanSpec::from_toml(plan).unwrap();
        assert_eq!((language.as_str(), again), ("toml", record.plan.spec.clone()));
    }
}

#[test]
fn campaigns_and_comparisons_are_their_report() {
    for (name, campaign) in campaign::all() {
        let Document { headings, tables, .. } =
            read(&output(|out| Subject::Campaign(&campaign).write(FileType::Markdown.into(), out)));
        assert_eq!(headings, [format!("{}.", campaign.status.headline())], "{name}");
        let asserted = usize::from(!campaign.assertions.is_empty());
        assert!(tables[0].len() > 1 && tables.len() == 1 + asserted, "{name}: {tables:?}");
    }
    for (name, comparison) in comparison::all() {
        let text = output(|out| Subject::Comparison(&comparison).write(FileType::Markdown.into(), out));
        let Document { headings, tables, .. } = read(&text);
        assert_eq!(headings, [crate::comparison::document::answer(&comparison).join(" · ")], "{name}");
        let asserted = usize::from(!comparison.asserted.is_empty());
        assert!(tables[0][0][0] == "quantity" && tables.len() == 1 + asserted, "{name}: {tables:?}");
    }
}

/// What servers and users write comes out as it was, in a cell as in a paragraph, and in code.
#[test]
fn texts_stay_texts() {
    for text in [
        "a|b",
        "a\\|b",
        "<img src=x onerror=alert(1)>",
        "<!-- x",
        "&lt; &amp; &#60;",
        "**a** _b_ ~~c~~ `d` ``e``",
        "[a](http://example) ![b](c) [d]: e",
        "# a",
        "a <- b -> c >d",
        "\\",
        "``` x",
        "- a",
        "1. a",
        "ERR unknown command 'x', with args beginning with: 'y'",
    ] {
        let shown = |markdown: &str| {
            let text = events(markdown).map(|event| match event {
                Event::Text(text) => text.to_string(),
                Event::Code(_) | Event::Html(_) | Event::InlineHtml(_) => panic!("{markdown}: {event:?}"),
                Event::Start(Tag::Emphasis | Tag::Strong | Tag::Link { .. } | Tag::Strikethrough) => {
                    panic!("{markdown}: {event:?}")
                }
                _ => String::new(),
            });
            text.collect::<String>()
        };
        assert_eq!(shown(&format!("### {}\n", escaped(&format!("x {text}")))), format!("x {text}"));
        assert_eq!(shown(&format!("| h |\n| --- |\n| {} |\n", escaped(text))), format!("h{text}"));
        let code = read(&fenced("toml", &format!("a\n{text}\n```` b"))).code;
        assert_eq!(code, [("toml".to_owned(), format!("a\n{text}\n```` b\n"))]);
    }
    assert_eq!(escaped("a\nb\tc\x1b[31m"), "a b c \\[31m");
}

/// A step loses everything beyond 1 MiB, and has several of these.
#[test]
fn a_summary_is_never_long() {
    let [mut run, _] = asserted();
    run.summary.assertions = vec![run.summary.assertions[0].clone(); 1_000];
    let plan = &mut run.summary.record.plan;
    let labels = vec![Label { key: "k".repeat(20), value: "v".repeat(100) }; 1_000];
    *plan = plan.changed(|spec| spec.run.label = Some(labels)).unwrap();
    let text = markdown_of(&run.summary);
    assert!(text.len() < BYTES_MAX, "{}", text.len());
    assert!(text.contains("The plan is too long") && text.contains("\n+950 more\n"), "{text}");
}

/// Errors are the assertions that do not hold; of each level there are fewer than the service shows, and each is a line.
#[test]
fn annotations_are_few_lines() {
    let [_, mut run] = asserted();
    let unmet =
        run.summary.assertions.iter().filter(|held| held.decision != brunt_stats::bound::Decision::Holds);
    let mut unmet: Vec<_> = unmet.cloned().collect();
    unmet.resize(20, unmet[0].clone());
    run.summary.assertions = unmet;
    let text = annotations_of(&run.summary);
    let errors: Vec<&str> = text.lines().filter(|line| line.starts_with("::error title=brunt ")).collect();
    assert_eq!(errors.len(), 8, "{text}");
    assert!(errors[7].starts_with("::error title=brunt +13 more::"), "{text}");
    assert!(
        text.lines().all(|line| line.starts_with("::error title=") || line.starts_with("::warning title="))
    );
}

#[test]
fn what_a_runner_would_read_is_escaped() {
    let held = annotations::annotation("a: b, c%\n::error::x".to_owned(), "100 %: a, b\r\n::stop".to_owned());
    let written = output(|out| annotations::write_all("warning", vec![held], out));
    let expected = "::warning title=brunt a%3A b%2C c%25%0A%3A%3Aerror%3A%3Ax::100 %25: a, b%0D%0A::stop\n";
    assert_eq!(written, expected);
}

#[test]
fn annotations_of_campaigns_and_comparisons() {
    let (campaigns, comparisons) = (campaign::all(), comparison::all());
    let campaigns = campaigns.iter().map(|(name, held)| (name, Subject::Campaign(held)));
    let all = campaigns.chain(comparisons.iter().map(|(name, held)| (name, Subject::Comparison(held))));
    let all = all.map(|(name, subject)| format!("{name}\n{}", output(|out| subject.write_annotations(out))));
    let all: Vec<String> = all.collect();
    insta::assert_snapshot!(all.join("\n"));
}
