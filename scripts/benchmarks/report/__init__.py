"""Makes docs/benchmarks.md and its plots, from data.json alone."""
