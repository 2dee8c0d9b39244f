"""GET requests to one host, limited in time and size, with a check of its certificate, without redirects and proxies.

A redirect could carry a password elsewhere, and no proxy belongs between a machine and its controller. The standard
library does it: an HTTP client package has no limit for a whole answer and its errors hide the system's reason.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import ipaddress
import json
import math
import netrc
import os
import ssl
import stat
import time
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from routecast.errors import EnvironmentProblem, FileProblem, Problem

ENVIRONMENT = ("ROUTECAST_POWER_USER", "ROUTECAST_POWER_PASSWORD", "ROUTECAST_POWER_TOKEN")
"""Variables with user, password and token of a power meter."""

_MAX_BODY_BYTES = 8_000_000
_CHUNK_BYTES = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """A user with a password, or a token; repr() shows neither."""

    user: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)

    def __bool__(self) -> bool:
        return bool(self.user or self.token)


def credentials_for(
    host: str, *, environment: Mapping[str, str] | None = None, home: Path | None = None
) -> Credentials:
    """Return the credentials for a host; empty if there are none.

    The variables ``ROUTECAST_POWER_TOKEN``, or ``ROUTECAST_POWER_USER`` and ``ROUTECAST_POWER_PASSWORD``, go first;
    then the line of ``$NETRC`` or ``~/.netrc`` for the host: ``machine HOST login USER password PASSWORD``.

    Raises EnvironmentProblem: a user without a password; a netrc file that others may read or that is malformed.
    """
    variables = os.environ if environment is None else environment
    user, password, token = (variables.get(name, "") for name in ENVIRONMENT)
    if token:
        return Credentials(token=token)
    if user or password:
        if not (user and password):
            raise EnvironmentProblem(f"give both {ENVIRONMENT[0]} and {ENVIRONMENT[1]}, or neither")
        return Credentials(user=user, password=password)
    path = Path(variables["NETRC"]) if variables.get("NETRC") else (home or Path.home()) / ".netrc"
    try:
        mode = path.stat().st_mode
    except OSError:
        return Credentials()
    try:
        entry = netrc.netrc(str(path)).hosts.get(host)
    except (netrc.NetrcParseError, UnicodeDecodeError, OSError) as problem:
        # The parser's message quotes the wrong word, which may be the password.
        line = f" in line {problem.lineno}" if isinstance(problem, netrc.NetrcParseError) else ""
        raise EnvironmentProblem(f"{path}: cannot be read as a netrc file{line}") from None
    if entry is None:
        return Credentials()
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise EnvironmentProblem(f"{path}: holds passwords and may be read by others: chmod 600 {path}")
    return Credentials(user=entry[0], password=entry[2] or "")


class NotFound(EnvironmentProblem):
    """The host has nothing at a path (404)."""


class Web:
    """A connection to the host of an address.

    ``url`` is ``http://…`` or ``https://…`` without user and password, ``meter`` the name of the meter for messages;
    ``timeout_s`` limits each answer; ``verify_tls`` requires a valid certificate; ``token_as`` sends a token as
    ``X-Auth-Token`` or ``Authorization: Bearer``. Raises FileProblem: the address is malformed, or holds a password;
    EnvironmentProblem: a password would go over the network in the clear.
    """

    def __init__(
        self,
        url: str,
        *,
        meter: str,
        credentials: Credentials,
        timeout_s: float = 5.0,
        verify_tls: bool = True,
        token_as: Literal["redfish", "bearer"] = "bearer",
    ) -> None:
        if not (math.isfinite(timeout_s) and timeout_s > 0.0):
            raise FileProblem(meter, [Problem("timeout", f"got {timeout_s} s: a time > 0 s")])
        self.meter = meter
        self._parts = _parse_url(url)
        self._timeout_s = timeout_s
        self._verify_tls = verify_tls
        self._headers = {"Accept": "application/json, text/plain;q=0.9, */*;q=0.1", "OData-Version": "4.0"}
        self._connection: http.client.HTTPConnection | None = None
        if credentials:
            if self._parts.scheme == "http" and not _is_loopback(self._parts.hostname or ""):
                raise EnvironmentProblem(
                    f"power meter {meter}: would send a password over the network in the clear: write https://"
                )
            self._headers |= _authorization_header(credentials, token_as)

    @property
    def path(self) -> str:
        """The path of the address, with its query."""
        query = f"?{self._parts.query}" if self._parts.query else ""
        return f"{self._parts.path or '/'}{query}"

    def get(self, path: str) -> bytes:
        """Return the body at a path of the host.

        Raises EnvironmentProblem: the host does not answer in time, or answers with an error.
        """
        deadline_s = time.monotonic() + self._timeout_s
        try:
            return self._get(path, deadline_s)
        except (http.client.HTTPException, ConnectionError) as problem:
            # A host may end an idle connection at any time: try once more on a new one.
            self.close()
            try:
                return self._get(path, deadline_s)
            except (http.client.HTTPException, OSError):
                self.close()
                raise self._problem(path, f"does not answer: {problem or type(problem).__name__}") from problem
        except TimeoutError as problem:
            self.close()
            raise self._problem(path, f"did not answer within {self._timeout_s:g} s") from problem
        except ssl.SSLCertVerificationError as problem:
            self.close()
            raise self._problem(
                path,
                f"has a certificate that is not trusted ({problem.verify_message}): name that of its authority with "
                "SSL_CERT_FILE, or switch the check off with --insecure or verify_tls = false",
            ) from problem
        except OSError as problem:
            self.close()
            raise self._problem(path, f"cannot be reached: {problem.strerror or problem}") from problem

    def get_json(self, path: str) -> Any:
        """Return the JSON document at a path; raises EnvironmentProblem as :meth:`get` does, or if it is not JSON."""
        try:
            return json.loads(self.get(path))
        except ValueError as problem:
            raise self._problem(path, "answers with text that is not JSON") from problem

    def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            with contextlib.suppress(OSError):
                self._connection.close()
            self._connection = None

    def _get(self, path: str, deadline_s: float) -> bytes:
        connection = self._connected()
        connection.request("GET", path, headers=self._headers)
        answer = connection.getresponse()
        body = bytearray()
        while chunk := answer.read1(_CHUNK_BYTES):
            body += chunk
            if time.monotonic() > deadline_s:
                raise TimeoutError
            if len(body) > _MAX_BODY_BYTES:
                self.close()
                raise self._problem(path, f"answers with more than {_MAX_BODY_BYTES:,} bytes")
        answer.read()  # at the end of the body, this frees the connection for the next request
        if answer.status != http.client.OK:
            kind = NotFound if answer.status == http.client.NOT_FOUND else EnvironmentProblem
            message = f"answers {answer.status} {answer.reason}{_advice(answer, self._headers)}"
            raise self._problem(path, message, kind)
        return bytes(body)

    def _connected(self) -> http.client.HTTPConnection:
        if self._connection is None:
            host, port = self._parts.hostname or "", self._parts.port
            if self._parts.scheme == "https":
                context = ssl.create_default_context()
                if not self._verify_tls:
                    context.check_hostname = False
                    context.verify_mode = ssl.CERT_NONE
                self._connection = http.client.HTTPSConnection(host, port, timeout=self._timeout_s, context=context)
            else:
                self._connection = http.client.HTTPConnection(host, port, timeout=self._timeout_s)
        return self._connection

    def _problem(
        self, path: str, message: str, kind: type[EnvironmentProblem] = EnvironmentProblem
    ) -> EnvironmentProblem:
        address = masked(f"{self._parts.scheme}://{self._parts.netloc}{path}")
        return kind(f"power meter {self.meter}: {address} {message}")


def masked(url: str) -> str:
    """Return an address without its secrets: user, password and the values of its query.

    Examples
    --------
    >>> masked("http://pdu:8080/watts?token=abc&outlet=3#/power")
    'http://pdu:8080/watts?token=***&outlet=***#/power'
    """
    try:
        parts = urllib.parse.urlsplit(url)
    except ValueError:
        return "…"  # no address: any part of it may be secret
    host = parts.netloc.rpartition("@")[2]
    query = "&".join(f"{pair.partition('=')[0]}=***" for pair in parts.query.split("&") if pair)
    return urllib.parse.urlunsplit((parts.scheme, host, parts.path, query, parts.fragment))


def _parse_url(url: str) -> urllib.parse.SplitResult:
    try:
        parts = urllib.parse.urlsplit(url)
        is_address = parts.scheme in {"http", "https"} and bool(parts.hostname)
        _ = parts.port
    except ValueError:
        is_address = False
    if not is_address:
        message = f"got {masked(url)!r}: write http://HOST/… or https://HOST/…"
        raise FileProblem("power meter", [Problem("", message)])
    if parts.username or parts.password:
        message = (
            f"{masked(url)} came with a user or password, which every user can read on a command line: set "
            "ROUTECAST_POWER_USER and ROUTECAST_POWER_PASSWORD, or write them into ~/.netrc"
        )
        raise FileProblem("power meter", [Problem("", message)])
    return parts


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _authorization_header(credentials: Credentials, token_as: str) -> dict[str, str]:
    if credentials.token:
        if token_as == "redfish":
            return {"X-Auth-Token": credentials.token}
        return {"Authorization": f"Bearer {credentials.token}"}
    pair = f"{credentials.user}:{credentials.password}".encode()
    return {"Authorization": f"Basic {base64.b64encode(pair).decode('ascii')}"}


def _advice(answer: http.client.HTTPResponse, headers: dict[str, str]) -> str:
    if answer.status in {401, 403}:
        if headers.keys() & {"Authorization", "X-Auth-Token"}:
            return ": user, password or token are not accepted, or may not read power"
        return (
            ": set ROUTECAST_POWER_USER and ROUTECAST_POWER_PASSWORD, or ROUTECAST_POWER_TOKEN, or write a line into "
            "~/.netrc"
        )
    if 300 <= answer.status < 400:
        return f": write the address that it names, {masked(answer.headers.get('Location', '(none)'))}"
    return ""
