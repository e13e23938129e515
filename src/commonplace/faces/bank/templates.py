"""What a new bank holds, and what `activate` tells about keeping one: the data files (contract 003, 3 and 4)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from string import Template
from typing import Any

from commonplace.faces.bank.names import title_of
from commonplace.faces.bank.repository import Repository
from commonplace.faces.texts import text_file


@cache
def data(name: str) -> dict[str, Any]:
    """A data file of this face."""
    return tomllib.loads(text_file(f"bank-{name}.toml"))


def files(kind: str) -> list[str]:
    """The template files of a kind of bank, in their order."""
    return [each["file"] for each in data("templates")[kind]]


def in_order(kind: str, paths: Sequence[str]) -> list[str]:
    """Files of a bank as they are shown: those of the template first, then the others, sorted."""
    first = [path for path in files(kind) if path in paths]
    return first + sorted(path for path in paths if path not in first)


def texts(kind: str, name: str, description: str = "") -> dict[str, str]:
    """The files of a new bank with their texts. A project's `description` is the sentence of its overview."""
    if kind != "project":
        description = ""
    return {each["file"]: _text(each, name, description) for each in data("templates")[kind]}


def _text(template: Mapping[str, Any], name: str, description: str) -> str:
    """`# <title>`, then each section. The bank's own file is the one without a title."""
    title = template["title"] or name
    parts = [f"# {title}\n"]
    for at, (section, sentence) in enumerate(template["sections"]):
        is_overview = not template["title"] and at == 0
        parts.append(f"\n## {section}\n{description if is_overview and description else sentence}\n")
    return "".join(parts) if template["sections"] else parts[0] + "\n"


def missing(kind: str, path: str, name: str, description: str) -> str:
    """What an insert into the missing file `path` begins with: its template, else a title."""
    stem = path.rpartition("/")[2].removesuffix(".md")
    return texts(kind, name, description).get(path) or f"# {title_of(stem)}\n"


def instructions(kind: str, id: str, name: str, repository: Repository | None) -> dict[str, Any]:
    """The reply's `custom_instructions`."""
    told = data("instructions")
    values = {
        "type": kind,
        "id": id,
        "name": name,
        "rules": told["rules"][kind].strip(),
        "git": _standing(repository),
    }
    prompts = {"memory_bank_automation": "automation", f"{kind}_default": kind}
    return {
        "directives": [*told["directives"]["all"], *told["directives"].get(kind, [])],
        "prompts": [{"id": key, "text": _filled(told["prompts"][of], values)} for key, of in prompts.items()],
        "examples": {"trigger_patterns": told["trigger_patterns"], "verification": told["verification"]},
    }


def _filled(prompt: str, values: Mapping[str, str]) -> str:
    return Template(prompt).substitute(values).strip()


def _standing(repository: Repository | None) -> str:
    """The line on branch or commit, with an empty line around it; "" when neither is known."""
    prompts = data("instructions")["prompts"]
    if repository is not None and repository.branch:
        return "\n" + Template(prompts["branch"]).substitute(branch=repository.branch) + "\n"
    if repository is not None and repository.commit:
        return "\n" + Template(prompts["detached"]).substitute(commit=repository.commit) + "\n"
    return ""
