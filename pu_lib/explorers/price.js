// The price: three actions, one step of each update, and what becomes of the value.

const ROW = 34;
const SHADES = ["pu-live-likely", "pu-live-best", "pu-live-bad"];

function render({ model, el }) {
  const { get, put, range } = attributes(model);
  const names = shown(model);
  const labels = get("labels");
  const colours = get("colours");
  const weight = get("weight");
  const words = html("p", { class: "pu-live-words", "aria-live": "polite" });
  let setting = ""; // the setting at which the reader made the guess
  const asked = question("a₁, the likeliest action, is nearly as good as a₂, the best one. Which update lowers the value of the policy in its next step?",
    [...names.map((name) => [name, labels[name], colours[name]]), ["none", "none of them"]], (guess) => {
      if (guess) setting = here();
      draw();
    });
  const change = (preset) => {
    asked.reveal();
    put(preset);
  };
  const control = slider("value of a₁", ...range("value"), 0.01, get("value"), (x) => x.toFixed(2), (x) => change({ value: x }));
  const presets = get("presets").map(([text, preset]) => button(text, () => change(preset), "pu-live-small"));
  const picture = svg("svg", { height: ROW * (names.length + 1) + 26, "aria-hidden": "true" });
  const room = html("div", {}, picture);
  const key = html("p", { class: "pu-live-key" });
  frame(el, "price", asked.box, html("div", { class: "pu-live-bar" }, ...presets),
    html("div", { class: "pu-live-bar" }, control.row), key, room, words);

  const here = () => JSON.stringify([get("value"), get("policy")]);
  const q = () => [Math.round(100 * get("value")) / 100, 1, 0];
  const stepOf = (name) => oneStep(name, get("policy"), q(), weight);
  // three decimals, or one digit and its power of ten where these would be zeros
  const short = (x) => (x >= 0.0005 || x === 0 ? x.toFixed(3) : brief(x));
  const signed = (x) => `${x < 0 ? "−" : "+"}${short(Math.abs(x))}`;
  const worth = (pi, more = 0) => sum(pi.map((x, a) => x * q()[a])).toFixed((Math.min(...get("policy")) < 0.001 ? 5 : 3) + more);

  const redraw = fit(room, (width) => {
    picture.replaceChildren();
    const [left, right] = [62, width - 88];
    const pi = get("policy");
    const bar = (chances, y) => {
      let x = left;
      chances.forEach((chance, a) => {
        const wide = chance * (right - left);
        svg("rect", { x, y, width: wide, height: 16, class: SHADES[a] }, picture);
        x += wide;
      });
    };
    [pi[0], pi[0] + pi[1]].map((edge) => left + edge * (right - left)).forEach((x) => svg("line", {
      x1: x, x2: x, y1: 18, y2: ROW * (names.length + 1) + 14, class: "pu-live-edge",
    }, picture));
    const row = (text, chances, after, i, tone, bold = false) => {
      const y = ROW * i + 22;
      const group = svg("g", { style: `--tone:${tone}` }, picture);
      svg("text", { x: 0, y: y + 13, "font-weight": i ? 600 : 400 }, group, text);
      bar(chances, y);
      svg("text", { x: width, y: y + 13, "text-anchor": "end", "font-weight": bold ? 700 : 400 }, group, after);
      if (i) svg("rect", { x: left, y: y + 18, width: right - left, height: 3, class: "pu-live-fill" }, group);
    };
    const crowded = pi[1] + pi[2] < 0.1;
    [["a₁", pi[0] / 2], ...(crowded ? [["a₂, a₃", 1]] : [["a₂", pi[0] + pi[1] / 2], ["a₃", 1 - pi[2] / 2]])].forEach(([text, at]) =>
      svg("text", { x: left + at * (right - left), y: 13, "text-anchor": at === 1 ? "end" : "middle", class: "pu-live-faint" }, picture, text));
    svg("text", { x: width, y: 13, "text-anchor": "end", class: "pu-live-faint" }, picture, "value");
    row("before", pi, worth(pi), 0, "transparent");
    names.filter(asked.open).forEach((name, i) => {
      const { after, change: gain } = stepOf(name);
      row(labels[name], after, signed(gain), i + 1, colours[name], gain < 0);
    });
  });

  function draw() {
    control.set(get("value"));
    key.textContent = `Each bar is a policy over three actions; a₂ is worth 1, a₃ nothing. Start: ${triple(get("policy"))}, for PG-ES with parameters of norm √3. One step of weight ${weight}.`;
    redraw();
    if (!asked.open()) {
      words.textContent = "Make a guess, and the policies after one step appear.";
      return;
    }
    const lower = names.filter((name) => stepOf(name).change < -1e-12);
    const say = (name) => `${labels[name]} lowers the value from ${apart([get("policy"), stepOf(name).after], worth).join(" to ")}: it lifts a₂ at the cost of a₁, and the share of the worthless a₃ goes from ${short(get("policy")[2])} to ${short(stepOf(name).after[2])}`;
    const verdict = setting !== here() ? ""
      : asked.judge(lower.length ? lower : ["none"], lower.length ? `${spoken(lower.map((name) => labels[name]))} takes most from the likeliest action, however good it is.` : "");
    words.textContent = lower.length
      ? `${verdict}One step. ${spoken(lower.map(say))}. ${spoken(names.filter((name) => !lower.includes(name)).map((name) => labels[name]))} raise the value.`
      : `${verdict}One step. All of them raise the value. Make a₁ better, and look at CE.`;
  }
  ["value", "policy"].forEach((name) => model.on(`change:${name}`, later(draw)));
  draw();
}

export default kept(render);
