#!/usr/bin/env bash
# pint 0.25.3: the usual ways to write a network rate parse without an error, as lengths, areas and currents.
#
#   "14.88 Mpps"   megapoint: 'pp' is the printer's point and the s a plural, so the rate is 5249 m
#   "10 Gb/s"      gilbert per second, a magnetomotive force (ampere / second)
#   "100 Mb/s"     megabarn per second (square metre / second): a megabit has another dimension than a gigabit
#   "30 Mfps"      megafoot per second
#   "10 Gbps"      right: 10 gigabaud, which pint defines as bit / second
#
# A check of dimensions catches them only where a rate meets another. Give the registry definitions of its own, or write bit.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check pint==0.25.3
"$work/venv/bin/python" -I - <<'PYTHON'
import sys

import pint

EXPECTED = {
    "14.88 Mpps": ("megapoint", "meter"),
    "10 Gb/s": ("gilbert / second", "ampere / second"),
    "100 Mb/s": ("megabarn / second", "meter ** 2 / second"),
    "30 Mfps": ("megafoot_per_second", "meter / second"),
    "10 Gbps": ("gigabaud", "bit / second"),
}
registry = pint.UnitRegistry()
for text, expected in EXPECTED.items():
    quantity = registry(text)
    seen = str(quantity.units), str(quantity.to_base_units().units)
    print(f"{text}: {seen[0]}, in base units {seen[1]}")
    if seen != expected:
        sys.exit(f"changed: {text} is {seen}, was {expected}")
PYTHON
echo "as seen"
