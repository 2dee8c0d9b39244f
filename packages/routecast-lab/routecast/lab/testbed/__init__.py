"""Measurements of real routers: test beds, devices under test, and ``Measure``, the evaluator that sends frames."""

from routecast.lab.testbed._interfaces import Interfaces
from routecast.lab.testbed.bed import Bed, TesterPort
from routecast.lab.testbed.dut_host import Device, DevicePort, DeviceSite, Missing
from routecast.lab.testbed.measure import Measure, Phases
from routecast.lab.testbed.namespaces import Namespaces
from routecast.lab.testbed.opening import make_bed, open_testbed
from routecast.lab.testbed.reading import bed_schema, parse_testbed, read_testbed

__all__ = [
    "Bed",
    "Device",
    "DevicePort",
    "DeviceSite",
    "Interfaces",
    "Measure",
    "Missing",
    "Namespaces",
    "Phases",
    "TesterPort",
    "bed_schema",
    "make_bed",
    "open_testbed",
    "parse_testbed",
    "read_testbed",
]
