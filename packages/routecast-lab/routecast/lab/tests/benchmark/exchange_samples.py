"""Small files in the formats of other tools, written after those formats; numbers are made up so that they add up."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]


def hdr_text(counts: Mapping[int, int], *, digits: int = 3) -> str:
    """Encode counts by value as an HDR histogram (V2, compressed), for values below 2048, where classes are 1 wide."""
    words = b""
    at = 0
    for value in sorted(counts):
        if value > at:
            words += _leb(at - value)
        words += _leb(counts[value])
        at = value + 1
    payload = struct.pack(">IIIIQQd", 0x1C849313, len(words), 0, digits, 1, 10**6, 1.0) + words
    packed = zlib.compress(payload)
    return base64.b64encode(struct.pack(">II", 0x1C849314, len(packed)) + packed).decode()


def _leb(number: int) -> bytes:
    value = (number << 1) ^ (number >> 63)
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def trex() -> Json:
    """TRex v3.08 ``ndr_bench.py``: NdrBenchResults.to_json."""
    return {
        "results": {
            "title": "64 B",
            "Elapsed Time": 312.5,
            "queue_full_percentage": 0.2,
            "drop_rate_percentage": 0.05,
            "valid_latency": True,
            "rate_tx_bps": 512e6,
            "rate_rx_bps": 511.7e6,
            "tx_util": 6.72,
            "latency": {
                "5": {
                    "average": 30.0,
                    "jitter": 4,
                    "total_max": 120,
                    "total_min": 8,
                    "histogram": {"0": 1, "20": 97, "100": 2},
                }
            },
            "cpu_util": 11.0,
            "tx_pps": 1e6,
            "rx_pps": 999_500.0,
            "bw_per_core": 6.1,
            "rate_p": 51.2,
            "total_tx_L1": 672e6,
            "total_rx_L1": 671.6e6,
            "tx_bps": 512e6,
            "rx_bps": 511.7e6,
            "total_iterations": 7,
            "max_rate_bps": 1000e6,
            "iteration": 7,
            "rate_difference": 0,
            "ndr_points": [512e6],
        },
        "config": {
            "iteration_duration": 40.0,
            "q_full_resolution": 2.0,
            "first_run_duration": 40.0,
            "pdr": 0.1,
            "pdr_error": 1.0,
            "ndr_results": 1,
            "max_iterations": 10,
            "ports": [0, 1],
            "cores": 1,
            "total_cores": 1,
            "verbose": False,
            "bi_dir": False,
            "plugin_file": None,
            "tunables": {},
            "opt_binary_search": False,
            "title": "64 B",
            "opt_binary_search_percentage": 5,
        },
    }


def nfvbench() -> Json:
    """NFVbench ``--json``: an NDR and PDR search with two steps, one frame size."""

    def search_result(rate_pps: int, drop_percentage: float) -> Json:
        overall = {
            "tx_pkts": rate_pps * 60,
            "rx_pkts": round(rate_pps * 60 * (1 - drop_percentage / 100)),
            "drop_percentage": drop_percentage,
            "drop_pct": round(rate_pps * 60 * drop_percentage / 100),
            "avg_delay_usec": 25.0,
            "min_delay_usec": 10,
            "max_delay_usec": 90,
            "hdrh": hdr_text({10: 1, 20: 98, 90: 1}),
            "lat_percentile": {"25": 20, "75": 20, "99": 20},
        }
        return {
            "initial_rate_type": "rate_percent",
            "rate_pps": rate_pps,
            "rate_percent": 20.0,
            "rate_bps": rate_pps * 672,
            "load_percent_per_direction": 10.0,
            "stats": {"overall": overall, "0": dict(overall), "1": dict(overall), "total_tx_rate": rate_pps},
            "timestamp_sec": 1.0,
            "time_taken_sec": 100.0,
        }

    def step(rate_pps: int, drop_percentage: float) -> Json:
        return {
            "total_tx_pps": rate_pps,
            "tx_pps": rate_pps,
            "tx_pkts": rate_pps * 60,
            "rx_pps": round(rate_pps * (1 - drop_percentage / 100)),
            "rx_pkts": round(rate_pps * 60 * (1 - drop_percentage / 100)),
            "drop_pct": round(rate_pps * 60 * drop_percentage / 100),
            "drop_percentage": drop_percentage,
            "time_ms": 1,
        }

    result = {
        "ndr": search_result(2_000_000, 0.0005),
        "pdr": search_result(2_500_000, 0.08),
        "iteration_stats": {"ndr_pdr": [step(4_000_000, 40.0), step(2_000_000, 0.0005)]},
    }
    chain = {
        "bidirectional": True,
        "flow_count": 10000,
        "service_chain_count": 1,
        "profile": "custom",
        "result": {"64": result},
    }
    return {
        "date": "2024-01-01 00:00:00",
        "nfvbench_version": "5.0.4",
        "config": {"duration_sec": 60, "measurement": {"NDR": 0.001, "PDR": 0.1}, "tg-name": "trex-local"},
        "benchmarks": {"network": {"service_chain": {"PVP": {"result": chain}}, "versions": {}}},
        "openstack_spec": {"vswitch": "VPP", "encaps": "VLAN"},
    }


def trafficgen() -> Json:
    """bench-trafficgen ``binary-search.json``: a trial that failed and one that passed, both ways."""

    def port(sent: int, received: int, lost: int) -> Json:
        return {
            "tx_packets": sent,
            "tx_pps": sent / 30,
            "tx_pps_target": sent / 30,
            "tx_l1_bps": sent / 30 * 84 * 8,
            "rx_packets": received,
            "rx_pps": received / 30,
            "rx_lost_packets": lost,
            "rx_lost_packets_pct": 100 * lost / sent,
            "rx_latency_average": 40.0,
            "rx_latency_packets": 1000,
            "rx_latency_maximum": 200.0,
            "rx_latency_minimum": 12.0,
            "rx_active": True,
            "tx_active": True,
        }

    def trial(number: int, result: str, sent: int, lost: int) -> Json:
        return {
            "trial": number,
            "rate": 10.0 / number,
            "rate_unit": "%",
            "result": result,
            "profiler-data": None,
            "stats": {
                "0": port(sent, sent - lost, lost),
                "1": port(sent, sent - lost, lost),
                "directional": {},
                "global": {"runtime": 30.0, "timeout": False, "early_exit": False, "force_quit": False},
                "retval": 0,
            },
            "trial_params": {
                "frame_size": 64,
                "runtime": 30,
                "traffic_generator": "trex-txrx",
                "max_loss_pct": 0.002,
                "num_flows": 1024,
                "trial_mode": "search" if result == "fail" else "validation",
            },
        }

    return {
        "trials": [trial(1, "fail", 30_000_000, 3_000_000), trial(2, "pass", 15_000_000, 0)],
        "log": [],
        "port_info": {},
    }


def uti_envelope(kind: str) -> Json:
    """Everything around the result of a CSIT test case."""
    return {
        "duration": 300.5,
        "dut_type": "vpp",
        "dut_version": "24.10-release",
        "end_time": "2024-11-01T00:05:00.5Z",
        "hosts": ["10.30.51.44", "10.30.51.45"],
        "message": "",
        "passed": True,
        "start_time": "2024-11-01T00:00:00.0Z",
        "tags": ["1C", "64B", "NDRPDR"],
        "telemetry": [],
        "test_documentation": "",
        "test_id": "tests.vpp.perf.ip4.2n1l-10ge2p1x710-ethip4-ip4base-ndrpdr.64b-1c-ethip4-ip4base-ndrpdr",
        "test_name_long": "10ge2p1x710-64b-2t1c-ethip4-ip4base",
        "test_name_short": "ethip4-ip4base",
        "test_type": kind,
        "tg_type": "trex",
        "tg_version": "v3.03",
        "version": "1.5.1",
    }


def uti_ndrpdr() -> Json:
    """A CSIT NDRPDR test case with latencies of both directions."""

    def rate(value: float) -> Json:
        return {"rate": {"value": value, "unit": "pps"}, "bandwidth": {"value": value * 672, "unit": "bps"}}

    def numbers(median_us: int) -> Json:
        histogram = hdr_text({median_us - 3: 10, median_us: 80, median_us + 50: 10})
        return {"min": median_us - 3, "avg": median_us + 5, "max": median_us + 50, "hdrh": histogram, "unit": "us"}

    def way() -> Json:
        return {"pdr_0": numbers(8), "pdr_10": numbers(10), "pdr_50": numbers(20), "pdr_90": numbers(60)}

    result = {
        "type": "ndrpdr",
        "ndr": {"lower": rate(17_000_000.0), "upper": rate(17_080_000.0)},
        "pdr": {"lower": rate(18_500_000.0), "upper": rate(18_590_000.0)},
        "latency_forward": way(),
        "latency_reverse": way(),
    }
    return {**uti_envelope("ndrpdr"), "result": result}


def uti_mrr() -> Json:
    """A CSIT MRR test case of two trials."""
    values = {"values": [19.0e6, 19.2e6], "avg": 19.1e6, "stdev": 100_000.0, "unit": "pps"}
    return {**uti_envelope("mrr"), "result": {"type": "mrr", "receive_rate": {"rate": values}}}


def iperf3(*, sent: int = 1785, received_count: int = 1785, lost: int = 0, arrived: int = 1785) -> Json:
    """iperf3 3.12 ``--json`` of one UDP stream over IPv4 with 1400-byte datagrams."""
    stream = {
        "socket": 5,
        "start": 0,
        "end": 1.0,
        "seconds": 1.0,
        "bytes": sent * 1400,
        "bits_per_second": sent * 11200.0,
    }
    udp = {
        **stream,
        "jitter_ms": 0.01,
        "lost_packets": lost,
        "packets": sent,
        "lost_percent": 100 * lost / sent,
        "out_of_order": 2,
        "sender": True,
    }
    sent_sum = {**stream, "jitter_ms": 0, "lost_packets": 0, "packets": sent, "lost_percent": 0, "sender": True}
    received_sum = {
        **stream,
        "bytes": arrived * 1400,
        "jitter_ms": 0.01,
        "lost_packets": lost,
        "packets": received_count,
        "lost_percent": 0,
        "sender": False,
    }
    return {
        "start": {
            "connected": [
                {
                    "socket": 5,
                    "local_host": "192.0.2.1",
                    "local_port": 4,
                    "remote_host": "192.0.2.2",
                    "remote_port": 5201,
                }
            ],
            "version": "iperf 3.12",
            "test_start": {
                "protocol": "UDP",
                "num_streams": 1,
                "blksize": 1400,
                "omit": 0,
                "duration": 1,
                "reverse": 0,
                "target_bitrate": 20000000,
            },
        },
        "intervals": [],
        "end": {
            "streams": [{"udp": udp}],
            "sum": {**received_sum, "bytes": sent * 1400},
            "sum_sent": sent_sum,
            "sum_received": received_sum,
        },
    }
