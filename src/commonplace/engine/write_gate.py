"""The write gate: what a change would bring in is looked at before it is written, by the rules of text/gate.rules and
the owner's own (docs/gate.md).

A secret is refused, redacted, or written with a warning, as `gate.secrets` says for agents and `gate.own_secrets` for
the owner. What a change did not bring in, because it stood in the notes it replaces, is let through.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from commonplace.config import Settings
from commonplace.errors import ConfigError, SecretRefused
from commonplace.note.model import CATEGORY_PROJECT
from commonplace.store.base import File, sha256
from commonplace.store.change import Step
from commonplace.store.layout import PRIVATE

# text/gate.py is imported by the first text to be looked at: most commands have none.
if TYPE_CHECKING:
    from commonplace.text.gate import GateMatch, Rules

ALLOW, WARN, REDACT, REFUSE = "allow", "warn", "redact", "refuse"
_RESTORING = ("undo", "restore")


class Gate:
    """The rules in force in the home at `root`, and what is done when one matches."""

    def __init__(self, settings: Settings, root: Path):
        self._settings, self._root = settings, root
        self._rules: Rules | None = None

    def rules(self) -> Rules:
        """The program's and the owner's. Raises ConfigError for a file of the owner's that cannot be read."""
        if self._rules is None:
            from commonplace.text.gate import default_rules

            found = default_rules()
            if (name := self._settings.gate_rules) is not None:
                try:
                    found = found.with_file(self._root / name)
                except (OSError, ValueError) as error:
                    why = getattr(error, "strerror", None) or str(error)
                    raise ConfigError(f"load config: gate.rules: {name}: {why}") from None
            self._rules = found
        return self._rules

    def suspicious(self, text: str) -> tuple[str, ...]:
        """The rules by which `text` seems to hold injected instructions, each once."""
        if not self._settings.gate_suspicious:
            return ()
        from commonplace.text.gate import SUSPICIOUS, default_rules

        known = default_rules()
        with suppress(ConfigError):  # writing says so; reading goes on
            known = self.rules()
        found = known.find(text, SUSPICIOUS)
        return tuple(dict.fromkeys(each.rule.id for each in found)) if found else ()

    def admit(self, steps: Sequence[Step], verb: str, is_owner: bool) -> list[str]:
        """Look at what `steps` would write; what is redacted changes their data. Returns what is to be said of it.

        Raises SecretRefused.
        """
        notices: list[str] = []
        for step in () if verb in _RESTORING else steps:
            if step.do == "put" and step.data is not None and step.project != PRIVATE:
                text = step.data.decode("utf-8", "replace")
                old = (each.old.data for each in steps if isinstance(each.old, File))
                # A memory's file name begins with its first line, so it is named by its id.
                is_memory = step.project == CATEGORY_PROJECT
                place = f"memory {step.path.removesuffix('.md')[-8:]}" if is_memory else f"{step.project}/{step.path}"
                if found := self.check(text, place, is_owner, notices, old):
                    _redact(step, text, found)
            name = step.to or ("" if step.old or step.project == CATEGORY_PROJECT else step.path)
            if name and (found := self.check(name, f"a file of {step.project}", is_owner, notices, where="its name")):
                raise SecretRefused(found[0].rule.id, found[0].rule.why, "its name")
        return notices

    def check(
        self, text: str, place: str, is_owner: bool, notices: list[str], old: Iterable[bytes] = (), where: str = ""
    ) -> list[GateMatch]:
        """The secrets to be redacted in `text`, which is about to be written at `place`; those in `old` do not count.

        Raises SecretRefused where they are refused, or stand where nothing can be redacted. `where` [the line] says
        where they are.
        """
        from commonplace.text.gate import SECRET

        mode = self._settings.gate_own_secrets if is_owner else self._settings.gate_secrets
        found = [] if mode == ALLOW else self.rules().find(text, SECRET)
        if not found:
            return []
        known = [each.decode("utf-8", "replace") for each in old]
        found = [each for each in found if not any(text[each.start : each.end] in before for before in known)]
        body_at = _body_at(text)
        for each in found:
            row, rule = text.count("\n", body_at, each.start) + 1, each.rule
            is_header = each.start < body_at
            at = where or ("its title or header" if is_header else f"line {row}")
            if mode == REFUSE or (mode == REDACT and is_header):
                raise SecretRefused(rule.id, rule.why, at)
            done = "redacted" if mode == REDACT else "written all the same"
            shown = f"{place}, {at}" if not is_header else f"a note of {place.partition('/')[0]}, {at}"
            notices.append(f"{shown}: looks like {rule.why} (rule {rule.id}); {done}")
        return found if mode == REDACT else []


def _body_at(text: str) -> int:
    if not text.startswith("---"):
        return 0
    from commonplace.note.frontmatter import split

    return split(text)[1]


def _redact(step: Step, text: str, found: list[GateMatch]) -> None:
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
