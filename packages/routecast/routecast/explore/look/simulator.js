// The simulator in a page: the compiled module (crates/wasm) in a worker, so that the page stays alive while it runs.
//
//   const simulator = new Simulator(gzippedBase64);
//   const outcome = await simulator.run({scenario, replications: 4}, {onProgress: share => {…}});
//   simulator.cancel();   // what runs is rejected with the kind "interrupted"; the next run starts at once
//   simulator.close();
//
// Requests and outcomes are those of routecast._core.simulate. A page opened from a file can do this, under a policy of
// script-src 'unsafe-inline' 'wasm-unsafe-eval'; worker-src blob:.
'use strict';

// Why there is no outcome. Kinds: scenario, cycle, path, transient (with duration_s and needed_s), interrupted; panic: the
// module broke off, the next run has a fresh one; unsupported: this browser cannot simulate.
class SimulationError extends Error {
  constructor({kind, message, duration_s = 0, needed_s = 0}) {
    super(message);
    this.name = 'SimulationError';
    this.kind = kind;
    this.duration_s = duration_s;
    this.needed_s = needed_s;
  }
}

class Simulator {
  #module;
  #url = null;
  #worker = null;
  #pending = new Map();
  #last = 0;

  constructor(gzippedBase64) {
    this.#module = Simulator.#compiled(gzippedBase64);
    this.#start();
  }

  // What this browser lacks, in words; empty where it can simulate.
  static missing() {
    const needed = {
      WebAssembly: globalThis.WebAssembly,
      'DecompressionStream': globalThis.DecompressionStream,
      'Web Workers': globalThis.Worker,
    };
    return Object.keys(needed).filter(name => !needed[name]);
  }

  // Resolves when the first run would not wait for the module; rejects where this browser cannot simulate.
  get ready() {
    return this.#module.then(() => undefined);
  }

  // Simulates. A request may also be its JSON, for numbers beyond 2^53. Runs wait for each other.
  run(request, {onProgress = null} = {}) {
    const text = typeof request === 'string' ? request : JSON.stringify(request);
    const id = ++this.#last;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, {resolve, reject, onProgress});
      const post = () => {
        if (this.#pending.has(id)) this.#worker.postMessage({id, text});
      };
      if (this.#worker) post();
      else this.#start().then(post, error => this.#settle(id, waiting => waiting.reject(error)));
    });
  }

  // Stops all runs at once.
  cancel() {
    this.#stop({kind: 'interrupted', message: 'interrupted'});
    this.#start();
  }

  // Stops all runs and gives the memory back; another run starts anew.
  close() {
    this.#stop({kind: 'interrupted', message: 'interrupted'});
    if (this.#url) URL.revokeObjectURL(this.#url);
    this.#url = null;
  }

  static async #compiled(gzippedBase64) {
    const missing = Simulator.missing();
    const refuse = why => new SimulationError({kind: 'unsupported', message: `this browser cannot simulate: ${why}`});
    if (missing.length) throw refuse(`it has no ${missing.join(', no ')}`);
    try {
      const gzipped = Uint8Array.from(atob(gzippedBase64), character => character.charCodeAt(0));
      const stream = new Blob([gzipped]).stream().pipeThrough(new DecompressionStream('gzip'));
      return await WebAssembly.compile(await new Response(stream).arrayBuffer());
    } catch (error) {
      throw refuse(error.message);
    }
  }

  // Starts the worker, if there is none; whoever runs something is told why that failed.
  #start() {
    const started = this.#module.then(module => {
      if (this.#worker) return;
      this.#url ??= URL.createObjectURL(new Blob([`(${inWorker})()`], {type: 'text/javascript'}));
      const worker = new Worker(this.#url);
      worker.onmessage = ({data}) => this.#hear(data);
      worker.onerror = event => {
        event.preventDefault();
        this.#stop({kind: 'panic', message: `the simulator's worker ended: ${event.message ?? 'it did not start'}`});
      };
      worker.postMessage({module});
      this.#worker = worker;
    });
    started.catch(() => {});
    return started;
  }

  #stop(reason) {
    if (this.#worker) this.#worker.terminate();
    this.#worker = null;
    for (const id of [...this.#pending.keys()]) this.#settle(id, waiting => waiting.reject(new SimulationError(reason)));
  }

  #hear({id, share, text, trap}) {
    const waiting = this.#pending.get(id);
    if (!waiting) return;
    if (share !== undefined) {
      if (waiting.onProgress) waiting.onProgress(share);
      return;
    }
    this.#settle(id, () => {
      if (trap !== undefined) {
        const message = `the simulation broke an invariant or ran out of memory (${trap})`;
        waiting.reject(new SimulationError({kind: 'panic', message}));
        return;
      }
      const answer = JSON.parse(text);
      if (answer.error) waiting.reject(new SimulationError(answer.error));
      else waiting.resolve(answer.outcome);
    });
  }

  #settle(id, how) {
    const waiting = this.#pending.get(id);
    this.#pending.delete(id);
    if (waiting) how(waiting);
  }
}

// Runs in the worker, which has this text and nothing else of the page.
function inWorker() {
  const REPORT_MS = 50;
  // A module's memory never shrinks: one that has grown beyond this is not kept.
  const KEPT_BYTES = 1 << 26;
  let module = null;
  let exports = null;
  let running = null;
  let reported = 0;

  const progress = share => {
    const now = performance.now();
    if (now - reported >= REPORT_MS) {
      reported = now;
      postMessage({id: running, share});
    }
    return 0;
  };

  const answer = text => {
    exports ??= new WebAssembly.Instance(module, {env: {progress}}).exports;
    const request = new TextEncoder().encode(text);
    const block = exports.alloc(request.length) >>> 0;
    if (!block) throw new RangeError('no memory for the request');
    new Uint8Array(exports.memory.buffer, block, request.length).set(request);
    const framed = exports.simulate(block, request.length) >>> 0;
    exports.free(block, request.length);
    const length = new DataView(exports.memory.buffer).getUint32(framed, true);
    const json = new TextDecoder().decode(new Uint8Array(exports.memory.buffer, framed + 4, length));
    exports.free(framed, 4 + length);
    return json;
  };

  onmessage = ({data}) => {
    if (data.module) {
      module = data.module;
      exports = new WebAssembly.Instance(module, {env: {progress}}).exports;
      return;
    }
    running = data.id;
    reported = performance.now();
    try {
      const text = answer(data.text);
      if (exports.memory.buffer.byteLength > KEPT_BYTES) exports = null;
      postMessage({id: running, text});
    } catch (error) {
      exports = null;
      postMessage({id: running, trap: error.message});
    }
  };
}
