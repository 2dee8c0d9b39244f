#!/usr/bin/env bash
# ns-3 3.44: NanoSeconds(6.72) is 6 ns in C++ and 7 ns in Python, of one package.
#
# Frames of 84 bytes follow each other in 6.72 ns at 100 Gbit/s. In C++ the double converts to uint64_t and loses its
# fraction; the Python bindings choose another overload and round. MicroSeconds(0.00672) is 0 in C++, all events at once, and
# 7 ns in Python. Seconds(6.72e-9) is 7 ns in both.
#
#   seen:   NanoSeconds(6.72) 6 and 7     MicroSeconds(0.00672) 0 and 7     Seconds(6.72e-9) 7 and 7     (C++ and Python)
#
# It needs g++ and a Python for which the wheel exists (3.9 to 3.13).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check ns3==3.44.post0 setuptools==80.9.0
ns3=$("$work/venv/bin/python" -Ic 'import importlib.util as u; print(u.find_spec("ns3").submodule_search_locations[0])')
cat >"$work/times.cc" <<'CPP'
#include "ns3/nstime.h"

#include <iostream>

int main() {
    std::cout << ns3::NanoSeconds(6.72).GetTimeStep() << ' ' << ns3::MicroSeconds(0.00672).GetTimeStep() << ' '
              << ns3::Seconds(6.72e-9).GetTimeStep() << '\n';
}
CPP
g++ -std=c++20 -I "$ns3/include" "$work/times.cc" -o "$work/times" -L "$ns3/lib64" -lns3.44-core -Wl,-rpath,"$ns3/lib64"
cpp=$("$work/times")
python=$("$work/venv/bin/python" -I - 2>"$work/python.log" <<'PYTHON'
from ns import ns

print(*(time.GetTimeStep() for time in (ns.NanoSeconds(6.72), ns.MicroSeconds(0.00672), ns.Seconds(6.72e-9))))
PYTHON
)
echo "steps of 1 ns of NanoSeconds(6.72), MicroSeconds(0.00672), Seconds(6.72e-9): C++ $cpp, Python $python"
if [[ $cpp != "6 0 7" || $python != "7 7 7" ]]; then
    echo "changed: it was 6 0 7 in C++ and 7 7 7 in Python" >&2
    exit 1
fi
echo "as seen"
