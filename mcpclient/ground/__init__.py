"""Layer 0: words every other layer may use. Knows no protocol, no process and no event loop."""
