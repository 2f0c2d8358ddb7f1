//! `cargo xtask fleet-test`: what `brunt fleet` prints is accepted by those who read it.
//!
//! shellcheck reads the script, the schemas of the newest Kubernetes that PyPI's kubernetes-validate has read the manifests, and a Slurm of four
//! virtual nodes on this host, from Debian's packages, runs the job. Invariant: what is started here is ended here, by its id.

use crate::cargo;
use crate::process::{Process, ReferenceServer, has_result};
use crate::programs::{self, output, run as call};
use anyhow::{Context, ensure};
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long Slurm may take until its nodes are idle.
const PATIENCE: Duration = Duration::from_secs(60);
const NODES: [&str; 4] = ["n1", "n2", "n3", "n4"];
/// A short run with few keys, behind the line that names the server.
const PLAN: &str = "connections = 16\nkeys = 1000\nrate = '2k'\nwarmup = '500ms'\ntime = '3s'\n";
/// One number of CPUs per node, as Slurm believes a file and not the host; processes are told apart by their parents, since groups take
/// privileges.
const SLURM: &str = "\
ClusterName=lab
SlurmctldHost=@HOST@(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=@DIR@/munge.socket
CredType=cred/munge
SlurmctldPort=16817
SlurmctldPidFile=@DIR@/slurmctld.pid
SlurmdSpoolDir=@DIR@/spool/%n
SlurmdPidFile=@DIR@/slurmd.%n.pid
StateSaveLocation=@DIR@/state
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
SlurmdParameters=config_overrides
ReturnToService=2
MpiDefault=none
NodeName=n[1-4] NodeHostname=@HOST@ NodeAddr=127.0.0.1 Port=[17001-17004] CPUs=2 State=UNKNOWN
PartitionName=load Nodes=n[1-4] Default=YES MaxTime=INFINITE State=UP
";

/// Checks script and manifests.
///
/// # Errors
/// Who refuses what.
pub(crate) fn run() -> anyhow::Result<()> {
    programs::ensure_all(programs::FLEET)?;
    call(&mut cargo::command(&["build", "--quiet", "-p", "brunt"]))?;
    let folder = cargo::target_folder()?.join("fleet-test");
    fs::create_dir_all(&folder)?;
    let plan = folder.join("plan.toml");
    let brunt = cargo::debug_brunt()?;
    let server = ReferenceServer::start(&brunt, &[])?;
    fs::write(&plan, format!("server = 'memcached://{}'\n{PLAN}", server.address))?;
    let print = |engine: &str, options: &[&str], name: &str| -> anyhow::Result<PathBuf> {
        let text =
            output(Command::new(&brunt).args(["fleet", engine, "--agents", "8"]).args(options).arg(&plan))?;
        let path = folder.join(name);
        fs::write(&path, text)?;
        Ok(path)
    };
    let binary = brunt.display().to_string();
    let options = ["--nodes", "4", "--time", "10:00", "--partition", "load", "--binary", &binary];
    let script = print("slurm", &options, "job.sh")?;
    call(Command::new("shellcheck").arg(&script))?;
    println!("shellcheck accepts {}", script.display());
    let options = ["--image", "registry.example/brunt:1", "--namespace", "load"];
    validate(&folder, &print("kubernetes", &options, "fleet.yaml")?)?;
    println!("{}", many(&brunt, &plan)?);
    let slurm = Slurm::start(&folder.join("slurm"))?;
    println!("sbatch --test-only: {}", slurm.judge(&script)?);
    println!("{}", slurm.carry_out(&script)?);
    Ok(())
}

/// Agents of a fleet on this host, a process each.
const MANY: usize = 200;

/// Carries out the plan with many agents. Returns what that took of the controller.
fn many(brunt: &Path, plan: &Path) -> anyhow::Result<String> {
    let size = MANY.to_string();
    let mut command = Process::command(brunt);
    command.args([
        "run",
        "--progress=none",
        "--wait=sleep",
        "--allow=LOAD,CLIENT,DATA,STEADY",
        "--fleet",
        &size,
    ]);
    command.args(["--listen", "127.0.0.1:0", "--set", "connections=200", "-o", "json:-"]).arg(plan);
    let mut controller = Process::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()))?;
    let said = controller.0.stderr.take().context("it has a standard error")?;
    let mut lines = BufReader::new(said).lines();
    let is_address = |line: &io::Result<String>| line.as_ref().is_ok_and(|line| line.contains("waiting for"));
    let line = lines.find(is_address).context("the controller does not wait")??;
    let (_, address) = line.rsplit_once(" at ").context("it names no address")?;
    let since = Instant::now();
    let agent = |rank: usize| {
        let mut agent = Process::command(brunt);
        agent.args([
            "agent",
            "--join",
            address,
            "--rank",
            &rank.to_string(),
            "--of",
            &size,
            "--threads",
            "1",
        ]);
        Process::start(agent.stdout(Stdio::null()).stderr(Stdio::null()))
    };
    let agents = (0..MANY).map(agent).collect::<anyhow::Result<Vec<_>>>()?;
    // The last line before it measures says what it stores.
    lines
        .find(|line| line.as_ref().is_ok_and(|line| line.contains("storing")))
        .context("it stores nothing")??;
    let arrived = since.elapsed();
    let folder = format!("/proc/{}", controller.0.id());
    let mut out = controller.0.stdout.take().context("it has a standard output")?;
    let json = std::thread::spawn(move || io::read_to_string(&mut out));
    let (mut memory, mut cpu) = (String::new(), String::new());
    let end = Instant::now() + PATIENCE;
    let status = loop {
        let read = |name: &str| fs::read_to_string(format!("{folder}/{name}")).unwrap_or_default();
        let peak = read("status")
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:").map(|kib| kib.trim().to_owned()));
        memory = peak.unwrap_or(memory);
        let times: Vec<String> =
            read("stat").split_whitespace().skip(13).take(2).map(str::to_owned).collect();
        cpu = if times.len() == 2 { times.join(" + ") } else { cpu };
        if let Some(status) = controller.await_end(Instant::now() + Duration::from_millis(100))? {
            break status;
        }
        ensure!(Instant::now() < end, "{MANY} agents: no end within {} s", PATIENCE.as_secs());
    };
    let result = json.join().map_err(|_| anyhow::anyhow!("its output cannot be read"))??;
    ensure!(has_result(status) && result.contains("\"rank 199 ("), "{MANY} agents: {status}\n{result}");
    drop(agents);
    Ok(format!(
        "{MANY} agents: all there after {arrived:.1?}; controller: {cpu} ticks of CPU, user and system, peak {memory}"
    ))
}

/// Holds manifests against the schemas, unknown fields refused.
fn validate(folder: &Path, manifests: &Path) -> anyhow::Result<()> {
    let venv = folder.join("venv");
    let program = venv.join("bin/kubernetes-validate");
    if !program.exists() {
        call(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
        call(Command::new(venv.join("bin/pip")).args(["install", "--quiet", "kubernetes-validate"]))?;
    }
    let text = output(Command::new(program).arg("--strict").arg(manifests))?;
    let accepted = text.lines().filter(|line| line.contains("INFO") && line.contains("passed"));
    ensure!(accepted.count() == 5, "five objects were to be valid: {text}");
    println!("{}", text.trim_end());
    Ok(())
}

/// Daemons of a cluster on this host, the first of which authenticates the others. Dropping ends them.
struct Slurm {
    folder: PathBuf,
    _daemons: Vec<Process>,
}

impl Slurm {
    fn start(folder: &Path) -> anyhow::Result<Self> {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        for name in ["state", "spool"] {
            fs::create_dir_all(folder.join(name))?;
        }
        let path = |name: &str| folder.join(name).display().to_string();
        let host = fs::read_to_string("/proc/sys/kernel/hostname")?;
        let host = host.trim().split('.').next().unwrap_or_default();
        let configuration = SLURM.replace("@HOST@", host).replace("@DIR@", &folder.display().to_string());
        let file = path("slurm.conf");
        fs::write(&file, configuration)?;
        let socket = path("munge.socket");
        call(Command::new("dd").args([
            "if=/dev/urandom",
            "bs=1024",
            "count=1",
            "status=none",
            &format!("of={}", path("key")),
        ]))?;
        call(Command::new("chmod").args(["0600", &path("key")]))?;
        let daemon = |name: &str, words: &[&str]| -> anyhow::Result<Process> {
            let log = fs::File::create(folder.join(format!("{name}.log")))?;
            let mut command = Process::command(words[0]);
            Process::start(command.args(&words[1..]).stdout(Stdio::null()).stderr(log))
        };
        let files = ["key-file", "socket", "pid-file", "log-file", "seed-file"];
        let names = ["key", "munge.socket", "munge.pid", "munge.log", "munge.seed"];
        let files: Vec<String> =
            files.iter().zip(names).map(|(option, name)| format!("--{option}={}", path(name))).collect();
        let mut munge = vec!["munged", "--force", "--foreground"];
        munge.extend(files.iter().map(String::as_str));
        let mut daemons = vec![daemon("munged", &munge)?];
        await_that("munged listens", || Ok(Path::new(&socket).exists()))?;
        daemons.push(daemon("slurmctld", &["slurmctld", "-D", "-f", &file])?);
        for node in NODES {
            daemons.push(daemon(node, &["slurmd", "-D", "-N", node, "-f", &file])?);
        }
        let slurm = Self { folder: folder.to_owned(), _daemons: daemons };
        await_that("four nodes are idle", || {
            let nodes = slurm.command("sinfo").args(["-h", "-N", "-o", "%t"]).output()?;
            Ok(String::from_utf8_lossy(&nodes.stdout).lines().filter(|state| *state == "idle").count() == 4)
        })?;
        Ok(slurm)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("SLURM_CONF", self.folder.join("slurm.conf")).current_dir(&self.folder);
        command
    }

    /// What sbatch says of a job that it would run.
    fn judge(&self, script: &Path) -> anyhow::Result<String> {
        let judged = self.command("sbatch").arg("--test-only").arg(script).output()?;
        let said = String::from_utf8_lossy(&judged.stderr).trim().to_owned();
        ensure!(judged.status.success() && said.contains("to start at"), "sbatch refuses the job: {said}");
        Ok(said)
    }

    /// Runs the job to its end. Returns its output, once there is a result and its secrets are gone.
    fn carry_out(&self, script: &Path) -> anyhow::Result<String> {
        let mut sbatch = self.command("timeout");
        // Nodes of this host have no addresses of their own.
        sbatch.args(["120", "sbatch", "--wait", "--output=out.txt"]).env("BRUNT_CONTROLLER", "127.0.0.1");
        let status = sbatch.arg(script).stdout(Stdio::null()).status()?;
        let text = fs::read_to_string(self.folder.join("out.txt")).unwrap_or_default();
        ensure!(has_result(status), "the job ended with {status}:\n{text}");
        let left =
            fs::read_dir(&self.folder)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        let left: Vec<String> = left.collect::<anyhow::Result<_>>()?;
        let has = |head: &str| left.iter().any(|name| name.starts_with(head));
        ensure!(has("brunt-") && !has("brunt-job-"), "a result without secrets was to be left: {left:?}");
        ensure!(text.contains("8 agents"), "no report of eight agents:\n{text}");
        Ok(text)
    }
}

/// Waits until something is so.
fn await_that(what: &str, mut is_so: impl FnMut() -> anyhow::Result<bool>) -> anyhow::Result<()> {
    let end = Instant::now() + PATIENCE;
    while !is_so().with_context(|| format!("whether {what}"))? {
        ensure!(Instant::now() < end, "{what}: not within {} s", PATIENCE.as_secs());
        std::thread::park_timeout(Duration::from_millis(100));
    }
    Ok(())
}
