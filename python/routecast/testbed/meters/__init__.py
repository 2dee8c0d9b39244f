"""Power meters: RAPL, energy events, IPMI, Redfish, logs and web addresses behind one interface.

::

    find_meters() ─► what is here, and of the rest why not
    meter_of("rapl") ─► PowerMeter ─► metering(meter): … ─► PowerReading ─► with_power(trial, reading)

Every figure says what it covers, its scope: ``rapl:package`` sees the processor alone, ``bmc`` what the power supplies
deliver or draw, ``pdu`` and ``wall`` everything.
"""

from routecast.testbed.meters._attaching import MeteredTrial, with_power
from routecast.testbed.meters._csv_log import CsvMeter
from routecast.testbed.meters._finding import FoundMeter, choose_meter, find_meters, no_power
from routecast.testbed.meters._http_watts import HttpSource
from routecast.testbed.meters._ipmi import IpmiSource
from routecast.testbed.meters._naming import AUTO, MeterSettings, meter_of
from routecast.testbed.meters._perf import PerfSource
from routecast.testbed.meters._rapl import RaplSource
from routecast.testbed.meters._redfish import RedfishSource
from routecast.testbed.meters._sampled import Sample, SampledMeter, Source
from routecast.testbed.meters.meter import (
    Metering,
    PowerMeter,
    PowerReading,
    PowerSpan,
    Zone,
    ZonePower,
    metering,
    tried,
)

__all__ = [
    "AUTO",
    "CsvMeter",
    "FoundMeter",
    "HttpSource",
    "IpmiSource",
    "MeterSettings",
    "MeteredTrial",
    "Metering",
    "PerfSource",
    "PowerMeter",
    "PowerReading",
    "PowerSpan",
    "RaplSource",
    "RedfishSource",
    "Sample",
    "SampledMeter",
    "Source",
    "Zone",
    "ZonePower",
    "choose_meter",
    "find_meters",
    "meter_of",
    "metering",
    "no_power",
    "tried",
    "with_power",
]
