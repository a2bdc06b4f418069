"""Install the programs that tests drive, where this may be done. Knows Debian's packages only.

    python3 scripts/setup_programs.py

A program that is there already is left alone, wherever it comes from. Without root or apt-get
nothing is installed: the tests that need a program then skip and say which. Standard library only.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

# By the program looked for: the package that has it, and what it is for.
PROGRAMS = {
    "nvim": ("neovim", "the editor plugin"),
    "nginx": ("nginx-light", "servers behind a proxy"),
    "tmux": ("tmux", "live tables in a real terminal"),
    "Xvfb": ("xvfb", "the Tk example"),
    "zsh": ("zsh", "completion in zsh"),
    "fish": ("fish", "completion in fish"),
}
SECONDS = 240.0


def missing() -> list[str]:
    """Return the programs that are not on PATH; Debian keeps servers in sbin."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"])
    return [name for name in PROGRAMS if shutil.which(name, path=path) is None]


def run(*argv: str) -> bool:
    """Run a command, silent unless it fails; return whether it did its work."""
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    try:
        done = subprocess.run(
            argv,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        print(f"programs: {argv[0]}: {problem}")
        return False
    if done.returncode != 0:
        print(f"programs: {' '.join(argv[:2])} ended with {done.returncode}")
        print("\n".join(done.stdout.strip().splitlines()[-5:]))
    return done.returncode == 0


def main() -> int:
    """Install what is missing, if that is possible; return 0 in any case."""
    lacking = missing()
    if not lacking:
        return 0
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        for name in lacking:
            package, purpose = PROGRAMS[name]
            print(f"programs: no {name} ({package}), so tests of {purpose} will skip")
        return 0
    packages = [PROGRAMS[name][0] for name in lacking]
    print(f"programs: installing {', '.join(packages)}", flush=True)
    install = ("apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages)
    # Its lists may be old, or there may be none at all yet.
    if not run("apt-get", "update", "-qq") or not run(*install):
        print("programs: the tests that need what could not be installed will skip")
    return 0


if __name__ == "__main__":
    sys.exit(main())
