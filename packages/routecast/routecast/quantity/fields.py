"""Types of the fields of files that people write: texts with units, checked while they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Annotated, Any

from routecast import quantity
from routecast.errors import QuantityProblem, RoutecastError

__all__ = [
    "BitRate",
    "ByteRate",
    "Bytes",
    "CostCycles",
    "CostPerByteCycles",
    "CostPerByteSeconds",
    "CostSeconds",
    "Count",
    "Cycles",
    "Duration",
    "Energy",
    "Factor",
    "FrameCount",
    "FrameRate",
    "Frequency",
    "Length",
    "Name",
    "Natural",
    "Number",
    "Parsed",
    "Percentage",
    "Power",
    "Ratio",
    "Share",
    "Size",
    "Span",
    "TimePerByte",
    "TransferRate",
    "Voltage",
    "WaitingFrames",
    "WholeSize",
    "Within",
]

_MAX_CACHED_TEXTS = 256
_MAX_EXACT_INTEGER = 1e15
"""Whole numbers below this bound are written without a decimal point."""


class Parsed:
    """Annotation of a field whose value files give as a text that ``parse`` reads.

    A value that already has the type ``parsed_type`` is accepted unchanged. ``limits`` (``ge``, ``gt``, ``le``) are the
    range of the values that ``parse`` returns. Pydantic reads files and calls this class; this module does not import
    pydantic.
    """

    __slots__ = ("_cached_parse", "_schema", "limits", "parse", "parsed_type", "unit")

    def __init__(
        self,
        parse: Callable[[str], Any],
        unit: str = "",
        *examples: str,
        parsed_type: type | None = None,
        symbol: str = "",
        **limits: float,
    ) -> None:
        self.parse = parse
        self.parsed_type = parsed_type
        self.limits = limits
        # The runs of an experiment contain the same texts many times.
        self._cached_parse = lru_cache(maxsize=_MAX_CACHED_TEXTS)(parse)
        text = {"type": "string", "description": f"Text with a unit: {unit}", "examples": list(examples)}
        self._schema = text if unit else {}
        symbol = symbol or unit.partition(",")[0]
        self.unit = {"frames/s": "pps"}.get(symbol, symbol)

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Any]) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_before_validator_function(self.validate, handler(source))

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return dict(self._schema) if self._schema else handler(schema)

    def write(self, value: Any) -> str:
        """Return the text that :attr:`parse` reads as this value."""
        return f"{int(value) if value == int(value) and abs(value) < _MAX_EXACT_INTEGER else value!r} {self.unit}"

    def validate(self, value: Any) -> Any:
        """Read a value of a file; the parser refuses values that are not texts."""
        from pydantic_core import PydanticCustomError

        if self.parsed_type is not None and isinstance(value, self.parsed_type):
            return value
        try:
            return self._cached_parse(value) if isinstance(value, str) else self.parse(value)
        except QuantityProblem as problem:
            raise PydanticCustomError("quantity", "{message}", {"message": problem.message}) from None
        except RoutecastError as problem:
            raise PydanticCustomError("value", "{message}", {"message": str(problem)}) from None


class _Strict:
    """Annotation of ``float`` or ``int`` that allows finite numbers, but no texts and no Booleans."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Any]) -> Any:
        number = handler(source)
        number["strict"] = True
        if source is float:
            number["allow_inf_nan"] = False
        return number


class Within:
    """Annotation that limits the range of a number, by pydantic's names (``ge``, ``gt``, ``le``)."""

    __is_annotated_types_grouped_metadata__ = True

    def __init__(self, **limits: float) -> None:
        self.limits = limits

    def __iter__(self) -> Iterator[Any]:
        import annotated_types  # pydantic understands these; imported only where files are read

        names = {"ge": annotated_types.Ge, "gt": annotated_types.Gt, "le": annotated_types.Le}
        return (names[name](limit) for name, limit in self.limits.items())


class Percentage:
    """Annotation of a share that files write as a number, or as a text in percent: ``0.001`` or ``"0.1 %"``."""

    __slots__ = ()

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Any]) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_before_validator_function(_number_of_percent, handler(source))

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return {"anyOf": [handler(schema), {"type": "string", "pattern": r"^\s*[0-9.]+\s*%\s*$", "examples": ["5 %"]}]}


def _number_of_percent(value: object) -> object:
    """Return the number of a text in percent; the checks of the field refuse what else is no number."""
    if not (isinstance(value, str) and value.rstrip().endswith("%")):
        return value
    from pydantic_core import PydanticCustomError

    try:
        return quantity.parse_ratio(value, zero_allowed=True, one_allowed=True, beyond_one=True)
    except QuantityProblem as problem:
        raise PydanticCustomError("quantity", "{message}", {"message": problem.message}) from None


class Length:
    """Annotation that limits the number of entries of a list or table."""

    def __init__(self, min_entries: int = 0, max_entries: int | None = None) -> None:
        self._bounds = {"min_length": min_entries} | ({"max_length": max_entries} if max_entries is not None else {})

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Any]) -> Any:
        return handler(source) | self._bounds


def _span(text: str) -> float:
    return quantity.parse_duration_s(text, zero_allowed=True)


def _time_per_byte(text: str) -> float:
    try:
        cycles, seconds = quantity.parse_cost_per_byte(text)
    except QuantityProblem as problem:
        message = problem.message.replace('a number of cycles per byte such as "1.5 cycles/B" or ', "")
        raise QuantityProblem(problem.text, message) from None
    if cycles:
        raise QuantityProblem(text, f'got "{text}": give a time per byte, such as "0.1 ns/B"')
    return seconds


BitRate = Annotated[float, Parsed(quantity.parse_bit_rate_bps, "bit/s", "10 Gbit/s", gt=0.0)]
ByteRate = Annotated[float, Parsed(quantity.parse_byte_rate_bytes_per_s, "B/s", "8 GB/s", gt=0.0)]
FrameRate = Annotated[float, Parsed(quantity.parse_rate_pps, "frames/s", "14.88 Mpps", gt=0.0)]
Frequency = Annotated[float, Parsed(quantity.parse_frequency_hz, "Hz", "3.3 GHz", gt=0.0)]
Duration = Annotated[float, Parsed(quantity.parse_duration_s, "s, > 0", "1 ms", gt=0.0)]
Span = Annotated[float, Parsed(_span, "s, >= 0", "2 us", ge=0.0)]
Energy = Annotated[float, Parsed(quantity.parse_energy_j, "J", "900 J", ge=0.0)]
Power = Annotated[float, Parsed(quantity.parse_power_w, "W", "12.5 W", ge=0.0)]
Voltage = Annotated[float, Parsed(quantity.parse_voltage_v, "V", "0.9 V", gt=0.0)]
Size = Annotated[float, Parsed(quantity.parse_size_bytes, "B, > 0", "32 KiB", gt=0.0)]
WholeSize = Annotated[int, Parsed(quantity.parse_size_bytes, "B, > 0", "32 KiB", ge=0)]
Cycles = Annotated[float, Parsed(quantity.parse_cycles, "cycles, >= 0", "120 cycles", ge=0.0)]
Name = Annotated[str, Length(1, 100)]
Bytes = Annotated[int, Parsed(lambda text: round(quantity.parse_size_bytes(text)), "B, > 0", "32 KiB", ge=0)]
TransferRate = Annotated[float, Parsed(quantity.parse_transfer_rate_per_s, "transfers/s", "1333 MT/s", gt=0.0)]
FrameCount = Annotated[int, Parsed(quantity.parse_frames, "frames", "512 frames", ge=1)]
WaitingFrames = Annotated[int, Parsed(quantity.parse_waiting_frames, "frames", "512 frames", ge=0)]
_COST = ("cycles or s", "1800 cycles", "550 ns")
_COST_PER_BYTE = ("cycles/B or s/B", "0.5 cycles/B", "0.1 ns/B")
CostCycles = Annotated[float, Parsed(lambda text: quantity.parse_cost(text)[0], *_COST, symbol="cycles", ge=0.0)]
CostSeconds = Annotated[float, Parsed(lambda text: quantity.parse_cost(text)[1], *_COST, symbol="s", ge=0.0)]
CostPerByteCycles = Annotated[
    float, Parsed(lambda text: quantity.parse_cost_per_byte(text)[0], *_COST_PER_BYTE, symbol="cycles/B", ge=0.0)
]
CostPerByteSeconds = Annotated[
    float, Parsed(lambda text: quantity.parse_cost_per_byte(text)[1], *_COST_PER_BYTE, symbol="s/B", ge=0.0)
]
TimePerByte = Annotated[float, Parsed(_time_per_byte, "s/B", "0.1 ns/B", ge=0.0)]
Number = Annotated[float, _Strict()]
Factor = Annotated[Number, Within(gt=0.0)]
Share = Annotated[Number, Within(ge=0.0)]
Ratio = Annotated[Number, Within(ge=0.0, le=1.0), Percentage()]
Count = Annotated[int, _Strict()]
Natural = Annotated[Count, Within(ge=0)]
