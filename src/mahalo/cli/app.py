"""Commands and their options. Whatever takes time to import is imported by the command that needs it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ..experiments import EXPERIMENTS

__all__ = ["app", "main"]

# What a wrong option or argument raises; typer names only its subclass.
_UsageError: Any = typer.BadParameter.__mro__[1]

app = typer.Typer(
    name="mahalo",
    help="Learn a distance from what you know about your data, solved to the optimum and certified.",
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def main(args: list[str] | None = None) -> None:
    """Run the command line. Errors are one line on standard error: exit code 2 for wrong usage, 1 for the rest."""
    try:
        code = app(args=args, prog_name="mahalo", standalone_mode=False)
    except _UsageError as error:
        context = getattr(error, "ctx", None)
        path = context.command_path if context is not None else "mahalo"
        _fail(f"{error.format_message().rstrip('.')} (see {path} --help)", 2)
    except (ValueError, OSError, ImportError) as error:
        _fail(_one_line(error), 1)
    except (KeyboardInterrupt, typer.Abort):
        _fail("interrupted", 130)
    sys.exit(code if isinstance(code, int) else 0)


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return " ".join(str(error).split()) or type(error).__name__


def _fail(message: str, code: int) -> None:
    print(f"mahalo: {message}", file=sys.stderr)
    sys.exit(code)


def _show_version(wanted: bool) -> None:
    if wanted:
        from mahalo import __version__

        print(f"mahalo {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _start(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help(), end="")


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Directory for the pictures.")] = Path("out"),
    seed: Annotated[int, typer.Option(min=0, help="Seed of the splits and of the pairs that are drawn.")] = 0,
    plot: Annotated[bool, typer.Option("--plot/--no-plot", help="Draw pictures (needs matplotlib).")] = True,
) -> None:
    """The whole story on bundled data: learn, certify, compare, draw.

    Learns a distance on one half of the rows of scikit-learn's digits and wine,
    judges it on the other half beside the usual distances, and saves one
    picture for each data set. Needs no network and no files.
    """
    from .demo import run

    run(out if plot else None, seed)


_REPRODUCE = (
    "The paper's experiments with its protocol, and some beyond it.\n\n"
    "Prints the tables of each EXPERIMENT and writes a figure, a JSON file with every number, and a page that sets "
    "them beside the published figures. Data are looked for in $MAHALO_DATA, then in the user's cache, then downloaded "
    "where there is an ordinary way to.\n\n" + "\n".join(f"{name}: {what}." for name, what in EXPERIMENTS.items())
)


@app.command(help=_REPRODUCE)
def reproduce(
    experiments: Annotated[list[str], typer.Argument(help=f"{', '.join(EXPERIMENTS)}; or all.", metavar="EXPERIMENT")],
    quick: Annotated[bool, typer.Option("--quick", help="About a minute each, on a part of the data.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of splits, pairs and samples.")] = 0,
    out: Annotated[Path, typer.Option(help="Directory for figures, numbers and pages.")] = Path("out/results"),
    plot: Annotated[bool, typer.Option("--plot/--no-plot", help="Draw figures (needs matplotlib).")] = True,
) -> None:
    from .reproduce import run

    if run(experiments, quick=quick, seed=seed, out=out, plot=plot):
        raise typer.Exit(1)
