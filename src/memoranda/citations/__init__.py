"""Whether the code that notes cite is still what it was (docs/citations.md).

`code` looks into folders and their git histories, `check` says it of notes.
"""
