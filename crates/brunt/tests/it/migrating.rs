//! README.md and docs/migrating.md: their command lines run. The options in the tables of docs/migrating.md are accepted, and agree with
//! what brunt answers to those of other tools.
//!
//! Runs are shortened, and go to a reference server. Not about the words of those answers (`foreign.rs`).

use crate::foreign::words;
use crate::server::{Server, beside_others, own_directory, plain};
use std::path::Path;

const DOCUMENT: &str = include_str!("../../../../docs/migrating.md");

const README: &str = include_str!("../../../../README.md");

/// Command lines in the blocks of a document that are marked `sh`, without the program's name.
fn command_lines(document: &'static str) -> impl Iterator<Item = &'static str> {
    let blocks = document.split("```sh\n").skip(1).map(|behind| behind.split("```").next().unwrap());
    let arguments =
        |line: &'static str| line.strip_prefix("brunt ").or(line.strip_prefix("cargo run --release -- "));
    blocks.flat_map(str::lines).map(move |line| arguments(line).expect(line))
}

/// The value of an option in a run that is to be short.
fn shortened(option: &str, value: &str, server: &str) -> String {
    let count = |most: u64| value.parse::<u64>().unwrap().min(most).to_string();
    match option {
        "--server" | "-s" => match value.split_once("://") {
            Some((scheme, _)) => format!("{scheme}://{server}"),
            None => server.to_owned(),
        },
        "--time" | "-t" => "200ms".to_owned(),
        "--warmup" => "0s".to_owned(),
        "--interval" => "100ms".to_owned(),
        "--threads" => "1".to_owned(),
        "--keys" | "--requests" => count(1_000),
        "--connections" => count(20),
        "--rate" | "-r" => "1k".to_owned(),
        _ => value.to_owned(),
    }
}

/// Runs one line, shortened; its exit code and standard error.
fn run(line: &str, server: &str, directory: &Path) -> (i32, String) {
    let mut short: Vec<String> = Vec::new();
    for word in words(line) {
        let word = short.last().map_or_else(|| word.clone(), |option| shortened(option, &word, server));
        short.push(word);
    }
    for (names, value) in [(["--time", "-t"], "200ms"), (["--warmup", "--warmup"], "0s")] {
        if !short.iter().any(|word| names.contains(&word.as_str())) {
            short.extend([names[0].to_owned(), value.to_owned()]);
        }
    }
    short.extend(["--no-progress", "--allow=BROKEN,LOAD,CLIENT,DATA"].map(str::to_owned));
    let short: Vec<&str> = short.iter().map(String::as_str).collect();
    let output = plain(&short).current_dir(directory).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn command_lines_of_documents_run() {
    let _beside = beside_others();
    let (server, directory) = (Server::reference(&[]), own_directory());
    let lines: Vec<&str> = [README, DOCUMENT].into_iter().flat_map(command_lines).collect();
    assert!(lines.len() >= 15);
    for line in lines {
        let (exit, message) = run(line, &server.address, &directory);
        // On a busy host no rate may meet the objective of a search, or none is decided.
        let accepted: &[i32] = if line.starts_with("search") { &[0, 3, 4] } else { &[0] };
        assert!(accepted.contains(&exit), "{line}: {exit} {message}");
    }
    std::fs::remove_dir_all(&directory).unwrap();
}

/// A row of a table: the tool of its heading, the options there, and those here.
struct Row {
    tool: &'static str,
    theirs: &'static str,
    ours: &'static str,
}

fn rows() -> Vec<Row> {
    let mut tool = "";
    let mut rows = Vec::new();
    for line in DOCUMENT.lines() {
        tool = line.strip_prefix("## ").unwrap_or(tool);
        let mut cells = line.trim_matches('|').split('|').map(str::trim);
        if let (true, Some(theirs), Some(ours)) = (line.starts_with("| `"), cells.next(), cells.next()) {
            rows.push(Row { tool, theirs, ours });
        }
    }
    rows
}

/// What a cell has in backquotes, where that is all it has.
fn code(cell: &str) -> Option<&str> {
    cell.strip_prefix('`')?.strip_suffix('`').filter(|code| !code.contains('`'))
}

#[test]
fn options_in_the_tables_are_accepted() {
    let _beside = beside_others();
    let directory = own_directory();
    std::fs::write(directory.join("redis.pw"), "x\n").unwrap();
    for row in rows().iter().filter(|row| !row.ours.is_empty()) {
        let ours = code(row.ours).unwrap_or_else(|| panic!("{}: no options alone", row.ours));
        let mut line = words(&format!("run {ours} --print-plan"));
        if !ours.contains("--server") {
            let server = match (ours.contains("--tls-"), ours.contains("--protocol")) {
                (true, _) => "rediss://h",
                (false, true) => "h",
                (false, false) => "redis://h",
            };
            line.extend(["--server", server].map(str::to_owned));
        }
        let line: Vec<&str> = line.iter().map(String::as_str).collect();
        let output = plain(&line).current_dir(&directory).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{line:?}: {message}");
    }
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn tables_agree_with_the_answers_to_options_of_other_tools() {
    let _beside = beside_others();
    // An option of that tool alone, so that the others of the line are read as its own.
    let markers = [
        ("memtier_benchmark", "--hide-histogram"),
        ("valkey-benchmark and redis-benchmark", "--precision 3"),
    ];
    let mut compared = 0;
    for row in rows() {
        let Some((_, marker)) = markers.iter().find(|(tool, _)| *tool == row.tool) else { continue };
        let (Some(theirs), Some(ours)) = (code(row.theirs), code(row.ours)) else { continue };
        let beside = if ours.contains("--tls-") && !theirs.contains("--tls ") { " --tls" } else { "" };
        let line = words(&format!("run {theirs} {marker}{beside}"));
        let line: Vec<&str> = line.iter().map(String::as_str).collect();
        let output = plain(&line).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        let (_, offered) = message.split_once("The whole command line:\n").expect(&message);
        // In any order.
        for option in ours.split(" --").map(|option| option.trim_start_matches("--")) {
            assert!(offered.contains(&format!("--{option}")), "{theirs}: {ours}, but {message}");
        }
        compared += 1;
    }
    assert!(compared >= 40, "{compared}");
}
