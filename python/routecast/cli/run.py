"""Running a command line, from arguments to an exit code."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from routecast.errors import FileProblem, RoutecastError

__all__ = ["DEFECT", "INTERRUPTED", "run"]

Handler = Callable[..., object]

INTERRUPTED = 130
DEFECT = 70
"""EX_SOFTWARE of sysexits.h: an error that routecast did not raise on purpose."""


def run(arguments: Sequence[str], *, begin: Callable[[Handler], object] = lambda strike: None) -> int:
    """Run one command and return its exit code; a traceback is printed only under ``--debug``.

    ``begin`` is called with the handler of SIGINT when the command is known and imported, before it starts.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Names of files are bytes, and texts of JSON may have half a character: as escapes they are JSON still.
        sys.stdout.reconfigure(errors="backslashreplace")
    given = [argument for argument in arguments if argument != "--debug"]
    debug = len(given) < len(arguments)
    try:
        with _ended_as_interrupted() as strike:
            return _command(given, lambda: begin(strike))
    except KeyboardInterrupt:
        return _stop("interrupted", INTERRUPTED, debug=debug)
    except BrokenPipeError:
        # The reader of stdout left (`routecast board | head`): not a fault, and nothing more can be said there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except RoutecastError as error:
        return _stop(_message(error, given), error.exit_code, debug=debug)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError, FileExistsError) as error:
        return _stop(f"{error.filename}: {error.strerror}{_hint(error.filename)}", 2, debug=debug)
    except OSError as error:
        return _stop(f"{error.filename or 'system'}: {error.strerror or error}", 3, debug=debug)
    except ImportError as error:
        return _stop(
            f"{error}: run `make demo` or `pip install .` to build and install what is missing", 3, debug=debug
        )
    except Exception as error:
        hint = "" if debug else "; add --debug to see where"
        return _stop(f"a defect of routecast: {type(error).__name__}: {error}{hint}", DEFECT, debug=debug)


@contextmanager
def _ended_as_interrupted() -> Iterator[Handler]:
    """Yield a handler of signals that raises KeyboardInterrupt even if an import or a class replaces the exception.

    SIGTERM acts like Ctrl-C: batch systems send it when a job's time is over; finished work is kept.
    """
    is_struck = False

    def strike(*_: object) -> None:
        nonlocal is_struck
        is_struck = True
        raise KeyboardInterrupt

    is_heard = threading.current_thread() is threading.main_thread() and (
        signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    )
    if is_heard:
        signal.signal(signal.SIGTERM, strike)
    try:
        yield strike
    except RoutecastError:
        raise
    except Exception as error:  # numpy has an ImportError for it, pydantic a SchemaError
        if is_struck:
            raise KeyboardInterrupt from error
        raise
    finally:
        if is_heard:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _command(arguments: Sequence[str], begin: Callable[[], object]) -> int:
    if not arguments and "_ROUTECAST_COMPLETE" not in os.environ:  # a shell that asks how to complete gives none
        from routecast.cli.questions import questions

        begin()
        print(questions(), flush=True)
        return 0
    from typer.main import get_command

    from routecast.cli.app import app

    command = get_command(app)
    begin()
    try:
        command.main(args=list(arguments), prog_name="routecast")
    except SystemExit as leave:
        if isinstance(leave.__context__, BrokenPipeError):  # click makes a 1 of it: no criterion failed
            raise leave.__context__ from None
        code = leave.code if isinstance(leave.code, int) else 0
        # Its class is click's, or typer's own copy of it.
        if type(leave.__context__).__name__ == "MissingParameter":
            _print_example(leave.__context__)
        if code == INTERRUPTED:
            print("routecast: interrupted", file=sys.stderr)
        return code
    return 0


def _print_example(usage: Any) -> None:
    from routecast.cli.questions import example_of

    if example := example_of(usage.ctx.command_path):
        print(example, file=sys.stderr)


def _message(error: RoutecastError, arguments: Sequence[str]) -> str:
    """Return the message of an error; for a file of another command, with that command."""
    if not isinstance(error, FileProblem):
        return str(error)
    from routecast.cli.file_kinds import other_kind

    return other_kind(error.subject, arguments) or f"{error}{_hint(error.subject)}"


def _hint(path: object) -> str:
    from routecast.cli.examples import example_hint

    return example_hint(str(path))


def _stop(message: str, code: int, *, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    sys.stdout.flush()
    print(f"routecast: {message}", file=sys.stderr)
    return code
