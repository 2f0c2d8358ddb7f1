//! A cluster of Slurm on this host, and the jobs that it runs: undisturbed, with an agent that ends before or behind the start, without the
//! daemon of a node, and begun again.
//!
//! Each job finds a shell script under the name of brunt, which lets agents write their own part of the result. Invariant: what the
//! controller reports is what its agents wrote.

use super::{await_that, check_agents};
use crate::process::Process;
use crate::programs::{self, output, run as call};
use anyhow::{Context, ensure};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The last one is stopped and started again.
const NODES: [&str; 4] = ["n1", "n2", "n3", "n4"];
/// One number of CPUs per node, as Slurm believes a file and not the host; processes are told apart by their parents, since groups take
/// privileges.
const SLURM: &str = "\
ClusterName=lab
SlurmctldHost=@HOST@(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=@DIR@/munge.socket,cred_expire=5
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

/// What stands under the name of brunt in a job.
const WRAPPER: &str = r#"#!/bin/sh
case "$1 $2" in
"agent --join")
    set -- "$@" --threads 1 -o "$SLURM_SUBMIT_DIR/part-$SLURM_PROCID.json"
    echo $$ > "$SLURM_SUBMIT_DIR/pid-$SLURM_PROCID"
    case $SLURM_PROCID in
    @BEFORE@
    esac ;;
esac
exec @BRUNT@ "$@"
"#;

/// What happens to a job.
pub(super) struct Trial {
    pub(super) name: &'static str,
    /// Branches of the shell by rank, of what agents do first.
    before: &'static str,
    /// In the middle of the run.
    disturbance: Option<Disturbance>,
    /// Ranks that the result names as lost.
    lost: &'static [usize],
}

#[derive(Clone, Copy)]
enum Disturbance {
    AgentKilled,
    NodeKilled,
    Requeued,
}

pub(super) const TRIALS: [Trial; 5] = [
    Trial { name: "undisturbed", before: "", disturbance: None, lost: &[] },
    Trial {
        name: "agent-replaced-before-the-start",
        before: r#"5) @BRUNT@ "$@" & sleep 2; kill -KILL $!; export SLURM_RESTART_COUNT=1 ;; 7) sleep 4 ;;"#,
        disturbance: None,
        lost: &[],
    },
    Trial { name: "agent-killed", before: "", disturbance: Some(Disturbance::AgentKilled), lost: &[5] },
    Trial { name: "slurmd-killed", before: "", disturbance: Some(Disturbance::NodeKilled), lost: &[] },
    Trial { name: "requeued", before: "", disturbance: Some(Disturbance::Requeued), lost: &[] },
];

/// Daemons of a cluster on this host, the first of which authenticates the others, the last of which is that of the last node. Dropping
/// ends them.
pub(super) struct Slurm {
    folder: PathBuf,
    daemons: Vec<Process>,
}

impl Slurm {
    pub(super) fn start(folder: &Path) -> anyhow::Result<Self> {
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
        let files = ["key-file", "socket", "pid-file", "log-file", "seed-file"];
        let names = ["key", "munge.socket", "munge.pid", "munge.log", "munge.seed"];
        let files: Vec<String> =
            files.iter().zip(names).map(|(option, name)| format!("--{option}={}", path(name))).collect();
        let mut munge = vec!["munged", "--force", "--foreground"];
        munge.extend(files.iter().map(String::as_str));
        let mut slurm = Self { folder: folder.to_owned(), daemons: Vec::new() };
        slurm.start_daemon("munged", &munge)?;
        await_that("munged listens", || Ok(Path::new(&socket).exists()))?;
        slurm.start_daemon("slurmctld", &["slurmctld", "-D", "-f", &file])?;
        NODES.iter().try_for_each(|node| slurm.start_node(node))?;
        Ok(slurm)
    }

    fn start_daemon(&mut self, name: &str, words: &[&str]) -> anyhow::Result<()> {
        let log = fs::File::create(self.folder.join(format!("{name}.log")))?;
        let mut command = Process::command(words[0]);
        self.daemons.push(Process::start(command.args(&words[1..]).stdout(Stdio::null()).stderr(log))?);
        Ok(())
    }

    fn start_node(&mut self, node: &str) -> anyhow::Result<()> {
        let file = self.folder.join("slurm.conf");
        self.start_daemon(node, &["slurmd", "-D", "-N", node, "-f", &file.display().to_string()])
    }

    fn await_idle_nodes(&self) -> anyhow::Result<()> {
        await_that("all nodes are idle", || {
            let states = output(self.command("sinfo").args(["-h", "-N", "-o", "%t"]))?;
            Ok(states.lines().filter(|state| *state == "idle").count() == NODES.len())
        })
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("SLURM_CONF", self.folder.join("slurm.conf")).current_dir(&self.folder);
        command
    }

    /// What sbatch says of a job that it would run.
    pub(super) fn judge(&self, script: &Path) -> anyhow::Result<String> {
        self.await_idle_nodes()?;
        let judged = self.command("sbatch").arg("--test-only").arg(script).output()?;
        let said = String::from_utf8_lossy(&judged.stderr).trim().to_owned();
        ensure!(judged.status.success() && said.contains("to start at"), "sbatch refuses the job: {said}");
        Ok(said)
    }

    /// Runs the job to its end. Returns its output, once its result is right and its secrets are gone.
    pub(super) fn carry_out(&mut self, brunt: &Path, script: &Path, trial: &Trial) -> anyhow::Result<String> {
        self.await_idle_nodes()?;
        let folder = self.folder.join(trial.name);
        fs::create_dir(&folder)?;
        let wrapper =
            WRAPPER.replace("@BEFORE@", trial.before).replace("@BRUNT@", &brunt.display().to_string());
        fs::write(folder.join("brunt"), wrapper)?;
        fs::set_permissions(folder.join("brunt"), fs::Permissions::from_mode(0o755))?;
        let mut sbatch = self.command("sbatch");
        // Nodes of this host have no addresses of their own.
        sbatch.env("BRUNT_CONTROLLER", "127.0.0.1").env("PATH", programs::path_with(&folder)?);
        sbatch.args(["--parsable", "--output=out.txt"]).arg(script).current_dir(&folder);
        let job = output(&mut sbatch)?.trim().to_owned();
        let said = || fs::read_to_string(folder.join("out.txt")).unwrap_or_default();
        if let Some(disturbance) = trial.disturbance {
            await_that("the job stores its keys", || Ok(said().contains("storing")))?;
            std::thread::park_timeout(Duration::from_millis(1500));
            self.disturb(disturbance, &folder, &job)?;
        }
        let result = folder.join(format!("brunt-{job}.json"));
        let jobs = || output(self.command("squeue").args(["--noheader", "--jobs", &job]));
        await_that("the job ends", || Ok(jobs().map_or(true, |jobs| jobs.trim().is_empty())))?;
        let text = said();
        ensure!(!folder.join(format!("brunt-job-{job}")).exists(), "secrets are left");
        let json = fs::read_to_string(&result).with_context(|| format!("no result:\n{text}"))?;
        check_agents(&serde_json::from_str(&json)?, 8, trial.lost)?;
        if trial.lost.is_empty() {
            check_parts(brunt, &folder, &result)?;
        }
        Ok(text)
    }

    fn disturb(&mut self, disturbance: Disturbance, folder: &Path, job: &str) -> anyhow::Result<()> {
        match disturbance {
            Disturbance::AgentKilled => {
                let process = fs::read_to_string(folder.join("pid-5"))?;
                call(Command::new("kill").args(["-KILL", process.trim()]))
            }
            Disturbance::NodeKilled => {
                // Dropping kills it; what it has started goes on.
                self.daemons.pop();
                std::thread::park_timeout(Duration::from_secs(4));
                self.start_node(NODES[3])
            }
            Disturbance::Requeued => call(self.command("scontrol").args(["requeue", job])),
        }
    }
}

/// Do the parts that agents wrote themselves add up to the result of their controller, bucket by bucket?
fn check_parts(brunt: &Path, folder: &Path, result: &Path) -> anyhow::Result<()> {
    let parts = (0..8).map(|rank| folder.join(format!("part-{rank}.json"))).collect();
    let [merged, whole] = [parts, vec![result.to_owned()]].map(|results| {
        let mut report = Command::new(brunt);
        report.arg("report").args((results.len() > 1).then_some("--merge")).args(results);
        // A run whose latencies may not be quoted ends with 3.
        let printed = report.args(["-o", "spectrum:-"]).stderr(Stdio::null()).output()?;
        anyhow::Ok(String::from_utf8(printed.stdout)?)
    });
    let [merged, whole] = [merged?, whole?];
    ensure!(merged.lines().count() > 10 && merged == whole, "the parts are\n{merged}\nthe whole is\n{whole}");
    Ok(())
}
