"""Connecting other programs: the table of clients, the editors of their configuration files, their
hooks, and adapters of frameworks.
"""
