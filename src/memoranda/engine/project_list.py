"""The list of projects that one caller may use."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from memoranda.engine.session import HomeSession
from memoranda.errors import ProjectNotFound
from memoranda.note.model import ARCHIVE_PROJECT, TRACE_PROJECT
from memoranda.note.names import Looseness
from memoranda.value_object import FrozenValueObject

if TYPE_CHECKING:
    from memoranda.sources.source import Source


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Project(FrozenValueObject):
    """A named collection of notes.

    name: its name, such as `notes`.
    root: its folder, or the file of a graph.
    built_in: whether every home has the project.
    default: whether notes go there, and identifiers mean notes there, if no project is named.
    """

    name: str
    root: Path
    built_in: bool
    default: bool = False


class ProjectList(HomeSession):
    """The verbs that read which projects exist."""

    @property
    def projects(self) -> list[Project]:
        """The projects that the caller may use (see `Memory.projects`)."""
        return [self._project(source) for source in self._usable_sources()]

    @property
    def project_names(self) -> list[str]:
        """The names of the projects that the caller may use.

        The archive is left out. So is the project of session traces while it has no folder.
        """
        return [source.name for source in self._usable_sources()]

    def _usable_sources(self) -> list[Source]:
        """Return the sources of the projects in `project_names`."""
        self.engine.reload_config()
        usable_sources: list[Source] = []
        for name, source in self.engine.sources.items():
            is_missing_trace_folder = name == TRACE_PROJECT and not os.path.isdir(source.root)
            if name == ARCHIVE_PROJECT or is_missing_trace_folder:
                continue
            if self.may_use(name):
                usable_sources.append(source)
        return usable_sources

    def project(self, name: str) -> Project:
        """Return the project with a name.

        name: the name. Case, signs and blanks may differ, if only one project fits.

        Raises ProjectNotFound, even if the project exists and the caller may not use it.
        """
        return self._project(self.source_named(name))

    def source_named(self, name: str) -> Source:
        """Return the source of the project that a caller names.

        A project that the caller may not use does not exist for the caller. No error names it.

        name: the name. Case, signs and blanks may differ, if only one project fits.

        Raises ProjectNotFound.
        """
        try:
            source = self.engine.source(name)
        except ProjectNotFound as error:
            usable_names = list(filter(self.may_use, error.names))
            raise type(error)(name, usable_names) from None
        if not self.may_use(source.name):
            raise ProjectNotFound(name, sorted(project.name for project in self.projects))
        return source

    def project_called(self, name: str, *, looseness: Looseness) -> str | None:
        """Return the exact name of the project that a caller means.

        None if no project fits, or if the caller may not use the one that does.

        looseness: how much the name may differ, as `Engine.project_name` reads it.
        """
        exact_name = self.engine.project_name(name, looseness=looseness)
        if exact_name is None or not self.may_use(exact_name):
            return None
        return exact_name

    def may_use(self, project: str) -> bool:
        """Whether the caller may use the project with this exact name."""
        return self.engine.access_to(project).admits(self.agent)

    def check_project_names(self, names: Iterable[str]) -> None:
        """Raise ProjectNotFound for a name that no project of the home has.

        Projects that this process was told to leave out are projects of the home, too.

        names: the names, in any case.
        """
        project_names = self.engine.index.projects
        names_in_lower_case = {name.lower() for name in project_names}
        for name in names:
            if name.lower() not in names_in_lower_case:
                named_projects = project_names - {ARCHIVE_PROJECT, TRACE_PROJECT}
                raise ProjectNotFound(name, sorted(filter(self.may_use, named_projects)))

    def _project(self, source: Source) -> Project:
        """Return a source as the project that callers get."""
        name = source.name
        return Project(
            name,
            Path(source.root),
            name in self.engine.layout.built_in,
            name == self.default_project,
        )

    @property
    def default_project(self) -> str:
        """The name of the project for notes and identifiers if no project is named.

        It is the project in the settings. If that does not exist, it is `notes`, or else the first
        project.
        """
        self.engine.reload_config()
        sources = self.engine.sources
        project_name = self.engine.project_name(self.engine.settings.default_project) or "notes"
        if project_name in sources:
            return project_name
        return next(iter(sources), project_name)
