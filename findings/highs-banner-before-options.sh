#!/usr/bin/env bash
# highspy 1.16.0: the constructor prints a banner to standard output, before any option can silence it.
#
# The first Highs() of a process writes two lines; output_flag, log_to_console and silent() come too late. A command whose
# standard output is JSON is no longer valid JSON. With 1.15.1 the same program prints nothing.
#
#   seen: 1.16.0 "Running HiGHS 1.16.0 (git hash: f3f113d): ..." and a line on third-party notices;   1.15.1 nothing
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for package in highspy==1.15.1 highspy==1.16.0; do
    version=${package#*==}
    python3 -m venv "$work/$version"
    "$work/$version/bin/pip" install --quiet --disable-pip-version-check "$package"
    "$work/$version/bin/python" -I - >"$work/$version.txt" <<'PYTHON'
import highspy

model = highspy.Highs()
model.silent()
model.setOptionValue("output_flag", False)
model.addVariable(lb=0, ub=1, obj=-1)
model.run()
PYTHON
    echo "$version: $(wc -l <"$work/$version.txt") lines"
    cat "$work/$version.txt"
done
if [[ -s $work/1.15.1.txt ]] || ! grep -q "^Running HiGHS 1.16.0" "$work/1.16.0.txt"; then
    echo "changed: 1.15.1 printed nothing, 1.16.0 its banner" >&2
    exit 1
fi
echo "as seen"
