"""Build the wheel, install it into a clean environment, import it. Knows packaging, nothing of MCP.

Run by `make test` with the project's own environment. The clean one gets only what the wheel itself
asks for, in the pinned versions, so a dependency that is used but not declared fails here.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PINS = ROOT / "requirements" / "dev.txt"

# Runs in the clean environment, isolated (-I), so neither the checkout nor PYTHONPATH can help.
CHECK = """
import importlib.metadata, importlib.resources, sys
import mcpclient
wanted, home = sys.argv[1:]
installed = importlib.metadata.version("mcpclient")
assert installed == wanted, f"the wheel says {installed}, pyproject.toml says {wanted}"
shown = getattr(mcpclient, "__version__", wanted)
assert shown == wanted, f"mcpclient.__version__ is {shown}, pyproject.toml says {wanted}"
assert mcpclient.__file__.startswith(home), f"imported from {mcpclient.__file__}"
assert (importlib.resources.files("mcpclient") / "py.typed").is_file(), "py.typed is missing"
for name in getattr(mcpclient, "__all__", ()):
    getattr(mcpclient, name)
"""


def run(*argv: str | Path, cwd: Path) -> None:
    """Run a command, silent unless it fails; then show its output and end the program."""
    done = subprocess.run(
        argv, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode != 0:
        print(done.stdout, file=sys.stderr)
        print(f"wheel: failed: {' '.join(str(part) for part in argv[:4])} …", file=sys.stderr)
        sys.exit(1)


def main() -> None:
    """Check the wheel."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        version = tomllib.load(file)["project"]["version"]
    with tempfile.TemporaryDirectory(prefix="mcpclient-wheel-") as place:
        temp = Path(place).resolve()
        build = ("build", "--wheel", "--no-isolation", "--outdir", temp / "dist", ROOT)
        run(sys.executable, "-m", *build, cwd=temp)
        (wheel,) = (temp / "dist").glob("*.whl")
        home = temp / "env"
        venv.create(home, symlinks=True)
        clean = home / "bin" / "python"
        pip = ("pip", "--python", clean, "install", "-qq", "--constraint", PINS, wheel)
        run(sys.executable, "-m", *pip, cwd=temp)
        run(clean, "-I", "-W", "error", "-c", CHECK, version, home, cwd=temp)
        print(f"wheel: {wheel.name} installs and imports in a clean environment")


if __name__ == "__main__":
    main()
