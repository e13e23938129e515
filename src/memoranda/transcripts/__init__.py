"""Records that other programs keep of their sessions, read in place (docs/transcripts.md).

Nothing here is a note. `places` knows where transcripts are, `formats` how to read them, `sync`
keeps an index of them, `search` searches it, `lessons` finds by rule what they teach, and `recall`
what a hook tells before a tool runs.
"""
