"""Options and files that the commands for watts must not take silently."""

from __future__ import annotations

from pathlib import Path

import pytest

from routecast.cli.run import run

EXAMPLE = Path(__file__).parents[3] / "examples" / "green.router.toml"
LINEAR = 'model = "linear"\nidle = "50 W"\nfull = "100 W"\n'


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return the error output of a command that ends with exit code 2."""
    assert run(["power", *arguments]) == 2
    output = capsys.readouterr()
    assert not output.out
    assert "Traceback" not in output.err
    return " ".join(output.err.split())


@pytest.mark.parametrize("option", ["--peak", "--step", "--switch-energy", "--dwell"])
def test_options_of_a_day_are_refused_without_a_day(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    value = {"--peak": "1 Gbit/s", "--switch-energy": "50 J"}.get(option, "2 h")
    output = refused(capsys, "optimise", str(EXAMPLE), option, value)
    assert f"{option} is of a day: name its series with --day" in output


@pytest.mark.parametrize("loads", ["200,30,0", "100,-1,0", "nan,30,0"])
def test_loads_outside_0_to_100_percent_are_refused_in_percent(loads: str, capsys: pytest.CaptureFixture[str]) -> None:
    output = refused(capsys, "table", str(EXAMPLE), f"--loads={loads}")
    assert "is outside 0 to 100: loads are percents of the throughput" in output
    assert "load_ratios" not in output


def test_one_load_and_the_loads_of_a_day_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    output = refused(capsys, "optimise", str(EXAMPLE), "--load", "1 Mpps", "--day", "geant")
    assert "give one of them" in output


def test_a_router_is_no_power_model_and_the_message_says_what_shows_its_watts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "routecast power table" in refused(capsys, "show", str(EXAMPLE))


def test_a_frame_size_is_refused_where_no_port_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "box.power.toml"
    model.write_text(LINEAR, encoding="utf-8")
    for model_name in ("form", "platforms", str(model)):
        assert "--frame is for models of ports" in refused(capsys, "show", model_name, "--frame", "64 B")


def test_a_power_model_is_known_by_its_content_not_by_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = []
    for name in ("box.toml", "box.power.toml"):
        model = tmp_path / name
        model.write_text(LINEAR, encoding="utf-8")
        assert run(["power", "day", str(model), "--profile", "synthetic", "--peak", "1 Gbit/s"]) == 0
        outputs.append(capsys.readouterr().out.replace(name, "box"))
    assert outputs[0] == outputs[1]
    assert "kWh a day" in outputs[0]


def test_options_that_the_file_has_no_use_for_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "box.toml"
    model.write_text(LINEAR, encoding="utf-8")
    day = ("--profile", "synthetic", "--peak", "1 Gbit/s")
    of_model = refused(capsys, "day", str(EXAMPLE), *day, "--capacity", "1 Gbit/s")
    assert "--capacity is of a power model" in of_model
    of_router = refused(capsys, "day", str(model), *day, "--evaluator", "simulate")
    assert "--evaluator is of a router" in of_router


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"load_ratio|power_w\n0|50\n1|90\n", "Separate the columns by commas"),
        (b"load_ratio,power_hp\n0,5\n1,9\n", 'did you mean "power_hp"? Columns of the file'),
        (b"load_ratio,power_w\n0,50\n", "samples.csv: has samples at 1 load"),
        (b"load_ratio,power_w\n0,0\n0.5,0\n1,0\n", "device: all its samples are 0 W"),
        (b"\x7fELF\xff\xfe", "byte 4 is not UTF-8"),
    ],
)
def test_wrong_samples_are_reported_with_file_and_place(
    content: bytes, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "samples.csv"
    file.write_bytes(content)
    output = refused(capsys, "fit", str(file))
    assert message in output
    assert "samples.csv" in output


def test_a_message_on_an_unknown_device_names_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "samples.csv"
    file.write_text("device,load_ratio,power_w\na,0,50\na,1,90\nb,0,20\nb,1,40\n", encoding="utf-8")
    output = refused(capsys, "fit", str(file), "--device", "c")
    assert 'samples.csv: c: is no device of the file: known are "a", "b"' in output


@pytest.mark.slow
def test_a_message_says_that_trials_are_too_short_for_a_frame(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["power", "optimise", str(EXAMPLE), "--target", "p99 < 1 ms", "--duration", "1 us"]) == 1
    assert "--duration" in capsys.readouterr().err


@pytest.mark.slow
def test_a_clock_that_is_no_p_state_is_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    router = tmp_path / "odd.router.toml"
    text = EXAMPLE.read_text(encoding="utf-8")
    router.write_text(text.replace('frequency = "3 GHz"\n', 'frequency = "2.5 GHz"\n', 1), encoding="utf-8")
    options = ("--target", "p99 < 1 ms", "--duration", "5 ms", "--replications", "0")
    assert run(["power", "optimise", str(router), *options]) == 0
    assert "2.5 GHz of pool" in capsys.readouterr().out
    assert run(["power", "optimise", str(EXAMPLE), *options]) == 0
    assert "none of its P-states" not in capsys.readouterr().out


FORM = 'model = "form"\nidle = "5 W"\nactive = "10 W"\n'
PIECEWISE = 'model = "piecewise"\npower = ["1 W", "2 W", "3 W"]\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (FORM + 'form = "foo"', 'form: is no form function: give "published"'),
        (FORM + 'form = { kind = "poly" }', 'form: is no form function: give "published"'),
        (FORM + 'form = { kind = "polynomial", coefficient = [1] }', 'did you mean "coefficients"?'),
        (FORM + 'form = { kind = "polynomial", coefficients = [0, nan] }', "coefficients[1]: got nan"),
        (PIECEWISE + "load = [0, 0.5, 0.4]", "load: got [0.0, 0.5, 0.4]: loads must rise"),
        (PIECEWISE + "load = [0, 1]", "load: got 2 loads and 3 powers"),
    ],
)
def test_faults_of_a_power_model_are_reported_in_the_keys_of_its_file(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "box.power.toml"
    model.write_text(text, encoding="utf-8")
    output = refused(capsys, "show", str(model))
    assert message in output
    assert "literal[" not in output
    assert "tagged-union" not in output


@pytest.mark.parametrize("value", ["-1", "nan", "inf"])
def test_a_price_is_a_number_that_is_not_negative(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    day = ("--profile", "synthetic", "--peak", "1 Gbit/s")
    assert "price" in refused(capsys, "day", str(EXAMPLE), *day, "--price", value)


def bomb_of_aliases(lines: int) -> str:
    """Return YAML whose last line stands for 10 to the power of its lines."""
    aliases = (f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, lines))
    return "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(aliases)


@pytest.mark.parametrize("command", ["fit", "show"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (bomb_of_aliases(10), "*a0 in line 2 is an alias, which NetPowerBench does not use"),
        ("a: &a [*a]\n", "*a in line 1 is an alias"),
        ("a: &a {b: 1}\nc: {<<: *a}\n", "*a in line 2 is an alias"),
        ("[" * 10_000, "is nested too deeply"),
        ("a: [" + "1," * 30_000 + "]", "holds more than 20,000 keys and values"),
        ("#" * 1_000_001, "larger than 1,000,000 bytes: no NetPowerBench"),
        ("a: !!bool neither\n", "is no YAML"),
        ("a: 2001-99-99\n", "is no YAML"),
    ],
    ids=["bomb", "itself", "merged", "deep", "wide", "large", "tag", "date"],
)
@pytest.mark.slow
def test_yaml_that_expands_beyond_bounds_is_refused(
    command: str, content: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "device.yaml"
    file.write_text(content, encoding="utf-8")
    output = refused(capsys, command, str(file))
    assert message in output
    assert "device.yaml" in output


def test_a_list_in_the_place_of_a_number_is_not_written_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ports = "Device: x\nPort_type: SFP\nPort_speed: 1G\nTransceivers: T\n"
    file = tmp_path / "device.yaml"
    file.write_text(f"{ports}P_BASE: [[1], [2, [3]]]\n", encoding="utf-8")
    assert "P_BASE: got a list of 2: it must be a number" in refused(capsys, "show", str(file))
