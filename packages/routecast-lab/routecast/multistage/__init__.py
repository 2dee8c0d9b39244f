"""A router of many machines: load balancers, a switch and back-end routers that forward as one (Li 2012, ch. 1-3).

::

    file ─► Appliance ─► namespaces, eBPF programs ◄─ control socket ◄─ routecast multistage status, drain, fail, …
      └───► predicted_death: the predicted loss by a failure
"""
