"""The Python half of the Neovim plugin: it runs the servers, so that the editor never waits."""
