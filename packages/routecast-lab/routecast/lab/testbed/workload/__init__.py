"""Workloads of network processors: instructions, accesses and time per packet in kernels of CommBench and NpBench.

::

    generated packets ─┐              ┌─ traced     instruction by instruction: mix, accesses, reuse distances
    capture (pcap)    ─┴─► a kernel ──┼─ timed      at full speed on this host
                                      └─ counted    by valgrind's cachegrind, as a second opinion

The kernels are in ``crates/probe/src/workload``.
"""

from routecast.lab.testbed.workload.answer import (
    Characterisation,
    Kernel,
    Required,
    WorkloadCase,
    characterise,
    kernels,
    read_kernel,
    required,
)

__all__ = [
    "Characterisation",
    "Kernel",
    "Required",
    "WorkloadCase",
    "characterise",
    "kernels",
    "read_kernel",
    "required",
]
