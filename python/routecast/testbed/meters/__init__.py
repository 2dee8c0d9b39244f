"""Power meters: RAPL, energy events, IPMI, Redfish, logs and web addresses behind one interface.

::

    find_meters() ─► which meters can be read here, and why the others cannot
    meter_of("rapl") ─► PowerMeter ─► Metering(meter): … ─► PowerReading ─► with_power(trial, reading)

Every figure has a scope: ``rapl:package`` covers the processor alone, ``bmc`` what the power supplies deliver or draw,
``pdu`` and ``wall`` everything.
"""

from routecast.testbed.document import MeterSettings
from routecast.testbed.meters._csv_log import CsvMeter
from routecast.testbed.meters._finding import choose_meter, describe_no_power, find_meters, meter_for, meter_of
from routecast.testbed.meters._http_watts import HttpSource
from routecast.testbed.meters._ipmi import IpmiSource
from routecast.testbed.meters._meter import Metering, PowerMeter, PowerReading, Zone, checked_meter, with_power
from routecast.testbed.meters._perf import PerfSource
from routecast.testbed.meters._rapl import RaplSource
from routecast.testbed.meters._redfish import RedfishSource
from routecast.testbed.meters._sampled import SampledMeter

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
