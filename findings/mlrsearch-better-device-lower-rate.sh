#!/usr/bin/env bash
# MLRsearch 1.2.1: a device that is as good in each trial and better in some gets a quarter of the other's rate.
#
# Trial k of a device forwards at most limit[k mod 5]. The better device differs from the worse in its first limit alone, 8
# Mpps for 4, so it never loses a frame that the worse one forwards. The searches take other paths: that of the better device
# meets its weak trials at the loads that count, that of the worse does not. The result is no monotone function of the device,
# and a rate that falls between two builds is no proof that a trial got worse.
#
#   seen, zero loss, exceed_ratio 0.5 (the default), duration_sum 5 s: lower bound 3.997 Mpps for limits 4 4 1 1 2,
#   1.018 Mpps for limits 8 4 1 1 2
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check MLRsearch==1.2.1
"$work/venv/bin/python" -I - <<'PYTHON'
import sys

from MLRsearch import AbstractMeasurer, Config, MeasurementResult, MultipleLossRatioSearch, SearchGoal


class Device(AbstractMeasurer):
    def __init__(self, limits_mpps):
        self.limits_mpps = limits_mpps
        self.trials = 0

    def measure(self, intended_duration, intended_load):
        limit_pps = 1e6 * self.limits_mpps[self.trials % len(self.limits_mpps)]
        self.trials += 1
        sent = int(intended_duration * intended_load)
        return MeasurementResult(
            intended_duration=intended_duration,
            intended_load=intended_load,
            offered_count=sent,
            forwarding_count=min(sent, int(intended_duration * limit_pps)),
        )


goal = SearchGoal(duration_sum=5.0, fail_fast=False)
bounds_pps = []
for limits_mpps in ((4, 4, 1, 1, 2), (8, 4, 1, 1, 2)):
    device = Device(limits_mpps)
    config = Config(goals=[goal], min_load=1e3, max_load=1e7, search_duration_max=1e6, warmup_duration=None)
    result = MultipleLossRatioSearch(config=config).search(device, lambda _: None)[goal]
    bounds_pps.append(float(result.relevant_lower_bound))
    print(f"limits in Mpps {limits_mpps}: lower bound {bounds_pps[-1] / 1e6:.3f} Mpps after {device.trials} trials")
if not bounds_pps[1] < bounds_pps[0] / 2:
    sys.exit("changed: the better device got 1.018 Mpps, the worse 3.997 Mpps")
PYTHON
echo "as seen"
