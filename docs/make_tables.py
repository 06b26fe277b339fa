"""Write the tables of the benchmarks into the pages that show them: `python docs/make_tables.py`.

The figures are those of `make bench`, or of its parts that were run again since.
"""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
METHODS = {
    "frozen": "frozen",
    "LDA, shrunk": "LDA, shrunk",
    "LDA, cosine": "the same, by cosine",
    "contrastive adapter": "linear adapter, contrastive loss",
    "EmbeddingAdapter": "**EmbeddingAdapter**",
}
MEASURES = ("P@1", "P@10", "MAP")
LOSSES = {
    "Frobenius": "Frobenius",
    "SDPFrobenius": "SDP + Frobenius",
    "SDPLogDet": "SDP + log det",
    "VonNeumann": "von Neumann",
}
BENCH = HERE / "results" / "bench" / "run.json"
LATER = BENCH.with_name("later.json")  # parts run again since, if any
SECOND_SEED = BENCH.with_name("accuracy-seed-1.json")
EARLIER_DEFAULT = BENCH.with_name("earlier-default.json")
OURS = "mahalo"  # the last column of `accuracy`
SHOWN = {
    "search": "nearest_neighbors.md",
    "pairs": "pairs.md",
    "suspects": "explaining.md",
    "accuracy": "choosing.md",
    "choosing": "spaces.md",
}
"""Benchmarks whose first table is shown as it is, and where."""


def main() -> None:
    for path, text in (pages() | {HERE / "scale.md": scale_page()} | bench_pages()).items():
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(HERE.parent))


def pages() -> dict[Path, str]:
    """Pages with figures of adapted embeddings: README and home page have the same table, `embeddings` a longer one.
    README has the mean error over tables as well."""
    numbers = read_numbers("adapting")
    short = headline(numbers["retrieval"], numbers["draws"])
    readme = HERE.parent / "README.md"
    tables = {
        HERE / "embeddings.md": full_table(numbers["retrieval"], numbers["draws"]),
        HERE / "index.md": short,
        readme: short,
    }
    found = {path: _replaced(path.read_text(encoding="utf-8"), table) for path, table in tables.items()}
    found[readme] = _replaced(found[readme], accuracy_headline(read_numbers("accuracy")), "accuracy")
    return found


def read_numbers(name: str, *paths: Path) -> dict:
    """Of one benchmark, as `read_reports` finds it.

    `adapting` has `retrieval`: labels an intent → method → measure → mean over draws, and `draws`: how many of them.
    """
    return read_reports(*paths)[name]["numbers"]


def read_reports(*paths: Path) -> dict[str, dict]:
    """Every benchmark of some runs, by name, the last one of each; by default of the whole run and of later parts."""
    reports = {}
    for path in paths or (BENCH, *([LATER] if LATER.exists() else [])):
        found = {report["name"]: report for report in json.loads(path.read_text(encoding="utf-8"))["benchmarks"]}
        broken = [name for name, report in found.items() if not report["tables"]]
        if broken:
            raise ValueError(f"{path.name} has no tables of {', '.join(broken)}: run `python -m benchmarks` again")
        reports |= found
    return reports


def bench_pages() -> dict[Path, str]:
    """Pages that show a table of `make bench`."""
    pages = {}
    reports = read_reports()
    missing = [name for name in (*SHOWN, "logdet", "algorithm1", "losses") if name not in reports]
    if missing:
        raise ValueError(f"{BENCH.name} is without {', '.join(missing)}: run `make bench` to its end")
    for report in reports.values():
        if report["name"] in SHOWN:
            path = HERE / SHOWN[report["name"]]
            pages[path] = _replaced(path.read_text(encoding="utf-8"), _table(report["tables"][0]), report["name"])
    for path, table, mark in (
        (HERE / "choosing.md", accuracy_notes(reports["accuracy"]["numbers"]), "accuracy-notes"),
        (HERE / "comparison.md", speed_table(reports), "bench"),
        (BENCH.with_name("README.md"), verdicts(reports), "verdicts"),
        (HERE / "losses.md", loss_costs(reports["losses"]), "loss-costs"),
        (HERE / "losses.md", loss_peers(reports["losses"]), "loss-peers"),
    ):
        pages[path] = _replaced(pages.get(path) or path.read_text(encoding="utf-8"), table, mark)
    return pages


def accuracy_headline(numbers: dict) -> str:
    """Mean error and mean rank of 10-NN over the tables."""
    methods = [method for method in numbers["mean_error"] if method != "inverse covariance"]
    shown = [f"**{method}**" if method == OURS else method for method in methods]
    lines = [_row(f"10-NN over {len(numbers['errors'])} tables", *shown), _row(*["---"] * (1 + len(methods)))]
    lines.append(_row("mean error", *(_short(numbers["mean_error"][method]) for method in methods)))
    lines.append(_row("mean rank", *(f"{numbers['mean_rank'][method]:.2f}" for method in methods)))
    return "\n".join([*lines, f"\nmahalo is {_learner(numbers)}."])


def accuracy_notes(numbers: dict) -> str:
    """Return what the table of accuracy says: what was run, who is ahead, which spaces were chosen, and the means on a
    second draw of the splits."""
    mean, errors = numbers["mean_error"], numbers["errors"]
    ahead = [table for table, found in errors.items() if np.mean(found["LDA"]) < np.mean(found[OURS])]
    notes = [
        f"The last column is {_learner(numbers)}.",
        f"{min(mean, key=mean.__getitem__)} has the smallest mean error here.",
        f"LDA is ahead of mahalo on {len(ahead)} of {len(errors)} tables{': ' * bool(ahead)}{', '.join(ahead)}.",
    ]
    if "spaces" in numbers:
        notes.append(
            f"Spaces that were chosen: {'; '.join(_spaces_of(*entry) for entry in numbers['spaces'].items())}."
        )
    again = read_numbers("accuracy", SECOND_SEED)
    means = (f"{m} {_short(again['mean_error'][m])} ({again['mean_rank'][m]:.2f})" for m in again["mean_error"])
    notes.append(f"On splits drawn anew (`--seed 1`), mahalo being {_learner(again)}, mean errors, and mean ranks in")
    notes.append(f"brackets: {', '.join(means)}.")
    return textwrap.fill(" ".join(notes), 130, break_long_words=False, break_on_hyphens=False)


def _spaces_of(table: str, counts: dict[str, int]) -> str:
    often = sorted(counts, key=counts.__getitem__, reverse=True)
    return f"{table} {', '.join(f'{space} ({counts[space]} ×)' for space in often)}"


def _learner(numbers: dict) -> str:
    """The learner behind the last column; records of before it was noted are of the earlier default."""
    if "learner" in numbers:
        return f"`{numbers['learner']}`"
    return f"an earlier default, `{json.loads(EARLIER_DEFAULT.read_text(encoding='utf-8'))['learner']}`"


def speed_table(reports: dict[str, dict]) -> str:
    """What `logdet` and `algorithm1` measured beside the peer."""
    fits, projections = reports["logdet"], reports["algorithm1"]
    digits, *simulated = (f"{row[1]} features, {row[2]:,} pairs" for row in fits["tables"][0]["rows"])
    of_digits, *of_simulated = _checks(fits, "metric-learn's fit")
    (path,) = _checks(fits, "γ path")
    widths = ", ".join(str(row[0]) for row in projections["tables"][0]["rows"])
    lines = [
        ("LogDet, the same pairs and bounds, γ = 1, to a relative gap of 1e-6", "beside metric-learn's ITML"),
        ("---", "---"),
        (f"a fit to digits: {digits}", f"**{_times(of_digits)}** faster"),
        ("21 values of γ on digits, each to 1e-6", f"**{_short(path['value'])}** of the time of one such fit"),
        *(
            (f"a fit to simulated classes: {size}", f"**{_times(check)}** faster")
            for size, check in zip(simulated, of_simulated, strict=True)
        ),
        (
            f"one projection of Algorithm 1 at {widths} features",
            f"**{', '.join(_times(check) for check in _checks(projections, 'per projection'))}** faster",
        ),
    ]
    return "\n".join(_row(*line) for line in lines)


def loss_costs(report: dict) -> str:
    """Time of a fit on features under every loss, in units of LogDet's by Newton on the same constraints."""
    seconds: dict[str, dict[str, float]] = {}
    for loss, kind, _, fit, *_ in report["tables"][0]["rows"]:
        seconds.setdefault(loss, {})[kind] = fit
    (first, base), kinds = next(iter(seconds.items())), list(next(iter(seconds.values())))
    lines = [_row("", *kinds), _row(*["---"] * (1 + len(kinds)))]
    for loss, own in seconds.items():
        cells = ("1" if loss == first else f"{own[kind] / base[kind]:.1f}" for kind in kinds)
        lines.append(_row(loss.removesuffix(" (default)"), *cells))
    return "\n".join(lines)


def loss_peers(report: dict) -> str:
    """How many times faster than cvxpy's solvers, by loss and by size of the problem."""
    sizes = {row[0].partition(", ")[2]: row[1] for row in report["tables"][2]["rows"]}
    found: dict[str, list[str]] = {}
    solvers: dict[tuple[str, str], None] = {}
    for check in _checks(report, "times faster"):
        problem, _, solver = check["name"].partition(": times faster than ")
        loss, _, size = problem.partition(", ")
        solvers[size, solver] = None
        found.setdefault(loss, []).append(f"{'> ' if check['is_bound'] else ''}{int(check['value'])}")
    head = [f"{size.removeprefix('d = ')} features, {sizes[size]} pairs: {solver}" for size, solver in solvers]
    lines = [_row("", *head), _row(*["---"] * (1 + len(head)))]
    return "\n".join([*lines, *(_row(LOSSES[loss], *cells) for loss, cells in found.items())])


def _checks(report: dict, part_of_name: str) -> list[dict]:
    return [check for check in report["checks"] if part_of_name in check["name"]]


def _times(check: dict) -> str:
    """Rounded down; what is a bound, because the peer was stopped, says so."""
    return f"{'more than ' if check['is_bound'] else ''}{int(check['value'])} times"


def verdicts(reports: dict[str, dict]) -> str:
    """How many lines of each part hold, and which do not or are not decided."""
    lines = [_row("part", "lines that hold", "that do not", "undecided"), _row(*["---"] * 4)]
    for name, report in reports.items():
        by_status: dict[str, list[dict]] = {"PASS": [], "FAIL": [], "OPEN": []}
        for check in report["checks"]:
            by_status[check["status"]].append(check)
        missed = ("; ".join(map(_missed, by_status[status])) for status in ("FAIL", "OPEN"))
        lines.append(_row(name, str(len(by_status["PASS"])), *missed))
    lines.append(_row("all", str(sum(c["status"] == "PASS" for r in reports.values() for c in r["checks"])), "", ""))
    return "\n".join(lines)


def _missed(check: dict) -> str:
    return f"{check['name']}: {check['value']:.4g}, {'≥' if check['at_least'] else '≤'} {check['required']:g} wanted"


def _table(table: dict) -> str:
    head = [_row(*table["columns"]), _row(*["---"] * len(table["columns"]))]
    return "\n".join([*head, *(_row(*map(_cell, row)) for row in table["rows"])])


def _cell(value: str | float) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else value.replace("|", r"\|")


def scale_page() -> str:
    """docs/scale.md with what was measured."""
    numbers = read_numbers("dask")
    head = ("rows", "one pass that reads", "fit", "ratio", "memory", "client of two workers", "a worker")
    lines = [_row(*head), _row(*["---:"] * len(head))]
    for n, one in numbers["rows"].items():
        two = numbers["two workers"][n]
        times = f"{one['reading']:.2f} s", f"{one['seconds']:.2f} s", f"{one['seconds'] / one['reading']:.1f}"
        sizes = (f"{value:.0f} MB" for value in (one["client"], two["client"], two["worker"]))
        lines.append(_row(f"{int(n):,}", *times, *sizes))
    alone, both = (numbers["blockwise, by workers"][workers] for workers in ("1", "2"))
    lines.append(
        f"\nThe passes alone over the last of these: {alone['seconds']:.1f} s by one worker process, "
        f"{both['seconds']:.1f} s by two; processor seconds of the\nbusier worker fell from {alone['busiest']:.1f} to "
        f"{both['busiest']:.1f}, {alone['busiest'] / both['busiest']:.2f} times."
    )
    memory = numbers["memory"]
    lines.append(
        f"{memory['rows']:,} rows that are in memory already: {memory['plain']:.2f} s as they are, "
        f"{memory['dask']:.2f} s through Dask;\n1,000 rows: {memory['constant']:.2f} s more through Dask than without."
    )
    text = (HERE / "scale.md").read_text(encoding="utf-8")
    return _replaced(text, "\n".join(lines), "scale")


def full_table(retrieval: dict, draws: dict[str, int]) -> str:
    shots = [name for name in ("5", "10", "20", "all") if name in retrieval]
    head = [f"{n} labels an intent" if n != "all" else "all labels" for n in shots]
    lines = [_row("", *head, "intents never seen"), _row(*["---"] * (len(shots) + 2))]
    for method, shown in METHODS.items():
        cells = (_figures(retrieval[name].get(method)) for name in (*shots, "unseen"))
        lines.append(_row(shown, *cells))
    lines.append(_row("draws", *(str(draws[name]) for name in (*shots, "unseen"))))
    return "\n".join(lines)


def headline(retrieval: dict, draws: dict[str, int]) -> str:
    shots = [name for name in ("5", "20", "all") if name in retrieval]
    head = [f"{n} labels an intent" if n != "all" else "all labels" for n in shots]
    lines = [_row("MAP of a search among 10,003 questions, 77 intents", *head), _row(*["---"] * (len(shots) + 1))]
    for method in ("frozen", "LDA, shrunk", "contrastive adapter", "EmbeddingAdapter"):
        bold = "**" if method == "EmbeddingAdapter" else ""
        lines.append(_row(METHODS[method], *(f"{bold}{_short(retrieval[n][method]['MAP'])}{bold}" for n in shots)))
    lines.append(_row("draws of the labelled questions", *(str(draws[n]) for n in shots)))
    return "\n".join(lines)


def _figures(scores: dict[str, float] | None) -> str:
    return "" if scores is None else " / ".join(_short(scores[measure]) for measure in MEASURES)


def _short(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _replaced(page: str, table: str, name: str = "adapting") -> str:
    """The page with the table between its two marks."""
    start, end = f"<!-- {name}:start -->", f"<!-- {name}:end -->"
    text, found = re.subn(f"{start}.*?{end}", lambda _: f"{start}\n{table}\n{end}", page, flags=re.S)
    if found != 1:
        raise ValueError(f"a page must have {start} and {end} once; got a page with {found} of them")
    return text


if __name__ == "__main__":
    main()
