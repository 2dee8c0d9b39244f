// The live panel in a page: controls, curves, what limits, busy bars, pinned variants, the state in the address, export.

const CURVE_POINTS = 20, QUICK_FRAMES = 4_000, CURVE_FRAMES = 20_000, FINE_FRAMES = 400_000;
const CURVE_BUDGET_MS = 60, SLOW_MS = 2_000, MESSAGE_MS = 0.4, MOST_BARS = 12, LONG_RUN_MS = 60, PINNED = ["#d6812f", "#b0508f"], OWN = "#3f6fb5", MEASURED = "#1c1f24";

const made = (tag, properties = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && name !== "list") element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
};

const PREFIXES = [[1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];
const digits = (value, count = 4) => Number(value.toPrecision(count)).toLocaleString("en", { maximumFractionDigits: 6 });
function rateText(pps) {
  if (!Number.isFinite(pps)) return "not known";
  const [factor, prefix] = PREFIXES.find(([least]) => pps >= least) || [1, ""];
  return `${digits(pps / factor)} ${prefix}pps`;
}
function timeText(seconds) {
  if (!Number.isFinite(seconds)) return "not known";
  const [factor, unit] = seconds >= 1 ? [1, "s"] : seconds >= 1e-3 ? [1e-3, "ms"] : seconds >= 1e-6 ? [1e-6, "µs"] : [1e-9, "ns"];
  return `${digits(seconds / factor, 3)} ${unit}`;
}
const shareText = ratio => ratio === 0 ? "0 %" : ratio < 1e-4 ? "< 0.01 %" : `${digits(100 * ratio, 3)} %`;

class Explorer {
  constructor(root, data, simulator) {
    this.root = root;
    this.data = data;
    this.simulator = simulator;
    this.panels = data.panels.map(({ panel }) => new Panel(panel));
    this.fact = 0;
    this.positions = { ...this.panel.start(), ...data.start };
    this.ratePps = data.ratePps;
    this.follows = data.follows;
    this.isFollowing = Boolean(data.isFollowing);
    this.axis = data.axis || "load";
    this.pins = [];
    this.generation = 0;
    this.microsPerFrame = 0.1;
    this.costs = [];
    this.readFragment();
    this.build();
    this.refresh();
    addEventListener("hashchange", () => { this.readFragment(); this.sync(); this.refresh(); });
  }

  get panel() { return this.panels[this.fact]; }

  // Throughputs alone say nothing of the latency: then no figure of it is shown, but why not.
  get hasLatency() { return !this.data.latencyReason; }

  get forecast() { return this.data.panels[this.fact].forecast; }

  // ── state ──

  // Of an address that somebody else wrote only what is a position of a control here is taken.
  readFragment() {
    const given = new URLSearchParams(location.hash.replace(/^#/, ""));
    const refused = [];
    for (const [key, text] of given) {
      const control = this.panel.byKey.get(key);
      if (control) {
        const at = control.values.findIndex(value => String(value) === text);
        if (at >= 0) this.positions[key] = at; else refused.push(key);
      } else if (key === "load") {
        const rate = Number(text);
        if (Number.isFinite(rate) && rate > 0 && rate < 1e12) this.ratePps = rate; else refused.push(key);
      } else if (key === "over") {
        if (this.axes().some(([axis]) => axis === text)) this.axis = text; else refused.push(key);
      } else if (key === "fact") {
        const at = this.data.panels.findIndex(({ assumes }) => assumes === text);
        if (at >= 0) this.fact = at; else refused.push(key);
      } else if (key === "follow") this.isFollowing = text === "yes" && Boolean(this.follows);
    }
    this.refused = refused;
    this.follow();
  }

  writeFragment() {
    const start = { ...this.panel.start(), ...this.data.start }, state = new URLSearchParams();
    for (const control of this.panel.controls) {
      if (this.positions[control.key] !== start[control.key]) state.set(control.key, control.values[this.positions[control.key]]);
    }
    if (this.ratePps !== this.data.ratePps) state.set("load", String(Number(this.ratePps.toPrecision(6))));
    if (this.axis !== (this.data.axis || "load")) state.set("over", this.axis);
    if (this.fact) state.set("fact", this.data.panels[this.fact].assumes);
    if (this.follows && this.isFollowing !== Boolean(this.data.isFollowing)) state.set("follow", this.isFollowing ? "yes" : "no");
    const text = state.toString();
    try { history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search); } catch { /* a page in a frame */ }
  }

  axes() {
    const over = key => this.panel.byKey.has(key);
    const axes = [["load", "load"]];
    if (this.data.coresKey && over(this.data.coresKey)) axes.push([this.data.coresKey, this.panel.byKey.get(this.data.coresKey).label]);
    if (over("frame")) axes.push(["frame", "frames"]);
    return axes;
  }

  with(key, at) {
    const positions = { ...this.positions, [key]: at };
    if (key === this.data.coresKey && this.isFollowing) positions.flows = this.follows[at];
    return positions;
  }

  // ── looks ──

  build() {
    this.answer = made("div", { className: "live-answer", role: "status" });
    this.status = made("p", { className: "live-status" });
    this.controls = made("form", { className: "live-controls", onsubmit: event => event.preventDefault() });
    this.controls.setAttribute("aria-label", "Controls");
    this.charts = made("div", { className: "live-charts" });
    this.busy = made("div", { className: "live-busy" });
    this.fields = new Map();
    this.buildLoad();
    for (const control of this.panel.controls) this.buildControl(control);
    this.buildFact();
    this.buildAxis();
    this.buildActions();
    this.plots = {
      rate: this.chart("rate", "Throughput", "Mpps"), loss: this.chart("loss", "Loss", "%"),
      ...this.hasLatency ? { delay: this.chart("delay", "Latency: p50 and p99", "µs", { scale: "log" }) } : {},
      chance: this.chart("chance", "Probability that the load is forwarded", "%", { low: 0, high: 100 }),
      watts: this.chart("watts", "Power", "W"),
    };
    const stage = made("div", {}), planes = made("details", { className: "live-planes", ontoggle: () => planes.open && this.showPlanes() },
      made("summary", {}, "Watch the frames move"), stage);
    this.planesPart = planes;
    this.planes = new Planes(stage, this);
    const side = made("div", { className: "live-side" }, this.controls, this.busy);
    this.root.replaceChildren(this.answer, made("div", { className: "live-body" }, side, this.charts), this.status, planes);
    if (this.refused.length) this.say(`The address names what is not here, and it was left out: ${this.refused.join(", ")}.`);
  }

  buildLoad() {
    if (this.panel.isTrace()) {
      this.controls.append(made("p", { className: "live-note" }, "The load is a recorded trace: it has a rate of its own."));
      this.ratePps = offeredRatePps(this.panel.base);
      return;
    }
    const input = made("input", { type: "range", id: "live-load", min: 0, max: 1000, step: 1,
      oninput: () => { this.ratePps = Math.max(input.value / 1000 * this.scalePps, 1); this.turned("load"); } });
    const shown = made("output", { htmlFor: "live-load" });
    this.controls.append(made("div", { className: "live-control" },
      made("label", { htmlFor: "live-load" }, "load"), input, shown));
    this.fields.set("load", { input, shown });
  }

  buildControl(control) {
    const id = `live-${control.key.replace(/\W+/g, "-")}`;
    const input = made("input", { type: "range", id, min: 0, max: control.values.length - 1, step: 1,
      oninput: () => this.turn(control.key, Number(input.value)) });
    const shown = made("output", { htmlFor: id });
    const row = made("div", { className: "live-control" }, made("label", { htmlFor: id }, control.label), input, shown);
    if (control.key === "flows" && this.follows) {
      const box = made("input", { type: "checkbox", id: "live-follow", checked: this.isFollowing,
        onchange: () => { this.isFollowing = box.checked; this.follow(); this.turned("flows"); } });
      row.append(made("span", { className: "live-follow" }, box, made("label", { htmlFor: "live-follow" }, "follow the cores")));
      this.followBox = box;
    }
    this.controls.append(row);
    this.fields.set(control.key, { input, shown, control });
  }

  // What no rate tells, and what knowing it would do: a switch.
  buildFact() {
    if (this.panels.length < 2) return;
    const choices = this.data.panels.map(({ assumes }, at) => made("label", {},
      made("input", { type: "radio", name: "live-fact", value: at, checked: at === this.fact,
        onchange: () => { this.fact = at; this.turned("fact"); } }), ` ${assumes || "not known"}`));
    this.factChoices = choices.map(label => label.firstChild);
    this.controls.append(made("fieldset", { className: "live-axis", title: "Do several cores use one queue under a lock?" },
      made("legend", {}, "shared queue"), ...choices));
  }

  buildAxis() {
    const choices = this.axes().map(([key, label]) => {
      const input = made("input", { type: "radio", name: "live-axis", value: key, checked: key === this.axis,
        onchange: () => { this.axis = key; this.turned("axis"); } });
      return made("label", {}, input, ` ${label}`);
    });
    this.axisChoices = choices.map(label => label.firstChild);
    this.controls.append(made("fieldset", { className: "live-axis" }, made("legend", {}, "curves over"), ...choices));
  }

  buildActions() {
    const button = (text, title, act) => made("button", { type: "button", title, onclick: act }, text);
    this.pinButton = button("Pin", "Keep these curves to compare with (two at most)", () => this.pin());
    this.controls.append(made("div", { className: "live-actions" },
      this.pinButton,
      button("Reset", "Everything as in the file", () => this.reset()),
      button("Router file", "Save the router with these settings", () => this.saveRouter()),
      button("CSV", "Save the values of the curves", () => this.saveCsv()),
      button("SVG", "Save the figures", () => this.saveSvg()),
      button("PNG", "Save the figures as a picture", () => this.savePng())));
    this.pinned = made("ul", { className: "live-pins" });
    this.controls.append(this.pinned);
  }

  chart(name, title, unit, y = { low: 0 }) {
    const figure = { name: `live-${name}`, title, height_px: matchMedia("(max-width: 40rem)").matches ? 170 : 240, x: { title: "" },
      y: { title: `${title.split(/:| that /)[0].toLowerCase()}, ${unit}`, ...y }, marks: [] };
    const holder = made("div", { className: "plot" });
    const box = made("figure", { className: "chart live-chart" }, made("figcaption", {}, made("strong", {}, title)), holder);
    this.charts.append(box);
    return { box, plot: new Plot(holder, figure) };
  }

  sync() {
    const tree = this.panel.tree(this.positions);
    for (const [key, { input, shown, control }] of this.fields) {
      if (control) {
        input.value = this.positions[key];
        shown.value = control.texts[this.positions[key]];
        input.setAttribute("aria-valuetext", shown.value);
        input.disabled = key === "flows" && this.isFollowing;
      } else {
        input.value = Math.round(this.ratePps / this.scalePps * 1000);
        const bits = 8 * (meanBytes(tree) + WIRE_OVERHEAD_BYTES) * this.ratePps;
        shown.value = `${rateText(this.ratePps)} · ${digits(bits / 1e9, 3)} Gbit/s`;
        input.setAttribute("aria-valuetext", shown.value);
      }
    }
    if (this.followBox) this.followBox.checked = this.isFollowing;
    for (const choice of this.factChoices || []) choice.checked = Number(choice.value) === this.fact;
    for (const choice of this.axisChoices) choice.checked = choice.value === this.axis;
  }

  follow() {
    if (this.isFollowing) this.positions.flows = this.follows[this.positions[this.data.coresKey]];
  }

  turn(key, at) {
    this.positions[key] = at;
    this.follow();
    this.turned(key);
  }

  turned() {
    this.sync();
    this.writeFragment();
    this.refresh();
  }

  reset() {
    this.positions = { ...this.panel.start(), ...this.data.start };
    this.ratePps = this.data.ratePps;
    this.isFollowing = Boolean(this.data.isFollowing);
    this.axis = this.data.axis || "load";
    this.fact = 0;
    this.turned();
  }

  // For whoever waits: "point" when the numbers are those of the settings, "curve" when the curves are.
  tell(what) { this.root.dispatchEvent(new CustomEvent(what)); }

  say(text) { this.status.textContent = text; }

  // ── runs ──

  async run(positions, ratePps, frames, { seed = 1, durationS = 0 } = {}) {
    const tree = this.panel.tree(positions);
    const rate = this.panel.isTrace() ? offeredRatePps(tree) : ratePps;
    const simulatedS = durationS || frames / rate;
    const began = this.began = performance.now();
    const outcome = await this.simulator.run({ scenario: scenarioOf(tree, rate, simulatedS, { seed }) });
    this.lastMs = performance.now() - began;
    if (outcome.offered_frames > 1_000) {
      this.costs = [...this.costs, 1e3 * Math.max(this.lastMs - MESSAGE_MS, 0.05) / outcome.offered_frames].slice(-8);
      this.microsPerFrame = Math.min(...this.costs);
    }
    return { positions, ...figuresOf(tree, outcome, rate) };
  }

  // A setting was turned: the point first, then the scale, then the curves from coarse to fine, then all again longer.
  async refresh() {
    const mine = ++this.generation;
    const isStale = () => mine !== this.generation;
    this.root.setAttribute("aria-busy", "true");
    const watchdog = setTimeout(() => this.say("This simulation is long; move a control to stop it."), SLOW_MS);
    try {
      // A short run ends by itself sooner than a worker starts anew.
      if (this.inFlight && performance.now() - this.began > LONG_RUN_MS) this.simulator.cancel();
      this.inFlight = true;
      const tree = this.panel.tree(this.positions);
      const line = this.panel.isTrace() ? Infinity : lineRatePps(tree);
      if (!this.scalePps) this.scalePps = Math.min(line, 2 * this.ratePps);
      const quick = await this.run(this.positions, this.ratePps, QUICK_FRAMES);
      if (isStale()) return;
      this.showPoint(quick);
      this.tell("point");
      const most = this.panel.isTrace() ? quick : await this.run(this.positions, line, QUICK_FRAMES);
      if (isStale()) return;
      this.mostPps = most.forwardedPps;
      const scalePps = await this.lossyPps(line, isStale);
      if (isStale()) return;
      this.scalePps = scalePps;
      this.sync();
      const frames = Math.max(1_000, Math.min(CURVE_FRAMES, CURVE_BUDGET_MS / CURVE_POINTS / this.microsPerFrame * 1e3));
      const curve = await this.curve(frames, isStale);
      if (!curve) return;
      this.tell("curve");
      this.inFlight = false;
      await new Promise(resolve => setTimeout(resolve, 350));
      if (isStale()) return;
      this.inFlight = true;
      const fine = Math.min(FINE_FRAMES, 6e5 / this.microsPerFrame);
      this.showPoint(await this.run(this.positions, this.ratePps, fine));
      if (isStale()) return;
      const finer = Math.min(10 * frames, fine / 4);
      if (await this.curve(finer, isStale)) this.say(this.words(finer));
      if (!isStale() && this.planesPart.open) await this.showPlanes();
    } catch (problem) {
      if (!isStale() && problem.kind !== "interrupted") this.say(`Not simulated: ${problem.message}`);
    } finally {
      clearTimeout(watchdog);
      if (!isStale()) { this.inFlight = false; this.root.removeAttribute("aria-busy"); }
    }
  }

  // The end of the load's scale: the curves bend on it. Some routers forward less in overload than they can, so that half
  // as much again as that is not yet a load at which they lose; the line rate ends every scale.
  async lossyPps(line, isStale) {
    let end = Math.min(line, Math.max(1.5 * this.mostPps, this.ratePps));
    while (end < line && !isStale()) {
      const { lossRatio } = await this.run(this.positions, end, QUICK_FRAMES);
      if (lossRatio > BUSY_MARGIN) break;
      end = Math.min(line, 2 * end);
    }
    return end;
  }

  words(frames) {
    const open = this.points.filter(point => !point.settled).length;
    const unsettled = open && this.hasLatency ? ` At ${open} of ${this.points.length} the queues were still filling: their latency is left out.` : "";
    return `Each point of the curves is a simulation of ${digits(frames, 2)} frames.${unsettled}`;
  }

  places() {
    if (this.axis === "load") {
      if (this.panel.isTrace()) return [];
      const end = this.scalePps;
      return Array.from({ length: CURVE_POINTS }, (_, at) => ({ x: (at + 1) / CURVE_POINTS * end / 1e6,
        positions: this.positions, ratePps: (at + 1) / CURVE_POINTS * end }));
    }
    const control = this.panel.byKey.get(this.axis);
    return control.values.map((value, at) => {
      const positions = this.with(this.axis, at);
      const x = this.axis === "frame" ? meanBytes(this.panel.tree(positions)) : Number(value);
      return { x, at, positions, ratePps: this.ratePps };
    }).sort((a, b) => a.x - b.x);
  }

  // All points of the curves, the outer and middle ones first; null when another setting came between.
  async curve(frames, isStale) {
    const places = this.places();
    const order = [...places.keys()].sort((a, b) => halvings(a) - halvings(b));
    const points = new Array(places.length);
    let drawn = performance.now();
    for (const at of order) {
      const { x, positions, ratePps } = places[at];
      const point = await this.run(positions, ratePps, frames);
      if (isStale()) return null;
      points[at] = { x, ...point };
      if (this.axis !== "load" && !this.panel.isTrace()) {
        const line = lineRatePps(this.panel.tree(positions));
        points[at].mostPps = (await this.run(positions, line, frames)).forwardedPps;
        if (isStale()) return null;
      }
      if (performance.now() - drawn > 30) { this.draw(points.filter(Boolean)); drawn = performance.now(); }
    }
    this.points = points;
    this.draw(points);
    return points;
  }

  async showPlanes() {
    const mine = this.generation;
    try { await this.planes.load(); } catch (problem) {
      if (mine === this.generation && problem.kind !== "interrupted") this.planes.note.textContent = `Not simulated: ${problem.message}`;
    }
  }

  // ── answers ──

  showPoint(point) {
    this.point = point;
    const value = (text, meaning) => made("div", { className: "live-value" },
      made("span", { className: "live-number" }, text), made("span", { className: "live-meaning" }, meaning));
    const watts = point.watts === null ? [] : [value(`${digits(point.watts, 3)} W`, "power")];
    const arrivals = this.arrivalsText();
    const times = this.hasLatency ? [value(timeText(point.p50S), point.settled ? `latency, median (${arrivals})` : "latency: queues still fill"),
      value(timeText(point.p99S), `latency, p99 (${arrivals})`)] : [];
    this.numbers = made("div", { className: "live-numbers" },
      value(rateText(point.forwardedPps), `forwarded of ${rateText(point.intendedPps)}`),
      value(shareText(point.lossRatio), "lost"), ...times, ...watts);
    this.answer.replaceChildren(this.numbers,
      made("p", { className: "live-limit" }, ...limitWords(point), ...this.sureWords(point), ...this.latencyWords(point)));
    // On a phone the numbers and the curves stay at the top while the controls move below them.
    this.root.style.setProperty("--numbers-px", `${this.numbers.offsetHeight}px`);
    this.showBusy(point);
  }

  arrivalsText() {
    const control = this.panel.byKey.get("arrivals");
    const text = control && control.texts[this.positions.arrivals];
    return text && text !== "as in the file" ? text : this.data.arrivals;
  }

  latencyWords({ positions }) {
    if (this.hasLatency) return [];
    const tree = this.panel.tree(positions), busy = tree.model.pools[0].speed.length;
    return [made("br"), made("span", { className: "live-latency" }, `Latency: ${this.data.latencyReason}. Service time of a frame: ${timeText(serviceS(tree))} with ${busy} busy ${busy > 1 ? "cores" : "core"}, not the latency.`)];
  }

  sureWords({ positions, intendedPps }) {
    if (!this.forecast) return [];
    const chance = this.chance(positions, intendedPps);
    if (Number.isNaN(chance)) return [made("br"), made("span", { className: "live-outside" }, `Whether this load is forwarded is not known: ${this.forecast.unknown.join("; ")}.`)];
    const ends = this.ends(positions).map(rateText);
    const greatest = ends.includes("not known") ? "" : `The greatest rate is ${ends[0]} to ${ends[1]} with 95 %; `;
    const sure = chance >= 0.99 ? "more than 99 %" : chance === 0 ? "0 %, beyond the links" : chance <= 0.01 ? "less than 1 %" : `${Math.round(100 * chance)} %`;
    return [made("br"), `${greatest}${greatest ? "t" : "T"}he probability that this load is forwarded: `, made("strong", {}, sure), ". ",
      made("span", { className: "live-outside" }, this.outside())];
  }

  // A bar for each unit; of many alike a strip of small ones.
  showBusy(point) {
    const groups = Map.groupBy(point.busy, ({ name }) => name.replace(/ \d+(?=$| )/, ""));
    this.busy.replaceChildren(made("h3", {}, "Busy"), ...[...groups].flatMap(([stem, units]) =>
      units.length > MOST_BARS ? [busyStrip(stem, units)] : units.map(busyBar)));
  }

  draw(points) {
    const x = this.axisTitle();
    const band = this.band(points);
    const line = (name, y, colour, more = {}) => ({ kind: "line", name, x: points.map(p => p.x), y: points.map(y), low: [], high: [], colour, dashed: false, legend: true, ...more });
    const pinned = (pick, what) => this.pins.filter(pin => pin.axis === this.axis).map((pin, at) => ({ kind: "line",
      name: `${what}${pin.name}`, x: pin.points.map(p => p.x), y: pin.points.map(pick), low: [], high: [],
      colour: PINNED[at], dashed: true, legend: true }));
    const mega = pps => pps / 1e6;
    const rate = [];
    if (this.axis === "load") {
      rate.push(line("all forwarded", p => p.x, "#7a7f87", { dashed: true }));
      rate.push(line("forwarded", p => mega(p.forwardedPps), OWN, band));
    } else {
      rate.push(line("greatest", p => mega(p.mostPps), OWN, band), line("at this load", p => mega(p.forwardedPps), "#4aa36a"));
    }
    rate.push(...pinned(p => mega(this.axis === "load" ? p.forwardedPps : p.mostPps), ""), ...this.measured(points));
    const has = points.some(p => p.watts !== null), hasChance = Boolean(this.forecast);
    this.plots.watts.box.hidden = !has;
    this.plots.chance.box.hidden = !hasChance;
    const ends = this.axis === "load" ? [0, points.at(-1).x] : [points[0].x, points.at(-1).x];
    const xAxis = { title: x, scale: this.axis === "frame" ? "log" : "linear", low: ends[0], high: ends[1] };
    this.plots.rate.plot.update(rate, { x: xAxis });
    this.plots.loss.plot.update([line("loss", p => 100 * p.lossRatio, "#c8524a"), ...pinned(p => 100 * p.lossRatio, "")], { x: xAxis });
    if (this.plots.delay) this.plots.delay.plot.update([line("p50", p => 1e6 * p.p50S, "#2b95a6"), line("p99", p => 1e6 * p.p99S, "#9b4f8e"),
      ...pinned(p => 1e6 * p.p99S, "p99, ")], { x: xAxis });
    if (hasChance) this.plots.chance.plot.update([line("probability", p => 100 * this.chance(p.positions, p.intendedPps), "#4aa36a")], { x: xAxis });
    if (has) this.plots.watts.plot.update([line("power", p => p.watts, "#b39a2f"), ...pinned(p => p.watts, "")], { x: xAxis });
  }

  axisTitle() {
    if (this.axis === "load") return "offered load, Mpps";
    return this.axis === "frame" ? "frames, mean bytes" : this.panel.byKey.get(this.axis).label;
  }

  // ── what measurements say ──

  // Quantiles of the greatest rate for positions of cores and frames, as far as the links carry it; null without a forecast.
  // Not numbers where measured rows contradict the calibration.
  quantiles(positions) {
    return this.forecast && this.forecastOf(this.forecast.quantiles_pps, positions);
  }

  // The ends of the interval that holds a measurement with 95 %, likewise.
  ends(positions) {
    return this.forecastOf(this.forecast.ends_pps, positions);
  }

  forecastOf(table, positions) {
    const { values: cores } = this.panel.byKey.get("cores"), { values: frames } = this.panel.byKey.get("frame");
    const row = table[this.forecast.cores.indexOf(cores[positions.cores])];
    const line = lineRatePps(this.panel.tree(positions));
    return row[this.forecast.frames.indexOf(frames[positions.frame])].map(rate => rate === null ? NaN : Math.min(rate, line));
  }

  // The probability that a measurement shows at least a rate; the last half percent at each end is not told apart.
  chance(positions, loadPps) {
    const ratePps = loadPps * (1 - this.forecast.tolerance_ratio);
    const rates = this.quantiles(positions);
    if (ratePps > lineRatePps(this.panel.tree(positions))) return 0;
    const { probabilities } = this.forecast, above = rates.findIndex(rate => rate >= ratePps);
    if (above < 0) return Number.isNaN(rates.at(-1)) ? NaN : 1 - probabilities.at(-1);
    if (above === 0) return 1 - probabilities[0];
    const share = (ratePps - rates[above - 1]) / (rates[above] - rates[above - 1] || 1);
    return 1 - probabilities[above - 1] - share * (probabilities[above] - probabilities[above - 1]);
  }

  band(points) {
    if (!this.forecast) return {};
    const ends = points.map(point => {
      const most = this.axis === "load" ? point.intendedPps : Infinity;
      return this.ends(point.positions).map(rate => Math.min(rate, most) / 1e6);
    });
    return { low: ends.map(([low]) => low), high: ends.map(([, high]) => high) };
  }

  measured(points) {
    if (!this.data.measured.length) return [];
    const cores = this.panel.byKey.get("cores"), bytes = meanBytes(this.panel.tree(this.positions));
    const isSize = row => Math.abs(row.bytes - bytes) < 0.5, isCount = row => row.cores === cores.values[this.positions.cores];
    const place = { load: row => isSize(row) && isCount(row) && [row.pps / 1e6, row.pps / 1e6],
      cores: row => isSize(row) && [row.cores, row.pps / 1e6], frame: row => isCount(row) && [row.bytes, row.pps / 1e6] }[this.axis];
    return [true, false].flatMap(calibrates => {
      const there = this.data.measured.filter(row => row.calibrates === calibrates).map(place).filter(Boolean);
      const most = this.axis === "load" ? Math.max(...points.map(point => point.x)) : Infinity;
      const kept = there.filter(([x]) => x <= most);
      return kept.length ? [{ kind: "points", name: calibrates ? "measured, calibrates" : "measured, held out", x: kept.map(([x]) => x),
        y: kept.map(([, y]) => y), colour: "#c8524a", filled: calibrates }] : [];
    });
  }

  // What lies outside the measurements, in words.
  outside() {
    if (!this.data.measured.length) return "";
    const cores = this.panel.byKey.get("cores").values[this.positions.cores], marks = [];
    if (cores > 2 * Math.max(...this.data.measured.map(row => row.cores))) marks.push("more than twice the cores that were measured");
    const bytes = meanBytes(this.panel.tree(this.positions));
    if (!this.data.measured.some(row => Math.abs(row.bytes - bytes) < 0.5)) marks.push("frames that were never measured");
    if (!this.data.isLinkKnown) marks.push("a link that no row states");
    return marks.length ? `Outside the measurements: ${marks.join(", ")}. ` : "";
  }

  pin() {
    if (!this.points) return;
    const changed = this.panel.controls.filter(({ key, at }) => this.positions[key] !== at && key !== this.axis)
      .map(({ key, label, texts }) => `${label} ${texts[this.positions[key]]}`);
    this.pins = [...this.pins, { name: changed.join(", ") || "as in the file", axis: this.axis, points: this.points, point: this.point }].slice(-2);
    this.showPins();
    this.draw(this.points);
  }

  showPins() {
    this.pinned.replaceChildren(...this.pins.map((pin, at) => {
      const own = made("span", { className: "live-swatch" });
      own.style.background = PINNED[at];
      return made("li", {}, own, ` ${pin.name}: ${rateText(pin.point.forwardedPps)}${this.hasLatency ? `, p99 ${timeText(pin.point.p99S)}` : ""} `,
        made("button", { type: "button", title: "Take this away", onclick: () => { this.pins.splice(at, 1); this.showPins(); this.draw(this.points); } }, "×"));
    }));
  }

  // ── export ──

  saveCsv() {
    const times = this.hasLatency ? ["latency_p50_s", "latency_p99_s"] : [];
    const rows = [["over", "x", "intended_pps", "forwarded_pps", "loss_ratio", ...times, "power_w", "greatest_pps", "limits"]];
    for (const p of this.points || []) {
      rows.push([this.axis, p.x, p.intendedPps, p.forwardedPps, p.lossRatio, ...this.hasLatency ? [p.p50S, p.p99S] : [], p.watts ?? "", p.mostPps ?? "", p.limit.name]);
    }
    const cell = value => /[",\n]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value);
    save("routecast.csv", "text/csv", rows.map(row => row.map(cell).join(",")).join("\n") + "\n");
  }

  saveRouter() {
    const comment = this.hasLatency ? "" : `# Calibrated from throughputs. Latency: ${this.data.latencyReason}; what a model of this file says of it is assumed.\n`;
    save("explored.router.toml", "application/toml", comment + routerFile(this.data.document || documentOf(this.panel.tree(this.positions)), this.panel, this.positions, this.ratePps));
  }

  svgText() {
    const shown = Object.values(this.plots).filter(({ box }) => !box.hidden);
    const parts = shown.map(({ plot }) => standalone(plot.svg));
    const width = Math.max(...parts.map(part => part.width)), height = Math.max(...parts.map(part => part.height));
    const placed = parts.map(({ text }, at) => `<g transform="translate(${at % 2 * width} ${Math.floor(at / 2) * height})">${text}</g>`);
    const rows = Math.ceil(parts.length / 2);
    return { width: 2 * width, height: rows * height,
      text: `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${2 * width} ${rows * height}" width="${2 * width}" height="${rows * height}" font-family="system-ui, sans-serif" font-size="12"><rect width="100%" height="100%" fill="#fff"/>${placed.join("")}</svg>` };
  }

  saveSvg() { save("routecast.svg", "image/svg+xml", this.svgText().text); }

  savePng() {
    const { width, height, text } = this.svgText(), picture = new Image();
    picture.onload = () => {
      const canvas = made("canvas", { width: 2 * width, height: 2 * height }), pen = canvas.getContext("2d");
      pen.scale(2, 2);
      pen.drawImage(picture, 0, 0);
      canvas.toBlob(blob => saveBlob("routecast.png", blob));
    };
    picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  }
}

function busyBar({ name, share }) {
  const fill = made("span", { className: share >= 1 - BUSY_MARGIN ? "live-full" : "" });
  fill.style.width = `${100 * share}%`;
  return made("div", { className: "live-bar" }, made("span", {}, name),
    made("span", { className: "live-gauge", role: "img", "aria-label": `${name} is busy ${shareText(share)}` }, fill),
    made("span", { className: "live-share" }, shareText(share)));
}

function busyStrip(stem, units) {
  const shares = units.map(({ share }) => share), least = Math.min(...shares), most = Math.max(...shares);
  const text = shareText(least) === shareText(most) ? shareText(most) : `${shareText(least)} to ${shareText(most)}`;
  const cells = units.map(({ name, share }) => {
    const fill = made("span", { className: share >= 1 - BUSY_MARGIN ? "live-full" : "" });
    fill.style.height = `${100 * share}%`;
    return made("span", { className: "live-cell", title: `${name}: ${shareText(share)}` }, fill);
  });
  return made("div", { className: "live-group" }, made("span", {}, `${stem} × ${units.length}: ${text}`),
    made("span", { className: "live-strip", role: "img", "aria-label": `${units.length} of ${stem} are busy ${text}` }, ...cells));
}

// How often a number is halved before it is odd, from the other side: the order from coarse to fine.
function halvings(at) {
  if (at === 0) return 0;
  let depth = 6;
  while (at % 2 === 0 && depth > 0) { at /= 2; depth -= 1; }
  return depth;
}

function limitWords({ limit, lossRatio }) {
  const name = made("strong", {}, limit.unit === null || limit.unit === undefined ? limit.name : `${limit.name} ${limit.unit}`);
  if (limit.kind === "load" && limit.name === "load") return ["Nothing is busy."];
  if (limit.isShort) return [name, ` limits: too few frames may wait there; ${limit.fullest}, the fullest, is busy ${shareText(limit.share)}.`];
  if (limit.does) return [name, ` limits: it is busy ${shareText(limit.share)}${limit.drops && lossRatio > 0 ? `; frames are lost at ${limit.drops}` : ""}.`];
  return [name, ` would limit first: it is busy ${shareText(limit.share)}, and nothing is lost.`];
}

function saveBlob(name, blob) {
  const link = made("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1_000);
}
const save = (name, type, text) => saveBlob(name, new Blob([text], { type }));

function standalone(svg) {
  const copy = svg.cloneNode(true), box = svg.viewBox.baseVal;
  const styled = [...svg.querySelectorAll("*")], copies = [...copy.querySelectorAll("*")];
  styled.forEach((element, at) => {
    const style = getComputedStyle(element);
    for (const name of ["fill", "stroke", "stroke-width", "stroke-dasharray", "fill-opacity", "font-size", "text-anchor", "opacity"]) {
      copies[at].setAttribute(name, style.getPropertyValue(name));
    }
  });
  const [width, height] = [box.width || svg.clientWidth, box.height || svg.clientHeight];
  return { width, height, text: copy.innerHTML };
}

// ── router files ──

// The document with the settings in it, as TOML that `routecast` reads.
function routerFile(document, panel, positions, ratePps) {
  const whole = structuredClone(document);
  for (const control of panel.controls) {
    const at = positions[control.key];
    if (at === control.at && control.key !== "flows") continue;
    for (const { path, values } of control.sets) setAt(whole, path, values[at]);
  }
  if (!panel.isTrace()) setAt(whole, ["load", "rate"], `${ratePps} pps`);
  return toml(whole);
}

// The file of a calibrated router, which has none of its own: a multicore router, its costs from the scenario.
function documentOf(tree) {
  const worker = tree.model.tasks.find(task => task.needs.length);
  return { builder: "multicore", name: "calibrated router", cores: tree.model.pools[0].speed.length, ports: tree.model.ports.length,
    link: `${tree.model.ports[0].link_bps} bit/s`, queue: `${worker.queue} frames`,
    service: { per_packet: `${worker.per_frame_ps} ps`, per_byte: `${worker.per_byte_ps} ps/B` },
    ...tree.model.pools[0].contention.length ? { contention: { table: tree.model.pools[0].contention } } : {} };
}

function setAt(table, path, value) {
  if (value === null) return;
  path.slice(0, -1).forEach(step => {
    if (step === "*") return;
    if (typeof table[step] !== "object") table[step] = {};
    table = table[step];
  });
  const last = path.at(-1);
  if (Array.isArray(table) && last === "*") table.forEach((_, at) => { table[at] = value; });
  else table[last] = value;
}

const isTable = value => typeof value === "object" && value !== null && !Array.isArray(value);
const isTables = value => Array.isArray(value) && value.length > 0 && value.every(isTable);
const tomlKey = key => /^[A-Za-z0-9_-]+$/.test(key) ? key : JSON.stringify(key);

function tomlValue(value) {
  if (typeof value === "string") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(tomlValue).join(", ")}]`;
  if (isTable(value)) return `{ ${Object.entries(value).map(([key, each]) => `${tomlKey(key)} = ${tomlValue(each)}`).join(", ")} }`;
  return String(value);
}

function toml(document) {
  const plain = Object.entries(document).filter(([, value]) => !isTable(value) && !isTables(value));
  const tables = Object.entries(document).filter(([, value]) => isTable(value));
  const lists = Object.entries(document).filter(([, value]) => isTables(value));
  const rows = table => Object.entries(table).map(([key, value]) => `${tomlKey(key)} = ${tomlValue(value)}`);
  return [
    ...rows(Object.fromEntries(plain)),
    ...lists.flatMap(([key, entries]) => entries.flatMap(entry => ["", `[[${tomlKey(key)}]]`, ...rows(entry)])),
    ...tables.flatMap(([key, table]) => ["", `[${tomlKey(key)}]`, ...rows(table)]),
    "",
  ].join("\n");
}

// ── start ──

async function unpacked(gzippedBase64) {
  const bytes = Uint8Array.from(atob(gzippedBase64), character => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

const live = document.getElementById("live");
const cannot = why => live.prepend(made("p", { className: "live-note", role: "status" },
  `This browser cannot simulate, so the figure below stands still: ${why}.`));

async function explore() {
  const missing = Simulator.missing();
  if (missing.length) { cannot(`it has no ${missing.join(", no ")}`); return; }
  const simulator = new Simulator(simulatorModule);
  try {
    const [data] = await Promise.all([unpacked(liveData), simulator.ready]);
    globalThis.explorer = new Explorer(live, data, simulator);
  } catch (problem) { cannot(problem.message); }
}

if (live) explore();
