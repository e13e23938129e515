"""Decides who may use the HTTP server.

`Access` stores the tokens, the spaces with their members, what OAuth gave out (serve/oauth.py) and
the cookies of the page. They are rows of the home's ledger, which only its owner can read, and
which the command and a running server share. Of secrets only the SHA-256 is kept: they are 32
random bytes, so no slower hash is needed. `Budgets` counts the calls of each token.
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
from typing import Any, NamedTuple, Protocol

from memoranda import clock as clocks
from memoranda import former_name
from memoranda.clock import Clock, parse_stamp, stamp
from memoranda.engine.access_table import AccessTable
from memoranda.errors import Exists, InvalidInput, MemorandaError, choices
from memoranda.faces.tool import Tool
from memoranda.note.model import TAKEN_AGENTS
from memoranda.sources.base import sha256
from memoranda.sources.files import make_private, storing

SCOPES = ("read", "write", "admin")
"""The rights of a token. Each includes the ones before it."""
ROLES = {"reader": "read", "member": "write", "owner": "admin"}
"""The roles of members of a space, and the scope that each role allows there."""
RATE = 600
"""The usual number of calls that a token may make in a minute."""
QUOTA = 0
"""The usual number of calls that a token may make in a day. 0 means any number."""
CODE_LASTS = timedelta(minutes=5)
"""How long the code of `memory page` is valid."""
COOKIE_LASTS = timedelta(days=7)
"""How long the cookie is valid that a browser gets for such a code."""
# Names of tokens, spaces and members.
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}")
# Lists show this many characters of a secret, so that its owner recognizes it.
_SHOWN_CHARACTERS = 8
# The rate of at most this many callers is remembered.
_MAX_RATED_CALLERS = 10_000
_SECONDS_OF_A_DAY = 86_400


class NoSuch(MemorandaError):
    """No token, space or member has this name."""

    code = "not_found"


@dataclass(frozen=True, slots=True)
class StoredToken:
    """A caller's token.

    id: hex digits by which other rows refer to the token.
    name: the name that the owner gave it.
    shown: the beginning of the secret.
    hash: the hash of the secret.
    scope: its rights, such as `read` (see SCOPES).
    agent: the agent as which its user acts.
    created: when it was made, as a stamp.
    projects: the only projects that its user sees. Empty means all.
    member: the member of spaces who uses it. None: it is for the home itself, and not for spaces.
    expires: when it expires, as a stamp. None means never.
    revoked: when it was revoked, as a stamp. None if it was not.
    used: the day of the last use. None if it was not used.
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
    """The only address at which the token is valid, if OAuth gave it out. None: any address."""

    def is_valid(self, now: datetime) -> bool:
        """Whether the token is neither revoked nor expired."""
        if self.revoked is not None:
            return False
        return self.expires is None or now < parse_stamp(self.expires)


def may_use(scope: str, is_limited: bool, tool: Tool) -> bool:
    """Whether a token may use `tool`.

    scope: the rights of the token, such as `read`.
    is_limited: whether the token sees only some projects.
    """
    if tool.is_for_admins:
        return scope == "admin" and not is_limited
    return scope != "read" or tool.annotations.get("readOnlyHint") is True


def least_scope(*scopes: str) -> str:
    """Return the scope that allows the least: "read" of "write" and "read"."""
    return min(scopes, key=SCOPES.index)


def new_secret(prefix: str) -> tuple[str, str]:
    """Make a secret that begins with `prefix`. Returns the secret and its hash."""
    secret = prefix + secrets.token_urlsafe(32)
    return secret, digest(secret)


def digest(secret: str) -> str:
    """Return the hash that is stored for a secret."""
    return sha256(secret.encode("utf-8", "surrogatepass"))


class Access:
    """The tokens and spaces of one home.

    Every read sees what any process wrote before it.
    """

    def __init__(self, home: Path, clock: Clock = clocks.now):
        self.table = AccessTable(home)
        self._layout = self.table.layout
        self.clock = clock
        former_name.adopt(home, self._layout.private)

    def rows(self) -> Mapping[str, Any]:
        """Return all rows by section ("tokens", "spaces", "grants", …), read-only.

        Raises AccessRefused.
        """
        return self.table.all()

    def changing(self) -> AbstractContextManager[dict[str, Any]]:
        """Yield all rows for editing, and write them durably when the block ends.

        Raises AccessRefused, StorageError.
        """
        return self.table.changing()

    def close(self) -> None:
        """Release the ledger. The next read opens it again."""
        self.table.close()

    def tokens(self) -> list[StoredToken]:
        """Return all tokens in the order they were made, also invalid ones. Raises AccessRefused."""
        return [_token_of_row(token) for token in self.rows().get("tokens", ())]

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
        """Add a token. Returns it with its secret, which is stored nowhere.

        scope: its rights, such as `read` (see SCOPES).
        projects: the only projects that its user sees. Empty means all.
        agent: the agent as which its user acts. None means the name of the token.
        member: the member of spaces who uses it. None: it is for the home itself, and not for spaces.
        lasts: the time until it expires. None means never.
        rate: calls per minute; 0 means any number.
        quota: calls per day; 0 means any number.

        Raises InvalidInput, Exists.
        """
        check_name(name, "token")
        if scope not in SCOPES:
            raise InvalidInput(f'invalid scope "{scope}" (one of {", ".join(SCOPES)})')
        if not agent:
            agent = f"{name}-client" if name in TAKEN_AGENTS else name
        now = self.clock()
        secret, secret_hash = new_secret("cpl_")
        try:
            expires = None if lasts is None else stamp(now + lasts)
        except OverflowError:
            raise InvalidInput("a token cannot last that long; leave --expires out") from None
        with self.changing() as rows:
            tokens = [_token_of_row(row) for row in rows.setdefault("tokens", [])]
            if any(token.name == name and token.is_valid(now) for token in tokens):
                raise _exists(f"token exists: {name}")
            token = StoredToken(
                id=secrets.token_hex(4),
                name=name,
                shown=secret[:_SHOWN_CHARACTERS],
                hash=secret_hash,
                scope=scope,
                agent=agent,
                created=stamp(now),
                projects=tuple(projects),
                member=member,
                expires=expires,
                rate=rate,
                quota=quota,
            )
            rows["tokens"].append(asdict(token))
        return token, secret

    def revoke(self, ref: str) -> StoredToken:
        """Make a token invalid, and remove the grants that OAuth gave out for it.

        ref: the name or the id of the token. If several have this name, the newest is revoked.

        Raises NoSuch.
        """
        now = self.clock()
        with self.changing() as rows:
            open_rows = [row for row in rows.get("tokens", ()) if not row["revoked"]]
            matching_rows = [row for row in open_rows if ref in (row["name"], row["id"])]
            if not matching_rows:
                names = [row["name"] for row in open_rows]
                raise NoSuch(f"no such token: {ref}", choices(ref, names, "Tokens"))
            # Tokens are in the order they were made.
            newest = matching_rows[-1]
            newest["revoked"] = stamp(now)
            grants = rows.get("grants", ())
            rows["grants"] = [grant for grant in grants if grant["token"] != newest["id"]]
            return _token_of_row(newest)

    def find(self, secret: str) -> StoredToken | None:
        """Return the valid token with this secret. None if no token has it.

        The secret may also be an access token that OAuth gave out. Then the result is the token of
        the person who gave consent, limited to the scope and the address of the grant.

        Every secret is compared in constant time, so that the time taken does not help to guess one.
        Raises AccessRefused.
        """
        now = self.clock()
        secret_digest = digest(secret).encode()
        rows = self.rows()
        # All rows are compared, also after a match, because the time must not tell which one it was.
        token_rows = [
            row
            for row in rows.get("tokens", ())
            if hmac.compare_digest(row["hash"].encode(), secret_digest)
        ]
        grants = [
            grant
            for grant in rows.get("grants", ())
            if hmac.compare_digest(grant["access"].encode(), secret_digest)
        ]
        if grants and now < parse_stamp(grants[0]["access_expires"]):
            return self._token_of_grant(grants[0])
        if not token_rows:
            return None
        token = _token_of_row(token_rows[0])
        if not token.is_valid(now):
            return None
        return token

    def _token_of_grant(self, grant: Mapping[str, Any]) -> StoredToken | None:
        """Return the token of the person who gave consent, limited to the rights of the grant.

        None if that token is no longer valid.

        grant: the row of a grant of OAuth.
        """
        token = self.by_id(grant["token"])
        if token is None:
            return None
        scope = least_scope(token.scope, grant["scope"])
        return replace(token, scope=scope, audience=grant["resource"])

    def by_id(self, id: str) -> StoredToken | None:
        """Return the valid token with this id. None if no valid token has it."""
        now = self.clock()
        for token in self.tokens():
            if token.id == id and token.is_valid(now):
                return token
        return None

    def record_use(self, token: StoredToken) -> None:
        """Record that the token was used today, at most once per day."""
        today = self.clock().date().isoformat()
        if token.used == today:
            return
        with self.changing() as rows:
            for row in rows["tokens"]:
                if row["id"] == token.id:
                    row["used"] = today

    def spaces(self) -> dict[str, Space]:
        """Return all spaces by name. Raises AccessRefused."""
        space_rows = self.rows().get("spaces", {})
        return {
            name: Space(name, Path(row["home"]), dict(row["members"]), row.get("database", ""))
            for name, row in space_rows.items()
        }

    def space(self, name: str) -> Space:
        """Return the space of this name. Raises NoSuch."""
        spaces = self.spaces()
        space = spaces.get(name)
        if space is None:
            raise NoSuch(f"no such space: {name}", choices(name, spaces, "Spaces"))
        return space

    def add_space(self, name: str, home: Path | None = None) -> Space:
        """Add a space, whose notes are in a separate home.

        home: the folder of the space's home. None means a folder in this home. If this home's notes are
            in a database, the space is in the same database, and `home` must be None.

        Raises InvalidInput, Exists, StorageError.
        """
        check_name(name, "space")
        # The name of this home's part of the database. None if the notes are in files.
        database_space = self.table.space
        if database_space is not None and home is not None:
            raise InvalidInput(
                "the notes are in PostgreSQL, and so are those of its spaces; leave the folder out"
            )
        place = home or self._layout.spaces / name
        self._check_apart(place, is_own_choice=home is None)
        with self.changing() as rows:
            spaces = rows.setdefault("spaces", {})
            if name in spaces:
                raise _exists(f"space exists: {name}")
            if database_space is not None:
                spaces[name] = {"home": "", "database": f"{database_space}.{name}", "members": {}}
            else:
                self._check_free(place, spaces)
                with storing(str(place)):
                    make_private(place)
                spaces[name] = {"home": str(place), "members": {}}
        return self.space(name)

    def _check_apart(self, place: Path, *, is_own_choice: bool) -> None:
        """Raise InvalidInput if a folder for a space is this home, holds it, or is inside it.

        is_own_choice: whether the folder is the one for spaces, which is in this home.
        """
        # Links are followed, so that a folder under another name is found out.
        own_root = Path(os.path.realpath(self._layout.root))
        real_place = Path(os.path.realpath(place))
        holds_this_home = own_root.is_relative_to(real_place)
        is_in_this_home = real_place.is_relative_to(own_root)
        if holds_this_home or (is_in_this_home and not is_own_choice):
            raise InvalidInput(
                f"{place} is or holds this home, or lies in it; choose another folder for the space"
            )

    def _check_free(self, place: Path, spaces: Mapping[str, Any]) -> None:
        """Raise InvalidInput if a folder is the home of one of the spaces."""
        real_place = os.path.realpath(place)
        if any(os.path.realpath(space["home"]) == real_place for space in spaces.values()):
            raise InvalidInput(f"{place} is the folder of another space; choose another one")

    def remove_space(self, name: str) -> Space:
        """Remove a space from the list. Its notes stay where they are. Raises NoSuch."""
        space = self.space(name)
        with self.changing() as rows:
            rows["spaces"].pop(name, None)
        return space

    def set_member(self, space: str, member: str, role: str | None) -> None:
        """Give a member a role in a space. None removes the member.

        Raises InvalidInput for a wrong name or role. Raises NoSuch for an unknown space, and for an
        unknown member that should be removed.
        """
        if role is not None:
            check_name(member, "member")
            if role not in ROLES:
                raise InvalidInput(f'invalid role "{role}" (one of {", ".join(ROLES)}, none)')
        # This raises for an unknown space.
        self.space(space)
        with self.changing() as rows:
            members = rows["spaces"][space]["members"]
            if role is not None:
                members[member] = role
            elif member in members:
                del members[member]
            else:
                raise NoSuch(f"no such member of {space}: {member}")


@dataclass(frozen=True, slots=True)
class Space:
    """A memory that several people share.

    name: the name by which callers choose it.
    home: the folder of its notes.
    members: the members' names, each with a role (see ROLES).
    database: the part of the database where its notes are. "" if they are in the folder `home`.
    """

    name: str
    home: Path
    members: dict[str, str]
    database: str = ""

    @property
    def place(self) -> str:
        """Where the notes are, in words for people."""
        if self.database:
            return f"space {self.database} of the database"
        return str(self.home)


def check_name(name: str, noun: str) -> str:
    """Return `name` if a token, space or member may have it. Raises InvalidInput.

    Agents may have the same names, since a token or member acts as the agent of its name.

    noun: the word for the error: "token", "space" or "member".
    """
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f'invalid {noun} name "{name}": up to 40 of a-z 0-9 . _ -, a letter or digit first'
        )
    return name


def _token_of_row(row: Mapping[str, Any]) -> StoredToken:
    """Return the token of a row. Keys that a newer version wrote are ignored."""
    known_fields = {name: value for name, value in row.items() if name in StoredToken.__slots__}
    return StoredToken(**known_fields | {"projects": tuple(row.get("projects", ()))})


def _exists(message: str) -> Exists:
    """Return an error with this message. The usual message would speak of notes."""
    error = Exists(message)
    error.args = (message,)
    return error


def make_room(rows: dict[str, dict[str, Any]], max_rows: int, removable: Collection[str]) -> bool:
    """Remove rows until one more fits. Returns whether there is room.

    The oldest row of the address (`by`) with the most rows is removed first. So a stranger who
    sends requests without end pushes out only its own rows.

    rows: the rows to remove from, in the order they were made. `by` is the IP address that made a
        row.
    max_rows: how many rows there may be after one was added.
    removable: the keys of the rows that may be removed.
    """
    while len(rows) >= max_rows:
        candidates = [key for key in rows if key in removable]
        if not candidates:
            return False
        address_counts = Counter(rows[key].get("by", "") for key in candidates)
        busiest_address, _ = address_counts.most_common(1)[0]
        keys_of_address = [key for key in candidates if rows[key].get("by", "") == busiest_address]
        oldest = keys_of_address[0]
        del rows[oldest]
    return True


class ShortSecrets:
    """Secrets that expire, like the code of `memory page`. Every process of the home knows them.

    `give` makes a secret, `known` looks it up, and `take` uses it up. Only its hash is stored:

        secret = secrets.give("codes", timedelta(minutes=5), address="/page/")
        secrets.known("codes", secret)  # {"address": "/page/", "until": …}

    The kind, here "codes", is a word for the purpose of a secret. A secret of one kind is unknown
    under another kind. The row that `known` returns has the caller's data and the end of validity.

    access: stores the rows, beside the tokens and spaces of the home, and tells the time.
    section: the name under which the rows are stored. Objects with the same section have the same
        secrets.
    """

    def __init__(self, access: Access, section: str):
        self._access = access
        self._section = section

    @contextmanager
    def changing(self) -> Iterator[dict[str, dict[str, Any]]]:
        """Yield the section without expired secrets for editing: kind → hash → row.

        It is written when the block ends.
        """
        with self._access.changing() as rows:
            section: dict[str, dict[str, Any]] = rows.setdefault(self._section, {})
            now = self._access.clock()
            for kind, secrets_of_kind in section.items():
                section[kind] = {
                    key: row
                    for key, row in secrets_of_kind.items()
                    if now < parse_stamp(row["until"])
                }
            yield section

    def row(self, lasts: timedelta, **data: Any) -> dict[str, Any]:
        """Return the row to store for a secret with this lifetime and `data`."""
        return data | {"until": stamp(self._access.clock() + lasts)}

    def give(self, kind: str, lasts: timedelta, max_secrets: int = 0, **data: Any) -> str:
        """Make a secret, store its hash with `data`, and return the secret.

        kind: a word for the purpose of the secret, such as `codes`.
        lasts: how long the secret is valid.
        max_secrets: how many secrets the kind may have. Others are removed to make room. 0 means any
            number.
        data: the data to store with the secret.
        """
        secret, secret_hash = new_secret("")
        with self.changing() as section:
            secrets_of_kind = section.setdefault(kind, {})
            if max_secrets:
                make_room(secrets_of_kind, max_secrets, secrets_of_kind)
            secrets_of_kind[secret_hash] = self.row(lasts, **data)
        return secret

    def known(self, kind: str, secret: str) -> dict[str, Any] | None:
        """Return the row of a secret. None if the secret is unknown or has expired."""
        secrets_of_kind = self._access.rows().get(self._section, {}).get(kind, {})
        row: dict[str, Any] | None = secrets_of_kind.get(digest(secret))
        if row is not None and self._access.clock() < parse_stamp(row["until"]):
            return row
        return None

    def take(self, kind: str, secret: str) -> dict[str, Any] | None:
        """Remove a secret, so that it cannot be used again, and return its row.

        None if the secret is unknown or has expired.
        """
        if self.known(kind, secret) is None:
            return None
        with self.changing() as section:
            return section.get(kind, {}).pop(digest(secret), None)


class PageVisitors:
    """Admits browsers to the page.

    `memory page` gives out a code that works once, and only for minutes. A browser that sends the
    code gets a cookie.
    """

    def __init__(self, access: Access):
        self._secrets = ShortSecrets(access, "visitors")

    def new_code(self) -> str:
        """Make a code to open the page with. Raises StorageError."""
        return self._secrets.give("codes", CODE_LASTS)

    def enter(self, code: str) -> str | None:
        """Exchange a code for the secret of a new cookie. None if the code is not valid."""
        if self._secrets.take("codes", code) is None:
            return None
        return self._secrets.give("cookies", COOKIE_LASTS)

    def knows(self, secret: str) -> bool:
        """Whether a cookie with this secret is valid."""
        return self._secrets.known("cookies", secret) is not None

    def leave(self, secret: str) -> None:
        """Make the cookie with this secret invalid."""
        self._secrets.take("cookies", secret)


class CallCounts(Protocol):
    """Stores how many calls were made on a day, so that a restart of the server forgets none."""

    def calls_of(self, who: str, day: str) -> int:
        """Return how many calls the caller made on this day.

        who: the id of the caller's token, or another name of a caller.
        day: the day, as `2026-11-28` in UTC.
        """
        ...

    def count_call(self, who: str, day: str) -> None:
        """Count one call.

        who: the id of the caller's token, or another name of a caller.
        day: the day, as `2026-11-28` in UTC.
        """
        ...


class BudgetRefusal(NamedTuple):
    """The answer to a caller that has no call left.

    wait_seconds: how long to wait before the next call.
    reason: a sentence for the caller.
    """

    wait_seconds: int
    reason: str


class _CallsLeft(NamedTuple):
    """How many calls a caller had left in its bucket, at a moment."""

    calls: float
    moment: datetime


class Budgets:
    """Limits the calls of each caller.

    A caller may make `rate` calls a minute. They refill steadily: with a rate of 60, one call a
    second. It may make `quota` calls a day (UTC), which `counts` stores.
    """

    def __init__(self, clock: Clock, counts: CallCounts | None = None):
        self._clock = clock
        self._counts = counts
        # By caller. The caller with the latest call is last.
        self._left: dict[str, _CallsLeft] = {}
        self._day = ""

    def take(self, who: str, rate: int, quota: int) -> BudgetRefusal | None:
        """Count a call, and return None if it is allowed.

        Calls of a minute are a bucket: it holds `rate` calls, and fills up again within a minute.

        who: the caller. Each caller has a bucket.
        rate: calls per minute. 0 means any number.
        quota: calls per day. 0 means any number.
        """
        now = self._clock()
        day = now.date().isoformat()
        # Forget the callers of yesterday.
        if day != self._day:
            self._day = day
            self._left.clear()

        # Only a caller with a quota is counted.
        counts = self._counts if quota else None
        if counts is not None and counts.calls_of(who, day) >= quota:
            # The quota of a day ends at midnight (UTC).
            seconds_of_day = now.hour * 3600 + now.minute * 60 + now.second
            return BudgetRefusal(
                _SECONDS_OF_A_DAY - seconds_of_day,
                f"This token may make {quota:,} calls a day and has made them. Go on tomorrow (UTC).",
            )
        refusal = self._take_from_bucket(who, rate, now)
        # A refused call does not count against the quota.
        if refusal is None and counts is not None:
            counts.count_call(who, day)
        return refusal

    def _take_from_bucket(self, who: str, rate: int, now: datetime) -> BudgetRefusal | None:
        """Take a call from the bucket of a caller. Returns None if one was left.

        With a rate of 60, a caller that has just made 60 calls has one left after a second.

        who: the caller. Each caller has a bucket.
        rate: calls per minute. 0 means any number.
        """
        # A caller who is new finds a full bucket.
        last = self._left.get(who, _CallsLeft(float(rate), now))
        refilled = (now - last.moment).total_seconds() * rate / 60
        calls_left = min(float(rate), last.calls + refilled)
        is_limited = rate > 0
        if is_limited and calls_left < 1:
            self._left[who] = _CallsLeft(calls_left, now)
            # Rounded up to whole seconds, so that a call is left after this time.
            wait_seconds = int((1 - calls_left) * 60 / rate) + 1
            return BudgetRefusal(
                wait_seconds,
                f"More than {rate:,} calls a minute with this token. Try again in {wait_seconds} s.",
            )

        # Removed first, so that the caller moves to the end. The first caller may be forgotten.
        self._left.pop(who, None)
        self._left[who] = _CallsLeft(calls_left - 1, now)
        if len(self._left) > _MAX_RATED_CALLERS:
            longest_silent = next(iter(self._left))
            del self._left[longest_silent]
        return None
