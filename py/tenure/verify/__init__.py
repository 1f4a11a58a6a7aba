"""The stale-worker test for anyone's database: matrices of plain SQL, run cell by cell."""
