//! What is wrong with an option: an error that ends with its exit code, or a warning.
//!
//! Invariant: a message names the option as mutilate spells it.

use super::EXIT_REFUSED;

/// Why nothing is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidOption {
    /// The exit code.
    pub code: u8,
    /// The message for the user.
    pub message: String,
}

/// A command line that can be read and not be carried out.
impl From<String> for InvalidOption {
    fn from(message: String) -> Self {
        Self { code: EXIT_REFUSED, message }
    }
}

/// What is said of a word that is no option and no option's.
pub(super) fn stray_warning(stray: &str) -> String {
    format!("'{stray}': without effect; it belongs to no option")
}
