"""Keep notes in PostgreSQL. Its rows decide; each machine has a copy of them as a normal home.

A *space* is the memory of one team, or of one person, in a database. Its rows are in a partition of
each table. A *replica* is the folder with the copy on one machine.

`space_database.py` has most SQL, `space_rows.py` the SQL of steps and the reading of a whole state.
`replica_ledger.py` has the locks, the commit and the fetching of changes. `replica.py` has the
folder, its history, the counts of reads, and the files that all replicas share. This package needs
the extra `postgres`.
"""
