"""Commands and their options. Whatever takes time to import is imported by the command that needs it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import options
from .export import export
from .fit import evaluate, fit
from .index import index
from .neighbors import neighbors
from .pairs import pairs
from .report import report
from .running import run_app
from .transform import transform

__all__ = ["app", "main"]

app = typer.Typer(
    name="mahalo",
    help="Learn a distance from what you know about your data, solved to the optimum and certified.",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def main(args: list[str] | None = None) -> None:
    """Run the command line. Errors are one line on standard error; exit codes are those of `run_app`."""
    run_app(app, "mahalo", args)


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


for command in (fit, transform, neighbors, evaluate, report, index, export, pairs):
    app.command()(command)


@app.command()
def demo(
    context: typer.Context,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Directory for the pictures.")] = Path("out"),
    seed: Annotated[
        int, typer.Option(min=0, metavar="N", help="Seed of the splits and of the pairs that are drawn.")
    ] = 0,
    plot: Annotated[bool, typer.Option("--plot/--no-plot", help="Draw pictures (needs matplotlib).")] = True,
    write: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Only write a table to try: .csv, .tsv or .parquet; and new-bottles beside it.",
            rich_help_panel=options.RESULT,
        ),
    ] = None,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """The whole story on bundled data: learn, certify, compare, draw.

    Learns a distance on one half of the rows of scikit-learn's iris, wine and
    digits, judges it on the other half beside the usual distances, and saves
    one picture for each data set. Needs no network and no files. With `--write`
    it learns nothing and writes one of these tables for the other commands.
    """
    if write is not None:
        _write_table(context, write, force, json)
        return
    if force:
        raise ValueError("--force is for the table of --write; pictures are always written anew. Leave it out.")
    from .demo import run

    run(out if plot else None, seed, as_json=json)


def _write_table(context: typer.Context, path: Path, force: bool, json: bool) -> None:
    """Write the table of `mahalo demo --write` and print what to do with it."""
    import shlex

    from .sample_tables import write_wine
    from .showing import facts, print_json

    if unused := [option for name, option in options.given(context).items() if name not in ("write", "force", "json")]:
        raise ValueError(f"--write writes a table and learns nothing; leave out {', '.join(unused)}.")
    table, new = write_wine(path, force)
    if json:
        print_json({"out": str(table), "new": str(new)})
        return
    next_command = ["mahalo", "evaluate", str(table), "--label", "cultivar", "--id", "bottle"]
    facts({"written": f"{table} and {new}", "next": shlex.join(next_command)})


@app.command(hidden=True, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def reproduce() -> None:
    """Moved: `python -m experiments`, from a checkout."""
    raise ValueError("the paper's experiments are now run from a checkout of the source: python -m experiments")
