"""Notes in PostgreSQL. The rows are the truth; each machine has a replica folder that is a normal
home.

A space is the memory of one team, or of one person, in a database. Its rows are in a partition of
each table. `space_database.py` has most SQL, `space_rows.py` the SQL of steps and the reading of a
whole state. `replica_ledger.py` has the locks, the commit and the fetching of changes. `replica.py`
has the folder, its history, the counts of reads, and the files that all replicas share. Needs the
extra `postgres`.
"""
