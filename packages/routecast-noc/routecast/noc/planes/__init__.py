"""Allocations of flows to planes: Li's three algorithms and routecast's search."""
