"""Asks the owner before a text with a secret is saved by a form of the page (docs/gate.md).

The write gate would save the owner's secrets with a warning, which comes too late for a person. So a
form is refused first, and shown again with the choices that the settings allow: save with the
secret masked, or save as it is. A form says the choice in the field FIELD.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from memoranda.engine import MemorySession
from memoranda.engine.history.verbs import Revision
from memoranda.engine.write_gate import REDACT, REFUSE, WARN
from memoranda.errors import SecretRefused
from memoranda.text.gate import SECRET

FIELD = "secret_choice"
MASK = "mask"
KEEP = "keep"


@dataclass(frozen=True)
class SecretQuestion:
    """A secret that was found in a form, and the possible choices.

    why: what it looks like, in words to translate, such as "a card number".
    rule: the id of the rule that found it.
    line: the line of the text with the secret. 0 if it is in another part.
    part: the other part, in words to translate, such as "its name".
    others: what the further secrets look like, each with its line. The line is 0 in another part.
    """

    why: str
    rule: str
    line: int
    part: str
    may_mask: bool
    may_keep: bool
    others: Sequence[tuple[str, int]] = ()


def mode_for(memory: MemorySession, fields: Mapping[str, str]) -> str | None:
    """Return how the write gate treats the secrets of a form. None means as the settings say.

    fields: the fields of the form.
    """
    if memory.secret_mode != WARN:
        return None
    choice = fields.get(FIELD, "")
    if choice == MASK:
        return REDACT
    # The settings say WARN, which saves the text as it is.
    if choice == KEEP:
        return None
    # Nothing is chosen yet, so the form is refused, and the question is asked.
    return REFUSE


def question_of(
    memory: MemorySession,
    fields: Mapping[str, str],
    refused: SecretRefused,
    *,
    is_maskable: bool | None = None,
) -> SecretQuestion:
    """Return the question about a secret that the gate refused.

    is_maskable: whether the secret can be masked in the part of the form that has it. None means
        yes if that part is the text, and no if it is another one, such as the title.
    """
    may_keep = memory.settings.gate_own_secrets == WARN
    is_in_text = refused.line > 0
    others = refused.others
    if not is_in_text and not fields.get("title"):
        # The title is made from the first line, so that line is all that was typed.
        others = [other for other in others if other != (refused.why, 1)]
    if is_maskable is None:
        is_maskable = is_in_text
    return SecretQuestion(
        why=refused.why,
        rule=refused.rule,
        line=refused.line,
        part="" if is_in_text else refused.where,
        # A form that was refused although it was masked has its secret in another part.
        may_mask=may_keep and is_maskable and fields.get(FIELD) != MASK,
        may_keep=may_keep,
        others=others,
    )


def holds_secret(memory: MemorySession, text: str) -> bool:
    """Whether a text has a secret. It must then not be used in an address, title or message."""
    return bool(memory.gate_rules().find(text, SECRET))


def have_secret(memory: MemorySession, revisions: Sequence[Revision]) -> bool:
    """Whether a text of these revisions has a secret, before or after the change."""
    texts = [text for revision in revisions for text in (revision.before, revision.after)]
    return any(text is not None and holds_secret(memory, text) for text in texts)


def masked_in(memory: MemorySession, revisions: Sequence[Revision]) -> Iterator[str]:
    """Yield descriptions of the secrets that the gate masked in a change, in words to translate."""
    # A merge takes marks from one note to another, so all texts count together.
    before = "\n".join(revision.before or "" for revision in revisions)
    after = "\n".join(revision.after or "" for revision in revisions)
    for rule in memory.gate_rules():
        mark = f"[redacted: {rule.id}]"
        if after.count(mark) > before.count(mark):
            yield rule.why
