"""Layer 1: the conversation as pure values. Never waits, never reads, never writes."""
