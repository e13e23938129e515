"""OAuth for clients that take no token by hand: Claude.ai, ChatGPT (docs/http.md).

The SDK has the endpoints; this module stores what they give out and asks for consent. A client
sends its user to the page of consent. There the owner, or a member of a space, enters one of their
own tokens (serve/auth.py). The client then gets a *grant*: an access token and a refresh token that
may do at most what the person's token may, and end when that token ends. An access token lasts an
hour. A refresh token can be used once; a second use ends the grant, because the token was stolen.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from contextvars import ContextVar
from datetime import datetime, timedelta
from functools import partial
from html import escape
from importlib.resources import files
from typing import Any
from urllib.parse import SplitResult, parse_qsl, quote, urlsplit

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
    StoredToken,
    digest,
    least_scope,
    make_room,
    new_secret,
)
from memoranda.serve.client_documents import Documents, NoDocument
from memoranda.serve.connections import LOOPBACK
from memoranda.text.outside import outside_name, outside_text

# How long an access token, a refresh token, a code, and a request for consent are valid.
ACCESS_LASTS = timedelta(hours=1)
REFRESH_LASTS = timedelta(days=90)
CODE_LASTS = timedelta(minutes=1)
REQUEST_LASTS = timedelta(minutes=10)
UNUSED_LASTS = timedelta(days=1)
"""How long a client is kept that registered and has no grant."""
MOST_CLIENTS = 500
"""How many clients may be registered."""
# After this many wrong tokens on the page of consent, the client must ask again.
_MAX_WRONG_TOKENS = 5
# At most this many requests may wait for consent. With one more, an old one is removed.
_MAX_WAITING_REQUESTS = 1000
# One address may call the endpoints that need no token this often in a minute.
_CALLS_PER_MINUTE = 120
_MAX_ADDRESS_CHARACTERS = 64
# A form has few fields; with more, reading it would cost too much.
_MAX_FORM_FIELDS = 50
# The hosts of addresses on this machine. The SDK's addresses have the IPv6 address in brackets,
# those of `urlsplit` have it without.
_LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]", "::1")
# Schemes that no program registers for its answers: a browser would run or read what is sent there.
_FORBIDDEN_SCHEMES = (
    "javascript",
    "data",
    "vbscript",
    "file",
    "blob",
    "about",
    "ftp",
    "ws",
    "wss",
)
# The page of consent says with these words what a client may do with the memory.
_SCOPE_WORDS = {
    "read": "read",
    "write": "read and write",
    "admin": "read, write and change the projects of",
}
# A client may have at most this many addresses for its answers, with this many characters each. The
# parameters of a request, which are stored until a person consents, may have this many characters.
_MAX_REDIRECT_URIS = 20
_MAX_REDIRECT_URI_CHARACTERS = 2_000
_MAX_REQUEST_CHARACTERS = 8_000
_MAX_LOGGED_CHARACTERS = 200
# The grants that a client may have. Others in its metadata are dropped.
_GRANT_TYPES = ("authorization_code", "refresh_token")
# Fields of a client's metadata that nothing here uses. They are dropped.
_UNUSED_FIELDS = (
    "client_uri",
    "logo_uri",
    "contacts",
    "tos_uri",
    "policy_uri",
    "jwks_uri",
    "jwks",
    "software_id",
    "software_version",
)
_log = logging.getLogger("memoranda.http")


class _Client(OAuthClientInformationFull):
    """A client that may receive its answer at any port of this machine (RFC 8252, 7.3)."""

    def validate_redirect_uri(self, redirect_uri: AnyUrl | None) -> AnyUrl:
        """See the SDK. An address on this machine may have any port."""
        try:
            return super().validate_redirect_uri(redirect_uri)
        except InvalidRedirectUriError:
            if redirect_uri is not None and self._is_registered_except_port(redirect_uri):
                return redirect_uri
            raise

    def _is_registered_except_port(self, address: AnyUrl) -> bool:
        """Whether an address on this machine differs from a registered one only by its port."""
        if address.scheme != "http" or address.host not in _LOOPBACK_HOSTS:
            return False
        parts_except_port = (address.scheme, address.host, address.path, address.query)
        return any(
            (uri.scheme, uri.host, uri.path, uri.query) == parts_except_port
            for uri in self.redirect_uris or ()
        )


def may_redirect(address: str) -> bool:
    """Whether an answer may be sent to an address.

    It may be https, http to this machine, or a scheme that a program registered: `myapp:/done`.
    """
    parts = urlsplit(address)
    if parts.fragment or parts.username:
        return False
    if parts.scheme == "http":
        return (parts.hostname or "") in _LOOPBACK_HOSTS
    if parts.scheme == "https":
        return bool(parts.hostname)
    return parts.scheme not in _FORBIDDEN_SCHEMES


class Grants(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """Stores and checks clients, codes and grants, which the SDK's endpoints give out.

    The public methods that refer to the SDK are its own, and do what it documents.

    access: where the clients, codes and grants are stored, as hashes.
    public: the server's address on the web, without a path.
    documents: gives the metadata of a client whose id is an https address.
    """

    def __init__(self, access: Access, public: str, documents: Documents):
        self._access = access
        self.public = public
        self._documents = documents
        # By kind: "asked" are requests that wait for consent, "given" are codes to exchange for a
        # grant, and "used" are exchanged codes with the id of their grant.
        self._codes = ShortSecrets(access, "oauth")

    def resource(self, address: str | None) -> str | None:
        """Return the MCP address of this server that `address` means, in our spelling.

        The server's address, with or without "/mcp", means its "/mcp". A space has "/s/NAME/mcp".
        None if the address is not of this server.
        """
        # An address of another server stays whole here, and is neither of the two forms below.
        path = (address or "").rstrip("/").removeprefix(self.public)
        if path in ("", "/mcp"):
            return f"{self.public}/mcp"
        # "/s/NAME/mcp" gives "", "s", "NAME" and "mcp".
        parts = path.split("/")
        is_space = len(parts) == 4 and parts[1] == "s" and parts[3] == "mcp"
        if is_space:
            return self.public + path
        return None

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        """Return the client with this id, as the SDK asks for it. None if no such client is known.

        An id that is an https address stands for the metadata at this address. None if they cannot
        be read.
        """
        if client_id.startswith("https://"):
            try:
                return await self._client_of_document(client_id)
            except (NoDocument, ValidationError) as error:
                reason = str(error) if isinstance(error, NoDocument) else "invalid"
                _log.warning("client %s: %s", _logged(client_id), reason)
                return None
        row = self._access.rows().get("clients", {}).get(client_id)
        if row is None:
            return None
        return _Client.model_validate(row["client"])

    async def _client_of_document(self, client_id: str) -> _Client:
        """Return the client that the document at the https address `client_id` describes.

        Raises NoDocument, ValidationError.
        """
        document = await asyncio.to_thread(self._documents.get, client_id)
        if document.get("client_id") != client_id:
            raise NoDocument("its client_id is another one")
        # What the document says of these two keys does not count.
        client = _Client.model_validate(
            document | {"scope": " ".join(SCOPES), "client_secret": None}
        )
        may_use_all = all(may_redirect(str(uri)) for uri in client.redirect_uris or ())
        if not client.redirect_uris or not may_use_all:
            raise NoDocument("it has no redirect_uris that may be used")
        client.token_endpoint_auth_method = "none"
        if not _is_small_enough(client):
            raise NoDocument("its redirect_uris are too many or too long")
        _drop_unused_metadata(client)
        return client

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        """See the SDK. Clients that nobody used for long are forgotten to make room."""
        if any(not may_redirect(str(uri)) for uri in client_info.redirect_uris or ()):
            raise RegistrationError(
                "invalid_redirect_uri", "https, http to this machine, or a scheme of your own"
            )
        if not _is_small_enough(client_info):
            raise RegistrationError(
                "invalid_redirect_uri",
                f"at most {_MAX_REDIRECT_URIS}, of {_MAX_REDIRECT_URI_CHARACTERS:,} characters each",
            )
        now = self._access.clock()
        client_info.scope = " ".join(SCOPES)
        _drop_unused_metadata(client_info)
        with self._access.changing() as rows:
            has_room = _make_room_for_client(rows, now)
            if has_room:
                row = client_info.model_dump(mode="json", exclude_none=True)
                record_keys = {"made": stamp(now), "by": _current_address.get()}
                rows["clients"][client_info.client_id] = {"client": row, **record_keys}
        # Raised outside the block: the SDK's errors are frozen, and cannot leave a context manager.
        if not has_room:
            raise RegistrationError(
                "invalid_client_metadata", "too many clients registered; try again tomorrow"
            )

    async def authorize(
        self, client: OAuthClientInformationFull, params: AuthorizationParams
    ) -> str:
        """See the SDK. Stores the request, and returns the address of the page that asks for
        consent.
        """
        resource = self.resource(params.resource)
        if resource is None:
            raise AuthorizeError("invalid_target", f"the resource must be {self.public}/mcp")
        if len(params.model_dump_json()) > _MAX_REQUEST_CHARACTERS:
            raise AuthorizeError("invalid_request", "the request is too long")
        requested_scopes = params.scopes or ("write",)
        known_scopes = [requested for requested in requested_scopes if requested in SCOPES]
        # Each scope includes the ones before it, so the greatest includes all.
        scope = max(known_scopes, key=SCOPES.index, default="read")
        row = {
            "client": client.model_dump(mode="json"),
            "params": params.model_dump(mode="json"),
            "scope": scope,
            "resource": resource,
            "tries": 0,
            "by": _current_address.get(),
        }
        give_secret = partial(self._codes.give, "asked", REQUEST_LASTS, _MAX_WAITING_REQUESTS)
        key = await asyncio.to_thread(give_secret, **row)
        return f"{self.public}/consent?request={key}"

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        """See the SDK. Returns None for a code of another client, or one that was used before."""
        used_code = self._codes.take("used", authorization_code)
        if used_code:
            # A code that is used twice was stolen, so its grant ends (RFC 6749, 4.1.2).
            self._end_grant(used_code["grant"])
            return None
        row = self._codes.known("given", authorization_code)
        if row is None:
            return None
        code = AuthorizationCode.model_validate(row["code"] | {"code": authorization_code})
        if code.client_id != client.client_id:
            return None
        return code

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        """See the SDK. The code becomes a grant: a token for access, and one to renew it."""
        grant_id = secrets.token_hex(8)
        code_row = self._take_code(authorization_code.code, grant_id)
        # The token with which a person gave consent may have been revoked since.
        token = self._access.by_id(code_row["token"]) if code_row else None
        if token is None:
            raise TokenError("invalid_grant", "authorization code does not exist")
        # `_new_code` gives a code one scope.
        scope = authorization_code.scopes[0]
        new_grant: dict[str, Any] = {
            "id": grant_id,
            "client": client.client_id,
            "token": token.id,
            "scope": scope,
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
            new_tokens = self._renew_tokens(new_grant, scope)
            rows["grants"].append(new_grant)
        return new_tokens

    def _take_code(self, code: str, grant_id: str) -> dict[str, Any] | None:
        """Take out a code that was given, and return its row. None if it was not given.

        The code is remembered as used. If it comes again, somebody has copied it, and the grant that
        it was exchanged for must end.

        grant_id: the id of this grant.
        """
        code_digest = digest(code)
        with self._codes.changing() as section:
            code_row: dict[str, Any] | None = section.get("given", {}).pop(code_digest, None)
            if code_row:
                used_codes = section.setdefault("used", {})
                used_codes[code_digest] = self._codes.row(REQUEST_LASTS, grant=grant_id)
        return code_row

    def _renew_tokens(self, grant: dict[str, Any], scope: str) -> OAuthToken:
        """Give a grant new tokens: put their hashes into it, and return the tokens.

        The grant's former tokens become invalid.

        grant: the row of the grant.
        """
        now = self._access.clock()
        # A former refresh token is remembered, to notice when it is used again.
        if "refresh" in grant:
            grant["old"].append(grant["refresh"])
        access_token, access_hash = new_secret("cpa_")
        refresh_token, refresh_hash = new_secret("cpr_")
        grant["access"] = access_hash
        grant["refresh"] = refresh_hash
        grant["access_expires"] = stamp(now + ACCESS_LASTS)
        grant["refresh_expires"] = stamp(now + REFRESH_LASTS)
        grant["scope"] = scope
        return OAuthToken(
            access_token=access_token,
            refresh_token=refresh_token,
            expires_in=int(ACCESS_LASTS.total_seconds()),
            scope=scope,
        )

    def _end_grant(self, grant_id: str) -> None:
        """Remove a grant, so that its tokens are invalid."""
        with self._access.changing() as rows:
            grants = rows.get("grants", ())
            rows["grants"] = [grant for grant in grants if grant["id"] != grant_id]

    def _grant_of_token(self, secret_digest: str, *keys: str) -> dict[str, Any] | None:
        """Return the grant that a token belongs to. None if it belongs to no grant.

        secret_digest: the hash of the token.
        keys: the kinds of tokens to compare with: "access", "refresh". Former refresh tokens are
            always compared.
        """
        for grant in self._access.rows().get("grants", ()):
            is_current = secret_digest in [grant[key] for key in keys]
            if is_current or secret_digest in grant["old"]:
                return grant
        return None

    async def load_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: str
    ) -> RefreshToken | None:
        """See the SDK. Returns None for a token that is used up, expired or of another client."""
        token_digest = digest(refresh_token)
        grant = self._grant_of_token(token_digest, "refresh")
        if grant is None or grant["client"] != client.client_id:
            return None

        # A token that comes twice was copied. Nobody can say by whom, so the grant ends.
        if token_digest in grant["old"]:
            _log.warning(
                "a refresh token of client %s came twice; its access ends",
                _logged(client.client_id),
            )
            self._end_grant(grant["id"])
            return None
        is_expired = parse_stamp(grant["refresh_expires"]) <= self._access.clock()
        # The token with which a person gave consent. None if it is no longer valid.
        signing_token = self._access.by_id(grant["token"])
        if signing_token is None or is_expired:
            return None
        # The client may ask for less than it has, and each scope includes the ones before it.
        scopes = list(SCOPES[: SCOPES.index(grant["scope"]) + 1])
        return RefreshToken(
            token=refresh_token,
            client_id=grant["client"],
            scopes=scopes,
            resource=grant["resource"],
            subject=grant["id"],
        )

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        """See the SDK. The old token is used up, and new ones are returned."""
        token_digest = digest(refresh_token.token)
        with self._access.changing() as rows:
            new_tokens = None
            for grant in rows.get("grants", ()):
                if grant["refresh"] == token_digest:
                    greatest_scope = max(scopes, key=SCOPES.index)
                    new_tokens = self._renew_tokens(grant, greatest_scope)
                    break
        # Raised outside the block: the SDK's errors are frozen, and cannot leave a context manager.
        if new_tokens is None:
            raise TokenError("invalid_grant", "refresh token does not exist")
        return new_tokens

    async def load_access_token(self, token: str) -> AccessToken | None:
        """See the SDK. Returns None for a token that belongs to no grant."""
        grant = self._grant_of_token(digest(token), "access")
        if grant is None:
            return None
        return AccessToken(
            token=token,
            client_id=grant["client"],
            scopes=[grant["scope"]],
            resource=grant["resource"],
        )

    def has_valid_secret(self, form: Mapping[str, str]) -> bool:
        """Whether the fields of a request contain a valid code, or a refresh token of a grant."""
        if self._codes.known("given", form.get("code", "")) is not None:
            return True
        grant = self._grant_of_token(digest(form.get("refresh_token", "")), "refresh")
        return grant is not None

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        """See the SDK. Both tokens of the grant become invalid."""
        grant = self._grant_of_token(digest(token.token), "access", "refresh")
        if grant:
            self._end_grant(grant["id"])


def _make_room_for_client(rows: dict[str, Any], now: datetime) -> bool:
    """Forget clients that nobody used for long. Return whether there is room for one more.

    If there are still too many, clients that nobody uses go before their time.

    rows: the stored clients and grants.
    """
    clients = rows.setdefault("clients", {})
    ids_in_use = {grant["client"] for grant in rows.get("grants", ())}
    ids_in_use |= _clients_awaiting_consent(rows)
    unused_ids = clients.keys() - ids_in_use
    for client_id in unused_ids:
        if parse_stamp(clients[client_id]["made"]) + UNUSED_LASTS < now:
            del clients[client_id]
    return make_room(clients, MOST_CLIENTS, clients.keys() - ids_in_use)


def _consent_headers(target: SplitResult) -> dict[str, str]:
    """Return the headers of the page that asks for consent.

    target: the address of the client. The headers must allow the browser to be redirected to it.
    """
    form_target = f"{target.scheme}:"
    if target.scheme in ("http", "https"):
        form_target = f"{target.scheme}://{target.netloc}"
    return {
        "Content-Security-Policy": f"default-src 'none'; form-action 'self' {form_target}; "
        "frame-ancestors 'none'; base-uri 'none'",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "same-origin",
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
    }


class _Consent:
    """The page where a person with a token allows a client to use the memory.

    The person is the owner of the home, or a member of a space.
    """

    def __init__(self, access: Access, public: str):
        self._access = access
        self._public = public
        self._codes = ShortSecrets(access, "oauth")
        self._page = files("memoranda.serve").joinpath("consent.html").read_text("utf-8")

    async def answer(self, request: Request) -> Response:
        """Show the page, or take its form and send the browser back to the client."""
        if request.method != "POST":
            return self._show_request(request.query_params.get("request", ""), "")
        form = await request.form(max_files=0, max_fields=10)
        key = str(form.get("request", ""))
        secret = str(form.get("token", "")).strip()
        request_row = self._codes.known("asked", key)
        if request_row is None:
            return _request_is_over()

        if form.get("answer") == "allow":
            token = self._signing_token(secret, request_row["resource"])
            if token is None:
                self._count_wrong_token(key)
                return self._show_request(key, "This is no valid token for this memory.", 403)
            # Another submission of the form may have answered the request since it was read.
            if self._codes.take("asked", key) is None:
                return _request_is_over()
            outcome = {"code": self._new_code(request_row, token)}
        else:
            self._codes.take("asked", key)
            outcome = {"error": "access_denied"}
        params = request_row["params"]
        client_address = construct_redirect_uri(
            params["redirect_uri"], **outcome, state=params["state"], iss=self._public
        )
        return RedirectResponse(client_address, 302, {"Cache-Control": "no-store"})

    def _signing_token(self, secret: str, resource: str) -> StoredToken | None:
        """Return the token of this secret if it may give consent for the address `resource`.

        None if it may not: the token must be one of the owner, or of a member of the space. A token
        that OAuth gave out cannot let others in.
        """
        token = self._access.find(secret)
        if token is None or token.audience is not None:
            return None
        # The owner of the home is the member None.
        signers: Collection[str | None] = [None]
        space_name = self._space_name(resource)
        if space_name is not None:
            space = self._access.spaces().get(space_name)
            signers = space.members if space else ()
        if token.member not in signers:
            return None
        return token

    def _space_name(self, resource: str) -> str | None:
        """Return NAME of the address `…/s/NAME/mcp`. None for the address of the home, `…/mcp`."""
        # "/s/NAME/mcp" gives "", "s", "NAME" and "mcp".
        parts = resource.removeprefix(self._public).split("/")
        if parts[1] == "s":
            return parts[2]
        return None

    def _count_wrong_token(self, key: str) -> None:
        """Count a wrong token for a request. After too many, the request no longer waits."""
        with self._codes.changing() as section:
            row = section["asked"].get(digest(key))
            if row is None:
                return
            row["tries"] += 1
            if row["tries"] >= _MAX_WRONG_TOKENS:
                del section["asked"][digest(key)]

    def _new_code(self, request_row: Mapping[str, Any], token: StoredToken) -> str:
        """Store a code for a request that a person gave consent to, and return it.

        request_row: the request as it was stored.
        token: the token with which a person gave consent.
        """
        code_keys = {
            # The code itself is a secret, so only its hash is stored.
            "code": "",
            "scopes": [least_scope(request_row["scope"], token.scope)],
            "resource": request_row["resource"],
            "expires_at": time.time() + CODE_LASTS.total_seconds(),
            "client_id": request_row["client"]["client_id"],
        }
        code = AuthorizationCode.model_validate(request_row["params"] | code_keys)
        code_row = code.model_dump(mode="json", exclude={"code"})
        return self._codes.give("given", CODE_LASTS, code=code_row, token=token.id)

    def _show_request(self, key: str, problem: str, status: int = 200) -> Response:
        """Return the page for a request, or the page that says that the request is over.

        key: the secret of the request in the page's address.
        problem: a sentence to show above the form; "" for none.
        status: the HTTP status of the page.
        """
        request_row = self._codes.known("asked", key)
        if request_row is None:
            return _request_is_over()
        target = urlsplit(request_row["params"]["redirect_uri"])
        values = {**self._words_of_page(request_row, target), "request": key}
        alert = f"<p role='alert'>{escape(problem)}</p>" if problem else ""
        page = self._page.replace("{problem}", alert)
        for name, value in values.items():
            # A value with a brace could name the place of another value.
            page = page.replace("{" + name + "}", escape(value.replace("{", "(")))
        return HTMLResponse(page, status, _consent_headers(target))

    def _words_of_page(self, request_row: Mapping[str, Any], target: SplitResult) -> dict[str, str]:
        """Return the words of the consent page that say who asks for access, and to what.

        request_row: the stored request.
        target: the address to which the person is sent back.
        """
        space_name = self._space_name(request_row["resource"])
        client_id = request_row["client"]["client_id"]
        target_label = target.netloc or f"{target.scheme}:"
        # The id of such a client is the address of its document.
        if client_id.startswith("https:"):
            target_label = f"{target_label} ({_logged(client_id)})"
        return {
            "client": outside_name(request_row["client"]["client_name"] or client_id),
            "scope": _SCOPE_WORDS[request_row["scope"]],
            "where": "your memory" if space_name is None else f"the space {space_name}",
            "target": target_label,
        }


def _request_is_over() -> Response:
    """Return the page for a request that is answered, expired or unknown."""
    return HTMLResponse(
        "<!doctype html><p>This request is over. Begin again in the program.</p>", 400
    )


def _is_small_enough(client: OAuthClientInformationFull) -> bool:
    """Whether a client has few and short addresses for its answers, so that it can be stored."""
    addresses = [str(uri) for uri in client.redirect_uris or ()]
    longest = max(map(len, addresses), default=0)
    return len(addresses) <= _MAX_REDIRECT_URIS and longest <= _MAX_REDIRECT_URI_CHARACTERS


def _drop_unused_metadata(client: OAuthClientInformationFull) -> None:
    """Drop the parts of a client's metadata that nothing here uses.

    Its name stays, as an outside name. The grants that it may get stay, and no others.
    """
    if client.client_name is not None:
        client.client_name = outside_name(client.client_name)
    client.grant_types = [name for name in _GRANT_TYPES if name in client.grant_types]
    client.response_types = ["code"]
    for field in _UNUSED_FIELDS:
        setattr(client, field, None)


def _logged(client_id: str) -> str:
    """Return the id of a client, which may be any https address, as it is logged."""
    return outside_text(client_id, _MAX_LOGGED_CHARACTERS)


# The IP address that the current request comes from. The SDK does not pass it to its provider.
_current_address: ContextVar[str] = ContextVar("address", default="")


def _clients_awaiting_consent(rows: Mapping[str, Any]) -> set[str]:
    """Return the ids of the clients whose request waits on the page of consent."""
    waiting = rows.get("oauth", {}).get("asked", {}).values()
    return {row["client"]["client_id"] for row in waiting}


def address_of(scope: Scope) -> str:
    """Return the IP address that a request comes from.

    Behind a proxy on this machine, that is the last entry of the header `X-Forwarded-For`, which
    the proxy adds. Entries before it could be the client's invention.
    """
    host, *_ = scope.get("client") or ("",)
    forwarded = Headers(scope=scope).getlist("x-forwarded-for")
    if host in LOOPBACK and forwarded:
        return forwarded[-1].rpartition(",")[2].strip()[:_MAX_ADDRESS_CHARACTERS]
    return str(host)


class _RatedEndpoint:
    """Limits how often one IP address may call an endpoint of the SDK.

    A request with a valid code or refresh token always passes. Redirects to the client also get the
    parameter `iss`, which names this server (RFC 9207).
    """

    def __init__(self, app: ASGIApp, budgets: Budgets, grants: Grants):
        self._app = app
        self._budgets = budgets
        self._grants = grants
        self._public = grants.public

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request that comes too often, or pass it on, as an ASGI application."""
        address = address_of(scope)
        _current_address.set(address)
        has_valid_secret = False
        if scope["path"] in ("/token", "/revoke") and scope["method"] == "POST":
            body, receive = await _read_body(receive)
            # A ValueError means too many fields, which the SDK refuses.
            with suppress(ValueError):
                fields = parse_qsl(body.decode("utf-8", "replace"), max_num_fields=_MAX_FORM_FIELDS)
                has_valid_secret = self._grants.has_valid_secret(dict(fields))
        if not has_valid_secret:
            refusal = self._budgets.take(f"{scope['path']} {address}", _CALLS_PER_MINUTE, 0)
            if refusal:
                return await _too_many_requests(refusal.wait_seconds)(scope, receive, send)

        async def send_with_issuer(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    (name, self._with_issuer(value) if name == b"location" else value)
                    for name, value in message["headers"]
                ]
            await send(message)

        await self._app(scope, receive, send_with_issuer)

    def _with_issuer(self, location: bytes) -> bytes:
        """Add `iss` to the address of a redirect, unless it leads to our page of consent."""
        if location.startswith(f"{self._public}/consent?".encode()):
            return location
        return location + b"&iss=" + quote(self._public, safe="").encode()


def _too_many_requests(wait_seconds: int) -> Response:
    """Return the answer to a caller that calls too often.

    wait_seconds: how long to wait before the next call.
    """
    body = {
        "error": "temporarily_unavailable",
        "error_description": "Too many requests. Try again later.",
    }
    return JSONResponse(body, 429, {"Retry-After": str(wait_seconds)})


async def _read_body(receive: Receive) -> tuple[bytes, Receive]:
    """Read the whole body of a request.

    Returns the body, and a `receive` from which the next reader gets the body, too.
    """
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body", False):
            break
    is_replayed = False

    async def receive_again() -> Message:
        nonlocal is_replayed
        if is_replayed:
            return await receive()
        is_replayed = True
        return {"type": "http.request", "body": body, "more_body": False}

    return body, receive_again


# What the authorization server offers.
_REGISTRATION = ClientRegistrationOptions(
    enabled=True, valid_scopes=list(SCOPES), default_scopes=["write"]
)
_REVOCATION = RevocationOptions(enabled=True)
# Any web page may read the metadata.
_METADATA_HEADERS = {"Access-Control-Allow-Origin": "*", "Cache-Control": "public, max-age=3600"}


def _server_metadata(public: str) -> dict[str, Any]:
    """Return the metadata of the authorization server (RFC 8414).

    public: the server's address on the web, without a path.
    """
    metadata = build_metadata(AnyHttpUrl(public), None, _REGISTRATION, _REVOCATION)
    return metadata.model_dump(mode="json", exclude_none=True) | {
        # The SDK adds a slash to the address.
        "issuer": public,
        "token_endpoint_auth_methods_supported": [
            "none",
            "client_secret_post",
            "client_secret_basic",
        ],
        "client_id_metadata_document_supported": True,
        "authorization_response_iss_parameter_supported": True,
    }


def oauth_routes(
    access: Access, public: str, fetch: Callable[[str], dict[str, Any]] = client_documents.fetch
) -> list[BaseRoute]:
    """Return the routes of the authorization server, and of the documents that announce it.

    access: where tokens, clients and grants are stored.
    public: the server's address on the web, without a path.
    fetch: gets the metadata of a client from the address that is its id.
    """
    grants = Grants(access, public, Documents(fetch))

    async def resource(request: Request) -> Response:
        """Answer with the metadata of a protected resource (RFC 9728): where to get a token for it."""
        mcp_address = grants.resource(public + request.path_params.get("path", ""))
        if mcp_address is None:
            return JSONResponse({"error": "there is nothing here"}, 404)
        row = {
            "resource": mcp_address,
            "authorization_servers": [public],
            "scopes_supported": list(SCOPES),
            "bearer_methods_supported": ["header"],
            "resource_name": "memoranda",
        }
        return JSONResponse(row, headers=_METADATA_HEADERS)

    consent = _Consent(access, public)
    budgets = Budgets(access.clock)
    well_known = "/.well-known/oauth-protected-resource"
    routes: list[BaseRoute] = [
        Route(
            "/.well-known/oauth-authorization-server",
            JSONResponse(_server_metadata(public), headers=_METADATA_HEADERS),
            methods=["GET"],
        ),
        Route(well_known, resource, methods=["GET"]),
        Route(well_known + "{path:path}", resource, methods=["GET"]),
        Route("/consent", consent.answer, methods=["GET", "POST"]),
    ]
    # The SDK's routes of metadata are left out, since ours say more.
    sdk_routes = create_auth_routes(grants, AnyHttpUrl(public), None, _REGISTRATION, _REVOCATION)
    for route in sdk_routes:
        if route.path in ("/authorize", "/token", "/register", "/revoke"):
            endpoint = _RatedEndpoint(route.app, budgets, grants)
            routes.append(Route(route.path, endpoint, methods=list(route.methods or ())))
    return routes
