"""The command ``routecast``.

stdout carries data, stderr progress and errors. Exit codes: 0 ok, 1 a criterion failed, 2 usage or bad file,
3 environment, 70 a defect of routecast, 130 interrupted.
"""

import sys
from collections.abc import Callable, Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit with its code; without ``arguments``, those of this process.

    The program exits at once if it is interrupted before its command begins or after its command has ended: then
    nothing remains to tidy up, and an interrupted import could raise anything.
    """
    words = sys.argv[1:] if arguments is None else arguments
    if [*words] == ["--version"]:  # Scripts use it, so it comes before heavy imports.
        from routecast.version import VERSION

        print(f"routecast {VERSION}")
        raise SystemExit(0)
    if arguments is not None:
        from routecast.cli.run import run

        raise SystemExit(run(arguments))
    try:
        import signal

        # A job in the background of a shell ignores Ctrl-C, and continues to ignore it.
        is_interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler

        def set_handler(handler: Callable[..., object]) -> None:
            if is_interruptible:
                signal.signal(signal.SIGINT, handler)

        set_handler(_exit_interrupted)
        from routecast.cli.run import run

        code = run(words, begin=set_handler)
        set_handler(_exit_interrupted)
        # If Ctrl-C interrupts the exec() of a text, as in dataclasses, CPython ends by SIGINT; another exec() resets
        # that.
        exec("")
    except KeyboardInterrupt:
        _exit_interrupted()
    raise SystemExit(code)


def _exit_interrupted(*_: object) -> None:
    import os

    os.write(2, b"routecast: interrupted\n")
    os._exit(130)
