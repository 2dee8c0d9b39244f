"""Texts with units become numbers, and nothing is guessed."""

from __future__ import annotations

import contextlib
import math
import pickle
import re
import subprocess
import sys
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast import quantity
from routecast.errors import QuantityProblem
from routecast.quantity import _units as units

PARSERS = [
    quantity.parse_rate_pps,
    quantity.parse_bit_rate_bps,
    quantity.parse_byte_rate_bytes_per_s,
    quantity.parse_frame_bytes,
    quantity.parse_frames,
    quantity.parse_duration_s,
    quantity.parse_frequency_hz,
    quantity.parse_power_w,
    quantity.parse_energy_j,
    quantity.parse_cycles,
    quantity.parse_cost,
    quantity.parse_cost_per_byte,
    quantity.parse_size_bytes,
    quantity.parse_transfer_rate_per_s,
]


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (quantity.parse_rate_pps, "1.2 Mpps", 1.2e6),
        (quantity.parse_energy_j, "12 mJ", 0.012),
        (quantity.parse_energy_j, "1.5 kJ", 1500.0),
        (quantity.parse_rate_pps, "14,880,952 pps", 14_880_952.0),
        (quantity.parse_rate_pps, "3 kframes/s", 3e3),
        (quantity.parse_bit_rate_bps, "10 Gbit/s", 10e9),
        (quantity.parse_bit_rate_bps, "10Gbps", 10e9),
        (quantity.parse_bit_rate_bps, "1.25 GB/s", 10e9),
        (quantity.parse_byte_rate_bytes_per_s, "8 GB/s", 8e9),
        (quantity.parse_frame_bytes, "64 B", 64),
        (quantity.parse_frame_bytes, "1518 bytes", 1518),
        (quantity.parse_frames, "512 packets", 512),
        (quantity.parse_duration_s, "100 ms", 0.1),
        (quantity.parse_duration_s, "1 µs", 1e-6),
        (quantity.parse_duration_s, "1 us", 1e-6),
        (quantity.parse_duration_s, "2 min", 120.0),
        (quantity.parse_frequency_hz, "3.3 GHz", 3.3e9),
        (quantity.parse_power_w, "95 W", 95.0),
        (quantity.parse_cycles, "120 cycles", 120.0),
        (quantity.parse_cost, "300 ns", (0.0, 300e-9)),
        (quantity.parse_cost_per_byte, "1.5 cycles/B", (1.5, 0.0)),
        (quantity.parse_size_bytes, "256 KiB", 262_144.0),
        (quantity.parse_size_bytes, "64 GB", 64e9),
        (quantity.parse_transfer_rate_per_s, "1333 MT/s", 1.333e9),
    ],
)
def test_quantities_are_read_exactly(parse, text, value):
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "text", "says"),
    [
        (quantity.parse_frame_bytes, "64 Mbit", "number of bits"),
        (quantity.parse_frame_bytes, "60 B", "64 to 65535"),
        (quantity.parse_frame_bytes, "64.5 B", "whole"),
        (quantity.parse_rate_pps, "12", "no unit"),
        (quantity.parse_rate_pps, "1.2 mpps", "'Mpps'"),
        (quantity.parse_rate_pps, "10 Gbit/s", "a bit rate"),
        (quantity.parse_rate_pps, "0 pps", "more than 0"),
        (quantity.parse_rate_pps, "-3 pps", "more than 0"),
        (quantity.parse_rate_pps, "nan pps", "finite"),
        (quantity.parse_rate_pps, "inf pps", "finite"),
        (quantity.parse_rate_pps, "1e999 pps", "too large"),
        (quantity.parse_frequency_hz, "3.3 Ghz", "'GHz'"),
        (quantity.parse_duration_s, "", "start with a number"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_reason(parse, text, says):
    with pytest.raises(QuantityProblem, match=says):
        parse(text)


# IEEE 802.3 names links by their bit rate ("100GBASE", "100GbE"); tc(8) writes gbit and mbit, ethtool Mb/s, iperf3
# Gbits/sec and GBytes/sec.
@pytest.mark.parametrize(
    ("text", "rate_bps"),
    [
        *(
            (text, 100e9)
            for text in ("100 Gb/s", "100Gbps", "100G", "100gbit", "100 Gbit", "100GbE", "100 gbps", "100g")
        ),
        *((text, 10e6) for text in ("10 Mb/s", "10mbit", "10 Mbits/sec", "10MBit/s", "10 mbps")),
        *((text, 1.6e12) for text in ("1.6T", "1.6 Tb/s", "1.6 Tbit")),
        ("10 Gib/s", 10 * 2.0**30),
        ("9600 b/s", 9600.0),
        *((text, 8e9) for text in ("1 GB/s", "1 GBps", "1 Gbyte/s", "1 GBytes/sec")),
    ],
)
def test_a_bit_rate_is_read_in_each_usual_spelling_and_only_a_capital_b_is_a_byte(text: str, rate_bps: float) -> None:
    assert quantity.parse_bit_rate_bps(text) == rate_bps
    assert quantity.parse_rate(text) == (None, rate_bps)


@pytest.mark.parametrize("text", ["10M", "500k", "10 m", "1.5K", "0.3M"])
def test_where_frames_and_bits_both_fit_a_prefix_alone_is_asked_about(text: str) -> None:
    number = text.rstrip("MkKm ")
    with pytest.raises(QuantityProblem, match=rf'"{number} [kM]pps" or "{number} [kM]bit/s"'):
        quantity.parse_rate(text)
    with pytest.raises(QuantityProblem, match=rf'"{number} [kM]pps"'):
        quantity.parse_rate_pps(text)


@pytest.mark.parametrize("text", ["10 GBPS", "10 MB/S", "3 KBPS", "1 TBPS", "10GB/S"])
def test_capitals_that_may_be_bits_or_bytes_are_asked_about(text: str) -> None:
    for parse in (quantity.parse_bit_rate_bps, quantity.parse_rate, quantity.parse_byte_rate_bytes_per_s):
        with pytest.raises(QuantityProblem, match="may be bits or bytes"):
            parse(text)


WRONG_UNITS = [
    "Gb",
    "gB/s",
    "GBp",
    "MPPS",
    "Mps",
    "kbs",
    "M",
    "mpps",
    "Mp/s",
    "Mbti/s",
    "GB",
    "kb",
    "Mit/s",
    "mB/s",
    "Gpbs",
]


@pytest.mark.parametrize("unit", WRONG_UNITS)
@pytest.mark.parametrize("parse", [quantity.parse_rate_pps, quantity.parse_bit_rate_bps, quantity.parse_frame_bytes])
def test_no_suggestion_has_another_prefix_or_bytes_for_bits(parse: Callable[[str], float], unit: str) -> None:
    """A unit that is suggested after "did you mean" or "write" is off by no factor of 8 or 1000."""
    try:
        parse(f"3 {unit}")
    except QuantityProblem as problem:
        advice, _, _ = str(problem).partition("; expected")
        for suggested in re.findall(r"did you mean '([^']+)'", advice):
            assert suggested[0].lower() == unit[0].lower()
            assert ("B" in suggested) == ("B" in unit)


@pytest.mark.parametrize(
    ("text", "bounds", "ratio"),
    [
        ("0.1%", {}, 0.001),
        ("3 %", {}, 0.03),
        ("99.9 percent", {}, 0.999),
        ("0 %", {"zero_allowed": True}, 0.0),
        ("100%", {"one_allowed": True}, 1.0),
        ("150%", {"beyond_one": True}, 1.5),
    ],
)
def test_a_share_is_read_in_percent(text: str, bounds: dict[str, bool], ratio: float) -> None:
    assert quantity.parse_ratio(text, **bounds) == ratio


@pytest.mark.parametrize("text", ["0 %", "100%", "101", "-1 %", "5 %%", "0,1 %", "nan", "%", "inf", "1e999"])
def test_a_share_out_of_range_is_refused(text: str) -> None:
    with pytest.raises(QuantityProblem, match="is no share"):
        quantity.parse_ratio(text)


@pytest.mark.parametrize(("text", "one_allowed"), [("100%", False), ("1", False), ("0", True), ("250 %", True)])
def test_the_refusal_of_a_share_says_what_is_allowed(text: str, one_allowed: bool) -> None:
    end = "at most 100 %" if one_allowed else "less than 100 %"
    with pytest.raises(QuantityProblem, match=f"allowed is more than 0 % and {end}$"):
        quantity.parse_ratio(text, one_allowed=one_allowed)


def test_a_share_beyond_one_without_its_sign_is_asked_about() -> None:
    for text, percents in (("5", "5 % or 500 %"), ("12.5", "12.5 % or 1250 %")):
        with pytest.raises(QuantityProblem, match=percents):
            quantity.parse_ratio(text, beyond_one=True)
    assert quantity.parse_ratio("500 %", beyond_one=True) == 5.0


def test_the_remedy_for_a_percentage_without_its_sign_keeps_the_number() -> None:
    with pytest.raises(QuantityProblem, match=r'write "3 %" or 0\.03'):
        quantity.parse_ratio("3")


@given(ratio=st.floats(-1e13, 1e13), digits=st.integers(1, 5))
def test_no_percentage_is_written_with_an_exponent(ratio: float, digits: int) -> None:
    text = quantity.format_ratio(ratio, digits)
    if ratio == 0.0 or abs(ratio) > 1e-11:
        assert "e" not in text.partition(" ")[0]
    number, unit = text.split()
    # Rounding to n significant digits is off by at most half of the last one.
    assert float(number) * (0.01 if unit == "%" else 1.0) == pytest.approx(ratio, rel=0.51 * 10.0 ** (1 - digits))


@pytest.mark.parametrize("parse", PARSERS)
@pytest.mark.parametrize("number", [5, 5.0, math.nan, True, None])
def test_a_bare_number_is_refused(parse, number):
    with pytest.raises(QuantityProblem, match="no unit"):
        parse(number)


@given(text=st.text(max_size=40) | st.from_regex(r"[-+0-9.,e_]{1,12} ?[a-zA-Z/µ^*]{0,8}", fullmatch=True))
def test_any_text_is_read_or_refused(text):
    for parse in PARSERS:
        with contextlib.suppress(QuantityProblem):
            value = parse(text)
            numbers = value if isinstance(value, tuple) else (value,)
            assert all(math.isfinite(number) and number >= 0.0 for number in numbers)


@given(value=st.floats(1e-11, 1e13))
def test_a_written_rate_reads_back_to_four_digits(value):
    text = quantity.format_duration(value) if value < 1e3 else quantity.format_bps(value)
    read = quantity.parse_duration_s(text) if value < 1e3 else quantity.parse_bit_rate_bps(text)
    assert read == pytest.approx(value, rel=5.1e-4)


def test_a_refusal_crosses_process_borders():
    with pytest.raises(QuantityProblem) as caught:
        quantity.parse_frame_bytes("64 Mbit")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_screens_show_four_digits_and_a_prefix():
    assert quantity.format_pps(14_880_952.4) == "14.88 Mpps"
    assert quantity.format_pps(999_999.9) == "1 Mpps"
    # "mpps" would be taken for millions, and is refused.
    assert quantity.parse_rate_pps(quantity.format_pps(0.002976)) == 0.002976
    assert quantity.parse_bit_rate_bps(quantity.format_bps(1e-9)) == 1e-9
    assert quantity.format_bps(0.0) == "0 bit/s"
    assert quantity.format_ratio(0.0123) == "1.23 %"


def test_common_units_have_the_dimensions_and_factors_of_pint():
    registry = units._registry()
    for name, (dimension, _) in units._DIMENSION_AND_SIZE.items():
        unit = registry.parse_units(name)
        assert str(unit.dimensionality) == dimension
        bases = [base for base, entry in units._DIMENSION_AND_SIZE.items() if entry == (dimension, 1.0)]
        for base in bases:
            expected = float(registry.Quantity(1.0, unit).to(registry.parse_units(base)).magnitude)
            assert units.factor(name, base) == expected


def test_common_units_are_read_without_pint():
    code = (
        "import sys; from routecast.quantity import parse_rate_pps; rate = parse_rate_pps('8 Mpps'); "
        "print(rate, 'pint' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["8000000.0", "False"]


def test_pint_is_not_imported_before_a_text_is_parsed():
    rooms = "routecast.quantity, routecast.load, routecast.router"
    code = f"import sys, {rooms}; print('pint' in sys.modules, 'pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


@pytest.mark.parametrize(
    ("text", "read", "expected"),
    [
        ("-0.04 W", quantity.parse_power_term_w, -0.04),
        ("3.2 pJ/bit", quantity.parse_bit_energy_j, 3.2e-12),
        ("-1 pJ/bit", quantity.parse_bit_energy_j, -1e-12),
        ("13.4 nJ/packet", quantity.parse_packet_energy_j, 13.4e-9),
        ("0.0134 uJ/frame", quantity.parse_packet_energy_j, 13.4e-9),
    ],
)
def test_fitted_terms_of_a_power_may_be_of_either_sign(
    text: str, read: Callable[[str], float], expected: float
) -> None:
    assert read(text) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "read", "message"),
    [
        ("3.2 pJ", quantity.parse_bit_energy_j, "is an energy: expected an energy per bit"),
        ("3.2 pJ/bit", quantity.parse_packet_energy_j, "is an energy per bit: expected an energy per packet"),
        ("0.9", quantity.parse_power_term_w, "has no unit"),
        ("-5 W", quantity.parse_power_w, "a power is at least 0"),
    ],
)
def test_fitted_terms_of_another_kind_are_refused(text: str, read: Callable[[str], float], message: str) -> None:
    with pytest.raises(QuantityProblem, match=message):
        read(text)
