"""Shows the open questions of upkeep, and asks which notes to merge."""
