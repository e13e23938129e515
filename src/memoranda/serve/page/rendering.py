"""Templates with what each of them may use: words, times, addresses, safe text.

Every value a template shows passes `visible`: control and bidi characters are spelled out before
they are escaped.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any
from urllib.parse import quote
from zlib import crc32

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from memoranda.index.rows import NoteInfo
from memoranda.note.model import Note
from memoranda.serve.page import note_text
from memoranda.serve.page.static_files import static_url
from memoranda.serve.page.wording import (
    COLON,
    LANGUAGES,
    brief_time,
    counted,
    date_words,
    done,
    heading_of_day,
    joined_names,
    lateness,
    local_time,
    long_day,
    month_words,
    relative_time,
    short_day,
    translated,
)
from memoranda.text.unicode import flat, visible

_AGENT = "agent:"
_OWNER = "owner"
_AUTHORS = {"owner": "You", "file": "a file", "import": "an import", "web": "a web page"}
# Colours of the avatars of agents, in the style sheet.
_COLOURS = 8


def note_url(project: str, path: str) -> str:
    """The address of a note's page."""
    return "/page/note/" + quote(f"{project}/{path}", safe="/", errors="replace")


def first_line(text: str, most: int = 160) -> str:
    """The first line of a text that says something, without its marks."""
    for line in text.splitlines():
        plain = line.lstrip("#>*- \t").strip()
        if plain and not plain.startswith("---"):
            return plain if len(plain) <= most else f"{plain[: most - 1]}…"
    return ""


def colour_of(agent: str | None) -> str:
    """The class of an agent's avatar: always the same for one name."""
    if agent is None:
        return "me"
    # The colour depends on the name alone, so that it is the same on every page and machine.
    # Of this sum the second byte tells the usual agents apart.
    return f"c{(crc32(agent.encode('utf-8', 'replace')) >> 8) % _COLOURS}"


def initial_of(agent: str | None) -> str:
    """The letters of an agent's avatar: two of a Latin name, otherwise one."""
    name = (agent or "").lstrip("<>[]()")
    if name[:2].isascii():
        return name[:2].capitalize()
    return name[:1]


def writer_of(info: NoteInfo | Note) -> str:
    """The writer of a note, for people: an agent's name, or a word to be translated.

    A text that upkeep merged from texts of agents does not count as the owner's, since it has less
    trust.
    """
    provenance = info.provenance
    if provenance.who == _OWNER and provenance.trust != _OWNER:
        return info.source or "an agent"
    return _AUTHORS.get(provenance.who, provenance.who.removeprefix(_AGENT))


def writing_agent(info: NoteInfo | Note) -> str | None:
    """The agent whose avatar a note has. None means the owner."""
    writer = writer_of(info)
    return None if writer == _AUTHORS[_OWNER] else writer


def shown_size(size: int) -> str:
    """A number of bytes as `588 kB` or `13.5 MB`."""
    if size >= 1 << 20:
        return f"{size / (1 << 20):.1f} MB"
    return f"{size / (1 << 10):.0f} kB"


def _shown(value: Any) -> Any:
    """A value as a template shows it."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return visible(value)
    return value


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("memoranda.serve.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    environment.globals |= {
        "note_url": note_url,
        "static_url": static_url,
        "languages": LANGUAGES,
        "colour_of": colour_of,
        "initial_of": initial_of,
    }
    environment.filters |= {
        "flat": lambda text: flat(str(text)),
        "raw": lambda text: Markup(escape(text)),
        "first_line": first_line,
        "line": lambda text: flat(" ".join(str(text).split())),
        "sentence": lambda text: text[:1].upper() + text[1:],
        "writer": writer_of,
        "writing_agent": writing_agent,
        "bytes": shown_size,
    }
    return environment


@cache
def prepare() -> None:
    """Read all templates, and what renders notes, before somebody waits for them."""
    for name in _environment().list_templates(["html"]):
        _environment().get_template(name)
    note_text.prepare()


def render(template: str, language: str, **values: Any) -> str:
    """The text of a template in a language (see LANGUAGES).

    `zone` is the time zone to show times in.
    """
    zone = values.get("zone")
    now = values.get("now") or datetime.now(UTC)
    tools: Mapping[str, Any] = {
        "_": partial(translated, language),
        "_n": partial(counted, language),
        "did": partial(done, language),
        "names": partial(joined_names, language),
        "lang": language,
        "colon": COLON[language],
        "time": lambda at: local_time(at, zone),
        "day": lambda at: local_time(at, zone)[:10],
        "clock": lambda at: local_time(at, zone)[11:],
        "brief": lambda at: brief_time(language, at, now, zone),
        "ago": lambda at: relative_time(language, at, now, zone),
        "late": lambda at: lateness(language, at, now, zone),
        "long_day": lambda at: long_day(language, at, zone),
        "short_day": lambda date: short_day(language, date, now.year),
        "date_words": lambda date: date_words(language, date),
        "month_words": lambda date: month_words(language, date),
        "heading_of_day": lambda at: heading_of_day(language, at, now, zone),
    }
    return _environment().get_template(template).render(**(values | dict(tools)))
