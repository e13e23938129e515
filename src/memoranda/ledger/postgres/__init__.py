"""Notes in PostgreSQL. The rows are the truth; each machine has a replica folder that is a normal
home.

`space_database.py` holds all SQL except the migrations, the SQL of steps, and the reading of a
whole state (`space_rows.py`). `replica_ledger.py` has the locks, the commit and the catching up.
`replica.py` has the folder, its journal, the counts of reads, and the files that all replicas
share. Needs the extra `postgres`.
"""
