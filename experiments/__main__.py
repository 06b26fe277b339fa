"""`python -m experiments EXPERIMENT … [--quick] [--seed N] [--out DIRECTORY] [--no-plot]`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mahalo.cli.runner import run_app

from . import EXPERIMENTS

__all__ = ["main"]

app = typer.Typer(
    add_completion=False, context_settings={"help_option_names": ["-h", "--help"]}, pretty_exceptions_enable=False
)

_HELP = (
    "The paper's experiments with its protocol, and some beyond it.\n\n"
    "Prints the tables of each EXPERIMENT and writes a figure, a JSON file with every number, and a page that sets "
    "them beside the published figures. Data are looked for in $MAHALO_DATA, then in the user's cache, then downloaded "
    "where there is an ordinary way to.\n\n" + "\n".join(f"{name}: {what}." for name, what in EXPERIMENTS.items())
)


@app.command(help=_HELP)
def _run(
    names: Annotated[list[str], typer.Argument(help=f"{', '.join(EXPERIMENTS)}; or all.", metavar="EXPERIMENT")],
    quick: Annotated[bool, typer.Option("--quick", help="About a minute each, on a part of the data.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of splits, pairs and samples.")] = 0,
    out: Annotated[Path, typer.Option(help="Directory for figures, numbers and pages.")] = Path("out/results"),
    plot: Annotated[bool, typer.Option("--plot/--no-plot", help="Draw figures (needs matplotlib).")] = True,
) -> None:
    from .runner import run

    if run(names, quick=quick, seed=seed, out=out, plot=plot):
        raise typer.Exit(1)


def main(args: list[str] | None = None) -> None:
    """Run the command line; errors are one line on standard error."""
    run_app(app, "python -m experiments", args)


if __name__ == "__main__":
    main()
