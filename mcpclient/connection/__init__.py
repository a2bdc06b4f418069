"""Layer 3: a session on a transport. Knows calls in flight; has never heard of a restart."""
