#!/usr/bin/env bash
# statsmodels 0.15.0: Wilson's interval for 0 lost of n packets often excludes 0.
#
# The lower end is the difference of two equal numbers and is 0 by the formula. statsmodels clips what falls below 0, but not
# what is left above: for about a fifth of all n the interval begins at some 1e-19, and a test "is a loss of 0 in the
# interval?" says no. scipy 1.17.1 gives exactly 0 for the same interval.
#
#   seen: 0 of 1000 begins at 2.2e-19 in statsmodels, at 0 in scipy; above 0 for 22 % of n = 1 .. 2000, for none in scipy
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check statsmodels==0.15.0 scipy==1.17.1
"$work/venv/bin/python" -I - <<'PYTHON'
import sys

from scipy.stats import binomtest
from statsmodels.stats.proportion import proportion_confint

sizes = range(1, 2001)
statsmodels = {n: float(proportion_confint(0, n, method="wilson")[0]) for n in sizes}
scipy = {n: float(binomtest(0, n).proportion_ci(method="wilson").low) for n in sizes}
shares = [sum(low > 0 for low in lows.values()) / len(sizes) for lows in (statsmodels, scipy)]
print(f"0 of 1000: statsmodels {statsmodels[1000]:.1e}, scipy {scipy[1000]}")
print(f"lower end above 0: statsmodels {shares[0]:.0%} of n, scipy {shares[1]:.0%}")
if not (0 < statsmodels[1000] < 1e-18 and shares[0] > 0.1 and shares[1] == 0):
    sys.exit("changed: statsmodels' lower ends were above 0 for a fifth of n, scipy's for none")
PYTHON
echo "as seen"
