"""The work that upkeep does on its own: each job plans actions, one runner applies or only shows
them.
"""
