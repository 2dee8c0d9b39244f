"""What is characterised: a kernel, its table and the packets that it gets."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from routecast.errors import ModelProblem, Problem
from routecast.load.frames import RFC2544_FRAME_BYTES, FrameMix
from routecast.quantity.did_you_mean import did_you_mean

__all__ = ["HELD_PACKETS", "Kernel", "WorkloadCase", "kernels", "read_kernel"]

HELD_PACKETS = 2048
"""Packets that are made, or taken from a capture: the kernel goes round them."""

_FILLED = 8
"""Twice the packets that wait on average for each entry of a queueing kernel (``crates/probe``: ``BACKLOG``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """A kernel of ``crates/probe``: its name, what it does, the suite and group that it stands for.

    ``works_on`` is ``"header"`` or ``"payload"``; ``table`` says what its ``entries`` are ("" and 0: it has none).
    """

    name: str
    title: str
    group: str
    works_on: Literal["header", "payload"]
    source: str
    table: str
    entries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadCase:
    """A kernel and its packets.

    Parameters
    ----------
    kernel : Kernel
    entries : int or None
        Entries of its table; None: its own number.
    frames : FrameMix or None
        Sizes of generated packets; None: those of RFC 2544, equally often, which show what a byte takes.
    capture : pathlib.Path or None
        A pcap or pcapng file instead of generated packets.
    content : {"words", "random"}
        Payload of generated packets: words by Zipf's law, which compress, or random bytes, which do not.
    flows : int
        Flows of generated packets; each packet belongs to any of them with equal chances.
    seed : int
    """

    kernel: Kernel
    entries: int | None = None
    frames: FrameMix | None = None
    capture: Path | None = None
    content: Literal["words", "random"] = "words"
    flows: int = 1024
    seed: int = 1

    @property
    def warm_up(self) -> int:
        """Packets until the state is steady: tables in memory, and queues of some packets each filled."""
        entries = self.kernel.entries if self.entries is None else self.entries
        return max(HELD_PACKETS, _FILLED * entries)

    def request(
        self, *, warm_up: int = 0, measured: int = 0, duration_s: float = 0.0, traced: bool = False
    ) -> dict[str, object]:
        """Return the request of ``run_workload``."""
        source: dict[str, object]
        if self.capture is not None:
            source = {"capture": {"path": str(self.capture.absolute())}}
        else:
            sizes = self.frames.sequence_bytes if self.frames else RFC2544_FRAME_BYTES
            mix = [[size, float(count)] for size, count in sorted(Counter(sizes).items())]
            source = {"generated": {"mix": mix, "content": self.content, "flows": self.flows}}
        return {
            "kernel": self.kernel.name,
            "entries": self.entries,
            "source": source,
            "packets": HELD_PACKETS,
            "warm_up": warm_up,
            "measured": measured,
            "duration_s": duration_s,
            "traced": traced,
            "seed": self.seed,
        }


def kernels() -> tuple[Kernel, ...]:
    """Return all kernels.

    Examples
    --------
    >>> kernels()[0].name
    'rtr'
    """
    from routecast import _core

    return tuple(Kernel(**one) for one in json.loads(_core.workload_kernels()))


def read_kernel(name: str) -> Kernel:
    """Return a kernel by its name.

    Raises
    ------
    routecast.errors.ModelProblem
        There is none of that name; the message tells the nearest.
    """
    known = {one.name: one for one in kernels()}
    if name not in known:
        what = f"is no kernel; {did_you_mean(name, known)}; `routecast workload list` tells what each does"
        raise ModelProblem(f"workload {name!r}", [Problem("", what)])
    return known[name]
