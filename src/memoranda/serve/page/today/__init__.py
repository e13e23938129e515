"""Shows Today: what agents and people changed, by day and session."""
