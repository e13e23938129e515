"""What other programs wrote down of their sessions, read in place (docs/transcripts.md).

Nothing here is a note. `places` knows where transcripts are, `formats` how to read them, `sync`
keeps an index of them, `search` finds in it, `lessons` says by rule what they teach, and `recall`
what a hook tells before a tool runs.
"""
