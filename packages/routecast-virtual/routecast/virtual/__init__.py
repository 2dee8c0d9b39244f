"""Routers in virtual machines, containers and on servers: threads over cores (Li 2012, ch. 2-4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from routecast.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "assembly": "Assembly",
        "machines": "Cores Machine Server",
        "single": "virtual_router",
        "technology": "Technology",
    },
)

if TYPE_CHECKING:
    from routecast.virtual.assembly import Assembly as Assembly
    from routecast.virtual.machines import Cores as Cores
    from routecast.virtual.machines import Machine as Machine
    from routecast.virtual.machines import Server as Server
    from routecast.virtual.single import virtual_router as virtual_router
    from routecast.virtual.technology import Technology as Technology
