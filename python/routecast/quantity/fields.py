"""Fields of files that people write: texts with units, checked as they are read."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictInt, WithJsonSchema
from pydantic_core import PydanticCustomError

from routecast import quantity
from routecast.errors import QuantityProblem, RoutecastError

__all__ = [
    "BitRate",
    "ByteRate",
    "Cost",
    "CostPerByte",
    "Count",
    "Duration",
    "Energy",
    "FileModel",
    "FrameCount",
    "FrameRate",
    "Frequency",
    "Number",
    "Power",
    "Size",
    "Span",
    "TimePerByte",
    "TransferRate",
    "Voltage",
    "parsed_by",
    "text_schema",
]

_TEXTS_KEPT = 256

_T = TypeVar("_T")


class FileModel(BaseModel):
    """A table in a file: nothing unknown, nothing changed after reading."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


def parsed_by(parse: Callable[[str], _T], ready: type[_T] | None = None) -> BeforeValidator:
    """Return the validator of a field that ``parse`` reads; a value of type ``ready`` is taken as it is."""
    # Runs of an experiment say the same texts again and again; what is read from a text does not change.
    known = lru_cache(maxsize=_TEXTS_KEPT)(parse)

    # A file may hold anything here; the parsers say themselves that they want a text.
    def validate(value: Any) -> _T:
        if ready is not None and isinstance(value, ready):
            return value
        try:
            return known(value) if isinstance(value, str) else parse(value)
        except QuantityProblem as problem:
            raise PydanticCustomError("quantity", "{message}", {"message": problem.message}) from None
        except RoutecastError as problem:
            raise PydanticCustomError("value", "{message}", {"message": str(problem)}) from None

    return BeforeValidator(validate)


def text_schema(unit: str, *examples: str) -> WithJsonSchema:
    """Return the JSON Schema of a field that is a text with a unit."""
    return WithJsonSchema({"type": "string", "description": f"Text with a unit: {unit}", "examples": list(examples)})


def _span(text: str) -> float:
    return quantity.parse_duration_s(text, zero_allowed=True)


def _time_per_byte(text: str) -> float:
    cycles, seconds = quantity.parse_cost_per_byte(text)
    if cycles:
        raise QuantityProblem(text, f'got "{text}": a time per byte is wanted, such as "0.1 ns/B"')
    return seconds


BitRate = Annotated[float, parsed_by(quantity.parse_bit_rate_bps), text_schema("bit/s", "10 Gbit/s")]
ByteRate = Annotated[float, parsed_by(quantity.parse_byte_rate_bytes_per_s), text_schema("B/s", "8 GB/s")]
FrameRate = Annotated[float, parsed_by(quantity.parse_rate_pps), text_schema("frames/s", "14.88 Mpps")]
Frequency = Annotated[float, parsed_by(quantity.parse_frequency_hz), text_schema("Hz", "3.3 GHz")]
Duration = Annotated[float, parsed_by(quantity.parse_duration_s), text_schema("s, > 0", "1 ms")]
Span = Annotated[float, parsed_by(_span), text_schema("s, >= 0", "2 us")]
Energy = Annotated[float, parsed_by(quantity.parse_energy_j), text_schema("J", "900 J")]
Power = Annotated[float, parsed_by(quantity.parse_power_w), text_schema("W", "12.5 W")]
Voltage = Annotated[float, parsed_by(quantity.parse_voltage_v), text_schema("V", "0.9 V")]
Size = Annotated[float, parsed_by(quantity.parse_size_bytes), text_schema("B, > 0", "32 KiB")]
TransferRate = Annotated[float, parsed_by(quantity.parse_transfer_rate_per_s), text_schema("transfers/s", "1333 MT/s")]
FrameCount = Annotated[int, parsed_by(quantity.parse_frames), text_schema("frames", "512 frames")]
Cost = Annotated[
    tuple[float, float], parsed_by(quantity.parse_cost), text_schema("cycles or s", "1800 cycles", "550 ns")
]
CostPerByte = Annotated[
    tuple[float, float],
    parsed_by(quantity.parse_cost_per_byte),
    text_schema("cycles/B or s/B", "0.5 cycles/B", "0.1 ns/B"),
]
TimePerByte = Annotated[float, parsed_by(_time_per_byte), text_schema("s/B", "0.1 ns/B")]
Number = Annotated[float, Field(allow_inf_nan=False, strict=True)]
Count = StrictInt
