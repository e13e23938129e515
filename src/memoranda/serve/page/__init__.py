"""The page: a person's view of the memory in the browser, and `/api`, the same as JSON
(docs/page.md).

`visit.py` lets a request in, runs a view and makes the answer. Each other module has views, named
in `routes.py`.
"""
