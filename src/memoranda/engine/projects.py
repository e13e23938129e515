"""Adding, removing and configuring projects: folders and graph files (contract 000b, 1; 002, 8).

Projects are stored in config.yaml, so the other keys of that file are set here, too.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from memoranda import config, config_text
from memoranda.config import OWN_FOLDER, Settings, absolute
from memoranda.engine.engine import GRAPH_FILE_SUFFIX, ONLY_SHARED, verb
from memoranda.engine.project_list import Project
from memoranda.engine.reading import ReadVerbs
from memoranda.engine.review import ask
from memoranda.engine.transaction import WritingSession
from memoranda.errors import (
    Exists,
    InvalidInput,
    NotAFolder,
    ProjectOverlaps,
    ProjectRefused,
    StorageError,
)
from memoranda.note.links import check_project_name
from memoranda.note.model import BUILT_IN_PROJECTS
from memoranda.note.names import without_case
from memoranda.note.project_access import EVERYTHING, ProjectAccess, is_agent
from memoranda.sources import path_guard
from memoranda.sources.files import make_private, reason, sync_folder, write_file
from memoranda.sources.layout import changing_shared
from memoranda.sources.path_guard import check_size
from memoranda.text.gate import SECRET, default_rules
from memoranda.text.unicode import flat
from memoranda.text.user_path import user_folder, user_path

# Folders of the operating system, which must not become a project.
_SYSTEM = frozenset(
    (
        "bin",
        "boot",
        "dev",
        "etc",
        "lib",
        "lib32",
        "lib64",
        "libx32",
        "private",
        "proc",
        "run",
        "sbin",
        "snap",
        "sys",
        "usr",
        "var",
        "Applications",
        "Library",
        "System",
    )
)
# Folders of the user's home folder in which programs keep their settings.
_SETTINGS = ("Library", "AppData", "snap")


class ProjectVerbs(ReadVerbs, WritingSession):
    """The verbs that add, remove and configure projects."""

    @verb
    def add_project(
        self,
        name: str,
        folder: str,
        default: bool = False,
        make: bool = True,
        hidden: bool = False,
        access: ProjectAccess = EVERYTHING,
    ) -> tuple[Project, str]:
        """Add a folder or a graph file as a project (see `Memory.add_project`).

        An agent may add a folder in `notes.roots` or in `projects/` of the home. For any other
        folder, the agent can only ask the owner (`review`). Until the owner answers, nothing is
        changed.

        name: the name of the project.
        folder: the path of the folder or file.
        default: whether the project becomes the default project.
        make: whether to create a missing folder.
        hidden: whether the folder may be inside a hidden folder of the user's home folder.
        access: the rights of agents in the project, which only the owner may set.

        Returns the project, and "created", "unchanged" or "asked".
        """
        with self.engine.ledger.lock:
            # Another process may have added a project in between.
            self.engine.reload_config()
            # macOS may spell `é` as two characters.
            name = unicodedata.normalize("NFC", name.strip())
            check_project_name(name)
            existing = self._name_like(name)
            # The rights are checked before a folder is made, so that an error leaves no folder.
            access_keys = {} if access == EVERYTHING else self._access_keys(name, access)
            root = self._root(existing or name, folder)
            _check_length(root, folder)
            if existing is not None:
                self._check_is_in(existing, root)
                if default:
                    self.set_default(existing)
                return self.project(existing), "unchanged"

            # In a database, `_root` has allowed only a folder of the home, which all machines share.
            is_shared = self.settings.url is not None
            if self.agent is not None and not is_shared:
                # Symlinks are resolved now: one could be replaced before the owner answers.
                root = _real(root)
            if self.agent is not None:
                _check_words(name, root, folder)
                if not is_shared and not self._may_add(root, folder):
                    ask(self, name, root, default)
                    return Project(name, root, built_in=False), "asked"

            self._prepare_place(root, folder, default=default, make=make, hidden=hidden)
            changes: dict[str, Any] = {
                f"projects.{name}": f"{OWN_FOLDER}/{name}" if is_shared else str(root)
            }
            if default:
                changes["notes.default_project"] = name
            self._write_config(changes | access_keys)
            return self.project(name), "created"

    def _prepare_place(
        self, root: Path, folder: str, *, default: bool, make: bool, hidden: bool
    ) -> None:
        """Check that a project may be at this place, and create its folder if it is missing.

        root: the place as an absolute path.
        folder: the place as the caller wrote it, for messages.
        default: whether the project should become the default project.
        make: whether a missing folder may be created.
        hidden: whether the place may be inside a hidden folder of the user's home folder.

        Raises the errors of `add_project`.
        """
        if _is_graph_file(root):
            self._check_graph_file(root, folder, default)
        else:
            self._check_folder(root, folder, make, hidden)
            _make_folder(root, folder)

    def _name_like(self, name: str) -> str | None:
        """Return the project's name that differs from `name` at most in case, or None."""
        for project in self.engine.sources:
            if without_case(project) == without_case(name):
                return project
        return None

    def _check_is_in(self, name: str, root: Path) -> None:
        """Raise Exists unless the project `name` is an added project and its folder is `root`."""
        if name in BUILT_IN_PROJECTS or _real(self.engine.sources[name].root) != _real(root):
            # `Exists` says that a note exists, so its message is replaced.
            error = Exists(name)
            error.args = (f"project exists: {name}",)
            raise error

    def _root(self, name: str, folder: str) -> Path:
        """Return the folder of a project as an absolute path. Raises ProjectRefused for other paths.

        If the notes are in a database, only `projects/NAME` of the home is allowed, because other
        folders do not exist on the other machines.
        """
        if self.settings.url is not None:
            own_folder = self.home / OWN_FOLDER / name
            if folder.lower() not in (str(own_folder).lower(), f"{OWN_FOLDER}/{name}".lower()):
                raise ProjectRefused(
                    folder, f"{ONLY_SHARED}, or name {OWN_FOLDER}/{name}, which all machines share"
                )
            return own_folder
        if not folder.startswith(("/", "~")):
            raise ProjectRefused(folder, "it must be absolute or begin with ~")
        if "\0" in folder:
            raise ProjectRefused(folder.replace("\0", "?"), "it holds a NUL character")
        return absolute(folder)

    def _may_add(self, root: Path, shown_path: str) -> bool:
        """Whether an agent may add this folder without asking the owner.

        root: the folder with symlinks resolved.
        shown_path: the folder as the caller wrote it.

        Raises ProjectRefused for a folder that an agent may not even ask for.
        """
        # If the folder is in none that is open to agents, it is only in the whole disk.
        whole_disk = Path("/")
        open_folder = self._open_folder_around(root) or whole_disk
        self._check_may_ask_for(root, open_folder, shown_path)
        self._check_folder(root, shown_path, make=True)
        # A setting that opens the whole disk to agents does not count either.
        return open_folder != whole_disk

    def _open_folder_around(self, root: Path) -> Path | None:
        """Return the first folder open to agents that a folder is in. None if it is in none."""
        open_folders: list[str | Path] = [self.home / OWN_FOLDER, *self.settings.roots]
        for open_folder in open_folders:
            real_folder = _real(open_folder)
            if real_folder in root.parents:
                return real_folder
        return None

    def _check_may_ask_for(self, root: Path, open_folder: Path, shown_path: str) -> None:
        """Raise ProjectRefused for a folder that an agent may not even ask for.

        root: the folder with symlinks resolved.
        open_folder: the folder open to agents that it is in, or the whole disk.
        shown_path: the folder as the caller wrote it.
        """
        # The first part of an absolute path is "/", so the second is a folder of the system.
        if len(root.parts) > 1 and root.parts[1] in _SYSTEM:
            raise ProjectRefused(shown_path, "it belongs to the system")
        # A folder that is open to agents may itself be in a hidden one.
        parts_below = root.relative_to(open_folder).parts
        if any(part.startswith(".") for part in parts_below):
            raise ProjectRefused(shown_path, "a part of it is hidden")
        user = user_folder()
        settings_folders = [user / name for name in _SETTINGS] if user else []
        if any(root.is_relative_to(folder) for folder in settings_folders):
            raise ProjectRefused(shown_path, "programs keep their settings there")
        if _is_graph_file(root):
            raise ProjectRefused(shown_path, "it is a file")

    @verb
    def remove_project(self, name: str) -> Project:
        """Remove a project from the configuration; its files stay (see `Memory.remove_project`)."""
        project = self.project(name)
        settings = self.settings
        if project.built_in:
            raise InvalidInput(f"cannot remove a built-in project: {project.name}")
        if project.name not in settings.projects:
            file = settings.file.name
            raise InvalidInput(
                f"Project {project.name} was given to this process only; it is not in {file}."
            )
        changes: dict[str, Any] = {f"projects.{project.name}": None}
        if project.name in settings.access:
            changes[f"access.{project.name}"] = None
        if project.default:
            changes["notes.default_project"] = None
        self._write_config(changes)
        return project

    @verb
    def set_default(self, name: str) -> Project:
        """Make `name` the default project. Raises ProjectNotFound, ReadOnlyProject."""
        source = self.engine.source(name)
        source.check_writable()
        self._write_config({"notes.default_project": source.name})
        return self.project(source.name)

    @verb
    def access_to(self, name: str) -> ProjectAccess:
        """Return the rights of agents in a project. Raises ProjectNotFound."""
        return self.engine.access_to(self.project(name).name)

    @verb
    def set_access(self, name: str, access: ProjectAccess) -> ProjectAccess:
        """Set the rights of agents in an added project, and return them.

        Only the owner may call this.

        access: which agents may use the project, and what they may do there.

        Raises ProjectNotFound. Raises InvalidInput for a built-in project, if the caller is an
        agent, and for a `write_folder` outside the project.
        """
        project = self.project(name)
        if project.built_in:
            raise InvalidInput(
                f"All agents use the built-in project {project.name}. Add a folder of its own."
            )
        self._write_config(self._access_keys(project.name, access))
        return self.engine.access_to(project.name)

    def _access_keys(self, name: str, access: ProjectAccess) -> dict[str, Any]:
        """Return the configuration keys that store what agents may do in a project.

        For example: `{"access.work": {"read_only": True}}`. If the rights are those without a
        setting, the value is None, which removes the key.

        name: the name of the project.
        access: the rights.

        Raises InvalidInput for an agent as the caller, and for a name that no agent can have.
        """
        if self.agent is not None:
            raise InvalidInput("Only the owner says what agents may do in a project.")
        unknown = [agent for agent in access.agents if not is_agent(agent)]
        if unknown:
            raise InvalidInput(f'"{unknown[0]}" cannot be the name of an agent.')
        keys = {
            "read_only": access.is_read_only,
            "agents": [agent.lower() for agent in access.agents],
            "write_folder": path_guard.clean(access.write_folder.strip("/"), name),
            "ignore": list(access.ignore),
        }
        keys_set = {key: value for key, value in keys.items() if value}
        return {f"access.{name}": keys_set or None}

    def _check_graph_file(self, file: Path, shown_path: str, is_default: bool) -> None:
        """Raise an error if a file cannot be a project.

        file: the file as an absolute path.
        shown_path: the file as the caller wrote it.
        is_default: whether the project should become the default project.

        Raises ProjectRefused, ProjectOverlaps, StorageError, and NotAGraphFile for a file of
        another format.
        """
        from memoranda.sources.graph_file import GraphFileSource

        if _real(self.engine.layout.private) in _real(file).parents:
            raise ProjectRefused(shown_path, "it lies in the memory home")
        if is_default:
            raise ProjectRefused(
                shown_path, "notes cannot be written to a graph file, so it cannot be the default"
            )
        for name, source in self.engine.sources.items():
            if _real(source.root) == _real(file):
                raise ProjectOverlaps(shown_path, name)
        GraphFileSource(file.stem, file).list()

    def _check_folder(self, root: Path, shown_path: str, make: bool, hidden: bool = False) -> None:
        """Raise ProjectRefused, NotAFolder or ProjectOverlaps if a folder cannot be a project.

        root: the folder as an absolute path.
        shown_path: the folder as the caller wrote it, for the error.
        make: whether a missing folder may be created.
        hidden: whether the place may be inside a hidden folder of the user's home folder.
        """
        real = _real(root)
        why = self._refusal(real, hidden)
        if why:
            raise ProjectRefused(shown_path, why)
        may_be_made = make and not real.exists()
        if not real.is_dir() and not may_be_made:
            raise NotAFolder(shown_path)
        for name, source in self.engine.sources.items():
            # A graph file is a project without a folder.
            if source.holds_entities:
                continue
            other_root = _real(source.root)
            is_inside_other = real.is_relative_to(other_root)
            contains_other = real in other_root.parents
            if is_inside_other or contains_other:
                raise ProjectOverlaps(shown_path, name)

    def _refusal(self, real: Path, hidden: bool) -> str:
        """Return why a project may not be at this place, whatever is there. "" if it may.

        real: the place with symlinks resolved.
        hidden: whether the place may be inside a hidden folder of the user's home folder.
        """
        user_home = user_folder()
        user = _real(user_home) if user_home else None
        # The home of the memory, which has a folder for projects of its own.
        home = _real(self.engine.layout.root)
        is_inside_home = real.is_relative_to(home)
        is_own_project = home / OWN_FOLDER in real.parents

        if real == Path("/"):
            return "it is the whole file system"
        if real == user:
            return "it is your home folder"
        # `storage.state` may put the private folder outside of the home.
        private = _real(self.engine.layout.private)
        if real.is_relative_to(private):
            return "it lies in the memory home"
        if is_inside_home and not is_own_project:
            return "it lies in the memory home"
        if real in home.parents:
            return "the memory home lies in it"
        # The home itself is hidden, as `~/.memory`.
        may_be_hidden = hidden or is_inside_home
        if not may_be_hidden and _is_hidden_below(real, user):
            return "it is hidden below your home folder"
        return ""

    def _write_config(self, changes: dict[str, Any]) -> None:
        """Change these keys of config.yaml under the lock, and apply the new settings."""
        engine = self.engine
        self._replace_config(lambda: config_text.change(engine.settings.file, changes))
        if "notes.default_project" in changes:
            default = changes["notes.default_project"] or Settings.default_project
            engine.settings = replace(engine.settings, default_project=default)
        engine.reload_config()

    @verb
    def configure(self, key: str, value: Any) -> None:
        """Set a key of config.yaml (see `Memory.configure`). Raises InvalidInput for an agent."""
        if self.agent is not None:
            raise InvalidInput(
                "only the owner changes the configuration; run this without an agent's name"
            )
        config.key_named(key)
        path = self.engine.settings.file
        self._replace_config(lambda: config.with_key(path, key, value))
        self.engine.reload_config()

    def _replace_config(self, new: Callable[[], str]) -> None:
        """Replace config.yaml durably with the text that `new` returns. Raises StorageError.

        `new` is called under the lock, so that no other process changes the file meanwhile.
        """
        path = self.engine.settings.file
        with self.engine.ledger.lock, changing_shared(self.engine.layout.root, path):
            data = new().encode()
            # If config.yaml is a link, the file that it leads to is replaced, not the link.
            real = _real(path)
            temp = real.with_name(f".{real.name}-{os.getpid()}")
            try:
                make_private(path.parent)
                # A process with the same id may have died while it wrote.
                temp.unlink(missing_ok=True)
                mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
                write_file(str(temp), data, mode=mode)
                os.replace(temp, real)
                sync_folder(real.parent)
            except OSError as error:
                temp.unlink(missing_ok=True)
                raise StorageError(path.name, reason(error)) from None


def _real(path: str | Path) -> Path:
    """Return a path as an absolute path with symlinks resolved."""
    return Path(os.path.realpath(user_path(path)))


def _is_hidden_below(path: Path, folder: Path | None) -> bool:
    """Whether a path is inside a folder, and a part of it below that folder begins with a dot.

    folder: the folder. If it is None, the result is False.
    """
    if folder is None or folder not in path.parents:
        return False
    return any(part.startswith(".") for part in path.relative_to(folder).parts)


def _check_words(name: str, root: Path, shown_path: str) -> None:
    """Check the name and the folder of a project that an agent wants. Other agents are told both.

    name: the name of the project.
    root: the folder as an absolute path.
    shown_path: the folder as the caller wrote it.

    Raises ProjectRefused if they seem to contain a secret or an instruction. Raises it for invisible
    characters, too, because the owner would see another path.
    """
    words = f"{name} {root}"
    # `flat` writes an invisible character as an escape, so a text without one stays as it is.
    if flat(words) != words:
        raise ProjectRefused(flat(shown_path), "the path has characters that cannot be seen")
    rules = default_rules()
    # As a path, `https://user:password@host` has one slash, and does not look like an address.
    # So the path as the caller wrote it is looked through, too.
    if rules.find(f"{words} {shown_path}", SECRET):
        raise ProjectRefused(shown_path, "its name or path seems to hold a secret")
    # The words of an instruction may begin in the name and go on in the path.
    if rules.name_suspicions(f"{name}/{root}"):
        raise ProjectRefused(shown_path, "its name or path may be an instruction")


def _check_length(root: Path, folder: str) -> None:
    """Raise ProjectRefused for a path that is too long.

    folder: the path as the caller wrote it.
    """
    try:
        check_size(str(root))
    except InvalidInput as too_long:
        raise ProjectRefused(f"{folder[:80]}…", str(too_long).rstrip(".")) from None


def _is_graph_file(root: Path) -> bool:
    """Whether the file at `root` is a graph file, by its name or its content (contract 002, 8)."""
    from memoranda.sources.graph_lines import holds_graph

    try:
        return root.is_file() and (root.suffix == GRAPH_FILE_SUFFIX or holds_graph(root))
    except OSError:
        return False


def _make_folder(root: Path, shown_path: str) -> None:
    """Make a project's folder if it is missing. Raises ProjectRefused.

    shown_path: the folder as the caller wrote it, for the error.
    """
    if root.is_dir():
        return
    try:
        make_private(root)
    except OSError as error:
        raise ProjectRefused(shown_path, reason(error)) from None
