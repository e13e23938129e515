"""The texts that say which memory an id means are in the database. See conftest.py."""

from engine.test_names_that_reach import (  # noqa: F401
    test_an_id_that_only_begins_like_that_of_a_memory_reaches_nothing,
    test_digits_that_two_deleted_memories_share_are_refused_and_a_whole_id_is_not,
)
