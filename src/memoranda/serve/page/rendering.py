"""Renders the templates of the page, and defines the functions and filters that they may use.

Every value that a template shows passes `visible`, which spells out control characters and
characters that change the direction of writing. Then it is escaped.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from memoranda.serve.page import note_text
from memoranda.serve.page.addresses import hashed_url, id_url, note_ref, note_url
from memoranda.serve.page.package_files import TEMPLATES, files_in, package_files
from memoranda.serve.page.property_words import point_in_time, property_name, property_value
from memoranda.serve.page.repetition import repetition
from memoranda.serve.page.static_files import static_url
from memoranda.serve.page.titles import (
    folder_of,
    place_of,
    time_put_off_to,
    title_of_path,
    title_of_revision,
)
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
from memoranda.serve.page.writers import (
    colour_of,
    initial_of,
    is_upkeep,
    program_of,
    via,
    writer_of,
    writing_agent,
)
from memoranda.text.unicode import flat, visible


def first_line(text: str, max_characters: int = 160) -> str:
    """Return the first line of a text that has words, without its marks: `## Plan` gives `Plan`."""
    for line in text.splitlines():
        words = line.lstrip("#>*- \t").strip()
        if words and not words.startswith("---"):
            is_short = len(words) <= max_characters
            return words if is_short else f"{words[: max_characters - 1]}…"
    return ""


def shown_size(size: int) -> str:
    """Return a number of bytes as `588 kB` or `13.5 MB`."""
    if size >= 1 << 20:
        return f"{size / (1 << 20):.1f} MB"
    return f"{size / (1 << 10):.0f} kB"


def _shown(value: Any) -> Any:
    """Make a value visible before a template shows it. Markup is visible already."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return visible(value)
    return value


def _source(template: str) -> str | None:
    """Return the text of a template. None if there is none of this name."""
    content = package_files().get(f"{TEMPLATES}/{template}")
    return None if content is None else content.decode()


@cache
def _environment() -> Environment:
    """Return the environment of all templates, with what does not depend on the request."""
    environment = Environment(
        loader=FunctionLoader(_source),
        # A template never changes while the server runs.
        auto_reload=False,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    environment.globals |= {
        "id_url": id_url,
        "hashed_url": hashed_url,
        "note_ref": note_ref,
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
        "via": via,
        "program": program_of,
        "is_upkeep": lambda change: is_upkeep([change]),
        "bytes": shown_size,
        "put_off_to": time_put_off_to,
        "title_of_path": title_of_path,
        "title_of_revision": title_of_revision,
        "folder_of": folder_of,
        "place_of": place_of,
    }
    return environment


MAIN = '<main id="main" tabindex="-1">'
"""The tag in base.html at which the frame of a page ends and its own content begins."""


@cache
def prepare() -> None:
    """Compile all templates, and make the Markdown renderer, before a request needs them."""
    for name in files_in(TEMPLATES):
        _environment().get_template(name)
    note_text.prepare()


def render(template: str, language: str, **values: Any) -> str:
    """Render a template in a language (a key of LANGUAGES).

    values: the values that the template uses. `zone` is the time zone of its times, `now` the
        present moment.
    """
    return _environment().get_template(template).render(values | _tools(language, values))


def render_frame(template: str, language: str, **values: Any) -> str:
    """Render a template up to MAIN, which is included: what is the same for any content."""
    pieces = []
    for piece in _environment().get_template(template).generate(values | _tools(language, values)):
        pieces.append(piece)
        if MAIN in piece:
            break
    frame, _, _ = "".join(pieces).partition(MAIN)
    return frame + MAIN


def _titled(visit: Any, title: str, most_characters: int | None = None) -> str:
    """Return a title as lists show it: with its secrets masked.

    visit: the request, whose memory has the rules for secrets. None for a page without a memory.
    most_characters: how many characters are returned. A title that was cut before could end with the
        beginning of a secret, which does not look like one. None: all.
    """
    if visit is None:
        return title[:most_characters]
    rules = visit.memory.rules_for_reading()
    if most_characters is None:
        masked: str = rules.redacted(title)
    else:
        masked = rules.redacted_beginning(title, most_characters)
    return masked


def _note_url(visit: Any, project: str, path: str) -> str:
    """Return the address of a note's page, as the request has it if the page is the note's own.

    visit: the request. None for a page without a memory.
    """
    asked = "" if visit is None else visit.request.path_params.get("path", "")
    return note_url(project, path, asked)


def _tools(language: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the functions and filters that depend on the language and the reader's clock."""
    zone = values.get("zone")
    now = values.get("now") or datetime.now(UTC)
    return {
        "_": partial(translated, language),
        "_n": partial(counted, language),
        "did": partial(done, language),
        "names": partial(joined_names, language),
        "repetition": partial(repetition, language),
        "lang": language,
        "colon": COLON[language],
        "time": lambda at: local_time(at, zone),
        "day": lambda at: local_time(at, zone)[:10],
        "clock": lambda at: local_time(at, zone)[11:],
        "brief": lambda at: brief_time(language, at, now, zone),
        "ago": lambda at: relative_time(language, at, now, zone),
        "late": lambda at: lateness(language, at, now, zone),
        "weekday": lambda at: translated(language, f"{at.astimezone(zone):%a}"),
        "long_day": lambda at: long_day(language, at, zone),
        "short_day": lambda date: short_day(language, date, now.year),
        "date_words": lambda date: date_words(language, date),
        "month_words": lambda date: month_words(language, date),
        "titled": partial(_titled, values.get("visit")),
        "note_url": partial(_note_url, values.get("visit")),
        "property_name": partial(property_name, language),
        "property_value": lambda key, value: property_value(language, key, value, now, zone),
        "point": lambda at: point_in_time(language, at, now, zone),
        "heading_of_day": lambda at: heading_of_day(language, at, now, zone),
    }
