//! `cargo xtask pictures`: what docs/img/ holds, drawn from real runs of brunt on this machine.
//!
//! Not a test: what comes of it is for readers, and a person looks at it before it is committed.

use crate::browser::{self, Browser};
use crate::process::{ALLOW, ReferenceServer, run_brunt};
use crate::{cargo, programs, top};
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
    fs::write(&page, terminal_page(&String::from_utf8(screen.stdout)?))?;
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

/// Text and ground of a dark terminal.
const TEXT: &str = "#e8ecf0";
const GROUND: &str = "#13171c";
const STYLE: &str =
    "display:inline-block;margin:0;padding:14px 18px;font:15px/1.25 'DejaVu Sans Mono',monospace";
/// Red, green and yellow.
const COLORS: [&str; 3] = ["#ee6a86", "#7bd88f", "#f7d23e"];

/// How characters look.
#[derive(Clone, Default)]
struct Look {
    text: Option<String>,
    ground: Option<String>,
    is_bold: bool,
    is_dim: bool,
    is_reversed: bool,
}

impl Look {
    /// Takes the numbers of one sequence `ESC [ ... m`.
    fn change(&mut self, numbers: &str) {
        let mut numbers = numbers.split(';').map(|number| number.parse::<usize>().unwrap_or(0));
        while let Some(number) = numbers.next() {
            match number {
                0 => *self = Self::default(),
                1 => self.is_bold = true,
                2 => self.is_dim = true,
                7 => self.is_reversed = true,
                22 => (self.is_bold, self.is_dim) = (false, false),
                27 => self.is_reversed = false,
                31..=33 => self.text = Some(COLORS[number - 31].to_owned()),
                // Then a 5 and the colour.
                38 => self.text = numbers.nth(1).map(color_of_256),
                39 => self.text = None,
                48 => self.ground = numbers.nth(1).map(color_of_256),
                49 => self.ground = None,
                _ => {}
            }
        }
    }

    fn style(&self) -> String {
        let mut colors = [self.text.as_deref().unwrap_or(TEXT), self.ground.as_deref().unwrap_or(GROUND)];
        if self.is_reversed {
            colors.reverse();
        }
        let (weight, opacity) = (if self.is_bold { 700 } else { 400 }, if self.is_dim { 0.6 } else { 1.0 });
        format!("color:{};background:{};font-weight:{weight};opacity:{opacity}", colors[0], colors[1])
    }
}

/// A colour of the palette of 256 behind the 16 of the terminal: a cube of six steps a side, and greys.
fn color_of_256(index: usize) -> String {
    let level = |step: usize| if step == 0 { 0 } else { 55 + 40 * step };
    let cube = index.saturating_sub(16);
    let [red, green, blue] = match index {
        ..232 => [cube / 36, cube / 6 % 6, cube % 6].map(level),
        _ => [8 + 10 * (index - 232); 3],
    };
    format!("rgb({red},{green},{blue})")
}

/// What a terminal shows, as a page that a browser can take a picture of: characters with the colours that `tmux capture-pane -e` writes. Of
/// its attributes those that `--progress tui` sets: bold, dim, reversed, three colours of the terminal, and those of the palette of 256.
fn terminal_page(screen: &str) -> String {
    let (mut spans, mut look) = (String::new(), Look::default());
    for piece in format!("[0m{}", screen.trim_end()).split('\u{1b}') {
        let Some((numbers, text)) = piece.strip_prefix('[').and_then(|piece| piece.split_once('m')) else {
            continue;
        };
        look.change(numbers);
        let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        spans.push_str(&format!("<span style=\"{}\">{text}</span>", look.style()));
    }
    format!(
        "<!DOCTYPE html><meta charset=\"utf-8\"><body style=\"margin:0;background:{GROUND}\"><pre style=\"{STYLE}\">{spans}</pre>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_and_weights_become_spans() {
        let span = |text: &str, ground: &str, rest: &str, character: &str| {
            format!("<span style=\"color:{text};background:{ground};{rest}\">{character}</span>")
        };
        let plain = |character: &str| span(TEXT, GROUND, "font-weight:400;opacity:1", character);
        let table = [
            ("1", span(TEXT, GROUND, "font-weight:700;opacity:1", "x")),
            ("2;31", span("#ee6a86", GROUND, "font-weight:400;opacity:0.6", "x")),
            ("38;5;196", span("rgb(255,0,0)", GROUND, "font-weight:400;opacity:1", "x")),
            ("38;5;16;48;5;232", span("rgb(0,0,0)", "rgb(8,8,8)", "font-weight:400;opacity:1", "x")),
            ("7", span(GROUND, TEXT, "font-weight:400;opacity:1", "x")),
            ("31;0", plain("x")),
        ];
        for (numbers, expected) in table {
            let page = terminal_page(&format!("a<\u{1b}[{numbers}mx\u{1b}[0my\n"));
            let (_, spans) = page.split_once("<pre").unwrap();
            let (_, spans) = spans.split_once('>').unwrap();
            assert_eq!(spans, format!("{}{expected}{}</pre>\n", plain("a&lt;"), plain("y")), "{numbers}");
        }
    }
}
