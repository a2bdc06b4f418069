"""The benchmark: `python bench/run.py`. What each figure means is told in README.md."""
