// What the explorers share: elements, controls, a clock, words. No figure of its own.

const SVG = "http://www.w3.org/2000/svg";

function svg(tag, attributes = {}, parent = null, text = null) {
  const node = document.createElementNS(SVG, tag);
  Object.entries(attributes).forEach(([key, value]) => node.setAttribute(key, value));
  if (text !== null) node.textContent = text;
  if (parent) parent.appendChild(node);
  return node;
}

function html(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  Object.entries(attributes).forEach(([key, value]) => {
    if (typeof value === "boolean") node[key] = value;
    else node.setAttribute(key, value);
  });
  node.append(...children);
  return node;
}

// Before the page is printed, and after: on paper nothing can be pressed, chosen or scrolled to.
function onPaper(before, after = () => {}) {
  window.addEventListener("beforeprint", before);
  window.addEventListener("afterprint", after);
}

function slider(label, low, high, increment, value, show, change) {
  const input = html("input", {
    type: "range", min: `${low}`, max: `${high}`, step: `${increment}`, "aria-label": label,
  });
  const output = html("output", { "aria-live": "off" }, show(value)); // the slider says it itself
  const set = (x) => {
    input.value = x;
    output.textContent = show(x);
    input.setAttribute("aria-valuetext", show(x));
  };
  set(value);
  input.addEventListener("input", () => {
    set(Number(input.value));
    change(Number(input.value));
  });
  const row = html("label", { class: "pu-live-slider" }, html("span", {}, label), input, output);
  const bounds = (most, at) => {
    input.max = most;
    set(at);
  };
  return { row, set, bounds };
}

function select(label, options, value, change) {
  const list = html("select", {},
    ...options.map(([key, text]) => html("option", { value: `${key}` }, text)));
  list.value = `${value}`;
  list.addEventListener("change", () => change(list.value));
  const chosen = html("span", { class: "pu-live-chosen" });
  onPaper(() => { chosen.textContent = list.selectedOptions[0]?.textContent ?? "–"; });
  const row = html("label", { class: "pu-live-select" }, html("span", {}, label), list, chosen);
  row.set = (key) => { list.value = `${key}`; };
  return row;
}

function button(text, action, kind = "") {
  const node = html("button", { type: "button", class: kind }, text);
  node.addEventListener("click", action);
  return node;
}

// A function that draws controls in `box` anew, and leaves the focus on the control with the same key
// or name, or on `other()` if there is none. A field changes when Tab is pressed, before the next control
// has the focus; it is that one then.
function focusKeeper(box, other = () => null) {
  const nameOf = (node) => node.dataset.key ?? node.getAttribute("aria-label") ?? (node.closest("label") ?? node).firstChild?.textContent;
  const controls = () => [...box.querySelectorAll("button, input, select, textarea, [tabindex]")]
    .filter((node) => !node.disabled && node.offsetParent);
  let next = null;
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Tab") return;
    const stops = controls().filter((node) => node.tabIndex >= 0);
    next = stops[stops.indexOf(event.target) + (event.shiftKey ? -1 : 1)] ?? null;
    setTimeout(() => { next = null; }); // after the focus has moved
  });
  return (draw) => {
    const from = next ?? document.activeElement;
    const name = box.contains(from) ? nameOf(from) : null;
    draw();
    if (name === null || (from.isConnected && !from.disabled)) return;
    (controls().find((node) => nameOf(node) === name) ?? other())?.focus();
  };
}

// A question above the figure, with answers to choose from. `judge` compares the guess with the
// right answers, and gives the reason if the guess is wrong; without a guess it says nothing.
// `open` is true once the figure may show the answer: after a guess, after `reveal`, and on paper.
function question(words, options, answered = () => {}) {
  const name = `pu-guess-${Math.random().toString(36).slice(2)}`;
  let guess = null;
  let revealed = false;
  let printed = false;
  const print = (now) => () => {
    printed = now;
    answered();
  };
  onPaper(print(true), print(false));
  const choices = options.map(([key, text, tone]) => {
    const radio = html("input", { type: "radio", name, value: `${key}` });
    radio.addEventListener("change", () => {
      guess = key;
      answered(key);
    });
    const swatch = tone ? [html("span", { class: "pu-live-swatch", style: `--tone:${tone}` })] : [];
    return html("label", { class: "pu-live-choice" }, radio, ...swatch, text);
  });
  const legend = html("legend", {}, words);
  const box = html("fieldset", { class: "pu-live-question" }, legend, ...choices);
  const called = (key) => options.find(([other]) => other === key)[1];
  return {
    box,
    guess: () => guess,
    ask(text) { // a guess is one about the question that was asked
      if (text === legend.textContent) return;
      legend.textContent = text;
      guess = null;
      box.querySelectorAll("input").forEach((radio) => { radio.checked = false; });
    },
    open: () => revealed || printed || guess !== null,
    reveal() { revealed = true; },
    judge(right, reason = "") {
      if (guess === null) return "";
      return right.includes(guess)
        ? `Your guess, “${called(guess)}”, was right. `
        : `Not quite: you guessed “${called(guess)}”. ${reason}${reason && " "}`;
    },
  };
}

// The attributes of a figure: `get` reads one, `put` changes some and tells a kernel, if there is one.
// `values` are those that an attribute may have, and `range` is the least and the most of a number.
const attributes = (model) => ({
  get: (key) => model.get(key),
  values: (key) => model.get("kept")[key].values,
  range: (key) => ["least", "most"].map((bound) => model.get("kept")[key][bound]),
  put(changes) {
    Object.entries(changes).forEach(([key, value]) => model.set(key, value));
    model.save_changes();
  },
});

// The updates that a figure shows and the page can compute, and the one that others are set against.
const shown = (model) => model.get("updates").filter(known);
const foil = (names) => (names.includes("mce") ? "mce" : names.at(-1));

const still = () => window.matchMedia("(prefers-reduced-motion: reduce)").matches;

// A clock that runs from 0 to `end` in `seconds`, and calls frame(t) on the way; where the reader
// asked for reduced motion it is at the end at once.
function clock(end, seconds, frame, finish, from = 0) {
  let stopped = false;
  let started = null;
  const tick = (now) => {
    if (stopped) return;
    started ??= now;
    const t = Math.min(end, from + (end * (now - started)) / (1000 * seconds));
    frame(t);
    if (t < end) requestAnimationFrame(tick);
    else finish();
  };
  if (still()) {
    frame(end);
    finish();
  } else requestAnimationFrame(tick);
  return () => { stopped = true; };
}

// A play button beside a slider of time. While it plays, the words are not read out. `show` receives
// the step, and whether it is shown for paper alone.
function playback(time, end, seconds, show, words) {
  let stop = null;
  let now = 0;
  const play = button("Play", () => {
    if (stop) return halt();
    const from = now >= end() ? 0 : now;
    play.textContent = "Pause";
    words.setAttribute("aria-live", "off");
    stop = clock(end(), end() > 1 ? seconds : 1, (t) => move(t), halt, from);
    if (now >= end()) halt();
    return undefined;
  }, "pu-live-main");
  function halt() {
    stop?.();
    if (stop) {
      stop = null;
      words.setAttribute("aria-live", "polite");
      words.textContent = "";
      show(Math.floor(now));
    }
    play.textContent = now >= end() ? "Play again" : "Play";
  }
  function move(t) {
    const [before, step] = [now, t].map(Math.floor);
    now = t;
    if (step === before) return; // several frames look alike where there are few steps
    time.set(step);
    show(step);
  }
  // what was not played is printed at its end
  const unplayed = (t) => {
    if (now > 0) return;
    time.set(t);
    show(t, true);
  };
  onPaper(() => {
    halt();
    unplayed(end());
  }, () => unplayed(0));
  return { play, halt, set: (t) => { now = t; halt(); } };
}

// Whole steps from `from` to `end`: all of the first dozen, then about eight in a hundred apart.
function moments(from, end) {
  const steps = [];
  for (let t = 0; t < end - from; t = Math.max(t + 1, Math.round(1.08 * t))) steps.push(from + t);
  return [...steps, end];
}

// Run once for all changes that are made together.
function later(action) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    queueMicrotask(() => {
      waiting = false;
      action();
    });
  };
}

const PAPER = 790; // the room of a figure on a printed page, at the scale of live.css

const LEAST = 200; // in pixels; with less, labels leave bars and circles a negative size

// Draw again whenever the width of the box changes: draw(width in pixels). A box that is narrower
// than the `least` width of the figure scrolls.
function fit(box, draw, least = LEAST) {
  let width = 0;
  const again = () => {
    box.style.overflowX = box.clientWidth < least ? "auto" : "";
    const room = Math.max(least, box.clientWidth);
    if (box.clientWidth > 0 && room !== width) {
      width = room;
      draw(width);
    }
  };
  new ResizeObserver(again).observe(box); // which calls once at the start
  let screen = 0;
  onPaper(() => {
    [screen, width] = [width, PAPER];
    draw(width);
  }, () => {
    width = screen;
    if (width > 0) draw(width);
  });
  return () => { if (width > 0) draw(width); };
}

const fraction = (x) => ({ 0.125: "1/8", 0.25: "1/4", 0.5: "1/2" })[x] ?? `${x}`;

// "A", "A and B", "A, B and C"
const spoken = (words) =>
  words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;

// 12 345 with thin spaces that do not break
const digits = (x) => (Number.isInteger(x) ? `${x}`.replace(/\B(?=(\d{3})+$)/g, "\u202f") : `${x}`);

// Things as write(x, more) writes them, with as many more digits as tell each from the next.
function apart(things, write) {
  const written = [0, 1, 2, 3].map((more) => things.map((x) => write(x, more)));
  return written.find((all) => all.every((text, i) => text !== all[i + 1])) ?? written.at(-1);
}

const plural = (count, word) => `${digits(count)} ${word}${count === 1 ? "" : "s"}`;

// The groups of more than one, as a sentence: "The rows of A and B coincide, and so do those of C and D."
function coinciding(what, groups) {
  const [first, ...rest] = groups.filter((group) => group.length > 1).map(spoken);
  return first ? `The ${what} of ${first} coincide${rest.map((others) => `, and so do those of ${others}`).join("")}. ` : "";
}

// The names grouped by `valueOf`, in the order of `compare`.
function grouped(names, valueOf, compare) {
  const groups = new Map();
  names.forEach((name) => groups.set(valueOf(name), [...(groups.get(valueOf(name)) ?? []), name]));
  return [...groups].sort(([a], [b]) => compare(a, b));
}

function frame(el, kind, ...children) {
  el.append(html("div", { class: `pu-live pu-live-${kind}` }, ...children));
}

// The numbers of an axis of lengths, below a picture: `at` is where zero stands, `unit` what one is long.
function ruler(parent, at, unit, y, values) {
  values.forEach((x) => {
    svg("line", { x1: at + unit * x, x2: at + unit * x, y1: y, y2: y + 5, class: "pu-live-axis" }, parent);
    svg("text", { x: at + unit * x, y: y + 18, "text-anchor": "middle", class: "pu-live-faint" }, parent,
      x === 0 ? "0" : `${x < 0 ? "−" : "+"}${fraction(Math.abs(x))}`);
  });
}

// A policy, with as many decimals as its smallest probability asks for.
const triple = (pi) => `(${pi.map((x) => x.toFixed(Math.min(...pi) < 0.005 ? 5 : 2)).join(", ")})`;

function arrow(parent, x1, y, x2, attributes) {
  const size = Math.min(7, Math.abs(x2 - x1));
  const back = x2 > x1 ? -size : size;
  svg("line", { x1, y1: y, x2: x2 + back * 0.7, y2: y, class: "pu-live-shaft", ...attributes }, parent);
  svg("path", {
    d: `M${x2},${y} l${back},${-size * 0.6} v${size * 1.2} z`, class: "pu-live-head", ...attributes,
  }, parent);
}

// The address of a page keeps the settings of its figures after #, each behind the figure's name:
// "dominoes=1&states=9;price=1&value=0.6". The 1 is the version of the form. All figures of a page
// share `window.puAddress`, so that none of them overwrites the part of another. A notebook's address
// belongs to its editor and is left alone.
const PAUSE = 300; // milliseconds between changes of the address, of which Safari allows 100 in 30 s

function addressOf(name) {
  const inNotebook = document.body.hasAttribute("data-jp-theme-light");
  const settings = () => (inNotebook ? [] : window.location.hash.slice(1).split(";").filter((text) => text.indexOf("=") > 0));
  const nameOf = (text) => text.slice(0, text.indexOf("="));
  const page = (window.puAddress ??= { parts: new Map(settings().map((text) => [nameOf(text), text])), last: -Infinity, waiting: null });
  const put = () => {
    [page.waiting, page.last] = [null, performance.now()];
    const text = [...page.parts.values()].filter(Boolean).join(";");
    const { pathname, search } = window.location;
    window.history.replaceState(null, "", text ? `#${text}` : `${pathname}${search}`);
  };
  return {
    read: () => settings().find((text) => nameOf(text) === name) ?? null,
    isFirst: () => settings().length > 0 && nameOf(settings()[0]) === name,
    current: () => page.parts.get(name) ?? "",
    write(text) {
      if (inNotebook || text === (page.parts.get(name) ?? "")) return;
      page.parts.set(name, text);
      page.waiting ??= setTimeout(put, Math.max(0, page.last + PAUSE - performance.now()));
    },
    link: (text) => `${window.location.href.split("#")[0]}#${text}`,
  };
}

// A function that copies a text, or shows it in the field `box` where the browser does not allow
// copying, and `tell`s what it did.
function copier(tell) {
  const box = html("textarea", { class: "pu-live-text", readonly: "", rows: "4", "aria-label": "The text to copy", hidden: true });
  const copy = (text, what) => {
    const show = () => {
      Object.assign(box, { hidden: false, value: text });
      box.focus();
      box.select();
      tell(`The ${what} is in the field below; copy it from there.`);
    };
    if (!navigator.clipboard) show();
    else navigator.clipboard.writeText(text).then(() => tell(`The ${what} is copied.`), show);
  };
  return { box, copy };
}

// A setting as text: a number, a word, nothing, or a list of them.
const settingText = (value) => [value].flat().map((x) => encodeURIComponent(x ?? "")).join(",");

// The setting that a text says, or undefined if it breaks the rule: see _rule in base.py.
function settingFrom(text, rule) {
  if (rule.each) {
    const list = text === "" ? [] : text.split(",").map((part) => settingFrom(part, rule.each));
    const off = list.includes(undefined) || list.length < rule.least || list.length > (rule.most ?? Infinity)
      || (rule.sum !== undefined && Math.abs(sum(list) - rule.sum) > 1e-9);
    return off ? undefined : list;
  }
  let word = text;
  try {
    word = decodeURIComponent(text);
  } catch {
    return undefined;
  }
  if (rule.none && word === "") return null;
  if (rule.values) return rule.values.find((value) => `${value}` === word);
  const x = Number(word);
  const fits = word.trim() !== "" && Number.isFinite(x) && x >= (rule.least ?? -Infinity) && x <= (rule.most ?? Infinity)
    && (!rule.above || x > rule.least) && (!rule.whole || Number.isInteger(x));
  return fits ? x + 0 : undefined; // -0 would be shown with its sign
}

// A figure with its settings in the address of the page, and a button that copies a link to them.
// `fits` says whether settings that are right one by one go together.
const kept = (render, fits = () => true) => ({
  render({ model, el }) {
    const rules = Object.entries(model.get("kept"));
    const usual = Object.fromEntries(rules.map(([key]) => [key, settingText(model.get(key))]));
    const address = addressOf(model.get("address"));
    const text = () => {
      const changed = rules.map(([key]) => [key, settingText(model.get(key))]).filter(([key, value]) => value !== usual[key]);
      return changed.length ? [[model.get("address"), 1], ...changed].map((pair) => pair.join("=")).join("&") : "";
    };
    const read = () => {
      const written = new Map((address.read() ?? "").split("&").slice(1).map((part) => part.split(/=(.*)/s)));
      const entries = rules.filter(([key]) => written.has(key)).map(([key, rule]) => [key, settingFrom(written.get(key) ?? "", rule)])
        .filter(([, value]) => value !== undefined);
      return Object.fromEntries(entries);
    };
    const restored = read();
    if (fits((key) => restored[key] ?? model.get(key))) Object.entries(restored).forEach(([key, value]) => model.set(key, value));
    render({ model, el });
    address.write(text());

    const status = html("span", { class: "pu-live-key", role: "status" });
    const { box, copy } = copier((words) => { status.textContent = words; });
    const link = button("Copy link", () => copy(address.link(text() || `${model.get("address")}=1`), "link to these settings"), "pu-live-small");
    el.firstElementChild.append(html("div", { class: "pu-live-bar pu-live-keep" }, link, status), box);
    rules.forEach(([key]) => model.on(`change:${key}`, () => address.write(text())));
    window.addEventListener("hashchange", () => {
      const part = address.read();
      if (part !== null && part !== address.current()) window.location.reload();
    });
    const [visit] = performance.getEntriesByType("navigation");
    if (address.isFirst() && visit?.type === "navigate") el.scrollIntoView();
  },
});
