"""The control protocol of a router of many machines, as a machine of states without sockets, clocks or processes.

::

    counts, frames heard, tables read ──►  Machine  ──► actions: probe, call, solicit, set a neighbour, publish, …
    time, given by the caller         ──►           ──► events for people

The process that holds a router drives this machine and no other (:mod:`routecast.multistage._watch`); simulated worlds
drive the same one through faults (``benches/multistage_protocol.py``). Times are seconds of a clock that never steps.
"""
