"""Templates, the words of the page in each language, and note text as safe HTML.

Every value a template shows passes `visible`: control and bidi characters are spelled out before they are escaped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, tzinfo
from difflib import SequenceMatcher
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request

from commonplace.clock import parse_stamp
from commonplace.text.unicode import flat, visible

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline

LANGUAGES = {"en": "English", "zh": "中文"}
RENDERED = 100_000
"""Characters of a note that are rendered; the rest is in its text."""
_DIFF_LINES, _DIFF_WIDTH, _COMPARED = 400, 2000, 3000
_WIKI = re.compile(r"\[\[([^\[\]\n]{1,500})\]\]")
_BLOCKS = re.compile(r"\n\s*(?:\n|[-*+#>|]|\d+[.)])")
_MARKS, _MOST_MARKS = re.compile(r"[\[\]!*_~`<(|]"), 2000
"""The time a paragraph takes grows with the square of its marks: one of so many is shown as it is."""


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("commonplace.serve.page"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value,
    )  # fmt: skip
    made.globals |= {"note_url": note_url, "languages": LANGUAGES}
    made.filters |= {"flat": lambda text: flat(str(text)), "raw": lambda text: Markup(escape(text))}
    return made


@cache
def prepare() -> None:
    """Read all templates, and what renders notes, before somebody waits for them."""
    for name in _environment().list_templates(["html"]):
        _environment().get_template(name)
    _markdown()


def render(template: str, language: str, **values: Any) -> str:
    """The text of a template in a language (see LANGUAGES); `zone` is that of its times."""
    zone = values.get("zone")
    more = {"_": partial(told, language), "lang": language, "time": lambda at: local_time(at, zone),
            "day": lambda at: local_time(at, zone)[:10], "clock": lambda at: local_time(at, zone)[11:]}  # fmt: skip
    return _environment().get_template(template).render(**more, **values)


def language_of(request: Request) -> str:
    """The language chosen (a cookie), else the first the browser wants that there is, else English."""
    wanted = [request.cookies.get("commonplace-language", ""), *request.headers.get("accept-language", "").split(",")]
    names = (each.strip().partition(";")[0].partition("-")[0].lower() for each in wanted)
    return next((each for each in names if each in LANGUAGES), "en")


@cache
def words(language: str) -> Mapping[str, str]:
    """The words of a language by the English ones, which stand in the templates; in English itself, what is called by
    another name than the journal's."""
    found: dict[str, str] = json.loads(files(__package__).joinpath("texts", f"{language}.json").read_text("utf-8"))
    return found


def told(language: str, said: str, /, **values: Any) -> str:
    """An English sentence in a language; `{name}` in it stands for a value."""
    found = words(language).get(said, said)
    return found.format(**values) if values else found


def local_time(at: str | datetime | None, zone: tzinfo | None) -> str:
    """`2026-11-23 09:05` of a stamp in a zone; the text itself where it is no time."""
    try:
        moment = at if isinstance(at, datetime) else parse_stamp(at or "")
        return f"{moment.astimezone(zone):%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError):
        return str(at or "")


def note_url(project: str, path: str) -> str:
    """The address of a note's page."""
    return "/page/note/" + quote(f"{project}/{path}", safe="/", errors="replace")


def markdown(text: str, project: str, path: str, known: Mapping[str, str]) -> Markup:
    """A note's text as HTML: no HTML of its own, no foreign images, links only to notes and the web. `known`: where the
    targets of its wikilinks lead. Only the first RENDERED characters count."""
    text = visible(text[:RENDERED])
    if any(len(_MARKS.findall(each)) > _MOST_MARKS for each in _BLOCKS.split(text)):
        return Markup(f"<pre>{escape(text)}</pre>")
    env = {"base": f"{project}/{path.rpartition('/')[0]}".rstrip("/"), "known": known}
    return Markup(_markdown().render(text, env))


@cache
def _markdown() -> MarkdownIt:
    from markdown_it import MarkdownIt

    made = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    made.inline.ruler.before("link", "wikilink", _wikilink)
    made.validateLink = lambda url: True  # type: ignore[method-assign]  # decided in _link_open, by what is left

    def _link_open(self: Any, tokens: Sequence[Any], at: int, options: Any, env: Any) -> str:
        token = tokens[at]
        href = _address(str(token.attrGet("href") or ""), env["base"])
        if href is None:
            return '<a class="dead">'
        outside = ' rel="noreferrer noopener nofollow" target="_blank"' if urlsplit(href).scheme else ""
        missing = ' class="missing"' if token.meta.get("missing") else ""
        return f'<a href="{escape(href)}"{outside}{missing}>'

    def _image(self: Any, tokens: Sequence[Any], at: int, options: Any, env: Any) -> str:
        token = tokens[at]
        return f'<span class="image">🖼 {escape(token.content)} ({escape(str(token.attrGet("src") or ""))})</span>'

    made.add_render_rule("link_open", _link_open)
    made.add_render_rule("image", _image)
    made.add_render_rule("table_open", lambda *_: '<table tabindex="0">')  # a wide one scrolls, by keys too
    return made


def _wikilink(state: StateInline, silent: bool) -> bool:
    """`[[target]]` and `[[target|shown]]` as a link to the note."""
    found = _WIKI.match(state.src, state.pos, state.posMax)
    if found is None:
        return False
    if not silent:
        target, _, shown = found[1].partition("|")
        known = state.env["known"].get(target.strip())
        token = state.push("link_open", "a", 1)
        token.attrSet("href", known or "/page/find?ref=" + quote(target.strip(), errors="replace"))
        token.meta = {"missing": known is None}
        state.push("text", "", 0).content = shown or target
        state.push("link_close", "a", -1)
    state.pos = found.end()
    return True


def _address(href: str, base: str) -> str | None:
    """Where a link of a note may lead: the web, a note; None: nowhere."""
    if href.startswith("/page/") or href.startswith("#"):
        return href
    try:
        parts = urlsplit(href)
    except ValueError:
        return None
    scheme = parts.scheme.lower()
    if scheme == "mailto" or (scheme in ("http", "https") and parts.netloc):
        return href
    if scheme == "memory":
        return "/page/find?ref=" + quote(href)
    if scheme or href.startswith(("/", "\\")):
        return None
    path = unquote(href.partition("#")[0])
    names: list[str] = base.split("/")
    for each in path.split("/"):
        if each == "..":
            names = names[:-1]
        elif each not in ("", "."):
            names.append(each)
    return note_url(names[0], "/".join(names[1:])) if len(names) > 1 else None


def diff(before: str, after: str) -> list[tuple[str, str]]:
    """The lines of two texts that differ, with two around them, as (sign, line): `-`, `+`, ` `, and `…` for lines left
    out."""
    old, new = before.splitlines(), after.splitlines()
    if old == new:
        return []
    start = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    left = min(len(old), len(new)) - start
    end = next((n for n in range(left) if old[-1 - n] != new[-1 - n]), left)
    one, two = old[start : len(old) - end], new[start : len(new) - end]
    rows: list[tuple[str, str]] = [(" ", each) for each in old[max(0, start - 2) : start]]
    if max(len(one), len(two)) > _COMPARED:
        groups: Iterable[Sequence[tuple[str, int, int, int, int]]] = [[("replace", 0, len(one), 0, len(two))]]
    else:
        groups = SequenceMatcher(None, one, two, autojunk=False).get_grouped_opcodes(2)
    for number, group in enumerate(groups):
        rows += [("…", "")] if number else []
        for tag, a, b, c, d in group:
            rows += [(" " if tag == "equal" else "-", each) for each in one[a:b]]
            rows += [("+", each) for each in two[c:d] if tag != "equal"]
    rows += [(" ", each) for each in old[len(old) - end :][:2]]
    more = [("…", "")] if len(rows) > _DIFF_LINES else []
    return [(sign, line[:_DIFF_WIDTH]) for sign, line in rows[:_DIFF_LINES]] + more
