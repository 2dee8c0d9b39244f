"""A controller on loopback, with documents as servers give them.

``RACK`` follows DMTF's mockup public-rackmount1 (DSP2043): chassis ``1U`` with the older ``Power``. ``ENVIRONMENT``
follows the example of EnvironmentMetrics in DSP2046.
"""

from __future__ import annotations

import base64
import contextlib
import http.server
import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PASSWORD = "correct horse"
TOKEN = "a-session-token"

Documents = dict[str, Any]


def chassis(name: str, **links: str) -> dict[str, Any]:
    within = links.pop("within", "")
    return {
        "@odata.id": f"/redfish/v1/Chassis/{name}",
        "@odata.type": "#Chassis.v1_21_0.Chassis",
        "Id": name,
        "Links": {"ContainedBy": {"@odata.id": within}} if within else {},
        **{kind: {"@odata.id": path} for kind, path in links.items()},
    }


def members(*names: str) -> dict[str, Any]:
    return {
        "@odata.type": "#ChassisCollection.ChassisCollection",
        "Members": [{"@odata.id": f"/redfish/v1/Chassis/{name}"} for name in names],
        "Members@odata.count": len(names),
    }


def power(*controls: Mapping[str, Any]) -> dict[str, Any]:
    return {"@odata.type": "#Power.v1_7_1.Power", "Id": "Power", "PowerControl": list(controls)}


def environment(watts: object, energy_kwh: object = None) -> dict[str, Any]:
    document: dict[str, Any] = {"@odata.type": "#EnvironmentMetrics.v1_3_0.EnvironmentMetrics"}
    if watts is not None:
        document["PowerWatts"] = {"DataSourceUri": "/redfish/v1/Chassis/1U/Sensors/Total", "Reading": watts}
    if energy_kwh is not None:
        document["EnergykWh"] = {"Reading": energy_kwh}
    return document


RACK: Documents = {
    "/redfish/v1/Chassis": members("1U"),
    "/redfish/v1/Chassis/1U": chassis("1U", Power="/redfish/v1/Chassis/1U/Power"),
    "/redfish/v1/Chassis/1U/Power": power(
        {
            "MemberId": "0",
            "Name": "System Input Power",
            "PhysicalContext": "Chassis",
            "PowerConsumedWatts": 344,
            "PowerCapacityWatts": 800,
            "PowerMetrics": {"IntervalInMin": 30, "AverageConsumedWatts": 319},
        },
        # Some makers list parts of the whole after it.
        {"MemberId": "1", "Name": "CPU Sub-system Power", "PhysicalContext": "CPU", "PowerConsumedWatts": 200},
        {"MemberId": "2", "Name": "Memory Sub-system Power", "PowerConsumedWatts": 40},
    ),
}

ENVIRONMENT: Documents = {
    "/redfish/v1/Chassis": members("1U"),
    "/redfish/v1/Chassis/1U": chassis(
        "1U", EnvironmentMetrics="/redfish/v1/Chassis/1U/EnvironmentMetrics", Power="/redfish/v1/Chassis/1U/Power"
    ),
    "/redfish/v1/Chassis/1U/EnvironmentMetrics": environment(374, 6166),
    "/redfish/v1/Chassis/1U/Power": power({"Name": "old", "PowerConsumedWatts": 1}),
}


@dataclass
class Mock:
    """The answers of the controller, and the requests that it got."""

    documents: Documents
    needs: str = ""  # "basic", "token" or nothing
    status: dict[str, int] = field(default_factory=dict)
    raw: dict[str, bytes] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    before: Callable[[str], object] = lambda path: None
    requested_paths: list[str] = field(default_factory=list)
    callers: set[int] = field(default_factory=set)  # client ports, one per connection
    url: str = ""
    certificate: Path | None = None  # with its key in one file: answers over TLS

    def lets_in(self, headers: Any) -> bool:
        pair = base64.b64encode(f"admin:{PASSWORD}".encode()).decode()
        return {
            "": True,
            "basic": headers.get("Authorization") == f"Basic {pair}",
            "token": headers.get("X-Auth-Token") == TOKEN,
            "bearer": headers.get("Authorization") == f"Bearer {TOKEN}",
        }[self.needs]


@contextlib.contextmanager
def controller(mock: Mock) -> Iterator[Mock]:
    """Answer on a port of loopback while the context lasts."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            mock.requested_paths.append(self.path)
            mock.callers.add(self.client_address[1])
            mock.before(self.path)
            path = self.path.partition("?")[0].rstrip("/") or "/"
            status = mock.status.get(path, 200)
            if not mock.lets_in(self.headers):
                status = 401
            elif status == 200 and path not in mock.documents and path not in mock.raw:
                status = 404
            body = mock.raw.get(path) or json.dumps(mock.documents.get(path, {})).encode()
            with contextlib.suppress(OSError):  # the client may be gone
                self.send_response(status)
                for name, value in mock.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002, the name of the base class
            del format, arguments

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if mock.certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(mock.certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    scheme = "http" if mock.certificate is None else "https"
    mock.url = f"{scheme}://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield mock
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
