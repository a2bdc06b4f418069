"""``python -m mcpclient``: the command line."""

from mcpclient.cli import main

if __name__ == "__main__":
    main()
