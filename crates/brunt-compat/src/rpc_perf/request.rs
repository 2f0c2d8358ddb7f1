//! What a workload sends: a method with its parameters as a command template of ours, byte for byte the request of rpc-perf.
//!
//! Not when it is sent. Invariant: a parameter that is drawn for each request is a placeholder of the template, and any other one is in
//! it as it is.

use super::config::{Parameter, Style, Workload};
use brunt_plan::plan::{KEY_BYTES_MAX, Protocol};
use brunt_plan::split_mix::{mix, output};

/// The protocols by rpc-perf's names.
const PROTOCOLS: [(&str, Protocol); 7] = [
    ("memcache", Protocol::MemcachedText),
    ("redis", Protocol::Resp2),
    ("redis-resp", Protocol::Resp2),
    ("redis-inline", Protocol::RespInline),
    ("echo", Protocol::Echo),
    ("ping", Protocol::Ping),
    ("thrift", Protocol::Thrift),
];

/// The protocol of this name.
///
/// # Errors
/// There is none.
pub fn protocol_of(name: &str) -> Result<Protocol, String> {
    let found = PROTOCOLS.iter().find(|(known, _)| *known == name.replace('_', "-"));
    found.map(|(_, protocol)| *protocol).ok_or_else(|| {
        let names = PROTOCOLS.map(|(name, _)| name).join(", ");
        format!("Protocol {name} not known (--protocol); expected {names}")
    })
}

/// What the log calls a protocol.
pub fn log_name(protocol: Protocol) -> &'static str {
    let meant = if protocol == Protocol::RespInline { Protocol::Resp2 } else { protocol };
    PROTOCOLS.iter().find(|(_, known)| *known == meant).map_or("", |(name, _)| name)
}

/// The commands of a protocol whose servers store something.
const fn methods(protocol: Protocol) -> &'static [Method] {
    if protocol.is_resp() { &REDIS } else { &MEMCACHE }
}

/// A command of a store.
struct Method {
    name: &'static str,
    /// Its template, in which `$0` is the first parameter.
    template: &'static str,
    parameters: usize,
    /// The parameter that is a number, and what rpc-perf sends where it is none.
    number: Option<(usize, &'static str)>,
    /// Its replies count as hits and misses.
    retrieves: bool,
}

const fn method(name: &'static str, parameters: usize, template: &'static str) -> Method {
    Method { name, template, parameters, number: None, retrieves: false }
}

const fn retrieval(name: &'static str, parameters: usize, template: &'static str) -> Method {
    Method { retrieves: true, ..method(name, parameters, template) }
}

const fn with_number(at: usize, usual: &'static str, method: Method) -> Method {
    Method { number: Some((at, usual)), ..method }
}

const MEMCACHE: [Method; 15] = [
    retrieval("get", 1, "get $0"),
    retrieval("gets", 1, "gets $0"),
    method("set", 2, "set $0 0 0 {bytes} $1"),
    method("add", 2, "add $0 0 0 {bytes} $1"),
    method("replace", 2, "replace $0 0 0 {bytes} $1"),
    method("append", 2, "append $0 0 0 {bytes} $1"),
    method("prepend", 2, "prepend $0 0 0 {bytes} $1"),
    with_number(2, "0", method("cas", 3, "cas $0 0 0 {bytes} $2 $1")),
    with_number(1, "1", method("incr", 2, "incr $0 $1")),
    with_number(1, "1", method("decr", 2, "decr $0 $1")),
    with_number(1, "0", method("touch", 2, "touch $0 $1")),
    method("delete", 1, "delete $0"),
    with_number(0, "0", method("verbosity", 1, "verbosity $0")),
    method("version", 0, "version"),
    method("quit", 0, "quit"),
];

const REDIS: [Method; 9] = [
    retrieval("get", 1, "get $0"),
    method("set", 2, "set $0 $1"),
    retrieval("hget", 2, "hget $0 $1"),
    method("hset", 3, "hset $0 $1 $2"),
    method("del", 1, "del $0"),
    with_number(1, "0", method("expire", 2, "expire $0 $1")),
    method("incr", 1, "incr $0"),
    method("decr", 1, "decr $0"),
    method("append", 2, "append $0 $1"),
];

/// What a workload sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// As the log names it.
    pub method: String,
    /// The command.
    pub template: String,
    /// What `{key}` stands for in it.
    pub numbers: Option<Numbers>,
    /// Its replies count as hits and misses.
    pub retrieves: bool,
    /// What has no effect, for the user.
    pub warnings: Vec<String>,
}

impl Request {
    /// The request of a workload; what is drawn once, when it is read, follows from the seed.
    ///
    /// # Errors
    /// What is wrong with the workload, without its name.
    pub fn of(protocol: Protocol, workload: &Workload, seed: u64) -> Result<Self, String> {
        let usual = match protocol {
            Protocol::Thrift => None,
            Protocol::Echo | Protocol::Ping => Some(protocol.name()),
            _ => Some("get"),
        };
        let Some(name) = workload.method.as_deref().filter(|_| protocol != Protocol::Echo).or(usual) else {
            return Err("malformed config: 'method' not specified".to_owned());
        };
        let mut words = TemplateWords::of(seed);
        let parameters = &workload.parameters;
        check_keys(protocol, parameters)?;
        let (template, retrieves) = match protocol {
            Protocol::Echo => (payload(&mut words, parameters)?, false),
            Protocol::Ping if name != "ping" => return Err(format!("invalid method: {name}; expected ping")),
            Protocol::Ping if !parameters.is_empty() => return Err(too_many(parameters.len(), name)),
            Protocol::Ping => ("PING".to_owned(), false),
            Protocol::Thrift => (thrift_call(name, parameters, &mut words)?, false),
            _ => {
                let found = methods(protocol).iter().find(|method| method.name == name);
                let method = found.ok_or_else(|| unknown_method(protocol, name))?;
                (command(&mut words, protocol, method, parameters)?, method.retrieves)
            }
        };
        Ok(Self {
            method: name.to_owned(),
            template,
            numbers: words.numbers,
            retrieves,
            warnings: words.warnings,
        })
    }
}

fn unknown_method(protocol: Protocol, name: &str) -> String {
    let names: Vec<&str> = methods(protocol).iter().map(|method| method.name).collect();
    format!("invalid command: {name}; expected {}", names.join(", "))
}

fn too_many(given: usize, method: &str) -> String {
    format!("invalid number of params ({given}) for method {method}; expected none")
}

/// Keys that belong to another protocol would have no effect.
fn check_keys(protocol: Protocol, parameters: &[Parameter]) -> Result<(), String> {
    let is_of_thrift = |parameter: &Parameter| {
        parameter.id.is_some() || parameter.kind.is_some() || parameter.contains.is_some()
    };
    match parameters.iter().position(is_of_thrift).filter(|_| protocol != Protocol::Thrift) {
        Some(index) => Err(format!("parameter {index}: 'id', 'type' and 'contains' require protocol thrift")),
        None => Ok(()),
    }
}

fn command(
    words: &mut TemplateWords,
    protocol: Protocol,
    method: &Method,
    parameters: &[Parameter],
) -> Result<String, String> {
    if parameters.len() != method.parameters {
        return Err(format!(
            "invalid number of params ({}) for method {}; expected {}",
            parameters.len(),
            method.name,
            method.parameters
        ));
    }
    let key_bytes = parameters.first().map_or(0, size_of);
    if protocol == Protocol::MemcachedText
        && method.parameters > 0
        && method.name != "verbosity"
        && !(1..=KEY_BYTES_MAX).contains(&key_bytes)
    {
        return Err(format!(
            "parameter 0: size {key_bytes} was given; expected a key of 1 to {KEY_BYTES_MAX} bytes"
        ));
    }
    let mut template = method.template.to_owned();
    for (index, parameter) in parameters.iter().enumerate() {
        let mut word = words.word(index, parameter)?;
        if let Some((_, usual)) = method.number.filter(|(at, _)| *at == index) {
            word = number(index, parameter, word, usual)?;
        }
        template = template.replace(&format!("${index}"), &word);
    }
    Ok(template)
}

/// The payload of an echo.
fn payload(words: &mut TemplateWords, parameters: &[Parameter]) -> Result<String, String> {
    let bytes = |seed: u64, size: u32| {
        let byte = |offset: u32| format!("\\x{:02x}", (seed.wrapping_add(u64::from(offset))) as u8);
        format!("\"{}\"", (0..size).map(byte).collect::<String>())
    };
    match parameters {
        [] => Ok(bytes(0, 1)),
        [parameter] if parameter.style == Style::Static && parameter.num.is_none() => {
            Ok(bytes(parameter.seed.unwrap_or(0), size_of(parameter)))
        }
        [parameter] => words.word(0, parameter),
        _ => {
            Err(format!("malformed config: too many parameters for echo: {}; expected one", parameters.len()))
        }
    }
}

/// The word of a parameter that must be a number; where it is none, the number that rpc-perf sends instead.
fn number(index: usize, parameter: &Parameter, word: String, usual: &str) -> Result<String, String> {
    if word.starts_with('{') && parameter.num.is_none() {
        return Err(format!(
            "parameter {index}: letters were asked for; expected a number, by style = \"static\" or by num"
        ));
    }
    let is_number =
        word.starts_with('{') || (!word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()));
    // Without the zeros before it, as rpc-perf sends numbers.
    let plain = word.trim_start_matches('0');
    Ok(match (is_number, plain) {
        (false, _) => usual.to_owned(),
        (true, "") => "0".to_owned(),
        (true, plain) => plain.to_owned(),
    })
}

/// Numbers that are drawn for each request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// How many there are, from 0.
    pub count: u64,
    /// How many digits each has.
    pub digits: u32,
}

/// Parameters that become words of a template. What is drawn once follows from the seed and the index of its parameter.
pub(super) struct TemplateWords {
    seed: u64,
    /// The number that is drawn for each request, where one is.
    pub(super) numbers: Option<Numbers>,
    /// What has no effect.
    pub(super) warnings: Vec<String>,
}

impl TemplateWords {
    /// None yet; what is drawn once follows from this seed.
    pub(super) const fn of(seed: u64) -> Self {
        Self { seed, numbers: None, warnings: Vec::new() }
    }

    /// A parameter as a word of the template. Without a `seed` its place among the parameters is its seed.
    pub(super) fn word(&mut self, index: usize, parameter: &Parameter) -> Result<String, String> {
        let size = size_of(parameter);
        self.note_unused(index, parameter);
        match (parameter.style, parameter.num) {
            (Style::Static, Some(_)) => Err(format!("parameter {index}: num requires style = \"random\"")),
            (Style::Static, None) => {
                let digits = parameter.seed.unwrap_or(index as u64).to_string();
                let kept = digits.len().min(size as usize);
                Ok(quoted(format!("{:0>1$}", &digits[..kept], size as usize)))
            }
            (Style::Random, Some(num)) => self.drawn_number(index, parameter.regenerate, num.get(), size),
            (Style::Random, None) if parameter.regenerate && size > 0 => Ok(format!("{{random:{size}}}")),
            (Style::Random, None) => Ok(quoted(letters(self.seed, index, size))),
        }
    }

    /// Warns of keys that have no effect with the style.
    pub(super) fn note_unused(&mut self, index: usize, parameter: &Parameter) {
        let unused = match parameter.style {
            Style::Static if parameter.regenerate => "regenerate has no effect with style = \"static\"",
            Style::Random if parameter.seed.is_some() => {
                "seed has no effect with style = \"random\"; --seed sets all random choices"
            }
            _ => return,
        };
        self.warn(index, unused);
    }

    pub(super) fn warn(&mut self, index: usize, what: &str) {
        self.warnings.push(format!("parameter {index}: {what}"));
    }

    fn drawn_number(
        &mut self,
        index: usize,
        regenerates: bool,
        count: u64,
        size: u32,
    ) -> Result<String, String> {
        let digits = size.max((count - 1).checked_ilog10().unwrap_or(0) + 1);
        if !regenerates {
            let number = draws(self.seed, index).next().map_or(0, |drawn| below(drawn, count));
            return Ok(format!("{number:00$}", size as usize));
        }
        if self.numbers.is_some() {
            return Err(format!(
                "parameter {index}: num was given; expected one parameter with num and regenerate in a workload"
            ));
        }
        self.numbers = Some(Numbers { count, digits });
        Ok("{key}".to_owned())
    }

    /// A number from 0 that is drawn once, for places that take no letters.
    pub(super) fn drawn(&self, index: usize) -> u64 {
        draws(self.seed, index).next().unwrap_or(0)
    }
}

/// Bytes; 1 where none are given.
pub(super) fn size_of(parameter: &Parameter) -> u32 {
    parameter.size.unwrap_or(1)
}

/// A word of a template: an empty one takes quotes.
fn quoted(text: String) -> String {
    if text.is_empty() { "''".to_owned() } else { text }
}

const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// Letters and digits, each as likely as any other.
fn letters(seed: u64, index: usize, size: u32) -> String {
    let drawn = draws(seed, index).take(size as usize);
    drawn.map(|drawn| char::from(LETTERS[below(drawn, 62) as usize])).collect()
}

/// Scales 64 random bits to a number below `count`; the bias is below 2⁻⁵⁸ for letters.
fn below(drawn: u64, count: u64) -> u64 {
    ((u128::from(drawn) * u128::from(count)) >> 64) as u64
}

/// The random numbers of a parameter.
fn draws(seed: u64, index: usize) -> impl Iterator<Item = u64> {
    // Parameters have streams of their own.
    let begin = mix(seed ^ mix(index as u64 + 1));
    (0..).map(move |number| output(begin, number))
}

/// Types whose values are numbers, with the least and the most of them.
const INTEGERS: [(&str, i64, i64); 4] = [
    ("byte", i8::MIN as i64, i8::MAX as i64),
    ("i16", i16::MIN as i64, i16::MAX as i64),
    ("i32", i32::MIN as i64, i32::MAX as i64),
    ("i64", i64::MIN, i64::MAX),
];
const ACCEPTED: &str = "stop, void, bool, byte, double, i16, i32, i64, string, struct, map, set, list";

/// The template of a call.
///
/// # Errors
/// What is wrong with a parameter.
fn thrift_call(method: &str, parameters: &[Parameter], words: &mut TemplateWords) -> Result<String, String> {
    let mut template = method.to_owned();
    for (index, parameter) in parameters.iter().enumerate() {
        let word = field(index, parameter, words).map_err(|what| format!("parameter {index}: {what}"))?;
        template = format!("{template} {word}");
    }
    Ok(template)
}

fn field(index: usize, parameter: &Parameter, words: &mut TemplateWords) -> Result<String, String> {
    let Some(kind) = parameter.kind.as_deref() else {
        return Err(format!("parameter type not specified; expected {ACCEPTED}"));
    };
    let id = parameter.id.map_or(String::new(), |id| format!("{id}:"));
    let needs_id = || match parameter.id {
        Some(_) => Ok(()),
        None => Err(format!("a {kind} requires 'id'")),
    };
    let contains = || {
        let contained = parameter.contains.as_deref();
        contained.ok_or_else(|| format!("a {kind} requires 'contains', such as \"i32\""))
    };
    if parameter.contains.is_some() && !matches!(kind, "list" | "set" | "map") {
        return Err(format!("'contains' requires a list, set or map, not {kind}"));
    }
    Ok(match kind {
        "stop" => "stop".to_owned(),
        "void" => format!("{id}void"),
        "struct" => {
            needs_id()?;
            format!("{id}struct")
        }
        "list" | "set" | "map" => {
            needs_id()?;
            format!("{id}{kind}<{}>={}", contains()?, size_of(parameter))
        }
        "string" => {
            let word = words.word(index, parameter)?;
            format!("{id}string={}", if word == "''" { "" } else { &word })
        }
        "bool" | "double" | "byte" | "i16" | "i32" | "i64" => {
            format!("{id}{kind}={}", scalar(kind, index, parameter, words)?)
        }
        _ => return Err(format!("unknown parameter type: {kind}; expected {ACCEPTED}")),
    })
}

/// The value of a type of fixed length.
fn scalar(
    kind: &str,
    index: usize,
    parameter: &Parameter,
    words: &mut TemplateWords,
) -> Result<String, String> {
    if parameter.size.is_some() || parameter.num.is_some() {
        words.warn(index, &format!("size and num have no effect with type {kind}"));
    }
    let seed = parameter.seed.unwrap_or(index as u64);
    let range = INTEGERS.iter().find(|(name, ..)| *name == kind).map(|(_, least, most)| (*least, *most));
    words.note_unused(index, parameter);
    match (parameter.style, parameter.regenerate) {
        (Style::Random, true) => Ok("{random}".to_owned()),
        (Style::Random, false) => Ok(drawn(kind, range, words.drawn(index))),
        (Style::Static, _) if kind == "bool" => Ok((parameter.seed != Some(0)).to_string()),
        (Style::Static, _) => match range {
            Some((_, most)) if seed > most as u64 => {
                Err(format!("seed {seed} exceeds {most}, the most of a {kind}"))
            }
            _ => Ok(seed.to_string()),
        },
    }
}

/// A value that is drawn once: any of its type, of a double from 0 to 1.
fn drawn(kind: &str, range: Option<(i64, i64)>, drawn: u64) -> String {
    match range {
        Some((least, most)) => {
            // Types are as wide as a power of two: the highest bits are as good as any.
            let width = (i128::from(most) - i128::from(least) + 1) as u128;
            (i128::from(least) + ((u128::from(drawn) * width) >> 64) as i128).to_string()
        }
        None if kind == "bool" => (drawn >> 63 == 1).to_string(),
        None => ((drawn >> 11) as f64 / (1_u64 << 53) as f64).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::Config;
    use super::*;
    use crate::options::tests::cases;

    fn request(dialect: &str, workload: &str) -> Result<Request, String> {
        let config = Config::parse("f", &format!("[[workload]]\n{workload}"))
            .unwrap_or_else(|error| panic!("{error}"));
        Request::of(protocol_of(dialect).unwrap(), &config.workloads[0], 7)
    }

    fn template(dialect: &str, workload: &str) -> String {
        request(dialect, workload).unwrap_or_else(|error| panic!("{workload}: {error}")).template
    }

    fn parameters(list: &[&str]) -> String {
        format!("parameter = [{}]", list.join(","))
    }

    #[test]
    fn store_methods_become_commands() {
        let keys = ["{seed = 42, size = 6}", "{seed = 5, size = 3}", "{seed = 9}"];
        let table = [
            ("memcache", "get", 1, "get 000042"),
            ("memcache", "gets", 1, "gets 000042"),
            ("memcache", "set", 2, "set 000042 0 0 {bytes} 005"),
            ("memcache", "add", 2, "add 000042 0 0 {bytes} 005"),
            ("memcache", "replace", 2, "replace 000042 0 0 {bytes} 005"),
            ("memcache", "append", 2, "append 000042 0 0 {bytes} 005"),
            ("memcache", "prepend", 2, "prepend 000042 0 0 {bytes} 005"),
            ("memcache", "cas", 3, "cas 000042 0 0 {bytes} 9 005"),
            ("memcache", "incr", 2, "incr 000042 5"),
            ("memcache", "decr", 2, "decr 000042 5"),
            ("memcache", "touch", 2, "touch 000042 5"),
            ("memcache", "delete", 1, "delete 000042"),
            ("memcache", "verbosity", 1, "verbosity 42"),
            ("memcache", "version", 0, "version"),
            ("memcache", "quit", 0, "quit"),
            ("redis", "get", 1, "get 000042"),
            ("redis-resp", "set", 2, "set 000042 005"),
            ("redis_resp", "hget", 2, "hget 000042 005"),
            ("redis-inline", "hset", 3, "hset 000042 005 9"),
            ("redis_inline", "del", 1, "del 000042"),
            ("redis", "expire", 2, "expire 000042 5"),
            ("redis", "incr", 1, "incr 000042"),
            ("redis", "decr", 1, "decr 000042"),
            ("redis", "append", 2, "append 000042 005"),
        ];
        for (dialect, method, count, expected) in table {
            let workload = format!("method = '{method}'\n{}", parameters(&keys[..count]));
            assert_eq!(template(dialect, &workload), expected, "{dialect} {method}");
        }
        assert_eq!(table.len(), MEMCACHE.len() + REDIS.len());
        assert_eq!(template("memcache", "method = 'version'"), "version");
        let retrieves = |dialect: &str, line: &str| request(dialect, line).unwrap().retrieves;
        assert!(
            retrieves("redis", "method = 'hget'\nparameter = [{}, {}]")
                && retrieves("memcache", "parameter = [{}]")
        );
        assert!(!retrieves("redis", "method = 'set'\nparameter = [{}, {}]"));
    }

    #[test]
    fn parameter_styles_become_template_words() {
        let value = |parameter: &str| {
            let template = template("redis", &format!("method = 'set'\nparameter = [{{}}, {{{parameter}}}]"));
            template.strip_prefix("set 0 ").map(str::to_owned).unwrap_or(template)
        };
        // (parameter, word)
        let table = [
            ("", "1"),
            ("seed = 0", "0"),
            ("size = 6, seed = 42", "000042"),
            ("size = 3, seed = 12345", "123"),
            ("size = 0", "''"),
            ("style = 'random', size = 128, regenerate = true", "{random:128}"),
            ("style = 'random', size = 0, regenerate = true", "''"),
            ("style = 'random', size = 6, num = 500000, regenerate = true", "{key}"),
            ("style = 'random', size = 4, num = 1", "0000"),
        ];
        for (parameter, expected) in table {
            assert_eq!(value(parameter), expected, "{parameter}");
        }
        let drawn = value("style = 'random', size = 200");
        assert!(drawn.len() == 200 && drawn.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{drawn}");
        assert_eq!(drawn, value("style = 'random', size = 200"));
        let number: u64 = value("style = 'random', size = 8, num = 1000").parse().unwrap();
        assert!(number < 1000);
        let of = |num: u64, size: u32| {
            let line =
                format!("parameter = [{{style = 'random', size = {size}, num = {num}, regenerate = true}}]");
            request("memcache", &line).unwrap().numbers
        };
        assert_eq!(of(500_000, 6), Some(Numbers { count: 500_000, digits: 6 }));
        assert_eq!(
            [of(1000, 2), of(1, 1)],
            [Some(Numbers { count: 1000, digits: 3 }), Some(Numbers { count: 1, digits: 1 })]
        );
    }

    #[test]
    fn parameters_without_effect_are_warned_of() {
        let warnings = |parameter: &str| {
            request("memcache", &format!("parameter = [{{{parameter}}}]")).unwrap().warnings
        };
        assert_eq!(
            warnings("regenerate = true"),
            ["parameter 0: regenerate has no effect with style = \"static\""]
        );
        assert_eq!(
            warnings("style = 'random', seed = 1"),
            ["parameter 0: seed has no effect with style = \"random\"; --seed sets all random choices"]
        );
        assert_eq!(warnings("style = 'random', regenerate = true"), [""; 0]);
    }

    #[test]
    fn echo_ping_and_thrift_become_commands() {
        assert_eq!(template("ping", ""), "PING");
        assert_eq!(template("ping", "method = 'ping'"), "PING");
        assert_eq!(template("echo", "method = 'whatever'"), "\"\\x00\"");
        assert_eq!(template("echo", "parameter = [{size = 3, seed = 254}]"), "\"\\xfe\\xff\\x00\"");
        assert_eq!(
            template("echo", "parameter = [{size = 3, style = 'random', regenerate = true}]"),
            "{random:3}"
        );
    }

    #[test]
    fn numeric_parameters_are_parsed() {
        let delta = |parameter: &str| {
            request("memcache", &format!("method = 'incr'\nparameter = [{{}}, {{{parameter}}}]"))
                .map(|request| request.template)
        };
        assert_eq!(delta("style = 'random', size = 9").as_deref(), Ok("incr 0 1"));
        assert_eq!(delta("seed = 0, size = 3").as_deref(), Ok("incr 0 0"));
        assert_eq!(delta("style = 'random', num = 50, regenerate = true").as_deref(), Ok("incr 0 {key}"));
        let error = delta("style = 'random', size = 2, regenerate = true").unwrap_err();
        assert_eq!(
            error,
            "parameter 1: letters were asked for; expected a number, by style = \"static\" or by num"
        );
    }

    #[test]
    fn invalid_requests_are_rejected() {
        let table = cases(
            r#"
            memcache => method = 'frob' => invalid command: frob; expected get, gets, set, add,
            redis => method = 'prepend'\nparameter = [{}] => invalid command: prepend; expected get, set, hget,
            memcache => '' => invalid number of params (0) for method get; expected 1
            memcache => parameter = [{}, {}] => invalid number of params (2) for method get; expected 1
            memcache => parameter = [{size = 300}] => parameter 0: size 300 was given; expected a key of 1 to 250 bytes
            memcache => parameter = [{size = 0}] => parameter 0: size 0 was given; expected a key
            memcache => parameter = [{id = 1}] => parameter 0: 'id', 'type' and 'contains' require protocol thrift
            memcache => parameter = [{num = 5}] => parameter 0: num requires style = "random"
            redis
                => method = 'set'\nparameter = [{style = 'random', regenerate = true, num = 5}, {style = 'random', regenerate = true, num = 5}] => parameter 1: num was given; expected one parameter with num
            echo => parameter = [{}, {}] => malformed config: too many parameters for echo: 2; expected one
            ping => method = 'pong' => invalid method: pong; expected ping
            ping => parameter = [{}] => invalid number of params (1) for method ping; expected none
            thrift => '' => malformed config: 'method' not specified
        "#,
        );
        for [dialect, workload, message] in table {
            let error = request(dialect, workload).unwrap_err();
            assert!(error.starts_with(message), "{workload}: {error}");
        }
        let error = protocol_of("foo").unwrap_err();
        assert_eq!(
            error,
            "Protocol foo not known (--protocol); expected memcache, redis, redis-resp, redis-inline, echo, ping, thrift"
        );
    }

    /// Letters of a parameter that is drawn once: all 62 about equally often, and others for another parameter or seed.
    #[test]
    fn letters_are_spread_evenly() {
        let drawn = letters(1, 0, 62_000);
        let mut counts = std::collections::BTreeMap::new();
        drawn.bytes().for_each(|byte| *counts.entry(byte).or_insert(0_u32) += 1);
        assert_eq!(counts.len(), 62);
        let chi_square: f64 =
            counts.values().map(|count| (f64::from(*count) - 1000.0).powi(2) / 1000.0).sum();
        // 0.999 of a chi-square distribution with 61 degrees of freedom lies below 100.9.
        assert!(chi_square < 100.9, "{chi_square}");
        assert_ne!(letters(1, 0, 20), letters(1, 1, 20));
        assert_ne!(letters(1, 0, 20), letters(2, 0, 20));
    }

    fn call(workload: &str) -> Result<String, String> {
        let config = Config::parse("f", &format!("[[workload]]\nmethod = 'add'\n{workload}")).unwrap();
        Request::of(Protocol::Thrift, &config.workloads[0], 7).map(|request| request.template)
    }

    #[test]
    fn thrift_fields_are_encoded() {
        let table = cases(
            r"
            '' => add
            parameter = [{type = 'i32', id = 1, seed = 15}, {type = 'i32', id = 2, seed = 10}] => add 1:i32=15 2:i32=10
            parameter = [{type = 'i32', id = 1, style = 'random', regenerate = true}] => add 1:i32={random}
            parameter = [{type = 'struct', id = 2}, {type = 'double', id = 1, seed = 3}, {type = 'stop'}]
                => add 2:struct 1:double=3 stop
            parameter = [{type = 'list', id = 4, size = 2, contains = 'i32'}, {type = 'i32'}, {type = 'i32'}]
                => add 4:list<i32>=2 i32=1 i32=2
            parameter = [{type = 'map', id = 4, contains = 'string,i64'}, {type = 'string', size = 3}, {type = 'i64'}]
                => add 4:map<string,i64>=1 string=001 i64=2
            parameter = [{type = 'bool', id = 1}, {type = 'bool', id = 2, seed = 0}, {type = 'void', id = 3}]
                => add 1:bool=true 2:bool=false 3:void
            parameter = [{type = 'i16', size = 2, seed = 5}] => add i16=5
            parameter = [{type = 'string', id = 1, size = 0}] => add 1:string=
            parameter = [{type = 'string', id = 1, size = 5, style = 'random', regenerate = true}] => add 1:string={random:5}
        ",
        );
        for [workload, expected] in table {
            assert_eq!(call(workload).as_deref(), Ok(expected), "{workload}");
        }
        for kind in ["byte", "i16", "i64", "bool", "double"] {
            let template =
                call(&format!("parameter = [{{type = '{kind}', id = 1, style = 'random'}}]")).unwrap();
            let value = template.strip_prefix(&format!("add 1:{kind}=")).unwrap();
            let is_read = match kind {
                "byte" => value.parse::<i8>().is_ok(),
                "i16" => value.parse::<i16>().is_ok(),
                "i64" => value.parse::<i64>().is_ok(),
                "bool" => value.parse::<bool>().is_ok(),
                _ => value.parse::<f64>().is_ok_and(|value| (0.0..1.0).contains(&value)),
            };
            assert!(is_read, "{template}");
        }
    }

    #[test]
    fn invalid_fields_are_rejected() {
        let table = cases(
            r"
            parameter = [{}] => parameter 0: parameter type not specified; expected stop, void,
            parameter = [{type = 'u8'}] => parameter 0: unknown parameter type: u8; expected stop,
            parameter = [{type = 'struct'}] => parameter 0: a struct requires 'id'
            parameter = [{type = 'list', id = 1}] => parameter 0: a list requires 'contains'
            parameter = [{type = 'i32', contains = 'i32'}] => parameter 0: 'contains' requires a list, set or map
            parameter = [{type = 'byte', seed = 200}] => parameter 0: seed 200 exceeds 127, the most of a byte
        ",
        );
        for [workload, message] in table {
            let error = call(workload).unwrap_err();
            assert!(error.starts_with(message), "{workload}: {error}");
        }
    }
}
