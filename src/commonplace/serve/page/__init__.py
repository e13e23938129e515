"""The page: a person's view of the memory in the browser, and `/api`, the same as JSON (docs/page.md).

`visit.py` lets a request in and runs a view; `render.py` has templates, words and safe note text. Each
page is a module with views, named in `routes.py`.
"""
