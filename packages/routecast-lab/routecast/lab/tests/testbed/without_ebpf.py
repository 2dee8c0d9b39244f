"""Run a command whose kernel refuses every call of bpf(2): ``python without_ebpf.py [--no-sockets] COMMAND …``.

A seccomp filter does it, as the filters of container runtimes do for real; to the command it is as if the kernel were
locked down, whatever capabilities it has. With ``--no-sockets`` there are no AF_PACKET and AF_XDP sockets either.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import socket
import struct
import sys

# linux/seccomp.h, linux/prctl.h, linux/audit.h; numbers of bpf(2) and socket(2) in each architecture's table of calls.
_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _MODE_FILTER = 22, 38, 2
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_CALLS = {"x86_64": (0xC000003E, 321, 41), "aarch64": (0xC00000B7, 280, 198)}
_AF_XDP = 44

# Of classic BPF, linux/filter.h: load a word, jump if equal, return. The words are those of struct seccomp_data.
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16

IS_KNOWN = platform.machine() in _CALLS


def refuse(*, sockets: bool) -> None:
    """Let bpf(2), and the tester's kinds of socket, fail with EPERM in this process and all that come of it."""
    architecture, bpf, socket_ = _CALLS[platform.machine()]
    families = (socket.AF_PACKET, _AF_XDP) if sockets else ()
    # Jumps go over so many lines, if equal and if not; the last two allow and refuse.
    socket_lines = [
        (_JUMP_IF_EQUAL, 0, 1 + len(families), socket_),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        *((_JUMP_IF_EQUAL, len(families) - number, 0, family) for number, family in enumerate(families)),
    ]
    lines = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_JUMP_IF_EQUAL, 0, 2 + len(socket_lines), architecture),
        (_LOAD, 0, 0, _NUMBER),
        (_JUMP_IF_EQUAL, 1 + len(socket_lines), 0, bpf),
        *socket_lines,
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _ERRNO | errno.EPERM),
    ]
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in lines))
    filter_ = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(lines), ctypes.addressof(program)))
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in (
        (_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        (_PR_SET_SECCOMP, _MODE_FILTER, ctypes.c_void_p(ctypes.addressof(filter_)), 0, 0),
    ):
        if libc.prctl(*arguments) != 0:
            raise OSError(ctypes.get_errno(), "prctl")


if __name__ == "__main__":
    command = [argument for argument in sys.argv[1:2] if argument != "--no-sockets"] + sys.argv[2:]
    refuse(sockets=len(command) < len(sys.argv) - 1)
    os.execvp(command[0], command)
