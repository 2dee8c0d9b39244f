"""What a look saw, as a file: for support, and to come to the same answer without the router (``--replay``)."""

from __future__ import annotations

import base64
import json
import math
import platform
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from routecast.errors import QuantityProblem
from routecast.lab.watch._deferral import NapiInstance
from routecast.lab.watch._looking import Look, Part, Thread
from routecast.lab.watch._saturation import RECORD

__all__ = ["LookRecord", "ProbeLook", "read_recording", "write_recording"]

_KIND, _VERSION = "routecast watch", 1
_MOST_BYTES: Final = 1 << 28


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeLook:
    """A step of a probe: the instance that packets gathered at (None: all), for how long at most, and what was seen."""

    napi_id: int | None
    wait_s: float
    look: Look


@dataclass(frozen=True, slots=True, kw_only=True)
class LookRecord:
    """All that an answer is made of: the look, then the steps of a probe, if there was one.

    ``lost``: frames lost meanwhile, by place; ``frame_bytes``: mean of those received, with their checksum, NaN without
    any; ``ring_frames``: of a receive ring; ``notes``: what was done or left; ``kernel``: its release.
    """

    interface: str
    netns: str | None
    instances: tuple[NapiInstance, ...]
    look: Look
    probe: tuple[ProbeLook, ...]
    lost: dict[str, int]
    frame_bytes: float
    ring_frames: int
    is_restored: bool
    notes: tuple[str, ...]
    kernel: str = platform.release()


def write_recording(recording: LookRecord, path: Path) -> None:
    """Write a recording as JSON; the records of polls are in it compressed."""
    document = {
        "kind": _KIND,
        "version": _VERSION,
        "kernel": recording.kernel,
        "interface": recording.interface,
        "netns": recording.netns,
        "instances": [
            {"id": each.id, "thread_pid": each.thread_pid, "settings": list(each.settings)}
            for each in recording.instances
        ],
        "look": _plain(recording.look),
        "probe": [
            {"napi_id": step.napi_id, "wait_s": step.wait_s, "look": _plain(step.look)} for step in recording.probe
        ],
        "lost": recording.lost,
        "frame_bytes": recording.frame_bytes if math.isfinite(recording.frame_bytes) else None,
        "ring_frames": recording.ring_frames,
        "is_restored": recording.is_restored,
        "notes": list(recording.notes),
    }
    path.write_text(json.dumps(document) + "\n", encoding="utf-8")


def read_recording(path: Path) -> LookRecord:
    """Read a recording.

    Raises QuantityProblem: the file is none, is damaged, or is of another version.
    """
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise QuantityProblem(str(path), f"{path}: {path.stat().st_size} bytes are too many for a recording")
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise QuantityProblem(str(path), f"{path}: {problem.strerror or problem}") from problem
    except ValueError as problem:
        raise QuantityProblem(str(path), f"{path} is no recording of a watch: {problem}") from problem
    if not isinstance(document, dict) or document.get("kind") != _KIND:
        raise QuantityProblem(str(path), f"{path} is no recording of a watch: write one with --record FILE")
    if document.get("version") != _VERSION:
        message = f"{path} has version {document.get('version')} of recordings; this routecast reads {_VERSION}"
        raise QuantityProblem(str(path), message)
    try:
        return LookRecord(
            interface=document["interface"],
            netns=document["netns"],
            instances=tuple(
                NapiInstance(id=each["id"], thread_pid=each["thread_pid"], settings=tuple(each["settings"]))
                for each in document["instances"]
            ),
            look=_look(document["look"]),
            probe=tuple(
                ProbeLook(napi_id=step["napi_id"], wait_s=float(step["wait_s"]), look=_look(step["look"]))
                for step in document["probe"]
            ),
            lost={str(place): int(count) for place, count in document["lost"].items()},
            frame_bytes=math.nan if document["frame_bytes"] is None else float(document["frame_bytes"]),
            ring_frames=int(document["ring_frames"]),
            is_restored=bool(document["is_restored"]),
            notes=tuple(document["notes"]),
            kernel=document["kernel"],
        )
    except (KeyError, TypeError, ValueError, AttributeError, zlib.error) as problem:
        raise QuantityProblem(str(path), f"{path} is damaged: {type(problem).__name__} {problem}") from problem


def _plain(look: Look) -> dict[str, Any]:
    return {
        "duration_s": look.duration_s,
        "own_ns": look.own_ns,
        "own_runs": look.own_runs,
        "parts": [
            {"is_thread": part.is_thread, "poller": part.poller, "napi_id": part.napi_id, "counts": dict(part.counts)}
            for part in look.parts
        ],
        "records": base64.b64encode(zlib.compress(look.records.tobytes())).decode("ascii"),
        "threads": [
            {"pid": pid, "run_s": each.run_s, "waited_s": each.waited_s, "processor": each.processor}
            for pid, each in look.threads.items()
        ],
        "chunks": [
            [[is_thread, number, count] for (is_thread, number), count in chunk.items()] for chunk in look.chunks
        ],
    }


def _look(document: dict[str, Any]) -> Look:
    unpacked = zlib.decompressobj().decompress(base64.b64decode(document["records"], validate=True), _MOST_BYTES)
    if not float(document["duration_s"]) > 0.0:
        raise ValueError(f"a look of {document['duration_s']} s")
    return Look(
        duration_s=float(document["duration_s"]),
        own_ns=int(document["own_ns"]),
        own_runs=int(document["own_runs"]),
        parts=tuple(
            Part(
                is_thread=bool(part["is_thread"]),
                poller=int(part["poller"]),
                napi_id=int(part["napi_id"]),
                counts=part["counts"],
            )
            for part in document["parts"]
        ),
        records=np.frombuffer(unpacked, dtype=RECORD),
        threads={
            int(each["pid"]): Thread(run_s=each["run_s"], waited_s=each["waited_s"], processor=each["processor"])
            for each in document["threads"]
        },
        chunks=tuple(
            {(bool(is_thread), int(number)): int(count) for is_thread, number, count in chunk}
            for chunk in document["chunks"]
        ),
    )
