"""Live panels: a page with a router, its simulator, and controls for the fields of the router."""

from routecast.explore.panel import Control, Panel, make_panel
from routecast.explore.router import panel_of_router

__all__ = ["Control", "Panel", "make_panel", "panel_of_router"]
