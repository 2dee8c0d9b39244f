"""Fields of router files: texts with units, checked as they are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictInt, WithJsonSchema
from pydantic_core import PydanticCustomError

from routecast import quantity
from routecast.errors import QuantityProblem, RoutecastError
from routecast.load.frames import FrameMix

__all__ = [
    "BitRate",
    "ByteRate",
    "Cost",
    "CostPerByte",
    "Count",
    "Duration",
    "FileModel",
    "FrameCount",
    "FrameRate",
    "Frames",
    "Frequency",
    "Number",
    "Power",
    "Span",
    "TimePerByte",
]

_T = TypeVar("_T")


class FileModel(BaseModel):
    """A table in a file: nothing unknown, nothing changed after reading."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


def _read(parse: Callable[[str], _T], ready: type[_T] | None = None) -> BeforeValidator:
    # A file may hold anything here; the parsers say themselves that they want a text.
    def validate(value: Any) -> _T:
        if ready is not None and isinstance(value, ready):
            return value
        try:
            return parse(value)
        except QuantityProblem as problem:
            raise PydanticCustomError("quantity", "{message}", {"message": problem.message}) from None
        except RoutecastError as problem:
            raise PydanticCustomError("value", "{message}", {"message": str(problem)}) from None

    return BeforeValidator(validate)


def _text(unit: str, *examples: str) -> WithJsonSchema:
    return WithJsonSchema(
        {"type": "string", "description": f"Text with a unit: {unit}", "examples": list(examples)}
    )


def _span(text: str) -> float:
    return quantity.parse_duration_s(text, zero_allowed=True)


def _time_per_byte(text: str) -> float:
    cycles, seconds = quantity.parse_cost_per_byte(text)
    if cycles:
        raise QuantityProblem(text, f'got "{text}": a time per byte is wanted, such as "0.1 ns/B"')
    return seconds


BitRate = Annotated[float, _read(quantity.parse_bit_rate_bps), _text("bit/s", "10 Gbit/s")]
ByteRate = Annotated[float, _read(quantity.parse_byte_rate_bytes_per_s), _text("B/s", "8 GB/s")]
FrameRate = Annotated[float, _read(quantity.parse_rate_pps), _text("frames/s", "14.88 Mpps")]
Frequency = Annotated[float, _read(quantity.parse_frequency_hz), _text("Hz", "3.3 GHz")]
Duration = Annotated[float, _read(quantity.parse_duration_s), _text("s, > 0", "1 ms")]
Span = Annotated[float, _read(_span), _text("s, >= 0", "2 us")]
Power = Annotated[float, _read(quantity.parse_power_w), _text("W", "12.5 W")]
FrameCount = Annotated[int, _read(quantity.parse_frames), _text("frames", "512 frames")]
Cost = Annotated[
    tuple[float, float], _read(quantity.parse_cost), _text("cycles or s", "1800 cycles", "550 ns")
]
CostPerByte = Annotated[
    tuple[float, float],
    _read(quantity.parse_cost_per_byte),
    _text("cycles/B or s/B", "0.5 cycles/B", "0.1 ns/B"),
]
TimePerByte = Annotated[float, _read(_time_per_byte), _text("s/B", "0.1 ns/B")]
Frames = Annotated[
    FrameMix,
    _read(FrameMix.parse),
    _text("B, or a mix", "64 B", "IMIX", "genome aaafg", "7x64, 4x594, 1x1518"),
]
Number = Annotated[float, Field(allow_inf_nan=False, strict=True)]
Count = StrictInt
