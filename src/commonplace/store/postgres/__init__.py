"""Notes in PostgreSQL: the truth in its rows, and on each machine a replica folder that is a home like any other.

`database.py` has the connection and all SQL but the migrations, `home.py` the lock, the commit and the catching up,
`replica.py` the folder, `history.py` the journal, `access.py` the counts of reads. Needs the extra `postgres`.
"""
