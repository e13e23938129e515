"""Decides what sessions are told, and in which manner."""
