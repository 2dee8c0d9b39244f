"""The command ``routecast``.

stdout carries data, stderr progress and errors. Exit codes: 0 ok, 1 a criterion failed, 2 usage or bad file,
3 environment, 70 a defect of routecast, 130 interrupted.
"""

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and leave with its exit code; ``arguments`` are ``sys.argv[1:]`` unless given."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given == ["--version"]:  # asked by scripts, so answered before anything heavy is imported
        from routecast import __version__

        print(f"routecast {__version__}")
        raise SystemExit(0)
    from routecast.cli.run import run

    raise SystemExit(run(given))
