"""OAuth for clients that take no token by hand: Claude.ai, ChatGPT (docs/http.md).

The SDK has the endpoints; here is what it lacks: who may be let in is shown one page, on which the
owner (or a member of a space) signs with a token of theirs. What the client gets represents that
token, does at most what it allows, and ends with it. Access lasts an hour; a refresh token is used
once, and one that comes twice ends all it led to.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from contextvars import ContextVar
from datetime import timedelta
from html import escape
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    AuthorizeError,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    RegistrationError,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.routes import build_metadata, create_auth_routes
from mcp.server.auth.settings import ClientRegistrationOptions, RevocationOptions
from mcp.shared.auth import InvalidRedirectUriError, OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl, AnyUrl, ValidationError
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memoranda.clock import parse_stamp, stamp
from memoranda.serve import client_documents
from memoranda.serve.auth import (
    SCOPES,
    Access,
    Budgets,
    ShortSecrets,
    digest,
    least_scope,
    make_room,
    new_secret,
)
from memoranda.serve.client_documents import Documents, NoDocument
from memoranda.serve.connections import LOOPBACK

ACCESS_LASTS = timedelta(hours=1)
REFRESH_LASTS = timedelta(days=90)
CODE_LASTS = timedelta(minutes=1)
REQUEST_LASTS = timedelta(minutes=10)
UNUSED_LASTS = timedelta(days=1)
CLIENTS = 500
"""How long a client that registered and got nothing is kept, and how many clients there may be."""
# Wrong codes before a request ends.
_TRIES = 5
# Requests that wait for the owner; more are refused.
_WAITING = 1000
# Calls a minute from one address to the endpoints that anybody may call.
_A_MINUTE = 120
# Characters of an address, and fields of a form
_ADDRESS = 64
# Fields of a form, so that none costs much to read.
_FIELDS = 50
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]", "::1")
_NEVER = ("javascript", "data", "vbscript", "file", "blob", "about", "ftp", "ws", "wss")
# How the page of consent names each scope.
_WORDS = {
    "read": "read",
    "write": "read and write",
    "admin": "read, write and change the projects of",
}
_log = logging.getLogger("memoranda.http")


class _Client(OAuthClientInformationFull):
    """A client on this machine may take its answer at any port (RFC 8252, 7.3)."""

    def validate_redirect_uri(self, redirect_uri: AnyUrl | None) -> AnyUrl:
        try:
            return super().validate_redirect_uri(redirect_uri)
        except InvalidRedirectUriError:
            if (
                redirect_uri is not None
                and redirect_uri.scheme == "http"
                and redirect_uri.host in _LOOPBACK
            ):
                registered_parts = (redirect_uri.host, redirect_uri.path, redirect_uri.query)
                for uri in self.redirect_uris or ():
                    if uri.scheme == "http" and (uri.host, uri.path, uri.query) == registered_parts:
                        return redirect_uri
            raise


def may_redirect(address: str) -> bool:
    """Whether an answer may be sent there: https, this machine, or a program's own scheme."""
    parts = urlsplit(address)
    if parts.fragment or parts.username:
        return False
    if parts.scheme == "http":
        return (parts.hostname or "") in _LOOPBACK
    return parts.scheme not in _NEVER and (parts.scheme != "https" or bool(parts.hostname))


class Grants(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """The SDK's provider over the file of tokens. `public` is the server's address, without a path."""

    def __init__(self, access: Access, public: str, documents: Documents):
        self._access = access
        self.public = public
        self._documents = documents
        # Requests that wait, codes given out, grants of used ones
        self._codes = ShortSecrets(access, "oauth")

    def resource(self, address: str | None) -> str | None:
        """The address a token is asked for, as we spell it; or None of ours."""
        path = (address or "").rstrip("/").removeprefix(self.public)
        if path in ("", "/mcp"):
            return f"{self.public}/mcp"
        parts = path.split("/")
        if len(parts) == 4 and parts[1] == "s" and parts[3] == "mcp":
            return self.public + path
        return None

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        if client_id.startswith("https://"):
            try:
                document = await asyncio.to_thread(self._documents.get, client_id)
                if document.get("client_id") != client_id:
                    raise NoDocument("its client_id is another one")
                client = _Client.model_validate(
                    document | {"scope": " ".join(SCOPES), "client_secret": None}
                )
                if not client.redirect_uris or any(
                    not may_redirect(str(uri)) for uri in client.redirect_uris
                ):
                    raise NoDocument("it has no redirect_uris that may be used")
                client.token_endpoint_auth_method = "none"
                return client
            except (NoDocument, ValidationError) as error:
                _log.warning(
                    "client %s: %s",
                    client_id[:200],
                    error if isinstance(error, NoDocument) else "invalid",
                )
                return None
        row = self._access.rows().get("clients", {}).get(client_id)
        if row is None:
            return None
        return _Client.model_validate(row["client"])

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        if any(not may_redirect(str(uri)) for uri in client_info.redirect_uris or ()):
            raise RegistrationError(
                "invalid_redirect_uri", "https, http to this machine, or a scheme of your own"
            )
        now = self._access.clock()
        client_info.scope = " ".join(SCOPES)
        with self._access.changing() as rows:
            clients = rows.setdefault("clients", {})
            in_use = {grant["client"] for grant in rows.get("grants", ())}
            in_use |= _awaited(rows)
            for key in [*clients]:
                if key not in in_use and parse_stamp(clients[key]["made"]) + UNUSED_LASTS < now:
                    del clients[key]
            is_free = make_room(clients, CLIENTS, clients.keys() - in_use)
            if is_free:
                row = client_info.model_dump(mode="json", exclude_none=True)
                record_keys = {"made": stamp(now), "by": _address.get()}
                clients[client_info.client_id] = {"client": row, **record_keys}
        # Out here: the SDK's errors are frozen, and cannot leave a context manager
        if not is_free:
            raise RegistrationError(
                "invalid_client_metadata", "too many clients registered; try again tomorrow"
            )

    async def authorize(
        self, client: OAuthClientInformationFull, params: AuthorizationParams
    ) -> str:
        resource = self.resource(params.resource)
        if resource is None:
            raise AuthorizeError("invalid_target", f"the resource must be {self.public}/mcp")
        scope = max(
            (this_scope for this_scope in params.scopes or ("write",) if this_scope in SCOPES),
            key=SCOPES.index,
            default="read",
        )
        row = {
            "client": client.model_dump(mode="json"),
            "params": params.model_dump(mode="json"),
            "scope": scope,
            "resource": resource,
            "tries": 0,
            "by": _address.get(),
        }
        key = await asyncio.to_thread(
            lambda: self._codes.give("asked", REQUEST_LASTS, _WAITING, **row)
        )
        return f"{self.public}/consent?request={key}"

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        used = self._codes.take("used", authorization_code)
        if used:
            # A code that comes twice was stolen: what it led to ends (RFC 6749, 4.1.2)
            self._end(used["grant"])
            return None
        row = self._codes.known("given", authorization_code)
        code = row and AuthorizationCode.model_validate(row["code"] | {"code": authorization_code})
        if code and code.client_id == client.client_id:
            return code
        return None

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        id = secrets.token_hex(8)
        code_digest = digest(authorization_code.code)
        with self._codes.changing() as section:
            given_grant = section.get("given", {}).pop(code_digest, None)
            if given_grant:
                section.setdefault("used", {})[code_digest] = self._codes.row(
                    REQUEST_LASTS, grant=id
                )
        if given_grant:
            token = self._access.by_id(given_grant["token"])
        else:
            token = None
        if token is None:
            raise TokenError("invalid_grant", "authorization code does not exist")
        row: dict[str, Any] = {
            "id": id,
            "client": client.client_id,
            "token": token.id,
            "scope": authorization_code.scopes[0],
            "resource": authorization_code.resource,
            "old": [],
        }
        with self._access.changing() as rows:
            now = self._access.clock()
            rows["grants"] = [
                grant
                for grant in rows.get("grants", ())
                if now < parse_stamp(grant["refresh_expires"])
            ]
            answer = self._renew(row, authorization_code.scopes[0])
            rows["grants"].append(row)
        return answer

    def _renew(self, row: dict[str, Any], scope: str) -> OAuthToken:
        """Put new secrets for a grant into `row`, and return them.

        The former ones are invalid then.
        """
        now = self._access.clock()
        access, row["access"] = new_secret("cpa_")
        if "refresh" in row:
            row["old"].append(row["refresh"])
        refresh, row["refresh"] = new_secret("cpr_")
        row["access_expires"], row["refresh_expires"] = (
            stamp(now + ACCESS_LASTS),
            stamp(now + REFRESH_LASTS),
        )
        row["scope"] = scope
        seconds = int(ACCESS_LASTS.total_seconds())
        return OAuthToken(
            access_token=access, refresh_token=refresh, expires_in=seconds, scope=scope
        )

    def _end(self, id: str) -> None:
        with self._access.changing() as rows:
            rows["grants"] = [grant for grant in rows.get("grants", ()) if grant["id"] != id]

    def _grant(self, secret_digest: str, *keys: str) -> dict[str, Any] | None:
        """The grant with this secret under one of the keys, or among its old secrets.

        None if none has it.
        """
        for grant in self._access.rows().get("grants", ()):
            is_current = secret_digest in [grant[key] for key in keys]
            if is_current or secret_digest in grant["old"]:
                return grant
        return None

    async def load_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: str
    ) -> RefreshToken | None:
        token_digest = digest(refresh_token)
        row = self._grant(token_digest, "refresh")
        if row is None or row["client"] != client.client_id:
            return None
        if token_digest in row["old"]:
            _log.warning(
                "a refresh token of client %s came twice; its access ends", client.client_id[:200]
            )
            self._end(row["id"])
            return None
        until = parse_stamp(row["refresh_expires"])
        if self._access.by_id(row["token"]) is None or until <= self._access.clock():
            return None
        return RefreshToken(
            token=refresh_token,
            client_id=row["client"],
            scopes=[*SCOPES[: SCOPES.index(row["scope"]) + 1]],
            resource=row["resource"],
            subject=row["id"],
        )

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        token_digest = digest(refresh_token.token)
        with self._access.changing() as rows:
            row = next(
                (grant for grant in rows.get("grants", ()) if grant["refresh"] == token_digest),
                None,
            )
            answer = row and self._renew(row, max(scopes, key=SCOPES.index))
        if answer is None:
            raise TokenError("invalid_grant", "refresh token does not exist")
        return answer

    async def load_access_token(self, token: str) -> AccessToken | None:
        row = self._grant(digest(token), "access")
        if row is None:
            return None
        return AccessToken(
            token=token, client_id=row["client"], scopes=[row["scope"]], resource=row["resource"]
        )

    def knows(self, form: Mapping[str, str]) -> bool:
        """Whether a request shows a code or a refresh token that was given out and is good."""
        if self._codes.known("given", form.get("code", "")) is not None:
            return True
        row = self._grant(digest(form.get("refresh_token", "")), "refresh")
        return row is not None

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        row = self._grant(digest(token.token), "access", "refresh")
        if row:
            self._end(row["id"])


class _Consent:
    """The page on which somebody with a token, the owner or a member of a space, lets a client in."""

    def __init__(self, access: Access, public: str):
        self._access = access
        self._public = public
        self._codes = ShortSecrets(access, "oauth")
        self._page = files("memoranda.serve").joinpath("consent.html").read_text("utf-8")

    async def answer(self, request: Request) -> Response:
        if request.method != "POST":
            return self._shown(request.query_params.get("request", ""), "")
        form = await request.form(max_files=0, max_fields=10)
        key = str(form.get("request", ""))
        secret = str(form.get("token", "")).strip()
        request_row = self._codes.known("asked", key)
        if request_row is None:
            return self._shown(key, "")
        params = request_row["params"]
        answer = {"error": "access_denied"}
        if form.get("answer") == "allow":
            token = self._access.find(secret)
            where = request_row["resource"].removeprefix(self._public).split("/")
            signers: Collection[str | None] = [None]
            if where[1] == "s":
                space = self._access.spaces().get(where[2])
                signers = space.members if space else ()
            if token is None or token.audience is not None or token.member not in signers:
                with self._codes.changing() as section:
                    row = section["asked"].get(digest(key))
                    if row is not None:
                        row["tries"] += 1
                        # Too many tries: the request no longer waits.
                        if row["tries"] >= _TRIES:
                            del section["asked"][digest(key)]
                return self._shown(key, "This is no valid token for this memory.", 403)
            # The request was answered in between.
            if self._codes.take("asked", key) is None:
                return self._shown(key, "")
            code_keys = {
                "code": "",
                "scopes": [least_scope(request_row["scope"], token.scope)],
                "resource": request_row["resource"],
                "expires_at": time.time() + CODE_LASTS.total_seconds(),
                "client_id": request_row["client"]["client_id"],
            }
            code = AuthorizationCode.model_validate(params | code_keys).model_dump(
                mode="json", exclude={"code"}
            )
            answer = {"code": self._codes.give("given", CODE_LASTS, code=code, token=token.id)}
        else:
            self._codes.take("asked", key)
        to = construct_redirect_uri(
            params["redirect_uri"], **answer, state=params["state"], iss=self._public
        )
        return RedirectResponse(to, 302, {"Cache-Control": "no-store"})

    def _shown(self, key: str, problem: str, status: int = 200) -> Response:
        request_row = self._codes.known("asked", key)
        if request_row is None:
            return HTMLResponse(
                "<!doctype html><p>This request is over. Begin again in the program.</p>", 400
            )
        where = request_row["resource"].removeprefix(self._public).split("/")
        id = request_row["client"]["client_id"]
        target = urlsplit(request_row["params"]["redirect_uri"])
        place = target.netloc or f"{target.scheme}:"
        values = {
            "client": request_row["client"]["client_name"] or id,
            "scope": _WORDS[request_row["scope"]],
            "where": f"the space {where[2]}" if where[1] == "s" else "your memory",
            "target": f"{place} ({id})" if id.startswith("https:") else place,
            "request": key,
        }
        page = self._page.replace(
            "{problem}", f"<p role='alert'>{escape(problem)}</p>" if problem else ""
        )
        for name, value in values.items():
            page = page.replace("{" + name + "}", escape(value.replace("{", "(")))
        if target.scheme in ("http", "https"):
            to = f"{target.scheme}://{target.netloc}"
        else:
            to = f"{target.scheme}:"
        headers = {
            "Content-Security-Policy": f"default-src 'none'; form-action 'self' {to}; frame-ancestors 'none'; "
            "base-uri 'none'",
            "X-Frame-Options": "DENY",
            "Referrer-Policy": "same-origin",
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
        }
        return HTMLResponse(page, status, headers)


# Where the request in hand comes from.
_address: ContextVar[str] = ContextVar("address", default="")


def _awaited(rows: Mapping[str, Any]) -> set[str]:
    """The clients for whom somebody looks at the page of consent."""
    waiting = rows.get("oauth", {}).get("asked", {}).values()
    return {row["client"]["client_id"] for row in waiting}


def address_of(scope: Scope) -> str:
    """The address that a request comes from.

    A proxy on this machine adds it as the last entry of a header.
    """
    peer = (scope.get("client") or ("",))[0]
    forwarded = Headers(scope=scope).getlist("x-forwarded-for")
    if peer in LOOPBACK and forwarded:
        return forwarded[-1].rpartition(",")[2].strip()[:_ADDRESS]
    return str(peer)


class _Rated:
    """An address of the SDK. At most this many requests a minute from one address; a good code or
    refresh token always passes. Errors it sends back to the client say who sends them, too (RFC
    9207)."""

    def __init__(self, app: ASGIApp, budgets: Budgets, grants: Grants):
        self._app = app
        self._budgets = budgets
        self._grants = grants
        self._public = grants.public

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        address = address_of(scope)
        _address.set(address)
        is_known = False
        if scope["path"] in ("/token", "/revoke") and scope["method"] == "POST":
            body, receive = await _read_body(receive)
            # Of too many fields: the SDK refuses it
            with suppress(ValueError):
                fields = parse_qsl(body.decode("utf-8", "replace"), max_num_fields=_FIELDS)
                is_known = self._grants.knows(dict(fields))
        who = f"{scope['path']} {address}"
        if is_known:
            found_refusal = None
        else:
            found_refusal = self._budgets.take(who, _A_MINUTE, 0)
        if found_refusal:
            body_of_refusal = {
                "error": "temporarily_unavailable",
                "error_description": "Too many requests. Try again later.",
            }
            refusal = JSONResponse(body_of_refusal, 429, {"Retry-After": str(found_refusal[0])})
            return await refusal(scope, receive, send)

        async def signed(message: Message) -> None:
            if message["type"] == "http.response.start":
                consent_page = f"{self._public}/consent?".encode()
                issuer = b"&iss=" + quote(self._public, safe="").encode()
                message["headers"] = [
                    (
                        key,
                        value + issuer
                        if key == b"location" and not value.startswith(consent_page)
                        else value,
                    )
                    for key, value in message["headers"]
                ]
            await send(message)

        await self._app(scope, receive, signed)


async def _read_body(receive: Receive) -> tuple[bytes, Receive]:
    """Read the body of a request. Returns it with a `receive` that gives it again to the next
    reader.
    """
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body", False):
            break
    is_replayed = False

    async def again() -> Message:
        nonlocal is_replayed
        if is_replayed:
            return await receive()
        is_replayed = True
        return {"type": "http.request", "body": body, "more_body": False}

    return body, again


def oauth_routes(
    access: Access, public: str, fetch: Callable[[str], dict[str, Any]] = client_documents.fetch
) -> list[BaseRoute]:
    """The routes of the authorization server at `public`, and of the documents that name it."""
    grants = Grants(access, public, Documents(fetch))
    issuer = AnyHttpUrl(public)
    registration = ClientRegistrationOptions(
        enabled=True, valid_scopes=list(SCOPES), default_scopes=["write"]
    )
    revocation = RevocationOptions(enabled=True)
    metadata = build_metadata(issuer, None, registration, revocation).model_dump(
        mode="json", exclude_none=True
    )
    methods = ["none", "client_secret_post", "client_secret_basic"]
    metadata |= {
        "issuer": public,
        "token_endpoint_auth_methods_supported": methods,
        "client_id_metadata_document_supported": True,
        "authorization_response_iss_parameter_supported": True,
    }
    free = {"Access-Control-Allow-Origin": "*", "Cache-Control": "public, max-age=3600"}

    async def resource(request: Request) -> Response:
        found_resource = grants.resource(public + request.path_params.get("path", ""))
        if found_resource is None:
            return JSONResponse({"error": "there is nothing here"}, 404)
        row = {
            "resource": found_resource,
            "authorization_servers": [public],
            "scopes_supported": list(SCOPES),
            "bearer_methods_supported": ["header"],
            "resource_name": "memoranda",
        }
        return JSONResponse(row, headers=free)

    consent = _Consent(access, public)
    budgets = Budgets(access.clock)
    well_known = "/.well-known/oauth-protected-resource"
    routes: list[BaseRoute] = [
        Route(
            "/.well-known/oauth-authorization-server",
            JSONResponse(metadata, headers=free),
            methods=["GET"],
        ),
        Route(well_known, resource, methods=["GET"]),
        Route(well_known + "{path:path}", resource, methods=["GET"]),
        Route("/consent", consent.answer, methods=["GET", "POST"]),
    ]
    for create_auth_route in create_auth_routes(grants, issuer, None, registration, revocation):
        if create_auth_route.path in ("/authorize", "/token", "/register", "/revoke"):
            routes.append(
                Route(
                    create_auth_route.path,
                    _Rated(create_auth_route.app, budgets, grants),
                    methods=list(create_auth_route.methods or ()),
                )
            )
    return routes
