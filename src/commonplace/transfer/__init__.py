"""Memories as JSON Lines, out and in, and moving in from other programs (contract 001, 12; 002, 11; 004, 7)."""
