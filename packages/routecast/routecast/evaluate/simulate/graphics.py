"""A graphics processor for lanes, by WebGPU: what the compiled core hands its shaders and words to.

``wgpu`` (the extra ``gpu``) speaks Vulkan, Metal or DirectX 12. Only integers are computed there, so every device
counts what a processor counts; the state of the lanes stays on the device from one bounded dispatch to the next.
"""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from routecast.errors import RoutecastError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from routecast.evaluate.simulate._simulator import Simulate
    from routecast.load.offered import OfferedLoad

__all__ = ["Adapter", "Graphics", "GraphicsProblem", "adapters", "faster", "open_graphics"]

_WORKGROUP = 64
"""Lanes of a workgroup, as in ``crates/lanes/src/shader.rs``."""
_BINDINGS = ("uniform", *("storage",) * 2, "read-only-storage", *("storage",) * 2, "read-only-storage", "storage")
"""Run, words, rings, tables, histograms, lanes under way, stops, counts: as in ``crates/lanes/src/shader.rs``."""
_RUN, _WORDS, _MEMORY, _TABLES, _HISTOGRAMS, _GOING, _STOPS, _COUNTS = range(len(_BINDINGS))
_RUN_BYTES = 16
"""What a dispatch says of itself, before the constants of the kernel."""
_GOING_BYTES = 8
_DISPATCH_S = 0.25
_FIRST_STEPS = 256
_KEPT_KERNELS = 8
_MOST_STEPS = 1 << 20
_PROBE_FRAMES = 20_000
_PROBE_S = 0.05
_RING_BYTES = 1 << 30
"""The most that rings of all lanes take."""


class GraphicsProblem(RoutecastError):
    """A graphics processor that is not there, or that does not do what is needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """A graphics processor, or what stands for one.

    * ``name``, ``driver``: as its driver says.
    * ``backend``: ``Vulkan``, ``Metal``, ``D3D12``, or ``OpenGL``, which does not agree with them on every integer.
    * ``is_software``: a program on the processor, for tests.
    """

    name: str
    driver: str
    backend: str
    is_software: bool
    has_u64: bool
    most_buffer_bytes: int

    @property
    def is_exact(self) -> bool:
        """Whether its back end computes every integer alike."""
        return self.backend in {"Vulkan", "Metal", "D3D12"}

    def __str__(self) -> str:
        kind = "a program on the processor" if self.is_software else "a graphics processor"
        return f"{self.name} ({kind}; {self.backend}; {self.driver or 'driver not named'})"


@contextmanager
def _default_of(name: str, value: str) -> Iterator[None]:
    """Set a variable of the environment for a while, if it has none."""
    if name in os.environ:
        yield
        return
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]


def _pairs() -> list[tuple[Adapter, Any]]:
    try:
        import wgpu
    except ImportError:
        raise GraphicsProblem(
            "lanes on a graphics processor need wgpu; install it: pip install 'routecast[gpu]'"
        ) from None
    # Without a desktop, drivers complain of a folder that they look for windows in.
    with tempfile.TemporaryDirectory() as folder, _default_of("XDG_RUNTIME_DIR", folder):
        raw = wgpu.gpu.enumerate_adapters_sync()
    pairs = []
    for adapter in raw:
        info = adapter.info
        described = Adapter(
            name=str(info.get("device", "") or info.get("description", "")),
            driver=str(info.get("description", "")),
            backend=str(info.get("backend_type", "")),
            is_software=str(info.get("adapter_type", "")).upper() == "CPU",
            has_u64="shader-int64" in adapter.features,
            most_buffer_bytes=int(adapter.limits["max-storage-buffer-binding-size"]),
        )
        pairs.append((described, adapter))
    return pairs


def adapters() -> tuple[Adapter, ...]:
    """Return what this machine has, in the order of its drivers.

    Raises
    ------
    GraphicsProblem
        ``wgpu`` is not installed.
    """
    return tuple(adapter for adapter, _ in _pairs())


def open_graphics(name: str = "", *, software: bool = True, portable: bool = False) -> Graphics:
    """Open a graphics processor.

    Parameters
    ----------
    name : str
        A part of its name; empty: the first that is no program, else the first.
    software : bool
        Whether a program on the processor will do.
    portable : bool
        Products by words of 32 bits, also where the device has 64.

    Raises
    ------
    GraphicsProblem
        There is none, or none that computes every integer alike.
    """
    pairs = _pairs()
    exact = [pair for pair in pairs if pair[0].is_exact]
    if not exact:
        seen = "; ".join(str(adapter) for adapter, _ in pairs) or "none"
        raise GraphicsProblem(
            f"no graphics processor by Vulkan, Metal or DirectX 12 (seen: {seen}); install its driver"
            " (Debian: mesa-vulkan-drivers), or leave --device out"
        )
    fitting = [pair for pair in exact if name.lower() in str(pair[0]).lower()]
    if not fitting:
        names = "; ".join(str(adapter) for adapter, _ in exact)
        raise GraphicsProblem(f"no graphics processor is called {name!r}; there are: {names}")
    fitting.sort(key=lambda pair: pair[0].is_software)
    adapter, raw = fitting[0]
    if adapter.is_software and not software:
        raise GraphicsProblem(f"there is none but {adapter}")
    return Graphics(adapter, raw, portable=portable)


def faster(simulate: Simulate, graphics: Graphics, load: OfferedLoad, duration_s: float) -> bool:
    """Return whether a short trial of some 50 ms is over sooner on a graphics processor, its shaders once made.

    Parameters
    ----------
    simulate : Simulate
        The simulator, in lanes on the processor.
    load : OfferedLoad
        The load.
    duration_s : float
        The length of the trial that is wanted, seconds of the router's time.
    """

    def seconds(device: Graphics | None, of_s: float) -> float:
        began_s = time.perf_counter()
        replace(simulate, device=device, replications=1, steady_state=False, on_progress=None).trial(load, of_s)
        return time.perf_counter() - began_s

    if load.arrivals.trace is not None:
        return False
    short_s = min(duration_s, _PROBE_FRAMES / load.rate_pps)
    took_s = seconds(None, short_s)
    probe_s = min(duration_s, short_s * max(1.0, _PROBE_S / took_s))
    seconds(graphics, probe_s)
    return seconds(graphics, probe_s) < seconds(None, probe_s)


class Graphics:
    """A graphics processor that is open: the compiled core calls its methods while a trial runs.

    Words of lanes lie side by side: word ``w`` of lane ``l`` is at ``w * lanes + l``.
    """

    def __init__(self, adapter: Adapter, raw: Any, *, portable: bool = False) -> None:
        self.adapter = adapter
        self.has_u64 = adapter.has_u64 and not portable
        limits = {
            "max-storage-buffer-binding-size": adapter.most_buffer_bytes,
            "max-buffer-size": max(adapter.most_buffer_bytes, 1 << 28),
        }
        features = ["shader-int64"] if self.has_u64 else []
        try:
            self._device = raw.request_device_sync(required_features=features, required_limits=limits)
        except Exception as error:
            raise GraphicsProblem(f"{adapter} gives no device: {error}") from error
        self._pipelines: dict[str, Any] = {}
        self._buffers: list[Any] = []
        self._group: Any = None
        entries = [
            {"binding": number, "visibility": 4, "buffer": {"type": kind}} for number, kind in enumerate(_BINDINGS)
        ]
        self._layout = self._device.create_bind_group_layout(entries=entries)
        self._steps = _FIRST_STEPS

    def most_lanes(self, words: int, memory: int) -> int:
        """Return how many lanes fit with so many words of state and of rings each."""
        most = min(self.adapter.most_buffer_bytes, _RING_BYTES)
        return max(1, min(most // (4 * max(words, memory, 1)), 65_535 * _WORKGROUP))

    def open(self, text: str, tables: bytes, constants: bytes, sizes: Sequence[int]) -> None:
        """Get ready: a kernel, its tables, its constants; lanes, words of state, of rings, of histograms, of counts."""
        self._close()
        self._steps = _FIRST_STEPS
        self._lanes, words, memory, self._bins, counts = sizes
        self._kernel = self._pipeline(text)
        self._tables = tables or bytes(4)
        self._sizes = [
            _RUN_BYTES + len(constants),
            4 * words * self._lanes,
            4 * memory * self._lanes,
            0,
            4 * self._bins,
            _GOING_BYTES,
            0,
            4 * counts,
        ]
        self._buffers = [self._buffer(number, max(size, 4)) for number, size in enumerate(self._sizes)]
        self._device.queue.write_buffer(self._buffers[_RUN], _RUN_BYTES, constants)
        self._sums: NDArray[np.uint64] | None = None

    def _close(self) -> None:
        """Give the memory of the device back."""
        self._group = None
        for buffer in self._buffers:
            buffer.destroy()
        self._buffers = []

    def _buffer(self, number: int, size_bytes: int, data: bytes | None = None) -> Any:
        usage = 0x8 | (0x40 if _BINDINGS[number] == "uniform" else 0x80 | 0x4)  # uniform or storage, copied to and from
        if data is None and number == _TABLES:
            data = self._tables
        if data is not None:
            return self._device.create_buffer_with_data(data=data, usage=usage)
        return self._device.create_buffer(size=size_bytes, usage=usage)

    def _pipeline(self, text: str) -> Any:
        if text not in self._pipelines:
            if len(self._pipelines) >= _KEPT_KERNELS:
                del self._pipelines[next(iter(self._pipelines))]
            module = self._device.create_shader_module(code=text)
            layout = self._device.create_pipeline_layout(bind_group_layouts=[self._layout])
            self._pipelines[text] = self._device.create_compute_pipeline(
                layout=layout, compute={"module": module, "entry_point": "main"}
            )
        return self._pipelines[text]

    def write(self, words: bytes, memory: bytes | None, stops: bytes) -> None:
        """Write all words of state, of rings where they are given, and the stops of the lanes."""
        queue = self._device.queue
        queue.write_buffer(self._buffers[_WORDS], 0, words)
        if memory:
            queue.write_buffer(self._buffers[_MEMORY], 0, memory)
        self._buffers[_STOPS] = self._buffer(_STOPS, 0, stops or bytes(4))
        self._stops = len(stops) // (12 * self._lanes)
        resources = [{"binding": number, "resource": {"buffer": buffer}} for number, buffer in enumerate(self._buffers)]
        self._group = self._device.create_bind_group(layout=self._layout, entries=resources)

    def _read(self, number: int) -> bytes:
        return bytes(self._device.queue.read_buffer(self._buffers[number]))

    def read_words(self) -> bytes:
        """Return all words of state."""
        return self._read(_WORDS)

    def read_memory(self) -> bytes:
        """Return all words of rings."""
        return self._read(_MEMORY)

    def read_counts(self) -> bytes:
        """Return the counts of all slots."""
        return self._read(_COUNTS)

    def step(self) -> tuple[int, int]:
        """Take all lanes towards their last stops, in a bounded time; return lanes not there yet, and their stops."""
        began_s = time.perf_counter()
        self._dispatch()
        going, stops = np.frombuffer(self._read(_GOING), dtype=np.uint32).tolist()
        took_s = time.perf_counter() - began_s
        # No bin gets more than 2^32 frames before it is emptied.
        most = max(1, min(_MOST_STEPS, (1 << 31) // self._lanes))
        if going and took_s < _DISPATCH_S / 2:
            self._steps = min(2 * self._steps, most)
        elif took_s > _DISPATCH_S:
            self._steps = max(self._steps // 2, 1)
        self._flush()
        return going, stops

    def take_bins(self) -> bytes:
        """Return the histograms as sums of 64 bits, and start again from zero."""
        self._flush()
        sums, self._sums = self._sums, None
        self._close()
        return bytes(8 * self._bins) if sums is None else sums.tobytes()

    def _flush(self) -> None:
        """Add what the histograms on the device hold to sums that do not overflow."""
        held = np.frombuffer(self._read(_HISTOGRAMS), dtype=np.uint32).astype(np.uint64)
        self._sums = held if self._sums is None else np.add(self._sums, held)
        self._device.queue.write_buffer(self._buffers[_HISTOGRAMS], 0, bytes(4 * self._bins))

    def _dispatch(self) -> None:
        run = b"".join(word.to_bytes(4, "little") for word in (self._lanes, self._steps, self._stops, 0))
        queue = self._device.queue
        queue.write_buffer(self._buffers[_RUN], 0, run)
        queue.write_buffer(self._buffers[_GOING], 0, bytes(_GOING_BYTES))
        encoder = self._device.create_command_encoder()
        work = encoder.begin_compute_pass()
        work.set_pipeline(self._kernel)
        work.set_bind_group(0, self._group)
        work.dispatch_workgroups(-(-self._lanes // _WORKGROUP))
        work.end()
        queue.submit([encoder.finish()])
