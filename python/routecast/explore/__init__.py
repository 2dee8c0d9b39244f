"""Live panels: a router and its simulator in a page, with controls for its fields."""

from routecast.explore.panel import Control, Panel, make_panel
from routecast.explore.router import panel_of_router

__all__ = ["Control", "Panel", "make_panel", "panel_of_router"]
