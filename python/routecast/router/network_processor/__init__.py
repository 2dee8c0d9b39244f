"""Routers on network processors: engines, hardware threads, memories, blocks."""
