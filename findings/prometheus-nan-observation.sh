#!/usr/bin/env bash
# prometheus-client 0.26.0: a NaN spoils a histogram's sum for the life of the process, yet its count does not include it.
#
# A latency of no packets is easily 0 / 0. The NaN falls in no bucket, so _count and the +Inf bucket leave it out and look
# sound, while _sum stays NaN after any number of good values; so does each mean computed from it. A Summary fed with the same
# values counts the NaN: the two types disagree about how many values there were.
#
#   seen, after the values 1, NaN, 2, 2:   histogram count 3, sum NaN;   summary count 4, sum NaN
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check prometheus-client==0.26.0
"$work/venv/bin/python" -I - <<'PYTHON'
import math
import sys

from prometheus_client import CollectorRegistry, Histogram, Summary

registry = CollectorRegistry()
histogram = Histogram("delay_seconds", "Delay.", buckets=(1, 2), registry=registry)
summary = Summary("wait_seconds", "Wait.", registry=registry)
for value in (1.0, math.nan, 2.0, 2.0):
    histogram.observe(value)
    summary.observe(value)
samples = {
    "histogram +Inf": registry.get_sample_value("delay_seconds_bucket", {"le": "+Inf"}),
    "histogram count": registry.get_sample_value("delay_seconds_count"),
    "histogram sum": registry.get_sample_value("delay_seconds_sum"),
    "summary count": registry.get_sample_value("wait_seconds_count"),
    "summary sum": registry.get_sample_value("wait_seconds_sum"),
}
print(samples)
if [str(value) for value in samples.values()] != ["3.0", "3.0", "nan", "4.0", "nan"]:
    sys.exit("changed: it was 3, 3, NaN, 4, NaN")
PYTHON
echo "as seen"
