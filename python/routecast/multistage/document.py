"""What a ``*.multistage.toml`` says: pydantic models, one per table of the file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from routecast.quantity.fields import Duration, FrameCount, FrameRate
from routecast.quantity.file_model import FileModel
from routecast.testbed.document import Ipv4, Ipv4Interface, Ipv4Network, Ipv6, Ipv6Interface, Ipv6Network

__all__ = [
    "_MOST_ROUTERS",
    "BackEndTable",
    "BalancerTable",
    "DetectorTable",
    "MultistageFile",
    "RouteTable",
    "SegmentTable",
]

_MOST_ROUTERS = 64

ElementName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9]{0,7}$")]
ApplianceName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,11}$")]
Weight = Annotated[float, Field(gt=0.0, le=1e6)]
Mtu = Annotated[int, Field(ge=1280, le=3400, strict=True)]
Rules = Annotated[int, Field(ge=0, le=20_000, strict=True)]
Forwarding = Literal["linux", "nftables", "xdp"]
Queues = Annotated[int, Field(ge=1, le=64, strict=True)]
FewFrames = Annotated[int, Field(ge=1, le=1000, strict=True)]


class _Table(FileModel):
    """A table of the file."""

    model_config = ConfigDict(str_strip_whitespace=True)


class SegmentTable(_Table):
    """``[[segment]]``: an outside network of the router, with one host in a namespace of its own."""

    name: ElementName = Field(description="Name of the network.")
    ipv4: Ipv4Interface = Field(description="The router's address on it.", examples=["198.18.1.1/24"])
    ipv6: Ipv6Interface | None = Field(default=None, description="The router's IPv6 address on it; none if not given.")
    host_ipv4: Ipv4 = Field(description="Address of its host.", examples=["198.18.1.2"])
    host_ipv6: Ipv6 | None = Field(default=None, description="IPv6 address of its host.")
    mtu: Mtu = Field(default=1500, description="Longest IP packet, in bytes; XDP in a veth driver takes a page.")
    local: ElementName | None = Field(
        default=None, description="Back-end router of its frames, under the scheme local_only."
    )


class BalancerTable(_Table):
    """``[[balancer]]``: a load balancer, Linux with eBPF programs in a namespace of its own."""

    name: ElementName = Field(description="Name of the load balancer.")
    queues: Queues = Field(default=1, description="Receive queues of each of its interfaces; a flow stays in one.")


class BackEndTable(_Table):
    """``[[router]]``: a back-end router, Linux in a namespace of its own."""

    name: ElementName = Field(description="Name of the back-end router.")
    weight: Weight = Field(default=1.0, description="Its share of the flows, relative.")
    cap: FrameRate | None = Field(
        default=None, description="Emulates a machine that forwards so much (XDP drops the rest); no cap if not given."
    )
    queue: FrameCount = Field(default=256, description="Frames that wait before the emulated machine drops.")
    forwarding: Forwarding = Field(
        default="linux", description="What forwards: Linux, Linux behind nftables rules, XDP by the kernel's tables."
    )
    rules: Rules | None = Field(
        default=None, description="nftables rules that match nothing, before one that accepts; 24 if not given."
    )


class RouteTable(_Table):
    """``[[route]]``: a network behind a neighbour."""

    to: Ipv4Network | Ipv6Network = Field(description="Network.")
    via: Ipv4 | Ipv6 = Field(description="Address of the neighbour.")


class DetectorTable(_Table):
    """``[detector]``: when a back-end router counts as dead; docs/multistage.md says how it is found."""

    silence: Duration = Field(default=0.05, description="T: how long it returns nothing while others do.")
    alone: Duration = Field(default=0.2, description="The same where no other returns anything.")
    unanswered: FewFrames = Field(default=64, description="N: frames without an answer before the clock is looked at.")
    probes: FewFrames = Field(default=3, description="Own frames without an answer before a verdict.")
    returns: FewFrames = Field(default=3, description="Own frames answered before it is alive again.")
    hold: Duration = Field(default=0.1, description="Least time dead; doubled when it dies soon after a return.")
    verdicts: FewFrames = Field(default=8, description="Most verdicts in a second.")


class MultistageFile(_Table):
    """A whole ``*.multistage.toml``."""

    name: ApplianceName = Field(description="Name of the router: a-z, 0-9 and -, up to 12 characters.")
    description: str = Field(default="", description="The router in words.")
    scheme: Literal["flow_hash", "round_robin", "local_only"] = Field(
        default="flow_hash",
        description="Which back-end router a frame goes to: that of its flow, of its turn, its network's.",
    )
    seed: Annotated[int, Field(ge=0, le=2**63 - 1, strict=True)] = Field(default=1, description="Of the flows' table.")
    segment: Annotated[tuple[SegmentTable, ...], Field(min_length=2, max_length=16)]
    balancer: Annotated[tuple[BalancerTable, ...], Field(min_length=1, max_length=2)] = Field(
        description="One that works, and one that stands by."
    )
    router: Annotated[tuple[BackEndTable, ...], Field(min_length=1, max_length=_MOST_ROUTERS)]
    route: tuple[RouteTable, ...] = ()
    detector: DetectorTable = DetectorTable()
