// Build a world: draw a process, watch the updates learn it, change a reward, keep it.

const LETTERS = { w: "x", g: "G", t: "T", s: "S", e: "." };
const LONGEST = 40; // letters of the name of a state or an action
const SLICE = 40; // milliseconds that the page computes before it reacts
const SMALL = 80; // the least width of a board in pixels
const SPEEDS = [[5, "slow"], [25, "medium"], [150, "fast"]]; // updates a second
const SIZES = [0.01, 0.03, 0.1, 0.3, 1, 3, 10];
const LENGTHS = [50, 160, 200, 300, 400, 640, 1000];
const NEW_GRAPH = {
  kind: "graph", name: "", discount: 0.9, moves: [[[[1, 1]], [[0, 1]]], [[], []]], pays: [[1, 0], [0, 0]],
  initial: [1, 0], terminal: [false, true], states: ["s0", "s1"], actions: ["a0", "a1"],
};

// The number that a reader writes: "0.25", "1e-7" or "1/3".
function numberIn(text) {
  const [number, divisor = 1, ...more] = text.split("/").map((part) => (part.trim() === "" ? NaN : Number(part)));
  return more.length ? NaN : number / divisor;
}

// The next states that a reader writes: "s1" or "s1 50 %, s2 50 %". Raises what is wrong.
function movesFrom(text, states) {
  return text.split(",").map((part) => {
    if (states.includes(part.trim())) return [states.indexOf(part.trim()), 1];
    const [, name, share, percent] = part.trim().match(/^(.*?)(?:\s+([\d.]\S*?)\s*(%?))?$/);
    const next = states.indexOf(name);
    if (next < 0) throw new Error(`There is no state “${briefName(name)}”; the states are ${spoken(states.slice(0, MOST_DRAWN).map(briefName))}.`);
    return [next, share === undefined ? 1 : numberIn(share) / (percent ? 100 : 1)];
  });
}

// A name that no other state or action has.
function unused(names, nameOf) {
  let i = names.length;
  while (names.includes(nameOf(i))) i += 1;
  return nameOf(i);
}

// The same as text, which movesFrom() reads as exactly these probabilities.
const movesIn = (pairs, states) => pairs.map(([next, chance]) => {
  const percent = Number((100 * chance).toPrecision(12));
  return chance === 1 ? states[next] : `${states[next]} ${percent / 100 === chance ? `${percent} %` : chance}`;
}).join(", ");

// The world without a state: what led there is divided among the other next states in proportion.
function withoutState(world, gone) {
  const rest = (list) => list.filter((_, s) => s !== gone);
  const left = (s) => (s > gone ? s - 1 : s);
  const moves = rest(world.moves.map((row, s) => row.map((pairs) => {
    const kept_ = pairs.filter(([next]) => next !== gone);
    const total = sum(kept_.map(([, chance]) => chance));
    return total > 0 || world.terminal[s] ? kept_.map(([next, chance]) => [left(next), chance / total]) : [[left(s), 1]];
  })));
  const initial = rest(world.initial);
  const total = sum(initial);
  const first = Math.max(0, rest(world.terminal).indexOf(false)); // the start if the start is removed
  return {
    ...world, moves, pays: rest(world.pays), terminal: rest(world.terminal), states: rest(world.states),
    initial: initial.map((chance, s) => (total > 0 ? chance / total : s === first ? 1 : 0)),
  };
}

const withoutAction = (world, gone) => {
  const rest = (row) => row.filter((_, a) => a !== gone);
  return { ...world, moves: world.moves.map(rest), pays: world.pays.map(rest), actions: rest(world.actions) };
};

// The names with another one at a place. Raises what is wrong with it.
function renamed(names, at, name, what) {
  if (name === "" || /[,%]/.test(name)) throw new Error(`A name of ${what} needs a letter or more, without commas and percent signs.`);
  if (names.some((other, i) => other === name && i !== at)) throw new Error(`There is already ${what} “${briefName(name)}”.`);
  return names.with(at, name);
}

function render({ model, el }) {
  const { get, put } = attributes(model);
  const [labels, colours, presets] = ["labels", "colours", "presets"].map(get);
  let settings = null;
  let [stages, lanes] = [[], []];
  let now = 0;
  let place = 0; // the selected cell, or the selected state of a graph
  let tool = "select";
  let playing = null;
  let [coming, computing] = [null, null]; // the step that is being computed, and the timer of its next slice
  let brush = null; // the settings before the mouse painted cells, likewise
  let edited = null; // the world of the editor
  let note = ""; // what a change has removed
  let opened = null; // the text that was opened, until the reader changes something
  const past = [];
  let [action, adds] = [0, "0"]; // what a drag in the graph changes, and whether it adds a next state
  let held = null; // the settings before a slider was dragged: its drag is undone as a whole

  const words = html("p", { class: "pu-live-words", "aria-live": "polite" });
  const heard = html("p", { class: "pu-live-hidden", role: "status" }); // what changed, for screen readers
  const trouble = html("p", { class: "pu-live-trouble", role: "alert" });
  const part = (name, ...children) => html("div", { "data-part": name }, ...children);
  const editor = html("div", {});
  const side = html("div", { class: "pu-live-side" });
  const board = html("div", { class: "pu-live-lanes" });
  const asked = html("div", {});
  const numbers = html("div", { class: "pu-live-scroll", role: "region", "aria-label": "Policies in the selected state", tabindex: "0" });
  const curves = svg("svg", { "aria-hidden": "true" });
  const plot = html("div", {}, curves);
  const { box: copied, copy } = copier((text) => { words.textContent = text; });
  const address = addressOf(get("address"));
  // The text of a world begins with "world=", its part of the address with the name of the figure.
  const partOf = (text) => text.replace(/^world(?==)/, get("address"));
  const worldIn = (part) => part?.replace(/^[^=]*/, "world") ?? null;

  // Settings

  function begin(next) { // at step 0
    const nextStages = stagesOf(next); // raises what is wrong before anything is replaced
    halt();
    stop();
    [settings, stages, now] = [{ ...next, t: 0 }, nextStages, 0];
    lanes = settings.run.updates.map((name) => lane(name, stages, settings.run));
    lanes.forEach((one) => one.go(0));
  }

  const withStep = () => writeWorld({ ...settings, t: now });

  // The address stays as the reader gave it until something changes; then it has the step, too.
  function save() {
    const text = writeWorld(settings);
    if (withStep() !== opened) {
      opened = null;
      address.write(partOf(withStep()));
    }
    if (get("world") !== text) put({ world: text });
  }

  // Say what changed. A text that is the same as before would not be read out.
  function hear(said) {
    heard.textContent = said && said === heard.textContent ? `${said}\u00a0` : said;
  }

  // Do what `change` says about the settings, or say why it cannot be done.
  function attempt(change, said = "") {
    const [before, shown_] = [writeWorld(settings), withStep()];
    note = "";
    try {
      change();
      trouble.textContent = note;
      hear(said);
      const whole = held ?? brush;
      if (writeWorld(settings) !== before && !(whole && past.at(-1) === whole)) past.push(shown_);
    } catch (error) {
      trouble.textContent = error.message;
    }
    refresh();
  }

  const shape = (world) => [world.kind, nActions(world), nStates(world), world.pays.length].join();
  const edit = (world, said = "", at = place) => attempt(() => {
    const same = shape(world) === shape(settings.world);
    const run = same ? settings.run : { ...settings.run, changes: [], from: null };
    begin(withoutTask({ ...settings, world, run }));
    place = at;
  }, said);
  const rerun = (changes, said = "") => attempt(() => begin(withoutTask({ ...settings, run: { ...settings.run, ...changes } })), said);

  // The next settings; without the task if they lack changes of a reward, which the task is about. A change
  // of the reward `at` a place in this step is only another one.
  function withoutTask(next, at = null) {
    const lost = settings.run.changes.some((change) => !next.run.changes.includes(change) && !(change[0] === now && change[1] === at));
    if (lost) note = "Changes of rewards at other steps have been removed.";
    return lost ? { ...next, ask: noTask() } : next;
  }

  // A reward at the start is one of the world; later it is a change, and what was learnt is kept.
  function pay(at, reward, name) {
    const said = `The ${name} is now ${reward}.`;
    if (reward === payAt(worldNow(), at)) {
      refresh();
      return;
    }
    if (now === 0) {
      edit(withPay(settings.world, at, reward), said);
      return;
    }
    attempt(() => {
      const changes = settings.run.changes.filter(([t, other]) => t < now || (t === now && other !== at));
      const before = changes.reduce((world, [, other, paid]) => withPay(world, other, paid), settings.world);
      if (payAt(before, at) !== reward) changes.push([now, at, reward]); // a slider may come back
      const next = withoutTask({ ...settings, run: { ...settings.run, changes } }, at);
      stages = stagesOf(next);
      settings = next;
      stop();
      lanes.forEach((one) => one.change(stages, now));
    }, said);
  }

  const worldNow = () => stages.findLast(({ from }) => from <= now).world;

  // The editor

  const cellName = (cell) => {
    const { rows } = settings.world;
    return `row ${Math.floor(cell / rows[0].length) + 1}, column ${(cell % rows[0].length) + 1}`;
  };

  function paint(cell, kind) {
    const { world } = settings;
    if (kindAt(world, cell) === kind) { // its reward stays
      refresh();
      return;
    }
    const width = world.rows[0].length;
    const letters = [...world.rows.join("")];
    if (kind === "S") letters.forEach((letter, i) => { if (letter === "S") letters[i] = "."; });
    letters[cell] = kind;
    const usual = { G: 1, T: -1 }[kind] ?? 0;
    edit({ ...withPay(world, cell, usual), rows: world.rows.map((_, i) => letters.slice(i * width, (i + 1) * width).join("")) },
      `${cellName(cell)} is now ${{ x: "a wall", G: "a goal", T: "a trap", S: "the start", ".": "empty" }[kind]}.`);
  }

  // A cell is painted when the mouse enters it with its button down, and once: it is drawn anew then.
  let last = null;
  const under = ({ target }) => Number(target.closest("[data-key^='cell ']")?.dataset.key.slice(5) ?? NaN);
  const stroke = (event) => {
    const cell = under(event);
    if (brush === null || Number.isNaN(cell) || cell === last) return;
    [place, last] = [cell, cell];
    paint(cell, tool);
  };
  editor.addEventListener("pointerdown", (event) => {
    if (tool === "select" || settings.world.kind !== "grid" || event.pointerType !== "mouse" || event.button !== 0 || Number.isNaN(under(event))) return;
    [brush, last] = [withStep(), null];
    stroke(event);
  });
  editor.addEventListener("pointerover", stroke);
  window.addEventListener("pointerup", () => { brush = null; });

  function resize(height, width) {
    const { rows, pays } = settings.world;
    const cells = Array.from({ length: height }, (_, i) => Array.from({ length: width }, (__, j) => [rows[i]?.[j] ?? ".", (rows[i]?.[j] && pays[i * rows[0].length + j]) || 0]));
    edit({ ...settings.world, rows: cells.map((row) => row.map(([kind]) => kind).join("")), pays: cells.flat().map(([, value]) => value) }, `The grid has ${plural(height, "row")} and ${plural(width, "column")}.`);
  }

  function cells(world) {
    const width = world.rows[0].length;
    const grid = html("div", { class: "pu-live-cells", role: "group", "aria-label": "The grid. Arrow keys move; W, G, T, S and E make a wall, goal, trap, start or empty cell.", style: `--columns:${width}` });
    worldNow().pays.forEach((value, cell) => {
      const kind = kindAt(world, cell);
      const node = button({ x: "", G: "★", T: "✖", S: "S", ".": "" }[kind], () => {
        place = cell;
        if (tool === "select") refresh();
        else paint(cell, tool);
      }, `pu-live-square${kind === "x" ? " pu-live-block" : ""}`);
      node.setAttribute("aria-label", `${cellName(cell)}: ${KINDS[kind]}${value ? `, reward ${value}` : ""}`);
      node.setAttribute("aria-pressed", `${cell === place}`);
      node.setAttribute("data-key", `cell ${cell}`);
      node.tabIndex = cell === place ? 0 : -1;
      node.addEventListener("keydown", (event) => {
        const by = { ArrowUp: -width, ArrowDown: width, ArrowLeft: cell % width > 0 ? -1 : 0, ArrowRight: (cell + 1) % width > 0 ? 1 : 0 }[event.key];
        if (by !== undefined) {
          event.preventDefault();
          if (cell + by < 0 || cell + by >= world.pays.length) return;
          place = cell + by;
          refresh();
          editor.querySelector(`[data-key="cell ${place}"]`).focus();
        } else if (!event.ctrlKey && !event.metaKey && !event.altKey && Object.hasOwn(LETTERS, event.key.toLowerCase())) paint(cell, LETTERS[event.key.toLowerCase()]);
      });
      grid.append(node);
    });
    return grid;
  }

  function rewardSlider(at, name, label = name) {
    const value = payAt(worldNow(), at);
    const most = Math.max(2, Math.ceil(Math.abs(value)));
    const one = slider(label, -most, most, 0.05, value, (x) => `${Number(x.toPrecision(3))}`, () => {});
    const input = one.row.querySelector("input");
    input.setAttribute("data-key", `pay ${at}`);
    input.addEventListener("input", () => { // the editor is not drawn anew until the slider is released
      halt();
      held ??= withStep();
      pay(at, Number(input.value), name);
    });
    input.addEventListener("change", () => {
      held = null;
      refresh();
    });
    const flip = button("Flip its sign", () => {
      const reward = payAt(worldNow(), at);
      if (reward === 0) attempt(() => { throw new Error("The reward is 0; it has no sign to flip."); });
      else pay(at, -reward, name);
    }, "pu-live-small");
    flip.setAttribute("data-key", `flip ${at}`);
    return html("div", { class: "pu-live-bar" }, one.row, flip);
  }

  function fraction01(name, key, high) {
    const one = slider(name, 0, high, 0.01, settings.world[key], (x) => `${Number(x.toFixed(3))}`, () => {});
    const input = one.row.querySelector("input");
    input.setAttribute("data-key", key);
    input.addEventListener("change", () => edit({ ...settings.world, [key]: Number(input.value) }, `The ${name} is now ${input.value}.`));
    return one.row;
  }

  function gridEditor(world) {
    const tools = [["select", "select"], ...Object.entries(KINDS).map(([letter, name]) => [letter, name])];
    const choose = select("a click makes", tools, tool, (value) => { tool = value; });
    const sides = Array.from({ length: 12 }, (_, i) => [i + 1, `${i + 1}`]);
    side.replaceChildren(
      html("div", { class: "pu-live-bar" }, choose,
        select("rows", sides, world.rows.length, (n) => resize(Number(n), world.rows[0].length)),
        select("columns", sides, world.rows[0].length, (n) => resize(world.rows.length, Number(n)))),
      html("p", { class: "pu-live-key" }, `Selected: ${cellName(place)}, ${KINDS[kindAt(world, place)]}. Its reward is paid on arrival.`),
      kindAt(world, place) === "x" ? "" : rewardSlider(place, "reward of the cell"),
      fraction01("slip", "slip", 1), fraction01("discount", "discount", 0.99));
    return cells(world);
  }

  function graphEditor(world) {
    const { moves, states, actions, terminal } = world;
    const width = actions.length;
    if (action >= width) action = 0;
    const connect = (s, next) => {
      place = s;
      if (terminal[s]) attempt(() => { throw new Error(`${states[s]} is an end: nothing is chosen there.`); });
      else {
        const before = adds === "1" ? moves[s][action].map(([other]) => other) : [];
        const all = [...new Set([...before, next])];
        edit({ ...world, moves: moves.with(s, moves[s].with(action, all.map((one) => [one, 1 / all.length]))) },
          `${actions[action]} in ${states[s]} leads to ${spoken(all.map((one) => states[one]))}.`);
      }
    };
    const choose = (s) => {
      place = s;
      refresh();
      editor.querySelector(`[data-key="node ${s}"]`)?.focus();
    };
    const remove = (s) => {
      if (moves.length < 2) return;
      const next = withoutState(world, s);
      const begins = world.initial[s] === 1 ? ` The start is now ${next.states[next.initial.indexOf(1)]}.` : "";
      edit(next, `${states[s]} is removed.${begins}`, Math.max(0, s - 1));
    };
    const add = () => {
      edit({
        ...world, moves: [...moves, actions.map(() => [[moves.length, 1]])], pays: [...world.pays, actions.map(() => 0)],
        initial: [...world.initial, 0], terminal: [...terminal, false], states: [...states, unused(states, stateName)],
      }, `The state ${unused(states, stateName)} is added.`, moves.length);
    };
    const grow = () => edit({
      ...world, moves: moves.map((row, s) => [...row, terminal[s] ? [] : [[s, 1]]]), pays: world.pays.map((row) => [...row, 0]),
      actions: [...actions, unused(actions, actionName)],
    }, `The action ${unused(actions, actionName)} is added.`);
    const field = (label, key, value, change, more = {}) => {
      const input = html("input", { type: "text", "aria-label": label, "data-key": key, value, ...more });
      input.addEventListener("change", () => change(input.value.trim()));
      return input;
    };
    const shrink = (a) => {
      const node = button("×", () => edit(withoutAction(world, a), `${actions[a]} is removed.`), "pu-live-small");
      node.setAttribute("aria-label", `remove the action ${actions[a]}`);
      node.setAttribute("data-key", `remove ${a}`);
      node.disabled = width <= 2;
      return node;
    };
    const rows = actions.map((name, a) => {
      const leads = field(`${name} leads to`, `leads ${a}`, movesIn(moves[place][a], states), (text) => attempt(() => {
        const next = { ...world, moves: moves.with(place, moves[place].with(a, movesFrom(text, states))) };
        begin({ ...settings, world: next });
      }, `${name} in ${states[place]} leads to ${text}.`), { class: "pu-live-wide" });
      const paid = field(`reward of ${name}`, `paid ${a}`, `${payAt(worldNow(), place * width + a)}`, (text) => {
        const reward = numberIn(text);
        if (Number.isNaN(reward)) attempt(() => { throw new Error(`“${briefName(text)}” is not a number. Write it like 0.5, 1e-7 or 1/3.`); });
        else pay(place * width + a, reward, `reward of ${name}`);
      });
      const called = field(`name of action ${a + 1}`, `action ${a}`, name, (text) => attempt(() => {
        begin({ ...settings, world: { ...world, actions: renamed(actions, a, text, "an action") } });
      }, `${name} is now called ${text}.`), { maxlength: `${LONGEST}` });
      return html("tr", {}, html("td", {}, called), html("td", {}, leads), html("td", {}, paid), html("td", {}, shrink(a)));
    });
    const tick = (name, on, change) => {
      const box = html("input", { type: "checkbox", checked: on, "data-key": name });
      box.addEventListener("change", () => change(box.checked));
      return html("label", { class: "pu-live-choice" }, box, name);
    };
    const dropped = button("Remove this state", () => remove(place), "pu-live-small");
    dropped.disabled = moves.length < 2;
    const called = field("name of the state", "name", states[place], (text) => attempt(() => {
      begin({ ...settings, world: { ...world, states: renamed(states, place, text, "a state") } });
    }, `${states[place]} is now called ${text}.`), { maxlength: `${LONGEST}` });
    const drags = moves.length > MOST_DRAWN ? "" : html("div", { class: "pu-live-bar" },
      select("a drag makes", actions.map((name, a) => [a, name]), action, (a) => { action = Number(a); refresh(); }),
      select("lead", [["0", "there alone"], ["1", "there as well"]], adds, (value) => { adds = value; }));
    side.replaceChildren(drags,
      html("div", { class: "pu-live-bar" },
        select("state", states.map((name, s) => [s, name]), place, (s) => { place = Number(s); refresh(); }), called,
        tick("start", world.initial[place] > 0, (on) => attempt(() => {
          const starts = world.initial.map((chance, s) => (s === place ? on : chance > 0));
          const many = starts.filter(Boolean).length;
          if (many === 0) throw new Error("A state must be the start. Make another one the start first.");
          begin({ ...settings, world: { ...world, initial: starts.map((start_) => (start_ ? 1 / many : 0)) } });
        }, `${states[place]} is ${on ? "now a start" : "no start any more"}.`)),
        tick("end", terminal[place], (on) => edit({
          ...world, terminal: terminal.with(place, on), moves: moves.with(place, actions.map(() => (on ? [] : [[place, 1]]))), pays: world.pays.with(place, actions.map(() => 0)),
        }, `${states[place]} is ${on ? "now an end" : "no end any more"}.`))),
      terminal[place] ? "" : html("div", { class: "pu-live-scroll" }, html("table", {},
        html("thead", {}, html("tr", {}, ...["action", "leads to", "reward", "remove"].map((x) => html("th", { scope: "col" }, x)))), html("tbody", {}, ...rows))),
      terminal[place] ? "" : rewardSlider(place * width + action, `reward of ${actions[action]}`, `reward of ${actions[action]} (slider)`),
      html("div", { class: "pu-live-bar" }, button("Add a state", add, "pu-live-small"), dropped, button("Add an action", grow, "pu-live-small")),
      fraction01("discount", "discount", 0.99));
    return graphBoard(world, place, action, { select: choose, connect, add, remove });
  }

  // Controls

  const presetTexts = presets.map(([name, text]) => [name, writeWorld(readWorld(text))]);
  const preset = select("world", [...presets.map(([name]) => [name, name]), ["", "your own"]], "", (name) => {
    if (name !== "") attempt(() => begin({ ...readWorld(presets.find(([other]) => other === name)[1]), hide: settings.hide }), `The world is now ${name}.`);
  });
  const title = html("input", { type: "text", "aria-label": "name of the world", placeholder: "name", maxlength: "80" });
  title.addEventListener("change", () => attempt(() => { settings = { ...settings, world: { ...settings.world, name: title.value } }; }, `The world is now called ${title.value || "nothing"}.`));
  const undo = button("Undo", () => {
    const text = past.pop();
    if (text === undefined) return;
    const next = readWorld(text);
    begin(next);
    trouble.textContent = "";
    hear("Undone.");
    refresh(next.t);
  });
  // Another world: without the changes and the task of the old one.
  const anew = (world, said) => attempt(() => {
    begin({ ...settings, world, run: { ...settings.run, changes: [], from: null }, ask: noTask() });
    place = 0;
  }, said);
  const clear = button("Clear", () => anew(settings.world.kind === "grid"
    ? { ...settings.world, name: "", rows: settings.world.rows.map((row) => ".".repeat(row.length)), pays: settings.world.pays.map(() => 0) }
    : NEW_GRAPH, "Cleared."));
  const graph = button("New graph", () => anew(NEW_GRAPH, "A new graph with two states."));

  const names = shown(model);
  const boxes = names.map((name) => {
    const box = html("input", { type: "checkbox", value: name });
    box.addEventListener("change", () => {
      const chosen = boxes.filter(({ box: one }) => one.checked).map(({ name: one }) => one);
      if (chosen.length) rerun({ updates: chosen }, `${spoken(chosen.map((one) => labels[one]))} ${chosen.length === 1 ? "is" : "are"} shown.`);
      else refresh();
    });
    return { name, box, row: html("label", { class: "pu-live-choice" }, box, html("span", { class: "pu-live-swatch", style: `--tone:${colours[name]}` }), labels[name]) };
  });
  const offered = (list, value) => [...new Set([...list, value])].sort((a, b) => a - b).map((x) => [x, `${x}`]);
  const start = () => {
    const { from } = settings.run;
    const n = nActions(settings.world);
    const action = settings.world.kind === "grid" ? MOVES[0][0] : settings.world.actions[0];
    const one = slider(`first policy: ${action}`, 0.01, 0.99, 0.01, typeof from?.[0] === "number" ? from[0] : 1 / n, (x) => x.toFixed(2), () => {});
    const input = one.row.querySelector("input");
    input.setAttribute("data-key", "from");
    input.addEventListener("change", () => {
      const x = Number(input.value);
      const rest = (from ?? Array(n).fill(1 / n)).slice(1);
      rerun({ from: [x, ...rest.map((chance) => ((1 - x) * chance) / sum(rest))] }, `The first probability of ${action} is now ${x}.`);
    });
    const table = Array.isArray(from?.[0]);
    const kinds = [["uniform", "uniform"], ["slider", "by slider"], ...(table ? [["learnt", "what was learnt"]] : []),
      ...lanes.map(({ name }) => [name, `what ${labels[name]} learnt in ${plural(now, "update")}`])];
    const choice = select("start from", kinds, from === null ? "uniform" : table ? "learnt" : "slider", (kind) => {
      if (kind === "learnt") return;
      const learnt = lanes.find(({ name }) => name === kind);
      rerun({ from: learnt ? startFrom(learnt.path[now].policies) : kind === "slider" ? Array(n).fill(1 / n) : null },
        learnt ? `All updates start from what ${labels[kind]} learnt.` : `All updates start from ${kind === "slider" ? "the policy of the slider" : "the uniform policy"}.`);
    });
    choice.querySelector("select").setAttribute("data-key", "start from");
    return html("div", { class: "pu-live-bar" }, choice, from === null || table ? "" : one.row);
  };
  const setting = html("div", {});
  const runSettings = () => {
    const { eta, share, steps } = settings.run;
    const visits = slider("weights", 0, 1, 0.05, share, (x) => ({ 0: "uniform", 1: "visits" })[x] ?? `${Number((100 * x).toFixed())} % visits`, () => {});
    const input = visits.row.querySelector("input");
    input.setAttribute("data-key", "share");
    input.addEventListener("change", () => rerun({ share: Number(input.value) }, `The weights are now ${input.getAttribute("aria-valuetext")}.`));
    return [html("div", { class: "pu-live-bar" },
      select("step size", offered(SIZES, eta), eta, (x) => rerun({ eta: Number(x) }, `The step size is now ${x}.`)),
      select("updates", offered(LENGTHS, steps), steps, (x) => rerun({ steps: Number(x), changes: settings.run.changes.filter(([t]) => t < Number(x)) }, `There are now ${plural(Number(x), "update")}.`)),
      visits.row), start(),
    html("p", { class: "pu-live-key" }, `In each step the weight of a state is ${eta === 1 ? "" : `${eta} times `}${
      share === 0 ? "1" : share === 1 ? "its expected discounted visits" : `(${share} × its expected discounted visits + ${Number((1 - share).toFixed(3))})`}.`)];
  };

  // Time

  let perSecond = 25;
  const play = button("Play", () => (playing ? halt() : go()), "pu-live-main");
  const single = button("Step", () => { halt(); show(Math.min(now + 1, settings.run.steps)); });
  const again = button("Restart", () => { halt(); show(0); });
  const speed = select("speed", SPEEDS, perSecond, (x) => { perSecond = Number(x); });
  const time = slider("update t", 0, 1, 1, 0, (x) => `${x}`, (x) => { halt(); show(x); });

  function halt() {
    const played = playing;
    if (played) cancelAnimationFrame(played);
    playing = null;
    play.textContent = "Play";
    words.setAttribute("aria-live", "polite");
    if (played && !held) editorAnew(false);
    if (played) save();
  }

  function go() {
    const end = settings.run.steps;
    if (now >= end) now = 0;
    if (still()) {
      show(end);
      return;
    }
    play.textContent = "Pause";
    words.setAttribute("aria-live", "off");
    let last = null;
    const tick = (at) => {
      const many = last === null ? 0 : Math.floor(((at - last) / 1000) * perSecond);
      if (last === null || many > 0) last = at;
      playing = requestAnimationFrame(tick);
      if (many > 0) show(Math.min(now + Math.min(many, 20), end));
      if (now >= end) {
        halt();
        show(end);
      }
    };
    playing = requestAnimationFrame(tick);
  }

  // Pictures

  const number = (x, most = 4) => `${Number(x.toPrecision(most))}`;
  const lastChange = () => stages.findLast(({ from }) => from <= now);
  const reached = () => (lastChange().from > 0 ? "back" : "there");
  // A board for each update, made once: what watches its width stays for good.
  const boards = Object.fromEntries(names.map((name) => {
    const result = html("span", { class: "pu-live-told" });
    const picture = svg("svg", { "aria-hidden": "true" });
    const room = html("div", {}, picture);
    const box = html("div", { class: "pu-live-board", style: `--tone:${colours[name]}` },
      html("div", { class: "pu-live-bar" }, html("span", { class: "pu-live-swatch" }), labels[name], result), room);
    const current = () => lanes.find((one) => one.name === name);
    let [drawn, wide, draw] = [null, 0, null]; // the world of the picture, its width, and how it shows a step
    const redraw = fit(room, (width) => {
      if (!current()) return;
      const world = worldNow();
      if (world !== drawn || width !== wide) [drawn, wide, draw] = [world, width, worldPicture(picture, world, width)];
      draw(current().path[now]);
    }, SMALL);
    const update = () => {
      const { back, right, states } = recovery(current(), stages, now);
      const open = [...stages[0].mdp.terminal.keys()].filter((s) => !stages[0].mdp.terminal[s]);
      const there = open.filter((s) => states[s] !== null).length;
      result.textContent = `${number(current().path[now].performance)}${back === null ? "" : `, ${reached()} after ${back}`}; ${
        right === null ? `${there} of ${open.length} right` : `all right after ${right}`}`;
      redraw();
    };
    return [name, { box, update }];
  }));

  const drawCurves = fit(plot, (width) => {
    if (!lanes.length) return;
    const values = lanes.flatMap(({ path }) => path.map((entry) => entry.performance)).concat(stages.flatMap(({ best }) => [best.performance, best.uniform]));
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const steps = settings.run.steps;
    const room = high - low || 1;
    const { at, up, line } = axes(curves, width, 170, { from: 0, to: steps, ticks: [0, Math.round(steps / 2), steps], title: "updates" },
      { from: low - 0.05 * room, to: high + 0.05 * room, ticks: apart([low, high], (x, more) => Number(x.toPrecision(3 + more))), title: "performance" });
    stages.forEach(({ from, best }, i) => {
      const to = stages[i + 1]?.from ?? steps;
      line([[from, best.performance], [to, best.performance]], { class: "pu-live-bound" });
      if (from > 0) svg("line", { x1: at(from), x2: at(from), y1: up(low), y2: up(high), class: "pu-live-edge" }, curves);
    });
    lanes.forEach(({ name, path }) => {
      const tone = svg("g", { style: `--tone:${colours[name]}` }, curves);
      line(path.slice(0, now + 1).map((entry, t) => [t, entry.performance]), { class: "pu-live-curve" }, tone);
      svg("circle", { cx: at(now), cy: up(path[now].performance), r: 4, class: "pu-live-fill" }, tone);
    });
  });

  // The policies in the selected state, as text.
  function tell() {
    const world = worldNow();
    const grid = world.kind === "grid";
    const s = grid ? cellsOf(world).indexOf(place) : place;
    const { terminal } = stages[0].mdp;
    const right = lanes.map((one) => recovery(one, stages, now).states[s]);
    if (s < 0 || terminal[s]) {
      numbers.replaceChildren(html("p", { class: "pu-live-key" }, "Nothing is chosen in the selected state: it is a wall or an end."));
      return;
    }
    const actions = grid ? MOVES.map(([name]) => name) : world.actions;
    numbers.replaceChildren(html("table", {},
      html("caption", {}, `${grid ? cellName(place) : world.states[place]}: probabilities, with values`),
      html("thead", {}, html("tr", {}, html("th", { scope: "col" }, "update"), ...[...actions, "right after"].map((name) => html("th", { scope: "col" }, name)))),
      html("tbody", {}, ...lanes.map(({ name, path }, i) => html("tr", {}, html("th", { scope: "row" }, labels[name]),
        ...path[now].policies[s].map((chance, a) => html("td", {}, chance.toFixed(3), " ", html("span", { class: "pu-live-worth" }, `(${number(path[now].q[s][a], 3)})`))),
        html("td", {}, right[i] === null ? "not yet" : `${right[i]}`))))));
  }

  function say() {
    const { changes, steps } = settings.run;
    const recoveries = lanes.map((one) => ({ key: one.name, name: labels[one.name], ...recovery(one, stages, now) }));
    const last = lastChange();
    const there = recoveries.filter(({ back }) => back !== null).sort((a, b) => a.back - b.back);
    const missed = recoveries.filter(({ back }) => back === null).map(({ name }) => name);
    const since = last.from > 0 ? `${plural(now - last.from, "update")} after the reward changed` : `After ${plural(now, "update")}`;
    const counts = there.map(({ name, back }, i) => `${name}${i === 0 ? ` is ${reached()}` : ""} ${back === 0 ? "at once" : `after ${back}`}`);
    let text = `${since}: `;
    if (!there.length) text += `none of the updates is ${reached()} yet. `;
    else if (!missed.length) text += `${spoken(counts)}. `;
    else text += `${counts.join(", ")}; ${missed.length === 1 ? `${missed[0]} is` : "the others are"} not yet. `;
    if (now === 0 && !there.length) text = `An update is there when it has gone 95 % of the way from the uniform policy to the optimum, ${number(last.best.performance)}. `;
    if (question_ && now === steps) {
      const [names, backs] = ["key", "back"].map((key) => recoveries.map((one) => one[key]));
      text = `${question_.judge(answersOf(settings.ask, names, backs), settings.ask.why)}${text}`;
    } else if (question_ && now === 0 && !question_.guess()) text = `Make a guess, then press Play. ${text}`;
    if (now > 0 && changes.length === 0) text += "Select a state and change its reward: what was learnt is kept.";
    if (words.textContent !== text) words.textContent = text;
  }

  // Go to step t. A long way is computed in slices, between which the page reacts to the reader.
  function show(t) {
    stop();
    const begun = performance.now();
    let reached = Math.min(t, ...lanes.map(({ path }) => path.length - 1));
    while (reached < t && performance.now() - begun < SLICE) {
      reached += 1;
      lanes.forEach((one) => one.go(reached));
    }
    if (reached === t || playing) {
      now = Math.max(reached, Math.min(now, t));
      draw();
      if (!playing && !held) editorAnew(false);
      if (!playing) save();
      return;
    }
    time.set(t);
    el.setAttribute("aria-busy", "true");
    words.setAttribute("aria-live", "off");
    words.textContent = `Update ${digits(reached)} of ${digits(t)} is computed.`;
    coming = t;
    computing = setTimeout(() => show(t));
  }

  // Give up what is computed on the way to a later step.
  function stop() {
    clearTimeout(computing);
    coming = null;
    el.removeAttribute("aria-busy");
    if (!playing) words.setAttribute("aria-live", "polite");
  }

  function draw() {
    if (place >= settings.world.pays.length) place = 0; // the world before this one was larger
    time.set(now);
    lanes.forEach(({ name }) => boards[name].update());
    drawCurves();
    tell();
    say();
  }

  let question_ = null;
  let wasAsked = "";

  // Draw the controls anew; those of the world only if it is another one, or if they must be.
  function editorAnew(must = true) {
    const { world } = settings;
    focused(() => {
      if (must || edited !== worldNow()) editor.replaceChildren((world.kind === "grid" ? gridEditor : graphEditor)(world));
      edited = worldNow();
      setting.replaceChildren(...runSettings());
    });
  }

  function refresh(to = coming) {
    const { world, run, hide, ask } = settings;
    title.value = world.name;
    const text = writeWorld({ ...settings, hide: [] });
    preset.set(presetTexts.find(([, other]) => other === text)?.[0] ?? "");
    focused(() => { undo.disabled = past.length === 0; });
    boxes.forEach(({ name, box }) => { box.checked = run.updates.includes(name); });
    time.bounds(run.steps, now);
    if (wasAsked !== ask.text + run.updates) {
      wasAsked = ask.text + run.updates;
      question_ = ask.text ? question(ask.text, run.updates.map((name) => [name, labels[name], colours[name]]), () => say()) : null;
      asked.replaceChildren(question_ ? question_.box : "");
    }
    el.querySelectorAll("[data-part]").forEach((node) => { node.hidden = hide.includes(node.getAttribute("data-part")); });
    board.classList.toggle("pu-live-grids", world.kind === "grid");
    board.style.setProperty("--across", world.kind === "grid" ? world.rows[0].length : 1);
    const drawn = lanes.map(({ name }) => boards[name].box);
    // If the same boards were put in anew, the page would be shorter for a moment and scroll.
    if (board.children.length !== drawn.length || drawn.some((box, i) => board.children[i] !== box)) board.replaceChildren(...drawn);
    draw();
    if (!held) editorAnew();
    if (to) show(to);
    else save();
  }

  // What is kept

  function download(text, file) {
    const link = html("a", { href: URL.createObjectURL(new Blob([text])), download: file });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  const keep = html("div", { class: "pu-live-bar" },
    button("Copy link", () => copy(address.link(partOf(withStep())), "link"), "pu-live-small"),
    button("Copy as Python", () => copy(pythonOf(settings), "code"), "pu-live-small"),
    button("Download JSON", () => download(jsonOf(worldNow()), "world.json"), "pu-live-small"),
    button("Download curves", () => download(csvOf(lanes, now), "curves.csv"), "pu-live-small"));

  frame(el, "world", heard, part("presets", html("div", { class: "pu-live-bar" }, preset)),
    part("ask", asked),
    html("div", { class: "pu-live-bar" }, play, time.row), words, plot, board,
    html("p", { class: "pu-live-key" }, "Dashed: the optimum. There, or back after a change: 95 % of the way to it from the uniform policy. Right: a state prefers an optimal action."),
    part("settings", html("div", { class: "pu-live-bar" }, ...boxes.map(({ row }) => row))),
    html("details", { class: "pu-live-fold" }, html("summary", {}, "Single steps, speed, step size, weights and first policy"),
      html("div", { class: "pu-live-bar" }, single, again, speed), part("settings", setting)),
    part("presets", html("div", { class: "pu-live-bar pu-live-drawn" }, title, undo, clear, graph)), trouble,
    part("edit", html("div", { class: "pu-live-columns" }, editor, side)),
    numbers, part("keep", keep, copied));

  const focused = focusKeeper(el, () => editor.querySelector("[aria-pressed=true]") ?? preset.querySelector("select"));

  // Open a text, or say what is wrong with it.
  function open(text) {
    const before = settings && withStep();
    let to = null;
    trouble.textContent = "";
    try {
      const next = readWorld(text);
      begin(next);
      to = next.t;
      if (before) past.push(before);
    } catch (error) {
      trouble.textContent = error.message;
      if (settings === null) begin(readWorld(presets[0][1]));
    }
    opened = writeWorld({ ...settings, t: to ?? now });
    refresh(to);
    return to !== null;
  }

  open(worldIn(address.read()) ?? get("world"));
  window.addEventListener("hashchange", () => {
    const text = worldIn(address.read());
    if (text !== null && text !== withStep() && open(text)) address.write(address.read());
  });
  model.on("change:world", () => { if (get("world") !== writeWorld(settings)) open(get("world")); });
}

export default { render };
