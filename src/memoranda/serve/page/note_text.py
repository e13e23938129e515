"""Renders the Markdown of a note as safe HTML.

HTML in the note is escaped, and an image becomes its alt text, so that reading a note loads nothing
from elsewhere. Wikilinks `[[Name]]` become links to notes. In lists, the category of a fact
(`- [tool] uses vim`) and the type of a relation (`- knows [[Ann]]`) are shown as tags.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlencode, urlsplit

from markupsafe import Markup, escape

from memoranda.serve.page.note.programs import is_program_address
from memoranda.text.unicode import visible

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_core import StateCore
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

RENDERED = 100_000
"""Characters of a note that are rendered. The note's file has the rest."""
# A wikilink: `[[Name]]`, `[[Name|words]]`.
_WIKILINK = re.compile(r"\[\[([^\[\]\n]{1,500})\]\]")
# A link to a note, with the words shown for it.
_LINK = re.compile(r"\[\[(?:[^\[\]|\n]*\|)?([^\[\]|\n]+)\]\]")
# The category at the beginning of a fact: `[tool] `.
_FACT = re.compile(r"\[([^\[\]\n]{1,60})\]\s+")
# The type of a relation before its link: `knows `.
# It is one word, or several in quotes, as `read_relation` of note/links.py reads it.
_RELATION = re.compile(r"([^\W\d][\w\-./:+]*|\"[^\"\[\]`\\]+\")[ \t]+\Z")
# The place between two blocks of Markdown.
_BLOCKS = re.compile(r"\n\s*(?:\n|[-*+#>|]|\d+[.)])")
# What begins a block that is no paragraph, and the line that makes a heading or a table of the line
# above it.
_BLOCK_MARKS = re.compile(r"\s|(?:[-*+>#|]|\d+[.)])\s|\||```|~~~")
_UNDERLINE = re.compile(r"(?:(?P<heading>=+|-+)[ \t]*|[-|:][-|: \t]*)(?:\n|\Z)")
# The end of a line, or of its first sentence.
_SENTENCE_END = re.compile(r"[.!?]*\s*\Z|[.!?]+\s+|[。！？]+")
# Characters that may begin inline markup.
_MARKS = re.compile(r"[\[\]!*_~`<(|]")
# The time to parse a block grows with the square of its marks. A note with a block of more marks
# is shown as plain text.
_MAX_MARKS = 2000
# The project of the memory tool. Agents write its files as plain text, in which each line counts.
_PLAIN_FILES = "memories"
# The contents of a box in a task list, `- [x] done`, which is not the category of a fact.
_TASK_BOXES = frozenset((" ", "x", "X", "-", "/", "?"))


@dataclass
class LinkTargets:
    """Where the wikilinks of one note lead.

    addresses: name in a link -> the address of the note.
    ambiguous: name in a link that several notes have -> how many notes have it.
    """

    addresses: Mapping[str, str] = field(default_factory=dict)
    ambiguous: Mapping[str, int] = field(default_factory=dict)


def as_html(
    text: str,
    project: str,
    path: str,
    targets: LinkTargets,
    against: MutableMapping[int, Markup] | None = None,
) -> Markup:
    """Render the text of a note as HTML. Only the first RENDERED characters are shown.

    project, path: the place of the note. Relative links begin at its folder.
    against: by the line of a list item, counted from 0: what contradicts it. The item is struck out,
        with these words behind it, and the line is taken out of `against`. None if nothing
        contradicts the note.
    """
    text = visible(text[:RENDERED])
    mark_counts = [len(_MARKS.findall(block)) for block in _BLOCKS.split(text)]
    if max(mark_counts) > _MAX_MARKS:
        return Markup(f"<pre>{escape(text)}</pre>")
    folder = f"{project}/{path.rpartition('/')[0]}".rstrip("/")
    env: dict[str, Any] = {
        "base": folder,
        "targets": targets,
        "against": {} if against is None else against,
        "keeps_lines": project == _PLAIN_FILES,
    }
    html = _renderer().render(text, env)
    # Wide code can be scrolled, and with `tabindex` also by keys.
    return Markup(html.replace("<pre>", '<pre tabindex="0">'))


def inline_html(text: str, project: str, path: str, targets: LinkTargets) -> Markup:
    """Render one line of a note as HTML. It may have links, but no blocks such as lists.

    project, path: the place of the note. Relative links begin at its folder.
    """
    text = visible(text)
    if len(_MARKS.findall(text)) > _MAX_MARKS:
        return escape(text)
    folder = f"{project}/{path.rpartition('/')[0]}".rstrip("/")
    return Markup(_renderer().renderInline(text, {"base": folder, "targets": targets}))


def body_without_title(body: str, title: str) -> str:
    """Return the text of a note for a page that shows its title above it, so that it is said once.

    A heading or a first sentence that only repeats the title is left out. A memory has its first line
    as its title. "" if the note says nothing else.
    """
    text = body.lstrip("\n")
    # A heading such as `# Plan`.
    without_heading = text.removeprefix(f"# {title}\n")
    if without_heading != text:
        return without_heading
    # A heading with a line of `===` below it.
    line, _, rest = text.partition("\n")
    underline = _UNDERLINE.match(rest)
    if underline is not None and underline["heading"] and line == title:
        return rest[underline.end() :]
    # A first sentence in plain text, such as `Plan. We begin on Monday.`
    is_plain = not _BLOCK_MARKS.match(line) and underline is None
    if not is_plain or not title or not line.startswith(title):
        return body
    after_title = line[len(title) :]
    sentence_end = _SENTENCE_END.match(after_title)
    if sentence_end is None:
        return body
    return f"{after_title[sentence_end.end() :]}\n{rest}".strip("\n")


def words_of_links(text: str) -> str:
    """Return a text with the words of each link in its place: `[[Bo|he]] left` gives `he left`."""
    return _LINK.sub(r"\1", text)


def prepare() -> None:
    """Make the renderer before somebody waits for it."""
    _renderer()


@cache
def _renderer() -> MarkdownIt:
    """Return the Markdown renderer with our rules."""
    from markdown_it import MarkdownIt

    renderer = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    renderer.inline.ruler.before("link", "wikilink", _wikilink)
    renderer.core.ruler.push("facts", _mark_facts)
    renderer.core.ruler.push("against", _strike_contradicted)
    # Every link becomes a token. `_link_open` decides which may be followed.
    renderer.validateLink = lambda url: True  # type: ignore[method-assign]
    renderer.add_render_rule("link_open", _link_open)
    renderer.add_render_rule("image", _image)
    renderer.add_render_rule("fact", _fact)
    renderer.add_render_rule("relation", _relation)
    renderer.add_render_rule("softbreak", _softbreak)
    # A wide table can be scrolled, as wide code can.
    renderer.add_render_rule("table_open", lambda *_: '<table tabindex="0">')
    return renderer


def _wikilink(state: StateInline, silent: bool) -> bool:
    """Parse `[[Name]]` or `[[Name|words]]` at the present position, as a rule of the parser.

    Returns whether a wikilink is there.

    silent: whether to look only, without making tokens.
    """
    match = _WIKILINK.match(state.src, state.pos, state.posMax)
    if match is None:
        return False
    if not silent:
        _push_wikilink(state, match[1])
    state.pos = match.end()
    return True


def _push_wikilink(state: StateInline, inner: str) -> None:
    """Make the tokens of a wikilink. A name without a note leads to the form for a new note.

    inner: the text between the brackets.
    """
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
    """Return the opening tag of a link. A link that may not be followed has no address."""
    token = tokens[at]
    href = _address(str(token.attrGet("href") or ""), env["base"])
    if href is None:
        return '<a class="dead">'
    attributes = f' href="{escape(href)}"'
    leads_outside = urlsplit(href).scheme != ""
    if leads_outside:
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
    """Render the category of a fact as a tag."""
    return f'<span class="tag fact">{escape(tokens[at].content)}</span> '


def _relation(self: Any, tokens: Sequence[Token], at: int, *_: Any) -> str:
    """Render the type of a relation as a tag."""
    words = tokens[at].content.strip('"').replace("_", " ")
    return f'<span class="relation">{escape(words)}</span> '


def _softbreak(self: Any, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
    """Render the end of a line in a paragraph."""
    return "<br>\n" if env.get("keeps_lines") else "\n"


def _mark_facts(state: StateCore) -> None:
    """Turn `[tool]` in `- [tool] text`, and `knows` in `- knows [[Ann]]`, into tokens of their kind."""
    from markdown_it.token import Token

    # The text of a list item follows two tokens after the item begins, behind its paragraph.
    for item_open, text_token in zip(state.tokens, state.tokens[2:], strict=False):
        children = text_token.children
        if item_open.type != "list_item_open" or text_token.type != "inline" or not children:
            continue
        first = children[0]
        if first.type != "text":
            continue
        fact = _FACT.match(first.content)
        if fact and fact[1] not in _TASK_BOXES:
            first.content = first.content[fact.end() :]
            children.insert(0, Token("fact", "", 0, content=fact[1]))
            continue
        relation = _RELATION.match(first.content)
        is_link = len(children) > 1 and children[1].type == "link_open"
        if relation and is_link and relation.end() == len(first.content):
            children[0] = Token("relation", "", 0, content=relation[1])


def _strike_contradicted(state: StateCore) -> None:
    """Strike out list items that something newer contradicts, and put this behind them."""
    from markdown_it.token import Token

    # By the line of an item: what contradicts it.
    against: MutableMapping[int, Markup] = state.env.get("against", {})
    # The tokens of an item are its opening, the opening of its paragraph, and the text.
    for item_open, text_token in zip(state.tokens, state.tokens[2:], strict=False):
        if item_open.type != "list_item_open" or text_token.type != "inline":
            continue
        if not text_token.map or not text_token.children:
            continue
        # `map` has the first line of the text, and the line after its last.
        line = text_token.map[0]
        if line not in against:
            continue
        words = text_token.children
        # The label in front of a fact or a relation stays readable.
        label = [words.pop(0)] if words[0].type in ("fact", "relation") else []
        struck = [Token("s_open", "s", 1), *words, Token("s_close", "s", -1)]
        remark = Token("html_inline", "", 0, content=str(against.pop(line)))
        text_token.children = [*label, *struck, remark]


def _address(href: str, base: str) -> str | None:
    """Return the address for a link in a note. None if it may not be followed.

    Allowed are the web, mail, programs that open notes, `memory:` addresses, and relative paths of
    notes.

    base: the project and the folder of the note: `notes/work`.
    """
    if href == "/page" or href.startswith(("/page/", "#")):
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
    """Return the address of the note at a path relative to the folder `base`.

    `../plan.md` in `notes/work` gives `/page/note/notes/plan.md`. None if the path leads out of the
    project.
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
