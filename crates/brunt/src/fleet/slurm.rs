//! A script for sbatch.
//!
//! Pure. Invariant: words of the user are quoted for the shell, and the plan is what its author wrote, whatever is in it.

use super::{Planned, file_options, filled};
use crate::cli::Slurm;

const TEMPLATE: &str = include_str!("slurm.sh");

/// The job of this fleet.
pub(super) fn script(flags: &Slurm, planned: &Planned) -> String {
    let agents = flags.fleet.agents;
    let nodes = flags.nodes.unwrap_or(agents).min(agents);
    let option = |name: &str, value: &Option<String>| {
        value.as_ref().map_or(String::new(), |value| format!("#SBATCH --{name}={value}\n"))
    };
    let options = option("time", &flags.time) + &option("partition", &flags.partition);
    let files = file_options(planned, |option, path| format!(" \\\n    {option} {}", quoted(path)));
    let plan = planned.spec.to_toml();
    let shared = flags.shared.as_ref().map(|path| quoted(&path.display().to_string()));
    filled(
        TEMPLATE,
        &[
            ("AGENTS", &agents.to_string()),
            ("NODES", &nodes.to_string()),
            ("PER_NODE", &agents.div_ceil(nodes).to_string()),
            ("OPTIONS", &options),
            ("BINARY", &quoted(&flags.binary.display().to_string())),
            ("SHARED", shared.as_deref().unwrap_or("$SLURM_SUBMIT_DIR")),
            ("PORT", &flags.port.to_string()),
            ("FILES", &files),
            ("END", &end_of(&plan)),
            ("PLAN", &plan),
        ],
    )
}

/// A line that is not in the plan.
fn end_of(plan: &str) -> String {
    let mut end = "END_OF_PLAN".to_owned();
    while plan.contains(&end) {
        end.push('_');
    }
    end
}

/// A word of the shell.
fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+,:".contains(&byte);
    match word.bytes().all(is_plain) && !word.is_empty() {
        true => word.to_owned(),
        // A dollar between single quotes is taken for a mistake by checkers.
        false => {
            let escaped = word
                .chars()
                .flat_map(|letter| r#"\"$`"#.contains(letter).then_some('\\').into_iter().chain([letter]));
            format!("\"{}\"", escaped.collect::<String>())
        }
    }
}
