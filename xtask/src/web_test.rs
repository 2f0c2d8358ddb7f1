//! `cargo xtask web-test`: HTML pages of real runs in a headless Chromium: no error, no request, marks in every chart, and a cursor,
//! zooming and switches that respond to mouse and keys.
//!
//! Pictures of the pages, light, dark, narrow and printed, stay in target/web-test for a person to look at.

mod live;

use crate::browser::{self, Browser};
use crate::reference_server::ReferenceServer;
use crate::release_build::target_folder;
use crate::{programs, top};
use anyhow::{Context, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A run whose server answers nothing for the second that begins at this one of the window.
struct Stall {
    at_s: u32,
    time_s: u32,
}

const STALL: Stall = Stall { at_s: 4, time_s: 8 };
/// Where the test command waits for it.
const SHORT_STALL: Stall = Stall { at_s: 1, time_s: 3 };
/// In seconds. The server counts from its first request.
const WARMUP_S: u32 = 1;
const SIDES: (u32, u32) = (1080, 900);

/// Checks the pages of several runs.
///
/// # Errors
/// What a page lacks.
pub(crate) fn run() -> anyhow::Result<()> {
    programs::ensure_browser()?;
    let brunt = build()?;
    let directory = directory()?;
    let open = ["-r", "2k", "--mix", "get=8,mget=1,set=1", "--assert", "p99 < 1s", "-t", "5s"];
    let pages = [
        ("closed", measure(&brunt, &directory, "closed", &["-t", "3s"])?),
        ("open", measure(&brunt, &directory, "open", &open)?),
        (
            "interval",
            measure(&brunt, &directory, "interval", &["-r", "500", "-t", "5s", "--interval", "100ms"])?,
        ),
        ("stall", STALL.measure(&brunt, &directory)?),
    ];
    let campaigns = campaigns(&brunt, &directory)?;
    let mut browser = Browser::start(&directory)?;
    for (name, page) in &pages {
        check_run(&mut browser, page).with_context(|| format!("page {}", page.display()))?;
        pictures(&mut browser, page, name, &directory)?;
    }
    for (name, page, kinds) in &campaigns {
        check(&mut browser, page, kinds).with_context(|| format!("page {}", page.display()))?;
        pictures(&mut browser, page, name, &directory)?;
    }
    let (_, stall) = &pages[pages.len() - 1];
    check_stall(&mut browser, stall, &STALL)?;
    live::check(&mut browser, &brunt, &directory)?;
    let count = pages.len() + campaigns.len() + 1;
    println!("{count} pages checked; pictures of them: {}", directory.display());
    Ok(())
}

/// Checks the page of one run of the brunt that is built where there is a Chromium; else says why not.
///
/// # Errors
/// What the page lacks.
pub(crate) fn one_if_possible() -> anyhow::Result<Option<String>> {
    if browser::program().is_none() {
        return Ok(Some("chromium is missing; cargo xtask web-test installs it".to_owned()));
    }
    // The tests have built it, with the features of the whole workspace.
    let brunt = program()?;
    let directory = directory()?;
    let page = SHORT_STALL.measure(&brunt, &directory)?;
    let mut browser = Browser::start(&directory)?;
    check_run(&mut browser, &page).with_context(|| format!("page {}", page.display()))?;
    check_stall(&mut browser, &page, &SHORT_STALL)?;
    Ok(None)
}

fn build() -> anyhow::Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo).args(["build", "--quiet", "-p", "brunt"]).current_dir(top()).status()?;
    ensure!(status.success(), "brunt does not build");
    program()
}

fn program() -> anyhow::Result<PathBuf> {
    Ok(target_folder()?.join("debug/brunt"))
}

fn directory() -> anyhow::Result<PathBuf> {
    let directory = top().join("target/web-test");
    fs::create_dir_all(&directory)?;
    Ok(directory)
}

/// Runs brunt with these options, and its page.
fn measure(brunt: &Path, directory: &Path, name: &str, options: &[&str]) -> anyhow::Result<PathBuf> {
    let page = directory.join(format!("{name}.html"));
    let status = Command::new(brunt)
        .args(["run", "--quiet", "--no-progress", "--allow=BROKEN,LOAD,CLIENT,DATA", "--html"])
        .arg(&page)
        .args(["--warmup", &format!("{WARMUP_S}s")])
        .args(options)
        .stdin(Stdio::null())
        .status()?;
    // An assertion that does not hold is no matter here.
    ensure!(status.code().is_some_and(|code| code != 1 && code != 2), "brunt run ended with {status}");
    Ok(page)
}

/// A page with its name and the kinds of its figures.
type NamedPage = (&'static str, PathBuf, &'static [&'static str]);

/// Pages of several runs.
fn campaigns(brunt: &Path, directory: &Path) -> anyhow::Result<Vec<NamedPage>> {
    let file = |name: &str| directory.join(name).display().to_string();
    let short =
        ["--quiet", "--no-progress", "--allow=BROKEN,LOAD,CLIENT,DATA", "--warmup", "300ms", "-t", "1s"];
    let run = |words: &[&str], output: &[&str]| -> anyhow::Result<()> {
        let words = [words, output].concat();
        let status = Command::new(brunt).args(&words).stdin(Stdio::null()).status()?;
        let is_made = status.code().is_some_and(|code| code != 1 && code != 2);
        ensure!(is_made, "brunt {} ended with {status}", words.join(" "));
        Ok(())
    };
    let page = |name, kinds| -> NamedPage { (name, directory.join(format!("{name}.html")), kinds) };
    run(&[&["scan", "--over", "rate=1k,2k,4k,8k"], &short[..]].concat(), &["--html", &file("scan.html")])?;
    // A p99 takes a thousand requests.
    let sides = [("a", "2k"), ("b", "4k")];
    for (name, rate) in sides {
        let words = [&["run", "-r", rate, "--repeat", "4"], &short[..]].concat();
        run(&words, &["--json", &file(&format!("{name}.json"))])?;
        let words = [&["run", "-r", rate], &short[..]].concat();
        run(&words, &["--json", &file(&format!("{name}1.json"))])?;
    }
    let (a, b) = (file("a.json"), file("b.json"));
    let words = ["compare", "--quiet", "--allow-different-plans", "--allow=BROKEN,LOAD,CLIENT,DATA", &a, &b];
    run(&words, &["--html", &file("compare.html")])?;
    let (a, b) = (file("a1.json"), file("b1.json"));
    let words = ["report", "--quiet", "--allow=BROKEN,LOAD,CLIENT,DATA", &a, &b];
    run(&words, &["--html", &file("several.html")])?;
    Ok(vec![
        page("scan", &["number"]),
        page("compare", &["percentile", "number"]),
        page("several", &["percentile"]),
    ])
}

impl Stall {
    /// Starts a server that stalls.
    fn serve(&self, brunt: &Path) -> anyhow::Result<ReferenceServer> {
        ReferenceServer::start(brunt, &["--stall", &format!("{}s:1s", WARMUP_S + self.at_s)])
    }

    /// Runs it, and its page.
    fn measure(&self, brunt: &Path, directory: &Path) -> anyhow::Result<PathBuf> {
        let server = self.serve(brunt)?;
        let time = format!("{}s", self.time_s);
        measure(brunt, directory, "stall", &["-s", &server.address, "--no-preload", "-r", "2k", "-t", &time])
    }
}

/// What the page of a run must do.
fn check_run(browser: &mut Browser, page: &Path) -> anyhow::Result<()> {
    check(browser, page, &["percentile", "time"])?;
    browser.open(page, SIDES, false)?;
    let charts = browser.number("document.querySelectorAll('figure[data-kind] .chart').length")?;
    ensure!(charts >= 4.0, "{charts} charts with a cursor");
    let keys = browser.number(
        "(async () => {
            const bytes = Uint8Array.from(atob(document.getElementById('result').textContent), (one) => one.charCodeAt(0));
            const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
            return Object.keys(JSON.parse(await new Response(stream).text())).length;
        })()",
    )?;
    ensure!(keys > 20.0, "the result in the page has {keys} keys");
    check_units(browser)
}

/// Buttons show the times of the table in another unit, digit by digit.
fn check_units(browser: &mut Browser) -> anyhow::Result<()> {
    let time = "document.querySelector('table.latency td.time').firstChild.data";
    let mut shown = Vec::new();
    for (unit, ns) in [(0, 1.0), (1, 1e3), (2, 1e6), (3, 1e9)] {
        browser.run(&format!("document.querySelectorAll('button.unit')[{unit}].click()"))?;
        shown.push(browser.text(time)?.parse::<f64>().context("a time that is no number")? * ns);
    }
    let is_equal = |ns: &f64| (ns / shown[0] - 1.0).abs() < 1e-9;
    ensure!(shown.iter().all(is_equal), "one time in four units: {shown:?} ns");
    Ok(())
}

/// What every page must do that has figures of these kinds.
fn check(browser: &mut Browser, page: &Path, kinds: &[&str]) -> anyhow::Result<()> {
    browser.open(page, SIDES, false)?;
    let empty = browser.text(
        "[...document.querySelectorAll('.chart>svg')].filter(svg => !svg.querySelector('polyline,polygon,path'))
            .map(svg => svg.getAttribute('aria-label')).join()",
    )?;
    ensure!(empty.is_empty(), "without marks: {empty}");
    for kind in kinds {
        check_figure(browser, kind).with_context(|| format!("the figure over {kind}"))?;
    }
    browser.run("document.getElementById('theme').click()")?;
    let background = browser.text("getComputedStyle(document.documentElement).backgroundColor")?;
    ensure!(background == "rgb(19, 23, 28)", "dark is {background}");
    browser.run("document.getElementById('theme').click()")?;
    check_accessible(browser)?;
    browser.open(page, (400, 800), false)?;
    let excess = browser.number("document.documentElement.scrollWidth - innerWidth")?;
    ensure!(excess <= 0.0, "{excess} pixels wider than a narrow window");
    let trouble = browser.trouble("file:");
    ensure!(trouble.is_empty(), "the browser said: {}", trouble.join("; "));
    Ok(())
}

/// Hover, zoom, keys and legend of a figure.
fn check_figure(browser: &mut Browser, kind: &str) -> anyhow::Result<()> {
    let figure = format!("document.querySelector('figure[data-kind={kind}]')");
    let readout = format!("{figure}.querySelector('.readout').textContent");
    let view = format!("{figure}.querySelector('svg.plot').getAttribute('viewBox')");
    let whole = browser.text(&view)?;
    let (left, right, y) = plot(browser, &figure)?;
    let at = |part: f64| left + part * (right - left);
    browser.mouse("mouseMoved", at(0.5), y)?;
    ensure!(!browser.text(&readout)?.is_empty(), "no numbers below the pointer");
    let hidden = browser.number(&format!("{figure}.querySelectorAll('.cursor.hidden').length"))?;
    ensure!(hidden == 0.0, "{hidden} charts without a cursor");
    browser.mouse("mousePressed", at(0.4), y)?;
    browser.mouse("mouseMoved", at(0.5), y)?;
    browser.mouse("mouseReleased", at(0.6), y)?;
    let zoomed = browser.text(&view)?;
    ensure!(zoomed != whole, "dragging does not zoom");
    let labels = browser.number(&format!("{figure}.querySelectorAll('.x-zoomed text').length"))?;
    ensure!(labels >= 1.0, "a zoomed axis without labels");
    ensure!(browser.text("location.hash")?.contains(kind), "the address does not keep what is shown");
    browser.run(&format!("{figure}.querySelector('.chart').focus()"))?;
    browser.key("Escape")?;
    ensure!(browser.text(&view)? == whole, "Escape does not show all again");
    browser.key("Home")?;
    let first = browser.text(&readout)?;
    browser.key("PageDown")?;
    ensure!(browser.text(&readout)? != first, "keys do not move the cursor");
    browser.key("End")?;
    let entry = format!("{figure}.querySelector('li[data-group]')");
    let group = browser.text(&format!("{entry}.dataset.group"))?;
    let shown = format!("getComputedStyle({figure}.querySelector('g.{group}')).display");
    browser.run(&format!("{entry}.click()"))?;
    ensure!(browser.text(&shown)? == "none", "the legend does not hide '{group}'");
    let kept = browser.text("location.hash")?;
    ensure!(
        kept.contains(&format!("{kind}-hidden={group}")),
        "the address does not keep what is hidden: {kept}"
    );
    browser.run(&format!("{entry}.click()"))?;
    ensure!(!browser.text("location.hash")?.contains("hidden"), "the address keeps what is shown again");
    browser.run(&format!("history.replaceState(null, '', '{kept}'); recall()"))?;
    ensure!(browser.text(&shown)? == "none", "'{group}' is not hidden as the address has it");
    browser.run(&format!("{entry}.click()"))?;
    ensure!(browser.text(&shown)? != "none", "the legend does not show '{group}' again");
    Ok(())
}

/// The left and right edges of the first plot of a figure on the screen, and a height inside of it.
fn plot(browser: &mut Browser, figure: &str) -> anyhow::Result<(f64, f64, f64)> {
    let chart = format!("{figure}.querySelector('.chart>svg')");
    browser.run(&format!("{chart}.scrollIntoView({{block: 'center', behavior: 'instant'}})"))?;
    let mut number = |of: &str| browser.number(of);
    let (x, width) = (
        number(&format!("{chart}.getBoundingClientRect().x"))?,
        number(&format!("{chart}.getBoundingClientRect().width"))?,
    );
    let y =
        number(&format!("{chart}.getBoundingClientRect().y + {chart}.getBoundingClientRect().height / 2"))?;
    let scale = width / number(&format!("{chart}.viewBox.baseVal.width"))?;
    let left = number(&format!("parseFloat({figure}.querySelector('svg.plot').getAttribute('x'))"))?;
    let span = number(&format!("parseFloat({figure}.querySelector('svg.plot').getAttribute('width'))"))?;
    Ok((x + left * scale, x + (left + span) * scale, y))
}

/// Charts have names, tables captions and headings, and what can be clicked can be reached by keyboard.
fn check_accessible(browser: &mut Browser) -> anyhow::Result<()> {
    let wrong = browser.text(
        "[...document.querySelectorAll(`.chart>svg:not([role=img]), .chart>svg[aria-label=''], figure:not(:has(figcaption)),
            table:not(:has(caption)):not([aria-label]), th:not([scope]), li[role=button]:not([tabindex]),
            figure[data-kind] .chart:not([tabindex])`)].map((held) => held.outerHTML.slice(0, 80)).join()",
    )?;
    ensure!(wrong.is_empty(), "not for every reader: {wrong}");
    Ok(())
}

/// The second without replies is where it was.
fn check_stall(browser: &mut Browser, page: &Path, stall: &Stall) -> anyhow::Result<()> {
    browser.open(page, SIDES, false)?;
    check_stall_here(browser, stall)
}

/// The same, of the page that is open.
fn check_stall_here(browser: &mut Browser, stall: &Stall) -> anyhow::Result<()> {
    let rows = browser.text(
        "JSON.stringify([...document.querySelector('figure[data-kind=time] details table').tBodies[0].rows]
            .map((row) => [...row.cells].map((cell) => cell.textContent.trim())))",
    )?;
    let headings = browser.text(
        "[...document.querySelector('figure[data-kind=time] details table').tHead.rows[0].cells].map((cell) => cell.textContent.trim()).join()",
    )?;
    let Some(done) = headings.split(',').position(|heading| heading == "done/s") else {
        bail!("no column of what was done: {headings}")
    };
    let at_s = f64::from(stall.at_s);
    let rows: Vec<Vec<String>> = serde_json::from_str(&rows)?;
    let silent = |row: &&Vec<String>| row[0].parse::<f64>().is_ok_and(|at_s| at_s >= 0.0) && row[done] == "0";
    let inside = |row: &&Vec<String>| {
        row[0].parse::<f64>().is_ok_and(|from_s| (at_s - 0.15..at_s + 1.0).contains(&from_s))
    };
    let count = rows.iter().filter(silent).filter(inside).count();
    ensure!(count >= 8, "{count} of ten pieces of the stalled second have no reply");
    let outages =
        browser.number("document.querySelectorAll('figure[data-kind=time] g.outage rect').length")?;
    ensure!(outages >= 3.0, "{outages} charts show the outage");
    Ok(())
}

/// For a person to look at.
fn pictures(browser: &mut Browser, page: &Path, name: &str, directory: &Path) -> anyhow::Result<()> {
    let path = |what: &str| directory.join(format!("{name}-{what}"));
    browser.open(page, SIDES, false)?;
    browser.picture(&path("light.png"))?;
    browser.print(&path("print.pdf"))?;
    browser.open(page, SIDES, true)?;
    browser.picture(&path("dark.png"))?;
    browser.open(page, (400, 800), false)?;
    browser.picture(&path("narrow.png"))
}
