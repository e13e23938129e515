"""An address that leads out of its project is refused with that project's name, through whatever
door it comes.
"""

from __future__ import annotations

import pytest

from memoranda import faces
from memoranda.errors import OutsideError


def test_a_resource_outside_is_refused_with_the_name_of_its_project(memory) -> None:
    [template] = faces.registry(["notes"], memory.settings).templates
    with pytest.raises(OutsideError, match=r'inside project kv: "\.\./x"'):
        template.read(memory, {"project": "kv", "path": "../x"})


def test_an_identifier_outside_is_refused_with_the_name_of_the_default_project(memory) -> None:
    with pytest.raises(OutsideError, match=r'inside project notes: "\.\./x"'):
        memory.find("../x")


def test_so_is_a_path_whose_history_is_asked_for(memory) -> None:
    with pytest.raises(OutsideError, match=r'inside project notes: "\.\./\.\./x"'):
        memory.log("../../x")
