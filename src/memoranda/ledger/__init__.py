"""The writer: every change of a note goes through here and is recorded in `ledger.db`."""
