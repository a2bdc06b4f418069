"""Layer 0, module by module."""
