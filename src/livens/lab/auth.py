"""Authentication middleware of the lab: requests need the token and must come from this machine."""

from __future__ import annotations

import hmac
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: Security headers: pages load from the lab only, and cannot be embedded in frames.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class TokenAuth:
    """Token authentication: the token is in the link, or in the cookie set by the link.

    Requests with a foreign Host header (DNS rebinding) or a foreign Origin header (cross-site requests) are rejected.
    """

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self._app, self._token, self._cookie = app, token, f"livens-lab-{port}"
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        reason = self._reject_reason(scope, headers)
        if reason:
            await PlainTextResponse(reason, 403)(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                extra: list[Any] = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
                cookie = f"{self._cookie}={self._token}; HttpOnly; SameSite=Strict; Path=/"
                message = {**message, "headers": [*message["headers"], *extra, (b"set-cookie", cookie.encode())]}
            await send(message)

        await self._app(scope, receive, send_with_headers)

    def _reject_reason(self, scope: Scope, headers: dict[str, str]) -> str:
        if headers.get("host") not in self._hosts:
            return "the lab is available at 127.0.0.1 and localhost only\n"
        origin = headers.get("origin")
        if origin is not None and origin not in {f"http://{host}" for host in self._hosts}:
            return "the lab accepts requests of its own page only\n"
        token = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0] or self._cookie_token(headers)
        if not hmac.compare_digest(token.encode(), self._token.encode()):
            return "the token of the lab is missing or wrong: copy the complete link\n"
        return ""

    def _cookie_token(self, headers: dict[str, str]) -> str:
        try:
            morsel = SimpleCookie(headers.get("cookie", "")).get(self._cookie)
        except CookieError:
            return ""
        return morsel.value if morsel is not None else ""
