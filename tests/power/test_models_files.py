"""Power models as files: written models read back as the same values, and messages name the places of faults."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from routecast.errors import FileProblem, ModelProblem
from routecast.power import OperatingPoint, PowerModel
from routecast.power.curve import FormPower, LinearPower, PiecewisePower
from routecast.power.files import (
    parse_power_model,
    power_model_document,
    power_schema,
    read_power_model,
    write_power_model,
)
from routecast.power.form import PolynomialForm
from routecast.power.load_fit import monotone_of
from routecast.power.port import Equipped, PortClass, PortPower
from routecast.power.software_router import CoreAtFrequency, SoftwareRouterPower

MODELS: list[PowerModel] = [
    LinearPower(idle_w=80.1, full_w=200.3, scope="wall"),
    FormPower(idle_w=18.0, active_w=40.0),
    FormPower(idle_w=18.0, active_w=40.0, form=monotone_of()),
    FormPower(idle_w=18.0, active_w=40.0, form=PolynomialForm(coefficients=(0.0, 1.5, -0.5), clamped=True)),
    PiecewisePower(load_ratio=(0.0, 0.1, 1.0), power_w_at=(80.0, 101.7, 200.0), interpolation="linear"),
    SoftwareRouterPower(
        states=(
            CoreAtFrequency(frequency_hz=2e9, idle_w=15.0, active_w=25.0, max_pps=750e3),
            CoreAtFrequency(frequency_hz=3e9, idle_w=18.0, active_w=40.0, max_pps=1040e3),
        ),
        cores=4,
        gains=(1.0, 1.5),
    ),
    PortPower(
        device="switch",
        classes={"QSFP/PCC/100G": PortClass(base_w=253.9, port_w=0.93, trx_up_w=-0.04, bit_j=3.2e-12)},
        equipped={"QSFP/PCC/100G": Equipped(plugged=4, enabled=4, up=2)},
        source="made up",
    ),
]


@pytest.mark.parametrize("ending", [".power.toml", ".json"])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_model_that_is_written_reads_back_as_it_was(model: PowerModel, ending: str, tmp_path: Path) -> None:
    file = tmp_path / f"model{ending}"
    write_power_model(model, file)
    assert read_power_model(file) == model


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_what_is_written_fits_the_schema(model: PowerModel) -> None:
    document = power_model_document(model)
    jsonschema.validate(json.loads(json.dumps(document)), power_schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**document, "warmth": 3}, power_schema())


def test_a_file_of_a_port_model_has_prefixes_where_people_write_them() -> None:
    model = parse_power_model(
        """
        model = "port"
        name = "switch"
        [ports."QSFP/PCC/100G"]
        base = "254 W"
        trx_up = "-40 mW"
        bit = "3.2 pJ/bit"
        packet = "13.4 nJ/packet"
        """
    )
    assert isinstance(model, PortPower)
    ports = model.port_class("QSFP/PCC/100G")
    assert (ports.base_w, ports.trx_up_w) == pytest.approx((254.0, -0.04))
    assert (ports.bit_j, ports.packet_j) == pytest.approx((3.2e-12, 13.4e-9))


def test_yaml_holds_ports_only_and_other_endings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelProblem, match=r"write \.toml or \.json"):
        write_power_model(MODELS[0], tmp_path / "model.yaml")
    with pytest.raises(FileProblem, match=r'ends in ".txt"'):
        write_power_model(MODELS[0], tmp_path / "model.txt")
    write_power_model(MODELS[-1], tmp_path / "model.yaml")
    result = read_power_model(tmp_path / "model.yaml")
    assert isinstance(result, PortPower)
    assert result.classes == MODELS[-1].classes  # type: ignore[attr-defined]  # the last one is a port model


def test_a_model_without_a_form_follows_the_published_one() -> None:
    model = parse_power_model('model = "form"\nidle = "10 W"\nactive = "20 W"')
    assert model.power_w(OperatingPoint(load_ratio=1.0)) == pytest.approx(20.02, abs=1e-3)  # x(1) = 1.002


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('idle = "10 W"', "model: is missing"),
        ('model = "linnear"', 'did you mean "linear"'),
        ('model = "linear"\nidle = "10"\nfull = "-3 W"\nwarm = 1', r"3 problems"),
        ('model = "linear"\nidle = "30 W"\nfull = "20 W"', "full: must not be below idle"),
        ('model = "form"\nidle = "30 W"\nactive = "20 W"', "active: must not be below idle"),
        ('model = "piecewise"\nload = [0.0, 1.0, 0.5]\npower = ["1 W", "2 W", "3 W"]', "loads must rise"),
        ('model = "piecewise"\nload = [0.0, 1.0]\npower = ["1 W", "2 W", "3 W"]', "2 loads and 3 powers"),
        ('model = "port"\n[ports.x]\nbase = "1 W"\nbit = "3 pJ"', "J/bit"),
        ('model = "port"\n[ports.x]\nbase = "1 W"\n[equipped.y]\nup = 1', "no kind of port of this file"),
        (
            'model = "router"\n[[state]]\nfrequency = "2 GHz"\nidle = "3 W"\nactive = "2 W"\nmax_rate = "1 Mpps"',
            "idle_w <= active_w",
        ),
        (
            'model = "form"\nidle = "1 W"\nactive = "2 W"\n[form]\nkind = "monotone"\n'
            "knots = [0, 0, 0, 0, 1, 1, 1, 1]\ncoefficients = [0, 0.6, 0.5, 1]",
            "never fall",
        ),
    ],
)
def test_a_file_that_is_wrong_says_where(text: str, message: str) -> None:
    with pytest.raises(FileProblem, match=message):
        parse_power_model(text)


def test_a_text_that_is_no_json_is_refused(tmp_path: Path) -> None:
    for text, message in (("{", "is no JSON"), ("[1]", "give a JSON object")):
        with pytest.raises(FileProblem, match=message):
            parse_power_model(text, suffix=".json")
