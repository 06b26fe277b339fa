"""`mahalo studio`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import RowOptions, expand_options, result_option


@expand_options(omit=("pairs", "triplets"), standard_input=False)
def studio(
    rows: RowOptions,
    port: Annotated[int, typer.Option(metavar="N", help="Port on loopback; 0: any that is free.")] = 8765,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")] = True,
    annotator: Annotated[str, typer.Option(metavar="NAME", help="Who answers; several people may share a log.")] = "",
    triplets: Annotated[
        bool, typer.Option("--triplets", help="Also ask which of two rows is nearer to a third.")
    ] = False,
    model: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="Metric to go on from, learned from the same columns.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of what is asked and learned.", min=0)] = 0,
    log: Annotated[
        Path | None, result_option("FILE", "Answers, to begin or to go on with. Default: DATA.answers.jsonl.")
    ] = None,
    out: Annotated[Path | None, result_option("FOLDER", "What is taken home. Default: DATA-studio.")] = None,
) -> None:
    """Learn a distance by answering questions in the browser.

    Shows two rows at a time and asks whether they are the same. Answers are on
    disk before they are acknowledged; stop with Ctrl-C, start again to go on.
    The page is served to this machine alone.
    """
    try:
        from ..studio.server import serve
    except ImportError:
        raise ImportError("the studio is served by starlette and uvicorn: pip install 'mahalo[studio]'") from None
    from ..studio.loading import load_studio
    from .progress import progress_display

    first = Path(rows.data[0])
    log = first.with_name(f"{first.stem}.answers.jsonl") if log is None else log
    out = first.with_name(f"{first.stem}-studio") if out is None else out
    kinds = ("pair", "triplet") if triplets else ("pair",)
    with progress_display(None, rows.inputs) as display:
        loaded = load_studio(
            rows, log=log, annotator=annotator, kinds=kinds, seed=seed, model=model, progress=display.progress
        )

    def show(address: str) -> None:
        typer.echo(f"answers are kept in {log}; open this address, Ctrl-C stops:\n{address}")

    serve(loaded.session, loaded.table, out, port=port, browser=browser, show=show)
