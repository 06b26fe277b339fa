"""A typer application whose errors are one line on standard error, and output to a reader that may go away."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TextIO

import typer

# Error of a wrong option or argument; typer names only its subclass.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]
_INTERRUPTED = 130


def run_app(app: typer.Typer, name: str, args: list[str] | None = None) -> None:
    """Run the application and exit.

    Exit codes: 2 for errors that the user can mend (usage, files, data), 1 for a missing package or a fit that did not
    converge, 130 if interrupted, 0 otherwise, even if nobody reads the output to its end.
    """
    try:
        code = app(args=args, prog_name=name, standalone_mode=False)
        sys.stdout.flush()
    except SystemExit as stop:
        # typer and rich exit with 1 where the reader of the output has gone, as `head` does, which is no error.
        if not isinstance(stop.__context__, BrokenPipeError):
            raise
        code = _discard_output(sys.stdout)
    except BrokenPipeError:
        code = _discard_output(sys.stdout)
    except _UsageError as error:
        context = getattr(error, "ctx", None)
        path = context.command_path if context is not None else name
        message = error.format_message().rstrip(".")  # type: ignore[attr-defined]
        _fail(name, f"{message} (see {path} --help)", 2)
    except (ValueError, OSError) as error:
        _fail(name, _one_line(error), 2)
    except ImportError as error:
        _fail(name, _one_line(error), 1)
    except (KeyboardInterrupt, typer.Abort):
        code = _INTERRUPTED
    if code == _INTERRUPTED:  # which typer may have caught itself
        _fail(name, "interrupted", _INTERRUPTED)
    sys.exit(code if isinstance(code, int) else 0)


def _discard_output(stream: TextIO) -> int:
    """Discard all further output, which Python would fail to write at exit; return the exit code of success."""
    with contextlib.suppress(OSError, ValueError):  # a stream without a descriptor
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
    return 0


def print_error_line(text: str) -> None:
    """Print a line on standard error; the work goes on if the reader, such as `head`, is gone."""
    try:
        print(text, file=sys.stderr, flush=True)
    except BrokenPipeError:
        _discard_output(sys.stderr)


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return " ".join(str(error).split()) or type(error).__name__


def _fail(name: str, message: str, code: int) -> None:
    print(f"{name}: {message}", file=sys.stderr)
    sys.exit(code)
