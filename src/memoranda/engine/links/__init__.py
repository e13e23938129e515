"""Follows links between notes and keeps them whole when a note moves."""
