"""Which projects there are, for one caller."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from memoranda.engine.session import HomeSession
from memoranda.errors import ProjectNotFound
from memoranda.note.model import ARCHIVE_PROJECT, TRACE_PROJECT
from memoranda.value_object import FrozenValueObject

if TYPE_CHECKING:
    from memoranda.sources.source import Source


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Project(FrozenValueObject):
    """A named collection of notes in the folder `root`."""

    name: str
    root: Path
    built_in: bool
    default: bool = False


class ProjectList(HomeSession):
    """The verbs that read which projects there are."""

    @property
    def projects(self) -> list[Project]:
        """See `Memory.projects`."""
        self.engine.reload_config()
        return [
            self._project(source)
            for name, source in self.engine.sources.items()
            if name != ARCHIVE_PROJECT
            and (name != TRACE_PROJECT or Path(source.root).is_dir())
            and self.engine.access_to(name).admits(self.agent)
        ]

    def project(self, name: str) -> Project:
        """The project of that name, compared without case. Raises ProjectNotFound."""
        source = self.engine.source(name)
        if not self.engine.access_to(source.name).admits(self.agent):
            raise ProjectNotFound(name, [project.name for project in self.projects])
        return self._project(source)

    def _project(self, source: Source) -> Project:
        name = source.name
        return Project(
            name,
            Path(source.root),
            name in self.engine.layout.built_in,
            name == self.default_project,
        )

    @property
    def default_project(self) -> str:
        """Where notes go and identifiers are looked up when no project is named; `notes` when it is
        not there, else the first project."""
        self.engine.reload_config()
        sources = self.engine.sources
        project_name = self.engine.project_name(self.engine.settings.default_project) or "notes"
        if project_name in sources:
            return project_name
        return next(iter(sources), project_name)
