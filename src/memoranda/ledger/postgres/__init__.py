"""Notes in PostgreSQL: the truth in its rows, and on each machine a replica folder that is a home
like any other.

`space_database.py` says all SQL but that of the migrations, of steps and of reading a whole state
(`space_rows.py`); `replica_ledger.py` has the locks, the commit and the catching up, `replica.py` the
folder, its journal, the counts of reads and the files that all replicas share. Needs the extra
`postgres`.
"""
