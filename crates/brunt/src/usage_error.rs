//! What is said of a command line that is wrong: of a value that an option does not take, in the words of all other mistakes, and of an option or
//! a command that brunt does not have: the misspelled one, the commands that have it, and the load generators that have it.
//!
//! The parser knows option and value; what is accepted is the value type's to say. The parser offers whatever shares letters; here only
//! misspellings stay. Invariant: no option in [`TOOLS`] is one of `brunt run`.

use brunt_compat::tools;
use brunt_plan::spec::{OPTIONS, OptionForm, PlanOption};
use brunt_report::file_type::FileType;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};
use std::error::Error as _;

/// Load generators without a front end here, and their options. docs/migrating.md has what brunt has instead.
const TOOLS: [(&str, &str); 4] = [
    (
        "memtier_benchmark",
        "--host --port -p --unix-socket -S --uri -u -P --authenticate -a --cert --key --cacert \
        --tls-skip-verify --tls-protocols --sni --run-count -x --debug -D --cluster-mode --transaction --out-file \
        --json-out-file --client-stats --hdr-file-prefix --show-config --hide-histogram --print-percentiles \
        --print-all-runs --realtime-latencies --command-stats-breakdown --command-miss-tracking \
        --miss-rate-threshold --statsd-host --statsd-port --statsd-prefix --statsd-run-label --graphite-port \
        --prometheus-port --prometheus-bind-addr --prometheus-run-label --prometheus-latency-buckets \
        --rate-limiting --clients --test-time --clients-start --clients-step --step-duration --ratio --pipeline \
        --reconnect-interval --reconnect-on-error --max-reconnect-attempts --reconnect-backoff-factor \
        --retry-on-error --max-retries --retry-backoff-ms --retry-backoff-factor --retry-on --max-retry-queue \
        --failed-keys-file --connection-timeout --connection-stage-timeout \
        --thread-conn-start-min-jitter-micros --thread-conn-start-max-jitter-micros --multi-key-get --select-db \
        --distinct-client-seed --randomize --command-ratio --command-key-pattern --command-is-read \
        --monitor-input --monitor-pattern --scan-incremental-iteration --scan-incremental-max-iterations \
        --read-preference --read-server --replica-clients --replicas-per-shard --read-preference-fallback \
        --data-size --data-offset --random-data -R --data-size-range --data-size-list --data-size-pattern \
        --expiry-range --data-import --data-verify --verify-only --generate-keys --no-expiry --key-prefix \
        --key-minimum --key-maximum --key-pattern --key-stddev --key-median --key-zipf-exp --wait-ratio \
        --num-slaves --wait-timeout --ipv4 --ipv6 --tls",
    ),
    (
        "redis-benchmark",
        "-p -u -a --dbnum --enable-tracking -k -P --precision -l -I -e -x --sni --cacert --cacertdir \
        --insecure --cert --key --tls-ciphers --tls-ciphersuites --tls",
    ),
    (
        "valkey-benchmark",
        "--rps --duration --sequential --rfr --dataset --maxdocs --xml-root-element --num-functions \
        --num-keys-in-fcall --rdma --mptcp",
    ),
    ("YCSB", "-P -p"),
];

/// Options of load generators, and what brunt has in their place.
const TWINS: [(&str, &str); 10] = [
    ("-d", "--value-size, or --depth, the requests in flight per connection"),
    ("--clients", "-c, the connections of all threads together"),
    ("--data-size", "--value-size"),
    ("--duration", "-t"),
    ("--key-prefix", "--prefix"),
    ("--pipeline", "--depth"),
    ("--qps", "-r"),
    ("--ratio", "--mix, e.g. get=10,set=1"),
    ("--rps", "-r"),
    ("--test-time", "-t"),
];

/// Takes suggestions out of the error of a command line that are no misspelling of what was typed, and names the other commands of
/// `program` and the load generators that have the option.
pub(crate) fn corrected(mut error: Error, mut program: Command, words: &[String]) -> Error {
    // "to pass '--x' as a value, use '-- --x'": no plan file begins with dashes.
    error.remove(ContextKind::Suggested);
    let pairs = [
        (ContextKind::InvalidArg, ContextKind::SuggestedArg),
        (ContextKind::InvalidSubcommand, ContextKind::SuggestedSubcommand),
    ];
    for (typed, suggested) in pairs {
        let Some(ContextValue::String(typed)) = error.get(typed).cloned() else { continue };
        let offered: Vec<String> = match error.get(suggested) {
            Some(ContextValue::String(text)) => vec![text.clone()],
            Some(ContextValue::Strings(texts)) => texts.clone(),
            _ => Vec::new(),
        };
        let word =
            |text: &str| text.split([' ', '=']).next().unwrap_or_default().trim_start_matches('-').to_owned();
        let near: Vec<String> =
            offered.into_iter().filter(|text| is_misspelling(&word(&typed), &word(text))).collect();
        error.remove(suggested);
        if let [one] = &near[..] {
            error.insert(suggested, ContextValue::String(one.clone()));
        } else if !near.is_empty() {
            error.insert(suggested, ContextValue::Strings(near));
        }
    }
    if error.kind() == ErrorKind::UnknownArgument {
        // The parser's has whatever option resembles the unknown one.
        program.build();
        let command = words.get(1).and_then(|name| program.find_subcommand_mut(name));
        if let Some(usage) = command.map(Command::render_usage) {
            error.insert(ContextKind::Usage, ContextValue::StyledStr(usage));
        }
        let tips = tips(&error, &program, words);
        if !tips.is_empty() {
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
        }
    }
    error
}

/// Who has the option that a command does not have.
fn tips(error: &Error, program: &Command, words: &[String]) -> Vec<StyledStr> {
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidArg) else { return Vec::new() };
    let option = typed.split([' ', '=']).next().unwrap_or_default();
    // The parser reads a word behind one dash as letters, and names the first that is unknown.
    let is_it = |word: &String| {
        word.split('=').next() == Some(option) || word.strip_prefix(option).is_some_and(is_number)
    };
    let Some(place) = words.iter().position(is_it) else { return Vec::new() };
    let value = words[place].split_once('=').map(|(_, value)| value);
    let value = value.or_else(|| words.get(place + 1).map(String::as_str)).unwrap_or_default();
    let command = words.get(1).and_then(|name| program.find_subcommand(name));
    let has = |long| command.is_some_and(|held| held.get_arguments().any(|arg| arg.get_long() == Some(long)));
    if let Some(tip) = own_word(option, value, has("set"), has("output")) {
        return vec![tip.into()];
    }
    let commands = program
        .get_subcommands()
        .filter(|command| {
            command.get_arguments().any(|arg| is_named(option, arg.get_long(), arg.get_short()))
        })
        .map(Command::get_name);
    let mut front_ends: Vec<_> = tools::TOOLS
        .iter()
        .filter(|tool| tool.names.options.iter().any(|rule| is_named(option, Some(rule.long), rule.short)))
        .collect();
    front_ends.dedup_by_key(|tool| std::ptr::from_ref(tool.names));
    let commands = commands.chain(front_ends.iter().map(|tool| tool.name));
    let commands: Vec<String> = commands.map(|name| format!("brunt {name}")).collect();
    let others = TOOLS.iter().filter(|(_, options)| options.split(' ').any(|held| held == option));
    let others: Vec<&str> = others.map(|(tool, _)| *tool).collect();
    let owners = [(commands.join(", "), ""), (others.join(", "), ": see docs/migrating.md")]
        .into_iter()
        .filter(|(owners, _)| !owners.is_empty())
        .map(|(owners, more)| format!("{option} is an option of {owners}{more}").into());
    let twin = TWINS.iter().find(|(name, _)| *name == option && has("set"));
    let twin = twin.map(|(_, twin)| format!("{option} of other tools is {twin}").into());
    twin.into_iter().chain(owners).collect()
}

/// What has the place of an option that brunt has as something else, a key of the plan or a type of file, in a command that has `--set`,
/// or `-o`.
fn own_word(option: &str, typed: &str, has_set: bool, has_output: bool) -> Option<String> {
    let name = option.strip_prefix("--")?;
    if let Some(key) = OPTIONS
        .iter()
        .find(|held| has_set && !held.has_flag && (is_misspelling(name, &held.key()) || held.flag() == name))
    {
        let is_value = !typed.starts_with('-') && !typed.contains(' ') && key.check(typed).is_ok();
        let value = if is_value { typed } else { example(key) };
        let key = key.key();
        return Some(format!("--{key} is a key of the plan: --set {key}={value} (brunt help {key})"));
    }
    FileType::from_name(name)
        .filter(|_| has_output)
        .map(|held| format!("a file is written by -o {}:PATH", held.name()))
}

/// A value that the help of an option shows, or its placeholder.
pub(crate) fn example(option: &PlanOption) -> &'static str {
    let word = option.words.first().copied().unwrap_or("VALUE");
    let shown = option.help.split_once("e.g. ").map_or(word, |(_, shown)| shown);
    match option.form {
        OptionForm::Switch(true) => "true",
        OptionForm::Switch(false) => "false",
        _ => shown.split([',', ';', ' ', ')']).next().unwrap_or_default().trim_end_matches(':'),
    }
}

fn is_named(option: &str, long: Option<&str>, short: Option<char>) -> bool {
    match option.strip_prefix("--") {
        Some(name) => long == Some(name),
        None => short.is_some_and(|letter| option == format!("-{letter}")),
    }
}

/// Is it a whole number?
pub(crate) fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Can one be had from the other by one change of a letter, or two in a word of ten letters and more?
pub(crate) fn is_misspelling(typed: &str, meant: &str) -> bool {
    let most = if typed.chars().count().min(meant.chars().count()) >= 10 { 2 } else { 1 };
    strsim::osa_distance(typed, meant) <= most
}

/// `invalid value 'VALUE' for OPTION: expected ...`; `None` of another mistake.
pub(crate) fn of_value(error: &Error, program: &Command) -> Option<String> {
    if error.kind() != ErrorKind::ValueValidation {
        return None;
    }
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let (argument, value) = (text(ContextKind::InvalidArg)?, text(ContextKind::InvalidValue)?);
    // The name of its value is behind that of an option; an argument has none but that.
    let option = if argument.starts_with('-') { argument.split([' ', '=', '[']).next()? } else { argument };
    let reason = error.source()?.to_string();
    // Of a plan file it tells the key as well, which is the option here.
    let reason = reason.split("\nin `").next().unwrap_or_default().trim_end();
    // Types that also are in lists begin with the part that is wrong: here it is the whole, which is named already.
    let reason = reason.strip_prefix(&format!("{value}: ")).unwrap_or(reason);
    let key = value.split('=').next();
    let has = |command: &Command| command.get_arguments().any(|argument| argument.get_long() == key);
    let says = match (reason.strip_prefix("expected "), reason.rsplit_once(" is not in ")) {
        _ if reason.starts_with("unknown key") && program.get_subcommands().any(has) => {
            format!("'{0}' is an option, not a key of a plan: expected --{0}", key?)
        }
        (None, Some((_, range))) => format!("expected a whole number from {}", range.replace("..=", " to ")),
        _ => reason.to_owned(),
    };
    let meant = meant(option, value).unwrap_or_default();
    Some(format!("invalid value '{value}' for {option}: {says}{meant}"))
}

/// What a server's name means for `--protocol`, and what other tools take where `--time` and `--requests` are here: seconds, threads, names.
fn meant(option: &str, value: &str) -> Option<String> {
    let are_names = value.bytes().all(|byte| byte.is_ascii_lowercase() || b"_,".contains(&byte));
    Some(match (option, value) {
        ("--protocol", "redis" | "valkey") => "; Redis and Valkey speak resp2 and resp3".to_owned(),
        ("--protocol", "memcached") => "; every memcached speaks memcached-text".to_owned(),
        ("--requests", "allkeys") => "; -n allkeys is of memtier_benchmark: see docs/migrating.md".to_owned(),
        ("--time", "hreads" | "arget") => format!("; -t{value} is an option of YCSB: see docs/migrating.md"),
        ("--time", _) if are_names => {
            "; -t of redis-benchmark names commands: see docs/migrating.md".to_owned()
        }
        ("--time", _) if is_number(value) => {
            format!(
                "; for {value} seconds -t {value}s, for {value} threads (memtier_benchmark's -t) --threads {value}"
            )
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_close_names_are_misspellings() {
        let table = [
            ("rato", "rate", true),
            ("raet", "rate", true),
            ("rat", "rate", true),
            ("ratio", "rate", false),
            ("connectoins", "connections", true),
            ("conections", "connections", true),
            ("clients", "client-name", false),
            ("data-size", "data-seed", false),
            ("valuesize", "value-size", true),
            ("data-siez", "data-seed", false),
            ("conectoins", "connections", true),
        ];
        for (typed, meant, expected) in table {
            assert_eq!(is_misspelling(typed, meant), expected, "{typed} {meant}");
        }
    }

    #[test]
    fn examples_of_keys_are_values_of_them() {
        let has_value = |option: &&PlanOption| !matches!(option.form, OptionForm::Switch(_));
        for option in OPTIONS.iter().filter(|option| !option.has_flag).filter(has_value) {
            let value = example(option);
            assert!(option.check(value).is_ok() && value != "VALUE", "{} {value}", option.key());
        }
    }

    #[test]
    fn options_of_other_tools_are_none_of_run() {
        let mut program = crate::cli::command();
        program.build();
        let run = program.find_subcommand("run").unwrap();
        for option in TOOLS.iter().flat_map(|(_, options)| options.split(' ')) {
            let is_of_run = run.get_arguments().any(|arg| is_named(option, arg.get_long(), arg.get_short()));
            assert!(option.starts_with('-') && !is_of_run, "{option}");
        }
    }
}
