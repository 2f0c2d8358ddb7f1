//! The page of `--http` while its run goes on: it fills itself, keeps what a reader did to it, shows a stall where it was, becomes the page of
//! the result, and says when nothing comes any more.

use super::{Pages, SIDES, STALL, WARMUP_S, check_stall};
use crate::browser::Browser;
use crate::process::{ALLOW, Process, has_result};
use anyhow::{Context, bail, ensure};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

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
pub(super) fn check(browser: &mut Browser, pages: &Pages) -> anyhow::Result<()> {
    let server = pages.serve(&STALL)?;
    let (time, html) = (format!("{}s", STALL.time_s), pages.file("live.html"));
    let options = ["-s", &server.address, "-t", &time, "--assert", "p99 < 1s", "--html", &html];
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
        ("the part of a chart", "location.hash.includes('percentile=')"),
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

/// So many seconds of the window are over, and it is not. A busy host may skip one.
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
