//! The command line: names, help and value types. What they mean together is decided in `brunt-plan`.
//!
//! Not a place for defaults: an option that is not given stays `None`, so that a plan file can give it.

#![allow(
    rustdoc::broken_intra_doc_links,
    reason = "doc comments here are the help text: brackets mean optional"
)]

use crate::exit::Failure;
use crate::http::HttpAddress;
use crate::plan_flags::{EVERY_OPTION, OF_LOAD, PlanFlags, WITHOUT_AGENTS, WordParser};
use crate::presentation::{LayoutFlags, Presentation};
use crate::screen;
use crate::usage_error::is_number;
use brunt_compat::tools::{self, TOOLS, Tool};
use brunt_plan::cpus::CpuList;
use brunt_plan::objective::{Fraction, Objective, Requirement};
use brunt_plan::plan::TraceLayout;
use brunt_plan::resolve::fleet::FLEET_MAX;
use brunt_plan::sweep::Sweep;
use brunt_plan::units::{ByteSize, DurationNs, Rate};
use brunt_plan::url::NamedServer;
use brunt_report::file_type::{FigureWidth, FileRequest, FileType, SubjectKind};
use brunt_server::{Division, Drip, Every, Listen, Outage, Service, Stall, WireProtocol};
use brunt_stats::change::RUNS_MAX;
use brunt_stats::check::{CheckId, Judgement};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{
    Arg, ArgAction, ArgMatches, Args, CommandFactory, Parser, Subcommand, ValueEnum, ValueHint, value_parser,
};
use clap_complete::aot::Shell;
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::str::FromStr;

/// Load generator for memcached and Redis that states how far its numbers can be trusted
#[derive(Debug, Parser)]
#[command(name = "brunt", version, max_term_width = 110)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

/// Examples behind the help of all commands.
pub(crate) const AFTER_HELP: &str = "\
Examples:
  brunt run                                          measure the reference server, started for the occasion
  brunt run -s 127.0.0.1:11211 -c 16 -t 10s          closed loop: 16 connections, each asks as soon as it has its reply
  brunt run -s cache:11211 -r 50k -o out.json        open loop: 50000 requests/s on a Poisson schedule
  brunt doctor -s cache:11211 -c 10000               is this host fit for ten thousand connections
  brunt calibrate                                    what this tool itself adds to latencies on this host";

/// A test passes every example in the last column to the options that its heading names.
/// `after_help` and not `after_long_help`: a long help would put every flag and its meaning on lines of their own.
const DISTRIBUTIONS: &str = "\
Distributions of sizes (--key-size, --value-size: bytes) and of gaps (--arrival: stretched to the rate):
  fixed:N, or N           always the same                                    4KiB
  uniform:MIN,MAX         evenly between                                     uniform:10,1000
  normal:MEAN,SD          Gauss's                                            normal:200,50
  exponential:LAMBDA      with the mean 1/LAMBDA                             exponential:0.005
  pareto:LOC,SCALE,SHAPE  generalised Pareto                                 pareto:0,214.476,0.348238
  gev:LOC,SCALE,SHAPE     generalised extreme value                          gev:30.7984,8.20449,0.078688
  lognormal:MU,SIGMA      the logarithm has the mean MU and the SD SIGMA     lognormal:5,1
  discrete:V=W,...        these values, with these weights                   discrete:100=3,1000=1
  fb_key fb_value fb_ia   key sizes, value sizes and gaps of a pool (ETC)    fb_value
  mcperf:DRAW@CLIENT      what mcperf draws by d5, u1,16, e50 or s5          mcperf:u1,16@3

Distributions of arrivals (--arrival, and the keys connect-arrival and call-arrival):
  poisson                 independent of each other                          poisson
  uniform                 evenly spaced                                      uniform
  mmpp:PEAK,BURST,DUTY    bursts of PEAK x rate, BURST long, DUTY of time    mmpp:5,100ms,0.1

Distributions of popularity (--popularity):
  uniform                 every key alike                                    uniform
  zipf:E                  the r-th key in proportion to 1/r^E                zipf:0.99
  hotspot:KEYS,OPS        this fraction of the keys gets that of the ops     hotspot:0.1,0.9
  sequential              one after the other                                sequential
  latest:E                zipf, counted back from the newest key             latest:0.99
  gaussian:SD             around the middle key; SD is a fraction of keys    gaussian:0.1

@FILE stands for the lines of a file, joined by commas; # begins a comment.";

/// A test parses every line.
const SCAN_EXAMPLES: &str = "\
Examples:
  brunt scan                                         up to the limit of a server that brunt starts
  brunt scan -s cache:11211 -c 64                    the same for a server of yours
  brunt scan --over rate=10k,20k,40k --repeat 6      these rates, six times each
  brunt scan --over connections=1,2,4,8,16           closed loop with more connections
  brunt scan -r 20k --over value-size=100,1KiB       larger values at one rate

Takes the options of brunt run but --assert, such as --repeat: brunt run --help";

/// A test parses every line.
const SEARCH_EXAMPLES: &str = "\
Examples:
  brunt search --assert 'p99 < 1ms'                  of a server that brunt starts
  brunt search -s cache:11211 --assert 'p99 < 1ms'   of a server of yours
  brunt search --assert 'get.p99 < 1ms' --assert 'p99.9 < 5ms' --from 10k --to 500k

Takes the options of brunt run that shape its load, but --rate, --requests and --repeat:
brunt run --help";

/// What a calibration searches for: as much of the p99 may be the client's in any run.
pub(crate) const CALIBRATION_OBJECTIVE: &str = "client.p99 <= 10us";

/// A test parses every line. Each paragraph is one line: the terminal's width breaks it.
const CALIBRATE_EXAMPLES: &str = "\
Searches for the highest rate at which the client's part of the p99 stays within 10 us, against the reference server on this host. Leave the \
host alone meanwhile: what else runs on it is taken for the client.

The result is kept in $XDG_STATE_HOME/brunt/calibration.json, by default below ~/.local/state. Later runs with as many threads that wait in the \
same way show it in their report.

Examples:
  brunt calibrate                                    as `brunt run` without options
  brunt calibrate -T 4 --cpus 0-3 -c 64              four threads, each pinned
  brunt calibrate --wait sleep -o calibration.html   never spins; a page

Takes the options of brunt search but --assert, --server and --agent: brunt run --help";

const DOCTOR_EXAMPLES: &str = "\
Takes every option of brunt run; -o writes the findings as JSON, and no other result.

Examples:
  brunt doctor                                 is this host fit for the defaults
  brunt doctor -s cache:11211 -c 10000         and for ten thousand connections";

/// Takes the options out of the help that are those of `brunt run`.
fn without_options_of_run(argument: Arg) -> Arg {
    let is_own = matches!(argument.get_help_heading(), None | Some("Campaign" | "Sides"));
    argument.hide_short_help(!is_own).hide_long_help(!is_own)
}

/// What is an assertion about a run is the objective of a search.
fn of_search(argument: Arg) -> Arg {
    let help = "Objective (repeatable): upper bound on a percentile of the response time, or on the client's part of one, e.g. 'p99 < 1ms', 'get.p99.9 < 5ms'";
    argument.help(help).help_heading("Campaign").display_order(0).required(true)
}

/// The objective of a calibration is no option.
fn of_calibration(argument: Arg) -> Arg {
    argument.default_value(CALIBRATION_OBJECTIVE)
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Preload, warm up, measure, and print the result with its status
    #[command(allow_negative_numbers = true, after_long_help = DISTRIBUTIONS)]
    Run(Box<Repeated>),
    /// Measure at several loads or sizes in turn: the latency-throughput curve with its knee
    #[command(allow_negative_numbers = true, after_help = SCAN_EXAMPLES, mut_args(without_options_of_run))]
    Scan(Box<Scan>),
    /// Find the highest rate at which every objective is met
    #[command(allow_negative_numbers = true, after_help = SEARCH_EXAMPLES, mut_arg("assert", of_search), mut_args(without_options_of_run))]
    Search(Box<Search>),
    /// Store the data set and confirm every key
    #[command(allow_negative_numbers = true, after_help = DISTRIBUTIONS)]
    Load(Box<Load>),
    /// Compare A with B: results of runs, or two servers live with their runs interleaved
    #[command(allow_negative_numbers = true, after_help = COMPARE_EXAMPLES)]
    Compare(Box<Compare>),
    /// Print a result in JSON again, with the exit code of its run; with figures alone, only what is wrong
    #[command(after_help = REPORT_EXAMPLES)]
    Report(Box<Report>),
    /// Check this host for a plan: limits, ports, CPUs, clock; exits 1 if a run would fail
    #[command(allow_negative_numbers = true, after_help = DOCTOR_EXAMPLES, mut_args(without_options_of_run))]
    Doctor(Box<Repeated>),
    /// Measure brunt's own latency and the rate up to which it stays small
    #[command(allow_negative_numbers = true, after_help = CALIBRATE_EXAMPLES, mut_arg("assert", of_calibration), mut_args(without_options_of_run))]
    Calibrate(Box<Search>),
    /// Print what a trace holds: rates, operations, sizes, popularity, hits of an LRU
    #[command(after_help = TRACE_EXAMPLES)]
    Trace(Trace),
    /// Generate load for a controller (brunt run --agent or --fleet)
    Agent(Box<Agent>),
    /// Print a job of Slurm, or manifests of Kubernetes, that run a plan with many agents
    #[command(subcommand)]
    Fleet(Fleet),
    /// Run the reference server: memcached and Redis, scripted timing and faults
    Serve(Box<Serve>),
    /// Print the manual page of a command, or write all of them
    #[command(after_help = MAN_EXAMPLES)]
    Man(Man),
    /// Print what a shell completes: bash, zsh or fish
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions(Completions),
}

/// A test parses every line.
const TRACE_EXAMPLES: &str = "\
Examples:
  brunt trace monitor.log                              what redis-cli monitor wrote
  brunt trace cluster52.zst --trace-layout twitter     brunt help trace-layout has all layouts
  brunt trace t.csv --cache 64MiB,1GiB -o trace.json   with these caches, as JSON";

/// Options of `brunt trace`.
#[derive(Debug, Args)]
pub(crate) struct Trace {
    /// A trace, plain, .zst or .gz
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// How it is written, e.g. twitter [default: what the file says of itself, which meta and monitor do]
    #[arg(long, value_name = "LAYOUT", value_parser = WordParser(&TraceLayout::NAMES, TraceLayout::from_str), hide_possible_values = true)]
    pub trace_layout: Option<TraceLayout>,
    /// Sizes of caches whose hits are simulated: LRU, filled after misses, charged with the bytes of keys and values alone, e.g. 64MiB,1GiB
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', num_args = 1, default_value = "64MiB,1GiB")]
    pub cache: Vec<ByteSize>,
    /// Print the K hottest keys, e.g. 5
    #[arg(long, value_name = "K", default_value_t = 0, value_parser = value_parser!(u16).range(0..=1000))]
    pub top: u16,
    /// Write it as JSON: to a path that ends in .json, or as json:PATH; - is standard output
    #[arg(long, short, value_name = "[json:]PATH", value_hint = ValueHint::FilePath)]
    pub output: Vec<FileRequest>,
    /// Print errors only
    #[arg(long, short)]
    pub quiet: bool,
}

const MAN_EXAMPLES: &str = "\
Examples:
  brunt man run | man -l -                             one page
  brunt man --dir ~/.local/share/man/man1              all pages, where man finds them";

/// Options of `brunt man`.
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// A command, e.g. run [default: the page of all commands]
    #[arg(value_name = "COMMAND", conflicts_with = "dir")]
    pub command: Option<String>,
    /// Write every page into this directory, e.g. ~/.local/share/man/man1
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
}

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  mkdir -p ~/.local/share/bash-completion/completions ~/.config/fish/completions
  brunt completions bash > ~/.local/share/bash-completion/completions/brunt
  brunt completions zsh > /usr/local/share/zsh/site-functions/_brunt
  brunt completions fish > ~/.config/fish/completions/brunt.fish";

/// Options of `brunt completions`.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell: bash, zsh or fish
    #[arg(value_name = "SHELL", value_parser = shells(), hide_possible_values = true)]
    pub shell: Shell,
}

/// Those of the generator's shells whose scripts are tested.
fn shells() -> impl TypedValueParser<Value = Shell> {
    PossibleValuesParser::new(["bash", "zsh", "fish"])
        .map(|name| <Shell as ValueEnum>::from_str(&name, false).expect("the generator knows them"))
}

/// What another tool takes, as words.
const WORDS: &str = "OPTIONS";

/// Everything that `brunt` takes, with a subcommand for every name of another tool.
pub(crate) fn command() -> clap::Command {
    let of_tool = |tool: &Tool| {
        let words = Arg::new(WORDS)
            .help(format!("What {0} takes; `brunt {0} --help` lists it", tool.name))
            .num_args(0..)
            .trailing_var_arg(true)
            .allow_hyphen_values(true);
        clap::Command::new(tool.name).about(tool.about).disable_help_flag(true).arg(words)
    };
    let mut program = Arguments::command().subcommands(TOOLS.iter().map(of_tool));
    // `mut_subcommand` would list it last.
    if let Some(run) = program.find_subcommand_mut("run") {
        *run = with_screen(std::mem::take(run));
    }
    program
}

/// `-h` prints one screen, `--help` every option.
fn with_screen(run: clap::Command) -> clap::Command {
    let help = Arg::new("help")
        .short('h')
        .long("help")
        .action(ArgAction::Help)
        .help("Print one screen (-h) or all options (--help)");
    let run = run.disable_help_flag(true).arg(help.help_heading("Results"));
    let screen = screen::of_run(&run);
    run.after_help(screen).mut_args(|argument| argument.hide_short_help(true))
}

/// The other tool that was asked for, and its command line; none where it is one of our own commands.
pub(crate) fn tool_of(matches: &ArgMatches) -> Option<(&'static Tool, Vec<String>)> {
    let (name, matches) = matches.subcommand()?;
    let words = |tool| (tool, matches.get_many(WORDS).into_iter().flatten().cloned().collect());
    tools::find(name).map(words)
}

/// Options of `brunt run` and `brunt doctor`.
#[derive(Debug, Args)]
pub(crate) struct Repeated {
    #[command(flatten)]
    pub run: Run,
    #[command(flatten)]
    pub share: ShareFlags,
    #[command(flatten)]
    pub repeat: RepeatFlags,
}

/// Options of `brunt scan`.
#[derive(Debug, Args)]
pub(crate) struct Scan {
    #[command(flatten)]
    pub run: Run,
    #[command(flatten)]
    pub repeat: RepeatFlags,
    /// Vary rate, connections, depth or value-size, as a list (rate=10k,20k,40k), a range with its step (rate=10k..100k:10k), or
    /// rate=auto, from a low load up to the limit of the server or the client
    #[arg(long, value_name = "OPTION=POINTS", default_value = "rate=auto", help_heading = "Campaign")]
    pub over: Sweep,
    /// Keep the order of the settings [default: a random one, another in each pass]
    #[arg(long, help_heading = "Campaign")]
    pub ordered: bool,
}

/// Options of `brunt search` and `brunt calibrate`.
#[derive(Debug, Args)]
pub(crate) struct Search {
    #[command(flatten)]
    pub run: Run,
    /// Lowest rate, tried first [default: half the closed-loop maximum, and lower where that is too much]
    #[arg(long, value_name = "RATE", help_heading = "Campaign")]
    pub from: Option<Rate>,
    /// Highest rate to try [default: no limit]
    #[arg(long, value_name = "RATE", help_heading = "Campaign")]
    pub to: Option<Rate>,
    /// How far the rate that fails lies above the one that holds, at least 0.1%; up to four times as far where runs do not agree
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = resolution, help_heading = "Campaign")]
    pub resolution: Fraction,
}

/// Flags for repeated runs.
#[derive(Debug, Args)]
#[command(next_help_heading = "Load")]
pub(crate) struct RepeatFlags {
    /// Number of runs, e.g. 6, each with its own seed and connections; 6 bracket the median with 97 %
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeat: u32,
    /// Shell command before every run but the first, e.g. 'systemctl restart memcached'; the data set is stored again
    #[arg(long, value_name = "COMMAND")]
    pub between: Option<String>,
}

/// Options of one measurement.
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// A plan file; flags win over it
    #[arg(value_name = "PLAN.toml")]
    pub plan: Option<PathBuf>,

    #[command(flatten)]
    pub planned: PlanFlags<EVERY_OPTION>,
    #[command(flatten)]
    pub hosts: ControllerFlags,
    #[command(flatten)]
    pub output: OutputFlags,
    /// Keep every interval of every worker as it comes, e.g. run.journal: brunt report has what was received, also if this process dies
    #[arg(long, value_name = "FILE", help_heading = "Results", value_hint = ValueHint::FilePath)]
    pub journal: Option<PathBuf>,
    #[command(flatten)]
    pub progress: ProgressFlags,
}

/// Authentication of controllers and agents.
#[derive(Debug, Args)]
#[command(next_help_heading = "Several hosts")]
pub(crate) struct AuthFlags {
    /// Folder of brunt agent --new-auth, the same for controller and agents: TLS and a token, e.g. /etc/brunt/auth
    #[arg(long, value_name = "DIR")]
    pub auth: Option<PathBuf>,
}

/// How a controller meets its agents.
#[derive(Debug, Args)]
#[command(next_help_heading = "Several hosts")]
pub(crate) struct ControllerFlags {
    /// With --fleet: address and port at which agents dial in, e.g. 10.0.0.1:5556 [default: 127.0.0.1:5556; with --auth port 5556 of every address]
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = socket_address)]
    pub listen: Option<SocketAddr>,
    #[command(flatten)]
    pub trust: AuthFlags,
}

/// Which part of a run this host carries out by itself.
#[derive(Debug, Args)]
#[command(next_help_heading = "Several hosts")]
pub(crate) struct ShareFlags {
    /// Carry out the part of host R of N, from 0, e.g. 3, without a controller; brunt report --merge adds the parts (-o r3.json)
    #[arg(long, value_name = "R", requires_all = ["of", "start_at"], conflicts_with_all = ["agent", "fleet", "listen", "auth", "repeat"])]
    pub rank: Option<u32>,
    /// With --rank: number of hosts, e.g. 8
    #[arg(long, value_name = "N", requires = "rank")]
    pub of: Option<u32>,
    /// With --rank: when the load begins on all hosts, in UTC or seconds since 1970, e.g. 2027-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", requires = "rank")]
    pub start_at: Option<String>,
}

/// Options of `brunt agent`.
#[derive(Debug, Args)]
pub(crate) struct Agent {
    /// Address and port to listen on; an address that other hosts reach requires --auth [default: 127.0.0.1:5556; with --auth port 5556 of every address]
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = socket_address)]
    pub listen: Option<SocketAddr>,
    /// Dial a controller (brunt run --fleet N --listen) instead, carry out its runs and end, e.g. head:5556
    #[arg(long, value_name = "HOST[:PORT]", conflicts_with = "listen")]
    pub join: Option<String>,
    /// Rank in the fleet, from 0, e.g. 3 [default: that of Slurm, of an Indexed Job of Kubernetes, Open MPI or PMI]
    #[arg(long, value_name = "R", requires_all = ["join", "of"])]
    pub rank: Option<u32>,
    /// Size of the fleet, with --rank, e.g. 8
    #[arg(long, value_name = "N", requires = "rank")]
    pub of: Option<u32>,
    /// How long to dial a controller that is not there yet
    #[arg(long, value_name = "DURATION", default_value = "10m", requires = "join")]
    pub join_timeout: DurationNs,
    /// Worker threads, unless the controller gives a number [default: allowed CPUs minus 1, at least 1]
    #[arg(long, short = 'T', value_name = "N", value_parser = value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// Pin workers to these CPUs, in turn, e.g. 1-3
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<CpuList>,
    /// A trace of this host (repeatable), which a plan finds by size and SHA-256, e.g. /data/t.zst
    #[arg(long, value_name = "FILE")]
    pub trace: Vec<String>,
    /// Write this host's part of each run as JSON, e.g. host-a.json; brunt report --merge adds several
    #[arg(long, short, value_name = "[json:]PATH", value_hint = ValueHint::FilePath)]
    pub output: Option<FileRequest>,
    /// Print errors only
    #[arg(long, short)]
    pub quiet: bool,
    #[command(flatten)]
    pub trust: AuthFlags,
    /// Make a folder for --auth, with a new token and certificate, and end; no other option may be set
    #[arg(long, value_name = "DIR", conflicts_with_all = ["listen", "join", "threads", "cpus", "output", "trace", "auth", "target_ca", "target_cert", "target_key", "quiet"], help_heading = "Several hosts")]
    pub new_auth: Option<PathBuf>,
    /// TLS to the servers: trusted CA certificates (PEM), e.g. ca.pem [default: system CAs]
    #[arg(long, value_name = "FILE", help_heading = "Target")]
    pub target_ca: Option<String>,
    /// TLS to the servers: client certificate chain (PEM) for servers that require one, e.g. client.pem [default: none]
    #[arg(long, value_name = "FILE", requires = "target_key", help_heading = "Target")]
    pub target_cert: Option<String>,
    /// TLS to the servers: private key of --target-cert (PEM), e.g. client.key
    #[arg(long, value_name = "FILE", requires = "target_cert", help_heading = "Target")]
    pub target_key: Option<String>,
}

/// A test parses every line.
const SLURM_EXAMPLES: &str = "\
Examples:
  brunt fleet slurm --agents 64 plan.toml | sbatch             one agent on each of 64 nodes
  brunt fleet slurm --agents 64 --nodes 16 plan.toml > job.sh  four agents on each of 16 nodes";

/// A test parses every line.
const KUBERNETES_EXAMPLES: &str = "\
Examples:
  brunt fleet kubernetes --agents 64 --image registry.example/brunt:1 plan.toml > fleet.yaml

The text has the secrets of its fleet; it says how the fleet is started and removed.";

/// The engine that a fleet is for.
#[derive(Debug, Subcommand)]
pub(crate) enum Fleet {
    /// Print a job for sbatch: a controller on the first node, agents bound to the cores of all
    #[command(after_help = SLURM_EXAMPLES)]
    Slurm(Slurm),
    /// Print manifests for kubectl: a Job of the controller, an Indexed Job of the agents, and what they share
    #[command(after_help = KUBERNETES_EXAMPLES)]
    Kubernetes(Kubernetes),
}

/// What every engine runs.
#[derive(Debug, Args)]
pub(crate) struct FleetPlan {
    /// The plan, which the text holds with the contents of its @FILEs
    #[arg(value_name = "PLAN.toml")]
    pub plan: PathBuf,
    /// Number of agents, e.g. 64
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=i64::from(FLEET_MAX)))]
    pub agents: u32,
}

/// Options of `brunt fleet slurm`.
#[derive(Debug, Args)]
pub(crate) struct Slurm {
    #[command(flatten)]
    pub fleet: FleetPlan,
    /// Number of nodes, e.g. 16 [default: one for each agent]
    #[arg(long, value_name = "M", value_parser = value_parser!(u32).range(1..))]
    pub nodes: Option<u32>,
    /// Time limit of the job, e.g. 30:00 or 1-12:00:00 [default: the partition's]
    #[arg(long, value_name = "TIME", value_parser = slurm_time)]
    pub time: Option<String>,
    /// Partition, e.g. load [default: the cluster's]
    #[arg(long, value_name = "NAME", value_parser = engine_word)]
    pub partition: Option<String>,
    /// Port of the controller
    #[arg(long, value_name = "PORT", default_value_t = brunt_fleet::PORT, value_parser = value_parser!(u16).range(1..))]
    pub port: u16,
    /// brunt on every node, e.g. /opt/brunt/bin/brunt
    #[arg(long, value_name = "PATH", default_value = "brunt")]
    pub binary: PathBuf,
    /// Folder that all nodes see, for a folder with the secrets of the job, which is removed at its end [default: where sbatch is called]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub shared: Option<PathBuf>,
}

/// Options of `brunt fleet kubernetes`.
#[derive(Debug, Args)]
pub(crate) struct Kubernetes {
    #[command(flatten)]
    pub fleet: FleetPlan,
    /// Image whose entry point is brunt, e.g. registry.example/brunt:1
    #[arg(long, value_name = "IMAGE", value_parser = engine_word)]
    pub image: String,
    /// Namespace, e.g. load [default: kubectl's]
    #[arg(long, value_name = "NAME", value_parser = namespace)]
    pub namespace: Option<String>,
    /// CPUs of each agent
    #[arg(long, value_name = "C", default_value_t = 2, value_parser = value_parser!(u32).range(1..=1024))]
    pub cpu: u32,
    /// Memory of each agent
    #[arg(long, value_name = "SIZE", default_value = "1Gi", value_parser = kubernetes_memory)]
    pub memory: String,
}

/// A time limit of Slurm.
fn slurm_time(text: &str) -> Result<String, String> {
    let (days, clock) = text.split_once('-').map_or((None, text), |(days, clock)| (Some(days), clock));
    let fields: Vec<&str> = clock.split(':').chain(days).collect();
    match fields.len() <= 3 + usize::from(days.is_some()) && fields.into_iter().all(is_number) {
        true => Ok(text.to_owned()),
        false => {
            Err("expected MINUTES, MINUTES:SECONDS, HOURS:MINUTES:SECONDS, or DAYS- before hours".to_owned())
        }
    }
}

/// A size of memory of Kubernetes.
fn kubernetes_memory(text: &str) -> Result<String, String> {
    const UNITS: [&str; 9] = ["", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti"];
    let number = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let is_size = UNITS.contains(&&text[number.len()..]) && number.split('.').all(is_number);
    match is_size
        && number.matches('.').count() <= 1
        && number.bytes().any(|digit| (b'1'..=b'9').contains(&digit))
    {
        true => Ok(text.to_owned()),
        false => {
            Err("expected bytes above 0, with k, M, G, T, Ki, Mi, Gi or Ti, such as 512Mi or 2Gi".to_owned())
        }
    }
}

/// A name of a namespace of Kubernetes.
fn namespace(text: &str) -> Result<String, String> {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    match text.len() <= 63
        && !text.is_empty()
        && text.bytes().all(is_inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
    {
        true => Ok(text.to_owned()),
        false => Err("expected at most 63 of a-z, 0-9 and -, without - at an end".to_owned()),
    }
}

/// A name of an engine, which knows better what it accepts; no text that would end or begin a line of its file.
fn engine_word(text: &str) -> Result<String, String> {
    let is_held = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:,+@".contains(&byte);
    match text.starts_with(|first: char| first.is_ascii_alphanumeric()) && text.bytes().all(is_held) {
        true => Ok(text.to_owned()),
        false => Err("expected a word of letters, digits and ._-/:,+@".to_owned()),
    }
}

const COMPARE_EXAMPLES: &str = "\
Examples:
  brunt compare a.json b.json                              results of brunt run -o, best with --repeat 8
  brunt compare --a a1.json a2.json --b b1.json b2.json    several results each
  brunt compare --live old:11211 new:11211 -r 50k          measure both now, in turns: A B B A B A A B ...
  brunt compare a.json b.json --assert 'p99 <= +5%'        exit with 4 if B is more than 5 % slower, 3 if open

Takes the options of brunt run with --live, and those of its results: brunt run --help";

/// Options of `brunt compare`.
#[derive(Debug, Args)]
// Both servers are behind --live.
#[command(mut_arg("server", |argument| argument.hide(true)), mut_args(without_options_of_run))]
pub(crate) struct Compare {
    /// Results in JSON of A and of B; with --live a plan file
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,

    #[command(flatten)]
    pub sides: SideFlags,
    #[command(flatten)]
    pub planned: PlanFlags<WITHOUT_AGENTS>,
    #[command(flatten)]
    pub output: CompareOutputFlags,
    #[command(flatten)]
    pub progress: ProgressFlags,
}

/// The two sides of a comparison.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sides")]
pub(crate) struct SideFlags {
    /// Results of A, e.g. a1.json a2.json
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "b", conflicts_with_all = ["files", "live"])]
    pub a: Vec<PathBuf>,
    /// Results of B
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "a")]
    pub b: Vec<PathBuf>,
    /// Measure two servers now, in turns, with one seed for both runs of a pair, e.g. old:11211 new:11211; the options below are those
    /// of run
    #[arg(long, num_args = 2, value_names = ["A", "B"])]
    pub live: Vec<NamedServer>,
    /// Pairs of runs, with --live; fewer than 7 decide nothing [default: 8]
    #[arg(long, value_name = "N", requires = "live", value_parser = value_parser!(u32).range(1..=RUNS_MAX as i64))]
    pub repeat: Option<u32>,
    /// Compare results even where the plans differ in more than servers and seeds
    #[arg(long, conflicts_with = "live")]
    pub allow_different_plans: bool,
}

/// Output of a comparison.
#[derive(Debug, Args)]
#[command(next_help_heading = "Results")]
pub(crate) struct CompareOutputFlags {
    #[command(flatten)]
    pub files: FileFlags,
    /// Exit 4 if violated (repeatable): signed bounds the change from A ('p99 <= +5%', 'rate >= -3%'), unsigned bounds B
    /// ('p99 < 1ms')
    #[arg(long, value_name = "REQUIREMENT", help_heading = "Sides")]
    pub assert: Vec<Requirement>,
    #[command(flatten)]
    pub judging: JudgingFlags,
}

const REPORT_EXAMPLES: &str = "\
Examples:
  brunt report result.json                                 the text that brunt run -o result.json printed
  brunt report result.json -o seconds.csv                  and a line per second
  brunt report result.json -o result.html                  as a page with charts
  brunt report result.json --assert 'p99 < 1ms'            held against something else
  brunt report old.json new.json -o both.html              up to six results side by side
  brunt report scan.json -o curve.svg                      a figure for a paper, in black and white
  brunt report --merge host-a.json host-b.json             the results of agents as one";

/// Options of `brunt report`.
#[derive(Debug, Args)]
pub(crate) struct Report {
    /// Result in JSON that -o wrote; - is standard input
    #[arg(value_name = "RESULT.json", required = true)]
    pub files: Vec<PathBuf>,
    /// Add up results of parts of one run, e.g. those that its agents wrote
    #[arg(long)]
    pub merge: bool,

    #[command(flatten)]
    pub output: ReportOutputFlags,
    /// Print errors only
    #[arg(long, short)]
    pub quiet: bool,
    #[command(flatten)]
    pub layout: LayoutFlags,
}

/// Output of a report.
#[derive(Debug, Args)]
#[command(next_help_heading = "Results")]
pub(crate) struct ReportOutputFlags {
    #[command(flatten)]
    pub files: FileFlags,
    /// Width of figures (.svg, .png): column (3.33 in) or page (7 in) [default: column]
    #[arg(
        long,
        value_name = "WIDTH",
        requires = "output",
        default_value = "column",
        value_parser = WordParser(&FigureWidth::NAMES, FigureWidth::from_str),
        hide_possible_values = true,
        hide_default_value = true
    )]
    pub figure_width: FigureWidth,
    /// Draw figures in colours instead of black and greys
    #[arg(long, requires = "output")]
    pub figure_color: bool,
    /// Exit 4 if violated, 3 if undecided (repeatable), e.g. 'get.p99 < 1ms' [default: the assertions of the run]
    #[arg(long, value_name = "OBJECTIVE")]
    pub assert: Vec<Objective>,
}

/// Options of `brunt load`.
#[derive(Debug, Args)]
#[command(mut_arg("mix", |argument| argument.help("As for run: with incr or decr, their counters are stored too [default: get=9,set=1]")))]
pub(crate) struct Load {
    /// A plan file; flags win over it
    #[arg(value_name = "PLAN.toml")]
    pub plan: Option<PathBuf>,

    /// Delete the keys of the data set instead of storing them: all of them, and no other key
    #[arg(long)]
    pub delete: bool,
    /// Delete keys without a prefix, too, which may be those of others
    #[arg(long, requires = "delete")]
    pub yes: bool,

    #[command(flatten)]
    pub planned: PlanFlags<OF_LOAD>,
    #[command(flatten)]
    pub progress: ProgressFlags,
}

/// Files of a result, and what a service for continuous integration shows of it.
#[derive(Debug, Default, Args)]
pub(crate) struct FileFlags {
    /// Write the result (repeatable): to a path that ends in .json, .html, .csv, .ndjson, .hlog, .hgrm, .md, .xml (JUnit), .svg or .png, or as
    /// TYPE:PATH, e.g. result.json, spectrum:p99.svg, samples:x.csv; - is standard output, e.g. json:-, the text then goes to standard
    /// error. Types: brunt help formats
    #[arg(long, short, value_name = "[TYPE:]PATH", value_hint = ValueHint::FilePath)]
    pub output: Vec<FileRequest>,
    /// Print unmet assertions and findings as annotations of a service: github
    #[arg(long, value_name = "SERVICE", value_parser = ["github"], hide_possible_values = true)]
    pub annotate: Option<String>,
}

impl FileFlags {
    /// Refuses files that this subject does not have.
    pub(crate) fn check(&self, subject: SubjectKind) -> Result<(), Failure> {
        self.output.iter().try_for_each(|request| {
            let refused = |reason| {
                let path = request.path.display();
                Failure::usage(format!("invalid value '{path}' for {}: {reason}", request.form.option()))
            };
            request.form.check(subject).map_err(refused)
        })
    }

    /// Is a file of this type asked for?
    pub(crate) fn has(&self, file_type: FileType) -> bool {
        self.output.iter().any(|request| request.form == file_type.into())
    }
}

/// Output of results.
#[derive(Debug, Args)]
#[command(next_help_heading = "Results")]
pub(crate) struct OutputFlags {
    #[command(flatten)]
    pub files: FileFlags,
    /// Exit 4 if violated, 3 if undecided (repeatable), e.g. 'get.p99 < 1ms', 'rate > 50k', 'hit >= 95%', 'errors < 0.1%'; of a search
    /// the objective: an upper bound on a percentile of the response time, or of the client's part (client.p99)
    #[arg(long, value_name = "OBJECTIVE")]
    pub assert: Vec<Objective>,
    /// Print the resolved plan as TOML and exit
    #[arg(long)]
    pub print_plan: bool,
    #[command(flatten)]
    pub judging: JudgingFlags,
}

/// How strictly runs are judged.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct JudgingFlags {
    /// Judge as for a publication: a CAUTION of LOAD, CLIENT, STEADY or REPEAT is INVALID, and 5 % of a percentile may be the client's
    #[arg(long)]
    pub strict: bool,
    /// Take what these checks find for a CAUTION at most, e.g. LOAD,CLIENT, or all
    #[arg(long, value_name = "CHECKS", value_delimiter = ',', value_parser = WordParser(&CheckId::NAMES, parse_check),
        hide_possible_values = true)]
    pub allow: Vec<Option<CheckId>>,
}

impl JudgingFlags {
    /// As the status takes it.
    pub(crate) fn judgement(&self) -> Judgement {
        let allowed =
            self.allow.iter().flat_map(|check| check.map_or(CheckId::ALL.to_vec(), |check| vec![check]));
        Judgement { is_strict: self.strict, allowed: allowed.collect() }
    }
}

/// One check, or none for all of them.
fn parse_check(text: &str) -> Result<Option<CheckId>, String> {
    let name = text.trim().to_ascii_uppercase();
    match CheckId::from_name(&name) {
        None if name != "ALL" => Err(format!("expected all, {}", CheckId::NAMES.join(", "))),
        check => Ok(check),
    }
}

/// Output while a command runs, and form of its report.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "Results")]
pub(crate) struct ProgressFlags {
    #[command(flatten)]
    pub layout: LayoutFlags,
    /// While the run goes on: none; a line on standard error every DURATION, at least 100ms, e.g. 1s; or tui, the whole terminal with rate,
    /// percentiles, outages and heat map (q ends it, ? lists the keys) [default: one redrawn line on a terminal]
    #[arg(long, value_name = "STYLE", value_parser = WordParser(&["none", "tui"], ProgressChoice::from_str), hide_possible_values = true)]
    pub progress: Option<ProgressChoice>,
    /// Serve the run by HTTP while it goes on: its page at /, /metrics and /summary.json, on a port of the loopback interface, e.g. 9090
    /// (0: any free one), or an address, e.g. 0.0.0.0:9090
    #[arg(long, value_name = "ADDR")]
    pub http: Option<HttpAddress>,
    /// Print errors only (and the lines of --progress DURATION)
    #[arg(long, short)]
    pub quiet: bool,
}

/// What is shown while a command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgressChoice {
    /// Nothing.
    Off,
    /// A line in this interval.
    Lines(DurationNs),
    /// The whole terminal.
    Tui,
}

impl FromStr for ProgressChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // Workers hand over what they recorded every 100 ms.
        let accepted =
            || "expected none, tui or a duration of at least 100ms, such as 1s or 500ms".to_owned();
        match text {
            "none" => Ok(Self::Off),
            "tui" => Ok(Self::Tui),
            _ => match text.parse::<DurationNs>() {
                Ok(every) if every >= DurationNs::from_millis(100) => Ok(Self::Lines(every)),
                _ => Err(accepted()),
            },
        }
    }
}

impl ProgressFlags {
    /// How the command shows what it came to.
    pub(crate) const fn presentation(&self) -> Presentation {
        Presentation::of(&self.layout, self.quiet)
    }

    /// Is the whole terminal drawn on?
    pub(crate) fn has_tui(&self) -> bool {
        self.progress == Some(ProgressChoice::Tui)
    }
}

/// Options of `brunt serve`.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Port on the loopback interface; 0 takes a free one and prints it
    #[arg(long, short, default_value_t = 11211)]
    pub port: u16,
    /// Listen here instead: ADDRESS:PORT, e.g. 0.0.0.0:11211 or [::1]:0, or unix:PATH (removed on exit)
    #[arg(long, value_name = "PLACE", conflicts_with = "port")]
    pub listen: Option<Listen>,
    /// Protocol of every connection: resp-inline, echo, ping or thrift [default: memcached's or Redis's, by the first byte of each
    /// connection]
    #[arg(long, value_name = "PROTOCOL", conflicts_with = "udp",
        value_parser = WordParser(&WireProtocol::NAMES, WireProtocol::from_str), hide_possible_values = true)]
    pub protocol: Option<WireProtocol>,
    /// Accept memcached's datagrams on the same address and port
    #[arg(long)]
    pub udp: bool,
    /// Required user name
    #[arg(long, default_value = "default", requires = "password", value_name = "NAME")]
    pub user: String,
    /// Required password, visible in ps [default: no login]
    #[arg(long, value_name = "TEXT")]
    pub password: Option<String>,
    /// Memory limit of the store, e.g. 64MiB; the oldest items are evicted
    #[arg(long, default_value = "1GiB", value_name = "SIZE")]
    pub memory: ByteSize,
    /// Longest value that is stored
    #[arg(long, default_value = "1MiB", value_name = "SIZE")]
    pub value_max: ByteSize,
    /// Memory limit of replies that clients leave unread, all together; the client that leaves most is disconnected
    #[arg(long, default_value = "64MiB", value_name = "SIZE", value_parser = output_buffer_limit)]
    pub output_buffer_limit: ByteSize,
    /// Service time: none, fixed:US or exp:US (mean, microseconds)
    #[arg(long, default_value = "none", value_name = "LAW")]
    pub service: Service,
    /// Freeze for FOR, AT after the first scripted request: 5s:1s (repeatable)
    #[arg(long, value_name = "AT:FOR")]
    pub stall: Vec<Stall>,
    /// Reset all connections AT after the first scripted request, refuse new ones for FOR: 5s:1s (repeatable)
    #[arg(long, value_name = "AT:FOR")]
    pub outage: Vec<Outage>,
    /// Lose all items in every outage, as a restarted memcached does
    #[arg(long, requires = "outage")]
    pub outage_forgets: bool,
    /// Send replies in pieces of BYTES with pauses of US microseconds: 1:0 splits at every byte
    #[arg(long, value_name = "BYTES:US")]
    pub drip: Option<Drip>,
    /// Never answer every Nth request, or later ones on its connection; 1000:37: the 37th, 1037th, ...
    #[arg(long, value_name = "N[:FIRST]")]
    pub drop_every: Option<Every>,
    /// Reset the connection of every Nth request instead of answering
    #[arg(long, value_name = "N[:FIRST]")]
    pub reset_every: Option<Every>,
    /// Send half of every Nth reply, then close
    #[arg(long, value_name = "N[:FIRST]")]
    pub cut_every: Option<Every>,
    /// Answer every Nth request with an error: SERVER_ERROR, ERR (Redis), or the status of an internal error
    #[arg(long, value_name = "N[:FIRST]")]
    pub error_every: Option<Every>,
    /// Answer every Nth retrieval with a value of the right length and wrong bytes
    #[arg(long, value_name = "N[:FIRST]")]
    pub wrong_every: Option<Every>,
    /// One datagram train per reply, or per value (key) as memcached since 1.6
    #[arg(long, default_value = "reply", requires = "udp", value_name = "DIVISION",
        value_parser = WordParser(&Division::NAMES, Division::from_str), hide_possible_values = true)]
    pub udp_trains: Division,
    /// Lose every Nth datagram of replies
    #[arg(long, requires = "udp", value_name = "N[:FIRST]")]
    pub udp_drop_every: Option<Every>,
    /// Send every Nth datagram of replies twice
    #[arg(long, requires = "udp", value_name = "N[:FIRST]")]
    pub udp_duplicate_every: Option<Every>,
    /// Swap every Nth reply datagram with the next of its reply
    #[arg(long, requires = "udp", value_name = "N[:FIRST]")]
    pub udp_swap_every: Option<Every>,
    /// Miss keys whose number is a multiple of N, e.g. 10
    #[arg(long, value_name = "N", value_parser = whole)]
    pub miss_ids: Option<NonZeroU64>,
    /// Requests to serve (e.g. a preload) before service times, stalls and faults begin
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub script_after: u64,
    /// Seed of the service times
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
    /// Write arrival and departure of every request to PATH (32 bytes each)
    #[arg(long, value_name = "PATH")]
    pub log: Option<PathBuf>,
    /// Never sleep: uses one CPU, for the most exact arrival and departure times
    #[arg(long)]
    pub busy_poll: bool,
    /// Exit with the parent process
    #[arg(long, hide = true)]
    pub die_with_parent: bool,
    /// Run on these CPUs only, e.g. 0-3,5
    #[arg(long, hide = true, value_name = "LIST")]
    pub cpus: Option<CpuList>,
}

/// A server with less could hardly answer, since no reply may take more than half.
fn output_buffer_limit(text: &str) -> Result<ByteSize, String> {
    let limit = text.parse::<ByteSize>().ok().filter(|size| (64 << 10..=64 << 30).contains(&size.0));
    limit.ok_or_else(|| "expected a size from 64KiB to 64GiB".to_owned())
}

/// Rates of a search have four significant digits.
fn resolution(text: &str) -> Result<Fraction, String> {
    let accepted = || "expected a fraction from 0.1% to 50%, such as 2% or 0.02".to_owned();
    let share: Fraction = text.parse().map_err(|_| accepted())?;
    if (1_000_000..=500_000_000).contains(&share.per_billion) { Ok(share) } else { Err(accepted()) }
}

fn socket_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "expected ADDRESS:PORT, such as 0.0.0.0:5556 or [::1]:5556".to_owned())
}

fn whole(text: &str) -> Result<NonZeroU64, String> {
    text.parse().map_err(|_| "expected a whole number above 0, such as 1000".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn arguments_are_consistent() {
        Arguments::command().debug_assert();
    }

    /// Examples in the help of `run` that are not what the first `e.g.`, or else the default, shows up to a blank or a mark.
    const EXAMPLES: &[(&str, &str)] = &[
        ("repeat", "6"),
        ("between", "systemctl restart memcached"),
        ("server", "cache:11211"),
        ("server", "unix:/run/cache.sock"),
        ("server", "rediss://me:pw@cache/1"),
        ("placement", "ketama-weighted"),
        ("protocol", "memcached-text"),
        ("protocol", "memcached-binary"),
        ("protocol", "resp3"),
        ("command", "HSET h:{key} f {value}"),
        ("verify", "10%"),
        ("cpus", "0-3,5"),
        ("io", "uring"),
        ("rate-profile", "0s=1k,30s=50k,30s=10k"),
        ("mix", "get=9,set=1"),
        ("on-miss", "set"),
        ("popularity", "zipf:0.99"),
        ("popularity", "window:10k,overwrite=0.2"),
        ("key-size", "uniform:20,40"),
        ("value-size", "uniform:10,1KiB"),
        ("value-size", "4KiB"),
        ("until", "p99=2%"),
        ("until", "p50=1%,get.p99.9=5%"),
        ("warmup", "1s"),
        ("warmup", "auto"),
        ("percentiles", "50,75,90,99.9"),
        ("annotate", "github"),
        ("output", "result.json"),
        ("output", "spectrum:p99.svg"),
        ("output", "json:-"),
        ("allow", "LOAD,CLIENT"),
        ("report", "brief"),
        ("set", "linger=1s"),
        ("until", "p50=1%,get.p99.9=5%,max=30m"),
        ("assert", "get.p99 < 1ms"),
        ("assert", "errors < 0.1%"),
        ("agent", "load1:5556"),
        ("auth", "/etc/brunt/auth"),
        ("http", "0.0.0.0:9090"),
        ("progress", "1s"),
        ("unit", "us"),
        ("color", "always"),
    ];

    /// Both servers of a comparison are behind `--live`: `--server` is refused there, and so is not in the help.
    #[test]
    fn the_help_of_compare_has_no_server() {
        let command = Arguments::command();
        let is_hidden = |name: &str, flag: &str| {
            let command = command.find_subcommand(name).unwrap();
            command.get_arguments().find(|held| held.get_long() == Some(flag)).unwrap().is_hide_set()
        };
        assert_eq!([is_hidden("compare", "server"), is_hidden("run", "server")], [true, false]);
        assert!(!is_hidden("compare", "connections"));
    }

    /// Options of which each needs the others.
    const TOGETHER: [&str; 3] = ["rank", "of", "start-at"];

    #[test]
    fn examples_in_the_help_are_accepted() {
        let command = Arguments::command();
        let run = command.find_subcommand("run").unwrap();
        for (flag, example) in EXAMPLES {
            let parsed = Arguments::try_parse_from(["brunt", "run", &format!("--{flag}={example}")]);
            assert!(parsed.is_ok(), "--{flag} {example}: {}", parsed.unwrap_err());
            let argument = run.get_arguments().find(|argument| argument.get_long() == Some(flag)).unwrap();
            let help = argument.get_help().unwrap().to_string();
            assert!(help.contains(example), "--{flag} does not show {example}: {help}");
        }
        for argument in run.get_arguments().filter(|argument| argument.get_action().takes_values()) {
            let Some(flag) = argument.get_long() else { continue };
            if EXAMPLES.iter().any(|(known, _)| *known == flag) {
                continue;
            }
            let help = argument.get_help().unwrap().to_string();
            let shown = help.split_once("e.g. ").or_else(|| help.split_once("[default: "));
            let (_, shown) = shown.unwrap_or_else(|| panic!("--{flag} has no example: {help}"));
            let example = shown.split([',', ';', ' ', ']', ')']).next().unwrap();
            let mut line = vec!["brunt".to_owned(), "run".to_owned(), format!("--{flag}={example}")];
            if TOGETHER.contains(&flag) {
                let others = TOGETHER.iter().filter(|other| **other != flag);
                line.extend(others.map(|other| format!("--{other}=5")));
            }
            let parsed = Arguments::try_parse_from(line);
            assert!(parsed.is_ok(), "--{flag} {example}: {}", parsed.unwrap_err());
        }
    }

    /// The last column of the table of distributions, by the options that its headings name.
    #[test]
    fn distributions_in_the_help_are_accepted() {
        let (mut flags, mut tried) = (Vec::new(), 0);
        for line in DISTRIBUTIONS.lines() {
            if let Some((_, named)) = line.strip_prefix("Distributions").and_then(|line| line.split_once('('))
            {
                let words = named.split([' ', ',', ':', '(', ')']);
                flags = words.filter(|word| word.starts_with("--")).collect();
            } else if let Some((_, example)) = line.strip_prefix("  ").and_then(|line| line.rsplit_once("  "))
            {
                for flag in &flags {
                    // Sizes come with units, gaps do not: they are stretched in any case.
                    let example = if *flag == "--arrival" {
                        example.replace("4KiB", "fixed:1")
                    } else {
                        example.to_owned()
                    };
                    let parsed = Arguments::try_parse_from(["brunt", "run", &format!("{flag}={example}")]);
                    assert!(parsed.is_ok(), "{flag} {example}: {}", parsed.unwrap_err());
                    tried += 1;
                }
            }
        }
        assert_eq!(tried, 10 * 3 + 3 + 6);
        assert!(DISTRIBUTIONS.lines().all(|line| line.chars().count() <= 110));
    }

    #[test]
    fn examples_of_campaigns_and_comparisons_are_accepted() {
        let mut tried = 0;
        let texts = [
            SCAN_EXAMPLES,
            SEARCH_EXAMPLES,
            CALIBRATE_EXAMPLES,
            COMPARE_EXAMPLES,
            REPORT_EXAMPLES,
            MAN_EXAMPLES,
            COMPLETIONS_EXAMPLES,
            DOCTOR_EXAMPLES,
            SLURM_EXAMPLES,
            KUBERNETES_EXAMPLES,
            TRACE_EXAMPLES,
        ];
        for line in texts.iter().flat_map(|text| text.lines()) {
            let Some(example) = line.strip_prefix("  brunt ") else { continue };
            // The command ends where two spaces begin the remark, or where a shell takes over; quotes hold blanks.
            let command = example.split("  ").next().unwrap();
            let command = command.split(" | ").next().unwrap().split(" > ").next().unwrap();
            let quoted = command.split('\'').enumerate();
            let words = quoted.flat_map(|(index, part)| match index % 2 {
                0 => part.split_whitespace().map(str::to_owned).collect::<Vec<_>>(),
                _ => vec![part.to_owned()],
            });
            let parsed = Arguments::try_parse_from(std::iter::once("brunt".to_owned()).chain(words));
            assert!(parsed.is_ok(), "{command}: {}", parsed.unwrap_err());
            assert!(line.chars().count() <= 120, "{line}");
            tried += 1;
        }
        assert_eq!(tried, 5 + 3 + 3 + 4 + 7 + 2 + 3 + 2 + 2 + 1 + 3);
    }

    /// A command line of `run` is checked by changing one word.
    #[test]
    fn doctor_takes_every_option_of_run() {
        let command = Arguments::command();
        let names = |name: &str| -> Vec<String> {
            let command = command.find_subcommand(name).unwrap();
            command.get_arguments().map(|argument| argument.get_id().to_string()).collect()
        };
        // An option with a help of its own is listed last.
        let sorted = |mut names: Vec<String>| {
            names.sort();
            names
        };
        assert_eq!(sorted(names("doctor")), sorted(names("run")));
    }

    /// Options that are no key of a plan say where results go, what is judged and how; every other one is a key.
    #[test]
    fn options_are_keys_of_the_same_name() {
        let command = Arguments::command();
        let run = command.find_subcommand("run").unwrap();
        let keys = crate::plan_flags::keys();
        let flags = run.get_arguments().filter_map(|argument| argument.get_long());
        // `--no-preload` is `preload = false`, and so on.
        let is_key = |flag: &&str| keys.iter().any(|key| key == flag.strip_prefix("no-").unwrap_or(flag));
        let mut beside: Vec<&str> = flags.filter(|flag| !is_key(flag)).collect();
        beside.sort_unstable();
        let expected = "allow annotate assert auth between color http journal listen of output preset print-plan progress quiet rank repeat report set start-at strict unit";
        assert_eq!(beside.join(" "), expected);
        let shown = run.get_arguments().filter(|argument| !argument.is_hide_set()).count();
        assert!(shown <= 80, "{shown} options");
    }

    #[test]
    fn the_screen_of_run_has_its_options_and_fits() {
        let command = command();
        let run = command.find_subcommand("run").unwrap();
        let screen = screen::of_run(run);
        assert!(screen.lines().count() <= 41, "{}", screen.lines().count());
        assert!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");
        assert_eq!(
            screen.lines().filter(|line| line.contains(" --") && line.starts_with("  ")).count(),
            31 + 1
        );
    }
}
