"""The protocol's official conformance suite, run against this client and the kit's server."""
