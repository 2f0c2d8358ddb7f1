//! What services for continuous integration are given: a summary that each run is added to, and annotations beside the text.

use crate::server::{Directory, Server, beside_others, brunt};
use std::fs;
use std::process::Output;

fn texts(output: &Output) -> [String; 2] {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}

#[test]
fn summaries_are_added_and_annotations_printed() {
    let _beside = beside_others();
    let (server, directory) = (Server::reference(&[]), Directory::new());
    let [summary, json] = ["step.md", "x.json"].map(|name| directory.join(name).to_str().unwrap().to_owned());
    fs::write(&summary, "# before\n").unwrap();
    let run = [
        "run",
        "-s",
        &server.address,
        "-n",
        "200",
        "--keys",
        "50",
        "--warmup",
        "0s",
        "--allow=BROKEN,LOAD,CLIENT,DATA",
    ];
    let shown = ["-o", &summary, "--annotate", "github", "--assert", "hit < 50%", "--assert", "hit > 1%"];
    let error = "::error title=brunt hit < 50%25::100 %25";
    let is_annotation = |line: &&str| line.starts_with("::");
    // Text and annotations go to standard error beside a document, and quietness leaves the annotations.
    for (options, has_stderr) in
        [(&["-o", json.as_str()][..], false), (&["-o", "json:-"], true), (&["-q"], false)]
    {
        let output = brunt(&run).args(shown).args(options).output().unwrap();
        let [out, said] = texts(&output);
        assert_eq!(output.status.code(), Some(4), "{said}");
        let (with, without) = if has_stderr { (&said, &out) } else { (&out, &said) };
        let found: Vec<&str> = with.lines().filter(is_annotation).collect();
        assert!(found[0].starts_with(error), "{with}");
        assert!(found[1..].iter().all(|line| line.starts_with("::warning title=brunt ")), "{with}");
        assert_eq!(without.lines().filter(is_annotation).count(), 0, "{without}");
        assert_eq!(with.lines().count() == found.len(), options == ["-q"], "{with}");
    }
    let again = brunt(&["report", &json, "-q", "--annotate", "github"]).output().unwrap();
    assert!(texts(&again)[0].starts_with(error), "{again:?}");
    let text = fs::read_to_string(&summary).unwrap();
    assert!(text.starts_with("# before\n### "), "{text}");
    assert_eq!(text.matches("\n| hit &lt; 50% | 100 % | FAILS |\n").count(), 3, "{text}");
    assert_eq!(text.matches("</details>\n\n").count(), 3, "{text}");
}

#[test]
fn campaigns_and_comparisons_have_summaries() {
    let _beside = beside_others();
    let (server, directory) = (Server::reference(&[]), Directory::new());
    let path = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    let load = ["-n", "200", "--keys", "50", "--warmup", "0s", "--allow=BROKEN,LOAD,CLIENT,DATA"];
    let [a, b, summary, again] = ["a.json", "b.json", "step.md", "again.md"].map(path);
    for result in [&a, &b] {
        let run = ["run", "-s", &server.address, "-q", "-o", result];
        assert_eq!(brunt(&run).args(load).status().unwrap().code(), Some(0));
    }
    let repeated = ["run", "-s", &server.address, "--repeat", "2", "-o", &path("r.json")];
    let compared = ["compare", &a, &b, "-o", &path("c.json")];
    let table: [(Vec<&str>, &str); 2] =
        [([&repeated[..], &load].concat(), "r.json"), (compared.to_vec(), "c.json")];
    for (command, result) in table {
        let output = brunt(&command).args(["-o", &summary]).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let report = ["report", &path(result), "-q", "-o", &again];
        assert_eq!(brunt(&report).status().unwrap().code(), Some(0));
        let text = fs::read_to_string(&summary).unwrap();
        assert!(text.starts_with("### ") && text.contains("\n| --- | ") && text.ends_with("\n\n"), "{text}");
        assert_eq!(fs::read_to_string(&again).unwrap(), text);
        [&summary, &again].iter().for_each(|path| fs::remove_file(path).unwrap());
    }
}
