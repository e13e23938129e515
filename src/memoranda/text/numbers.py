"""The range of the numbers that callers may send."""

LARGEST = 10**15
"""The largest number that a caller may send, such as a limit. SQLite takes no much larger one, and
no list is as long.
"""
