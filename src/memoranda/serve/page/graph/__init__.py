"""Shows notes and their links as a graph."""
