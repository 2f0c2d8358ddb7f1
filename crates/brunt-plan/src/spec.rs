//! The options of a run as given on the command line or in a plan file, without defaults.
//!
//! Flags and file use the same names and value types; [`PlanSpec::overlay`] lets flags win. Defaults and checks between
//! options are [`crate::resolve`]'s business. A resolved plan converts back, so that it can be printed as a file that
//! runs the same again.

use crate::arrival::Arrival;
use crate::command::CommandSpec;
use crate::cpus::CpuList;
use crate::gather::Gather;
use crate::host_role::HostRole;
use crate::label::Label;
use crate::login::Password;
use crate::mix::Mix;
use crate::objective::Fraction;
use crate::op::OpKind;
use crate::plan::{
    Class, IoChoice, IpVersion, KeyForm, Load, MeterKind, OnMiss, OpRoute, OpenRate, Placement, Plan,
    Profile, Protocol, Reconnect, Refill, SessionScope, Target, Timestamps, TraceLayout, Transport,
    ValueForm, Wait,
};
use crate::popularity::{Drift, Popularity};
use crate::profile::RateProfile;
use crate::quantile::Percentiles;
use crate::server::ServerAddress;
use crate::server_list::ServerList;
use crate::size::SizeDistribution;
use crate::units::{Count, DurationNs, Rate};
use crate::until::Until;
use crate::url::NamedServer;
use crate::warmup::Warmup;
use serde::{Deserialize, Serialize};

/// Declares the options once: the two tables with their overlay, and the shape of a plan file, in which both stand at
/// the top level. (`#[serde(flatten)]` would be shorter, but it cannot be combined with `deny_unknown_fields`, and it
/// loses the position of an error.)
macro_rules! options {
    (
        run { $($run:ident: $run_type:ty),+ $(,)? }
        class { $($class:ident: $class_type:ty),+ $(,)? }
        only_class { $($own:ident: $own_type:ty),+ $(,)? }
    ) => {
        options!(@table
            "The options that belong to the run as a whole." RunSpec { $($run: $run_type),+ });
        options!(@table
            "The options that belong to a class of traffic. At the top level of a plan file those that the run has none of are the defaults of every class."
            ClassSpec { $($class: $class_type,)+ $($own: $own_type),+ });

        /// The shape of a plan file.
        #[derive(Default, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
        struct PlanFile {
            $(#[serde(skip_serializing_if = "Option::is_none")] $run: Option<$run_type>,)+
            $(#[serde(skip_serializing_if = "Option::is_none")] $class: Option<$class_type>,)+
            #[serde(rename = "class", skip_serializing_if = "Vec::is_empty")]
            classes: Vec<ClassSpec>,
        }

        impl From<PlanFile> for PlanSpec {
            fn from(file: PlanFile) -> Self {
                Self {
                    run: RunSpec { $($run: file.$run),+ },
                    base: ClassSpec { $($class: file.$class,)+ ..ClassSpec::default() },
                    classes: file.classes,
                }
            }
        }

        impl From<PlanSpec> for PlanFile {
            fn from(spec: PlanSpec) -> Self {
                Self { $($run: spec.run.$run,)+ $($class: spec.base.$class,)+ classes: spec.classes }
            }
        }
    };
    (@table $doc:literal $name:ident { $($field:ident: $type:ty),+ }) => {
        #[doc = $doc]
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
        #[allow(missing_docs, reason = "the fields are the flags of the same names, documented in the help")]
        pub struct $name {
            $(#[serde(skip_serializing_if = "Option::is_none")] pub $field: Option<$type>,)+
        }

        impl $name {
            /// The names of all options, as flags have them.
            pub fn names() -> Vec<String> {
                vec![$(stringify!($field).replace('_', "-")),+]
            }
            /// Lets every option that `over` gives replace ours.
            pub fn overlay(&mut self, over: Self) {
                $(if over.$field.is_some() { self.$field = over.$field; })+
            }
            /// The names of the options that are given.
            pub fn given(&self) -> Vec<String> {
                let mut names = Vec::new();
                $(if self.$field.is_some() { names.push(stringify!($field).replace('_', "-")); })+
                names
            }
        }
    };
}

options! {
    run {
        server: ServerList,
        agent: Vec<String>,
        measure_rate: Rate,
        measure_connections: Count,
        measure_depth: Count,
        placement: Placement,
        cluster: bool,
        protocol: Protocol,
        user: String,
        password: Password,
        database: Count,
        client_name: String,
        hash_field: Count,
        trailing_blank: bool,
        command: Vec<CommandSpec>,
        transport: Transport,
        ip_version: IpVersion,
        nodelay: bool,
        linger: DurationNs,
        send_buffer: Count,
        receive_buffer: Count,
        tls_ca: String,
        tls_cert: String,
        tls_key: String,
        tls_server_name: String,
        tls_insecure: bool,
        threads: Count,
        cpus: CpuList,
        io: IoChoice,
        wait: Wait,
        profile: Profile,
        refill: Refill,
        gather: Gather,
        timeout: DurationNs,
        connect_timeout: DurationNs,
        drain: DurationNs,
        time: DurationNs,
        until: Until,
        max_time: DurationNs,
        requests: Count,
        warmup: Warmup,
        preload: bool,
        verify: Fraction,
        server_stats: bool,
        seed: Count,
        data_seed: Count,
        interval: DurationNs,
        timestamps: Timestamps,
        meter: Vec<MeterKind>,
        percentiles: Percentiles,
        label: Vec<Label>,
        samples_max: Count,
    }
    class {
        name: String,
        rate: Rate,
        rate_profile: RateProfile,
        arrival: Arrival,
        think: DurationNs,
        connections: Count,
        client_connections: Count,
        depth: Count,
        mix: Mix,
        delta: SizeDistribution,
        multiget: Count,
        ttl: DurationNs,
        noreply: bool,
        on_miss: OnMiss,
        purge: Count,
        trace: String,
        trace_layout: TraceLayout,
        keys: Count,
        prefix: String,
        key_form: KeyForm,
        first_key: Count,
        key_size: SizeDistribution,
        value_size: SizeDistribution,
        value_form: ValueForm,
        popularity: Popularity,
        drift: Drift,
        connect_rate: Rate,
        connect_arrival: Arrival,
        call_rate: Rate,
        call_arrival: Arrival,
        calls_per_connection: Count,
        connections_total: Count,
        reconnect_every: DurationNs,
        reconnect: Reconnect,
        runs_on: HostRole,
        replicas: Count,
    }
    only_class {
        server: ServerList,
        protocol: Protocol,
        transport: Transport,
        command: Vec<CommandSpec>,
        route: Vec<RouteSpec>,
        connections_of: String,
    }
}

/// A way of its own for some kinds of operations of a class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct RouteSpec {
    /// Which kinds.
    pub ops: Vec<OpKind>,
    /// To which servers; none: the class's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerList>,
    /// By what; none: what carries the class's other operations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<Transport>,
}

/// A whole plan as requested.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanSpec {
    /// Options of the run.
    pub run: RunSpec,
    /// Class options at the top level: defaults of every class.
    pub base: ClassSpec,
    /// `[[class]]` tables; empty means one class made of `base` alone.
    pub classes: Vec<ClassSpec>,
}

impl PlanSpec {
    /// Reads a plan file. The error is ready for a user: it shows the line and column, and what is accepted there; the line
    /// itself only where no password can be in it.
    pub fn from_toml(text: &str) -> Result<Self, String> {
        toml::from_str::<PlanFile>(text).map(Self::from).map_err(|error| explain(&error, text))
    }

    /// Writes a plan file that reads back as this.
    pub fn to_toml(&self) -> String {
        // Serialising into a string fails on types that TOML lacks only, and this shape has none of them.
        toml::to_string(&PlanFile::from(self.clone())).unwrap_or_else(|error| format!("# {error}\n"))
    }

    /// Lets the flags win over a plan file. Class options on the command line change the only class there is; with
    /// several `[[class]]` tables they would be ambiguous, and their names are returned as an error.
    pub fn overlay(&mut self, run: RunSpec, class: ClassSpec) -> Result<(), Vec<String>> {
        self.run.overlay(run);
        match self.classes.as_mut_slice() {
            [] => self.base.overlay(class),
            [only] => only.overlay(class),
            _ if class.given().is_empty() => {}
            _ => return Err(class.given()),
        }
        Ok(())
    }
}

/// What a line may hold that gives a password, its name misspelt or not, in lower case. Too much hidden is a pity, too little a
/// password in a log.
const SECRET_MARKS: [&str; 8] = ["@", "pas", "pss", "psw", "pw", "word", "wrd", "secret"];

/// What is wrong with a plan file, for a user: with the line, unless that may hold a password.
fn explain(error: &toml::de::Error, text: &str) -> String {
    let begin = error.span().map_or(0, |span| text.floor_char_boundary(span.start));
    let (before, behind) = text.split_at(begin);
    let line_begin = before.rfind('\n').map_or(0, |end| end + 1);
    // A value of several lines is named in its first.
    let named = before[..line_begin].rfind('=').filter(|_| !line_of(text, line_begin).contains('='));
    let shown_begin = named.map_or(line_begin, |equals| text[..equals].rfind('\n').map_or(0, |end| end + 1));
    let end = behind.find('\n').map_or(text.len(), |len| begin + len);
    let shown = &text[shown_begin..end];
    let lower = shown.to_lowercase();
    if !SECRET_MARKS.iter().any(|mark| lower.contains(mark)) {
        return error.to_string();
    }
    let message = error.message();
    // What was expected stands last and is ours; what was found stands before and is the user's, but for the name of an option.
    let kept = match message.rfind("expected ") {
        _ if message.starts_with("unknown field `") && !message.contains('@') => message,
        Some(at) if !shown.contains(message[at..].trim_start_matches("expected ")) => &message[at..],
        _ => "not understood",
    };
    let (line, column) = (before.matches('\n').count() + 1, text[line_begin..begin].chars().count() + 1);
    format!("at line {line}, column {column}, which is not shown because a password may be in it: {kept}\n")
}

/// The line that begins here.
fn line_of(text: &str, begin: usize) -> &str {
    text[begin..].lines().next().unwrap_or_default()
}

impl Serialize for PlanSpec {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        PlanFile::from(self.clone()).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for PlanSpec {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        PlanFile::deserialize(deserializer).map(Self::from)
    }
}

/// A class of a plan, with what is its own of what the run has, too.
fn of_class(plan: &Plan, class: &Class) -> ClassSpec {
    let (mut call_rate, mut call_arrival) = (None, None);
    let (rate, rate_profile, arrival, think) = match &class.load {
        Load::Open { rate: OpenRate::PerConnection(rate), arrival } => {
            (call_rate, call_arrival) = (Some(*rate), Some(arrival.clone()));
            (None, None, None, None)
        }
        Load::Open { rate: OpenRate::Constant(rate), arrival } => {
            (Some(*rate), None, Some(arrival.clone()), None)
        }
        Load::Open { rate: OpenRate::Profile(profile), arrival } => {
            (None, Some(profile.clone()), Some(arrival.clone()), None)
        }
        Load::Closed { think } => (None, None, None, Some(*think)),
    };
    let own = class.own_destination.as_ref();
    ClassSpec {
        name: Some(class.name.clone()),
        rate,
        rate_profile,
        arrival,
        think,
        connections: class.connections_of.is_none().then(|| Count(u64::from(class.connections))),
        client_connections: match class.sessions {
            SessionScope::Client { connections } => Some(Count(u64::from(connections))),
            SessionScope::Worker | SessionScope::Connection => None,
        },
        depth: class.connections_of.is_none().then(|| Count(u64::from(class.depth))),
        command: None,
        mix: class.trace.is_none().then(|| class.mix.clone()),
        purge: class.purge.map(Count),
        trace: class.trace.as_ref().map(|trace| trace.file.clone()),
        trace_layout: class.trace.as_ref().map(|trace| trace.layout),
        multiget: class.mix.contains(crate::op::OpKind::Mget).then_some(Count(u64::from(class.multiget))),
        delta: (class.delta != SizeDistribution::Fixed(1)).then(|| class.delta.clone()),
        ttl: (class.ttl_s > 0).then(|| DurationNs::from_secs(u64::from(class.ttl_s))),
        noreply: class.noreply.then_some(true),
        on_miss: (class.on_miss != OnMiss::Ignore).then_some(class.on_miss),
        // Objects of windows are numbered without end.
        keys: class.popularity.window().is_none().then_some(Count(class.keyspace.keys)),
        prefix: Some(class.keyspace.prefix.clone()),
        key_form: (class.keyspace.key_form != KeyForm::default()).then_some(class.keyspace.key_form),
        first_key: (class.keyspace.first_key > 0).then_some(Count(class.keyspace.first_key)),
        key_size: Some(class.keyspace.key_size.clone()),
        value_size: Some(class.keyspace.value_size.clone()),
        value_form: (class.keyspace.value_form != ValueForm::default()).then_some(class.keyspace.value_form),
        popularity: Some(class.popularity.clone()),
        drift: class.drift,
        connect_rate: class.lifetime.connect_rate,
        connect_arrival: class.lifetime.connect_arrival.clone(),
        call_rate,
        call_arrival,
        calls_per_connection: class.lifetime.calls.map(Count),
        connections_total: class.lifetime.total.map(Count),
        reconnect_every: class.lifetime.reconnect_every,
        reconnect: (class.reconnect != Reconnect::Always).then_some(class.reconnect),
        runs_on: (class.host_role != HostRole::Agents).then_some(class.host_role),
        replicas: (class.replicas > 1).then_some(Count(u64::from(class.replicas))),
        server: own.and_then(|own| listed(&own.servers)),
        protocol: own.map(|own| own.protocol).filter(|protocol| *protocol != plan.protocol),
        transport: own.map(|own| own.transport).filter(|transport| *transport != plan.transport),
        connections_of: class.connections_of.clone(),
        route: (!class.routes.is_empty()).then(|| class.routes.iter().map(of_route).collect()),
    }
}

fn of_route(route: &OpRoute) -> RouteSpec {
    let OpRoute { ops, servers, transport } = route;
    RouteSpec { ops: ops.clone(), server: listed(servers), transport: Some(*transport) }
}

/// Servers as a plan names them, if it does.
fn listed(servers: &[ServerAddress]) -> Option<ServerList> {
    let named = || ServerList(servers.iter().cloned().map(NamedServer::Plain).collect());
    (!servers.is_empty()).then(named)
}

impl From<&Plan> for PlanSpec {
    fn from(plan: &Plan) -> Self {
        let run = RunSpec {
            server: match &plan.target {
                Target::Embedded => None,
                Target::Servers(servers) => listed(servers),
            },
            agent: (!plan.agents.is_empty()).then(|| plan.agents.clone()),
            // They stand in the plan as a class.
            measure_rate: None,
            measure_connections: None,
            measure_depth: None,
            placement: (plan.has_placement() && !plan.is_cluster).then_some(plan.placement),
            cluster: plan.is_cluster.then_some(true),
            protocol: Some(plan.protocol),
            user: plan.login.user.clone(),
            password: plan.login.password.clone(),
            database: (plan.login.database > 0).then_some(Count(u64::from(plan.login.database))),
            client_name: plan.login.client_name.clone(),
            hash_field: plan.hash_field.map(|bytes| Count(u64::from(bytes))),
            trailing_blank: plan.trailing_blank.then_some(true),
            command: (!plan.commands.is_empty())
                .then(|| plan.commands.iter().map(CommandSpec::from).collect()),
            transport: Some(plan.transport),
            ip_version: (plan.ip_version != IpVersion::Any).then_some(plan.ip_version),
            nodelay: (!plan.sockets.nodelay).then_some(false),
            linger: plan.sockets.linger,
            send_buffer: plan.sockets.send_buffer.map(|bytes| Count(u64::from(bytes))),
            receive_buffer: plan.sockets.receive_buffer.map(|bytes| Count(u64::from(bytes))),
            tls_ca: plan.tls.ca.clone(),
            tls_cert: plan.tls.identity.as_ref().map(|identity| identity.certificate.clone()),
            tls_key: plan.tls.identity.as_ref().map(|identity| identity.key.clone()),
            tls_server_name: plan.tls.server_name.clone(),
            tls_insecure: plan.tls.is_insecure.then_some(true),
            threads: Some(Count(u64::from(plan.threads))),
            cpus: (!plan.cpus.is_empty()).then(|| CpuList(plan.cpus.clone())),
            io: Some(plan.io),
            wait: Some(plan.wait),
            profile: (plan.profile != Profile::Latency).then_some(plan.profile),
            refill: (plan.refill != plan.profile.refill()).then_some(plan.refill),
            gather: (plan.gather != plan.profile.gather()).then_some(plan.gather),
            timeout: Some(plan.timeout),
            connect_timeout: (plan.connect_timeout != plan.timeout).then_some(plan.connect_timeout),
            drain: Some(plan.drain),
            time: plan.stop.until.as_ref().map_or(plan.stop.time, |early_stop| Some(early_stop.first_look)),
            until: plan.stop.until.as_ref().map(|early_stop| early_stop.until.clone()),
            max_time: plan.stop.until.as_ref().and(plan.stop.time),
            requests: plan.stop.requests.map(Count),
            warmup: Some(plan.warmup),
            preload: Some(plan.preload),
            verify: plan.verify,
            server_stats: (!plan.server_stats).then_some(false),
            seed: Some(Count(plan.seed)),
            data_seed: Some(Count(plan.data_seed)),
            interval: plan.interval,
            meter: (!plan.meters.is_empty()).then(|| plan.meters.clone()),
            label: (!plan.labels.is_empty()).then(|| plan.labels.clone()),
            percentiles: (!plan.percentiles.is_empty()).then(|| Percentiles(plan.percentiles.clone())),
            timestamps: (plan.timestamps != Timestamps::Off).then_some(plan.timestamps),
            samples_max: (plan.samples_max > 0).then_some(Count(plan.samples_max)),
        };
        Self {
            run,
            base: ClassSpec::default(),
            classes: plan.classes.iter().map(|class| of_class(plan, class)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plan_file_errors_hide_passwords() {
        // (plan, where, what else is said)
        let table = [
            ("password = [12345]", "line 1, column 12", ""),
            ("\npasword = 'hunter2'", "line 2, column 1", "unknown field `pasword`"),
            ("password = 'hunter2", "line 1", ""),
            ("password = '''\nhunter2", "line ", ""),
            ("keys = 1\nserver = ['redis://me:hunter2@a', 'x y']", "line 2, column ", "expected HOST[:PORT]"),
            ("server = 'me:hunter2@a' 1", "line 1", ""),
        ];
        for (toml, place, said) in table {
            let error = PlanSpec::from_toml(toml).unwrap_err();
            assert!(!error.contains("hunter2") && !error.contains("12345"), "{toml}: {error}");
            assert!(error.contains(place) && error.contains(said), "{toml}: {error}");
        }
        let error = PlanSpec::from_toml("rate = 5\nkeyz = 7").unwrap_err();
        assert!(error.contains("2 | keyz = 7"), "{error}");
    }
}
