"""Layer 7, the floor of the faces: one thread, one loop, one manager, and the way to them."""
