"""A note's text as safe HTML: its HTML is escaped, images are named, links to notes and the web."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlencode, urlsplit

from markupsafe import Markup, escape

from memoranda.serve.page.programs import is_program_address
from memoranda.text.unicode import visible

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_core import StateCore
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

RENDERED = 100_000
"""Characters of a note that are rendered; the rest is in its text."""
# A wikilink.
_WIKI = re.compile(r"\[\[([^\[\]\n]{1,500})\]\]")
# The category at the beginning of an observation.
_FACT = re.compile(r"\[([^\[\]\n]{1,60})\]\s+")
# The type of a relation before its link.
_RELATION = re.compile(r"([\w][\w -]{0,60})\s+\Z")
# Between two blocks of Markdown.
_BLOCKS = re.compile(r"\n\s*(?:\n|[-*+#>|]|\d+[.)])")
# Signs that may open inline markup: many of them in one block make the parser slow.
_MARKS = re.compile(r"[\[\]!*_~`<(|]")
# The time a paragraph takes grows with the square of its marks: longer ones are shown as they
# are.
_MOST_MARKS = 2000
# The contents of a box in a task list, as opposed to the category of a fact.
_TASKS = frozenset((" ", "x", "X", "-", "/", "?"))


@dataclass
class LinkTargets:
    """Where the wikilinks of one note lead.

    `addresses`: the address by the text of the link. `ambiguous`: how many notes have that name.
    """

    addresses: Mapping[str, str] = field(default_factory=dict)
    ambiguous: Mapping[str, int] = field(default_factory=dict)


def as_html(text: str, project: str, path: str, targets: LinkTargets) -> Markup:
    """A note's text as HTML. Only the first RENDERED characters count."""
    text = visible(text[:RENDERED])
    if any(len(_MARKS.findall(block)) > _MOST_MARKS for block in _BLOCKS.split(text)):
        return Markup(f"<pre>{escape(text)}</pre>")
    base = f"{project}/{path.rpartition('/')[0]}".rstrip("/")
    html = _renderer().render(text, {"base": base, "targets": targets})
    # A wide one scrolls, by keys too
    return Markup(html.replace("<pre>", '<pre tabindex="0">'))


def prepare() -> None:
    """Make the renderer before somebody waits for it."""
    _renderer()


@cache
def _renderer() -> MarkdownIt:
    from markdown_it import MarkdownIt

    renderer = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    renderer.inline.ruler.before("link", "wikilink", _wikilink)
    renderer.core.ruler.push("facts", _mark_facts)
    # Decided in _link_open, by what is left
    renderer.validateLink = lambda url: True  # type: ignore[method-assign]
    renderer.add_render_rule("link_open", _link_open)
    renderer.add_render_rule("image", _image)
    renderer.add_render_rule("fact", _fact)
    renderer.add_render_rule("relation", _relation)
    # A wide one scrolls, by keys too
    renderer.add_render_rule("table_open", lambda *_: '<table tabindex="0">')
    return renderer


def _wikilink(state: StateInline, silent: bool) -> bool:
    """Render `[[target]]` or `[[target|shown]]` as a link to the note.

    Returns whether it was one.
    """
    match = _WIKI.match(state.src, state.pos, state.posMax)
    if match is None:
        return False
    if not silent:
        _push_wikilink(state, match[1])
    state.pos = match.end()
    return True


def _push_wikilink(state: StateInline, inner: str) -> None:
    target, _, alias = inner.partition("|")
    name = target.strip()
    targets: LinkTargets = state.env["targets"]
    address = targets.addresses.get(name)
    namesakes = targets.ambiguous.get(name, 0)
    token = state.push("link_open", "a", 1)
    if address is None and namesakes:
        address = "/page/find?" + urlencode({"ref": name}, errors="replace")
        token.meta = {"namesakes": namesakes}
    elif address is None:
        address = "/page/new?" + urlencode({"title": name}, errors="replace")
        token.meta = {"missing": True}
    token.attrSet("href", address)
    state.push("text", "", 0).content = alias or target
    state.push("link_close", "a", -1)


def _link_open(self: Any, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
    token = tokens[at]
    href = _address(str(token.attrGet("href") or ""), env["base"])
    if href is None:
        return '<a class="dead">'
    attributes = f' href="{escape(href)}"'
    if urlsplit(href).scheme:
        attributes += ' rel="noreferrer noopener nofollow" target="_blank"'
    if token.meta.get("missing"):
        attributes += ' class="missing"'
    if token.meta.get("namesakes"):
        attributes += f' class="ambiguous" data-namesakes="{int(token.meta["namesakes"])}"'
    return f"<a{attributes}>"


def _image(self: Any, tokens: Sequence[Token], at: int, *_: Any) -> str:
    """Render an image as its alt text, since the page loads no images."""
    token = tokens[at]
    source = token.attrGet("src") or ""
    return f'<span class="image">🖼 {escape(token.content)} ({escape(source)})</span>'


def _fact(self: Any, tokens: Sequence[Token], at: int, *_: Any) -> str:
    return f'<span class="tag fact">{escape(tokens[at].content)}</span> '


def _relation(self: Any, tokens: Sequence[Token], at: int, *_: Any) -> str:
    words = tokens[at].content.replace("_", " ")
    return f'<span class="relation">{escape(words)}</span> '


def _mark_facts(state: StateCore) -> None:
    """Make `- [category] text` and `- relation [[target]]` facts and relations to look at."""
    from markdown_it.token import Token

    for before, item in zip(state.tokens, state.tokens[2:], strict=False):
        children = item.children
        if before.type != "list_item_open" or item.type != "inline" or not children:
            continue
        first = children[0]
        if first.type != "text":
            continue
        fact = _FACT.match(first.content)
        if fact and fact[1] not in _TASKS:
            first.content = first.content[fact.end() :]
            children.insert(0, Token("fact", "", 0, content=fact[1]))
            continue
        relation = _RELATION.match(first.content)
        is_link = len(children) > 1 and children[1].type == "link_open"
        if relation and is_link and relation.end() == len(first.content):
            children[0] = Token("relation", "", 0, content=relation[1])


def _address(href: str, base: str) -> str | None:
    """The address of a link in a note: the web, or a note. None if it may not be followed."""
    if href.startswith(("/page/", "#")):
        return href
    try:
        parts = urlsplit(href)
    except ValueError:
        return None
    scheme = parts.scheme.lower()
    if is_program_address(href):
        return href
    if scheme == "mailto" or (scheme in ("http", "https") and parts.netloc):
        return href
    if scheme == "memory":
        return "/page/find?ref=" + quote(href)
    if scheme or href.startswith(("/", "\\")):
        return None
    return _beside(unquote(href.partition("#")[0]), base)


def _beside(path: str, base: str) -> str | None:
    """The address of a note at a path relative to the folder `base`.

    None if the path leads outside.
    """
    names: list[str] = base.split("/")
    for part in path.split("/"):
        if part == "..":
            names = names[:-1]
        elif part not in ("", "."):
            names.append(part)
    if len(names) < 2:
        return None
    return "/page/note/" + quote("/".join(names), safe="/", errors="replace")
