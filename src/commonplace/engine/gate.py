"""The write gate: what a change would bring in is looked at before it is written, by the rules of text/gate.rules and
the owner's own (docs/gate.md).

A secret is refused, redacted, or written with a warning, as `gate.secrets` says for agents and `gate.own_secrets` for
the owner. What a change did not bring in, because it stood in the notes it replaces, is let through.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from commonplace.errors import ConfigError, SecretRefused
from commonplace.note.model import CATEGORY_PROJECT, Note
from commonplace.store.base import File, sha256
from commonplace.store.change import Step
from commonplace.store.layout import PRIVATE

# text/gate.py is imported by the first text to be looked at: most commands have none.
if TYPE_CHECKING:
    from commonplace.engine.engine import Engine
    from commonplace.engine.transaction import HomeSession
    from commonplace.text.gate import Finding, Rules

ALLOW, WARN, REDACT, REFUSE = CHOICES = ("allow", "warn", "redact", "refuse")
_AGENT_FACES = ("mcp", "anthropic")
_RESTORING = ("undo", "restore")


def rules(engine: Engine) -> Rules:
    """The rules in force. Raises ConfigError for a file of the owner's that cannot be read."""
    if engine.gate_rules is None:
        from commonplace.text.gate import default_rules

        engine.gate_rules = default_rules()
        if (name := engine.settings.gate_rules) is not None:
            try:
                engine.gate_rules = engine.gate_rules.with_file(engine.layout.root / name)
            except (OSError, ValueError) as error:
                engine.gate_rules = None
                why = getattr(error, "strerror", None) or str(error)
                raise ConfigError(f"load config: gate.rules: {name}: {why}") from None
    return engine.gate_rules


def suspicious(engine: Engine, text: str) -> tuple[str, ...]:
    """The rules by which `text` seems to hold injected instructions, each once."""
    if not engine.settings.gate_suspicious:
        return ()
    from commonplace.text.gate import SUSPICIOUS, default_rules

    known = default_rules()
    with suppress(ConfigError):  # writing says so; reading goes on
        known = rules(engine)
    found = known.find(text, SUSPICIOUS)
    return tuple(dict.fromkeys(each.rule.id for each in found)) if found else ()


def admit(session: HomeSession, verb: str, steps: Sequence[Step]) -> None:
    """Look at what `steps` would write. Raises SecretRefused; redacts their data; or adds to `session.notices`."""
    for step in () if verb in _RESTORING else steps:
        if step.do == "put" and step.data is not None and step.project != PRIVATE:
            text = step.data.decode("utf-8", "replace")
            if found := check(
                session, text, _place(step), [each.old.data for each in steps if isinstance(each.old, File)]
            ):
                _redact(step, text, found)


def check(session: HomeSession, text: str, place: str, old: Iterable[bytes] = ()) -> list[Finding]:
    """The secrets to be redacted in `text`, which is about to be written; those in `old` do not count.

    Raises SecretRefused where they are refused, or stand where nothing can be redacted. Adds to `session.notices`.
    """
    from commonplace.text.gate import SECRET

    settings = session.engine.settings
    is_owner = session.agent is None and session.face not in _AGENT_FACES
    mode = settings.gate_own_secrets if is_owner else settings.gate_secrets
    found = [] if mode == ALLOW else rules(session.engine).find(text, SECRET)
    if not found:
        return []
    known = [each.decode("utf-8", "replace") for each in old]
    found = [each for each in found if not any(text[each.start : each.end] in before for before in known)]
    body_at = _body_at(text)
    for each in found:
        row, rule = text.count("\n", body_at, each.start) + 1, each.rule
        where = f"line {row}" if each.start >= body_at else "its title or header"
        if mode == REFUSE or (mode == REDACT and each.start < body_at):
            raise SecretRefused(rule.id, rule.why, where)
        done = "redacted" if mode == REDACT else "written all the same"
        session.notices.append(f"{place}, {where}: looks like {rule.why} (rule {rule.id}); {done}")
    return found if mode == REDACT else []


def checked(session: HomeSession, text: str, place: str) -> str:
    """`text` for another program's file, redacted if that is how secrets are treated. Raises SecretRefused."""
    found = check(session, text, place)
    if not found:
        return text
    from commonplace.text.gate import redact

    return redact(text, found)


def tell(session: HomeSession, notes: Iterable[Note]) -> None:
    """Mention the notes just written that seem to hold injected instructions."""
    for note in notes:
        if note.suspicious:
            place = f"{note.project}/{note.path}"
            session.notices.append(f"{place}: marked suspicious ({', '.join(note.suspicious)}); see memory review")


def _body_at(text: str) -> int:
    if not text.startswith("---"):
        return 0
    from commonplace.note.frontmatter import split

    return split(text)[1]


def _place(step: Step) -> str:
    """What a step writes, named without its text: a memory's file name begins with its first line."""
    if step.project == CATEGORY_PROJECT:
        return f"memory {step.path.removesuffix('.md')[-8:]}"
    return f"{step.project}/{step.path}"


def _redact(step: Step, text: str, found: list[Finding]) -> None:
    """Redact the data of a step; a memory's hash and a new one's file name follow its content."""
    from commonplace.note import edit, frontmatter, links
    from commonplace.text.gate import redact

    new = redact(text, found)
    if step.project == CATEGORY_PROJECT:
        header_text, body_at = frontmatter.split(new)
        content = new[body_at:].removesuffix("\n")
        identity = str(frontmatter.parse(header_text or "").get("id", ""))
        folder, _, name = step.path.rpartition("/")
        if step.old is None and name == links.memory_file_name(text[_body_at(text) :].removesuffix("\n"), identity):
            step.path = f"{folder}/{links.memory_file_name(content, identity)}"
        new = edit.SetKeys({"content_hash": sha256(content.encode())}).apply(new).text
    step.data = new.encode()
