"""The kernel of lanes in a browser: Tint compiles what naga compiles, and counts the same words."""

from __future__ import annotations

import base64
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, sync_playwright

from routecast.evaluate.simulate import Simulate
from routecast.evaluate.simulate.graphics import Graphics, GraphicsProblem, open_graphics
from routecast.load import Arrivals, OfferedLoad
from routecast.router import RouterModel, ServiceCost, station
from routecast.router.files import read_router_and_load

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"

RUN = """
async ({text, sizes, run, tables, words, memory, stops, lanes}) => {
  const adapter = await navigator.gpu?.requestAdapter();
  if (!adapter) return null;
  const device = await adapter.requestDevice();
  const bytes = (coded) => Uint8Array.from(atob(coded), (c) => c.charCodeAt(0));
  const [own, all, read_only] = ["uniform", "storage", "read-only-storage"];
  const kinds = [own, all, all, read_only, all, all, read_only, all];
  const given = [run, words, memory, tables, null, null, stops, null].map((coded) => coded && bytes(coded));
  const buffers = kinds.map((kind, at) => {
    const size = Math.max(4, given[at] ? given[at].length : sizes[at]);
    const { UNIFORM, STORAGE, COPY_SRC, COPY_DST } = GPUBufferUsage;
    const usage = COPY_DST | (kind === own ? UNIFORM : STORAGE | COPY_SRC);
    const buffer = device.createBuffer({size, usage});
    if (given[at] && given[at].length) device.queue.writeBuffer(buffer, 0, given[at]);
    return buffer;
  });
  const module = device.createShaderModule({code: text});
  const problems = (await module.getCompilationInfo()).messages.filter((m) => m.type === "error").map((m) => m.message);
  if (problems.length) throw new Error(problems[0]);
  const entries = kinds.map((type, binding) => ({binding, visibility: 4, buffer: {type}}));
  const layout = device.createBindGroupLayout({entries});
  const pipeline = device.createComputePipeline({
    layout: device.createPipelineLayout({bindGroupLayouts: [layout]}), compute: {module, entryPoint: "main"}});
  const resources = buffers.map((buffer, binding) => ({binding, resource: {buffer}}));
  const group = device.createBindGroup({layout, entries: resources});
  const read = async (at) => {
    const size = buffers[at].size;
    const copy = device.createBuffer({size, usage: GPUBufferUsage.COPY_DST | GPUBufferUsage.MAP_READ});
    const encoder = device.createCommandEncoder();
    encoder.copyBufferToBuffer(buffers[at], 0, copy, 0, size);
    device.queue.submit([encoder.finish()]);
    await copy.mapAsync(GPUMapMode.READ);
    return new Uint8Array(copy.getMappedRange()).slice();
  };
  const count = given[6].length / (12 * lanes);
  for (let going = 1; going > 0;) {
    device.queue.writeBuffer(buffers[0], 0, new Uint32Array([lanes, 4096, count, 0]));
    device.queue.writeBuffer(buffers[5], 0, new Uint32Array([0, 0]));
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, group);
    pass.dispatchWorkgroups(Math.ceil(lanes / 64));
    pass.end();
    device.queue.submit([encoder.finish()]);
    going = new Uint32Array((await read(5)).buffer)[0];
  }
  const coded = (bytes) => { let s = ""; for (const b of bytes) s += String.fromCharCode(b); return btoa(s); };
  return {words: coded(await read(1)), memory: coded(await read(2)), counts: coded(await read(7))};
}
"""


class Recording:
    """A graphics processor that keeps what the counted part of a trial is given, and what comes of it."""

    has_u64 = False

    def __init__(self, graphics: Graphics) -> None:
        self._graphics = graphics
        self.given: dict[str, Any] = {}
        self.result: dict[str, bytes] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._graphics, name)

    def open(self, text: str, tables: bytes, constants: bytes, sizes: Sequence[int]) -> None:
        lanes, words, memory, bins, counts = sizes
        of_bytes = [0, 4 * words * lanes, 4 * memory * lanes, 0, 4 * bins, 8, 0, 4 * counts]
        self.given = {"text": text, "tables": tables or bytes(4), "lanes": lanes, "sizes": of_bytes}
        # What a dispatch says of itself comes before the constants.
        self.given["run"] = bytes(16) + constants
        self._graphics.open(text, tables, constants, sizes)

    def write(self, words: bytes, memory: bytes | None, stops: bytes) -> None:
        if memory is None:
            # The rings are as the warm-up has left them.
            self.given |= {"words": words, "memory": self.read_memory(), "stops": stops}
        self._graphics.write(words, memory, stops)

    def read_counts(self) -> bytes:
        counts = self._graphics.read_counts()
        self.result = {"words": self.read_words(), "memory": self.read_memory(), "counts": counts}
        return counts


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("needs Chromium: apt install chromium")
    with sync_playwright() as playwright:
        flags = ["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"]
        browser = playwright.chromium.launch(executable_path=chromium, chromium_sandbox=os.geteuid() != 0, args=flags)
        yield browser.new_page()
        browser.close()


def queue() -> tuple[RouterModel, OfferedLoad]:
    """M/M/1/8 at load 1.1."""
    model = station(ServiceCost(per_packet_s=1e-6, variation="exponential"), queue_frames=7)
    return model, OfferedLoad(rate_pps=1.1e6, arrivals=Arrivals.poisson())


@pytest.mark.parametrize("name", ["M/M/1/8", "green", "softirq"])
def test_a_browser_counts_what_a_device_counts(name: str, page: Page, tmp_path: Path) -> None:
    try:
        opened = open_graphics(portable=True)
    except GraphicsProblem as problem:
        pytest.skip(f"NO GRAPHICS PROCESSOR, NOT EVEN A PROGRAM THAT STANDS FOR ONE: {problem}")
    recording = Recording(opened)
    if name == "M/M/1/8":
        model, load = queue()
    else:
        read, default = read_router_and_load(EXAMPLES / f"{name}.router.toml")
        assert default is not None
        model, load = read, default
    Simulate(model, path="lanes", steady_state=False, device=recording).trial(load, 4e4 / load.rate_pps)
    assert recording.result, "the trial was not run on the device"
    blank = tmp_path / "blank.html"
    blank.write_text("<!doctype html><title>kernel</title>")
    page.goto(blank.as_uri())
    coded = {
        key: base64.b64encode(value).decode() if isinstance(value, bytes) else value
        for key, value in recording.given.items()
    }
    result = page.evaluate(RUN, json.loads(json.dumps(coded)))
    if result is None:
        pytest.skip("THIS BROWSER HAS NO WEBGPU")
    for what, expected in recording.result.items():
        assert base64.b64decode(result[what])[: len(expected)] == expected, what
