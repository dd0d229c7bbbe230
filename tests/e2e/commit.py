"""Which state of the sources a table of results is of."""

import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def git(*arguments):
    return subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True, check=False).stdout.strip()


def commit():
    """Short name of the commit; "-dirty" if anything but tables of results is changed."""
    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs/results")
    name = git("rev-parse", "--short=12", "HEAD") or "not committed"
    return name + ("-dirty" if changed else "")
