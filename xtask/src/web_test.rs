//! `cargo xtask web-test`: HTML pages of real runs in a headless Chromium: no error, no request, marks in every chart, and a cursor,
//! zooming and switches that respond to mouse and keys.
//!
//! Pictures of the pages, light, dark, narrow and printed, stay in target/web-test for a person to look at.

mod live;

use crate::browser::{self, Browser};
use crate::cargo;
use crate::process::{ReferenceServer, run_brunt};
use anyhow::{Context, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};

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
/// The kinds of figures on the page of a run.
const RUN_KINDS: [&str; 2] = ["percentile", "time"];

/// Checks the pages of several runs.
///
/// # Errors
/// What a page lacks.
pub(crate) fn run() -> anyhow::Result<()> {
    browser::ready()?;
    cargo::run(&mut cargo::command(&["build", "--quiet", "-p", "brunt"]))?;
    let pages = Pages::new()?;
    let open = ["-r", "2k", "--mix", "get=8,mget=1,set=1", "--assert", "p99 < 1s", "-t", "5s"];
    let runs = [
        ("closed", pages.measure("closed", &["-t", "3s"])?),
        ("open", pages.measure("open", &open)?),
        ("interval", pages.measure("interval", &["-r", "500", "-t", "5s", "--interval", "100ms"])?),
        ("stall", pages.measure_stall(&STALL)?),
    ];
    let campaigns = pages.campaigns()?;
    let mut browser = Browser::start()?;
    for (name, page) in &runs {
        check_run(&mut browser, page).with_context(|| format!("page {}", page.display()))?;
        pages.picture(&mut browser, page, name)?;
    }
    for (name, kinds) in campaigns {
        let page = pages.path(&format!("{name}.html"));
        check(&mut browser, &page, kinds).with_context(|| format!("page {}", page.display()))?;
        pages.picture(&mut browser, &page, name)?;
    }
    browser.open(&runs[3].1, SIDES, false)?;
    check_stall(&mut browser, &STALL)?;
    live::check(&mut browser, &pages)?;
    println!("pages checked; pictures of them: {}", pages.folder.display());
    Ok(())
}

/// Checks the page of one run of the brunt that the tests have built, with the features of the whole workspace.
///
/// # Errors
/// What the page lacks.
pub(crate) fn short() -> anyhow::Result<()> {
    let pages = Pages::new()?;
    let page = pages.measure_stall(&SHORT_STALL)?;
    let mut browser = Browser::start()?;
    check_run(&mut browser, &page).with_context(|| format!("page {}", page.display()))?;
    browser.open(&page, SIDES, false)?;
    check_stall(&mut browser, &SHORT_STALL)
}

/// What makes pages, and where they are.
struct Pages {
    brunt: PathBuf,
    folder: PathBuf,
}

impl Pages {
    fn new() -> anyhow::Result<Self> {
        let folder = cargo::target_folder()?.join("web-test");
        fs::create_dir_all(&folder)?;
        Ok(Self { brunt: cargo::debug_brunt()?, folder })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn file(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// The page of a run with these options.
    fn measure(&self, name: &str, options: &[&str]) -> anyhow::Result<PathBuf> {
        let (page, warmup) = (self.file(&format!("{name}.html")), format!("{WARMUP_S}s"));
        let words = ["run", "--no-progress", "--html", &page, "--warmup", &warmup];
        run_brunt(&self.brunt, &[&words[..], options].concat())?;
        Ok(page.into())
    }

    /// Starts a server that stalls.
    fn serve(&self, stall: &Stall) -> anyhow::Result<ReferenceServer> {
        ReferenceServer::start(&self.brunt, &["--stall", &format!("{}s:1s", WARMUP_S + stall.at_s)])
    }

    /// The page of a run with it.
    fn measure_stall(&self, stall: &Stall) -> anyhow::Result<PathBuf> {
        let (server, time) = (self.serve(stall)?, format!("{}s", stall.time_s));
        self.measure("stall", &["-s", &server.address, "--no-preload", "-r", "2k", "-t", &time])
    }

    /// Pages of several runs. Returns their names and the kinds of their figures.
    fn campaigns(&self) -> anyhow::Result<[(&'static str, &'static [&'static str]); 3]> {
        let run = |words: &[&str], option: &str, file: &str| {
            run_brunt(&self.brunt, &[words, &[option, &self.file(file)]].concat())
        };
        let short = ["--no-progress", "--warmup", "300ms", "-t", "1s"];
        run(&[&["scan", "--over", "rate=1k,2k,4k,8k"], &short[..]].concat(), "--html", "scan.html")?;
        // A p99 takes a thousand requests.
        for (name, rate) in [("a", "2k"), ("b", "4k")] {
            let words = [&["run", "-r", rate], &short[..]].concat();
            run(&words, "--json", &format!("{name}1.json"))?;
            run(&[&words[..], &["--repeat", "4"]].concat(), "--json", &format!("{name}.json"))?;
        }
        let [a, b, a1, b1] = ["a.json", "b.json", "a1.json", "b1.json"].map(|name| self.file(name));
        run(&["compare", "--allow-different-plans", &a, &b], "--html", "compare.html")?;
        run(&["report", &a1, &b1], "--html", "several.html")?;
        Ok([("scan", &["number"]), ("compare", &["number"]), ("several", &["percentile"])])
    }

    /// For a person to look at.
    fn picture(&self, browser: &mut Browser, page: &Path, name: &str) -> anyhow::Result<()> {
        let path = |what: &str| self.path(&format!("{name}-{what}"));
        browser.open(page, SIDES, false)?;
        browser.picture(&path("light.png"))?;
        browser.print(&path("print.pdf"))?;
        browser.open(page, SIDES, true)?;
        browser.picture(&path("dark.png"))?;
        browser.open(page, (400, 800), false)?;
        browser.picture(&path("narrow.png"))
    }
}

/// What the page of a run must do.
fn check_run(browser: &mut Browser, page: &Path) -> anyhow::Result<()> {
    check(browser, page, &RUN_KINDS)?;
    browser.open(page, SIDES, false)?;
    let charts: u32 = browser.value("document.querySelectorAll('figure[data-kind] .chart').length")?;
    ensure!(charts >= 4, "{charts} charts with a cursor");
    let keys: u32 = browser.value(
        "(async () => {
            const bytes = Uint8Array.from(atob(document.getElementById('result').textContent), (one) => one.charCodeAt(0));
            const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
            return Object.keys(JSON.parse(await new Response(stream).text())).length;
        })()",
    )?;
    ensure!(keys > 20, "the result in the page has {keys} keys");
    check_units(browser)
}

/// Buttons show the times of the table in another unit, digit by digit.
fn check_units(browser: &mut Browser) -> anyhow::Result<()> {
    let time = "document.querySelector('table.latency td.time').firstChild.data";
    let mut shown = Vec::new();
    for (unit, ns) in [(0, 1.0), (1, 1e3), (2, 1e6), (3, 1e9)] {
        browser.run(&format!("document.querySelectorAll('button.unit')[{unit}].click()"))?;
        let text = browser.value::<String>(time)?;
        let number = text.trim_start_matches("<=").parse::<f64>();
        shown.push(number.with_context(|| format!("{text:?} is no time"))? * ns);
    }
    let is_equal = |ns: &f64| (ns / shown[0] - 1.0).abs() < 1e-9;
    ensure!(shown.iter().all(is_equal), "one time in four units: {shown:?} ns");
    Ok(())
}

/// What every page must do that has figures of these kinds.
fn check(browser: &mut Browser, page: &Path, kinds: &[&str]) -> anyhow::Result<()> {
    browser.open(page, SIDES, false)?;
    let empty: String = browser.value(
        "[...document.querySelectorAll('.chart>svg')].filter(svg => !svg.querySelector('polyline,polygon,path'))
            .map(svg => svg.getAttribute('aria-label')).join()",
    )?;
    ensure!(empty.is_empty(), "without marks: {empty}");
    for kind in kinds {
        check_figure(browser, kind).with_context(|| format!("the figure over {kind}"))?;
    }
    browser.run("document.getElementById('theme').click()")?;
    let background: String = browser.value("getComputedStyle(document.documentElement).backgroundColor")?;
    ensure!(background == "rgb(19, 23, 28)", "dark is {background}");
    browser.run("document.getElementById('theme').click()")?;
    check_accessible(browser)?;
    browser.open(page, (400, 800), false)?;
    let excess: i32 = browser.value("document.documentElement.scrollWidth - innerWidth")?;
    ensure!(excess <= 0, "{excess} pixels wider than a narrow window");
    let trouble = browser.trouble("file:");
    ensure!(trouble.is_empty(), "the browser said: {}", trouble.join("; "));
    Ok(())
}

/// Hover, zoom, keys and legend of a figure.
fn check_figure(browser: &mut Browser, kind: &str) -> anyhow::Result<()> {
    let figure = format!("document.querySelector('figure[data-kind={kind}]')");
    let of = |member: &str| format!("{figure}.{member}");
    let readout = of("querySelector('.readout').textContent");
    let view = of("querySelector('svg.plot').getAttribute('viewBox')");
    let whole: String = browser.value(&view)?;
    let (left, right, y) = plot(browser, &figure)?;
    let at = |part: f64| left + part * (right - left);
    browser.mouse("mouseMoved", at(0.5), y)?;
    ensure!(!browser.value::<String>(&readout)?.is_empty(), "no numbers below the pointer");
    let hidden: u32 = browser.value(&of("querySelectorAll('.cursor.hidden').length"))?;
    ensure!(hidden == 0, "{hidden} charts without a cursor");
    for (event, part) in [("mousePressed", 0.4), ("mouseMoved", 0.5), ("mouseReleased", 0.6)] {
        browser.mouse(event, at(part), y)?;
    }
    ensure!(browser.value::<String>(&view)? != whole, "dragging does not zoom");
    let labels: u32 = browser.value(&of("querySelectorAll('.x-zoomed text').length"))?;
    ensure!(labels >= 1, "a zoomed axis without labels");
    let address: String = browser.value("location.hash")?;
    ensure!(address.contains(kind), "the address does not keep what is shown");
    browser.run(&of("querySelector('.chart').focus()"))?;
    browser.key("Escape")?;
    ensure!(browser.value::<String>(&view)? == whole, "Escape does not show all again");
    browser.key("Home")?;
    let first: String = browser.value(&readout)?;
    browser.key("PageDown")?;
    ensure!(browser.value::<String>(&readout)? != first, "keys do not move the cursor");
    browser.key("End")?;
    check_legend(browser, &figure, kind)
}

/// An entry of the legend hides a group of marks, and the address keeps that.
fn check_legend(browser: &mut Browser, figure: &str, kind: &str) -> anyhow::Result<()> {
    let entry = format!("{figure}.querySelector('li[data-group]')");
    let group: String = browser.value(&format!("{entry}.dataset.group"))?;
    let hidden = format!("getComputedStyle({figure}.querySelector('g.{group}')).display === 'none'");
    let click = format!("{entry}.click()");
    browser.run(&click)?;
    ensure!(browser.value::<bool>(&hidden)?, "the legend does not hide '{group}'");
    let kept: String = browser.value("location.hash")?;
    let is_kept = kept.contains(&format!("{kind}-hidden={group}"));
    ensure!(is_kept, "the address does not keep what is hidden: {kept}");
    browser.run(&click)?;
    let address: String = browser.value("location.hash")?;
    ensure!(!address.contains("hidden"), "the address keeps what is shown again");
    browser.run(&format!("history.replaceState(null, '', '{kept}'); recall()"))?;
    ensure!(browser.value::<bool>(&hidden)?, "'{group}' is not hidden as the address has it");
    browser.run(&click)?;
    ensure!(!browser.value::<bool>(&hidden)?, "the legend does not show '{group}' again");
    Ok(())
}

/// The left and right edges of the first plot of a figure on the screen, and a height inside of it.
fn plot(browser: &mut Browser, figure: &str) -> anyhow::Result<(f64, f64, f64)> {
    let chart = format!("{figure}.querySelector('.chart>svg')");
    browser.run(&format!("{chart}.scrollIntoView({{block: 'center', behavior: 'instant'}})"))?;
    browser.value(&format!(
        "((svg, plot) => {{
            const box = svg.getBoundingClientRect(), scale = box.width / svg.viewBox.baseVal.width;
            const [left, width] = ['x', 'width'].map((side) => scale * parseFloat(plot.getAttribute(side)));
            return [box.x + left, box.x + left + width, box.y + box.height / 2];
        }})({chart}, {figure}.querySelector('svg.plot'))"
    ))
}

/// Charts have names, tables captions and headings, and what can be clicked can be reached by keyboard.
fn check_accessible(browser: &mut Browser) -> anyhow::Result<()> {
    let wrong: String = browser.value(
        "[...document.querySelectorAll(`.chart>svg:not([role=img]), .chart>svg[aria-label=''], figure:not(:has(figcaption)),
            table:not(:has(caption)):not([aria-label]), th:not([scope]), li[role=button]:not([tabindex]),
            figure[data-kind] .chart:not([tabindex])`)].map((held) => held.outerHTML.slice(0, 80)).join()",
    )?;
    ensure!(wrong.is_empty(), "not for every reader: {wrong}");
    Ok(())
}

/// On the page that is open, the second without replies is where it was.
fn check_stall(browser: &mut Browser, stall: &Stall) -> anyhow::Result<()> {
    let (headings, rows): (Vec<String>, Vec<Vec<String>>) = browser.value(
        "(() => {
            const cells = (row) => [...row.cells].map((cell) => cell.textContent.trim());
            const table = document.querySelector('figure[data-kind=time] details table');
            return [cells(table.tHead.rows[0]), [...table.tBodies[0].rows].map(cells)];
        })()",
    )?;
    let Some(done) = headings.iter().position(|heading| heading == "done/s") else {
        bail!("no column of what was done: {headings:?}")
    };
    let stalled = (f64::from(stall.at_s) - 0.15).max(0.0)..f64::from(stall.at_s + 1);
    let is_silent = |row: &&Vec<String>| {
        row[0].parse().is_ok_and(|from_s: f64| stalled.contains(&from_s)) && row[done] == "0"
    };
    let count = rows.iter().filter(is_silent).count();
    ensure!(count >= 8, "{count} of ten pieces of the stalled second have no reply");
    let outages: u32 =
        browser.value("document.querySelectorAll('figure[data-kind=time] g.outage rect').length")?;
    ensure!(outages >= 3, "{outages} charts show the outage");
    Ok(())
}
