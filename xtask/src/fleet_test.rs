//! `cargo xtask fleet-test`: what `brunt fleet` prints is accepted by those who read it, and carried out; and a fleet of 200 processes.
//!
//! shellcheck reads the script, the schemas of the newest Kubernetes that PyPI's kubernetes-validate has read the manifests, and a Slurm of four
//! virtual nodes on this host, from Debian's packages, runs the job. Invariant: what is started here is ended here, by its id.

mod kubernetes;
mod slurm;

use crate::cargo;
use crate::process::{Process, ReferenceServer, has_result};
use crate::programs::{self, output, run as call};
use anyhow::{Context, ensure};
use kubernetes::Manifests;
use serde_json::Value;
use slurm::Slurm;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long anything here may take that takes seconds; many agents on few CPUs take minutes.
const PATIENCE: Duration = Duration::from_secs(60);
/// A short run with few keys, behind the line that names the server.
const PLAN: &str = "connections = 16\nkeys = 1000\nrate = '2k'\nwarmup = '500ms'\ntime = '3s'\n";

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
    let options = ["--nodes", "4", "--time", "10:00", "--partition", "load"];
    let script = print("slurm", &options, "job.sh")?;
    call(Command::new("shellcheck").arg(&script))?;
    println!("shellcheck accepts {}", script.display());
    let options = ["--image", "registry.example/brunt:1", "--namespace", "load"];
    let manifests = Manifests::validated(&folder, &print("kubernetes", &options, "fleet.yaml")?)?;
    println!("==> pods\n{}", manifests.carry_out(&brunt)?);
    let mut slurm = Slurm::start(&folder.join("slurm"))?;
    println!("sbatch --test-only: {}", slurm.judge(&script)?);
    for trial in &slurm::TRIALS {
        println!("==> {}\n{}", trial.name, slurm.carry_out(&brunt, &script, trial)?);
    }
    // Of a development build a small host cannot run so many.
    let [released, _] = cargo::release_programs()?;
    println!("==> {MANY} agents\n{}", many(&released, &plan)?);
    Ok(())
}

/// Are all agents in a result, these as lost, and do the requests of all add up to those of the run?
fn check_agents(result: &Value, size: usize, lost: &[usize]) -> anyhow::Result<()> {
    let agents = result["client"]["agents"].as_array().context("a result without agents")?;
    let is_lost = |index: &usize| !agents[*index]["lost"].is_null();
    let found: Vec<usize> = (0..agents.len()).filter(is_lost).collect();
    ensure!(agents.len() == size && found == lost, "{} agents, lost: {found:?}", agents.len());
    let parts: u64 = agents.iter().filter_map(|agent| agent["requests"]["completed"].as_u64()).sum();
    let whole = result["counts"]["requests"]["completed"].as_u64();
    ensure!(parts > 0 && whole == Some(parts), "{parts} requests of the agents, {whole:?} of the run");
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
    let end = Instant::now() + 5 * PATIENCE;
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
        ensure!(Instant::now() < end, "{MANY} agents do not end");
    };
    let result = json.join().map_err(|_| anyhow::anyhow!("its output cannot be read"))??;
    ensure!(has_result(status), "{MANY} agents: {status}\n{result}");
    check_agents(&serde_json::from_str(&result)?, MANY, &[])?;
    drop(agents);
    Ok(format!(
        "{MANY} agents: all there after {arrived:.1?}; controller: {cpu} ticks of CPU, user and system, peak {memory}"
    ))
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
