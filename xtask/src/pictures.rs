//! `cargo xtask pictures`: what docs/img/ holds, drawn from real runs of brunt on this machine.
//!
//! Not a test: what comes of it is for readers, and a person looks at it before it is committed.

use crate::browser::{self, Browser};
use crate::process::{ALLOW, ReferenceServer, run_brunt};
use crate::{cargo, programs, top};
use ansi_to_html::{Converter, Theme};
use anyhow::ensure;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

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
pub(crate) fn run(brunt: Option<&Path>) -> anyhow::Result<()> {
    browser::ready()?;
    programs::ensure_all(programs::TERMINAL)?;
    let target = cargo::target_folder()?;
    let brunt = match brunt {
        Some(path) => std::path::absolute(path)?,
        None => cargo::release_programs()?[0].clone(),
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

    /// Draws a figure of a result.
    fn figure(&self, result: &str, figure: &str, name: &str, more: &[&str]) -> anyhow::Result<()> {
        let request = format!("{figure}:{}", self.picture(name).display());
        let words = ["report", result, "-o", &request];
        run_brunt(&self.brunt, &[&words[..], more].concat())
    }
}

/// The page of a run with an outage: its beginning, and its section over time, light and dark.
fn report(studio: &Studio) -> anyhow::Result<()> {
    let server = ReferenceServer::start(&studio.brunt, &["--stall", STALL])?;
    let (json, html) = (studio.between("run.json"), studio.between("run.html"));
    let words = ["run", ALLOW, "-s", &server.address, "-o", &json, "-o", &html];
    run_brunt(&studio.brunt, &[&words[..], &RUN].concat())?;
    drop(server);
    let mut browser = Browser::start()?;
    for (is_dark, theme) in [(false, "light"), (true, "dark")] {
        browser.open(&html, (WIDTH, 900), is_dark)?;
        // The picture of the beginning ends below the latency by percentile.
        let (_, end) = edges(&mut browser, "spectrum")?;
        browser.picture_between(0.0, end, &studio.picture(&format!("report-{theme}.png")))?;
        let (start, end) = edges(&mut browser, "time")?;
        browser.picture_between(start, end, &studio.picture(&format!("over-time-{theme}.png")))?;
    }
    studio.figure(&json, "timeline", "timeline.svg", &["--figure-width", "page"])?;
    studio.figure(&json, "spectrum", "spectrum.svg", &[])
}

/// Between which heights of the page an element lies.
fn edges(browser: &mut Browser, id: &str) -> anyhow::Result<(f64, f64)> {
    browser.value(&format!(
        "(box => [box.top + scrollY, box.bottom + scrollY])(document.getElementById('{id}').getBoundingClientRect())"
    ))
}

/// `--progress tui` in the same run, some seconds after the outage.
fn terminal(studio: &Studio) -> anyhow::Result<()> {
    let server = ReferenceServer::start(&studio.brunt, &["--stall", STALL])?;
    let tmux = |words: &[&str]| {
        Command::new("tmux").args(["-L", "brunt-pictures", "-f", "/dev/null"]).args(words).output()
    };
    let run = [&studio.brunt.display().to_string(), "run", "--progress=tui", "-s", &server.address, ALLOW];
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
    fs::write(&page, terminal_page(&String::from_utf8(screen.stdout)?)?)?;
    let mut browser = Browser::start()?;
    browser.open(&page, (WIDTH, 900), false)?;
    let sides: (u32, u32) = browser.value(
        "(box => [Math.ceil(box.width), Math.ceil(box.height)])(document.querySelector('pre').getBoundingClientRect())",
    )?;
    browser.open(&page, sides, false)?;
    browser.picture_between(0.0, f64::from(sides.1), &studio.picture("terminal.png"))
}

/// The curve of a scan.
fn scan(studio: &Studio) -> anyhow::Result<()> {
    let server = ReferenceServer::start(&studio.brunt, &[])?;
    let json = studio.between("scan.json");
    let words = ["scan", "-s", &server.address, "-o", &json];
    run_brunt(&studio.brunt, &[&words[..], &SCAN].concat())?;
    studio.figure(&json, "curve", "curve.svg", &["--figure-width", "page"])
}

// ---- what a terminal shows --------------------------------------------------------------------------------------------

/// Of a dark terminal: its font, its ground and its text, and the colours that `--progress tui` takes by name.
const STYLE: &str = "display:inline-block;margin:0;padding:14px 18px;font:15px/1.25 'DejaVu Sans Mono',monospace;\
    background:#13171c;color:#e8ecf0;--black:#13171c;--bright-white:#e8ecf0;--red:#ee6a86;--green:#7bd88f;--yellow:#f7d23e";

/// What a terminal shows, as a page that a browser can take a picture of: characters with the attributes that `tmux capture-pane -e`
/// writes.
fn terminal_page(screen: &str) -> anyhow::Result<String> {
    let spans = Converter::new().theme(Theme::Dark).convert(screen.trim_end())?;
    Ok(format!(
        "<!DOCTYPE html><meta charset=\"utf-8\"><body style=\"margin:0\"><pre style=\"{STYLE}\">{spans}</pre>\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bold, dim, reversed, red, and the palette of 256: what `--progress tui` sets.
    #[test]
    fn attributes_are_kept() {
        let page = terminal_page(
            "a<\u{1b}[1mb\u{1b}[0m\u{1b}[2md\u{1b}[0m\u{1b}[7mr\u{1b}[0m\u{1b}[31me\u{1b}[39m\u{1b}[38;5;196mp",
        )
        .unwrap();
        let reversed = "color:var(--black,#000);background:var(--bright-white,#fff)";
        assert!(
            page.ends_with(&format!(
                "a&lt;<b>b</b><span style='opacity:0.67'>d</span><span style='{reversed}'>r</span>\
                 <span style='color:var(--red,#a00)'>e</span><span style='color:#f00'>p</span></pre>\n"
            )),
            "{page}"
        );
    }
}
