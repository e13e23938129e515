"""That the tests beside this one have their homes in a database."""

from pathlib import Path

from memoranda import Draft
from memoranda.engine import open_session
from memoranda.sources.layout import Layout


def test_a_home_is_a_replica_of_a_space(tmp_path: Path) -> None:
    with open_session(tmp_path / "home") as memory:
        memory.write(Draft("text", title="Note"))
    assert Layout(tmp_path / "home").replica.exists()
