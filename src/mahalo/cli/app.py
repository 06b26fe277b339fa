"""The commands. Modules that take time to import are imported by the command that needs them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .dedupe import dedupe
from .export import export
from .fit import evaluate, fit
from .index import index
from .neighbors import neighbors
from .options import OutputOptions, expand_options, options_on_command_line, result_option
from .pairs import pairs
from .report import report
from .runner import run_app
from .search import search
from .serve import serve
from .studio import studio
from .suspects import suspects
from .transform import transform

app = typer.Typer(
    name="mahalo",
    help="Learn a distance from labels, pairs or triplets, solved to the optimum and certified.",
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


for command in (
    fit,
    transform,
    neighbors,
    evaluate,
    report,
    index,
    search,
    serve,
    export,
    pairs,
    dedupe,
    suspects,
    studio,
):
    app.command()(command)


@app.command()
@expand_options(omit=("log",))
def demo(
    context: typer.Context,
    output: OutputOptions,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Directory for the pictures.")] = Path("out"),
    seed: Annotated[
        int, typer.Option(min=0, metavar="N", help="Seed of the splits and of the pairs that are drawn.")
    ] = 0,
    plot: Annotated[bool, typer.Option("--plot/--no-plot", help="Draw pictures (needs matplotlib).")] = True,
    write: Annotated[
        Path | None,
        result_option(
            "FILE",
            "Only write example tables, .csv, .tsv or .parquet: questions.csv, with notes, clicks and labelled beside "
            "it; by any other name wine, with new-bottles.",
        ),
    ] = None,
) -> None:
    """Learn, certify, compare and draw on bundled data.

    Learns a distance on one half of the rows of scikit-learn's iris, wine and
    digits, evaluates it on the other half beside the usual distances, and saves
    one picture for each data set. Needs no network and no files. With `--write`
    it learns nothing and writes tables for the other commands: wine, or, if the
    file is called questions, 200 questions to a library with their topics.
    """
    if write is not None:
        _write_table(context, write, output)
        return
    if output.force:
        raise ValueError("--force is for the table of --write; pictures are always written anew. Leave it out.")
    from .demo import run

    run(out if plot else None, seed, as_json=output.json)


def _write_table(context: typer.Context, path: Path, output: OutputOptions) -> None:
    """Write the tables of `mahalo demo --write` and print a command for them."""
    import shlex

    from ..workflows.sample_tables import write_questions, write_wine
    from .console import print_result

    written = options_on_command_line(context)
    if unused := [option for name, option in written.items() if name not in ("write", "force", "json")]:
        raise ValueError(f"--write writes a table and learns nothing; leave out {', '.join(unused)}.")
    tables = (write_questions if path.stem == "questions" else write_wine)(path, output.force)
    *first, last = map(str, tables.files.values())
    facts = {"written": f"{', '.join(first)} and {last}", "next": shlex.join(["mahalo", *tables.next])}
    print_result(output.json, {name: str(file) for name, file in tables.files.items()}, facts)


@app.command(hidden=True, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def reproduce() -> None:
    """Refuse a command that has moved to `python -m experiments`, run from a checkout."""
    raise ValueError("the paper's experiments are now run from a checkout of the source: python -m experiments")
