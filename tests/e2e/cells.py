"""Long tables of what is judged cell by cell; tests/jvm/run and tests/zoo/run are made of it.

A cell is run by itself, and its line in the table says at which commit: a table may be made in parts. What was never
run says so.
"""

import pathlib
import re
import subprocess
import time

import apps
import harness
from commit import commit

NUMBERS = 3  # right, wrong, absent


def check(folder, name, function, keep):
    """function(run) judged: prints a line; returns whether it passed, and how many were right, wrong, absent.

    function returns the judge's text or raises what harness and apps raise. The files of a cell that failed are kept.
    """
    begin = time.monotonic()
    run = harness.Run(folder, has_witness=True)
    try:
        with run:
            text, passed = function(run), True
    except (harness.Failure, harness.Skip, apps.BuildFailed, OSError, ValueError, subprocess.SubprocessError) as error:
        text, passed = f"{error} [{run.losses_text()}] [files: {run.directory}]", False
    if passed and not keep:
        run.remove()
    print(f"{'PASS' if passed else 'FAIL'} {name} {time.monotonic() - begin:.1f} s: {text}", flush=True)
    found = re.search(r"(\d+) right, (\d+) wrong, (\d+) absent, (\d+) missing", text)
    right, wrong, absent, missing = (int(n) for n in found.groups()) if found else (0, 0, 0, 0)
    return passed, (right, wrong, absent + missing)


class Table:
    """A Markdown file: 'head', then a line for each key, which is a tuple of the texts of its first columns."""

    def __init__(self, path, head, keys):
        self.path, self.head = pathlib.Path(path), head
        self.lines = dict.fromkeys(keys)
        columns = len(next(iter(self.lines)))
        for text in self.path.read_text().splitlines() if self.path.exists() else ():
            key = tuple(text.strip("| ").split(" | ")[:columns])
            if key in self.lines:
                self.lines[key] = text

    def put(self, key, numbers, *rest):
        """What a cell came to, at this commit; the file is written at once."""
        cells = [*key, *(f"{n:,}" for n in numbers), *rest, commit()]
        self.lines[key] = f"| {' | '.join(cells)} |"
        never = " |" * (NUMBERS + len(rest)) + " not run |"
        lines = [line or f"| {' | '.join(key)} |{never}" for key, line in self.lines.items()]
        self.path.write_text(self.head + "\n".join(lines) + "\n")
