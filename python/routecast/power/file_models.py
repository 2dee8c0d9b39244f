"""Tables of power model files (``*.power.toml``), as people write them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from routecast.quantity import parse_bit_energy_j, parse_packet_energy_j, parse_power_term_w
from routecast.quantity.fields import (
    Count,
    FileModel,
    FrameRate,
    Frequency,
    Number,
    Power,
    parsed_by,
    text_schema,
)

__all__ = [
    "EquippedTable",
    "FormModel",
    "LinearModel",
    "MonotoneTable",
    "PiecewiseModel",
    "PolynomialTable",
    "PortClassTable",
    "PortModel",
    "RouterPowerModel",
    "StateTable",
]

SignedPower = Annotated[float, parsed_by(parse_power_term_w), text_schema("W", "0.9 W")]
BitEnergy = Annotated[float, parsed_by(parse_bit_energy_j), text_schema("J/bit", "3.2 pJ/bit")]
PacketEnergy = Annotated[float, parsed_by(parse_packet_energy_j), text_schema("J/packet", "13.4 nJ/packet")]
Ratio = Annotated[float, Field(ge=0.0, le=1.0, strict=True, allow_inf_nan=False)]


class PolynomialTable(FileModel):
    """A form function that is a polynomial."""

    kind: Literal["polynomial"]
    coefficients: list[Number] = Field(min_length=1, max_length=33, description="a_0, a_1, …")
    clamped: bool = Field(default=False, description="hold it within 0..1")
    source: str = ""


class MonotoneTable(FileModel):
    """A form function that is a monotone cubic B-spline."""

    kind: Literal["monotone"]
    knots: list[Ratio] = Field(min_length=8, max_length=200, description="four times 0, rising, four times 1")
    coefficients: list[Ratio] = Field(min_length=4, max_length=196, description="from 0 to 1, never falling")
    source: str = ""


def _form_kind(form: object) -> str | None:
    kind = form.get("kind") if isinstance(form, dict) else form if form == "published" else None
    return kind if isinstance(kind, str) else None


FormTable = Annotated[
    Annotated[Literal["published"], Tag("published")]
    | Annotated[PolynomialTable, Tag("polynomial")]
    | Annotated[MonotoneTable, Tag("monotone")],
    Discriminator(
        _form_kind,
        custom_error_type="value",
        custom_error_message='is no form function: it is "published", or a table whose kind is "polynomial" or '
        '"monotone"',
    ),
]


class _Model(FileModel):
    """What every power model file says."""

    name: str = Field(default="", description="what was modelled")
    scope: str = Field(default="server", description="what the watts cover: package, server, wall")
    source: str = Field(default="", description="where the figures come from")


class LinearModel(_Model):
    """Power linear in load."""

    model: Literal["linear"]
    idle: Power = Field(description='power without load, such as "80 W"')
    full: Power = Field(description='power at full load, such as "200 W"')


class FormModel(_Model):
    """Power that follows a form function between idle and active power (paper 003, eq. 5)."""

    model: Literal["form"]
    idle: Power = Field(description='power without load, such as "80 W"')
    active: Power = Field(description='power of a core that is never idle, such as "200 W"')
    form: FormTable = Field(default="published", description='"published", or a table')


class PiecewiseModel(_Model):
    """Power interpolated between loads."""

    model: Literal["piecewise"]
    interpolation: Literal["linear", "smooth"] = "smooth"
    load: list[Ratio] = Field(min_length=2, max_length=1000, description="loads, 0..1, rising")
    power: list[Power] = Field(min_length=2, max_length=1000, description='power at each, such as "80 W"')


class StateTable(FileModel):
    """A core at one frequency."""

    frequency: Frequency = Field(description='clock, such as "3 GHz"')
    idle: Power = Field(description='power of an idle core, such as "20 W"')
    active: Power = Field(description='power of a core that is never idle, such as "40 W"')
    max_rate: FrameRate = Field(description='greatest throughput of one core, such as "1040 kpps"')


class RouterPowerModel(_Model):
    """A software router by frequency and cores (paper 003, eqs. 5-10)."""

    model: Literal["router"]
    cores: Count = Field(default=1, ge=1, le=4096, description="cores of the machine")
    gains: list[Number] = Field(
        default_factory=lambda: [1.0], description="throughput of 1, 2, … cores over that of one, measured"
    )
    form: FormTable = Field(default="published", description='"published", or a table')
    state: list[StateTable] = Field(min_length=1, description="one for each frequency, rising")


class PortClassTable(FileModel):
    """Ports of one kind."""

    base: Power = Field(description='the bare device, such as "254 W"')
    port: SignedPower | None = None
    trx_in: SignedPower | None = None
    trx_up: SignedPower | None = None
    offset: SignedPower | None = None
    bit: BitEnergy | None = None
    packet: PacketEnergy | None = None


class EquippedTable(FileModel):
    """How many ports of a kind are plugged in, switched on, and up."""

    plugged: Count = Field(default=0, ge=0)
    enabled: Count = Field(default=0, ge=0)
    up: Count = Field(default=0, ge=0)


class PortModel(_Model):
    """Network gear with ports."""

    model: Literal["port"]
    scope: str = "wall"
    ports: dict[str, PortClassTable] = Field(min_length=1, description='by kind, such as "QSFP/PCC/100G"')
    equipped: dict[str, EquippedTable] = Field(default_factory=dict)
