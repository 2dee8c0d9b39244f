"""Router files: what they say is read, what they say wrong is named, and nothing makes the reader crash."""

from __future__ import annotations

import contextlib
import json
import math
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.errors import FileProblem
from routecast.load import FrameMix
from routecast.router.files import parse_router, read_router, read_router_and_load, router_schema

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.router.toml"))

EXPLICIT = """
name = "one core"
[[port]]
name = "a"
link = "10 Gbit/s"
entry = "work"
[[pool]]
name = "cpu"
frequency = "2 GHz"
policy = { kind = "fair", quantum = "1 ms" }
[[task]]
name = "work"
needs = [{ pool = "cpu" }]
queue = "256 frames"
service = { per_packet = "1000 cycles", per_byte = "0.1 ns/B" }
route = { kind = "egress", to = ["a"] }
[load]
rate = "1 Mpps"
frames = "IMIX"
arrivals = { kind = "on_off", burst = "8 frames", peak = 4.0 }
"""


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_example_is_read_with_its_load(path):
    model, load = read_router_and_load(path)
    assert model.tasks
    assert load is not None


def test_there_are_examples():
    assert len(EXAMPLES) >= 5


def test_an_explicit_router_is_read_into_base_units():
    model, load = parse_router(EXPLICIT)
    assert model.port("a").link_bps == 10e9
    assert model.pool("cpu").frequency_hz == 2e9
    assert model.pool("cpu").policy.quantum_s == 1e-3
    assert model.task("work").queue_frames == 256
    # 1000 cycles at 2 GHz are 500 ns; 1000 B at 0.1 ns/B are 100 ns.
    assert model.task("work").service.mean_s(1000, frequency_hz=2e9) == pytest.approx(600e-9)
    assert load is not None
    assert load.frames == FrameMix.imix()
    assert load.arrivals.peak_ratio == 4.0


def test_a_file_without_a_name_is_called_by_its_own(tmp_path):
    path = tmp_path / "lab.router.toml"
    path.write_text('builder = "multicore"\ncores = 2\nservice = { per_packet = "1 us" }\n')
    assert read_router(path).name == "lab"


def test_a_trace_is_looked_for_beside_the_file(tmp_path):
    (tmp_path / "t.csv").write_text("time_s,frame_bytes,flow\n0,64,0\n1e-6,64,0\n")
    path = tmp_path / "x.router.toml"
    text = EXPLICIT.replace('arrivals = { kind = "on_off", burst = "8 frames", peak = 4.0 }', "")
    path.write_text(text + 'arrivals = { kind = "trace", trace = "t.csv" }\n')
    _, load = read_router_and_load(path)
    assert load is not None
    assert load.arrivals.trace is not None
    assert len(load.arrivals.trace) == 2
    assert load.rate_pps == pytest.approx(1e6)


@pytest.mark.parametrize(
    ("old", "new", "place", "says"),
    [
        ("link =", "lnk =", "port[0].lnk", 'did you mean "link"'),
        ('"10 Gbit/s"', '"10 GB"', "port[0].link", "a number of bytes"),
        ('"256 frames"', '"-1 frames"', "task[0].queue", "at least 0"),
        ('"256 frames"', "256", "task[0].queue", "no unit"),
        ('"0.1 ns/B"', '"3 W"', "task[0].service.per_byte", "a power"),
        ('"fair"', '"fare"', "pool[0].policy.kind", 'did you mean "fair"'),
        ('{ pool = "cpu" }', '{ pool = "cpus" }', "task[0].needs[0].pool", 'did you mean "cpu"'),
        ('frequency = "2 GHz"', "", "task[0].service", "no frequency"),
        ('entry = "work"', 'entry = "wrk"', "port[0].entry", 'did you mean "work"'),
        ('"1 Mpps"', '"1 MB"', "load.rate", "a frame rate such as"),
        ('"1 Mpps"', '"1 MB"', "load.rate", "a bit rate such as"),
        ('"IMIX"', '"60 B"', "load.frames", "64 to 65535"),
        ("peak = 4.0", "peak = 0.5", "load.arrivals.peak", "a number >= 1"),
        ("peak = 4.0", "peak = nan", "load.arrivals.peak", "finite"),
    ],
)
def test_each_fault_has_its_place_and_its_reason(old, new, place, says):
    with pytest.raises(FileProblem) as caught:
        parse_router(EXPLICIT.replace(old, new))
    result = {problem.place: problem.message for problem in caught.value.problems}
    assert place in result
    assert says in result[place]


def test_all_faults_of_a_file_come_at_once():
    text = EXPLICIT.replace('"10 Gbit/s"', '"fast"').replace('"256 frames"', '"-1 frames"').replace('"IMIX"', '"x"')
    with pytest.raises(FileProblem) as caught:
        parse_router(text)
    assert len(caught.value.problems) == 3


@pytest.mark.parametrize(
    "text", ['builder = "multicor"', "builder = 3", "x =", "\x00", "[" * 5000, "a = " + "[" * 5000]
)
def test_broken_files_are_refused(text):
    with pytest.raises(FileProblem):
        parse_router(text)


def test_files_that_cannot_be_read_are_refused(tmp_path):
    with pytest.raises(FileProblem, match="cannot be read"):
        read_router(tmp_path / "none.router.toml")
    binary = tmp_path / "b.router.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileProblem, match="cannot be read"):
        read_router(binary)


def test_the_schema_names_units_and_forbids_the_unknown():
    schema = router_schema()
    json.dumps(schema)
    port = schema["$defs"]["Port"]
    assert port["additionalProperties"] is False
    for table in schema["$defs"].values():
        for name, entry in table["properties"].items():
            assert entry.get("description"), name


SCALARS = (
    st.none().map(lambda _: "nan")
    | st.integers(-(10**20), 10**20).map(str)
    | st.floats().map(lambda value: repr(value) if math.isfinite(value) else "inf")
    | st.booleans().map(lambda value: str(value).lower())
    | st.sampled_from(['"1 us"', '"64 B"', '"1 Mpps"', '"10 Gbit/s"', '"3 frames"', '"cpu"', '"work"', '"a"', '""'])
    | st.sampled_from(["[]", "{}", "[1]", '["a", "work"]', '{ pool = "cpu" }', '[{ pool = "cpu", units = 0 }]'])
)
LINES = [line for line in EXPLICIT.splitlines() if line]


@given(
    changes=st.lists(st.tuples(st.integers(0, len(LINES) - 1), SCALARS, st.sampled_from(["value", "drop", "double"])))
)
def test_any_change_to_a_file_is_read_or_refused(changes):
    lines = list(LINES)
    for number, value, kind in changes:
        line = lines[number]
        if kind == "drop":
            lines[number] = ""
        elif kind == "double":
            lines[number] = f"{line}\n{line}"
        elif "=" in line and not line.startswith("["):
            lines[number] = f"{line.split('=')[0]}= {value}"
    with contextlib.suppress(FileProblem):
        model, _ = parse_router("\n".join(lines))
        assert model.tasks


@given(text=st.text(max_size=200))
def test_any_text_is_read_or_refused(text):
    try:
        tomllib.loads(text)
    except ValueError:
        with pytest.raises(FileProblem, match="is no TOML"):
            parse_router(text)
    else:
        with pytest.raises(FileProblem):
            parse_router(text)


MULTICORE_KEYS = [
    "cores",
    "units",
    "service",
    "queue",
    "ports",
    "link",
    "contention",
    "batch",
    "nic_cap",
    "bus",
    "load",
]


@given(
    values=st.dictionaries(st.sampled_from(MULTICORE_KEYS), SCALARS | st.sampled_from(['{ per_packet = "1 us" }', "4"]))
)
def test_any_short_file_is_read_or_refused(values):
    text = 'builder = "multicore"\n' + "\n".join(f"{key} = {value}" for key, value in values.items())
    with contextlib.suppress(FileProblem):
        model, _ = parse_router(text)
        assert model.tasks


@pytest.mark.parametrize("text", ['name = "r"', 'technology = "kvm"\n[[server]]\ncores = 4\n', "cores = 4"])
def test_a_file_without_builder_and_tables_is_reported_as_missing_one_of_them(text):
    with pytest.raises(FileProblem) as caught:
        parse_router(text)
    (only,) = caught.value.problems
    assert only.place == "builder"
    assert only.message.startswith('is missing: name one of "multicore", "softirq", "virtual"')
    assert "[[port]], [[pool]] and [[task]]" in only.message


def test_a_load_in_bit_s_is_of_the_frames_that_are_offered(tmp_path):
    path = tmp_path / "one.router.toml"
    path.write_text(EXPLICIT.replace('"1 Mpps"', '"1 Gbit/s"'))
    for frames in (FrameMix.imix(), FrameMix.fixed(64)):
        _, load = read_router_and_load(path, frames=frames)
        assert load is not None
        # 20 B of gap and preamble a frame (S1).
        assert load.rate_pps * 8.0 * (frames.mean_bytes + 20) == pytest.approx(1e9)
    assert read_router_and_load(path)[1] == read_router_and_load(path, frames=FrameMix.imix())[1]
