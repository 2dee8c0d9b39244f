#!/usr/bin/env bash
# HiGHS 1.15.1: with default tolerances a feasible switch-on model is declared infeasible when its big M is 1e7.
#
# Two machines carry 8 units of load: x1 <= 10, x2 <= 2, x1 + x2 = 8, x_i <= M * on_i. x = (8, 0), on = (1, 0) meets each row
# exactly for every M >= 8. The status is "Infeasible", not a warning or a wrong cost. Without presolve the same model is
# "Optimal", with both switches near 0: the load passes through the tolerance of the binary.
#
#   seen: M = 1e6 Optimal, cost 108;   M = 1e7 Infeasible;   M = 1e7 without presolve Optimal, cost 8 (switches unpaid)
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check highspy==1.15.1
"$work/venv/bin/python" -I - <<'PYTHON'
import sys

import highspy


def solve(big_m, presolve):
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    model.setOptionValue("presolve", presolve)
    loads = [model.addVariable(lb=0, obj=1) for _ in range(2)]
    switches = [model.addBinary(obj=cost) for cost in (100, 1)]
    for load, switch, capacity in zip(loads, switches, (10, 2), strict=True):
        model.addConstr(load - big_m * switch <= 0)
        model.addConstr(1 * load <= capacity)
    model.addConstr(loads[0] + loads[1] == 8)
    model.run()
    return model.modelStatusToString(model.getModelStatus()), round(model.getInfo().objective_function_value, 3)


EXPECTED = {
    (1e6, "on"): ("Optimal", 108),
    (1e7, "on"): ("Infeasible", float("inf")),
    (1e7, "off"): ("Optimal", 8),
}
for (big_m, presolve), expected in EXPECTED.items():
    seen = solve(big_m, presolve)
    print(f"M = {big_m:.0e}, presolve {presolve}: {seen[0]}, cost {seen[1]}")
    if seen != expected:
        sys.exit(f"changed: M = {big_m:.0e}, presolve {presolve} is {seen}, was {expected}")
PYTHON
echo "as seen"
