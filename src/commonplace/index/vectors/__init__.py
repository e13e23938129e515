"""Searching by meaning: passages as vectors, and the cosine between them and a question (docs/semantic.md).

Needs numpy, which only this package imports. What can be asked of it without numpy is in `model`.
"""
