"""What connects other programs: the table of clients and the editors of their configuration files,
their hooks, and adapters of frameworks.
"""
