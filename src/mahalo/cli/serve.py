"""`mahalo serve`."""

from __future__ import annotations

from typing import Annotated

import typer

from .options import NOT_LEARNING, Model, OutputOptions, RowOptions, expand_options

__all__ = ["serve"]


@expand_options(omit=(*NOT_LEARNING, "data", "force", "json"))
def serve(
    model: Model,
    index: Annotated[
        str, typer.Option(metavar="DATA", help="Rows to search: a table, or an index that `mahalo index` wrote.")
    ],
    rows: RowOptions,
    output: OutputOptions,
    host: Annotated[
        str, typer.Option(metavar="HOST", help="Address to listen at; others than loopback need a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", help="Port; 0: any that is free.")] = 8770,
    token: Annotated[
        str | None,
        typer.Option(
            metavar="TOKEN",
            help="Secret of all requests; or set MAHALO_TOKEN. Default: made up.",
            envvar="MAHALO_TOKEN",
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST", help="Further value of Host to answer, such as a proxy's; may be repeated."),
    ] = None,
) -> None:
    """Answer searches, distances and same-or-not over HTTP.

    POST /search finds the nearest rows of queries, POST /distance measures,
    POST /same gives probabilities if MODEL is a classifier of `mahalo pairs
    --save`. Every request needs the token. Stop with Ctrl-C.
    """
    try:
        from ..serving.run import Address
        from ..serving.run import serve as serve_requests
    except ImportError:
        raise ImportError("requests are served by starlette and uvicorn: pip install 'mahalo[studio]'") from None
    from dataclasses import replace

    from ..serving.loading import load_service

    with output.start([model, index, rows.ids]) as display:
        address = Address.bind(host, port, token, allow_host or ())
        service = load_service(model, replace(rows, data=[index]), display.progress)
    serve_requests(service, address, typer.echo, output.log)
