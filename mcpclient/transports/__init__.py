"""Layer 2: what carries frames. Knows bytes, lines and processes; never what a frame says."""
