"""XDP programs on frames that the kernel makes: BPF_PROG_TEST_RUN in live mode (Linux 5.18), all on one core.

A frame that a program redirects goes where it is sent. At the other end of that wire a :func:`sink` drops it, after it
has put back the addresses that the program wrote: the kernel uses the same pages again and writes nothing anew.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import socket
import struct
import subprocess
from collections.abc import Sequence

_SYSCALL = {"x86_64": 321, "aarch64": 280}
_LOAD, _RUN, _FD_BY_ID, _LINK = 5, 10, 13, 28
_XDP, _ATTACH_XDP = 6, 37
_NATIVE = 4
_LIVE = 2
_BATCH = 64
_REDIRECT = 23
_DROP = 1
_DURATION_AT = 36

_libc = ctypes.CDLL(None, use_errno=True)


def _bpf(command: int, attributes: bytes) -> tuple[int, bytes]:
    buffer = ctypes.create_string_buffer(attributes, max(len(attributes), 128))
    result = _libc.syscall(_SYSCALL[os.uname().machine], command, buffer, len(buffer))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"bpf({command}): {errno.errorcode.get(number, number)}")
    return result, buffer.raw


def _address(data: ctypes.Array[ctypes.c_char]) -> int:
    return ctypes.addressof(data)


def _op(code: int, to: int = 0, source: int = 0, offset: int = 0, value: int = 0) -> bytes:
    return struct.pack("<BBhI", code, source << 4 | to, offset, value & 0xFFFFFFFF)


def _load(instructions: Sequence[bytes]) -> int:
    code = ctypes.create_string_buffer(b"".join(instructions))
    license_text, log = ctypes.create_string_buffer(b"GPL"), ctypes.create_string_buffer(65_536)
    head = struct.pack("<IIQQ", _XDP, len(instructions), _address(code), _address(license_text))
    head += struct.pack("<IIQ", 1, len(log), _address(log))
    try:
        return _bpf(_LOAD, head + struct.pack("<II16sII", 0, 0, b"bench", 0, _ATTACH_XDP))[0]
    except OSError as problem:
        raise OSError(problem.errno, log.value.decode(errors="replace") or str(problem)) from None


def redirect(index: int) -> int:
    """Load a program that redirects each frame to an interface, and does nothing else."""
    return _load([_op(0xB7, 1, value=index), _op(0xB7, 2), _op(0x85, value=_REDIRECT), _op(0x95)])


def sink(macs: bytes) -> int:
    """Load a program that writes destination and source address, 12 octets, into each frame and drops it."""
    assert len(macs) == 12
    stores = [_op(0x62, 2, offset=at, value=int.from_bytes(macs[at : at + 4], "little")) for at in (0, 4, 8)]
    return _load(
        [
            _op(0x61, 2, 1, 0),  # data
            _op(0x61, 3, 1, 4),  # its end
            _op(0xBF, 4, 2),
            _op(0x07, 4, value=12),
            _op(0x2D, 4, 3, len(stores)),
            *stores,
            _op(0xB7, 0, value=_DROP),
            _op(0x95),
        ]
    )


def attach(program: int, interface: str) -> int:
    """Attach a program to an interface of this namespace, in its driver, until the file that is returned is closed."""
    index = socket.if_nametoindex(interface)
    return _bpf(_LINK, struct.pack("<IIII", program, index, _ATTACH_XDP, _NATIVE))[0]


def attached(interface: str) -> int:
    """Open the program that is attached to an interface of this namespace."""
    listing = subprocess.run(["ip", "-j", "-d", "link", "show", interface], check=True, capture_output=True, text=True)
    number = json.loads(listing.stdout)[0]["xdp"]["prog"]["id"]
    return _bpf(_FD_BY_ID, struct.pack("<III", number, 0, 0))[0]


def frame_ns(program: int, interface: str, frame: bytes, times: int) -> float:
    """Run a program on frames that seem to come in by an interface of this namespace; return what one takes, ns."""
    data = ctypes.create_string_buffer(frame, len(frame))
    index = socket.if_nametoindex(interface)
    context = ctypes.create_string_buffer(struct.pack("<IIIIII", 0, len(frame), 0, index, 0, 0), 24)
    request = struct.pack("<IIIIQQII", program, 0, len(frame), 0, _address(data), 0, times, 0)
    request += struct.pack("<IIQQIII", 24, 0, _address(context), 0, _LIVE, 0, _BATCH)
    _, answer = _bpf(_RUN, request)
    (result,) = struct.unpack_from("<I", answer, _DURATION_AT)
    return float(result)
