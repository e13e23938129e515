"""Pure text functions shared by notes and index."""
