"""Layer 6: named servers, where supervision and features meet."""
