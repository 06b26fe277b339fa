"""The sections of the page: what one sees, in words and tables, and numbers for the script to draw."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

import numpy as np

from .findings import Findings, Missing
from .judged import Measure
from .markup import Cell, Column, bar, chart, escaped, number, percent, section, table
from .views import histogram, spectrum

__all__ = ["Page"]

_N_FEATURES, _N_PAIRS, _N_HUBS, _N_CANDIDATES = 30, 20, 15, 30
_LONGEST_NAME = 70  # characters of a row's name that tables show
_SEARCHED = 12  # classes beyond which they are looked for by name
_KINDS = {
    "similar": "similar pairs",
    "dissimilar": "dissimilar pairs",
    "triplet": "triplets",
    "quadruplet": "quadruplets",
    "linear": "linear forms",
}


class Page:
    """Sections of one page, in order, and the numbers they draw."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.charts: dict[str, Any] = {}
        self.map: dict[str, Any] | None = None
        parts = {
            "summary": ("Summary", self._summary),
            "better": ("Results", self._better),
            "map": ("Map", self._maps),
            "distances": ("Distances", self._distances),
            "features": ("Features", self._features),
            "sure": ("How sure", self._sure),
            "constraints": ("Constraints", self._constraints),
            "doubtful": ("Labels", self._doubtful),
            "hubs": ("Hubs", self._hubs),
        }
        self.links = {name: title for name, (title, _) in parts.items()}
        self.body = "".join(make() for _, make in parts.values())

    # -- summary -------------------------------------------------------------------------------------------------

    def _summary(self) -> str:
        f = self.findings
        return (
            '<section id="summary" aria-labelledby="title">\n'
            f'<h1 id="title">{self._headline()}</h1>\n<p class="lede">{self._learned_from()}</p>\n'
            f'<ul class="tiles">{"".join(self._tiles())}</ul>\n'
            f'<p class="note">{_told(lambda: escaped(f.judged.brief), "span")} “Before” is '
            f"{escaped(f.before[1])}. ± is half a 95 % interval.</p>\n"
            "</section>\n"
        )

    def _headline(self) -> str:
        try:
            verdicts = [m.verdict for m in self.findings.judged.measures]
        except Missing:
            return "A learned distance"
        if "better" in verdicts and "worse" not in verdicts:
            return "The learned distance is better"
        if "worse" in verdicts and "better" not in verdicts:
            return "The learned distance is worse than what it started from"
        if "better" in verdicts:
            return "The learned distance is better at some things, worse at others"
        return "The learned distance makes no clear difference"

    def _learned_from(self) -> str:
        f, record = self.findings, self.findings.record
        rows = f"{f.n_rows:,} rows" + (f" with {f.metric.n_features:,} features" if f.metric.n_features else "")
        classes = f" of {len(f.labels.classes):,} classes" if f.labels is not None else ""
        if not record:
            return f"Shown on {rows}{classes}. The file does not say what the metric was learned from."
        counts = record.get("n_constraints", {})
        asked = _joined(f"{n:,} {_KINDS.get(kind, kind)}" for kind, n in counts.items())
        if f.learned_here:
            return f"Learned from <strong>{rows}</strong>{classes}, by {asked}."
        n = record.get("n_rows")
        return f"Learned from {f'{n:,} rows, ' if n else ''}by {asked}; shown on <strong>{rows}</strong>{classes}."

    def _tiles(self) -> Iterable[str]:
        try:
            measures = {m.name: m for m in self.findings.judged.measures}
        except Missing:
            measures = {}
        for name in ("10-NN accuracy", "MAP", "pair AUC"):
            if name in measures:
                yield self._tile(measures[name])
        certificate = self.findings.record.get("certificate")
        if certificate:
            yield (
                f'<li class="tile"><p class="what">Proved optimal within</p><p class="value">'
                f"{_part(certificate['relative_gap'])}</p>"
                f'<p class="from">{"as asked" if certificate["converged"] else "stopped before what was asked"}</p></li>'
            )

    @staticmethod
    def _tile(measure: Measure) -> str:
        kind = measure.verdict if measure.verdict in ("better", "worse") else ""
        change = f"{_signed(measure, measure.change)} ± {_plain(measure, measure.change_margin)}"
        return (
            f'<li class="tile"><p class="what">{escaped(measure.name)}</p>'
            f'<p class="value">{_shown(measure, measure.after)}</p><p class="from">before: '
            f'{_shown(measure, measure.before)} · <span class="{kind}">{change}</span></p></li>'
        )

    # -- before and after ----------------------------------------------------------------------------------------

    def _better(self) -> str:
        return section("better", "Before and after", _told(self._measures))

    def _measures(self) -> str:
        judged = self.findings.judged
        self.charts["measures"] = {
            "rows": [
                {
                    "name": m.name,
                    "before": m.before,
                    "after": m.after,
                    "beforeMargin": m.before_margin or 0.0,
                    "afterMargin": m.after_margin or 0.0,
                }
                for m in judged.measures
            ]
        }
        columns = [Column("Measure"), *(Column(c, True) for c in ("Before", "After", "Change")), Column("In short")]
        rows = [
            [
                Cell(m.name, markup=f"<strong>{escaped(m.name)}</strong><br><small>{escaped(m.what)}</small>"),
                Cell(_shown(m, m.before) + _margin(m, m.before_margin)),
                Cell(_shown(m, m.after) + _margin(m, m.after_margin)),
                Cell(f"{_signed(m, m.change)} ± {_plain(m, m.change_margin)}"),
                Cell(m.verdict, markup=f'<span class="{m.verdict}">{m.verdict}</span>'),
            ]
            for m in judged.measures
        ]
        words = "; ".join(f"{m.name} {_shown(m, m.before)} before, {_shown(m, m.after)} after" for m in judged.measures)
        return (
            f"<p>{escaped(judged.how)} {judged.n_rows:,} rows were judged.</p>"
            + chart("measures", f"Measures with 95 % intervals: {words}")
            + table("Every measure, with half the width of its 95 % interval over rows", columns, rows)
            + self._advice()
        )

    def _advice(self) -> str:
        verdicts = {m.verdict for m in self.findings.judged.measures}
        if verdicts == {"no clear difference"}:
            return _advice("Learning changed little here: more labels or pairs, or other features, would help more.")
        if "worse" in verdicts:
            return _advice("Where it is worse, try a smaller γ, or let MetricLearnerCV choose γ and the prior.")
        return ""

    # -- maps ----------------------------------------------------------------------------------------------------

    def _maps(self) -> str:
        return section("map", "Who is near whom", _told(self._both_maps))

    def _both_maps(self) -> str:
        f = self.findings
        before, after = f.maps
        some = f.shown
        self.map = {
            "before": _flat(before),
            "after": _flat(after),
            "rows": some.tolist(),
            "ids": [f.ids[i] for i in some],
            "codes": [-1] * len(some) if f.codes is None else f.codes[some].tolist(),
            "classes": [] if f.labels is None else [str(c) for c in f.labels.classes],
            "notes": self._notes(some),
        }
        less = (
            f" {len(some):,} of the {f.n_rows:,} rows are shown, drawn at random in every class."
            if len(some) < f.n_rows
            else ""
        )
        learned = " The metric on the right was learned from these rows." if f.learned_here else ""
        empty = "Point at a row to find it in both maps; click to keep it, or use the arrow keys."
        sides = "".join(
            f'<div class="map" data-side="{side}" tabindex="0" role="group" aria-label="Map of rows {title}; arrow keys '
            f'go from row to row"><h3>{title.capitalize()}</h3></div>'
            for side, title in (("before", "before learning"), ("after", "after learning"))
        )
        return (
            "<p>Rows that are near each other lie together. Classes that form islands on the right and not on the left "
            f"are what learning brought.{learned}{less}</p>{self._filter()}"
            f'<div class="pair">{sides}</div><p id="said" role="status" data-empty="{empty}">{empty}</p>'
            '<p class="note">Both are t-SNE maps, made without looking at labels. Nearness on them means something; '
            "the size of gaps and islands does not.</p>"
        )

    def _filter(self) -> str:
        labels = self.findings.labels
        if labels is None:
            return ""
        search = (
            '<label>Find a class <input id="find-class" type="search" autocomplete="off"></label>'
            if len(labels.classes) > _SEARCHED
            else ""
        )
        return (
            f'<fieldset class="filter"><legend>{len(labels.classes)} classes: choose some to see only them</legend>'
            f'{search}<div id="classes" class="chips"></div></fieldset>'
        )

    def _notes(self, some: np.ndarray) -> list[str]:
        """What else the page says about a row."""
        notes = dict.fromkeys(some.tolist(), "")
        try:
            for row, found in self.findings.suspect_rows.iterrows():
                if row in notes and found["score"] > 0.5:
                    notes[row] = f"doubtful: looks like {found['suggested']}"
        except Missing:
            pass
        return list(notes.values())

    # -- distances and the spectrum ------------------------------------------------------------------------------

    def _distances(self) -> str:
        return section("distances", "Alike and unalike", _told(self._histograms))

    def _histograms(self) -> str:
        judged = self.findings.judged
        sides = list(zip(judged.alike, judged.unalike, strict=True))
        if not len(sides[0][0]):
            raise Missing("no pairs were held out.")
        end = float(np.clip(max(np.percentile(np.concatenate(side), 99) for side in sides), 2.0, 3.0))
        drawn = [histogram(*side, end) for side in sides]
        top = max(max(one["alike"] + one["unalike"]) for one in drawn)
        for name, one, side in zip(("histogramBefore", "histogramAfter"), drawn, sides, strict=True):
            self.charts[name] = one | {"top": top, "nAlike": len(side[0]), "nUnalike": len(side[1])}
        auc = next((m for m in judged.measures if m.name == "pair AUC"), None)
        said = [f"pair AUC {value:.3f}" for value in (auc.before, auc.after)] if auc else ["", ""]
        figures = "".join(
            f"<div><h3>{title} learning</h3>"
            + chart(name, f"Distances of alike and unalike pairs {title.lower()} learning, {words}", words)
            + "</div>"
            for title, name, words in zip(
                ("Before", "After"), ("histogramBefore", "histogramAfter"), said, strict=True
            )
        )
        return (
            "<p>The less the two humps overlap, the better the distance tells alike from unalike. These are pairs of "
            f'rows that were not learned from; what lies beyond the axis is in its last bar.</p><div class="pair">{figures}</div>'
        )

    # -- features ------------------------------------------------------------------------------------------------

    def _features(self) -> str:
        return section("features", "What it weighs", _told(self._feature_tables), self._spectrum())

    def _feature_tables(self) -> str:
        f, shares = self.findings, self.findings.shares
        features, pairs = shares.features(f.names), shares.pairs(f.names)
        kinds = [kind for kind in ("alike", "unalike") if kind in features]
        totals = {kind: float(features[kind].sum()) or 1.0 for kind in kinds}
        widest = {kind: max(float(features[kind].max()) / totals[kind], 1e-12) for kind in kinds}
        columns = [Column("Feature"), Column("Weight", True, "W_jj, in the units of the feature")]
        columns += [Column(f"Share of {kind} distances", True) for kind in kinds]
        rows = [
            [
                Cell(name),
                Cell(number(row["weight"]), f"{row['weight']:.6g}"),
                *(_share(row[kind] / totals[kind], widest[kind], kind) for kind in kinds),
            ]
            for name, row in features.head(_N_FEATURES).iterrows()
        ]
        more = f" The {_N_FEATURES} that bring most of {len(features):,} are listed." if len(features) > _N_FEATURES else ""
        plain = "" if f.named else " Columns have no names here; pass names= to see them."
        return (
            "<p>A feature that tells classes apart brings much to the distances of unalike rows and little to those of "
            f"alike ones. Shares are of squared learned distances and add up to 100 %.{more}{plain}</p>"
            + table("Features, by what they bring to the distances of unalike rows", columns, rows, name="features-table")
            + self._feature_pairs(pairs, kinds, totals)
        )

    @staticmethod
    def _feature_pairs(pairs: Any, kinds: list[str], totals: dict[str, float]) -> str:
        if not len(pairs):
            return ""
        columns = [Column("Feature"), Column("With"), Column("Weight", True)]
        columns += [Column(f"Part of {kind} distances", True) for kind in kinds]
        rows = [
            [
                Cell(name),
                Cell(row["with"]),
                Cell(number(row["weight"]), f"{row['weight']:.6g}"),
                *(Cell(percent(row[k] / totals[k]), f"{row[k] / totals[k]:.6g}") for k in kinds),
            ]
            for name, row in pairs.head(_N_PAIRS).iterrows()
        ]
        return (
            "<h3>Features that count together</h3><p>What a pair of features adds beyond what each brings alone. "
            "Below zero, a difference in one makes up for a difference in the other.</p>"
            + table("Pairs of features, by how much they add or take", columns, rows, name="feature-pairs-table")
        )

    def _spectrum(self) -> str:
        values, n = spectrum(self.findings.metric)
        floor = max(max(values, default=1.0) * 1e-9, 1e-12)
        self.charts["spectrum"] = {"values": values, "n": n, "floor": floor}
        stretched, shrunk = sum(v > 1.05 for v in values), sum(v < 0.95 for v in values)
        words = f"{stretched} of the {len(values)} directions drawn are stretched, {shrunk} shrunk"
        return (
            "<h3>Directions</h3><p>Each direction of the space is stretched or shrunk by what was learned: above the "
            "line rows are pulled apart along it, below it differences count for less.</p>"
            + chart("spectrum", f"Eigenvalues relative to the prior: {words}", words[0].upper() + words[1:] + ".")
        )

    # -- how sure ------------------------------------------------------------------------------------------------

    def _sure(self) -> str:
        record = self.findings.record
        if not record.get("certificate"):
            why = "the file does not hold how the metric was found; save it with the command line, or report from the learner."
            return section("sure", "How sure", f'<p class="missing">Not shown: {why}</p>')
        return section("sure", "How sure", self._proof(record), self._gap(record), self._choosing(record))

    def _proof(self, record: dict[str, Any]) -> str:
        c = record["certificate"]
        gap, n = float(c["relative_gap"]), sum(record["n_constraints"].values())
        if c["converged"]:
            text = (
                f"<strong>The answer is proved.</strong> No metric at all does better at what was asked by more than "
                f"{_part(gap)} of the objective. The proof is worked out from the problem and the answer alone, whoever "
                "found it."
            )
        else:
            text = (
                f"<strong>The solver stopped early.</strong> Another metric might do better at what was asked, by "
                f"{_part(gap)} of the objective at most. Raise max_iter or tol, or lower γ, and learn again."
            )
        kept = n - c["n_violated"]
        limits = (
            f" Of the {n:,} constraints {kept:,} hold; the others are bent, the most by "
            f"{percent(c['max_violation'], 0)} of its bound. With labels that overlap that is as it should be: γ sets the price."
            if c["n_violated"]
            else f" All {n:,} constraints hold."
        )
        facts = {"γ": number(float(record["gamma"])), "Steps of the solver": f"{record['n_iter']:,}"}
        chosen = record.get("chosen") or {}
        if chosen.get("residual") in (True, 1.0):
            chosen = {k: v for k, v in chosen.items() if k != "residual"}  # nothing was weighed
        facts |= {name: _setting(k, chosen[k]) for k, name in _FACTS.items() if chosen.get(k) is not None}
        if "score" in chosen:
            facts["Score on held-out rows"] = f"{chosen['score']:.3f}"
        for key, name in (("n_dropped", "Constraints left out: identical rows"), ("n_outside", "Left out: rows not there")):
            if record.get(key):
                facts[name] = f"{record[key]:,}"
        facts["Estimator"] = record["estimator"]
        listed = "".join(f"<dt>{escaped(k)}</dt><dd>{escaped(v)}</dd>" for k, v in facts.items())
        return f'<p>{text}{limits}</p><dl class="facts">{listed}</dl>'

    def _gap(self, record: dict[str, Any]) -> str:
        steps = record.get("history") or []
        gaps = [_finite(step["relative_gap"]) for step in steps]
        if not any(gaps):
            return "<p>The start was close enough: the solver made no step.</p>"
        tol = float(record["parameters"]["tol"])
        self.charts["gap"] = {"gap": gaps, "gamma": [_finite(step["gamma"]) for step in steps], "tol": tol}
        return "<h3>On the way to the proof</h3>" + chart(
            "gap",
            f"Relative gap after each of {len(gaps)} steps, ending at {_part(float(record['certificate']['relative_gap']))}",
            "The gap bounds how far the answer can be from the best one. Where the curve starts anew, the solver went on "
            "to a larger γ.",
        )

    def _choosing(self, record: dict[str, Any]) -> str:
        candidates = record.get("choosing")
        if not candidates:
            return ""
        varied = [k for k in _FACTS if len({str(c[k]) for c in candidates}) > 1]
        self.charts["choosing"] = _curves(candidates, varied)
        columns = [Column("γ", True), *(Column(_FACTS[k]) for k in varied), Column("Score", True), Column("± 95 %", True)]
        rows = [
            [
                Cell("prior alone" if _untouched(c, candidates) else number(float(c["gamma"])), f"{float(c['gamma']):.6g}"),
                *(Cell(_setting(k, c[k])) for k in varied),
                Cell(
                    f"{c['score']:.3f}",
                    f"{c['score']:.6f}",
                    f"<strong>{c['score']:.3f} chosen</strong>" if c["chosen"] else "",
                ),
                Cell(f"{c['interval']:.3f}", f"{c['interval']:.6f}"),
            ]
            for c in _best_and_chosen(candidates)
        ]
        more = f" The {len(rows)} best of {len(candidates):,} are listed." if len(rows) < len(candidates) else ""
        return (
            f"<h3>What it was chosen among</h3><p>Every candidate was learned on a part of the rows and scored on the "
            f"rest. Of candidates that are as good, the simplest is taken: the smallest γ.{more}</p>"
            + chart("choosing", "Score of every candidate on held-out rows against γ", "In colour the kind that was chosen, with its interval over folds; in grey the others.")
            + table("Candidates, best first", columns, rows, name="candidates-table")
        )

    # -- constraints ---------------------------------------------------------------------------------------------

    def _constraints(self) -> str:
        return section("constraints", "The constraints that shaped it", _told(self._influential))

    def _influential(self) -> str:
        f = self.findings
        found = f.influential
        total = float(f.learner.duals_.sum()) or 1.0  # type: ignore[union-attr]
        active = int((f.learner.duals_ > 1e-9 * f.learner.duals_.max(initial=0.0)).sum())  # type: ignore[union-attr]
        columns = [Column("Kind"), Column("Rows"), Column("Labels")] if f.labels is not None else [Column("Kind"), Column("Rows")]
        columns += [Column(c, True) for c in ("Bound", "Distance now", "Pull")]
        rows = []
        for _, row in found.iterrows():
            ends = list(row["rows"])
            cells = [Cell(row["kind"]), self._row_cell(ends)]
            if f.labels is not None:
                cells.append(Cell(" · ".join(_unique(self._label(i) for i in ends[:4]))))
            cells += [Cell(number(float(row[k])), f"{row[k]:.6g}") for k in ("bound", "value")]
            cells.append(_share(row["dual"] / total, float(found["dual"].max()) / total, "after"))
            rows.append(cells)
        return (
            f"<p>{active:,} of {len(f.learner.duals_):,} constraints pull at the metric; the others would hold anyway. "  # type: ignore[union-attr]
            "These pull hardest. Where one of them is wrong, it did more harm than any other: look at them first. "
            "Bounds and distances are squared.</p>"
            + table("Constraints by pull, their share of all multipliers", columns, rows, name="constraints-table")
        )

    def _row_cell(self, ends: list[int]) -> Cell:
        """Rows by name, at most four of them, each to be shown on the map if it is there."""
        ids = [self.findings.ids[i] for i in ends[:4]]
        more = f" and {len(ends) - 4} more" if len(ends) > 4 else ""
        text = " – ".join(ids) + more
        return Cell(text, text, " – ".join(self._link(i) for i in ends[:4]) + more)

    def _link(self, row: int) -> str:
        name = self.findings.ids[row]
        shown = escaped(name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…")
        if row not in self._mapped:
            return f'<span title="{escaped(name)}">{shown}</span>'
        return f'<button type="button" class="show" data-row="{row}" title="On the map: {escaped(name)}">{shown}</button>'

    @cached_property
    def _mapped(self) -> set[int]:
        return set(self.map["rows"]) if self.map else set()

    def _label(self, row: int) -> str:
        labels = self.findings.labels
        return "no label" if labels is None or labels.codes[row] < 0 else str(labels.classes[labels.codes[row]])

    # -- doubtful labels -----------------------------------------------------------------------------------------

    def _doubtful(self) -> str:
        f = self.findings
        parts = [_told(self._suspect_rows)] if f.labels is not None or f.constraints is None else []
        if f.constraints is not None:
            parts.append(_told(self._suspect_constraints))
        return section("doubtful", "Labels that look wrong", *parts)

    def _suspect_rows(self) -> str:
        f, found = self.findings, self.findings.suspect_rows
        likely = int((found["score"] > 0.5).sum())
        rows = [
            [
                Cell(f.ids[row], f.ids[row], self._link(int(row))),
                Cell(self._label(int(row))),
                Cell(str(f.labels.classes[one["suggested"]])),  # type: ignore[union-attr]
                Cell(f"{one['score']:.2f}", f"{one['score']:.6f}", f"{one['score']:.2f} {bar(float(one['score']), 'unalike')}"),
                self._row_cell([int(f.suspected[i]) for i in one["neighbours"]][:3]),
            ]
            for row, one in found.iterrows()
        ]
        many = f"{likely} or more" if likely == len(found) else f"{likely:,}"
        count = f"{many} rows are closer to another class than to their own" if likely else "No row is closer to another class than to its own"
        among = f" {len(f.suspected):,} rows, drawn at random, were looked at." if len(f.suspected) < f.n_rows else ""
        return (
            f"<p>{count}. Each was judged by a metric that had not seen its label where the learner is at hand, and by "
            f"its nearest neighbours. Doubt above 0.5 speaks for a wrong label, or for a row that is hard.{among}</p>"
            + (_advice("Look at the first ten, mend what is wrong, and learn again.") if likely else "")
            + table(
                "Rows by doubt, most doubtful first",
                [Column("Row"), Column("Label"), Column("Looks like"), Column("Doubt", True), Column("Because of")],
                rows,
                name="doubtful-rows",
            )
        )

    def _suspect_constraints(self) -> str:
        found = self.findings.suspect_constraints
        rows = [
            [
                self._row_cell(list(one["rows"])),
                Cell(one["given"]),
                Cell(one["suggested"]),
                Cell(f"{one['score']:.2f}", f"{one['score']:.6f}", f"{one['score']:.2f} {bar(float(one['score']), 'unalike')}"),
            ]
            for _, one in found.iterrows()
        ]
        return (
            "<h3>Pairs and triplets</h3><p>Each was judged by what was learned from the others. Doubt is the share of "
            "pairs of the other kind that it lies on the wrong side of.</p>"
            + table(
                "Pairs and triplets by doubt, most doubtful first",
                [Column("Rows"), Column("Given as"), Column("Looks like"), Column("Doubt", True)],
                rows,
                name="doubtful-pairs",
            )
        )

    # -- hubs ----------------------------------------------------------------------------------------------------

    def _hubs(self) -> str:
        return section("hubs", "Hubs", _told(self._hub_counts))

    def _hub_counts(self) -> str:
        f, hubs = self.findings, self.findings.hubs
        width = max(1, int(np.ceil((max(hubs.before.max(), hubs.after.max()) + 1) / 24)))
        sides = {"before": hubs.before, "after": hubs.after}
        self.charts["hubs"] = {"k": hubs.k} | {side: _distribution(counts, width) for side, counts in sides.items()}
        order = np.argsort(-hubs.after, kind="stable")[:_N_HUBS]
        columns = [Column("Row"), *([Column("Label")] if f.labels is not None else []), Column("After", True), Column("Before", True)]
        rows = []
        for k in order:
            row = int(f.shown[k])
            cells = [Cell(f.ids[row], f.ids[row], self._link(row))]
            cells += [Cell(self._label(row))] if f.labels is not None else []
            rows.append([*cells, Cell(f"{hubs.after[k]:,}", int(hubs.after[k])), Cell(f"{hubs.before[k]:,}", int(hubs.before[k]))])
        busiest = [percent(hubs.share_of_busiest(counts)) for counts in (hubs.before, hubs.after)]
        never = [percent(hubs.never(counts)) for counts in (hubs.before, hubs.after)]
        return (
            f"<p>A hub is among the {hubs.k} nearest of very many rows and turns up in every search. The busiest "
            f"hundredth of the rows gives {busiest[1]} of all answers, {busiest[0]} before; {never[1]} of the rows are "
            f"nobody’s neighbour, {never[0]} before.</p>"
            '<div class="pair"><div>'
            + chart("hubs", f"How often rows are among the {hubs.k} nearest of others: the busiest hundredth gives {busiest[0]} of answers before, {busiest[1]} after", "A long tail to the right means hubs.")
            + "</div><div>"
            + table(f"Rows that are most often among the {hubs.k} nearest", columns, rows, name="hubs-table")
            + "</div></div>"
        )


_FACTS = {
    "prior": "Prior",
    "strategy": "Pairs from labels",
    "residual": "Weight outside the basis",
    "normalize": "Compared by",
    "n_components": "Components",
}


def _told(part: Callable[[], str], element: str = "p") -> str:
    """What a part says, or why it is missing."""
    try:
        return part()
    except Missing as why:
        return f'<{element} class="missing">Not shown: {escaped(why)}</{element}>'


def _advice(text: str) -> str:
    return f'<p class="advice">{text}</p>'


def _share(share: float, widest: float, kind: str) -> Cell:
    text = percent(share)
    return Cell(text, f"{share:.6g}", f"{text} {bar(share / widest if widest > 0 else 0.0, kind)}")


def _in_percent(measure: Measure) -> bool:
    return measure.name not in ("MAP", "pair AUC")


def _shown(measure: Measure, value: float) -> str:
    return percent(value) if _in_percent(measure) else f"{value:.3f}"


def _plain(measure: Measure, value: float) -> str:
    return f"{100 * value:.1f}" if _in_percent(measure) else f"{value:.3f}"


def _margin(measure: Measure, value: float | None) -> str:
    return "" if value is None else f" ± {_plain(measure, value)}"


def _signed(measure: Measure, value: float) -> str:
    return ("+" if value >= 0 else "−") + _plain(measure, abs(value))


def _part(gap: float) -> str:
    """A relative gap in words."""
    if not gap > 1e-15:
        return "rounding"
    return percent(gap, 0) if gap >= 0.1 else f"{number(float(f'{100 * gap:.1g}'))} %"


def _finite(value: Any) -> float:
    """0 where there is no number to draw."""
    value = float(value)
    return value if np.isfinite(value) and value > 0 else 0.0


def _setting(name: str, value: Any) -> str:
    if name == "normalize":
        return "cosine" if value else "distance"
    return number(float(value)) if isinstance(value, (int, float)) else str(value)


def _untouched(candidate: dict[str, Any], candidates: list[dict[str, Any]]) -> bool:
    """Whether this is the prior itself, which every choice has beside the γ that were asked for."""
    gammas = sorted({float(c["gamma"]) for c in candidates})
    return len(gammas) > 1 and float(candidate["gamma"]) == gammas[0] and gammas[0] < 1e-5 * gammas[1]


def _joined(parts: Iterable[str]) -> str:
    *first, last = list(parts) or ["nothing"]
    return f"{', '.join(first)} and {last}" if first else last


def _unique(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))


def _flat(plane: np.ndarray) -> list[float]:
    return plane.round(3).ravel().tolist()


def _distribution(counts: np.ndarray, width: int) -> dict[str, list[float]]:
    """Share of the rows at every count, in steps of `width`."""
    shares = np.bincount(counts // width) / len(counts)
    return {"counts": (width * np.arange(len(shares))).tolist(), "share": shares.round(5).tolist()}


def _best_and_chosen(candidates: list[dict]) -> list[dict]:
    return candidates[:_N_CANDIDATES] + [c for c in candidates[_N_CANDIDATES:] if c["chosen"]]


def _curves(candidates: list[dict], varied: list[str]) -> dict[str, Any]:
    """Score against γ of every other combination of settings."""
    curves: dict[tuple, dict[str, Any]] = {}
    chosen, level = None, 0.0
    for c in candidates:
        gamma = float(c["gamma"])
        if _untouched(c, candidates):
            level = max(level, c["score"])
            continue
        if not np.isfinite(gamma):
            continue
        curve = curves.setdefault(tuple(str(c[k]) for k in varied), {"points": [], "best": False})
        curve["points"].append([gamma, c["score"], c["interval"]])
        if c["chosen"]:
            curve["best"], chosen = True, [gamma, c["score"]]
    for curve in curves.values():
        curve["points"].sort()
    return {"series": list(curves.values()), "chosen": chosen, "level": level}
