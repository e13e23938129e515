"""The work that upkeep does by itself: each job plans actions, one runner applies or only shows
them.
"""
