//! Runs of `brunt mutilate`: how tests begin them, and what they printed.

use crate::server::{Server, brunt};
use std::process::Output;

/// Its end, with these options against this server.
pub(crate) fn mutilate(server: &Server, options: &str) -> Output {
    let words: Vec<&str> = options.split_whitespace().collect();
    brunt(&["mutilate", "-s", &server.address]).args(words).output().unwrap()
}

/// Its report and what it said beside it, of one that has succeeded.
pub(crate) fn report(output: &Output) -> (String, String) {
    let [text, said] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert_eq!(output.status.code(), Some(0), "{text}{said}");
    (text, said)
}
