"""The green operating point: the cores, clock, C-states and activation that meet targets with the fewest watts.

::

    router file ─► choices ─► candidates ─┐
    offered load ─────────────────────────┼─► bound ─► search ─► check ─► operating point
    targets ──────────────────────────────┘                └──── hour by hour ─► day plan
"""
