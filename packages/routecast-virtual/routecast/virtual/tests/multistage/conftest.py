"""What these tests share: costs that are easy to add up, and the oracle that follows routes."""

from __future__ import annotations

from types import ModuleType

import pytest

from routecast.router import Policy, ServiceCost
from routecast.virtual import Technology


@pytest.fixture(scope="session")
def passing() -> ModuleType:
    from routecast.virtual.tests.multistage import passing

    return passing


def _ns(cost: float) -> ServiceCost:
    return ServiceCost(per_packet_s=cost * 1e-9)


@pytest.fixture(scope="session")
def kvm() -> Technology:
    """A thread for each interface and each vcpu; every step costs another power of two, in nanoseconds."""
    return Technology(
        name="kvm",
        nic_receive=_ns(32),
        receive=_ns(64),
        send=_ns(128),
        switch=_ns(16),
        functions={"forward": _ns(256), "balance": _ns(1024), "return": _ns(512), "balance_local": _ns(8)},
        policy=Policy(kind="linux", quantum_s=3e-3),
    )


@pytest.fixture(scope="session")
def physical() -> Technology:
    """No virtualisation: softirqs of the machine do all the work."""
    return Technology(
        name="physical",
        backend="none",
        guest="softirq",
        functions={"forward": _ns(300), "balance": _ns(200), "return": _ns(100)},
        policy=Policy(kind="linux", quantum_s=3e-3),
    )
