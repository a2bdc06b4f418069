"""Layer 5: what servers offer. Knows calls; has never heard of processes or restarts."""
