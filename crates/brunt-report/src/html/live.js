// Follows a run while it goes on: each event has the sections of the page as they are now, the last one the page of the result.
"use strict";

const SILENCE_MS = 5000;
const HIDDEN_MS = 10000;

// What can have the focus and is called the same: legends grow, and charts come and go.
function alike(section, { localName, className, label }) {
  const same = [...section.querySelectorAll(localName)].filter((held) => held.className === className);
  return label ? same.filter((held) => held.textContent === label) : same;
}

function focusIn(section) {
  const active = document.activeElement;
  if (!section.contains(active)) return null;
  const { localName, className } = active;
  const focus = { localName, className, label: active.matches(".chart") ? "" : active.textContent };
  return { ...focus, index: alike(section, focus).indexOf(active) };
}

const figuresIn = (section) => figures.filter((figure) => section.contains(figure.root));

// What a reader has done to a section, for the one that takes its place; the address keeps the rest.
function stateOf(section) {
  return {
    focus: focusIn(section),
    open: [...section.querySelectorAll("details")].map((details) => details.open),
    scroll: [...section.querySelectorAll(".wide, details")].map((box) => box.scrollLeft),
    at: figuresIn(section).map((figure) => (figure.at === null ? null : figure.middle(figure.at))),
  };
}

function restore(section, { focus, open, scroll, at }) {
  section.querySelectorAll("details").forEach((details, index) => (details.open = open[index] ?? false));
  recall();
  figuresIn(section).forEach((figure, index) => at[index] == null || figure.point(figure.nearest(at[index])));
  section.querySelectorAll(".wide, details").forEach((box, index) => (box.scrollLeft = scroll[index] ?? 0));
  if (focus) alike(section, focus)[focus.index]?.focus({ preventScroll: true });
}

// A reader who drags or has marked a text keeps the section until that is over.
function isHeld(section) {
  const selection = getSelection();
  const isMarked = !selection.isCollapsed && section.contains(selection.anchorNode);
  return isMarked || figuresIn(section).some((figure) => figure.pressed);
}

// The sections as they were told, by name: what readers and scripts did to them is no change.
const told = new Map();

function show(text) {
  const page = new DOMParser().parseFromString(text, "text/html");
  const main = document.querySelector("main");
  const kept = new Set();
  document.title = page.title;
  // The foot of printed pages tells the status, too.
  const style = page.querySelector("style");
  if (style) document.querySelector("style").textContent = style.textContent;
  for (const section of page.querySelectorAll("main > *")) {
    const name = section.id || section.localName;
    const held = [...main.children].find((child) => (child.id || child.localName) === name);
    const html = section.outerHTML;
    let shown = held;
    if (!held || (told.get(name) !== html && !isHeld(held))) {
      shown = document.importNode(section, true);
      const state = held && stateOf(held);
      figures = figures.filter((figure) => !held?.contains(figure.root));
      held?.replaceWith(shown);
      if (!held) main.append(shown);
      enliven(shown);
      if (state) restore(shown, state);
      told.set(name, html);
    }
    // In the order of the page, without moving what stands there already.
    const before = kept.size ? [...kept].at(-1) : null;
    if (shown.previousElementSibling !== before) before ? before.after(shown) : main.prepend(shown);
    kept.add(shown);
  }
  [...main.children].filter((child) => !kept.has(child)).forEach((child) => child.remove());
  document.getElementById("result").textContent = page.getElementById("result")?.textContent ?? "";
  offerResult();
}

function follow() {
  const news = document.getElementById("news");
  let [events, heard, hidden, isOver] = [null, Date.now(), null, false];
  const say = (text) => {
    news.textContent = text;
    document.body.classList.toggle("silent", text !== "");
  };
  const hear = (action) => (event) => {
    heard = Date.now();
    say("");
    action(event);
  };
  const listen = () => {
    heard = Date.now();
    events = new EventSource("events");
    events.addEventListener("page", hear((event) => show(event.data)));
    events.addEventListener("end", hear(() => {
      isOver = true;
      events.close();
      clearInterval(clock);
    }));
  };
  const clock = setInterval(() => {
    const silent = Date.now() - heard;
    if (document.hidden) return;
    if (silent > SILENCE_MS) say(`No news for ${Math.round(silent / 1000)} s: brunt has ended without a result, or cannot be reached.`);
  }, 1000);
  // Browsers allow few streams to a host; a page that nobody sees needs none.
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hidden);
    if (document.hidden) hidden = setTimeout(() => events.close(), HIDDEN_MS);
    else if (!isOver && events.readyState === EventSource.CLOSED) listen();
  });
  listen();
}

follow();
