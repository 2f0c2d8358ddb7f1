//! A headless Chromium that is told what to do through a pipe, in the DevTools protocol: JSON messages with a NUL behind each.
//!
//! Invariant: it ends with this program, and after [`LIMIT_S`] at the latest.

use crate::programs;
use anyhow::{Context, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use tempfile::TempDir;

/// No test takes longer.
const LIMIT_S: &str = "240";
/// Chromium speaks on descriptors 3 and 4.
const DESCRIPTORS: &str = "exec 3<&0 4>&1 0</dev/null 1>/dev/null 2>/dev/null; exec \"$@\"";

pub(crate) struct Browser {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    session: Option<String>,
    last_id: u64,
    events: Vec<Value>,
    /// Its profile and whatever else it writes.
    _scratch: TempDir,
}

/// Its path, if it is there.
fn program() -> Option<PathBuf> {
    ["chromium", "chromium-browser", "google-chrome"].into_iter().find_map(programs::on_path)
}

/// Installs one if there is none.
///
/// # Errors
/// It is missing and cannot be installed.
pub(crate) fn ready() -> anyhow::Result<()> {
    if program().is_some() { Ok(()) } else { programs::ensure_all(programs::BROWSER) }
}

impl Browser {
    /// Starts one with an empty profile.
    pub(crate) fn start() -> anyhow::Result<Self> {
        let program = program().context("chromium is not on the PATH")?;
        let scratch = tempfile::Builder::new().prefix("brunt-browser-").tempdir()?;
        let mut command = Command::new("timeout");
        command.args(["--kill-after=5", LIMIT_S, "sh", "-c", DESCRIPTORS, "sh"]).arg(program);
        // Without its sandbox it runs as root, too; what it loads is ours.
        command.args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--remote-debugging-pipe",
        ]);
        command.arg(format!("--user-data-dir={}", scratch.path().display())).env("TMPDIR", scratch.path());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take().context("its input is a pipe")?;
        let output = BufReader::new(child.stdout.take().context("its output is a pipe")?);
        let (session, events, _scratch) = (None, Vec::new(), scratch);
        let mut browser = Self { child, input, output, session, last_id: 0, events, _scratch };
        let target = browser.call("Target.createTarget", &json!({ "url": "about:blank" }))?;
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", &attach)?;
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), &json!({}))?;
        }
        Ok(browser)
    }

    fn call(&mut self, method: &str, parameters: &Value) -> anyhow::Result<Value> {
        self.last_id += 1;
        let mut message = json!({ "id": self.last_id, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.input.write_all(format!("{message}\0").as_bytes())?;
        self.input.flush()?;
        loop {
            let answer = self.receive().with_context(|| format!("no answer to {method}"))?;
            if answer["id"] == self.last_id {
                ensure!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return Ok(answer["result"].clone());
            }
            self.events.push(answer);
        }
    }

    fn receive(&mut self) -> anyhow::Result<Value> {
        let mut bytes = Vec::new();
        self.output.read_until(0, &mut bytes)?;
        ensure!(bytes.pop() == Some(0), "Chromium has ended");
        Ok(serde_json::from_slice(&bytes)?)
    }

    /// Opens an address or the path of a file in a window of this size.
    pub(crate) fn open(
        &mut self,
        page: impl AsRef<Path>,
        (width, height): (u32, u32),
        is_dark: bool,
    ) -> anyhow::Result<()> {
        let page = page.as_ref().display().to_string();
        let url = if page.starts_with('/') { format!("file://{page}") } else { page };
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", &metrics)?;
        let scheme = if is_dark { "dark" } else { "light" };
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.call("Emulation.setEmulatedMedia", &media)?;
        let before = self.events.len();
        self.call("Page.navigate", &json!({ "url": url }))?;
        let is_load = |event: &Value| event["method"] == "Page.loadEventFired";
        while !self.events[before..].iter().any(is_load) {
            let event = self.receive()?;
            self.events.push(event);
        }
        Ok(())
    }

    fn evaluate(&mut self, expression: &str) -> anyhow::Result<Value> {
        let parameters = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", &parameters)?;
        ensure!(answer["exceptionDetails"].is_null(), "{expression}: {}", answer["exceptionDetails"]);
        Ok(answer["result"]["value"].clone())
    }

    pub(crate) fn run(&mut self, statement: &str) -> anyhow::Result<()> {
        self.evaluate(&format!("{{ {statement}; }} 0")).map(|_| ())
    }

    /// The value of an expression.
    pub(crate) fn value<T: DeserializeOwned>(&mut self, expression: &str) -> anyhow::Result<T> {
        let value = self.evaluate(expression)?;
        serde_json::from_value(value.clone()).with_context(|| format!("{expression} is {value}"))
    }

    /// Moves, presses or releases the mouse, with its left button.
    pub(crate) fn mouse(&mut self, kind: &str, x: f64, y: f64) -> anyhow::Result<()> {
        let button = if kind == "mouseMoved" { "none" } else { "left" };
        let event = json!({ "type": kind, "x": x, "y": y, "button": button, "clickCount": 1 });
        self.call("Input.dispatchMouseEvent", &event).map(|_| ())
    }

    pub(crate) fn key(&mut self, key: &str) -> anyhow::Result<()> {
        self.call("Input.dispatchKeyEvent", &json!({ "type": "keyDown", "key": key }))?;
        self.call("Input.dispatchKeyEvent", &json!({ "type": "keyUp", "key": key })).map(|_| ())
    }

    /// What pages said on the console, threw, or asked for, but for their own files and what lies at this address.
    pub(crate) fn trouble(&mut self, own: &str) -> Vec<String> {
        let trouble = |event: &Value| {
            let parameters = &event["params"];
            match event["method"].as_str()? {
                "Log.entryAdded" | "Runtime.exceptionThrown" | "Runtime.consoleAPICalled" => {
                    Some(parameters.to_string())
                }
                "Network.requestWillBeSent" => {
                    let url = parameters["request"]["url"].as_str()?;
                    let is_own = url.starts_with("file:") || url.starts_with(own) || url == "about:blank";
                    (!is_own).then(|| format!("requested {url}"))
                }
                _ => None,
            }
        };
        std::mem::take(&mut self.events).iter().filter_map(trouble).collect()
    }

    /// Writes the whole page as PNG.
    pub(crate) fn picture(&mut self, path: &Path) -> anyhow::Result<()> {
        let height: f64 = self.value("document.documentElement.scrollHeight")?;
        self.picture_between(0.0, height, path)
    }

    /// Writes what of the page lies between two heights.
    pub(crate) fn picture_between(&mut self, from: f64, to: f64, path: &Path) -> anyhow::Result<()> {
        let width: f64 = self.value("innerWidth")?;
        let clip = json!({ "x": 0, "y": from, "width": width, "height": to - from, "scale": 1 });
        let parameters = json!({ "captureBeyondViewport": true, "clip": clip });
        let shot = self.call("Page.captureScreenshot", &parameters)?;
        write_base64(path, &shot["data"])
    }

    /// Writes the page as it is printed.
    pub(crate) fn print(&mut self, path: &Path) -> anyhow::Result<()> {
        let printed = self.call("Page.printToPDF", &json!({}))?;
        write_base64(path, &printed["data"])
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.session = None;
        let _ = self.call("Browser.close", &json!({}));
        let _ = self.child.wait();
    }
}

fn write_base64(path: &Path, data: &Value) -> anyhow::Result<()> {
    let bytes = STANDARD.decode(data.as_str().context("no picture")?)?;
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}
