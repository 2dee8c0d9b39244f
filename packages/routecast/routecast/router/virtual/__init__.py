"""Routers in virtual machines, containers and on servers: threads over cores (Li 2012, ch. 2-4)."""

from routecast.router.virtual.assembly import Assembly
from routecast.router.virtual.machines import Cores, Machine, Server
from routecast.router.virtual.single import virtual_router
from routecast.router.virtual.technology import Technology

__all__ = ["Assembly", "Cores", "Machine", "Server", "Technology", "virtual_router"]
