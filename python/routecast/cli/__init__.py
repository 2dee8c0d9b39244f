"""The command ``routecast``.

stdout carries data, stderr progress and errors. Exit codes: 0 ok, 1 a criterion failed, 2 usage or bad file,
3 environment, 70 a defect of routecast, 130 interrupted.
"""

import sys
from collections.abc import Callable, Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and leave with its exit code; ``arguments`` are those of this program unless given.

    The program exits at once when it is interrupted before its command begins or after it has ended: there is nothing
    to tidy up, and an interrupted import could raise anything.
    """
    given = sys.argv[1:] if arguments is None else arguments
    if [*given] == ["--version"]:  # asked by scripts, so answered before anything heavy is imported
        from routecast import __version__

        print(f"routecast {__version__}")
        raise SystemExit(0)
    if arguments is not None:
        from routecast.cli.run import run

        raise SystemExit(run(arguments))
    try:
        import signal

        # A shell may let a job in the background ignore Ctrl-C: then it stays ignored.
        is_heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler

        def hear(handler: Callable[..., object]) -> None:
            if is_heard:
                signal.signal(signal.SIGINT, handler)

        hear(_leave)
        from routecast.cli.run import run

        code = run(given, begin=hear)
        hear(_leave)
        # CPython ends itself by SIGINT after an exec() of a text, as dataclasses do it, that Ctrl-C broke off; one that
        # goes through takes that back.
        exec("")
    except KeyboardInterrupt:
        _leave()
    raise SystemExit(code)


def _leave(*_: object) -> None:
    import os

    os.write(2, b"routecast: interrupted\n")
    os._exit(130)
