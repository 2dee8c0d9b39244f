"""Power meters: RAPL, energy events, IPMI, Redfish, logs and web addresses behind one interface.

::

    find_meters() ─► which meters can be read here, and why the others cannot
    meter_of("rapl") ─► PowerMeter ─► Metering(meter): … ─► PowerReading ─► with_power(trial, reading)

Every figure has a scope: ``rapl:package`` covers the processor alone, ``bmc`` what the power supplies deliver or draw,
``pdu`` and ``wall`` everything.
"""

from routecast.lab.testbed.document import MeterSettings
from routecast.lab.testbed.meters._csv_log import CsvMeter
from routecast.lab.testbed.meters._finding import choose_meter, describe_no_power, find_meters, meter_for, meter_of
from routecast.lab.testbed.meters._http_watts import HttpSource
from routecast.lab.testbed.meters._ipmi import IpmiSource
from routecast.lab.testbed.meters._meter import Metering, PowerMeter, PowerReading, Zone, checked_meter, with_power
from routecast.lab.testbed.meters._perf import PerfSource
from routecast.lab.testbed.meters._rapl import RaplSource
from routecast.lab.testbed.meters._redfish import RedfishSource
from routecast.lab.testbed.meters._sampled import SampledMeter

__all__ = [
    "CsvMeter",
    "HttpSource",
    "IpmiSource",
    "MeterSettings",
    "Metering",
    "PerfSource",
    "PowerMeter",
    "PowerReading",
    "RaplSource",
    "RedfishSource",
    "SampledMeter",
    "Zone",
    "checked_meter",
    "choose_meter",
    "describe_no_power",
    "find_meters",
    "meter_for",
    "meter_of",
    "with_power",
]
