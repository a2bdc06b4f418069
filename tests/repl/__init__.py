"""Tests of exploring servers: the objects, the prompts, a notebook."""
