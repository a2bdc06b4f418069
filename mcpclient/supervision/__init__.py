"""Layer 4: lives of a server, one after the other. Knows neither configuration nor features."""
