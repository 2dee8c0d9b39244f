"""What a ``*.experiment.toml`` says: pydantic models, one per table of the file.

An experiment names factors in a router (or test bed) file, the combinations of their levels that are tried, and what is
read from each trial. Quantities are texts with units; unknown keys are errors.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from routecast.evaluate.protocol import EvaluatorKind
from routecast.experiment.model import DesignKind
from routecast.quantity.fields import Duration
from routecast.quantity.file_model import FileModel

__all__ = ["DesignTable", "ExperimentFile", "ExperimentTable", "FactorTable", "ResponseTable"]

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
Words = Annotated[str, Field(min_length=1, max_length=80)]
Seed = Annotated[int, Field(ge=0, lt=2**63, strict=True)]


class _Table(FileModel):
    """A table of the file."""

    model_config = ConfigDict(str_strip_whitespace=True, populate_by_name=True)


class FactorTable(_Table):
    """``[[factor]]``: something that is varied."""

    name: Words = Field(description="What tables and figures call it.")
    path: str | None = Field(
        default=None, description="Where the value stands in the router or test bed file: pool[cpu].frequency."
    )
    paths: tuple[str, ...] = Field(default=(), description="Several places that get the same value.")
    levels: tuple[Any, ...] = Field(
        default=(), description="Values as the file would say them; or tables { label = …, set = { path = value, … } }."
    )
    between: tuple[Any, ...] = Field(
        default=(), description="Instead of levels: the least and the greatest value of a quantity."
    )
    log: bool = Field(default=False, description="Whether steps are ratios: halfway is the geometric mean.")
    quantity: bool | None = Field(
        default=None, description="Whether values between levels make sense; seen from the levels if not given."
    )


class DesignTable(_Table):
    """``[design]``: which combinations of levels are tried."""

    kind: Literal[DesignKind, "plackett_burman"] = Field(default="full", description="Which design.")
    replications: Annotated[int, Field(ge=1, le=100_000, strict=True)] = Field(
        default=1, description="How often each combination is run, with a seed of its own."
    )
    common_random_numbers: bool = Field(
        default=False,
        description="Whether all combinations of a replication have the same seed: differences vary less, and the "
        "errors of a replication hang together.",
    )
    generators: tuple[str, ...] = Field(default=(), description='fractional, central_composite: ["D=AB", …].')
    resolution: Annotated[int, Field(ge=3, le=12, strict=True)] | None = Field(
        default=None, description="fractional, instead of generators: the resolution that the fraction must reach."
    )
    runs: Annotated[int, Field(ge=2, le=65_536, strict=True)] | None = Field(
        default=None, description="fractional, instead of generators: in how many combinations."
    )
    shape: Literal["rotatable", "face_centred", "inscribed"] = Field(
        default="rotatable", description="central_composite: where the axial points stand."
    )
    centre_points: Annotated[int, Field(ge=0, le=1000, strict=True)] = Field(
        default=5, description="central_composite: how often the centre is tried."
    )
    points: Any = Field(
        default=None,
        description="latin_hypercube, sobol: how many points. listed: the points, each a table factor = level.",
    )
    spread: Literal["random", "even"] = Field(
        default="random", description="latin_hypercube: even moves the points until they fill the space better."
    )


class ResponseTable(_Table):
    """``[[response]]``: what is read from each trial."""

    name: Words = Field(description="What tables and figures call it.")
    of: str = Field(
        description="Where it stands in a trial: l2_bps, latency.p99_s, resource[cpu].utilisation_ratio; or "
        "capacity_pps, lossless_pps."
    )
    transform: Literal["none", "log", "reciprocal"] = Field(
        default="none", description="What is analysed instead of the value itself."
    )
    read_at: Duration | None = Field(
        default=None,
        description="forwarded_pps, l1_bps and l2_bps of simulations and on the wire: what one look at this time would "
        "have said, the mean since the start.",
    )


class ExperimentTable(_Table):
    """An experiment on a router that is given elsewhere."""

    name: Name = Field(description="Name of the experiment and of its folder of results.")
    title: str = Field(default="", description="Title of the report.")
    question: str = Field(default="", description="What the experiment answers, as a question.")
    evaluator: EvaluatorKind = Field(default="solve", description="Who answers.")
    duration: Duration = Field(default=0.1, validate_default=False, description="Length of each trial.")
    seed: Seed = Field(default=1, description="Seed of all randomness.")
    steady: bool = Field(
        default=False, description="Whether the transient is cut off by MSER-5 and each run is tested for drift."
    )
    overrides: dict[str, Any] = Field(
        default={}, alias="set", description="What differs from the router file in every run: path = value."
    )
    design: DesignTable = DesignTable()
    factor: tuple[FactorTable, ...] = Field(min_length=1, description="What is varied.")
    response: tuple[ResponseTable, ...] = Field(min_length=1, description="What is read from each trial.")


class ExperimentFile(ExperimentTable):
    """A whole ``*.experiment.toml``."""

    router: str | dict[str, Any] | None = Field(
        default=None, description="The router: a *.router.toml beside this file, or what one says."
    )
    testbed: str | dict[str, Any] | None = Field(
        default=None,
        description='For the evaluator measure: "namespaces", a *.testbed.toml beside this file, or what one says.',
    )
    load: dict[str, Any] | None = Field(
        default=None, description="With testbed: the offered load, as a router file has it."
    )
