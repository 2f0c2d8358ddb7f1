//! What services for continuous integration are given: a summary that each run is added to, and annotations beside the text.

use crate::server::{Directory, Server, ended};
use std::fs;

#[test]
fn summaries_are_added_and_annotations_printed() {
    let (server, directory) = (Server::reference(""), Directory::new());
    let (summary, json) = (directory.with("step.md", "# before\n"), directory.path("x.json"));
    let run = format!("run -s {server} -n 200 --keys 50 --warmup 0s --allow=BROKEN,LOAD,CLIENT,DATA");
    let shown = format!("-o {summary} --annotate github --assert 'hit < 50%' --assert 'hit > 1%'");
    let error = "::error title=brunt hit < 50%25::100 %25";
    let is_annotation = |line: &&str| line.starts_with("::");
    // Text and annotations go to standard error beside a document, and quietness leaves the annotations.
    for (options, has_stderr) in [(&*format!("-o {json}"), false), ("-o json:-", true), ("-q", false)] {
        let output = ended(&format!("{run} {shown} {options}"));
        assert_eq!(output.exit, 4);
        let (out, said) = (&output.out, &output.said);
        let (with, without) = if has_stderr { (said, out) } else { (out, said) };
        let found: Vec<&str> = with.lines().filter(is_annotation).collect();
        assert!(found[0].starts_with(error));
        assert!(found[1..].iter().all(|line| line.starts_with("::warning title=brunt ")));
        assert_eq!(without.lines().filter(is_annotation).count(), 0);
        assert_eq!(with.lines().count() == found.len(), options == "-q");
    }
    assert!(ended(&format!("report {json} -q --annotate github")).out.starts_with(error));
    let text = directory.text("step.md");
    assert!(text.starts_with("# before\n### "), "{text}");
    assert_eq!(text.matches("\n| hit &lt; 50% | 100 % | FAILS |\n").count(), 3, "{text}");
    assert_eq!(text.matches("</details>\n\n").count(), 3, "{text}");
}

#[test]
fn campaigns_and_comparisons_have_summaries() {
    let (server, directory) = (Server::reference(""), Directory::new());
    let path = |name: &str| directory.path(name);
    let load = "-n 200 --keys 50 --warmup 0s --allow=BROKEN,LOAD,CLIENT,DATA";
    let [a, b, summary, again] = ["a.json", "b.json", "step.md", "again.md"].map(path);
    for result in [&a, &b] {
        ended(&format!("run -s {server} -q -o {result} {load}")).is(0, &[]);
    }
    let repeated = format!("run -s {server} --repeat 2 -o {}", path("r.json"));
    let compared = format!("compare {a} {b} -o {}", path("c.json"));
    for (command, result) in [(format!("{repeated} {load}"), "r.json"), (compared, "c.json")] {
        ended(&format!("{command} -o {summary}")).is(0, &[]);
        ended(&format!("report {} -q -o {again}", path(result))).is(0, &[]);
        let text = fs::read_to_string(&summary).unwrap();
        assert!(text.starts_with("### ") && text.contains("\n| --- | ") && text.ends_with("\n\n"), "{text}");
        assert_eq!(fs::read_to_string(&again).unwrap(), text);
        [&summary, &again].iter().for_each(|path| fs::remove_file(path).unwrap());
    }
}
