"""Who may talk to the lab: pages of this machine that know the token, and nobody else."""

from __future__ import annotations

import hmac
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: A page may load from the lab alone, and nobody may put it into a frame.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Guard:
    """Lets through what comes from this machine with the token, in the link or in the cookie that the link leaves.

    A name that leads to this machine by tricks of a name server has another Host, a page of somebody else another
    Origin: both are refused, whatever else they know.
    """

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self._app, self._token, self._cookie = app, token, f"livens-lab-{port}"
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._refusal(scope, headers)
        if refusal:
            await PlainTextResponse(refusal, 403)(scope, receive, send)
            return

        async def dressed(message: Message) -> None:
            if message["type"] == "http.response.start":
                more: list[Any] = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
                cookie = f"{self._cookie}={self._token}; HttpOnly; SameSite=Strict; Path=/"
                message = {**message, "headers": [*message["headers"], *more, (b"set-cookie", cookie.encode())]}
            await send(message)

        await self._app(scope, receive, dressed)

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> str:
        if headers.get("host") not in self._hosts:
            return "the lab answers to 127.0.0.1 and localhost alone\n"
        origin = headers.get("origin")
        if origin is not None and origin not in {f"http://{host}" for host in self._hosts}:
            return "the lab answers to its own page alone\n"
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0] or self._remembered(headers)
        if not hmac.compare_digest(given.encode(), self._token.encode()):
            return "the link to the lab has a token, without which nothing is shown: copy all of it\n"
        return ""

    def _remembered(self, headers: dict[str, str]) -> str:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self._cookie)
        except CookieError:
            return ""
        return found.value if found is not None else ""
