//! What `brunt run -h` prints: the options that most runs need, on one screen.
//!
//! Not the help of all options (the parser has that). Invariants: no line is longer than 80 columns; a test holds it. Defaults are those
//! of the help, where there is room for them.

use clap::{Arg, Command};
use std::fmt::Write as _;

/// What `brunt run -h` lists: options by their names, each with a text that fits one line, below headings, which end in a colon.
const SCREEN: [(&str, &str); 35] = [
    ("Target:", ""),
    ("server", "HOST[:PORT], unix:PATH or URL (repeatable)"),
    ("protocol", "memcached-text, resp3, ...; else asked"),
    ("cluster", "Servers are nodes of one Redis cluster"),
    ("tls-ca", "Trusted CA certificates (PEM)"),
    ("Load:", ""),
    ("connections", "Connections in all"),
    ("depth", "Requests in flight per connection"),
    ("rate", "Open loop: requests per second in all"),
    ("time", "Length of the measured window"),
    ("requests", "End after so many requests"),
    ("threads", "Worker threads"),
    ("warmup", "Load before the window"),
    ("until", "End at this precision, e.g. p99=2%,max=30m"),
    ("repeat", "Number of runs"),
    ("peak", "Most requests per CPU: send in batches"),
    ("agent", "Another host that generates load (repeatable)"),
    ("Data (a run stores its keys first):", ""),
    ("mix", "Operations by weight"),
    ("keys", "Number of keys"),
    ("key-size", "Bytes of a key"),
    ("value-size", "Bytes of a value"),
    ("popularity", "uniform, zipf:0.99, ..."),
    ("prefix", "First bytes of every key"),
    ("verify", "Check every byte of the values read"),
    ("preload", "Do not store the keys first"),
    ("Results:", ""),
    ("output", "File: .json .html .csv .md .svg ... (repeatable)"),
    ("assert", "Exit 4 if violated, e.g. 'p99 < 1ms'"),
    ("report", "short, full or brief"),
    ("progress", "While it runs: none, 1s (a line each) or tui"),
    ("http", "Serve page and metrics while it runs"),
    ("print_plan", "Print the plan as TOML and exit"),
    ("quiet", "Print errors only"),
    ("set", "Set any key of a plan file"),
];

/// Behind the list.
const SCREEN_END: &str = "\
Examples:
  brunt run                                  a server that brunt starts itself
  brunt run -s cache:11211 -c 16 -t 10s      closed loop on 16 connections
  brunt run -s cache:11211 -r 50k -o r.html  open loop at 50000 requests/s
  brunt run plan.toml --set linger=1s        a plan file, one key changed
All options: brunt run --help. Keys of a plan file: brunt help keys";

/// Of a terminal.
const WIDTH: usize = 80;

/// What `brunt run -h` lists.
pub(crate) fn of_run(run: &Command) -> String {
    const LABEL: usize = 30;
    let mut text = String::new();
    for (name, says) in SCREEN {
        let Some(argument) = run.get_arguments().find(|held| held.get_id() == name) else {
            text.extend([name, "\n"]);
            continue;
        };
        let short = argument.get_short().map_or("    ".to_owned(), |letter| format!("-{letter}, "));
        let long = argument.get_long().unwrap_or_default();
        let value = argument.get_value_names().filter(|_| argument.get_action().takes_values());
        let is_optional = argument.get_num_args().is_some_and(|count| count.min_values() == 0);
        let value = value.map_or(String::new(), |names| match (names.join("> <"), is_optional) {
            (names, true) => format!("[=<{names}>]"),
            (names, false) => format!(" <{names}>"),
        });
        let line = format!("{:<LABEL$}  {says}", format!("  {short}--{long}{value}"));
        let default = default_of(argument).map(|default| format!(" [default: {default}]"));
        let default = default.filter(|default| line.len() + default.len() <= WIDTH).unwrap_or_default();
        let _ = writeln!(text, "{line}{default}");
    }
    text + SCREEN_END
}

/// The default of an option, as its help has it; without the cases where it is another.
fn default_of(argument: &Arg) -> Option<String> {
    if let Some(value) =
        argument.get_default_values().first().filter(|_| argument.get_action().takes_values())
    {
        return Some(value.to_string_lossy().into_owned());
    }
    let help = argument.get_help()?.to_string();
    let (_, default) = help.split_once("[default: ")?;
    Some(default.split([']', ';']).next()?.to_owned())
}
