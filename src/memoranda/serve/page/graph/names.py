"""Names the notes and the groups of a graph in plain words.

A label of a drawing is read by everybody who sees the screen. So a title with a secret is masked,
and a title that seems to hold instructions is not repeated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from memoranda.index.rows import NoteInfo
from memoranda.note.model import CATEGORY_PROJECT
from memoranda.serve.page.visit import Visit
from memoranda.serve.page.words.wording import project_name, translated, words

PLANTED = "⚠ looks planted"
"""The label of a note that seems to hold instructions for agents."""


def shown_title(visit: Visit, info: NoteInfo) -> str:
    """Return the title of a note for a label: masked if it has a secret, PLANTED if it is held back."""
    if visit.memory.is_held_back(info):
        return translated(visit.language, PLANTED)
    return visit.memory.rules_for_reading().redacted(info.title)


def group_titles(language: str, names: Collection[str]) -> dict[str, str]:
    """Return the title of each group, by its name: a category, a folder, or the rest of a project.

    names: names of groups as `group_of` makes them: `categories/people`, `notes/people`, `vault`.
    """
    own_titles = {name: _own_title(language, name) for name in names}
    counts = Counter(title.casefold() for title in own_titles.values())
    # The projects with a group for a folder. Their other notes are "elsewhere" in the project.
    divided = {_project_of(name) for name in names if "/" in name}
    titles = {}
    for name, title in own_titles.items():
        project = _project_of(name)
        shown_project = project_name(language, project)
        if project == CATEGORY_PROJECT:
            titles[name] = title
        elif name.lstrip(".") in divided:
            rest = translated(language, "elsewhere in {project}", project=shown_project)
            titles[name] = _sentence(rest)
        elif counts[title.casefold()] > 1:
            titles[name] = translated(
                language, "{folder} in {project}", folder=title, project=shown_project
            )
        else:
            titles[name] = title
    return titles


def project_title(language: str, project: str) -> str:
    """Return the name of a project for people: `Memories`, `Vault`."""
    name = _project_of(project)
    if name == CATEGORY_PROJECT:
        return _sentence(translated(language, "memories"))
    # The tables have names for projects of our own.
    return words(language).get(f"project: {name}") or _sentence(name)


def _own_title(language: str, name: str) -> str:
    """Return the title of a group as if there were no other: `People`, `Other memories`, `Vault`."""
    folder = name.partition("/")[2]
    if _project_of(name) == CATEGORY_PROJECT:
        return _sentence(translated(language, folder or "other memories"))
    if not folder:
        return project_title(language, name)
    # Folders of people and of projects have names of the page, too.
    return translated(language, _sentence(folder))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _project_of(name: str) -> str:
    """Return the project of a group as people read it: `.archive/people` gives `archive`."""
    return name.partition("/")[0].lstrip(".")
