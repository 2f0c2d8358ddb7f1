//! docs/migrating.md: its command lines run, and the options in its tables are accepted.
//!
//! Runs are shortened, and go to a reference server.

use crate::server::{Directory, Server, beside_others, plain};
use crate::suggestion::words;
use std::path::Path;

const DOCUMENT: &str = include_str!("../../../../docs/migrating.md");

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
    short.extend(["--progress=none", "--allow=BROKEN,LOAD,CLIENT,DATA"].map(str::to_owned));
    let short: Vec<&str> = short.iter().map(String::as_str).collect();
    let output = plain(&short).current_dir(directory).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn command_lines_of_documents_run() {
    let _beside = beside_others();
    let (server, directory) = (Server::reference(&[]), Directory::new());
    let lines: Vec<&str> = command_lines(DOCUMENT).collect();
    assert!(lines.len() >= 15);
    for line in lines {
        let (exit, message) = run(line, &server.address, &directory);
        // On a busy host no rate may meet the objective of a search, or none is decided.
        let accepted: &[i32] = if line.starts_with("search") { &[0, 3, 4] } else { &[0] };
        assert!(accepted.contains(&exit), "{line}: {exit} {message}");
    }
}

/// The options of brunt in the rows of the tables.
fn options() -> impl Iterator<Item = &'static str> {
    let rows = DOCUMENT.lines().filter(|line| line.starts_with("| `"));
    let cells = rows.filter_map(|row| row.trim_matches('|').split('|').map(str::trim).nth(1));
    cells.filter(|cell| !cell.is_empty()).map(|cell| {
        let code = cell.strip_prefix('`').and_then(|cell| cell.strip_suffix('`'));
        code.filter(|code| !code.contains('`')).unwrap_or_else(|| panic!("{cell}: no options alone"))
    })
}

#[test]
fn options_in_the_tables_are_accepted() {
    let _beside = beside_others();
    let directory = Directory::new();
    std::fs::write(directory.join("redis.pw"), "x\n").unwrap();
    for ours in options() {
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
}
