//! The layers of the workspace: each crate with the crates that it may use.
//!
//! Invariant: a crate uses crates of lower layers only, and no neighbour.

/// A crate of ours and the crates of ours that it may see.
pub(super) struct Layer {
    pub(super) name: &'static str,
    /// Takes bytes and numbers only: clippy forbids it clocks, files, sockets, threads and printing.
    pub(super) is_pure: bool,
    pub(super) may_use: &'static [&'static str],
    /// Allowed in addition for its tests.
    pub(super) may_test_with: &'static [&'static str],
}

const fn pure(name: &'static str, may_use: &'static [&'static str]) -> Layer {
    Layer { name, is_pure: true, may_use, may_test_with: &[] }
}

const fn effectful(
    name: &'static str,
    may_use: &'static [&'static str],
    may_test_with: &'static [&'static str],
) -> Layer {
    Layer { name, is_pure: false, may_use, may_test_with }
}

/// Every crate, from the ground up.
pub(super) const LAYERS: [Layer; 14] = [
    // 0: vocabulary.
    pure("brunt-plan", &[]),
    // 1: each sees the vocabulary and nothing else.
    pure("brunt-workload", &["brunt-plan"]),
    pure("brunt-proto", &["brunt-plan"]),
    pure("brunt-stats", &["brunt-plan"]),
    pure("brunt-picture", &["brunt-plan"]),
    effectful("brunt-server", &["brunt-plan"], &[]),
    // 2: the loop, and what is written about it. They do not know one another.
    effectful(
        "brunt-engine",
        &["brunt-plan", "brunt-workload", "brunt-proto", "brunt-stats"],
        // As the peer: it shares no code with the codecs that it tests.
        &["brunt-server"],
    ),
    pure("brunt-report", &["brunt-plan", "brunt-stats", "brunt-picture"]),
    pure("brunt-compat", &["brunt-plan", "brunt-stats", "brunt-picture"]),
    // 3: several engines as one.
    effectful("brunt-fleet", &["brunt-plan", "brunt-stats", "brunt-engine"], &["brunt-server"]),
    // 4: wiring.
    effectful(
        "brunt",
        &[
            "brunt-plan",
            "brunt-workload",
            "brunt-proto",
            "brunt-stats",
            "brunt-picture",
            "brunt-server",
            "brunt-engine",
            "brunt-fleet",
            "brunt-report",
            "brunt-compat",
        ],
        &[],
    ),
    // Beside the layers.
    effectful(
        "brunt-bench",
        &["brunt-plan", "brunt-workload", "brunt-proto", "brunt-stats", "brunt-server", "brunt-engine"],
        &[],
    ),
    effectful(
        "brunt-fuzz",
        &[
            "brunt-plan",
            "brunt-workload",
            "brunt-proto",
            "brunt-stats",
            "brunt-server",
            "brunt-report",
            "brunt-compat",
            "brunt-fleet",
        ],
        &[],
    ),
    effectful("xtask", &[], &[]),
];
