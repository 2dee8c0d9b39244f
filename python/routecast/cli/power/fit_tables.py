"""What ``routecast power fit`` prints: parameters with intervals, errors by device."""

from __future__ import annotations

from collections.abc import Sequence

from routecast.power.fits import DeviceFit
from routecast.power.load_fit import ErrorSummary, Parameter
from routecast.report.tables import Column, Table, percent

__all__ = ["error_table", "parameter_table"]

_SHOWN = {
    "base_w": ("P_base", "W", 1.0),
    "port_w": ("P_port", "W", 1.0),
    "trx_in_w": ("P_trx_in", "W", 1.0),
    "trx_up_w": ("P_trx_up", "W", 1.0),
    "offset_w": ("P_offset", "W", 1.0),
    "bit_j": ("E_bit", "pJ/bit", 1e12),
    "packet_j": ("E_pkt", "nJ/packet", 1e9),
    "idle_w": ("idle", "W", 1.0),
    "full_w": ("full", "W", 1.0),
    "active_w": ("active", "W", 1.0),
    "max_pps": ("r_max", "kpps", 1e-3),
}


def parameter_table(fit: DeviceFit) -> Table:
    """Return the parameters of one device with their intervals."""
    return Table(
        name="parameters",
        title=fit.device,
        caption="Intervals are 95 %, where samples are more than parameters; a dash where none exists.",
        columns=(
            Column(title="Parameter", align="left"),
            Column(title="Value", form=".5g"),
            Column(title="From", form=".5g"),
            Column(title="To", form=".5g"),
            Column(title="Unit", align="left"),
        ),
        rows=tuple(_parameter_row(name, one) for name, one in fit.parameters.items()),
    )


def _parameter_row(name: str, parameter: Parameter) -> tuple[str, float, float, float, str]:
    words = []
    unit, scale = "W" if name.startswith("w_") else "", 1.0
    for word in name.split(" "):
        if word in _SHOWN:
            shown, unit, scale = _SHOWN[word]
            words.append(shown)
        else:
            words.append(f"at {word[2:]} %" if word.startswith("w_") else word)
    return (
        " ".join(words),
        parameter.value * scale,
        parameter.low * scale,
        parameter.high * scale,
        unit,
    )


def error_table(model: str, fits: Sequence[DeviceFit]) -> Table:
    """Return the errors on samples left out, by device and over all."""
    rows = [_error_row(one.device, one.fitted, one.error_ratio) for one in fits]
    strong: frozenset[int] = frozenset()
    if len(fits) > 1:
        everything = [error for one in fits for error in one.error_ratio]
        rows.append(_error_row("all", sum(one.fitted for one in fits), everything))
        strong = frozenset({len(rows) - 1})
    ways = "; ".join(dict.fromkeys(one.left_out for one in fits))
    return Table(
        name="errors",
        title=f"Model {model}: errors on samples that were not fitted",
        caption=f"{ways[:1].upper()}{ways[1:]}.",
        columns=(
            Column(title="Device", align="left"),
            Column(title="Fitted", form=".0f"),
            Column(title="Left out", form=".0f"),
            Column(title="Median", unit="%", form=percent),
            Column(title="90th", unit="%", form=percent),
            Column(title="Largest", unit="%", form=percent),
        ),
        rows=tuple(rows),
        strong=strong,
    )


def _error_row(name: str, fitted: int, errors: Sequence[float]) -> tuple[str, int, int, float, float, float]:
    summary = ErrorSummary.of(errors)
    return name, fitted, summary.count, summary.median_ratio, summary.p90_ratio, summary.max_ratio
