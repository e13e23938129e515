"""Reads transcripts: the records of sessions that other programs write (docs/transcripts.md).

Transcripts are not notes, and are read where they are. `places` finds their files, `formats` reads
them, `sync` keeps an index of them, and `search` searches the index. `lessons` finds corrections,
decisions and failed commands in them, and `recall` tells a hook which of these matter to a tool
call.
"""
