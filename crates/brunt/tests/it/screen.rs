//! `--progress tui` on a terminal of its own, which `script` of util-linux makes.

use crate::cluster::wait_until;
use crate::server::{Directory, Ended, plain, side_by_side};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

const ENTERED: &str = "\x1b[?1049h";
const LEFT: &str = "\x1b[?1049l";

/// A run on a terminal of 80x24, with these flags; `before` is for the shell that starts it.
fn on_terminal(before: &str, flags: &str) -> Command {
    let brunt = plain(&format!("run --progress=tui -c 2 --rate 200 -t 60s --warmup 0s --keys 100 {flags}"));
    let words = brunt.get_args().map(|word| word.to_string_lossy().into_owned());
    let command = format!(
        "stty rows 24 cols 80; {before} exec {} {} --allow=BROKEN,LOAD,CLIENT,DATA",
        brunt.get_program().display(),
        words.collect::<Vec<_>>().join(" ")
    );
    let mut script = Command::new("script");
    script
        .args(["-q", "-e", "-c", &command, "/dev/null"])
        .env("TERM", "xterm-256color")
        .env_remove("NO_COLOR");
    script.stdin(Stdio::piped()).stdout(Stdio::piped());
    script
}

/// What the terminal gets to see until it shows the table, and then does not leave.
fn until_table(output: &mut impl Read) -> Vec<u8> {
    let (mut seen, mut bytes) = (Vec::new(), [0; 4 << 10]);
    while !String::from_utf8_lossy(&seen).contains("done/s") {
        let len = output.read(&mut bytes).unwrap();
        assert!(len > 0, "no table: {:?}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&bytes[..len]);
    }
    seen
}

/// What a terminal gets to see of a run that is ended by these keys.
fn seen(keys: &[u8]) -> (Option<i32>, String) {
    let mut child = on_terminal("", "").spawn().unwrap();
    let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut seen = until_table(&mut output);
    input.write_all(keys).unwrap();
    output.read_to_end(&mut seen).unwrap();
    (child.wait().unwrap().code(), String::from_utf8_lossy(&seen).into_owned())
}

/// The report stands on the terminal as it was, and the exit code is that of an interrupted run.
#[test]
fn the_terminal_is_given_back_before_the_report() {
    for keys in [&b"q"[..], b"\x03"] {
        let (code, text) = seen(keys);
        let entered = text.find(ENTERED).unwrap_or_else(|| panic!("no screen: {text:?}"));
        let left = text.rfind(LEFT).unwrap_or_else(|| panic!("never left: {text:?}"));
        let (screen, after) = (&text[entered..left], &text[left..]);
        assert!(screen.contains("response times by second"), "{screen:?}");
        assert!(after.contains("the report follows") && after.contains("interrupted"), "{after:?}");
        assert!(after.contains("response, ") && !screen.contains("interrupted"), "{text:?}");
        assert_eq!((code, text.matches(ENTERED).count(), text.matches(LEFT).count()), (Some(130), 1, 1));
    }
}

/// Whatever size a terminal says it has, there is a screen, and the run ends as it was to.
#[test]
fn terminals_of_any_size_have_a_screen() {
    let sizes = ["rows 24 cols 30000", "rows 65535 cols 65535", "rows 1 cols 1", "rows 0 cols 0"];
    side_by_side(sizes, |size| {
        let output = Ended::from(on_terminal(&format!("stty {size};"), "-n 100").stdin(Stdio::null()));
        let text = &output.out;
        assert_eq!(output.exit, 0, "{size}: {text:?}");
        assert!(text.contains(ENTERED) && text.contains(LEFT) && text.len() < 10 << 20, "{size}");
    });
}

/// A document on standard output is whole there while the screen is on standard error. Where both are one terminal, lines that come meanwhile
/// are refused.
#[test]
fn documents_and_the_screen_do_not_mix() {
    let directory = Directory::new();
    let path = directory.join("document");
    for option in ["json:-", "ndjson:-"] {
        let redirected = format!("-o {option} > {}", path.to_str().unwrap());
        let mut child = on_terminal("", &redirected).spawn().unwrap();
        let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut seen = until_table(&mut output);
        input.write_all(b"q").unwrap();
        output.read_to_end(&mut seen).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130), "{:?}", String::from_utf8_lossy(&seen));
        let (seen, document) = (String::from_utf8(seen).unwrap(), fs::read_to_string(&path).unwrap());
        assert!(seen[seen.rfind(LEFT).unwrap()..].contains("response, "), "{seen:?}");
        let values = serde_json::Deserializer::from_str(&document).into_iter::<Value>();
        let count = values.map(|value| assert!(value.unwrap().is_object())).count();
        assert!(count > 0, "{option}: {document}");
    }
    let mut child = on_terminal("", "-o ndjson:-").spawn().unwrap();
    let input = child.stdin.take();
    let output = Ended::from(child);
    drop(input);
    let seen = &output.out;
    assert_eq!(output.exit, 2, "{seen:?}");
    assert!(
        seen.contains("--progress tui cannot be used with -o ndjson:-: both would write")
            && !seen.contains(ENTERED)
    );
}

/// Who closes the terminal ends the run, as the hangup does that comes with it: it is drained, its result is written, and nothing goes on.
#[test]
fn a_run_ends_with_its_terminal() {
    let directory = Directory::new();
    let (number, result) = (directory.join("pid"), directory.join("out.json"));
    let before = format!("echo $$ > {};", number.display());
    let mut child = on_terminal(&before, &format!("-o {}", result.to_str().unwrap())).spawn().unwrap();
    until_table(&mut child.stdout.take().unwrap());
    let process = format!("/proc/{}", fs::read_to_string(number).unwrap().trim());
    assert!(Path::new(&process).exists(), "{process}");
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("end of the run", || !Path::new(&process).exists());
    assert_eq!(
        serde_json::from_slice::<Value>(&fs::read(result).unwrap()).unwrap()["window"]["interrupted"],
        true
    );
}
