"""Shows one note, and changes it: its text, properties, facts and history."""
