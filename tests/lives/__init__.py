"""The lives of a server: when it sleeps, is asked, changed, written down and told of."""
