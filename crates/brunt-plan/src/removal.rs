//! The commands that remove the keys of a plan's data sets: `brunt load --delete` with the options that decide which keys these are, and
//! where they lie.
//!
//! Invariant: a command has no secret. Keys of windows move on while a run goes on, and those of traces are not ours: nothing removes them.

use crate::mix::{Command, Mix};
use crate::op::OpKind;
use crate::plan::{DataSet, Placement, Plan, Transport};
use crate::resolve::{DEFAULT_CONNECTIONS, DEFAULT_DATA_SEED, DEFAULT_KEY_SIZE};
use crate::size::SizeDistribution;
use crate::spec::{OPTIONS, OptionForm, PlanOption, PlanSpec};
use crate::units::Count;
use crate::url::ServerList;
use toml::{Table, Value};

const OF_RUN: &str = "cluster, tls-ca, tls-cert, tls-key, tls-server-name, tls-insecure, user, database, ip-version, hash-field";
/// Commands that store nothing, of those that are measured.
const NO_STORES: &str = "BITCOUNT DBSIZE DEL DELETE EXISTS EXPIRE GET GETBIT GETEX GETRANGE GETS HDEL HEXISTS HGET HGETALL HLEN HMGET \
    INFO LINDEX LLEN LRANGE MD MGET PERSIST PING PTTL SCAN SCARD SISMEMBER SMEMBERS SREM STRLEN TOUCH TTL TYPE \
    UNLINK XLEN XRANGE ZCARD ZCOUNT ZRANGE ZRANK ZREM ZSCORE";
const OF_CLASS: &str = "keys, key-size, prefix, key-form, first-key, value-form, replicas";

impl Plan {
    /// A command for each data set that the plan stores, or may store, on servers of the user.
    pub fn removal_commands(&self) -> Vec<String> {
        self.data_sets().iter().filter_map(|set| self.removal_command(set)).collect()
    }

    /// What the run stores and no command removes, if it does: it is in no data set.
    pub fn kept(&self) -> Option<String> {
        let stores = |Command { template, .. }: &Command| {
            let name = template.split_whitespace().next().unwrap_or_default().trim_matches(['"', '\'']);
            !NO_STORES.split(' ').any(|held| held.eq_ignore_ascii_case(name))
        };
        let writing = || self.classes.iter().filter(|class| class.writes());
        let whose = [
            ("own commands", !self.protocol.is_stateless() && self.commands.iter().any(stores)),
            ("traces", writing().any(|class| class.trace.is_some())),
            ("windows", writing().any(|class| class.popularity.window().is_some())),
        ];
        let (whose, _) = whose.into_iter().find(|(_, stays)| *stays)?;
        Some(format!("keys that {whose} store stay: brunt load --delete does not know them"))
    }

    fn removal_command(&self, set: &DataSet<'_>) -> Option<String> {
        let is_drawn = set.classes.iter().any(|class| self.classes[*class].trace.is_none());
        let home: Option<Vec<_>> = set.home.iter().cloned().collect();
        let home = home.filter(|_| is_drawn && set.windows.is_none())?;
        let class = &self.classes[set.classes[0]];
        let path = class.path_of(OpKind::Set);
        let transport = self.servers[usize::from(*path.servers.first()?)].transport;
        let mut spec = PlanSpec::default();
        spec.run = self.spec.run.clone().take(OF_RUN);
        spec.base = self.spec.classes[set.classes[0]].clone().take(OF_CLASS);
        let (run, base) = (&mut spec.run, &mut spec.base);
        run.protocol = Some(class.protocol);
        run.transport = (!matches!(transport, Transport::Tcp | Transport::Unix)).then_some(transport);
        run.placement = (home.len() > 1 && !self.is_cluster).then_some(self.placement);
        run.data_seed = Some(Count(self.data_seed)).filter(|seed| *seed != DEFAULT_DATA_SEED);
        if self.placement == Placement::ByThread {
            run.threads = Some(Count(self.threads.into()));
        }
        // Each server needs one.
        if self.placement == Placement::ByThread || self.server_count() as u64 > DEFAULT_CONNECTIONS {
            base.connections = Some(Count(class.connections.into()));
        }
        let is_bare = class.keyspace.prefix.is_empty();
        base.key_size =
            base.key_size.take().filter(|size| *size != SizeDistribution::Fixed(DEFAULT_KEY_SIZE));
        base.mix = set.has_counters.then(|| Mix::of([(OpKind::Incr, 1)]));
        let mut words = vec!["brunt load --delete".to_owned()];
        let servers = ServerList::of(&home)?;
        words.extend(servers.addresses().map(|server| format!("-s {}", quoted(&server.to_string()))));
        words.extend(arguments(&spec));
        let file = self.login.password.as_ref().map(|password| password.file.as_deref().unwrap_or("FILE"));
        words.extend(file.map(|file| format!("--password {}", quoted(&format!("@{file}")))));
        words.extend(is_bare.then(|| "--yes".to_owned()));
        Some(words.join(" "))
    }
}

/// The options that are given, as arguments in the order of the help.
fn arguments(spec: &PlanSpec) -> Vec<String> {
    let table: Table = spec.to_toml().parse().unwrap_or_default();
    let argument = |option: &PlanOption| {
        let value = match table.get(&option.key())? {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        Some(match option.form {
            OptionForm::Switch(switched) if option.has_flag => match value == switched.to_string() {
                true => format!("--{}", option.flag()),
                false => return None,
            },
            // A value may be empty, or begin with a hyphen.
            _ if option.has_flag && (value.is_empty() || value.starts_with('-')) => {
                format!("--{}={}", option.key(), if value.is_empty() { value } else { quoted(&value) })
            }
            _ if option.has_flag => format!("--{} {}", option.key(), quoted(&value)),
            _ => format!("--set {}", quoted(&format!("{}={value}", option.key()))),
        })
    };
    OPTIONS.iter().filter_map(argument).collect()
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.,:/=@+%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use crate::resolve::tests::{cases, resolved};

    #[test]
    fn commands_have_what_decides_which_keys_there_are() {
        let table = cases(
            r#"
            '' => ''
            server = 'a' => -s a:11211 --protocol memcached-text --keys 100000 --prefix brunt:
            server = 'a'\ncluster = false\nprefix = '-x' => -s a:11211 --protocol memcached-text --keys 100000 --prefix=-x
            server = 'rediss://me:pw@a/3'\nkeys = 10\nkey-size = 12\nhash-field = 2
                => -s a:6379 --protocol resp2 --set user=me --set database=3 --set transport=tls --set hash-field=2 --keys 10 --key-size fixed:12 --prefix brunt: --password @FILE
            server = 'redis://me@a'\npassword = '@the pw'
                => -s a:6379 --protocol resp2 --set user=me --keys 100000 --prefix brunt: --password '@the pw'
            server = ['a', 'b']\nplacement = 'ketama'\nreplicas = 1\nprefix = "it's"
                => -s a:11211 -s b:11211 --protocol memcached-text --placement ketama --keys 100000 --prefix 'it'\''s'
            server = 'unix:/x'\nmix = 'incr'\nprefix = ''\ndata-seed = 7
                => -s unix:/x --protocol memcached-text --mix incr=1 --keys 100000 --prefix= --set data-seed=7 --yes
            server = ['a', 'b']\nplacement = 'by-thread'\nconnections = 4\nthreads = 2
                => -s a:11211 -s b:11211 --protocol memcached-text --placement by-thread --connections 4 --threads 2 --keys 100000 --prefix brunt:
            protocol = 'resp2'\nserver = ['a', 'b']\ncluster = true
                => -s a:6379 -s b:6379 --protocol resp2 --cluster --keys 100000 --prefix brunt:
            server = 'a'\nkey-form = 'random'\nfirst-key = 5\nkey-size = 'uniform:20,30'
                => -s a:11211 --protocol memcached-text --keys 100000 --key-size uniform:20,30 --prefix brunt: --set key-form=random --set first-key=5
            server = 'a'\n[[class]]\n[[class]]\nprefix = 'x'\nserver = 'b:5'
                => -s a:11211 --protocol memcached-text --keys 100000 --prefix brunt: & -s b:5 --protocol memcached-text --keys 100000 --prefix x
            server = 'a'\ntransport = 'udp'
                => -s a:11211 --protocol memcached-text --set transport=udp --keys 100000 --prefix brunt:
            server = 'a'\npopularity = 'window:10' => ''
            server = 'a'\ntrace = 't'\ntrace-layout = 'mutilate-read-write' => ''
            server = 'a'\ntrace = 't'\ntrace-layout = 'mutilate-all-gets' => ''
        "#,
        );
        for [toml, expected] in table {
            let commands = expected.split(" & ").filter(|rest| !rest.is_empty());
            let expected: Vec<_> = commands.map(|rest| format!("brunt load --delete {rest}")).collect();
            let plan = resolved(toml).unwrap();
            assert_eq!(plan.removal_commands(), expected, "{toml}");
            assert_eq!(
                plan.kept().is_some(),
                toml.contains("window") || toml.contains("read-write"),
                "{toml}"
            );
        }
    }

    #[test]
    fn commands_that_store_are_named() {
        for (command, stores) in [
            ("INCR c:{key}", true),
            ("SADD s:{key} x", true),
            ("get {key}", false),
            ("INFO", false),
            ("delete {key}", false),
        ] {
            let plan =
                resolved(&format!("protocol = 'resp2'\nserver = 'a'\ncommand = ['{command}']")).unwrap();
            assert_eq!(plan.kept().is_some(), stores, "{command}");
        }
    }
}
