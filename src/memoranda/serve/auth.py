"""Who may use the HTTP server: tokens, spaces with their members, what OAuth gave out, and cookies
of the page.

They are rows of the home's ledger, which only its owner can read. Secrets are kept as SHA-256: they
are 32 random bytes, so no slower hash is needed. The command and a running server share the rows.
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from memoranda import clock as clocks
from memoranda import former_name
from memoranda.clock import Clock, parse_stamp, stamp
from memoranda.engine.access_table import AccessTable
from memoranda.errors import Exists, InvalidInput, MemorandaError
from memoranda.faces.tool import Tool
from memoranda.note.model import TAKEN_AGENTS
from memoranda.sources.base import sha256
from memoranda.sources.files import make_private, storing

SCOPES = ("read", "write", "admin")
"""What a token may do, each more than the one before."""
ROLES = {"reader": "read", "member": "write", "owner": "admin"}
"""What a member of a space may do there."""
RATE = 600
QUOTA = 0
"""Calls a token may make in a minute, and in a day (0 = any number), unless it says otherwise."""
CODE_LASTS = timedelta(minutes=5)
COOKIE_LASTS = timedelta(days=7)
"""How long the code of `memory page` is good, and the cookie of a browser that showed it."""
# The names a token may have.
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}")
_SHOWN = 8
# Callers whose rate is known
_REMEMBERED = 10_000


class NoSuch(MemorandaError):
    """No token, space or member has this name."""

    code = "not_found"


@dataclass(frozen=True, slots=True)
class StoredToken:
    """A caller's token.

    shown: the beginning of the secret.
    hash: the hash of the secret.
    agent: the agent the engine takes the caller for.
    created, expires, revoked: stamps.
    projects: the only projects the caller sees. Empty means all.
    member: its owner in the spaces. None means the owner of the home, for the home itself.
    used: the day of the last use.
    rate: calls per minute; 0 means any number.
    quota: calls per day; 0 means any number.
    """

    id: str
    name: str
    shown: str
    hash: str
    scope: str
    agent: str
    created: str
    projects: tuple[str, ...] = ()
    member: str | None = None
    expires: str | None = None
    revoked: str | None = None
    used: str | None = None
    rate: int = RATE
    quota: int = QUOTA
    audience: str | None = None
    """The one address it is for, when OAuth gave it out."""

    def is_valid(self, now: datetime) -> bool:
        """Whether it is neither revoked nor expired."""
        return self.revoked is None and (self.expires is None or now < parse_stamp(self.expires))


def may_use(scope: str, is_limited: bool, tool: Tool) -> bool:
    """Whether a token of this scope, limited to some projects or not, may use `tool`."""
    if tool.is_for_admins:
        return scope == "admin" and not is_limited
    return scope != "read" or tool.annotations.get("readOnlyHint") is True


def least_scope(*scopes: str) -> str:
    """The scope that allows the least of some."""
    return min(scopes, key=SCOPES.index)


def new_secret(prefix: str) -> tuple[str, str]:
    """A new secret, and what is kept of it."""
    secret = prefix + secrets.token_urlsafe(32)
    return secret, digest(secret)


def digest(secret: str) -> str:
    """The row that is stored for a secret."""
    return sha256(secret.encode("utf-8", "surrogatepass"))


class Access:
    """Who may come in to one home. Every question sees what any process wrote before it."""

    def __init__(self, home: Path, clock: Clock = clocks.now):
        self.table = AccessTable(home)
        self._layout = self.table.layout
        self.clock = clock
        former_name.adopt(home, self._layout.private)

    def rows(self) -> Mapping[str, Any]:
        """All rows, read-only. Raises AccessRefused."""
        return self.table.all()

    def changing(self) -> AbstractContextManager[dict[str, Any]]:
        """Yield all rows for editing, and write them durably when the block ends.

        Raises AccessRefused, StorageError.
        """
        return self.table.changing()

    def close(self) -> None:
        """Release the ledger; the next question opens it again."""
        self.table.close()

    def tokens(self) -> list[StoredToken]:
        """All tokens, in the order they were made, those that are no longer valid included. Raises
        AccessRefused.
        """
        return [_token(token) for token in self.rows().get("tokens", ())]

    def add(
        self,
        name: str,
        *,
        scope: str = "write",
        projects: Sequence[str] = (),
        agent: str | None = None,
        member: str | None = None,
        lasts: timedelta | None = None,
        rate: int = RATE,
        quota: int = QUOTA,
    ) -> tuple[StoredToken, str]:
        """A new token and its secret, which is kept nowhere. Raises InvalidInput, Exists."""
        check_name(name, "token")
        if scope not in SCOPES:
            raise InvalidInput(f'invalid scope "{scope}" (one of {", ".join(SCOPES)})')
        agent = agent or (f"{name}-client" if name in TAKEN_AGENTS else name)
        now = self.clock()
        secret, stored = new_secret("cpl_")
        try:
            if lasts is None:
                expires = None
            else:
                expires = stamp(now + lasts)
        except OverflowError:
            raise InvalidInput("a token cannot last that long; leave --expires out") from None
        with self.changing() as rows:
            tokens = [_token(row) for row in rows.setdefault("tokens", [])]
            if any(row.name == name and row.is_valid(now) for row in tokens):
                raise _exists(f"token exists: {name}")
            token = StoredToken(
                secrets.token_hex(4),
                name,
                secret[:_SHOWN],
                stored,
                scope,
                agent,
                stamp(now),
                tuple(projects),
                member,
                expires,
                rate=rate,
                quota=quota,
            )
            rows["tokens"].append(asdict(token))
        return token, secret

    def revoke(self, ref: str) -> StoredToken:
        """Make the token of this name or id invalid, and all OAuth gave out for it. Raises NoSuch."""
        now = self.clock()
        with self.changing() as rows:
            matching = [
                token
                for token in rows.get("tokens", ())
                if ref in (token["name"], token["id"]) and not token["revoked"]
            ]
            if not matching:
                raise NoSuch(f"no such token: {ref}")
            matching[-1]["revoked"] = stamp(now)
            rows["grants"] = [
                grant for grant in rows.get("grants", ()) if grant["token"] != matching[-1]["id"]
            ]
            return _token(matching[-1])

    def find(self, secret: str) -> StoredToken | None:
        """Find the valid token with this secret: an own one, or one that OAuth issued for it. None
        if there is none.

        Every secret is compared in constant time, so the time taken tells nothing. Raises
        AccessRefused.
        """
        now = self.clock()
        secret_digest = digest(secret).encode()
        rows = self.rows()
        matching = [
            token_row
            for token_row in rows.get("tokens", ())
            if hmac.compare_digest(token_row["hash"].encode(), secret_digest)
        ]
        granted = [
            grant
            for grant in rows.get("grants", ())
            if hmac.compare_digest(grant["access"].encode(), secret_digest)
        ]
        if granted and now < parse_stamp(granted[0]["access_expires"]):
            row = granted[0]
            token = self.by_id(granted[0]["token"])
            return token and replace(
                token, scope=least_scope(token.scope, row["scope"]), audience=row["resource"]
            )
        if matching:
            token = _token(matching[0])
        else:
            token = None
        if token is not None and token.is_valid(now):
            return token
        return None

    def by_id(self, id: str) -> StoredToken | None:
        """The valid token with this id. None if none exists."""
        token_found = next((token for token in self.tokens() if token.id == id), None)
        if token_found is not None and token_found.is_valid(self.clock()):
            return token_found
        return None

    def note_use(self, token: StoredToken) -> None:
        """Record that the token was used today, at most once per day."""
        today = self.clock().date().isoformat()
        if token.used != today:
            with self.changing() as rows:
                for row in rows["tokens"]:
                    if row["id"] == token.id:
                        row["used"] = today

    def spaces(self) -> dict[str, Space]:
        """All spaces by name. Raises AccessRefused."""
        space_rows = self.rows().get("spaces", {})
        return {
            name: Space(name, Path(row["home"]), dict(row["members"]), row.get("database", ""))
            for name, row in space_rows.items()
        }

    def space(self, name: str) -> Space:
        """The space of this name. Raises NoSuch."""
        space_of_name = self.spaces().get(name)
        if space_of_name:
            return space_of_name
        raise NoSuch(f"no such space: {name}")

    def add_space(self, name: str, home: Path | None = None) -> Space:
        """Add a space, whose notes are in a home of their own.

        home: that home; by default a folder of this one. If the notes are in a database, the space
            is in the same database.

        Raises InvalidInput, Exists, StorageError.
        """
        check_name(name, "space")
        shared = self.table.space
        if shared is not None and home is not None:
            raise InvalidInput(
                "the notes are in PostgreSQL, and so are those of its spaces; leave the folder out"
            )
        place = home or self._layout.spaces / name
        own_root, real = (Path(os.path.realpath(path)) for path in (self._layout.root, place))
        if (
            real == own_root
            or real in own_root.parents
            or (home is not None and own_root in real.parents)
        ):
            raise InvalidInput(
                f"{place} is or holds this home, or lies in it; choose another folder for the space"
            )
        with self.changing() as rows:
            spaces = rows.setdefault("spaces", {})
            if name in spaces:
                raise _exists(f"space exists: {name}")
            if shared is not None:
                spaces[name] = {"home": "", "database": f"{shared}.{name}", "members": {}}
            elif any(os.path.realpath(space["home"]) == str(real) for space in spaces.values()):
                raise InvalidInput(f"{place} is the folder of another space; choose another one")
            else:
                with storing(str(place)):
                    make_private(place)
                spaces[name] = {"home": str(place), "members": {}}
        return self.space(name)

    def remove_space(self, name: str) -> Space:
        """Take a space off the list; its notes stay. Raises NoSuch."""
        space = self.space(name)
        with self.changing() as rows:
            rows["spaces"].pop(name, None)
        return space

    def set_member(self, space: str, member: str, role: str | None) -> None:
        """Give a member a role in a space. None removes the member. Raises InvalidInput, NoSuch."""
        if role is not None:
            check_name(member, "member")
            if role not in ROLES:
                raise InvalidInput(f'invalid role "{role}" (one of {", ".join(ROLES)})')
        self.space(space)
        with self.changing() as rows:
            members = rows["spaces"][space]["members"]
            if role is None and members.pop(member, None) is None:
                raise NoSuch(f"no such member of {space}: {member}")
            if role is not None:
                members[member] = role


@dataclass(frozen=True, slots=True)
class Space:
    """A memory several people share: a separate home, and the role of each member."""

    name: str
    home: Path
    members: dict[str, str]
    database: str = ""
    """The space of the database its notes are in; empty for a home in a folder."""

    @property
    def place(self) -> str:
        """Where its notes are, for people."""
        if self.database:
            return f"space {self.database} of the database"
        return str(self.home)


def check_name(name: str, noun: str) -> str:
    """Return `name` if a token, space or member may have it, and so an agent.

    Raises InvalidInput.
    """
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f'invalid {noun} name "{name}": up to 40 of a-z 0-9 . _ -, a letter or digit first'
        )
    return name


def _token(row: Mapping[str, Any]) -> StoredToken:
    known_fields = {name: value for name, value in row.items() if name in StoredToken.__slots__}
    return StoredToken(**known_fields | {"projects": tuple(row.get("projects", ()))})


def _exists(message: str) -> Exists:
    error = Exists(message)
    error.args = (message,)
    return error


def make_room(rows: dict[str, dict[str, Any]], most_rows: int, may_go: Collection[str]) -> bool:
    """Remove rows until one more fits. Returns whether there is room.

    The oldest row of the address (`by`) with the most rows goes first: a stranger who asks
    endlessly loses only its own. Rows are in the order they were made.

    rows: the rows to remove from.
    most_rows: how many may stay after one was added.
    may_go: the keys of the rows that may be removed.
    """
    while len(rows) >= most_rows:
        candidates = [key for key in rows if key in may_go]
        if not candidates:
            return False
        crowd, _ = Counter(rows[key].get("by", "") for key in candidates).most_common(1)[0]
        del rows[next(key for key in candidates if rows[key].get("by", "") == crowd)]
    return True


class ShortSecrets:
    """Secrets that expire, stored as hashes with their data under `section` of `Access`.

    Every process of the home knows them.
    """

    def __init__(self, access: Access, section: str):
        self._access = access
        self._section = section

    @contextmanager
    def changing(self) -> Iterator[dict[str, dict[str, Any]]]:
        """All that are not over, to be changed: kind → hash → what is known."""
        with self._access.changing() as rows:
            section: dict[str, dict[str, Any]] = rows.setdefault(self._section, {})
            for kind, secrets_of_kind in section.items():
                section[kind] = {
                    key: row
                    for key, row in secrets_of_kind.items()
                    if self._access.clock() < parse_stamp(row["until"])
                }
            yield section

    def row(self, lasts: timedelta, **more_keys: Any) -> dict[str, Any]:
        """The row to store for a secret with this lifetime."""
        return more_keys | {"until": stamp(self._access.clock() + lasts)}

    def give(self, kind: str, lasts: timedelta, most: int = 0, **more: Any) -> str:
        """Make a secret, and store it with `more`.

        If `most` exist already, others are removed (`make_room`).
        """
        secret, stored = new_secret("")
        with self.changing() as section:
            secrets_of_kind = section.setdefault(kind, {})
            if most:
                make_room(secrets_of_kind, most, secrets_of_kind)
            secrets_of_kind[stored] = self.row(lasts, **more)
        return secret

    def known(self, kind: str, secret: str) -> dict[str, Any] | None:
        """The row of a secret. None if it is unknown or has expired."""
        row: dict[str, Any] | None = (
            self._access.rows().get(self._section, {}).get(kind, {}).get(digest(secret))
        )
        if row is not None and self._access.clock() < parse_stamp(row["until"]):
            return row
        return None

    def take(self, kind: str, secret: str) -> dict[str, Any] | None:
        """Remove a secret and return its row: it can be used once.

        None if it is unknown or has expired.
        """
        if self.known(kind, secret) is None:
            return None
        with self.changing() as section:
            return section.get(kind, {}).pop(digest(secret), None)


class PageVisitors:
    """Admits browsers to the page.

    `memory page` gives out a code that works once and for minutes. A browser that shows the code
    gets a cookie.
    """

    def __init__(self, access: Access):
        self._secrets = ShortSecrets(access, "visitors")

    def new_code(self) -> str:
        """A code to open the page with. Raises StorageError."""
        return self._secrets.give("codes", CODE_LASTS)

    def enter(self, code: str) -> str | None:
        """The secret of a new cookie in exchange for a code, which can be used once.

        None if the code is not valid.
        """
        if self._secrets.take("codes", code) is None:
            return None
        return self._secrets.give("cookies", COOKIE_LASTS)

    def knows(self, secret: str) -> bool:
        """Whether a cookie is good."""
        return self._secrets.known("cookies", secret) is not None

    def leave(self, secret: str) -> None:
        """End a cookie."""
        self._secrets.take("cookies", secret)


class CallCounts(Protocol):
    """Keeps the counts of calls of a day, so that a server still has them after a restart."""

    def calls_of(self, who: str, day: str) -> int: ...

    def count_call(self, who: str, day: str) -> None: ...


class Budgets:
    """How much each caller has left: `rate` calls a minute, refilled steadily, and `quota` a day
    (UTC), as `counts` has it.
    """

    def __init__(self, clock: Clock, counts: CallCounts | None = None):
        self._clock = clock
        self._counts = counts
        self._left: dict[str, tuple[float, datetime]] = {}
        self._day = ""

    def take(self, who: str, rate: int, quota: int) -> tuple[int, str] | None:
        """Count a call. None if it is allowed.

        If no call is left, returns the seconds to wait and the reason in a sentence.
        """
        now = self._clock()
        day = now.date().isoformat()
        if day != self._day:
            self._day = day
            self._left.clear()
        if quota and self._counts is not None and self._counts.calls_of(who, day) >= quota:
            tomorrow = 86400 - (now.hour * 3600 + now.minute * 60 + now.second)
            return (
                tomorrow,
                f"This token may make {quota:,} calls a day and has made them. Go on tomorrow (UTC).",
            )
        remaining, since = self._left.get(who, (float(rate), now))
        remaining = min(float(rate), remaining + (now - since).total_seconds() * rate / 60)
        if rate and remaining < 1:
            self._left[who] = remaining, now
            wait = int((1 - remaining) * 60 / rate) + 1
            return (
                wait,
                f"More than {rate:,} calls a minute with this token. Try again in {wait} s.",
            )
        # The latest last, so that the first may be forgotten
        self._left.pop(who, None)
        self._left[who] = remaining - 1, now
        if len(self._left) > _REMEMBERED:
            del self._left[next(iter(self._left))]
        if quota and self._counts is not None:
            self._counts.count_call(who, day)
        return None
