"""docs/benchmarks.md and its plots: everything in them comes from data.json."""
