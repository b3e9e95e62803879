"""Parts of the benchmark `scripts/bench.py`, each a module with one function that adds rows."""
