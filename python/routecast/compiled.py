"""Names of the extension that not every build of it has, by its features (``crates/py/Cargo.toml``).

A name that the build lacks raises EnvironmentProblem where it is imported or used. Names that every build has are
taken from :mod:`routecast._core`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from routecast._core import (
        FrameLoss,
        LoadBalancer,
        MemberGate,
        NamespaceNetlink,
        NocError,
        ProbeError,
        Tester,
        TesterError,
        XdpProgram,
        attach_xdp,
        back_ends,
        flow_row,
        flow_table,
        noc_greedy,
        noc_simulate,
        probe_host,
        run_function,
        run_workload,
        trace_workload,
        workload_kernels,
    )

__all__ = [
    "FrameLoss",
    "LoadBalancer",
    "MemberGate",
    "NamespaceNetlink",
    "NocError",
    "ProbeError",
    "Tester",
    "TesterError",
    "XdpProgram",
    "attach_xdp",
    "back_ends",
    "flow_row",
    "flow_table",
    "noc_greedy",
    "noc_simulate",
    "probe_host",
    "require",
    "run_function",
    "run_workload",
    "trace_workload",
    "workload_kernels",
]

_NAMES_BY_FEATURE = {
    "lab": {
        "a tester of frames": "Tester TesterError XdpProgram attach_xdp back_ends",
        "a router of many machines": "FrameLoss LoadBalancer MemberGate NamespaceNetlink flow_row flow_table",
        "a probe of this host": "ProbeError probe_host",
        "a run of a network function": "run_function",
        "a workload": "run_workload trace_workload workload_kernels",
    },
    "noc": {"a network on chip": "NocError noc_greedy noc_simulate"},
}
_FEATURE_AND_USE = {
    name: (feature, use)
    for feature, names_by_use in _NAMES_BY_FEATURE.items()
    for use, names in names_by_use.items()
    for name in names.split()
}
_PURPOSE = {"lab": "measures", "noc": "simulates networks on chip"}


def require(name: str) -> Any:
    """Return what the extension has under this name, one of those of this module.

    Raises EnvironmentProblem: this build of the extension lacks it.
    """
    from routecast import _core
    from routecast.errors import EnvironmentProblem

    if not hasattr(_core, name):
        feature, use = _FEATURE_AND_USE[name]
        message = f"{use} needs the compiled part of routecast that {_PURPOSE[feature]}, which is not installed here"
        raise EnvironmentProblem(f"{message}; it runs on Linux only" if feature == "lab" else message)
    return getattr(_core, name)


def __getattr__(name: str) -> Any:
    if name in _FEATURE_AND_USE:
        return require(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
