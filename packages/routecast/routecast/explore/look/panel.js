// A live panel without its looks: settings to scenario, outcome to figures. No DOM, so that tests can call it anywhere.

const WIRE_OVERHEAD_BYTES = 20;
const TIE = 2e-3, BUSY_MARGIN = 0.02, ALL = 1 - 1e-3, MANY_UNITS = 65_536;

class Panel {
  constructor(data) {
    this.base = data.base;
    this.controls = data.controls;
    this.byKey = new Map(data.controls.map(control => [control.key, control]));
  }

  start() {
    return Object.fromEntries(this.controls.map(control => [control.key, control.at]));
  }

  // The scenario of `positions`; what does not change is shared with the base, so nobody may write into it.
  tree(positions) {
    let tree = this.base;
    for (const { key, under, changes } of this.controls) {
      const { paths, values } = changes[under ? positions[under] : 0];
      paths.forEach((path, number) => { tree = changed(tree, path, values[positions[key]][number]); });
    }
    return tree;
  }

  isTrace() {
    return this.base.load.sources.some(source => source.process.kind === "trace");
  }
}

function changed(tree, path, value, depth = 0) {
  if (depth === path.length) return value;
  const copy = Array.isArray(tree) ? tree.slice() : { ...tree };
  copy[path[depth]] = changed(tree[path[depth]], path, value, depth + 1);
  return copy;
}

// What the simulator takes: the tree's model and its load at `ratePps`, over `durationS`, as `routecast simulate` does.
function scenarioOf(tree, ratePps, durationS, { seed = 1, steady = false, traced = 0 } = {}) {
  const isTrace = tree.load.sources.some(source => source.process.kind === "trace");
  const rate = share => isTrace ? share : share * ratePps;
  const sources = tree.load.sources.map(source => ({
    ...source,
    rate_pps: rate(source.rate_pps),
    steps: source.steps.map(step => ({ ...step, rate_pps: rate(step.rate_pps) })),
  }));
  return {
    model: tree.model,
    load: { ...tree.load, sources },
    run: {
      duration_ps: Math.max(Math.round(durationS * 1e12), 1), seed, path: traced ? "events" : "auto",
      record_frames: traced > 0, message_limit: traced, need_steady_state: steady, per_flow: traced > 0,
      over_time: false, events: [],
    },
  };
}

const meanBytes = tree => tree.load.sizes.reduce((sum, size) => sum + size, 0) / tree.load.sizes.length;

// Seconds that a busy core takes for a frame in a router whose cores are alike, all of them busy.
function serviceS(tree) {
  const worker = tree.model.tasks.find(task => task.needs.length), { speed, contention } = tree.model.pools[0];
  const factor = contention.length ? contention[Math.min(speed.length, contention.length) - 1] : 1;
  return 1e-12 * factor * (worker.per_frame_ps + worker.per_byte_ps * meanBytes(tree));
}

// Frames per second that all ports that take traffic in can offer.
function lineRatePps(tree) {
  const bits = 8 * (meanBytes(tree) + WIRE_OVERHEAD_BYTES);
  return Math.min(...tree.load.sources.map(
    source => tree.model.ports[source.port].link_bps / bits / source.rate_pps));
}

const offeredRatePps = tree => tree.load.sources.reduce(
  (sum, { process: { time_ps: at } }) => at.length > 1 ? sum + (at.length - 1) / (at.at(-1) - at[0]) * 1e12 : sum, 0);

// The names of nodes in an outcome: task units, then the links out.
const nodeNames = tree => [...tree.names.tasks, ...tree.names.ports.map(port => `${port} out`)];

function usedUnits(tree, outcome) {
  const used = tree.model.pools.map(() => []);
  tree.model.tasks.forEach((task, at) => task.needs.forEach(need => {
    if (need.until === undefined) used[need.pool].push(outcome.nodes[at].working_units * need.units);
  }));
  outcome.pools.forEach((pool, at) => used[at].push(pool.held_units || 0));
  return used.map(units => units.reduce((sum, each) => sum + each, 0));
}

// How busy each unit of a pool is where task units are pinned to one each; else nothing.
function pinnedUnits(tree, outcome, pool) {
  const units = new Map();
  tree.model.tasks.forEach((task, at) => {
    if (task.needs.length && task.needs[0].pool === pool && task.pin.length === 1) {
      units.set(task.pin[0], (units.get(task.pin[0]) || 0) + outcome.nodes[at].working_units);
    }
  });
  return units;
}

function fullestUnit(tree, outcome, pool, used) {
  const mean = used[pool] / tree.model.pools[pool].speed.length;
  let unit = null, share = -1;
  for (const [number, busy] of pinnedUnits(tree, outcome, pool)) if (busy > share) [unit, share] = [number, busy];
  return unit === null || share <= mean * (1 + TIE) ? [null, mean] : [unit, share];
}

// Resources with what they carry, the least margin first: the order of `Trial.resources`.
function resourcesOf(tree, outcome) {
  const { model, names } = tree, { nodes } = outcome, forwarded = outcome.forwarded_pps.value;
  const used = usedUnits(tree, outcome), found = [];
  const add = (name, kind, share, fullest, passing, more = {}) => {
    if (fullest > 0 && passing > 0) {
      const capacity = Math.max(passing / Math.min(fullest, 1), forwarded);
      found.push({ name, kind, share: Math.min(share, 1), fullest: Math.min(fullest, 1), capacity, unit: null, ...more });
    }
  };
  names.threads.forEach((thread, at) => {
    const busy = model.tasks.reduce((sum, task, node) => task.thread === at ? sum + nodes[node].working_units : sum, 0);
    add(thread, "task", busy, busy, forwarded);
  });
  model.pools.forEach((pool, at) => {
    const [unit, fullest] = fullestUnit(tree, outcome, at, used);
    const isWindow = model.tasks.some(task => task.needs.some(need => need.pool === at && need.until !== undefined));
    add(names.pools[at], "pool", used[at] / pool.speed.length, fullest, forwarded, { unit, pool: at, isWindow });
  });
  model.tasks.forEach((task, at) => {
    const many = task.parallel ?? MANY_UNITS;
    if (!task.needs.length && nodes[at].working_units > 0 && many < MANY_UNITS) {
      add(names.tasks[at], "task", nodes[at].working_units / many, nodes[at].working_units / many, forwarded);
    }
  });
  tree.load.sources.forEach(({ port }, at) => {
    const source = outcome.sources[at];
    const bits = 8 * (source.offered_bytes_per_s + WIRE_OVERHEAD_BYTES * source.offered_pps);
    const share = bits / model.ports[port].link_bps;
    add(`${names.ports[port]} in`, "link", share, share, outcome.offered_pps);
  });
  names.ports.forEach((port, at) => {
    const share = nodes[model.tasks.length + at].working_units;
    add(`${port} out`, "link", share, share, forwarded);
  });
  const least = Math.min(...found.map(each => each.capacity));
  const rank = each => Math.round(Math.log(each.capacity / least) / TIE);
  return found.sort((a, b) => rank(a) - rank(b)).map(each => ({ ...each, margin: each.capacity / least - 1 }));
}

// What limits, by name, and whether it does or would do so first.
function limitOf(tree, outcome, intendedPps) {
  const resources = resourcesOf(tree, outcome), names = nodeNames(tree);
  if (!resources.length) return { name: "load", kind: "load", does: false, share: 0, unit: null, drops: "" };
  let first = resources[0], drops = "", most = 0;
  outcome.nodes.forEach((node, at) => { if (node.dropped_pps > most) [most, drops] = [node.dropped_pps, names[at]]; });
  if (drops) {
    const task = tree.names.tasks.indexOf(drops);
    const held = task < 0 ? [] : tree.model.tasks[task].needs.slice(0, 1).map(need => tree.names.pools[need.pool]);
    const thread = task < 0 ? undefined : tree.names.threads[tree.model.tasks[task].thread];
    first = resources.find(each => [drops, thread, ...held].includes(each.name) && each.margin <= BUSY_MARGIN) || first;
  }
  first = causeOf(tree, resources, first);
  if (drops && first.fullest < 1 - BUSY_MARGIN && first.capacity >= outcome.offered_pps) {
    return { name: drops, kind: tree.names.tasks.includes(drops) ? "task" : "link", does: true, isShort: true, drops,
      share: first.fullest, fullest: first.name, unit: null };
  }
  const does = Boolean(drops) || (first.fullest >= 1 - BUSY_MARGIN && outcome.forwarded_pps.value < intendedPps * ALL);
  return { name: first.name, kind: first.kind, does, drops, share: first.fullest, unit: first.unit };
}

// A window is full because its frames wait for something: what is as full inside, else the window.
function causeOf(tree, resources, first) {
  if (!first.isWindow) return first;
  const inside = new Set();
  tree.model.tasks.forEach((task, at) => task.needs.forEach(need => {
    if (need.pool !== first.pool || need.until === undefined) return;
    const next = node => tree.model.tasks[node].route.to.map(to => to.task).filter(task => task !== undefined);
    const waiting = next(at);
    while (waiting.length) {
      const node = waiting.pop();
      if (inside.has(node)) continue;
      inside.add(node);
      if (node !== need.until) waiting.push(...next(node));
    }
  }));
  const waitedFor = new Set([...inside].flatMap(at => {
    const task = tree.model.tasks[at];
    return [...task.needs.map(need => tree.names.pools[need.pool]), tree.names.threads[task.thread]];
  }));
  const members = new Set([...inside].map(at => tree.names.tasks[at]));
  const other = resources.find(each => each !== first
    && (waitedFor.has(each.name) || (each.kind === "task" && members.has(each.name))));
  return other && other.margin <= BUSY_MARGIN + first.margin ? causeOf(tree, resources, other) : first;
}

// Watts of the pools that have power states (semantics S11); null where none has.
function wattsOf(tree, outcome) {
  const used = usedUnits(tree, outcome);
  let watts = null;
  tree.watts.forEach((draw, at) => {
    if (!draw) return;
    const rest = outcome.pools[at], units = tree.model.pools[at].speed.length;
    let spinning = 0;
    tree.model.tasks.forEach((task, node) => task.needs.forEach(need => {
      if (need.pool === at) spinning += spinningUnits(tree, task, outcome.nodes[node]) * need.units;
    }));
    const active = Math.min(used[at] + spinning, units);
    const asleep = rest.asleep_units.reduce((sum, each) => sum + each, 0);
    const idle = units - active - rest.waking_units - asleep;
    watts = (watts || 0) + draw.base_w + draw.active_w * active + draw.idle_w * (idle > 1e-12 * units ? idle : 0);
    draw.sleep_w.forEach((power, state) => { watts += power * (rest.asleep_units[state] || 0); });
    if (draw.sleep_w.length) {
      watts += draw.active_w * rest.waking_units;
      draw.wake_j.forEach((joules, state) => { watts += joules * (rest.wakes_per_s[state] || 0); });
    }
  });
  return watts;
}

function spinningUnits(tree, task, node) {
  const isRevoked = task.needs.some(need => !["fifo", "priority"].includes(tree.model.pools[need.pool].policy.kind));
  if (task.activation.kind === "polling" && task.thread === null && !(node.by_events && isRevoked)) {
    return Math.max((task.parallel ?? 0) - node.working_units, 0);
  }
  return node.spinning_units;
}

// Everything that the page shows of one simulation. While queues still fill, what does not come out counts as lost, as it
// will be, and no latency is known.
function figuresOf(tree, outcome, intendedPps) {
  const has = outcome.settled && outcome.latency.count > 0;
  // Counting begins while frames are under way: of what comes out since, as much counts as was offered since.
  const forwardedPps = Math.min(outcome.forwarded_pps.value, outcome.offered_pps, intendedPps);
  return {
    intendedPps, offeredPps: outcome.offered_pps, forwardedPps,
    lossRatio: outcome.settled ? outcome.loss_ratio.value : Math.max(1 - forwardedPps / outcome.offered_pps, 0),
    meanS: has ? outcome.latency.mean_s : NaN, p50S: has ? outcome.latency.p50_s : NaN,
    p99S: has ? outcome.latency.p99_s : NaN,
    watts: wattsOf(tree, outcome), limit: limitOf(tree, outcome, intendedPps), settled: outcome.settled,
    frames: outcome.offered_frames, busy: busyOf(tree, outcome), queues: queuesOf(tree, outcome),
    drops: outcome.nodes.map((node, at) => [nodeNames(tree)[at], node.dropped_pps]).filter(([, pps]) => pps > 0),
  };
}

// How busy each unit is: one by one where task units are pinned, else the pool as a whole.
function busyOf(tree, outcome) {
  const used = usedUnits(tree, outcome);
  return tree.model.pools.flatMap((pool, at) => {
    const pinned = pinnedUnits(tree, outcome, at), name = tree.names.pools[at];
    if (!pinned.size) {
      const units = pool.speed.length;
      return [{ name: units > 1 ? `${name} (${units} units)` : name, pool: name, share: Math.min(used[at] / units, 1) }];
    }
    return [...pinned].sort(([a], [b]) => a - b)
      .map(([unit, share]) => ({ name: `${name} ${unit}`, pool: name, unit, share: Math.min(share, 1) }));
  });
}

const queuesOf = (tree, outcome) => tree.model.tasks.map((task, at) => ({
  name: tree.names.tasks[at], waiting: outcome.nodes[at].waiting_frames, room: task.queue,
}));
