"""Memories as JSON Lines, out and in (contract 001, 12); moving in from other programs
(docs/moving-in.md); a whole home copied or moved (docs/teams.md).
"""
