//! What a workload sends: a method with its parameters as a command template of ours, byte for byte the request of rpc-perf.
//!
//! Not when it is sent. Invariant: a parameter that is drawn for each request is a placeholder of the template, and any other one is in
//! it as it is.

use super::config::{Parameter, Style, Workload};
use super::template_words::{Numbers, TemplateWords, size_of};
use super::thrift;
use brunt_plan::plan::{KEY_BYTES_MAX, Protocol};

/// A protocol, as rpc-perf tells them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// memcached's text protocol.
    Memcache,
    /// Redis's protocol.
    Redis,
    /// Redis's protocol with inline commands.
    RedisInline,
    /// Payloads with a checksum.
    Echo,
    /// `PING`.
    Ping,
    /// Calls in frames.
    Thrift,
}

impl Dialect {
    /// Every name with what it means.
    const NAMES: [(&'static str, Self); 7] = [
        ("memcache", Self::Memcache),
        ("redis", Self::Redis),
        ("redis-resp", Self::Redis),
        ("redis-inline", Self::RedisInline),
        ("echo", Self::Echo),
        ("ping", Self::Ping),
        ("thrift", Self::Thrift),
    ];

    /// The one of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn find(name: &str) -> Result<Self, String> {
        let found = Self::NAMES.iter().find(|(known, _)| *known == name.replace('_', "-"));
        found.map(|(_, dialect)| *dialect).ok_or_else(|| {
            let names = Self::NAMES.map(|(name, _)| name).join(", ");
            format!("Protocol {name} not known (--protocol); expected {names}")
        })
    }

    /// What the log calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memcache => "memcache",
            Self::Redis | Self::RedisInline => "redis",
            Self::Echo => "echo",
            Self::Ping => "ping",
            Self::Thrift => "thrift",
        }
    }

    /// What we call it.
    pub const fn protocol(self) -> Protocol {
        match self {
            Self::Memcache => Protocol::MemcachedText,
            Self::Redis => Protocol::Resp2,
            Self::RedisInline => Protocol::RespInline,
            Self::Echo => Protocol::Echo,
            Self::Ping => Protocol::Ping,
            Self::Thrift => Protocol::Thrift,
        }
    }

    /// Do its servers store anything that `--flush` could delete?
    pub const fn stores(self) -> bool {
        matches!(self, Self::Memcache | Self::Redis | Self::RedisInline)
    }

    /// The method where none is given.
    const fn usual_method(self) -> Option<&'static str> {
        match self {
            Self::Memcache | Self::Redis | Self::RedisInline => Some("get"),
            Self::Echo => Some("echo"),
            Self::Ping => Some("ping"),
            Self::Thrift => None,
        }
    }

    const fn methods(self) -> &'static [Method] {
        match self {
            Self::Memcache => &MEMCACHE,
            Self::Redis | Self::RedisInline => &REDIS,
            Self::Echo | Self::Ping | Self::Thrift => &[],
        }
    }
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
    pub fn of(dialect: Dialect, workload: &Workload, seed: u64) -> Result<Self, String> {
        let usual = dialect.usual_method();
        let Some(name) = workload.method.as_deref().filter(|_| dialect != Dialect::Echo).or(usual) else {
            return Err("malformed config: 'method' not specified".to_owned());
        };
        let mut words = TemplateWords::of(seed);
        let parameters = &workload.parameters;
        check_keys(dialect, parameters)?;
        let (template, retrieves) = match dialect {
            Dialect::Memcache | Dialect::Redis | Dialect::RedisInline => {
                let found = dialect.methods().iter().find(|method| method.name == name);
                let method = found.ok_or_else(|| unknown_method(dialect, name))?;
                (command(&mut words, dialect, method, parameters)?, method.retrieves)
            }
            Dialect::Echo => (payload(&mut words, parameters)?, false),
            Dialect::Ping if name != "ping" => return Err(format!("invalid method: {name}; expected ping")),
            Dialect::Ping if !parameters.is_empty() => return Err(too_many(parameters.len(), name)),
            Dialect::Ping => ("PING".to_owned(), false),
            Dialect::Thrift => (thrift::call(name, parameters, &mut words)?, false),
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

fn unknown_method(dialect: Dialect, name: &str) -> String {
    let names: Vec<&str> = dialect.methods().iter().map(|method| method.name).collect();
    format!("invalid command: {name}; expected {}", names.join(", "))
}

fn too_many(given: usize, method: &str) -> String {
    format!("invalid number of params ({given}) for method {method}; expected none")
}

/// Keys that belong to another protocol would have no effect.
fn check_keys(dialect: Dialect, parameters: &[Parameter]) -> Result<(), String> {
    for (index, parameter) in parameters.iter().enumerate() {
        let of_thrift = [
            ("id", parameter.id.is_some()),
            ("type", parameter.kind.is_some()),
            ("contains", parameter.contains.is_some()),
        ];
        if let Some((key, _)) =
            of_thrift.into_iter().find(|(_, is_given)| *is_given && dialect != Dialect::Thrift)
        {
            return Err(format!("parameter {index}: '{key}' requires protocol thrift"));
        }
    }
    Ok(())
}

fn command(
    words: &mut TemplateWords,
    dialect: Dialect,
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
    if dialect == Dialect::Memcache
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc_perf::config::Config;

    fn request(dialect: &str, workload: &str) -> Result<Request, String> {
        let config = Config::parse("f", &format!("[[workload]]\n{workload}"))
            .unwrap_or_else(|error| panic!("{error}"));
        Request::of(Dialect::find(dialect).unwrap(), &config.workloads[0], 7)
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
        let table = [
            ("memcache", "method = 'frob'", "invalid command: frob; expected get, gets, set, add,"),
            (
                "redis",
                "method = 'prepend'\nparameter = [{}]",
                "invalid command: prepend; expected get, set, hget,",
            ),
            ("memcache", "", "invalid number of params (0) for method get; expected 1"),
            ("memcache", "parameter = [{}, {}]", "invalid number of params (2) for method get; expected 1"),
            (
                "memcache",
                "parameter = [{size = 300}]",
                "parameter 0: size 300 was given; expected a key of 1 to 250 bytes",
            ),
            ("memcache", "parameter = [{size = 0}]", "parameter 0: size 0 was given; expected a key"),
            ("memcache", "parameter = [{id = 1}]", "parameter 0: 'id' requires protocol thrift"),
            ("memcache", "parameter = [{num = 5}]", "parameter 0: num requires style = \"random\""),
            (
                "redis",
                "method = 'set'\nparameter = [{style = 'random', regenerate = true, num = 5}, {style = 'random', regenerate = true, num = 5}]",
                "parameter 1: num was given; expected one parameter with num",
            ),
            (
                "echo",
                "parameter = [{}, {}]",
                "malformed config: too many parameters for echo: 2; expected one",
            ),
            ("ping", "method = 'pong'", "invalid method: pong; expected ping"),
            ("ping", "parameter = [{}]", "invalid number of params (1) for method ping; expected none"),
            ("thrift", "", "malformed config: 'method' not specified"),
        ];
        for (dialect, workload, message) in table {
            let error = request(dialect, workload).unwrap_err();
            assert!(error.starts_with(message), "{workload}: {error}");
        }
        let error = Dialect::find("foo").unwrap_err();
        assert_eq!(
            error,
            "Protocol foo not known (--protocol); expected memcache, redis, redis-resp, redis-inline, echo, ping, thrift"
        );
    }
}
