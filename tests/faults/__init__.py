"""What servers and hosts do wrong, one row for each misdeed; see docs/faults.md."""

# Cases of the field reports, of the kinds shown here, that no test can show yet, and why. Those
# that need Windows are listed in docs/faults.md as untested.
WINDOWS = {
    "B110": "the variables a child needs there are PATHEXT, COMSPEC and the like",
    "B249": "its selector loop cannot start processes",
    "B254": "pipe reads of its proactor loop that never return",
    "B255": "its proactor loop crashes if transports outlive it",
}
HTTP: dict[str, str] = {}
