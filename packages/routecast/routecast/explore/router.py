"""Live panels of router files: the controls, and the scenario of a setting."""

from __future__ import annotations

import math
import pathlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from routecast.evaluate.plain import plain
from routecast.evaluate.simulate.scenario import load_of, model_of
from routecast.evaluate.sweep import Routers, SweepAxis, even_flows
from routecast.explore.changes import Path, at_path
from routecast.explore.panel import Control, Panel, make_panel
from routecast.load.arrivals import Arrivals
from routecast.load.flows import FlowSet
from routecast.load.frames import RFC2544_FRAME_BYTES, FrameMix
from routecast.load.offered import OfferedLoad
from routecast.quantity.toml_file import fields_at
from routecast.quantity.value_list import Plain
from routecast.router.check_load import check_load
from routecast.router.files import router_table
from routecast.router.model import PerformanceState, RouterModel
from routecast.router.performance import at_frequency

__all__ = ["LINKS_BPS", "QUEUES", "core_counts", "lowered", "panel_of_router", "paths_of", "placed"]

_MAX_CORES = 48
_DENSE_CORES = 16
_MAX_FURTHER_CORES = 256
_MANY_COUNTS = 16
_MANY_TASKS = 500
_FLOWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
QUEUES = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
LINKS_BPS = (1e9, 10e9, 25e9, 40e9, 100e9, 200e9, 400e9)
_RATIOS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5)
_P_STATE = "P-state"
"""Control of the clock and its power together: it selects a performance state of a pool, not a value of the file."""


def panel_of_router(
    document: Mapping[str, Any],
    varied: Sequence[SweepAxis] = (),
    *,
    counts: Sequence[int] = (),
    frames: str | None = None,
    subject: str,
    folder: pathlib.Path | None = None,
) -> Panel:
    """Return the panel of a router file.

    ``document`` is the content of the file. ``varied`` has further fields with their values, which replace controls of
    the same key. ``counts``: further numbers of cores, ``frames``: further frames. ``subject`` and ``folder`` are those
    of :func:`routecast.router.files.parse_router`. Raises RoutecastError: the file makes no valid router.
    """
    routers = Routers(document, subject=subject, folder=folder, frames=None)
    model, load = routers.of({})
    load = load or OfferedLoad(rate_pps=1.0, flows=even_flows(1, len(model.ports)))
    controls = {control.key: control for control in _controls(document, model, load, subject, counts, frames)}
    for axis in varied:
        controls[axis.key] = placed(axis.key, axis.key, axis.values, axis.values[0], paths=paths_of(document, axis.key))

    def lower(settings: Mapping[str, Plain]) -> dict[str, Any]:
        file_settings = {key: value for key, value in settings.items() if key not in ("flows", "arrivals", _P_STATE)}
        changed_model, _ = routers.of(file_settings)
        if _P_STATE in settings:
            changed_model = at_frequency(changed_model, float(settings[_P_STATE]))
        return lowered(changed_model, _offered(load, changed_model, settings))

    is_large = len(model.tasks) > _MANY_TASKS
    too_large = f"clock, queue, link, distribution, cost: {len(model.tasks)} task units are too many for each position"
    return make_panel(lower, tuple(controls.values()), left_out=[too_large] if is_large else [])


def lowered(model: RouterModel, load: OfferedLoad) -> dict[str, Any]:
    """Return the scenario at one frame per second, so that its rates are shares, with further data for the page."""
    check_load(model, load)
    is_trace = load.arrivals.kind == "trace"
    return {**_router_data(model), "load": load_of(load if is_trace else load.at(1.0))}


@lru_cache(maxsize=4)
def _router_data(model: RouterModel) -> dict[str, Any]:
    """Return the part of the scenario that does not depend on the load; cached, because loads change more often."""
    return {
        "model": model_of(model),
        "names": {
            "tasks": [task.name for task in model.tasks],
            "pools": [pool.name for pool in model.pools],
            "ports": [port.name for port in model.ports],
            "threads": list(dict.fromkeys(task.thread for task in model.tasks if task.thread)),
        },
        "watts": [None if pool.power is None else _watts(plain(pool.power)) for pool in model.pools],
    }


def _watts(power: Any) -> dict[str, Any]:
    return {
        "active_w": power["active_w"],
        "idle_w": power["idle_w"],
        "base_w": power["base_w"],
        "sleep_w": [state["power_w"] for state in power["sleep"]],
        "wake_j": [state["wake_energy_j"] for state in power["sleep"]],
    }


def _offered(load: OfferedLoad, model: RouterModel, settings: Mapping[str, Plain]) -> OfferedLoad:
    if load.arrivals.kind == "trace":
        return load
    ports = len(model.ports)
    changes: dict[str, Any] = {}
    if "frame" in settings:
        changes["frames"] = FrameMix.parse(str(settings["frame"]))
    if "flows" in settings and int(settings["flows"]) != len(load.flows.flows):
        changes["flows"] = _flows_of_same_kind(load.flows, int(settings["flows"]), ports)
    if "arrivals" in settings and settings["arrivals"] != _arrivals_name(load.arrivals):
        changes["arrivals"] = _ARRIVALS[str(settings["arrivals"])]
    return replace(load, **changes)


def _flows_of_same_kind(flows: FlowSet, count: int, ports: int) -> FlowSet:
    """Return a number of flows, crafted or random like those of the file."""
    crafted = FlowSet.crafted(len(flows.flows), ports=ports)
    return FlowSet.crafted(count, ports=ports) if flows.flows == crafted.flows else FlowSet.random(count, ports=ports)


_ARRIVALS = {
    "even gaps": Arrivals.cbr(),
    "Poisson": Arrivals.poisson(),
    "bursts": Arrivals.on_off(burst_frames=32, peak_ratio=8.0),
}
_ARRIVAL_TABLES = ({"kind": "cbr"}, {"kind": "poisson"}, {"kind": "on_off", "burst_frames": 32, "peak_ratio": 8.0})


def _arrivals_name(arrivals: Arrivals) -> str:
    return next((name for name, process in _ARRIVALS.items() if process == arrivals), "as in the file")


def _controls(
    document: Mapping[str, Any],
    model: RouterModel,
    load: OfferedLoad,
    subject: str,
    counts: Sequence[int],
    frames: str | None,
) -> Iterator[Control]:
    file_fields = fields_at(router_table(document, subject), ())
    cores = _cores(document, file_fields, model, counts)
    if cores is not None:
        yield cores
    if load.arrivals.kind != "trace":
        sizes = [*(f"{size} B" for size in RFC2544_FRAME_BYTES), "IMIX"]
        sizes += [frames] if frames is not None and frames not in sizes else []
        yield placed("frame", "frames", sizes, load.frames.name, paths=[("load", "frames")])
        flow_counts = sorted({*_FLOWS, len(load.flows.flows), *_even_counts(cores, len(model.ports))})
        yield placed("flows", "flows", flow_counts, len(load.flows.flows), paths=[("load", "flows", "count")])
        yield placed(
            "arrivals",
            "arrivals",
            list(_ARRIVALS),
            _arrivals_name(load.arrivals),
            paths=[("load", "arrivals")],
            written=_ARRIVAL_TABLES,
        )
    if len(model.tasks) > _MANY_TASKS:
        return
    yield from _clocks(document, file_fields, model)
    yield from _queue(document, file_fields, model)
    yield from _link(document, file_fields, model)
    if "distribution" in file_fields:
        kinds = ["rss", "round_robin", "per_flow"]
        current = str(document.get("distribution", "rss"))
        yield placed("distribution", "distribution", kinds, current, paths=[("distribution",)])
    yield from _cost(document, file_fields)


def paths_of(document: Mapping[str, Any], key: str) -> list[Path]:
    """Return the paths of a key such as ``pool[cpu].units`` or ``task[*].queue`` in a router document.

    Examples
    --------
    >>> paths_of({"pool": [{"name": "bus"}, {"name": "cpu"}]}, "pool[cpu].units")
    [('pool', 1, 'units')]
    """
    paths: list[Path] = [()]
    for name, entry in re.findall(r"([^.\[\]]+)(?:\[([^\]]*)\])?\.?", key):
        paths = [(*path, name) for path in paths]
        if entry:
            paths = [(*path, index) for path in paths for index in _indices(document, path, entry)]
    return paths


def _indices(document: Mapping[str, Any], path: Path, entry: str) -> list[int]:
    entries = at_path(document, path)
    indices = [index for index, table in enumerate(entries) if isinstance(table, dict) and table.get("name") == entry]
    return list(range(len(entries))) if entry == "*" else indices or [int(entry)]


def placed(
    key: str,
    label: str,
    values: Sequence[Plain],
    current: Plain,
    texts: Sequence[str] = (),
    *,
    paths: Sequence[Path] = (),
    written: Sequence[Any] = (),
) -> Control:
    """Return a control that starts at ``current``, which becomes the first value if it is not among the values.

    ``written`` has the values that the positions write at the paths; if empty, they write ``values``.
    """
    texts, written = list(texts or map(str, values)), list(written or values)
    if current not in values:
        values, texts, written = [current, *values], [str(current), *texts], [None, *written]
    return Control(
        key=key,
        label=label,
        values=tuple(values),
        texts=tuple(texts),
        at=list(values).index(current),
        sets=tuple((path, tuple(written)) for path in paths),
    )


def _cores(
    document: Mapping[str, Any], file_fields: Mapping[str, Any], model: RouterModel, further: Sequence[int]
) -> Control | None:
    for key in ("cores", "engines", "machines"):
        count = document.get(key)
        if key in file_fields and isinstance(count, int) and not isinstance(count, bool):
            own = range(1, min(max(8, 2 * count), _MAX_CORES) + 1)
            return placed(key, key, core_counts(own, further, keep=(count,)), count, paths=[(key,)])
    pinned = {task.needs[0].pool for task in model.tasks if task.needs and task.pin}
    if "pool" in file_fields:
        for pool in model.pools:
            if pool.units > 1 and pool.name not in pinned and not pool.unit_speed_ratio:
                own = range(1, min(2 * pool.units, _MAX_CORES) + 1)
                key = f"pool[{pool.name}].units"
                values = core_counts(own, (), keep=(pool.units,))
                return placed(key, f"units of {pool.name}", values, pool.units, paths=paths_of(document, key))
    return None


def core_counts(own: Sequence[int], further: Sequence[int], *, keep: Sequence[int]) -> list[int]:
    """Return the numbers of cores of a control, in ascending order: a panel's own, and others that are asked for.

    Each count adds a scenario to the page. Of counts above 16 it therefore takes some multiples of 8, the largest one,
    and those to ``keep``.

    Examples
    --------
    >>> core_counts(range(1, 4), range(1, 41), keep=(21,))[-6:]
    [15, 16, 21, 24, 32, 40]
    """
    counts = sorted({*own, *(count for count in further if count <= _MAX_FURTHER_CORES), *keep})
    step = 8 * max(1, math.ceil(counts[-1] / (8 * _MANY_COUNTS)))
    return [count for count in counts if count <= _DENSE_CORES or count % step == 0 or count in (counts[-1], *keep)]


def _even_counts(cores: Control | None, ports: int) -> set[int]:
    if cores is None or cores.key != "cores":
        return set()
    return {len(even_flows(int(count), ports).flows) for count in cores.values}


def _clocks(document: Mapping[str, Any], file_fields: Mapping[str, Any], model: RouterModel) -> Iterator[Control]:
    fields: dict[str, tuple[str, Path]] = {}
    if "frequency" in file_fields and model.pools:
        fields[model.pools[0].name] = ("frequency", ())
    elif "pool" in file_fields:
        fields = {
            pool.name: (f"pool[{pool.name}].frequency", ("pool", index)) for index, pool in enumerate(model.pools)
        }
    for pool in model.pools:
        if pool.name not in fields or not pool.frequency_hz:
            continue
        key, path = fields[pool.name]
        label = "clock" if len(fields) == 1 else f"clock of {pool.name}"
        states = pool.power.performance if pool.power else ()
        if pool.frequency_hz in (state.frequency_hz for state in states):
            yield _p_states(label, pool.frequency_hz, states, path)
        else:
            texts = [f"{ratio * pool.frequency_hz / 1e9:.6g} GHz" for ratio in _RATIOS]
            yield placed(key, label, texts, f"{pool.frequency_hz / 1e9:.6g} GHz", paths=paths_of(document, key))


def _p_states(label: str, frequency_hz: float, states: Sequence[PerformanceState], path: Path) -> Control:
    sets = (
        ((*path, "frequency"), tuple(f"{state.frequency_hz!r} Hz" for state in states)),
        ((*path, "power", "active"), tuple(f"{state.active_w!r} W" for state in states)),
        ((*path, "power", "idle"), tuple(f"{state.idle_w!r} W" for state in states)),
    )
    values = [state.frequency_hz for state in states]
    texts = [f"{hz / 1e9:.4g} GHz" for hz in values]
    return replace(placed(_P_STATE, label, values, frequency_hz, texts), sets=sets)


def _queue(document: Mapping[str, Any], file_fields: Mapping[str, Any], model: RouterModel) -> Iterator[Control]:
    lengths = {task.queue_frames for task in model.tasks if task.needs}
    key = next(
        (name for name in ("queue", "ring") if name in file_fields), "task[*].queue" if "task" in file_fields else None
    )
    if key is not None and len(lengths) == 1:
        length = lengths.pop()
        texts = [f"{count} frames" for count in sorted({*QUEUES, length})]
        yield placed(key, "queue", texts, f"{length} frames", paths=paths_of(document, key))


def _link(document: Mapping[str, Any], file_fields: Mapping[str, Any], model: RouterModel) -> Iterator[Control]:
    rates = {port.link_bps for port in model.ports}
    key = "link" if "link" in file_fields else "port[*].link" if "port" in file_fields else None
    if key is not None and len(rates) == 1:
        texts = [f"{bps / 1e9:.12g} Gbit/s" for bps in sorted({*LINKS_BPS, *rates})]
        yield placed(key, "link", texts, f"{rates.pop() / 1e9:.12g} Gbit/s", paths=paths_of(document, key))


def _cost(document: Mapping[str, Any], file_fields: Mapping[str, Any]) -> Iterator[Control]:
    """Yield the control of the cost of a frame, if the file has a single cost."""
    service = document.get("service")
    key, text = ("service.per_packet", service.get("per_packet")) if isinstance(service, dict) else ("per_packet", None)
    text = document.get("per_packet") if text is None and "per_packet" in file_fields else text
    if not isinstance(text, str):
        return
    number, _, unit = text.strip().partition(" ")
    try:
        amount = float(number.replace("_", ""))
    except ValueError:
        return
    texts = [f"{ratio * amount:.6g} {unit}".strip() for ratio in _RATIOS]
    yield placed(key, "cost of a frame", texts, f"{amount:.6g} {unit}".strip(), paths=[tuple(key.split("."))])
