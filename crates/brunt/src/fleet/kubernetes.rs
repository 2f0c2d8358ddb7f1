//! Manifests for kubectl.
//!
//! Pure but for files of TLS that the plan names. Invariant: every text is a block that keeps its lines, or is quoted.

use super::{Planned, file_options, filled};
use crate::cli::Kubernetes;
use crate::exit::Failure;
use crate::input;
use crate::run::random_seed;
use brunt_fleet::PORT;
use brunt_plan::spec::PlanSpec;
use std::path::Path;

const TEMPLATE: &str = include_str!("kubernetes.yaml");
/// How long a Job may wait for nodes, images and the other Job; twice the length of the run comes on top.
const WAIT_SECONDS: u64 = 3600;
/// Where the Secret is in every pod.
const FOLDER: &str = "/etc/brunt/auth";
/// The user of the image: neither root nor one of a host.
const POD: &str = r#"      restartPolicy: Never
      automountServiceAccountToken: false
      enableServiceLinks: false
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        fsGroup: 65532
        seccompProfile: {type: RuntimeDefault}
      # As few on a node as there are nodes for.
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          labelSelector: {matchLabels: {app.kubernetes.io/instance: @NAME@}}
      volumes:
        - name: plan
          configMap: {name: @NAME@}
        - name: auth
          # Octal 0440: its user reads it by the group.
          secret: {secretName: @NAME@, defaultMode: 288}"#;
const CONTAINER: &str = r#"          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: {drop: ["ALL"]}
          volumeMounts:
            - {name: auth, mountPath: /etc/brunt/auth, readOnly: true}"#;

/// Lets the plan name its files of TLS where the Secret has them. Returns them by their names there.
///
/// # Errors
/// A file cannot be read; for a user.
pub(super) fn take_target_files(spec: &mut PlanSpec) -> Result<Vec<(String, String)>, Failure> {
    let run = &mut spec.run;
    let named = [("ca", &mut run.tls_ca), ("cert", &mut run.tls_cert), ("key", &mut run.tls_key)];
    let mut files = Vec::new();
    for (what, path) in named.into_iter().filter_map(|(what, path)| Some((what, path.as_mut()?))) {
        let text = input::read_text(Path::new(path), input::BYTES_MAX).map_err(|error| {
            Failure::usage(format!("tls-{what}: cannot read '{path}' ({error}): expected a file in PEM"))
        })?;
        let name = format!("target-{what}.pem");
        *path = format!("{FOLDER}/{name}");
        files.push((name, text));
    }
    Ok(files)
}

/// The objects of this fleet, with these files in its Secret.
pub(super) fn manifests(flags: &Kubernetes, planned: &Planned, secrets: &[(String, String)]) -> String {
    let name = format!("brunt-{:08x}", random_seed() as u32);
    let namespace = |before: &str| {
        flags.namespace.as_ref().map_or(String::new(), |namespace| format!("{before}{namespace}"))
    };
    let files = file_options(planned, |option, path| format!(", \"{option}\", \"{path}\""));
    let deadline = planned.seconds.map_or(String::new(), |run| {
        format!("  activeDeadlineSeconds: {}\n", run.saturating_mul(2).saturating_add(WAIT_SECONDS))
    });
    let secrets: String = secrets.iter().map(|(name, text)| format!("  {name}: {}\n", block(text))).collect();
    let template = TEMPLATE.replace("@POD@", POD).replace("@CONTAINER@", CONTAINER);
    filled(
        &template,
        &[
            ("NAME", &name),
            ("NAMESPACE", &namespace("\n  namespace: ")),
            ("IN", &namespace(" -n ")),
            ("AGENTS", &flags.fleet.agents.to_string()),
            ("IMAGE", &quoted(&flags.image)),
            ("CPU", &flags.cpu.to_string()),
            ("THREADS", &(flags.cpu - 1).max(1).to_string()),
            ("MEMORY", &quoted(&flags.memory)),
            ("PORT", &PORT.to_string()),
            ("FILES", &files),
            ("DEADLINE", &deadline),
            ("PLAN", &block(&planned.spec.to_toml())),
            ("SECRETS", &secrets),
        ],
    )
}

/// Lines as they are, below a key at two blanks; or a quoted text where YAML reads a letter of theirs otherwise.
fn block(text: &str) -> String {
    let is_kept = |byte: u8| byte == b'\n' || (b' '..=b'~').contains(&byte);
    if !text.bytes().all(is_kept) || !text.ends_with('\n') || text.starts_with([' ', '\n']) {
        return quoted(text);
    }
    let lines: Vec<String> = text.trim_end().lines().map(|line| format!("    {line}")).collect();
    format!("|\n{}", lines.join("\n"))
}

/// A text in double quotes, for every version of YAML.
fn quoted(text: &str) -> String {
    let escaped = text.chars().map(|letter| match letter {
        '"' | '\\' => format!("\\{letter}"),
        ' '..='~' => letter.to_string(),
        _ => format!("\\U{:08X}", u32::from(letter)),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_blocks_or_quoted() {
        for (text, expected) in [
            ("a = 1\n  b\n", "|\n    a = 1\n      b"),
            ("a", "\"a\""),
            (" a\n", "\" a\\U0000000A\""),
            ("\"\\\n", "|\n    \"\\"),
            ("\u{85}\n", "\"\\U00000085\\U0000000A\""),
        ] {
            assert_eq!(block(text), expected);
        }
    }
}
