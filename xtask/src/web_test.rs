//! `cargo xtask web-test`: HTML pages of real runs in a headless Chromium: no error, no request, marks in every chart, and a cursor,
//! zooming and switches that respond to mouse and keys.
//!
//! The page of `--http` while its run goes on fills itself, keeps what a reader did to it, shows a stall where it was, becomes the page of the
//! result, and says when nothing comes any more.
//!
//! Pictures of the pages, light, dark, narrow and printed, stay in target/web-test for a person to look at.

use crate::browser::{self, Browser};
use crate::process::{ALLOW, Process, ReferenceServer, has_result, run_brunt};
use crate::{cargo, programs};
use anyhow::{Context, bail, ensure};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

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
    programs::run(&mut cargo::command(&["build", "--quiet", "-p", "brunt"]))?;
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
    check_live(&mut browser, &pages)?;
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
        let words = ["run", "--progress=none", "-o", &page, "--warmup", &warmup];
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
        let run =
            |words: &[&str], file: &str| run_brunt(&self.brunt, &[words, &["-o", &self.file(file)]].concat());
        let short = ["--progress=none", "--warmup", "300ms", "-t", "1s"];
        run(&[&["scan", "--over", "rate=1k,2k,4k,8k"], &short[..]].concat(), "scan.html")?;
        // A p99 takes a thousand requests.
        for (name, rate) in [("a", "2k"), ("b", "4k")] {
            let words = [&["run", "-r", rate], &short[..]].concat();
            run(&words, &format!("{name}1.json"))?;
            run(&[&words[..], &["--repeat", "4"]].concat(), &format!("{name}.json"))?;
        }
        let [a, b, a1, b1] = ["a.json", "b.json", "a1.json", "b1.json"].map(|name| self.file(name));
        run(&["compare", "--allow-different-plans", &a, &b], "compare.html")?;
        run(&["report", &a1, &b1], "several.html")?;
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
    let schema: String = browser.value(
        "(async () => {
            const bytes = Uint8Array.from(atob(document.getElementById('result').textContent), (one) => one.charCodeAt(0));
            const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
            return JSON.parse(await new Response(stream).text()).schema;
        })()",
    )?;
    ensure!(schema.starts_with("brunt.result."), "the result in the page is a {schema}");
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
    let side = |view: &str, index| view.split(' ').nth(index).and_then(|side| side.parse::<f64>().ok());
    let zoomed: String = browser.value(&view)?;
    let part = |index, from: f64| Some((side(&zoomed, index)? - from) / side(&whole, 2)?);
    let left = side(&whole, 0).and_then(|left| part(0, left));
    let is_part = |held: Option<f64>, expected: f64| held.is_some_and(|held| (held - expected).abs() < 0.01);
    ensure!(is_part(left, 0.4) && is_part(part(2, 0.0), 0.2), "dragging makes {whole} {zoomed}");
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
    browser.run(&format!("history.replaceState(null, '', '{kept}'); recall(document)"))?;
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
        browser.value("document.querySelectorAll('figure[data-kind=time] g.outage polygon').length")?;
    ensure!(outages >= 3, "{outages} charts show the outage");
    Ok(())
}

// ---- the page of a run that goes on -----------------------------------------------------------------------------------

/// A page of a run has what is waited for within this time.
const PATIENCE: Duration = Duration::from_secs(30);
const TITLE: &str = "document.querySelector('h1').textContent";

const SEEN_AGAIN: &str = "document.dispatchEvent(new Event('visibilitychange'))";

/// A run whose page can be opened, and its address.
struct Run {
    process: Process,
    url: String,
}

impl Run {
    fn start(brunt: &Path, options: &[&str]) -> anyhow::Result<Self> {
        let mut command = Process::command(brunt);
        command.args(["run", "--quiet", ALLOW, "--http", "0", "--rate", "2k", "--no-preload"]);
        command.args(["--warmup", &format!("{WARMUP_S}s")]).args(options);
        let mut process = Process::start(command.stderr(Stdio::piped()))?;
        let mut line = String::new();
        BufReader::new(process.0.stderr.take().context("its output is a pipe")?).read_line(&mut line)?;
        let Some(url) = line.split_whitespace().find(|word| word.starts_with("http://")) else {
            bail!("brunt run said {line:?}")
        };
        Ok(Self { url: url.trim_end_matches(',').to_owned(), process })
    }
}

/// Follows a run to its end, and one that ends without a word.
fn check_live(browser: &mut Browser, pages: &Pages) -> anyhow::Result<()> {
    let server = pages.serve(&STALL)?;
    let (time, html) = (format!("{}s", STALL.time_s), pages.file("live.html"));
    let options = ["-s", &server.address, "-t", &time, "--assert", "p99 < 1s", "-o", &html];
    let run = Run::start(&pages.brunt, &options)?;
    follow(browser, run, pages).context("the page of a run that goes on")?;
    drop(server);
    lose(browser, &pages.brunt).context("the page of a run that is gone")
}

fn follow(browser: &mut Browser, mut run: Run, pages: &Pages) -> anyhow::Result<()> {
    browser.open(&run.url, SIDES, false)?;
    wait_for(browser, "a chart over time", "document.querySelectorAll('#time .chart').length > 2")?;
    wait_for(browser, "the measured window", &measured(2))?;
    // What a reader does stays while sections are renewed.
    browser.run("figures.find((figure) => figure.root.dataset.kind === 'percentile').zoom([0.5, 1])")?;
    browser.run("document.querySelector('#time details').open = true")?;
    browser.run("document.querySelectorAll('button.unit')[0].click()")?;
    browser.run("document.querySelector('#time .chart').focus()")?;
    browser.key("Home")?;
    let readout: String = browser.value("document.querySelector('#time .readout').textContent")?;
    wait_for(browser, "what comes after the stall", &measured(STALL.at_s + 2))?;
    check_stall(browser, &STALL)?;
    for (what, kept) in [
        ("the open table", "document.querySelector('#time details').open"),
        (
            "the part of a chart",
            "figures.find((figure) => figure.kind === 'percentile').view.join() === '0.5,1'",
        ),
        ("the unit", "document.querySelectorAll('button.unit')[0].getAttribute('aria-pressed') === 'true'"),
        ("the focus", "document.activeElement === document.querySelector('#time .chart')"),
    ] {
        ensure!(browser.value::<bool>(kept)?, "the page forgets {what}");
    }
    let now: String = browser.value("document.querySelector('#time .readout').textContent")?;
    ensure!(now == readout, "the cursor shows {now:?}, not {readout:?}");
    browser.picture(&pages.path("live-running.png"))?;
    browser.key("Escape")?;
    browser.run("document.querySelector('#time details').open = false")?;
    browser.run("figures.find((figure) => figure.root.dataset.kind === 'percentile').zoom([0, 9])")?;
    browser.run("figures.forEach((figure) => (figure.at = null))")?;

    wait_for(browser, "the result", "document.getElementById('result').textContent !== ''")?;
    let status = run.process.0.wait()?;
    ensure!(has_result(status), "brunt run ended with {status}");
    let trouble = browser.trouble(&run.url);
    ensure!(trouble.is_empty(), "the browser said: {}", trouble.join("; "));
    let live = whole(browser)?;
    // What is there now on this port is no news of this run.
    browser.run("window.opened = 0; window.EventSource = class { constructor() { opened += 1; } }")?;
    browser.run(SEEN_AGAIN)?;
    ensure!(browser.value::<u32>("opened")? == 0, "a page that is over follows again");
    browser.picture(&pages.path("live-ended.png"))?;
    browser.open(pages.path("live.html"), SIDES, false)?;
    // The unit that the reader of the other one has chosen.
    browser.run("document.querySelectorAll('button.unit')[0].click()")?;
    let result = whole(browser)?;
    if live != result {
        let at = live.bytes().zip(result.bytes()).take_while(|(one, other)| one == other).count();
        let around = |text: &str| {
            text.get(at.saturating_sub(80)..).map(|text| text.chars().take(200).collect::<String>())
        };
        bail!("not the page of the result: {:?} and {:?}", around(&live), around(&result));
    }
    Ok(())
}

/// The page as the browser has it, without the line ends between its sections.
fn whole(browser: &mut Browser) -> anyhow::Result<String> {
    browser.value(
        "document.title + [...document.querySelector('main').children].map((part) => part.outerHTML).join()
            + document.getElementById('result').textContent",
    )
}

/// Without an event that ends the run, the page keeps what it has, and says for how long there was nothing.
fn lose(browser: &mut Browser, brunt: &Path) -> anyhow::Result<()> {
    let mut run = Run::start(brunt, &["-t", "60s", "--keys", "100"])?;
    browser.open(&run.url, SIDES, true)?;
    wait_for(browser, "a chart over time", "document.querySelectorAll('#time .chart').length > 2")?;
    // A tab that is hidden for ten seconds stops, and goes on when it is seen again.
    browser.run(
        "window.closed_streams = 0; const close = EventSource.prototype.close;
         EventSource.prototype.close = function () { closed_streams += 1; close.call(this); };
         Object.defineProperty(document, 'hidden', { value: true, configurable: true });
         document.dispatchEvent(new Event('visibilitychange'))",
    )?;
    wait_for(browser, "the end of a hidden stream", "closed_streams === 1")?;
    let title: String = browser.value(TITLE)?;
    browser.run("Object.defineProperty(document, 'hidden', { value: false, configurable: true })")?;
    browser.run(SEEN_AGAIN)?;
    wait_for(browser, "news of a tab that is seen again", &format!("{TITLE} !== {title:?}"))?;
    run.process.0.kill()?;
    run.process.0.wait()?;
    wait_for(
        browser,
        "a word about it",
        "document.getElementById('news').textContent.includes('No news for')",
    )?;
    let charts: u32 = browser.value("document.querySelectorAll('#time .chart').length")?;
    ensure!(charts > 2, "{charts} charts are left");
    // Chromium says on the console that it cannot connect.
    browser.trouble(&run.url);
    Ok(())
}

/// The condition that `seconds` of the window are over, and the window is not. A busy host may skip a second.
fn measured(seconds: u32) -> String {
    format!("Number({TITLE}.match(/measure, ([0-9]+) of/)?.[1]) >= {seconds}")
}

fn wait_for(browser: &mut Browser, what: &str, condition: &str) -> anyhow::Result<()> {
    let end = Instant::now() + PATIENCE;
    while !browser.value::<bool>(condition)? {
        let heading: String = browser.value(TITLE)?;
        ensure!(
            Instant::now() < end,
            "no {what} within {} s; the heading is {heading:?}",
            PATIENCE.as_secs()
        );
        std::thread::park_timeout(Duration::from_millis(50));
    }
    Ok(())
}
