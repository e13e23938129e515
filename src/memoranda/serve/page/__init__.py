"""Shows the memory to a person in a browser, and to programs as JSON below `/api` (docs/page.md).

A view is a function that answers the requests for one address. `routes.py` names the view of each
address, `visit.py` checks a request and runs its view. Most other modules have the views of one
page.
"""
