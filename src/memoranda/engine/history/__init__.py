"""Looks back: what the ledger has of a note, undoing, restoring and erasing."""
