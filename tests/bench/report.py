"""Turns the rows of the benchmark into the table of docs/results/bench.md and into JSON."""

import datetime
import os
import statistics

from commit import commit

HEADER = """# Benchmark

Measured by `tests/bench/run`; how to read it is at the top of that file. Every cell is the median of the rounds, with
the smallest and the largest in brackets. *With* and *without* the daemon were measured in turn; the difference and the
ratio are those of neighbouring measurements, so they need not be those of the medians.

"""


def cpu_model():
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def conditions(rounds, busy):
    now = datetime.datetime.now(datetime.timezone.utc)
    return {"commit": commit(), "date": now.strftime("%Y-%m-%d %H:%M UTC"), "kernel": os.uname().release,
            "machine": os.uname().machine, "cpus": os.cpu_count(), "cpu": cpu_model(), "rounds": rounds,
            "busy before the start, % of one CPU": round(busy, 1)}


def number(value):
    if abs(value) >= 1000 or float(value).is_integer():
        return f"{value:,.0f}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def cell(values, unit="", sign=""):
    if not values:
        return ""
    middle, least, most = (sign * (v > 0) + number(v) for v in (statistics.median(values), min(values), max(values)))
    unit = f" {unit}" if unit else ""
    return f"{middle}{unit}" if least == most else f"{middle}{unit} ({least} to {most})"


def budget_text(row):
    if row.budget is None:
        return ""
    before = {"value": "", "difference": "+", "percent": "+", "least": "at least "}[row.budget_of]
    unit = "%" if row.budget_of == "percent" else row.unit
    return f"{before}{number(row.budget)} {unit}".strip()


def verdict(row):
    if not row.on:
        return row.note
    return {None: "", True: "yes", False: "**no**"}[row.within()]


def line(row):
    compared = row.off or []
    ratios = [on / off for off, on in zip(compared, row.on) if off]
    difference = cell([on - off for off, on in zip(compared, row.on)], row.unit, "+")
    cells = [row.figure, cell(compared, row.unit), cell(row.on, row.unit), difference,
             cell(ratios) if len(ratios) == len(compared) else "", budget_text(row), verdict(row)]
    return "| " + " | ".join(cells) + " |"


def markdown(facts, items):
    """'items': (name, what it is, rows, failure) each."""
    lines = ["| condition | |", "| --- | --- |", *(f"| {name} | {value} |" for name, value in facts.items()), ""]
    for name, text, rows, failure in items:
        lines += [f"## {name}", "", text, ""]
        if failure:
            lines += [failure, ""]
        if rows:
            lines += ["| figure | without | with | with - without | ratio | budget | within |",
                      "| --- | --- | --- | --- | --- | --- | --- |", *map(line, rows), ""]
        lines += [f"{row.figure}: {row.note}.\n" for row in rows if row.note and row.on]
    return HEADER + "\n".join(lines).rstrip() + "\n"


def as_json(facts, items):
    def one(row):
        results = row.results() if row.on else []
        return {"figure": row.figure, "unit": row.unit, "without": row.off, "with": row.on, "budget": row.budget,
                "budget_of": row.budget_of, "within": row.within() if row.on else None,
                "result": statistics.median(results) if results else None,
                "result_unit": "%" if row.budget_of == "percent" else row.unit,
                "result_min": min(results, default=None), "result_max": max(results, default=None), "note": row.note}
    return {"conditions": facts,
            "items": [{"item": name, "text": text, "failure": failure, "rows": [one(row) for row in rows]}
                      for name, text, rows, failure in items]}
