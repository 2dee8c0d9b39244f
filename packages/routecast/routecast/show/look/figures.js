// Figures in a page: the marks of report/figures.py as SVG that can be pointed at, zoomed and thinned out.
//
//   const plot = new Plot(holder, figure);     holder: an element; figure: {name, title, x, y, marks, height_px}
//   plot.update(marks, {x: {title: "cores"}}); other marks, other axes: drawn at once
//
// What stands in the holder before (the SVG that report/drawing.py drew) is for print and for readers without scripts.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const ROOM = { left: 62, right: 16, top: 12, bottom: 46 };
const NEAR_PX = 40, DRAG_PX = 8, ZOOM_STEPS = 1.0001;

function drawn(name, attributes = {}, text = "") {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== "") element.textContent = text;
  return element;
}

// Ticks as report/ticks.py has them.
function niceStep(span) {
  const power = 10 ** Math.floor(Math.log10(span / 5));
  return Math.max(...[1, 2, 5].map(factor => factor * power).filter(step => step <= span / 5 * 1.0001));
}

function logTicks(least, greatest) {
  const first = Math.floor(Math.log10(least)), last = Math.ceil(Math.log10(greatest));
  const decades = Array.from({ length: last - first + 1 }, (_, at) => first + at);
  if (last - first > 4) return decades.map(n => 10 ** n);
  const ticks = decades.flatMap(n => [1, 2, 5].map(factor => Number((factor * 10 ** n).toPrecision(12))));
  const low = Math.max(...ticks.filter(tick => tick <= least * 1.0001));
  const above = ticks.filter(tick => tick >= greatest * 0.9999);
  const high = above[0] > low ? above[0] : ticks.find(tick => tick > low);
  return ticks.filter(tick => low <= tick && tick <= high);
}

const short = value => value === 0 ? "0" : Math.abs(value) >= 1e6 || Math.abs(value) < 1e-4
  ? Number(value.toPrecision(6)).toExponential().replace("e+", "e") : String(Number(value.toPrecision(6)));
const long = value => Number.isFinite(value) ? Number(value.toPrecision(4)).toLocaleString("en", { maximumFractionDigits: 8 }) : "not known";

// Value to pixel and back, and the ticks; `window` is what a zoom shows.
function scaleOf(axis, values, start, end, fromZero, window) {
  const isLog = axis.scale === "log";
  let finite = values.filter(value => Number.isFinite(value) && (!isLog || value > 0));
  if (!finite.length) finite = isLog ? [1, 10] : [0, 1];
  let low = axis.low ?? Math.min(...finite), high = axis.high ?? Math.max(...finite), ticks = axis.ticks ?? [], labels = axis.labels ?? [];
  if (isLog && !window && (axis.low ?? null) === null) [low, high] = [low / 1.15, high * 1.15];
  if (!isLog && !window) {
    if (fromZero && (axis.low ?? null) === null) low = Math.min(low, 0);
    const step = niceStep(high - low || 1);
    if ((axis.high ?? null) === null) high = Math.ceil(high / step * 1.02) * step;
    if ((axis.low ?? null) === null) low = Math.floor(low / step) * step;
  }
  if (window) [low, high] = window;
  if (!(high > low)) high = low + (Math.abs(low) || 1);
  const inside = ticks.filter(tick => tick >= low * (low > 0 ? 0.9999 : 1.0001) && tick <= high * 1.0001);
  if (!ticks.length || (window && inside.length < 2)) {
    labels = [];
    if (isLog) ticks = high / low > 3 ? logTicks(low, high) : steps(low, high);
    else ticks = steps(low, high);
  }
  const span = isLog ? Math.log(high / low) : high - low;
  const pixel = isLog ? value => start + (end - start) * Math.log(value / low) / span : value => start + (end - start) * (value - low) / span;
  const value = isLog ? at => low * Math.exp((at - start) / (end - start) * span) : at => low + (at - start) / (end - start) * span;
  return { pixel, value, low, high, ticks, labels: labels.length ? labels : ticks.map(short) };
}

function steps(low, high) {
  const step = niceStep(high - low), first = Math.ceil(low / step - 1e-9);
  return Array.from({ length: Math.floor(high / step + 1e-9) - first + 1 }, (_, at) => Number(((first + at) * step).toPrecision(12)));
}

class Plot {
  constructor(holder, figure) {
    this.holder = holder;
    this.figure = figure;
    this.hidden = new Set();
    this.window = null;
    this.legend = document.createElement("ul");
    this.legend.className = "legend";
    this.svg = drawn("svg", { role: "img", tabindex: 0, "aria-label": figure.title });
    this.tip = document.createElement("div");
    this.tip.className = "tip";
    this.tip.setAttribute("role", "status");
    this.tip.hidden = true;
    this.undo = document.createElement("button");
    this.undo.type = "button";
    this.undo.className = "unzoom";
    this.undo.textContent = "whole figure";
    this.undo.hidden = true;
    this.undo.addEventListener("click", () => this.zoom(null));
    const still = [...holder.childNodes];
    if (still.length) {
      const print = document.createElement("div");
      print.className = "still";
      print.append(...still);
      holder.append(print);
    }
    holder.append(this.legend, this.svg, this.tip, this.undo);
    this.listen();
    this.width = 0;
    new ResizeObserver(() => this.fit()).observe(holder);
    this.fit();
  }

  fit() {
    const width = Math.round(this.holder.clientWidth);
    if (width > 0 && width !== this.width) { this.width = width; this.draw(); }
  }

  update(marks, { x = {}, y = {} } = {}) {
    this.figure = { ...this.figure, marks, x: { ...this.figure.x, ...x }, y: { ...this.figure.y, ...y } };
    this.window = null;
    this.draw();
  }

  zoom(window) {
    this.window = window;
    this.draw();
  }

  shown() { return this.figure.marks.filter(mark => !this.hidden.has(mark.name)); }

  draw() {
    if (!this.width) return;
    const { figure, width } = this, height = figure.height_px, marks = this.shown();
    const room = width < 480 ? { ...ROOM, left: 58, right: 10 } : ROOM;
    this.area = { left: room.left, right: width - room.right, top: room.top, bottom: height - room.bottom };
    const { left, right, top, bottom } = this.area, piles = pilesOf(marks);
    const heights = marks.flatMap(mark => mark.kind === "stack" ? piles.get(mark.name)[1] : [...mark.y, ...mark.low ?? [], ...mark.high ?? []]);
    this.x = scaleOf(figure.x, marks.flatMap(mark => mark.x), left, right, false, this.window?.x);
    this.y = scaleOf(figure.y, heights, bottom, top, true, this.window?.y);
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.setAttribute("width", width);
    this.svg.setAttribute("height", height);
    const clip = `clip-${figure.name}`, inside = drawn("g", { "clip-path": `url(#${clip})` });
    const box = drawn("clipPath", { id: clip });
    box.append(drawn("rect", { x: left, y: top - 6, width: Math.max(right - left + 6, 0), height: Math.max(bottom - top + 7, 0) }));
    for (const mark of marks) {
      if (mark.kind === "line") inside.append(...this.line(mark));
      else if (mark.kind === "stack") inside.append(drawn("path", { d: this.between(mark.x, ...piles.get(mark.name)), fill: mark.colour, "fill-opacity": .55 }));
    }
    for (const mark of marks) if (mark.kind === "points") inside.append(...this.points(mark));
    this.ring = drawn("circle", { r: 6, class: "ring", visibility: "hidden" });
    this.frame = drawn("rect", { class: "zooming", visibility: "hidden" });
    this.svg.replaceChildren(box, ...this.grid(), inside, ...this.pointLabels(marks), this.ring, this.frame);
    this.undo.hidden = this.window === null;
    this.tip.hidden = true;
    this.at = null;
    this.drawLegend();
  }

  grid() {
    const { left, right, top, bottom } = this.area, { x, y, figure } = this, parts = [], middle = (top + bottom) / 2;
    y.ticks.forEach((tick, number) => {
      const at = y.pixel(tick);
      if (at < top - 1 || at > bottom + 1) return;
      parts.push(drawn("path", { class: "g", d: `M${left} ${at.toFixed(1)}H${right}` }),
        drawn("text", { x: left - 8, y: (at + 4).toFixed(1), "text-anchor": "end" }, y.labels[number]));
    });
    let free = -Infinity;
    x.ticks.forEach((tick, number) => {
      const at = x.pixel(tick), half = 3.7 * String(x.labels[number]).length;
      if (at < left - 1 || at > right + 1) return;
      parts.push(drawn("path", { class: "a", d: `M${at.toFixed(1)} ${bottom}v5` }));
      if (at - half < free) return;
      free = at + half + 7;
      parts.push(drawn("text", { x: at.toFixed(1), y: bottom + 19, "text-anchor": "middle" }, x.labels[number]));
    });
    return [...parts, drawn("path", { class: "a", d: `M${left} ${bottom}H${right}` }),
      drawn("text", { x: (left + right) / 2, y: bottom + 39, "text-anchor": "middle" }, figure.x.title),
      drawn("text", { x: 12, y: middle, "text-anchor": "middle", transform: `rotate(-90 12 ${middle})` }, figure.y.title)];
  }

  path(xs, ys) {
    let text = "", pen = "M";
    xs.forEach((value, number) => {
      if (!Number.isFinite(ys[number])) { pen = "M"; return; }
      text += `${pen}${this.x.pixel(value).toFixed(1)} ${this.y.pixel(ys[number]).toFixed(1)}`;
      pen = "L";
    });
    return text;
  }

  between(xs, low, high) {
    const there = xs.map((_, at) => at).filter(at => Number.isFinite(low[at]) && Number.isFinite(high[at]));
    const back = [...there].reverse();
    const way = this.path([...there, ...back].map(at => xs[at]), [...there.map(at => high[at]), ...back.map(at => low[at])]);
    return way && `${way}Z`;
  }

  line(mark) {
    const parts = mark.low?.length ? [drawn("path", { d: this.between(mark.x, mark.low, mark.high), fill: mark.colour, "fill-opacity": .16 })] : [];
    const dash = mark.dashed ? { "stroke-dasharray": "6 4" } : {};
    return [...parts, drawn("path", { d: this.path(mark.x, mark.y), fill: "none", stroke: mark.colour, "stroke-width": 2, "stroke-linejoin": "round", ...dash })];
  }

  points(mark) {
    const parts = [];
    mark.x.forEach((value, at) => {
      const x = this.x.pixel(value), y = this.y.pixel(mark.y[at]);
      if (Number.isFinite(mark.low?.[at]) && Number.isFinite(mark.high?.[at])) {
        parts.push(drawn("path", { d: `M${x.toFixed(1)} ${this.y.pixel(mark.low[at]).toFixed(1)}V${this.y.pixel(mark.high[at]).toFixed(1)}`, stroke: mark.colour }));
      }
      if (Number.isFinite(x) && Number.isFinite(y)) parts.push(symbol(mark, x, y));
    });
    return parts;
  }

  pointLabels(marks) {
    const taken = [], parts = [];
    for (const mark of marks) {
      if (mark.kind !== "points" || !mark.is_labelled) continue;
      mark.labels.forEach((label, at) => {
        const left = this.x.pixel(mark.x[at]) + 7, middle = this.y.pixel(mark.y[at]) - 6, right = left + 5.6 * label.length;
        const isFree = right <= this.width && taken.every(([a, b, y]) => right < a || left > b || Math.abs(y - middle) > 11);
        if (!isFree || !Number.isFinite(middle)) return;
        taken.push([left, right, middle]);
        parts.push(drawn("text", { x: left.toFixed(1), y: middle.toFixed(1), "font-size": 10 }, label));
      });
    }
    return parts;
  }

  drawLegend() {
    const all = this.figure.marks.filter(mark => mark.legend !== false && mark.name), named = all.length > 1 ? all : [];
    const text = JSON.stringify([named.map(mark => [mark.name, mark.colour, mark.kind, mark.dashed, mark.symbol]), [...this.hidden]]);
    if (text === this.legendText) return;
    this.legendText = text;
    this.legend.replaceChildren(...named.map(mark => {
      const item = document.createElement("li"), button = document.createElement("button"), key = drawn("svg", { width: 22, height: 14, "aria-hidden": "true" });
      key.append(mark.kind === "points" ? symbol({ ...mark, size_px: Math.min(mark.size_px ?? 8, 11) }, 11, 7) : drawn("path", { d: "M2 7h18", stroke: mark.colour, "stroke-width": mark.kind === "stack" ? 8 : 3, ...(mark.dashed ? { "stroke-dasharray": "5 4" } : {}) }));
      button.type = "button";
      button.setAttribute("aria-pressed", String(!this.hidden.has(mark.name)));
      button.append(key, mark.name);
      button.addEventListener("click", () => {
        if (!this.hidden.delete(mark.name)) this.hidden.add(mark.name);
        this.draw();
        [...this.legend.querySelectorAll("button")].find(each => each.textContent === mark.name)?.focus();
      });
      item.append(button);
      return item;
    }));
  }

  // ── pointing, zooming, keys ──

  listen() {
    const place = event => { const box = this.svg.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    this.svg.addEventListener("pointerdown", event => { if (event.pointerType === "mouse" && event.button === 0) this.from = place(event); });
    this.svg.addEventListener("pointermove", event => {
      const at = place(event);
      if (this.from && Math.hypot(at[0] - this.from[0], at[1] - this.from[1]) > DRAG_PX) this.stretch(at); else this.point(this.nearest(...at));
    });
    this.svg.addEventListener("pointerup", event => this.drop(place(event)));
    this.svg.addEventListener("pointerleave", () => { this.from = null; this.frame?.setAttribute("visibility", "hidden"); this.point(null); });
    this.svg.addEventListener("dblclick", () => this.zoom(null));
    this.svg.addEventListener("keydown", event => this.key(event));
    this.svg.addEventListener("blur", () => this.point(null));
  }

  stretch([x, y]) {
    const { left, right, top, bottom } = this.area, isWide = Math.abs(y - this.from[1]) < 3 * DRAG_PX;
    const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
    const xs = [this.from[0], x].map(each => clamp(each, left, right)).sort((a, b) => a - b);
    const ys = isWide ? [top, bottom] : [this.from[1], y].map(each => clamp(each, top, bottom)).sort((a, b) => a - b);
    this.stretched = { xs, ys, isWide };
    for (const [name, value] of [["x", xs[0]], ["y", ys[0]], ["width", xs[1] - xs[0]], ["height", ys[1] - ys[0]]]) this.frame.setAttribute(name, value);
    this.frame.setAttribute("visibility", "visible");
  }

  drop() {
    const { stretched, from } = this;
    this.from = this.stretched = null;
    if (!from || !stretched || stretched.xs[1] - stretched.xs[0] < DRAG_PX) return;
    const { xs, ys, isWide } = stretched;
    this.zoom({ x: xs.map(this.x.value), y: isWide ? this.window?.y ?? null : [this.y.value(ys[1]), this.y.value(ys[0])] });
  }

  // Everything that can be pointed at, from left to right.
  targets() {
    const { left, right, top, bottom } = this.area;
    return this.shown().flatMap(mark => mark.x.map((value, at) => ({ mark, at, x: this.x.pixel(value), y: this.y.pixel(mark.y[at]) })))
      .filter(({ mark, x, y }) => mark.kind !== "stack" && x >= left - 1 && x <= right + 1 && y >= top - 1 && y <= bottom + 1)
      .sort((a, b) => a.x - b.x || a.y - b.y);
  }

  nearest(x, y) {
    let best = null, least = NEAR_PX;
    for (const target of this.targets()) {
      const distance = Math.hypot(target.x - x, target.y - y);
      if (distance < least) [best, least] = [target, distance];
    }
    return best;
  }

  point(target) {
    this.at = target;
    this.ring?.setAttribute("visibility", target ? "visible" : "hidden");
    this.tip.hidden = !target;
    if (!target) return;
    const { mark, at, x, y } = target, { figure } = this;
    this.ring.setAttribute("cx", x);
    this.ring.setAttribute("cy", y);
    const lines = [mark.name, ...(mark.labels?.[at] ?? "").split("\n"), `${figure.x.title}: ${this.named(this.x, mark.x[at])}`, `${figure.y.title}: ${long(mark.y[at])}`];
    if (Number.isFinite(mark.low?.[at])) lines.push(`from ${long(mark.low[at])} to ${long(mark.high[at])}`);
    this.tip.replaceChildren(...lines.filter(Boolean).map((line, number) => {
      const row = document.createElement(number ? "div" : "strong");
      row.textContent = line;
      return row;
    }));
    const offset = this.svg.offsetTop, isRight = x > this.width / 2;
    this.tip.style.left = isRight ? "" : `${x + 14}px`;
    this.tip.style.right = isRight ? `${this.width - x + 14}px` : "";
    this.tip.style.top = `${Math.max(offset + y - 30, 0)}px`;
  }

  named(scale, value) {
    const tick = scale.ticks.findIndex(each => Math.abs(each - value) <= 1e-9 * Math.abs(value));
    return tick >= 0 && scale.labels.length ? scale.labels[tick] : long(value);
  }

  key(event) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") { this.point(null); this.zoom(null); return; }
    if (!step) return;
    event.preventDefault();
    const targets = this.targets(), { at } = this;
    const now = at ? targets.findIndex(each => each.mark === at.mark && each.at === at.at) : step > 0 ? -1 : 0;
    if (targets.length) this.point(targets[(now + step + targets.length) % targets.length]);
  }
}

function pilesOf(marks) {
  const piles = new Map();
  let edge = null;
  for (const mark of marks) {
    if (mark.kind !== "stack") continue;
    const low = edge ?? mark.y.map(() => 0);
    edge = low.map((value, at) => value + mark.y[at]);
    piles.set(mark.name, [low, edge]);
  }
  return piles;
}

function symbol(mark, x, y) {
  const paint = { fill: mark.filled === false ? "none" : mark.colour, stroke: mark.colour, "stroke-width": 1.5 };
  const at = (value, by) => (value - by).toFixed(1);
  if (mark.symbol === "square") return drawn("rect", { x: at(x, 4), y: at(y, 4), width: 8, height: 8, ...paint });
  if (mark.symbol === "diamond") return drawn("path", { d: `M${x.toFixed(1)} ${at(y, 5)}l5 5l-5 5l-5 -5Z`, ...paint });
  if (mark.symbol === "cross") return drawn("path", { d: `M${at(x, 4)} ${at(y, 4)}l8 8m0 -8l-8 8`, ...paint });
  return drawn("circle", { cx: x.toFixed(1), cy: y.toFixed(1), r: (mark.size_px ?? 8) / 2, ...paint });
}
