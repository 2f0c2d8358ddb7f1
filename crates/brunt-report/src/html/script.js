// The page without this script is complete; it adds a cursor, zooming, switches, and saving. The page of a run that goes on follows it: each
// event has the sections of the page as they are now, the last one the page of the result.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const SILENCE_MS = 5000;
const HIDDEN_MS = 10000;

function element(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  return made;
}

// Round values in a range, up to ten of them.
function roundValues(low, high) {
  let step = 10 ** Math.floor(Math.log10((high - low) / 10));
  for (const factor of [2, 2.5, 2]) if ((high - low) / step > 10) step *= factor;
  const [first, last] = [Math.ceil(low / step - 1e-9), Math.floor(high / step + 1e-9)];
  return Array.from({ length: last - first + 1 }, (_, index) => (first + index) * step);
}

function clock(seconds) {
  const whole = Math.abs(seconds);
  const two = (number) => String(Math.floor(number) % 60).padStart(2, "0");
  const minutes = whole < 3600 ? Math.floor(whole / 60) : `${Math.floor(whole / 3600)}:${two(whole / 60)}`;
  return `${seconds < 0 ? "-" : ""}${minutes}:${two(whole)}`;
}

function short(number) {
  const [unit, suffix] = [[1e9, "G"], [1e6, "M"], [1e3, "k"]].find(([least]) => Math.abs(number) >= least) ?? [1, ""];
  return `${+(number / unit).toFixed(6)}${suffix}`;
}

// One request of so many lies above these percentiles, those first that take room before others.
const RARITIES = [1, 2, 5].flatMap((digit) => [0, 1, 2, 3, 4, 5, 6].map((power) => digit * 10 ** power));

// What lies along the x axis of a figure: where a row of its table stands, which values have names, and these, as the whole axis has them.
const KINDS = {
  time: { place: parseFloat, values: roundValues, name: (value, isClock) => (isClock ? clock(value) : `${+value.toFixed(6)} s`) },
  number: { place: parseFloat, values: roundValues, name: short },
  percentile: {
    place: (text) => (text === "max" ? Infinity : -Math.log10(1 - parseFloat(text.slice(1)) / 100)),
    values: (low, high) => RARITIES.map(Math.log10).filter((value) => value >= low && value <= high),
    name: (value) => `p${+(100 - 100 / 10 ** value).toFixed(5)}`,
  },
};

// Keeps a part of what is shown in the address, or takes it out.
function remember(name, value) {
  const parts = location.hash.slice(1).split("&").filter((part) => part);
  const others = parts.filter((part) => !part.startsWith(`${name}=`));
  // Browsers refuse what changes too often.
  if (value ? parts.includes(`${name}=${value}`) : others.length === parts.length) return;
  if (value) others.push(`${name}=${value}`);
  history.replaceState(null, "", `#${others.join("&")}`);
}

// A figure: its charts share a cursor and what part of the x axis they show.
class Figure {
  constructor(root) {
    this.root = root;
    this.kind = root.dataset.kind;
    this.range = root.dataset.range.split(" ").map(Number);
    this.view = this.range;
    this.readout = root.querySelector(".readout");
    const table = root.querySelector("details table");
    this.headings = [...table.tHead.rows[0].cells].map((cell) => cell.textContent.trim());
    this.rows = [...table.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.textContent.trim()));
    this.places = this.rows.map((row) => Math.min(KINDS[this.kind].place(row[0]), this.range[1]));
    this.charts = [...root.querySelectorAll(".chart")].map((chart) => this.chart(chart));
    this.at = null;
    this.legend();
    this.show();
  }

  chart(holder) {
    const svg = holder.querySelector("svg");
    const plot = svg.querySelector("svg.plot");
    const number = (name) => parseFloat(plot.getAttribute(name));
    const area = { x: number("x"), y: number("y"), width: number("width"), height: number("height") };
    const upright = { y1: area.y, y2: area.y + area.height, class: "cursor hidden" };
    const cursor = svg.appendChild(element("line", upright));
    const selection = svg.appendChild(element("rect", { y: area.y, height: area.height, class: "selection hidden" }));
    const axis = svg.querySelector("g.x");
    const zoomed = axis.parentNode.insertBefore(element("g", { class: "x-zoomed" }), axis.nextSibling);
    const chart = { svg, plot, area, cursor, selection, axis, zoomed };
    holder.tabIndex = 0;
    holder.addEventListener("keydown", (event) => this.key(event));
    svg.addEventListener("pointerdown", (event) => this.press(chart, event));
    svg.addEventListener("pointermove", (event) => this.move(chart, event));
    svg.addEventListener("pointerup", (event) => this.release(chart, event));
    svg.addEventListener("pointercancel", () => this.drop(chart));
    svg.addEventListener("dblclick", () => this.zoom(this.range));
    return chart;
  }

  // The value under the pointer.
  value(chart, event) {
    const box = chart.svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * chart.svg.viewBox.baseVal.width;
    const part = Math.min(1, Math.max(0, (x - chart.area.x) / chart.area.width));
    return this.view[0] + part * (this.view[1] - this.view[0]);
  }

  pixel(chart, value) {
    const part = (value - this.view[0]) / (this.view[1] - this.view[0]);
    return chart.area.x + Math.min(1, Math.max(0, part)) * chart.area.width;
  }

  press(chart, event) {
    if (event.button !== 0) return;
    this.pressed = { chart, value: this.value(chart, event), x: event.clientX };
    chart.svg.setPointerCapture(event.pointerId);
  }

  move(chart, event) {
    const value = this.value(chart, event);
    this.readout.setAttribute("aria-live", "off");
    this.point(this.nearest(value));
    if (!this.pressed) return;
    const [from, to] = [this.pressed.value, value].map((end) => this.pixel(chart, end));
    chart.selection.setAttribute("x", Math.min(from, to));
    chart.selection.setAttribute("width", Math.abs(to - from));
    chart.selection.classList.remove("hidden");
  }

  release(chart, event) {
    const pressed = this.pressed;
    this.drop(chart);
    if (!pressed || Math.abs(event.clientX - pressed.x) < 5) return;
    const value = this.value(chart, event);
    this.zoom([Math.min(value, pressed.value), Math.max(value, pressed.value)]);
  }

  drop(chart) {
    this.pressed = null;
    chart.selection.classList.add("hidden");
  }

  nearest(value) {
    // A piece of time reaches to the next one.
    if (this.kind === "time") return Math.max(0, this.places.findLastIndex((place) => place <= value));
    const distance = (index) => Math.abs(this.places[index] - value);
    return this.rows.reduce((best, _, index) => (distance(index) < distance(best) ? index : best), 0);
  }

  // Where the cursor stands for a row: of a piece of time its middle.
  middle(index) {
    if (this.kind !== "time") return this.places[index];
    const end = index + 1 < this.places.length ? this.places[index + 1] : this.range[1];
    return (this.places[index] + end) / 2;
  }

  point(index) {
    this.at = index;
    const cells = this.rows[index];
    this.readout.replaceChildren();
    cells.forEach((cell, column) => {
      if (cell === "-") return;
      if (column) this.readout.append(" · ");
      const strong = document.createElement("b");
      strong.textContent = cell;
      this.readout.append(`${this.headings[column]} `, strong);
    });
    this.mark();
  }

  mark() {
    if (this.at === null) return;
    const value = this.middle(this.at);
    const isVisible = value >= this.view[0] && value <= this.view[1];
    for (const chart of this.charts) {
      const x = this.pixel(chart, value);
      chart.cursor.setAttribute("x1", x);
      chart.cursor.setAttribute("x2", x);
      chart.cursor.classList.toggle("hidden", !isVisible);
    }
  }

  key(event) {
    const last = this.rows.length - 1;
    const at = this.at ?? this.nearest(this.view[0]);
    const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -last, End: last };
    if (event.key in steps) {
      this.readout.setAttribute("aria-live", "polite");
      this.point(Math.min(last, Math.max(0, this.at === null ? at : at + steps[event.key])));
    } else if (event.key === "Escape") {
      this.zoom(this.range);
    } else if (event.key === "+" || event.key === "-") {
      const half = ((this.view[1] - this.view[0]) * (event.key === "+" ? 0.5 : 2)) / 2;
      this.zoom([this.middle(at) - half, this.middle(at) + half]);
    } else {
      return;
    }
    event.preventDefault();
  }

  zoom([low, high]) {
    const [first, last] = this.range;
    const least = (last - first) / 1000;
    [low, high] = [Math.max(first, low), Math.min(last, high)];
    if (high - low < least) return;
    this.view = [low, high];
    const isWhole = high - low > (last - first) * 0.999;
    if (isWhole) this.view = this.range;
    remember(this.kind, isWhole ? "" : `${low.toPrecision(5)},${high.toPrecision(5)}`);
    this.show();
  }

  // Shows the part of the charts that is looked at, with an axis of its own.
  show() {
    const [first, last] = this.range;
    const [low, high] = this.view;
    const isWhole = this.view === this.range;
    for (const { svg, plot, area, axis, zoomed } of this.charts) {
      const x = area.x + ((low - first) / (last - first)) * area.width;
      const width = ((high - low) / (last - first)) * area.width;
      plot.setAttribute("viewBox", `${x} ${area.y} ${width} ${area.height}`);
      const parts = [...axis.children];
      // The line of the axis and its title stay.
      parts.slice(0, -2).forEach((part) => part.classList.toggle("hidden", !isWhole));
      svg.querySelectorAll("g.note").forEach((note) => note.classList.toggle("hidden", !isWhole));
      zoomed.replaceChildren();
      if (!isWhole) this.drawAxis(zoomed, area);
    }
    this.mark();
  }

  drawAxis(group, area) {
    const [bottom, kind] = [area.y + area.height, KINDS[this.kind]];
    const values = kind.values(...this.view);
    const isClock = this.range[1] > 120 && values.every(Number.isInteger);
    const taken = [];
    for (const value of values) {
      const [x, name] = [this.pixel({ area }, value), kind.name(value, isClock)];
      group.append(element("line", { x1: x, x2: x, y1: area.y, y2: bottom, class: "stroke-grid" }));
      const half = name.length * 3.7;
      if (taken.some(([from, to]) => x - half < to + 8 && x + half > from - 8)) continue;
      taken.push([x - half, x + half]);
      const label = element("text", { x, y: bottom + 18, "font-size": 12, "text-anchor": "middle", class: "fill-soft" });
      label.textContent = name;
      group.append(label);
    }
  }

  legend() {
    for (const entry of this.root.querySelectorAll("li[data-group]")) {
      entry.tabIndex = 0;
      entry.setAttribute("role", "button");
      entry.setAttribute("aria-pressed", "true");
      const toggle = () => this.toggle(entry);
      entry.addEventListener("click", toggle);
      entry.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        toggle();
      });
    }
  }

  // Hides what some entries of the legend stand for, or shows it again.
  toggle(...entries) {
    for (const entry of entries) {
      const isShown = entry.getAttribute("aria-pressed") === "false";
      entry.setAttribute("aria-pressed", isShown);
      for (const group of this.root.querySelectorAll(`g.${entry.dataset.group}`)) group.classList.toggle("hidden", !isShown);
    }
    const hidden = [...this.root.querySelectorAll("li[aria-pressed=false]")].map((held) => held.dataset.group);
    remember(`${this.kind}-hidden`, hidden.join(","));
  }

  hide(groups) {
    const entries = [...this.root.querySelectorAll("li[aria-pressed=true]")];
    const meant = entries.filter((entry) => groups.includes(entry.dataset.group));
    if (meant.length) this.toggle(...meant);
  }
}

// Moves the point of every number in a text to the right, or to the left; no digit is lost.
function shifted(text, places) {
  return text.replace(/\d+(\.\d+)?/g, (number) => {
    const [whole, part = ""] = number.split(".");
    const point = whole.length + places;
    const digits = "0".repeat(Math.max(0, 1 - point)) + (whole + part).padEnd(point, "0");
    const at = Math.max(1, point);
    const moved = `${digits.slice(0, at)}.${digits.slice(at)}`;
    return moved.replace(/^0+(?=\d)/, "").replace(/\.$/, "");
  });
}

// Buttons that show the times of a table in another unit.
function unitSwitch(table) {
  const heading = table.tHead.rows[0].cells[0];
  const units = ["ns", "us", "ms", "s"];
  const own = units.indexOf(heading.textContent.trim().split(", ")[1]);
  const cells = [...table.querySelectorAll("td.time")].flatMap((cell) => [...cell.childNodes]);
  const texts = cells.filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => [node, node.data]);
  const show = (unit) => {
    texts.forEach(([node, text]) => (node.data = shifted(text, 3 * (own - unit))));
    heading.textContent = `response, ${units[unit]}`;
    buttons.forEach((made, index) => made.setAttribute("aria-pressed", index === unit));
  };
  const buttons = units.map((name, unit) => button(name, () => {
    show(unit);
    remember("unit", unit === own ? "" : name);
  }));
  buttons.forEach((made) => made.classList.add("unit"));
  const bar = document.createElement("p");
  bar.append("Unit: ", ...buttons.flatMap((made) => [made, " "]));
  table.parentNode.before(bar);
  show(own);
}

function button(name, action) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = name;
  made.addEventListener("click", () => action(made));
  return made;
}

async function save() {
  const packed = atob(document.getElementById("result").textContent);
  const bytes = Uint8Array.from(packed, (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await new Response(stream).blob());
  link.download = "result.json";
  link.click();
  URL.revokeObjectURL(link.href);
}

function copy(made) {
  const plan = document.getElementById("toml");
  getSelection().selectAllChildren(plan);
  navigator.clipboard?.writeText(plan.textContent).then(() => (made.textContent = "Copied"), () => {});
}

let figures = [];

// Makes a part of the page answer to pointer and keys.
function enliven(part) {
  figures.push(...[...part.querySelectorAll("figure[data-kind]")].map((root) => new Figure(root)));
  part.querySelectorAll("table.latency").forEach(unitSwitch);
  part.querySelector("#toml")?.before(button("Copy the plan", copy), " ");
  const theme = part.querySelector("#theme");
  if (!theme) return;
  theme.hidden = false;
  theme.addEventListener("click", () => {
    const root = document.documentElement;
    const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme:dark)").matches;
    root.dataset.theme = isDark ? "light" : "dark";
  });
}

// A button that saves the result which the page keeps, if it does.
function offerResult() {
  if (!document.getElementById("result").textContent) return;
  document.querySelector("main").append(button("Save the numbers as JSON", save));
}

// Shows what the address keeps of a part of the page.
function recall(part) {
  for (const kept of location.hash.slice(1).split("&")) {
    const [name, value = ""] = kept.split("=");
    const [kind, isHidden] = name.split("-");
    const figure = figuresIn(part).find((held) => held.kind === kind);
    const [low, high] = value.split(",").map(Number);
    if (name === "unit") [...part.querySelectorAll("button.unit")].filter((held) => held.textContent === value).forEach((held) => held.click());
    if (isHidden) figure?.hide(value.split(","));
    else if (low < high) figure?.zoom([low, high]);
  }
}

// ---- the page of a run that goes on

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
  recall(section);
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
  // Browsers allow few streams to a host; a hidden page needs none.
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hidden);
    if (document.hidden) hidden = setTimeout(() => events.close(), HIDDEN_MS);
    else if (!isOver && events.readyState === EventSource.CLOSED) listen();
  });
  listen();
}

function start() {
  enliven(document);
  recall(document);
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") figures.forEach((figure) => figure.zoom(figure.range));
  });
  offerResult();
  if (document.getElementById("news")) follow();
}

start();
