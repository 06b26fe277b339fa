"""The application: routes, and what they answer."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from functools import partial
from importlib.resources import files

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from ...web import Guard, Refusal, parse_object
from . import views
from .security import HEADERS, MAX_BODY, PageRules, Tokens
from .studio import Studio

_ASSETS = {
    "studio.css": "text/css",
    "studio.js": "text/javascript",
    "api.js": "text/javascript",
    "dom.js": "text/javascript",
    "question.js": "text/javascript",
    "map.js": "text/javascript",
    "neighbors.js": "text/javascript",
    "knowledge.js": "text/javascript",
    "labels.js": "text/javascript",
    "home.js": "text/javascript",
}
_HEARTBEAT_SECONDS = 15.0
_OPENED = (
    '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=/"><title>mahalo studio</title>'
)


def make_app(studio: Studio, tokens: Tokens, hosts: set[str]) -> Starlette:
    """Return the application of a studio.

    Parameters
    ----------
    studio : Studio
        Its thread is started and stopped with the application.
    tokens : Tokens
    hosts : set of str
        Values of Host that are answered.
    """

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        studio.worker.start()
        yield
        await run_in_threadpool(studio.worker.stop)

    return Starlette(
        routes=[*_page_routes(tokens), *_data_routes(studio)],
        middleware=[Middleware(Guard, refuse=PageRules(tokens, hosts).refuse, headers=HEADERS, max_body=MAX_BODY)],
        exception_handlers={HTTPException: _refused, Refusal: _refused_body, ValueError: _refused, OSError: _failed},
        lifespan=lifespan,
    )


def _page_routes(tokens: Tokens) -> list[Route]:
    """Return the routes of the page itself, and of the address that gives the cookie."""

    def opened(request: Request) -> Response:
        if not tokens.knows(request.headers) and not tokens.exchange(request.query_params.get("token", "")):
            return PlainTextResponse(
                "This address was used already, or is not complete. Start `mahalo studio` again for a new one.", 403
            )
        response = Response(_OPENED, media_type="text/html")
        response.set_cookie(tokens.cookie_name, tokens.cookie, httponly=True, samesite="strict", path="/")
        return response

    return [
        Route("/", lambda request: _asset("index.html", "text/html")),
        Route("/favicon.ico", lambda request: Response(status_code=204)),
        Route("/open", opened),
        Route("/static/{name}", lambda request: _asset(request.path_params["name"])),
    ]


def _data_routes(studio: Studio) -> list[Route]:
    """Return the routes of what is known about the rows, and of what people answer."""

    async def events(request: Request) -> Response:
        return StreamingResponse(_events(studio, request), media_type="text/event-stream")

    def positions(request: Request) -> Response:
        return Response(views.map_bytes(studio), media_type="application/octet-stream")

    def item(request: Request) -> Response:
        return JSONResponse(views.item(studio, _row(request)))

    def get(view: Callable[[Studio, views.Query], views.Json]) -> Callable[[Request], Response]:
        return lambda request: JSONResponse(view(studio, dict(request.query_params)))

    return [
        Route("/api/events", events),
        Route("/api/map", positions),
        Route("/api/item/{row:int}", item),
        Route("/api/picture/{row:int}", partial(_picture, studio)),
        Route("/api/file/{name}", partial(_download, studio)),
        *(Route(f"/api/{name}", get(view)) for name, view in views.READ.items()),
        *(Route(f"/api/{name}", _post(studio, view), methods=["POST"]) for name, view in views.WRITE.items()),
    ]


def _picture(studio: Studio, request: Request) -> Response:
    found = studio.table.items.picture(_row(request))
    if found is None:
        raise HTTPException(404, "this row has no picture.")
    return Response(found.data, media_type=found.media_type)


def _download(studio: Studio, request: Request) -> Response:
    name = request.path_params["name"]
    if name not in views.DOWNLOADS or not (studio.out / name).is_file():
        raise HTTPException(404, f"there is no file {name!r} yet.")
    return FileResponse(studio.out / name, filename=name, media_type="application/octet-stream")


def _post(studio: Studio, view: Callable[[Studio, views.Body], views.Json]) -> Callable:
    async def post(request: Request) -> Response:
        body = parse_object(await request.body())
        return JSONResponse(await run_in_threadpool(view, studio, body))

    return post


async def _events(studio: Studio, request: Request) -> AsyncIterator[str]:
    queue = studio.events.subscribe()
    try:
        yield "retry: 1000\n\nevent: hello\ndata: {}\n\n"
        while True:
            try:
                event = await asyncio.wait_for(queue.get(), _HEARTBEAT_SECONDS)
            except TimeoutError:
                yield ": still here\n\n"
                continue
            yield f"event: {event}\ndata: {{}}\n\n"
    finally:
        studio.events.unsubscribe(queue)


def _asset(name: str, media_type: str | None = None) -> Response:
    media_type = media_type or _ASSETS.get(name)
    if media_type is None:
        raise HTTPException(404, "no such file.")
    return Response((files("mahalo.studio") / "assets" / name).read_bytes(), media_type=media_type)


def _row(request: Request) -> int:
    return int(request.path_params["row"])


def _refused(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 400
    return JSONResponse({"error": str(error.detail if isinstance(error, HTTPException) else error)}, status)


def _refused_body(request: Request, refusal: Exception) -> Response:
    assert isinstance(refusal, Refusal)
    return JSONResponse({"error": str(refusal)}, refusal.status)


def _failed(request: Request, error: Exception) -> Response:
    """Answer that a file could not be read or written, such as an export to a full disk."""
    return JSONResponse({"error": str(error)}, 500)
