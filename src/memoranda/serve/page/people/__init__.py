"""Shows what the memory has about a name: a person, a project, the owner."""
