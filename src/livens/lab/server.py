"""Local web server of the lab: its pages and the run requests."""

from __future__ import annotations

import contextlib
import json
import secrets
import signal
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from importlib import resources
from pathlib import Path
from typing import Any

from livens import problems
from livens.errors import InputError, LivensError, MissingExtraError
from livens.lab.jobs import Job, JobQueue
from livens.lab.request import RunRequest, describe_problem, list_files
from livens.problems.sections import by_section
from livens.viewer.page import as_json, asset, script

try:
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.exceptions import HTTPException
    from starlette.requests import Request
    from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
    from starlette.routing import Route

    from livens.lab.auth import TokenAuth
except ImportError:  # pragma: no cover
    raise MissingExtraError("the lab", "lab") from None

#: Largest size of a run request in bytes.
_MAX_BYTES = 20_000
_SCRIPT, _STYLE = "text/javascript", "text/css"


def _read_asset(name: str) -> str:
    return resources.files("livens.lab").joinpath("assets", name).read_text(encoding="utf-8")


def _assets() -> dict[str, tuple[str, str]]:
    """Return the assets of the pages by name: media type and content."""
    return {
        "three.js": (_SCRIPT, asset("three.min.js")),
        "viewer.js": (_SCRIPT, script()),
        "lab.js": (_SCRIPT, _read_asset("lab.js")),
        "gallery.js": (_SCRIPT, _read_asset("gallery.js")),
        "viewer.css": (_STYLE, asset("viewer.css")),
        "lab.css": (_STYLE, _read_asset("lab.css")),
        "gallery.json": ("application/json", _read_asset("gallery.json")),
    }


class Lab:
    """Web application and server of the lab, on 127.0.0.1 at a free port unless one is given."""

    def __init__(self, folder: Path, *, port: int = 0, timeout: float = 60.0) -> None:
        self.folder = folder.resolve()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind(("127.0.0.1", port))
            self._socket.listen()  # connections wait until it serves
        except OSError as error:
            self._socket.close()
            raise InputError(f"the lab cannot listen on port {port}: {error.strerror or error}") from None
        self.port: int = self._socket.getsockname()[1]
        self.token = secrets.token_urlsafe(24)
        self._timeout = timeout
        self._assets = _assets()
        self._jobs: JobQueue | None = None
        self._server: Any = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def link(self) -> str:
        """Link to the lab with its token; it grants access."""
        return f"{self.address}/?token={self.token}"

    @property
    def jobs(self) -> JobQueue:
        assert self._jobs is not None, "the lab has not been started"
        return self._jobs

    # -- starting -----------------------------------------------------------------------------------------------------
    def application(self) -> Any:
        """Return the ASGI application."""
        get, post = ["GET"], ["POST"]
        routes = [
            Route("/", self._page, methods=get),
            Route("/gallery", self._gallery, methods=get),
            Route("/assets/{name}", self._asset, methods=get),
            Route("/api/problems", self._problems, methods=get),
            Route("/api/problems/{name}", self._problem, methods=get),
            Route("/api/thumbnails/{name}", self._thumbnail, methods=get),
            Route("/api/files", self._files, methods=get),
            Route("/api/runs", self._submit, methods=post),
            Route("/api/runs/{number:int}", self._run, methods=get),
            Route("/api/runs/{number:int}/stop", self._stop, methods=post),
            Route("/api/runs/{number:int}/animation", self._animation, methods=get),
            Route("/api/runs/{number:int}/python", self._python, methods=get),
            Route("/api/runs/{number:int}/scenario", self._scenario, methods=get),
            Route("/api/runs/{number:int}/files/{name}", self._download, methods=get),
        ]
        handlers = {LivensError: _livens_error, HTTPException: _http_error}
        inner = Starlette(routes=routes, exception_handlers=handlers, lifespan=self._lifespan)
        return TokenAuth(inner, self.token, self.port)

    @contextlib.asynccontextmanager
    async def _lifespan(self, app: object) -> AsyncIterator[None]:
        self._jobs = JobQueue(self.folder, self._timeout)
        try:
            yield
        finally:
            self._jobs.close()

    def serve(self) -> None:
        """Serve requests until Ctrl-C, SIGTERM, SIGHUP (the terminal is closed) or `stop`."""
        import uvicorn

        config = uvicorn.Config(
            self.application(), log_level="warning", access_log=False, ws="none", timeout_graceful_shutdown=1
        )
        self._server = uvicorn.Server(config)
        with self._stopped_by_hangup():
            self._server.run(sockets=[self._socket])

    @contextlib.contextmanager
    def _stopped_by_hangup(self) -> Iterator[None]:
        """Stop the server at SIGHUP, as uvicorn does at SIGINT and SIGTERM, so that temporary files are removed."""
        if not hasattr(signal, "SIGHUP") or threading.current_thread() is not threading.main_thread():
            yield
            return
        previous = signal.signal(signal.SIGHUP, lambda number, frame: self.stop())
        try:
            yield
        finally:
            signal.signal(signal.SIGHUP, previous)

    def stop(self) -> None:
        """Stop a lab that serves in another thread."""
        self._server.should_exit = True

    def close(self) -> None:
        """Close the socket of a lab that does not serve."""
        self._socket.close()

    # -- pages --------------------------------------------------------------------------------------------------------
    async def _page(self, request: Request) -> Response:
        return HTMLResponse(
            _read_asset("lab.html")
            .replace("{{animation}}", asset("animation.html"))
            .replace("{{data}}", as_json({"runs": []}))
        )

    async def _gallery(self, request: Request) -> Response:
        return HTMLResponse(_read_asset("gallery.html"))

    async def _asset(self, request: Request) -> Response:
        entry = self._assets.get(request.path_params["name"])
        if entry is None:
            raise HTTPException(404)
        return Response(entry[1], media_type=entry[0])

    # -- lists --------------------------------------------------------------------------------------------------------
    async def _problems(self, request: Request) -> Response:
        entries = {entry.name: entry for entry in await run_in_threadpool(problems.all)}
        return JSONResponse(
            [
                {"name": name, "summary": entries[name].summary, "source": entries[name].source, "section": section}
                for section, names in by_section(entries).items()
                for name in names
            ]
        )

    async def _problem(self, request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(describe_problem, request.path_params["name"]))

    async def _thumbnail(self, request: Request) -> Response:
        """Return the thumbnail of a problem that has none in the package, such as a user-defined one."""
        from livens.lab.gallery import cached_thumbnail

        return JSONResponse(await run_in_threadpool(cached_thumbnail, request.path_params["name"]))

    async def _files(self, request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(list_files, self.folder))

    # -- runs ---------------------------------------------------------------------------------------------------------
    async def _submit(self, request: Request) -> Response:
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > _MAX_BYTES:
                raise HTTPException(413, "the run request is too large")
        try:
            content = json.loads(body)
        except (ValueError, RecursionError):
            raise InputError("a run request must be in JSON, with few levels") from None
        run_request = await run_in_threadpool(RunRequest.parse, content, self.folder)
        return JSONResponse(self.jobs.submit(run_request).as_dict())

    def _job(self, request: Request) -> Job:
        job = self.jobs.by_number.get(request.path_params["number"])
        if job is None:
            raise HTTPException(404, "this run no longer exists")
        return job

    async def _run(self, request: Request) -> Response:
        return JSONResponse(self._job(request).as_dict())

    async def _stop(self, request: Request) -> Response:
        self.jobs.stop(self._job(request))
        return JSONResponse(self._job(request).as_dict())

    async def _animation(self, request: Request) -> Response:
        return Response(self._job(request).animation or '{"runs":[]}', media_type="application/json")

    async def _python(self, request: Request) -> Response:
        return _file(self._job(request).request.as_python(), "run.py")

    async def _scenario(self, request: Request) -> Response:
        return _file(self._job(request).request.as_scenario(self.folder), "run.yaml")

    async def _download(self, request: Request) -> Response:
        job, name = self._job(request), request.path_params["name"]
        if name not in job.files:
            raise HTTPException(404, "file not found")
        return FileResponse(job.folder / name, filename=name, media_type="application/x-hdf5")


def _file(text: str, name: str) -> Response:
    headers = {"Content-Disposition": f'inline; filename="{name}"'}
    return Response(text, media_type="text/plain; charset=utf-8", headers=headers)


async def _livens_error(request: Request, error: Exception) -> Response:
    # surrogates of a request have no UTF-8
    return JSONResponse({"error": str(error).encode("utf-8", "replace").decode()}, 400)


async def _http_error(request: Request, error: Any) -> Response:
    return JSONResponse({"error": str(error.detail)}, error.status_code)
