//! The manifests of `brunt fleet kubernetes`, held against Kubernetes' schemas, and carried out without Kubernetes.
//!
//! A pod is a process with the arguments, environment, user, files and read-only root that the manifests say, below chroot; the name of the
//! Service is in its /etc/hosts. Images and resources are not looked at. Invariant: nothing but the manifests says how a pod is started.

use super::{await_that, check_agents};
use crate::process::{Process, has_result};
use crate::programs::{install_python, output};
use anyhow::{Context, ensure};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// What a pod sees: libraries of this host, its files and nothing else.
const ENTER: &str = r#"mount --bind "$0" "$0"
for name in usr dev; do mount --rbind "/$name" "$0/$name"; done
mount -t proc proc "$0/proc"
mount --bind "$1" "$0/brunt"
mount -o remount,bind,ro "$0"
user=$2 root=$0; shift 2
exec chroot --userspec="$user" "$root" /brunt "$@""#;
/// The index that fails once before the start.
const FAILING: u64 = 1;

/// Manifests, and where their pods are made.
pub(super) struct Manifests<'a> {
    folder: &'a Path,
    objects: Vec<Value>,
}

impl<'a> Manifests<'a> {
    /// Holds them against the schemas, unknown fields refused, and reads them.
    pub(super) fn validated(folder: &'a Path, path: &Path) -> anyhow::Result<Self> {
        let venv = folder.join("venv");
        if !venv.join("bin/kubernetes-validate").exists() {
            install_python(&venv, &["kubernetes-validate"])?;
        }
        let text = output(Command::new(venv.join("bin/kubernetes-validate")).arg("--strict").arg(path))?;
        let accepted = text.lines().filter(|line| line.contains("INFO") && line.contains("passed"));
        ensure!(accepted.count() == 5, "five objects were to be valid: {text}");
        println!("{}", text.trim_end());
        let program =
            "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1])))))";
        let json = output(Command::new(venv.join("bin/python")).args(["-c", program]).arg(path))?;
        Ok(Self { folder, objects: serde_json::from_str(&json)? })
    }

    fn object(&self, kind: &str, name_end: &str) -> anyhow::Result<&Value> {
        let is_it = |object: &&Value| {
            object["kind"] == kind
                && text(&object["metadata"]["name"]).is_ok_and(|name| name.ends_with(name_end))
        };
        self.objects.iter().find(is_it).with_context(|| format!("no {kind} …{name_end}"))
    }

    /// Starts controller and agents, one of which fails before the start and is placed again. Returns what the controller reports.
    pub(super) fn carry_out(&self, brunt: &Path) -> anyhow::Result<String> {
        let (controller, agents) = (self.object("Job", "-controller")?, self.object("Job", "-agents")?);
        let pod = |job, index, failures| Pod { manifests: self, job, index, failures };
        let size = agents["spec"]["completions"].as_u64().context("no completions")?;
        ensure!(agents["spec"]["backoffLimitPerIndex"].as_u64() > Some(0), "no index is placed again");
        let mut controller = pod(controller, None, 0).start(brunt)?;
        let said = self.folder.join("controller.err");
        let has = |line: &str| Ok(fs::read_to_string(&said)?.contains(line));
        await_that("the controller waits", || has("waiting for"))?;
        let mut pods = Vec::new();
        for index in 0..size - 1 {
            pods.push(pod(agents, Some(index), 0).start(brunt)?);
        }
        await_that("the index that fails has joined", || has(&format!("rank {FAILING} (")))?;
        // Dropping the first process kills it.
        pods[FAILING as usize] = pod(agents, Some(FAILING), 1).start(brunt)?;
        pods.push(pod(agents, Some(size - 1), 0).start(brunt)?);

        let status = controller.await_end(Instant::now() + super::PATIENCE)?;
        let report = fs::read_to_string(&said)?;
        ensure!(status.is_some_and(has_result), "the controller ended with {status:?}:\n{report}");
        for (index, pod) in pods.iter_mut().enumerate() {
            let status = pod.await_end(Instant::now() + super::PATIENCE)?;
            ensure!(status.is_some_and(|status| status.success()), "agent {index} ended with {status:?}");
        }
        check_agents(
            &serde_json::from_slice(&fs::read(self.folder.join("controller.out"))?)?,
            size as usize,
            &[],
        )?;
        Ok(report)
    }
}

/// A pod of a job.
struct Pod<'a> {
    manifests: &'a Manifests<'a>,
    job: &'a Value,
    /// Of an Indexed Job.
    index: Option<u64>,
    /// How often this index has failed.
    failures: u64,
}

impl Pod<'_> {
    fn start(&self, brunt: &Path) -> anyhow::Result<Process> {
        let spec = &self.job["spec"]["template"]["spec"];
        let container = &spec["containers"][0];
        let name = text(&container["name"])?;
        let instance =
            self.index.map_or(name.to_owned(), |index| format!("{name}-{index}-{}", self.failures));
        let root = self.lay_out(spec, container, &instance)?;
        let mut command = Process::command("unshare");
        command.args(["--mount", "sh", "-ec", ENTER]).args([&root, brunt]);
        let security = &spec["securityContext"];
        command.arg(format!("{}:{}", security["runAsUser"], security["runAsGroup"]));
        command.args(list(&container["args"]).map(text).collect::<anyhow::Result<Vec<_>>>()?);
        command.envs(self.index.map(|index| ("JOB_COMPLETION_INDEX", index.to_string())));
        for variable in list(&container["env"]) {
            let path = variable["valueFrom"]["fieldRef"]["fieldPath"].as_str().unwrap_or_default();
            let value = match path.contains("batch.kubernetes.io/job-index-failure-count") {
                true => self.failures.to_string(),
                false => text(&variable["value"])?.to_owned(),
            };
            command.env(text(&variable["name"])?, value);
        }
        let file = |ending| fs::File::create(self.manifests.folder.join(format!("{instance}.{ending}")));
        Process::start(command.stdout(Stdio::from(file("out")?)).stderr(file("err")?))
    }

    /// Makes the root of its file system, with the files of its volumes.
    fn lay_out(&self, spec: &Value, container: &Value, instance: &str) -> anyhow::Result<PathBuf> {
        let root = self.manifests.folder.join("pods").join(instance);
        if root.exists() {
            fs::remove_dir_all(&root)?;
        }
        for name in ["usr", "dev", "proc", "etc"] {
            fs::create_dir_all(root.join(name))?;
        }
        for name in ["lib", "lib64", "bin"] {
            std::os::unix::fs::symlink(format!("usr/{name}"), root.join(name))?;
        }
        let service = text(&self.manifests.object("Service", "")?["metadata"]["name"])?;
        fs::write(root.join("etc/hosts"), format!("127.0.0.1 localhost {service}\n"))?;
        fs::write(root.join("brunt"), "")?;
        for mount in list(&container["volumeMounts"]) {
            let volume = list(&spec["volumes"]).find(|volume| volume["name"] == mount["name"]);
            let volume = volume.with_context(|| format!("no volume {}", mount["name"]))?;
            let folder = root.join(text(&mount["mountPath"])?.trim_start_matches('/'));
            fs::create_dir_all(&folder)?;
            let (files, mode) = match (&volume["configMap"]["name"], &volume["secret"]) {
                (Value::String(name), _) => (&self.manifests.object("ConfigMap", name)?["data"], 0o644),
                (_, secret) => {
                    let held = self.manifests.object("Secret", text(&secret["secretName"])?)?;
                    (&held["stringData"], secret["defaultMode"].as_u64().context("no mode")? as u32)
                }
            };
            let group = spec["securityContext"]["fsGroup"].as_u64().map(|group| group as u32);
            for (name, content) in files.as_object().context("no files")? {
                let path = folder.join(name);
                fs::write(&path, text(content)?)?;
                fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
                chown(&path, Some(0), group)?;
            }
        }
        Ok(root)
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> anyhow::Result<&str> {
    value.as_str().with_context(|| format!("no text: {value}"))
}
