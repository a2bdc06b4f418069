"""Everything at once: many servers, many callers, and somebody who kills, stops and floods."""
