"""Layer 1, module by module: pure, so nothing here waits or starts anything."""

from __future__ import annotations

from hypothesis import settings

# The same examples at each run, and few: a failure must not come and go.
quick = settings(derandomize=True, deadline=None, max_examples=150)
