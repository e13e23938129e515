"""Renders the templates of the page, and defines the functions and filters that they may use.

Every value that a template shows passes `visible`, which spells out control characters and
characters that change the direction of writing. Then it is escaped.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup, escape

from memoranda.index.told_notes import Mark
from memoranda.serve.page import note_text
from memoranda.serve.page.addresses import about_url, hashed_url, id_url, note_ref, note_url
from memoranda.serve.page.package_files import TEMPLATES, files_in, package_files
from memoranda.serve.page.static_files import static_url
from memoranda.serve.page.words.fact_lines import with_fact
from memoranda.serve.page.words.property_words import property_name, property_value
from memoranda.serve.page.words.repetition import repetition
from memoranda.serve.page.words.sentences import in_words, with_code
from memoranda.serve.page.words.times import (
    Clock,
    Time,
    brief_words,
    full_time,
    heading_of_day,
    late_words,
    long_day,
    month_words,
    short_day,
    time_element,
    time_words,
)
from memoranda.serve.page.words.titles import (
    folder_of,
    place_of,
    time_put_off_to,
    title_of_path,
    title_of_revision,
)
from memoranda.serve.page.words.wording import (
    COLON,
    LANGUAGES,
    as_beginning,
    counted,
    done,
    joined_names,
    project_name,
    translated,
)
from memoranda.serve.page.words.writers import (
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
    """Return the text of a template. None if no template has this name."""
    content = package_files().get(f"{TEMPLATES}/{template}")
    return None if content is None else content.decode()


@cache
def _environment() -> Environment:
    """Return the environment of all templates: the functions and filters that they may use."""
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
        "about_url": about_url,
        "id_url": id_url,
        "hashed_url": hashed_url,
        "note_ref": note_ref,
        "static_url": static_url,
        "languages": LANGUAGES,
        "colour_of": colour_of,
        "initial_of": initial_of,
    }
    environment.filters |= {
        "flat": _flat,
        "raw": lambda text: Markup(escape(text)),
        "first_line": first_line,
        "with_code": with_code,
        "line": lambda text: flat(" ".join(str(text).split())),
        "sentence": _sentence,
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
        "with_fact": with_fact,
    }
    return environment


@pass_context
def _sentence(context: Context, text: str) -> str:
    """Return a text as the beginning of a sentence, in the language of the template."""
    return as_beginning(context["lang"], text)


def _flat(text: Any) -> str:
    """Return a text without line breaks and control characters. Markup has none."""
    return text if isinstance(text, Markup) else flat(str(text))


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
    return (
        _environment()
        .get_template(template)
        .render(values | _functions_of_language(language, values))
    )


def render_frame(template: str, language: str, **values: Any) -> str:
    """Render a template up to MAIN. This part is the same for any content."""
    pieces = []
    for piece in (
        _environment()
        .get_template(template)
        .generate(values | _functions_of_language(language, values))
    ):
        pieces.append(piece)
        if MAIN in piece:
            break
    frame, _, _ = "".join(pieces).partition(MAIN)
    return frame + MAIN


def _titled(visit: Any, title: str, most_characters: int | None = None) -> str:
    """Return a title as lists show it: with its secrets masked, and "…" where it is cut.

    visit: the request, whose memory has the rules for secrets. None for a page without a memory.
    most_characters: how many characters of it are shown. A title that was cut before could end with
        the beginning of a secret, which does not look like one. None: all.
    """
    is_whole = most_characters is None or len(title) <= most_characters
    if visit is None:
        return title if is_whole else f"{title[:most_characters]}…"
    rules = visit.memory.rules_for_reading()
    if is_whole:
        return str(rules.redacted(title))
    return f"{rules.redacted_beginning(title, most_characters).rstrip()}…"


def _note_url(visit: Any, project: str, path: str) -> str:
    """Return the address of a note's page, as the request has it if the page is the note's own.

    visit: the request. None for a page without a memory.
    """
    asked = "" if visit is None else visit.request.path_params.get("path", "")
    return note_url(project, path, asked)


# An author whose name is not known. Names are never translated.
_UNNAMED = "an agent"


def remark_words(clock: Clock, remark: Mark) -> Markup:
    """Return a remark about a note that an agent is told: `due tomorrow 09:00`."""
    pattern = visible(translated(clock.language, remark.pattern))
    is_unnamed = remark.value == _UNNAMED
    value = translated(clock.language, _UNNAMED) if is_unnamed else flat(remark.value)
    # The pattern has one value: "due {day}" becomes "due ", the time, and "".
    words_before, _, rest = pattern.partition("{")
    _, _, words_after = rest.partition("}")
    return Markup("{}{}{}").format(words_before, time_element(clock, value), words_after)


def _hour(clock: Clock, at: Time) -> Markup | str:
    """Return the clock of a time whose day is written above it: `09:05`."""
    local = clock.local(at)
    return time_element(clock, at, f"{local:%H:%M}" if local else "")


def _functions_of_language(language: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the functions and filters that depend on the language and the reader's clock."""
    clock = Clock(language, values.get("now") or datetime.now(UTC), values.get("zone"))
    return {
        "_": partial(translated, language),
        "_n": partial(counted, language),
        "did": partial(done, language),
        "names": partial(joined_names, language),
        "project_name": partial(project_name, language),
        "repetition": partial(repetition, language),
        "lang": language,
        "colon": COLON[language],
        "when": partial(time_element, clock),
        "when_words": partial(time_words, clock),
        "full_time": partial(full_time, clock),
        "late": lambda at: time_element(clock, at, late_words(clock, at)),
        "brief": lambda at: time_element(clock, at, brief_words(clock, at)),
        "hour": partial(_hour, clock),
        "iso_day": lambda moment: f"{moment.astimezone(clock.zone):%Y-%m-%d}",
        "long_day": partial(long_day, clock),
        "short_day": partial(short_day, clock),
        "local": clock.local,
        "today": clock.today,
        "month_words": partial(month_words, language),
        "heading_of_day": partial(heading_of_day, clock),
        "titled": partial(_titled, values.get("visit")),
        "note_url": partial(_note_url, values.get("visit")),
        "in_words": partial(in_words, clock),
        "remark_words": partial(remark_words, clock),
        "property_name": partial(property_name, language),
        "property_value": partial(property_value, clock),
    }
