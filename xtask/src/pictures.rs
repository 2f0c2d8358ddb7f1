//! `cargo xtask pictures`: what docs/img/ holds, drawn from real runs of brunt on this machine.
//!
//! Not a test: what comes of it is for readers, and a person looks at it before it is committed.

use crate::browser::Browser;
use crate::reference_server::ReferenceServer;
use crate::release_build::{self, target_folder};
use crate::{programs, terminal_picture, top};
use anyhow::ensure;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A server that answers nothing for a second, a third into the window.
const STALL: &str = "8s:1s";
const RUN: [&str; 10] =
    ["-r", "10k", "--mix", "get=8,mget=1,set=1", "--warmup", "2s", "-t", "18s", "--keys", "20000"];
const SCAN: [&str; 10] =
    ["-c", "32", "--over", "rate=auto", "--warmup", "500ms", "-t", "2s", "--keys", "20000"];
/// Columns and rows of a terminal, and when it is looked at: five seconds after the outage.
const TERMINAL: (u32, u32) = (100, 34);
const SHOWN_AFTER_S: &str = "15";
/// Of the window that the page is shown in.
const WIDTH: u32 = 1080;
/// Where the picture of the page's beginning ends: below the latency by percentile.
const TOP: &str = "document.getElementById('spectrum').getBoundingClientRect().bottom + scrollY";

/// What each picture is made from: a brunt, a folder for what is between, and docs/img/.
struct Studio {
    brunt: PathBuf,
    between: PathBuf,
    pictures: PathBuf,
}

/// Draws all pictures, with this brunt, or with a release build of the working tree.
///
/// # Errors
/// What a run, a page or a figure failed with.
pub(crate) fn run(brunt: Option<&str>) -> anyhow::Result<()> {
    programs::ensure_browser()?;
    let target = target_folder()?;
    let brunt = match brunt {
        Some(path) => std::path::absolute(path)?,
        None => {
            release_build::build(&target, &["-p", "brunt"], &[])?;
            target.join("release/brunt")
        }
    };
    let studio = Studio { brunt, between: target.join("pictures"), pictures: top().join("docs/img") };
    fs::create_dir_all(&studio.between)?;
    fs::create_dir_all(&studio.pictures)?;
    report(&studio)?;
    terminal(&studio)?;
    scan(&studio)?;
    println!("look at {}", studio.pictures.display());
    Ok(())
}

impl Studio {
    fn between(&self, name: &str) -> String {
        self.between.join(name).display().to_string()
    }

    fn picture(&self, name: &str) -> PathBuf {
        self.pictures.join(name)
    }

    fn brunt(&self, words: &[&str]) -> anyhow::Result<()> {
        let status = Command::new(&self.brunt).args(words).stdin(Stdio::null()).status()?;
        // Whatever the status.
        let is_made = status.code().is_some_and(|code| code != 1 && code != 2);
        ensure!(is_made, "brunt {} ended with {status}", words.join(" "));
        Ok(())
    }

    /// Draws a figure of a result.
    fn figure(&self, result: &str, figure: &str, name: &str, more: &[&str]) -> anyhow::Result<()> {
        let request = format!("{figure}={}", self.picture(name).display());
        let words = ["report", result, "--quiet", "--allow=BROKEN,LOAD,CLIENT,DATA", "--figure", &request];
        self.brunt(&[&words[..], more].concat())
    }
}

/// The page of a run with an outage: its beginning, and its section over time, light and dark.
fn report(studio: &Studio) -> anyhow::Result<()> {
    let server = ReferenceServer::start(&studio.brunt, &["--stall", STALL])?;
    let (json, html) = (studio.between("run.json"), studio.between("run.html"));
    let words = [
        "run",
        "-s",
        &server.address,
        "--quiet",
        "--allow=BROKEN,LOAD,CLIENT,DATA",
        "--json",
        &json,
        "--html",
        &html,
    ];
    studio.brunt(&[&words[..], &RUN].concat())?;
    drop(server);
    let mut browser = Browser::start(&studio.between)?;
    for (is_dark, theme) in [(false, "light"), (true, "dark")] {
        browser.open(Path::new(&html), (WIDTH, 900), is_dark)?;
        let end = browser.number(TOP)?;
        browser.picture_between(0.0, end, &studio.picture(&format!("report-{theme}.png")))?;
        let edge =
            |side: &str| format!("document.getElementById('time').getBoundingClientRect().{side} + scrollY");
        let (start, end) = (browser.number(&edge("top"))?, browser.number(&edge("bottom"))?);
        browser.picture_between(start, end, &studio.picture(&format!("over-time-{theme}.png")))?;
    }
    studio.figure(&json, "timeline", "timeline.svg", &["--figure-width", "page"])?;
    studio.figure(&json, "spectrum", "spectrum.svg", &[])
}

/// `--tui` in the same run, some seconds after the outage.
fn terminal(studio: &Studio) -> anyhow::Result<()> {
    ensure!(programs::on_path("tmux").is_some(), "tmux is not on the PATH: apt-get install tmux");
    let server = ReferenceServer::start(&studio.brunt, &["--stall", STALL])?;
    let tmux = |words: &[&str]| {
        Command::new("tmux").args(["-L", "brunt-pictures", "-f", "/dev/null"]).args(words).output()
    };
    let run = [
        &studio.brunt.display().to_string(),
        "run",
        "--tui",
        "-s",
        &server.address,
        "--allow=BROKEN,LOAD,CLIENT,DATA",
    ];
    let command = [&run[..], &RUN].concat().join(" ");
    let (columns, rows) = (TERMINAL.0.to_string(), TERMINAL.1.to_string());
    let colors = ["start-server", ";", "set", "-g", "default-terminal", "tmux-256color", ";"];
    let session = ["new-session", "-d", "-x", &columns, "-y", &rows, &command];
    let started = tmux(&[&colors[..], &session].concat())?;
    ensure!(started.status.success(), "tmux: {}", String::from_utf8_lossy(&started.stderr));
    Command::new("sleep").arg(SHOWN_AFTER_S).status()?;
    let screen = tmux(&["capture-pane", "-e", "-p"])?;
    tmux(&["kill-server"])?;
    ensure!(screen.status.success(), "tmux: {}", String::from_utf8_lossy(&screen.stderr));
    let page = PathBuf::from(studio.between("terminal.html"));
    fs::write(&page, terminal_picture::page(&String::from_utf8(screen.stdout)?))?;
    let mut browser = Browser::start(&studio.between)?;
    browser.open(&page, (WIDTH, 900), false)?;
    let side =
        |side: &str| format!("Math.ceil(document.querySelector('pre').getBoundingClientRect().{side})");
    let (width, height) = (browser.number(&side("width"))?, browser.number(&side("height"))?);
    browser.open(&page, (width as u32, height as u32), false)?;
    browser.picture_between(0.0, height, &studio.picture("terminal.png"))
}

/// The curve of a scan.
fn scan(studio: &Studio) -> anyhow::Result<()> {
    let server = ReferenceServer::start(&studio.brunt, &[])?;
    let json = studio.between("scan.json");
    let words =
        ["scan", "-s", &server.address, "--quiet", "--allow=BROKEN,LOAD,CLIENT,DATA", "--json", &json];
    studio.brunt(&[&words[..], &SCAN].concat())?;
    studio.figure(&json, "curve", "curve.svg", &["--figure-width", "page"])
}
