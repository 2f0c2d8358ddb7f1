//! `brunt fleet`: the script is one of bash, the manifests have what a fleet needs, and both hold the plan that was given.

use crate::server::{Directory, Ended, PROGRAM, ended, file, temporary};
use crate::tls::Certificates;
use serde_json::Value;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// Quotes, marks of the shell and letters beyond ASCII, in a plan that runs.
const PLAN: &str = "server = 'memcached://cache:11211'\nconnections = 64\nprefix = \"it's:$HOME:\"\nlabel = ['END_OF_PLAN=é']\n";

/// Does a checker accept the script?
fn check(program: &str, flag: &str, script: &str) {
    Ended::from(Command::new(program).arg(flag).arg(script)).is(0, &[]);
}

#[test]
fn scripts_for_slurm_are_scripts() {
    let directory = Directory::new();
    let (plan, script) = (directory.with("plan.toml", PLAN), directory.path("job.sh"));
    for flags in [
        "--agents 1",
        "--agents 8 --nodes 4 --time 30:00 --partition load --port 7000 --binary '/opt/my brunt' --shared \"/it's $HOME\"",
    ] {
        let printed = ended(&format!("fleet slurm {flags} {plan}"));
        assert_eq!(printed.exit, 0, "{}", printed.said);
        assert!(!printed.out.contains("PRIVATE KEY"));
        directory.with("job.sh", &printed.out);
        check("bash", "-n", &script);
        if Command::new("shellcheck").arg("--version").output().is_ok() {
            check("shellcheck", "--norc", &script);
        }
        let (_, behind) = printed.out.split_once("<< 'END_OF_PLAN_'\n").unwrap();
        let (embedded, _) = behind.split_once("END_OF_PLAN_\n").unwrap();
        for line in ["prefix = \"it's:$HOME:\"", "fleet = "] {
            assert!(embedded.contains(line), "{embedded}");
        }
    }
    let text = directory.text("job.sh");
    for line in
        ["--nodes=4\n", "--ntasks=8\n", "--ntasks-per-node=2\n", "--time=30:00\n", "--partition=load\n"]
    {
        assert!(text.contains(&format!("#SBATCH {line}")), "{line}");
    }
    for line in ["brunt=\"/opt/my brunt\"\n", "shared=\"/it's \\$HOME\"\n", "--join \"$host:7000\""] {
        assert!(text.contains(line), "{line}");
    }
}

/// A job whose agents do not come up ends, instead of holding its nodes until its time limit.
#[test]
fn jobs_without_agents_end() {
    let folder = Directory::new();
    for (name, text) in [("srun", "#!/bin/sh\nexit 1\n"), ("scontrol", "#!/bin/sh\necho localhost\n")] {
        folder.with(name, text);
        fs::set_permissions(folder.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    // Free again at once.
    let port = TcpListener::bind("[::]:0").unwrap().local_addr().unwrap().port();
    let (plan, shared) = (folder.with("plan.toml", PLAN), folder.path(""));
    let printed =
        ended(&format!("fleet slurm --agents 2 --binary {PROGRAM} --shared {shared} --port {port} {plan}"));
    let script = printed.out.replace("timeout 60", "timeout 0.3");
    let mut job = Command::new("timeout");
    job.args(["20", "bash", "-c", &script]).env("PATH", format!("{shared}:/usr/bin:/bin"));
    for (name, value) in
        [("SUBMIT_DIR", &*shared), ("JOB_ID", "7"), ("CPUS_ON_NODE", "2"), ("JOB_NODELIST", "n1")]
    {
        job.env(format!("SLURM_{name}"), value);
    }
    let ended = Ended::from(&mut job);
    assert!(ended.exit != 0 && ended.exit != 124, "{}", ended.exit);
    assert!(ended.said.contains("brunt: no agent is left"), "{}", ended.said);
}

/// Files of TLS that the plan names are options of agents; in Kubernetes their contents are in the Secret.
#[test]
fn agents_get_the_files_of_tls() {
    let Some(certificates) = Certificates::issue() else { return };
    let plan = format!("server = 'rediss://cache'\ntls-ca = '{}'\n", certificates.path("ca.pem"));
    let plan = file("plan.toml", &plan);
    let script = &ended(&format!("fleet slurm --agents 2 {plan}")).out;
    assert!(script.contains(&format!("--target-ca {}", certificates.path("ca.pem"))), "{script}");
    let manifests = &ended(&format!("fleet kubernetes --agents 2 --image brunt:1 {plan}")).out;
    for part in [
        "  target-ca.pem: |\n    -----BEGIN CERTIFICATE-----\n",
        "\"--target-ca\", \"/etc/brunt/auth/target-ca.pem\"]",
    ] {
        assert!(manifests.contains(part), "{manifests}");
    }
    assert!(!manifests.contains(&*certificates.path("ca.pem")));
}

/// A trace is an option of agents, and the plan tells what is in it.
#[test]
fn agents_get_the_path_of_a_trace() {
    let trace = file("fleet trace.csv", "0,a,1,1,1,get,0\n");
    let keys = format!("trace = '{trace}'\ntrace-layout = 'twitter'\nreplay = true\npreload = false\n");
    let plan = file("traced.toml", &format!("server = 'memcached://cache'\n{keys}"));
    // By sha256sum.
    let told = "trace = \"sha256:d389c0a644cf43d5c29819ca126f33c1defe05a76d70f40668c600e544c64cc5,16\"";
    for (engine, option) in [
        ("slurm", format!("--trace \"{trace}\"")),
        ("kubernetes --image i", format!("\"--trace\", \"{trace}\"]")),
    ] {
        let text = &ended(&format!("fleet {engine} --agents 2 {plan}")).out;
        assert!(text.contains(&option) && text.contains(told), "{text}");
        assert!(!text.contains(&format!("trace = \"{trace}")), "{text}");
    }
}

/// The objects that Python's reader of YAML finds in manifests.
fn objects(text: &str) -> Option<Vec<Value>> {
    let path = file("fleet.yaml", text);
    let program = "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1])))))";
    let read = Ended::from(Command::new("python3").args(["-c", program, &path]));
    (read.exit == 0).then(|| serde_json::from_str(&read.out).unwrap())
}

#[test]
fn manifests_have_what_a_fleet_needs() {
    let directory = Directory::new();
    let plan = directory.with("plan.toml", PLAN);
    let flags = "--agents 64 --image registry.example/brunt:1 --namespace load --cpu 4 --memory 2Gi";
    let printed = ended(&format!("fleet kubernetes {flags} {plan}"));
    assert_eq!(printed.exit, 0, "{}", printed.said);
    let Some(objects) = objects(&printed.out) else {
        return eprintln!("skipped: python3 has no yaml");
    };
    let kinds: Vec<&str> = objects.iter().map(|object| object["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["ConfigMap", "Secret", "Service", "Job", "Job"]);
    let name = objects[0]["metadata"]["name"].as_str().unwrap();
    for object in &objects {
        let metadata = &object["metadata"];
        assert_eq!(
            [&metadata["namespace"], &metadata["labels"]["app.kubernetes.io/instance"]],
            ["load", name]
        );
    }
    // The plan is the one that was given.
    let kept = temporary("kept.toml");
    std::fs::write(&*kept, objects[0]["data"]["plan.toml"].as_str().unwrap()).unwrap();
    assert!(kept.text().contains("prefix = \"it's:$HOME:\"") && kept.text().contains("END_OF_PLAN=é"));
    let secrets: Vec<&String> = objects[1]["stringData"].as_object().unwrap().keys().collect();
    assert_eq!(secrets, ["token", "ca.pem", "certificate.pem", "key.pem"]);
    assert_eq!(objects[2]["spec"]["clusterIP"], "None");
    for job in &objects[3..] {
        let pod = &job["spec"]["template"]["spec"];
        let container = &pod["containers"][0];
        assert_eq!(job["spec"]["ttlSecondsAfterFinished"], 3600);
        assert_eq!(pod["securityContext"]["runAsUser"], 65532);
        assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
        assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
        assert_eq!(container["securityContext"]["capabilities"]["drop"][0], "ALL");
        assert_eq!(container["resources"]["requests"], container["resources"]["limits"]);
    }
    // A second of warm-up, ten of the window, ten to drain, 100000 keys at 20000 a second, twice; and an hour.
    for job in &objects[3..] {
        assert_eq!(job["spec"]["activeDeadlineSeconds"], 3_652);
    }
    let agents = &objects[4]["spec"];
    assert_eq!(
        [&agents["completionMode"], &agents["completions"], &agents["parallelism"]],
        [&Value::from("Indexed"), &Value::from(64), &Value::from(64)]
    );
    assert_eq!(agents["backoffLimitPerIndex"], 3);
    let container = &agents["template"]["spec"]["containers"][0];
    assert_eq!(container["env"][0]["value"], "64");
    assert_eq!(
        [&container["resources"]["limits"]["cpu"], &container["resources"]["limits"]["memory"]],
        ["4", "2Gi"]
    );
    let arguments: Vec<&str> =
        container["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    assert_eq!(
        arguments,
        ["agent", "--join", &format!("{name}:5556"), "--auth", "/etc/brunt/auth", "--threads", "3"]
    );
}

/// Plans that no fleet of an engine could run, or that would show a secret.
#[test]
fn plans_that_no_fleet_has_are_refused() {
    for (plan, reason) in [
        ("server = 'redis://me:hunter2@h'\n", "password cannot be used with brunt fleet"),
        ("server = 'redis://h'\npassword = 'hunter2'\n", "password cannot be used with brunt fleet"),
        ("server = 'unix:/run/cache.sock'\n", "server cannot be used with brunt fleet"),
        (
            "server = 'memcached://h'\ntrace = 't.csv'\ntrace-layout = 'twitter'\n",
            "t.csv' (No such file or directory",
        ),
        ("server = 'memcached://h'\nagent = ['h']\n", "--fleet cannot be used with --agent"),
        ("keys = 5\n", "--fleet requires --server"),
        (
            "server = 'memcached://h'\nthreads = 1\n",
            "--threads is below the number of agents: expected at least 2",
        ),
        ("server = 'memcached://h'\nfleet = 4\n", "--agents 2 cannot be used with a plan whose fleet is 4"),
        ("server = 'rediss://h'\ntls-ca = '/no/such/ca.pem'\n", "tls-ca: cannot read '/no/such/ca.pem'"),
        ("rat = 5\n", "unknown field `rat`"),
    ] {
        let plan = file("plan.toml", plan);
        let refused = ended(&format!("fleet kubernetes --agents 2 --image i {plan}"));
        refused.is(2, &[reason]);
        assert!(!refused.said.contains("hunter2"));
    }
}
