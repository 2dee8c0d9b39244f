// The planes of a router in slow motion: frames through task units, queues that fill, units granted and revoked, drops.
//
// What moves is a simulation: each frame stands where the simulator says that it was. Only the way from one place to the
// next is drawn as a short move, which takes no time in the model.

const MOST_TASKS = 40, MOST_UNITS = 96, QUEUE_SLOTS = 8, WINDOW_FRAMES = 300, MOVE_S = 0.16, FLASH_S = 0.7;
const FLOW_COLOURS = ["#3f6fb5", "#d6812f", "#4aa36a", "#b0508f", "#2b95a6", "#b39a2f", "#7a7f87", "#9b4f8e"];

class Planes {
  constructor(holder, explorer) {
    this.holder = holder;
    this.explorer = explorer;
    this.clock = made("output", { className: "planes-clock" });
    this.said = made("span", { className: "planes-said" });
    this.pause = made("button", { type: "button", onclick: () => this.play(!this.isPlaying) }, "Play");
    this.again = made("button", { type: "button", title: "The same time once more", onclick: () => { this.t = this.from; this.play(true); } }, "Again");
    this.speed = made("input", { type: "range", min: 0, max: 100, value: 50, "aria-label": "speed", oninput: () => this.pace() });
    this.paceText = made("output");
    this.svg = drawn("svg", { role: "img", class: "planes" });
    this.note = made("p", { className: "live-note" });
    const bar = made("div", { className: "planes-bar" }, this.pause, this.again, made("label", {}, "speed ", this.speed), this.paceText, this.clock, this.said);
    holder.replaceChildren(bar, this.svg, this.note);
    this.isPlaying = false;
    new ResizeObserver(() => this.tree && this.lay()).observe(holder);
  }

  // Simulates what the explorer shows, for long enough that queues are as they will be, and records a short time of it.
  async load() {
    const { explorer } = this, { point } = explorer, positions = { ...explorer.positions };
    this.play(false);
    const tree = explorer.panel.tree(positions);
    if (tree.model.tasks.length > MOST_TASKS) {
      this.svg.replaceChildren();
      this.note.textContent = `${tree.model.tasks.length} task units are too many to be drawn: up to ${MOST_TASKS} are.`;
      this.tree = null;
      return;
    }
    const rate = explorer.panel.isTrace() ? offeredRatePps(tree) : explorer.ratePps;
    const queued = tree.model.tasks.reduce((sum, task) => sum + task.queue, 0);
    const excess = Math.max(rate - point.forwardedPps, 0) / rate;
    const warmS = (excess > 0.01 ? Math.min(2 * queued / excess, 200_000) : 3_000) / rate;
    const windowS = WINDOW_FRAMES / rate;
    // Frames that wait in the window start their service later: as far as that is recorded too.
    const longestS = Math.min(2 * (Number.isFinite(point.p99S) ? point.p99S : queued / point.forwardedPps), 20_000 / rate);
    const scenario = scenarioOf(tree, rate, warmS + windowS + longestS, { traced: 100_000 });
    scenario.run.record_from_ps = Math.round(warmS * 1e12);
    this.note.textContent = "Simulating…";
    const outcome = await explorer.simulator.run({ scenario });
    this.tree = tree;
    this.from = warmS * 1e12;
    this.until = (warmS + windowS) * 1e12;
    this.t = this.from;
    this.read(outcome);
    this.lay();
    this.pace();
    this.note.textContent = "Every frame stands where the simulator has it. Colours are flows; a red cross is a frame that was dropped.";
    this.play(!matchMedia("(prefers-reduced-motion: reduce)").matches);
  }

  read(outcome) {
    const frames = new Map();
    for (const { seq, node, flow, at_ps: at, start_ps: start } of outcome.hops) {
      if (!frames.has(seq)) frames.set(seq, { seq, flow, hops: [], end: Infinity, dropped: null, arrival: at });
      frames.get(seq).hops.push({ node, at, start });
    }
    for (const { seq, arrival_ps: arrival, end_ps: end, dropped_at: dropped } of outcome.fates) {
      if (!frames.has(seq)) frames.set(seq, { seq, flow: 0, hops: [] });
      Object.assign(frames.get(seq), { arrival, end, dropped });
    }
    this.frames = [...frames.values()].sort((a, b) => a.seq - b.seq);
    const portOf = new Map(this.tree.load.sources.flatMap(({ port, flows }) => flows.map(flow => [flow, port])));
    for (const frame of this.frames) {
      frame.hops.sort((a, b) => a.at - b.at || a.start - b.start);
      frame.port = portOf.get(frame.flow) ?? 0;
    }
    this.messages = outcome.messages.map(message => ({ ...message, at: message.at_s * 1e12 }));
    this.shown = new Map();
  }

  pace() {
    // From a hundredth of the window in a second to all of it.
    this.psPerS = (this.until - this.from) / 100 * 10 ** (this.speed.value / 50);
    this.paceText.value = `${timeText(this.psPerS * 1e-12)} in a second`;
  }

  play(is) {
    this.isPlaying = is;
    this.pause.textContent = is ? "Pause" : "Play";
    cancelAnimationFrame(this.next);
    if (!is || !this.tree) return;
    if (this.t >= this.until) this.t = this.from;
    let before = performance.now();
    const step = now => {
      const passedS = Math.min((now - before) / 1e3, 0.1);
      before = now;
      this.t += passedS * this.psPerS;
      if (this.t >= this.until) { this.t = this.from; this.shown.clear(); }
      this.draw(passedS);
      if (this.isPlaying) this.next = requestAnimationFrame(step);
    };
    this.next = requestAnimationFrame(step);
  }

  // ── the graph ──

  lay() {
    const { tree } = this, { model, names } = tree, width = Math.max(this.holder.clientWidth, 320);
    const depth = depths(model), columns = Math.max(...depth, 0) + 1;
    const layers = Array.from({ length: columns }, (_, at) => model.tasks.map((_, task) => task).filter(task => depth[task] === at));
    const rows = Math.max(...layers.map(layer => layer.length), model.ports.length), rowPx = rows > 16 ? 26 : rows > 8 ? 34 : 46;
    const graphPx = Math.max(rows * rowPx, 120) + 24;
    const pitch = width / (columns + 1.4), boxPx = Math.min(118, pitch * 0.66), isNarrow = boxPx < 80;
    const place = (column, row, of) => ({ x: pitch * (column + 0.75), y: 20 + (row + 0.5) * (graphPx - 24) / of });
    this.places = model.tasks.map((_, task) => place(depth[task] + 0.1, layers[depth[task]].indexOf(task), layers[depth[task]].length));
    const ins = names.ports.map((_, at) => ({ x: 16, y: place(0, at, names.ports.length).y }));
    const outs = names.ports.map((_, at) => ({ x: width - Math.min(boxPx, 70) / 2 - 4, y: place(0, at, names.ports.length).y }));
    this.nodes = [...this.places.map(({ x, y }) => ({ x, y, half: boxPx / 2 })), ...outs.map(({ x, y }) => ({ x, y, half: Math.min(boxPx, 70) / 2, isLink: true }))];
    this.ins = ins;
    const still = [], text = (x, y, what, more = {}) => drawn("text", { x, y, "text-anchor": "middle", ...more }, what);
    model.ports.forEach((port, at) => {
      if (port.entry !== null && tree.load.sources.some(source => source.port === at)) still.push(this.edge(ins[at], this.nodes[port.entry], 6));
    });
    model.tasks.forEach((task, at) => {
      const targets = task.route.to.map(to => to.task ?? model.tasks.length + to.port);
      for (const target of targets) still.push(this.edge(this.nodes[at], this.nodes[target], this.nodes[at].half));
    });
    ins.forEach(({ x, y }, at) => still.push(drawn("circle", { cx: x, cy: y, r: 6, class: "planes-port" }), text(x, y - 11, isNarrow ? "" : `${names.ports[at]} in`, { "text-anchor": "start", x: 6 })));
    this.gauges = [];
    this.nodes.forEach((node, at) => {
      const task = model.tasks[at], high = Math.min(rowPx - 16, 22);
      still.push(drawn("rect", { x: node.x - node.half, y: node.y - high / 2, width: 2 * node.half, height: high, rx: 5, class: node.isLink ? "planes-link" : "planes-task" }));
      const gauge = drawn("rect", { x: node.x - node.half, y: node.y + high / 2 - 3, width: 0, height: 3, class: "planes-fill" });
      const count = text(node.x - node.half - 3, node.y + 4, "", { "text-anchor": "end", "font-size": 10 });
      still.push(gauge, count, this.label(node, node.y - high / 2 - 4, node.isLink ? `${names.ports[at - model.tasks.length]} out` : names.tasks[at], pitch));
      this.gauges.push({ gauge, count, room: node.isLink ? model.ports[at - model.tasks.length].tx_ring : task.queue });
    });
    const units = this.layUnits(width, graphPx, text, still);
    this.moving = drawn("g");
    this.grants = drawn("g");
    this.svg.replaceChildren(...still.filter(part => part.getAttribute("class")?.startsWith("planes-way")), this.grants,
      ...still.filter(part => !part.getAttribute("class")?.startsWith("planes-way")), this.moving);
    const height = graphPx + units;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.setAttribute("width", width);
    this.svg.setAttribute("height", height);
    this.svg.setAttribute("aria-label", `${names.tasks.length} task units over ${names.pools.join(", ") || "no pool"}: frames move from the ports in on the left to those out on the right`);
    this.dots = [];
    this.draw(0);
  }

  // A name as far as there is room for it; the whole where one points.
  label({ x }, y, name, room) {
    const letters = Math.max(Math.floor(room / 6), 3), whole = drawn("title", {}, name);
    const part = drawn("text", { x, y, "text-anchor": "middle", "font-size": 11 }, name.length > letters ? `${name.slice(0, letters - 1)}…` : name);
    part.append(whole);
    return part;
  }

  // The resource plane below: a square for each unit.
  layUnits(width, top, text, still) {
    const { model, names } = this.tree;
    this.units = model.pools.map(() => []);
    const all = model.pools.reduce((sum, pool) => sum + pool.speed.length, 0);
    if (!all || all > MOST_UNITS) return 8;
    let free = 10, y = top + 22;
    model.pools.forEach((pool, at) => {
      const wide = Math.max(pool.speed.length * 18, 7 * names.pools[at].length) + 22;
      // Below the task units that use it, as far as there is room.
      const users = this.places.filter((_, task) => model.tasks[task].needs.some(need => need.pool === at));
      const middle = users.reduce((sum, place) => sum + place.x, 0) / (users.length || 1);
      let x = Math.max(Math.min(middle - wide / 2, width - wide), free);
      if (x + wide > width && free > 10) { x = 10; y += 50; }
      still.push(text(x, y - 5, names.pools[at], { "text-anchor": "start", "font-size": 11 }));
      pool.speed.forEach((_, unit) => {
        const square = drawn("rect", { x: x + 18 * unit, y, width: 14, height: 14, rx: 3, class: "planes-unit" });
        still.push(square);
        this.units[at].push({ square, x: x + 18 * unit + 7, y });
      });
      free = x + wide;
    });
    return y - top + 28;
  }

  edge(from, to, half) {
    const x = from.x + half, end = to.x - to.half, bend = Math.max(Math.abs(end - x) / 2, 14);
    return drawn("path", { d: `M${x} ${from.y}C${x + bend} ${from.y} ${end - bend} ${to.y} ${end} ${to.y}`, class: "planes-way" });
  }

  // ── a moment ──

  // Where a frame is at an instant: {node, waits}, or before its ports, or gone.
  stateOf(frame, t) {
    if (t < frame.arrival) return null;
    if (t >= frame.end) return { gone: t - frame.end };
    let hop = null;
    for (const each of frame.hops) { if (each.at > t) break; hop = each; }
    return hop ? { node: hop.node, waits: t < hop.start } : { node: -1, waits: false };
  }

  draw(passedS) {
    const { t } = this, waiting = this.nodes.map(() => 0), serving = this.nodes.map(() => 0), marks = [];
    const flashPs = FLASH_S * this.psPerS;
    for (const frame of this.frames) {
      const state = this.stateOf(frame, t);
      if (!state) continue;
      if (state.gone !== undefined) {
        if (state.gone > flashPs) { this.shown.delete(frame.seq); continue; }
        if (frame.dropped !== null) marks.push({ frame, isDrop: true, fade: 1 - state.gone / flashPs, x: this.nodes[frame.dropped].x - this.nodes[frame.dropped].half - 8, y: this.nodes[frame.dropped].y });
        else if (state.gone < 0.4 * flashPs) marks.push({ frame, fade: 1 - state.gone / (0.4 * flashPs), x: this.exitOf(frame).x + this.exitOf(frame).half + 8, y: this.exitOf(frame).y });
        continue;
      }
      const { node } = state;
      if (node < 0) { marks.push({ frame, fade: 1, ...this.ins[frame.port] }); continue; }
      if (state.waits) {
        const slot = waiting[node]++;
        if (slot < QUEUE_SLOTS) marks.push({ frame, fade: 1, ...this.queuePlace(node, slot) });
      } else {
        const place = serving[node]++;
        marks.push({ frame, fade: 1, isServed: true, x: this.nodes[node].x + this.nodes[node].half - 10 - 11 * (place % 3), y: this.nodes[node].y });
      }
    }
    this.paint(marks, passedS);
    this.gauges.forEach(({ gauge, count, room }, at) => {
      gauge.setAttribute("width", 2 * this.nodes[at].half * Math.min(waiting[at] / room, 1));
      gauge.setAttribute("class", waiting[at] >= room ? "planes-fill planes-full" : "planes-fill");
      count.textContent = waiting[at] > 1 ? waiting[at] : "";
    });
    this.drawGrants(t);
    this.clock.value = `${((t - this.from) * 1e-6).toFixed(2)} µs`;
  }

  queuePlace(node, slot) {
    const { x, y, half } = this.nodes[node];
    return { x: x + half - 24 - slot * Math.min(10, (2 * half - 30) / QUEUE_SLOTS), y };
  }

  exitOf(frame) { return this.nodes[frame.hops.at(-1)?.node ?? 0]; }

  // Dots follow their places with a short move; they are used again for other frames.
  paint(marks, passedS) {
    const follow = passedS ? 1 - Math.exp(-passedS / MOVE_S * 2.5) : 1;
    while (this.dots.length < marks.length) { const dot = drawn("path"); this.dots.push(dot); this.moving.append(dot); }
    this.dots.forEach((dot, at) => dot.setAttribute("visibility", at < marks.length ? "visible" : "hidden"));
    const alive = new Set();
    marks.forEach((mark, at) => {
      const { frame } = mark, before = this.shown.get(frame.seq) || { ...this.ins[frame.port] };
      const now = mark.isDrop ? mark : { x: before.x + follow * (mark.x - before.x), y: before.y + follow * (mark.y - before.y) };
      this.shown.set(frame.seq, now);
      alive.add(frame.seq);
      const dot = this.dots[at], [x, y] = [now.x.toFixed(1), now.y.toFixed(1)];
      dot.setAttribute("d", mark.isDrop ? `M${x} ${y}m-5 -5l10 10m0 -10l-10 10` : `M${x} ${y}m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0`);
      dot.setAttribute("class", mark.isDrop ? "planes-drop" : mark.isServed ? "planes-served" : "");
      dot.setAttribute("fill", mark.isDrop ? "none" : FLOW_COLOURS[frame.flow % FLOW_COLOURS.length]);
      dot.setAttribute("opacity", mark.fade.toFixed(2));
    });
    for (const seq of this.shown.keys()) if (!alive.has(seq)) this.shown.delete(seq);
  }

  // Who holds which unit now: from its grant (REP) to its release (REL) or revocation (REV).
  drawGrants(t) {
    const held = new Map();
    let last = null;
    for (const message of this.messages) {
      if (message.at > t) break;
      last = message;
      if (message.unit === null) continue;
      const key = `${message.pool} ${message.unit}`;
      if (message.kind === "REP") held.set(key, message);
      else if (message.kind === "REL") held.delete(key);
      else if (message.kind === "REV") held.set(key, message);
    }
    const lines = [];
    for (const units of this.units) for (const { square } of units) square.setAttribute("class", "planes-unit");
    for (const [key, message] of held) {
      const [pool, unit] = key.split(" ").map(Number), place = this.units[pool]?.[unit];
      if (!place) continue;
      const isRevoked = message.kind === "REV";
      if (isRevoked && t - message.at > FLASH_S * this.psPerS) continue;
      place.square.setAttribute("class", isRevoked ? "planes-unit planes-revoked" : "planes-unit planes-held");
      const { x, y } = this.nodes[message.task];
      lines.push(drawn("path", { d: `M${place.x} ${place.y}C${place.x} ${place.y - 30} ${x} ${y + 40} ${x} ${y + 9}`, class: isRevoked ? "planes-grant planes-revoked" : "planes-grant" }));
    }
    this.grants.replaceChildren(...lines);
    const words = { REQ: "asks for", REP: "is granted", REL: "gives back", REV: "loses" };
    this.said.textContent = last ? `${this.tree.names.tasks[last.task]} ${words[last.kind]} ${this.tree.names.pools[last.pool]}${last.unit === null ? "" : ` ${last.unit}`}` : "";
  }
}

// The longest way from an entry to each task unit, in steps; on a circle the steps end.
function depths(model) {
  const depth = model.tasks.map(() => -1), waiting = [];
  for (const { entry } of model.ports) if (entry !== null) waiting.push([entry, 0]);
  let steps = 0;
  while (waiting.length && steps++ < 10_000) {
    const [task, at] = waiting.shift();
    if (depth[task] >= at || at > model.tasks.length) continue;
    depth[task] = at;
    for (const to of model.tasks[task].route.to) if (to.task !== undefined) waiting.push([to.task, at + 1]);
  }
  return depth.map(each => Math.max(each, 0));
}
