"""Files of iperf3 3.1 to 3.21 for UDP tests with known counts, after ``iperf_print_results`` of each version."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

PAYLOAD_BYTES = 1000
SECONDS = 2.0


@dataclass(frozen=True, kw_only=True)
class Way:
    """Datagrams of one direction: lost on the way, and lost after the last that arrived."""

    sent: int = 2000
    lost: int = 100
    tail: int = 0

    @property
    def numbered(self) -> int:
        return self.sent - self.tail

    @property
    def arrived(self) -> int:
        return self.numbered - self.lost


def number_of(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _sum(packets: int, lost: int, count_of_bytes: int, sender: bool | None, version: str) -> Json:
    total: Json = {
        "start": 0,
        "end": SECONDS,
        "seconds": SECONDS,
        "bytes": count_of_bytes,
        "bits_per_second": 8 * count_of_bytes / SECONDS,
        "jitter_ms": 0.01,
        "lost_packets": lost,
        "packets": packets,
        "lost_percent": 100 * lost / packets if packets else 0,
    }
    if number_of(version) >= (3, 7) and sender is not None:
        total["sender"] = sender
    return total


def _direction(version: str, role: str, way: Way, *, to_client: bool, suffix: str) -> tuple[Json, Json]:
    """Return the stream and the sums of one direction, as the writer sees it."""
    writer_sends = (role == "server") == to_client
    sent = way.sent if writer_sends or role == "client" else 0
    numbered = way.numbered if not writer_sends or role == "client" else 0
    arrived = way.arrived if numbered else 0
    lost = way.lost if numbered else 0
    mixed = numbered if number_of(version) < (3, 2) and not (role == "server" and writer_sends) else sent or numbered
    total = _sum(mixed, lost, sent * PAYLOAD_BYTES, writer_sends, version)
    sums = {f"sum{suffix}": total}
    if number_of(version) >= (3, 11):
        sums[f"sum_sent{suffix}"] = _sum(sent, 0, sent * PAYLOAD_BYTES, True, version)
        sums[f"sum_received{suffix}"] = _sum(numbered, lost, arrived * PAYLOAD_BYTES, False, version)
    return {"udp": {**total, "socket": 5, "out_of_order": 0}}, sums


def document(
    version: str = "3.21",
    role: str = "client",
    *,
    forward: Way | None = None,
    reverse: Way | None = None,
    streams: int = 1,
    target_bitrate: int | None = 8_000_000,
) -> Json:
    """Return the document of a test: ``forward`` is client to server, both are ``--bidir``."""
    end: Json = {"streams": []}
    for way, to_client in ((forward, False), (reverse, True)):
        if way is None:
            continue
        suffix = "_bidir_reverse" if to_client and forward and number_of(version) >= (3, 11) else ""
        stream, sums = _direction(version, role, way, to_client=to_client, suffix=suffix)
        # The streams share the datagrams; the sum is that of all.
        for part in range(streams):
            share = {
                key: (value * (part + 1) // streams - value * part // streams) if key in ("bytes", "packets") else value
                for key, value in stream["udp"].items()
            }
            share["lost_packets"] = stream["udp"]["lost_packets"] if part == 0 else 0
            end["streams"].append({"udp": share})
        end |= sums  # from 3.7 to 3.10 the second "sum" of a JSON reader hides the first
    start: Json = {
        "connected": [{"socket": 5, "local_host": "192.0.2.1", "remote_host": "192.0.2.2", "remote_port": 5201}],
        "version": f"iperf {version}",
        "connecting_to" if role == "client" else "accepted_connection": {"host": "192.0.2.2", "port": 5201},
        "test_start": {
            "protocol": "UDP",
            "num_streams": streams,
            "blksize": PAYLOAD_BYTES,
            "omit": 0,
            "duration": int(SECONDS),
            "bytes": 0,
            "blocks": 0,
            "reverse": int(forward is None),
        },
    }
    if target_bitrate is not None and number_of(version) >= (3, 7):
        start["test_start"]["target_bitrate"] = target_bitrate // streams
    return {"start": start, "intervals": [], "end": end}


def events(value: Json, *, full: bool = False) -> str:
    """Return ``--json-stream``, or with ``full`` ``--json-stream-full-output``, of a document."""
    parts = [("start", value["start"]), *(("interval", part) for part in value["intervals"]), ("end", value["end"])]
    lines = [json.dumps({"event": name, "data": data}) for name, data in parts]
    return "\n".join(lines + ([json.dumps(value, indent="\t")] if full else [])) + "\n"
