"""Answers of the server as JSON: what the page shows, and what it sends."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from ...metric import Metric
from ..answers import Answer
from ..export import MODEL, PAIRS, REPORT, TRIPLETS, USE
from ..judging import HeldOut
from ..neighbors import Neighbors
from ..questions import NoQuestion, Question
from .corrections import CORRECTED
from .studio import Studio

Json: TypeAlias = dict[str, object]
Body: TypeAlias = dict[str, object]
Query: TypeAlias = dict[str, str]

DOWNLOADS = (MODEL, PAIRS, TRIPLETS, REPORT, USE, CORRECTED)
_MAX_WEIGHTS = 12
_MAX_CLASSES = 200


# -- reading ---------------------------------------------------------------------------------------------------------


def setup(studio: Studio, query: Query) -> Json:
    """Return what does not change: rows, labels, who answers."""
    items, session = studio.table.items, studio.session
    labels = items.labels
    classes = sorted({label for label in labels if label})[:_MAX_CLASSES] if labels is not None else []
    return {
        "n_rows": items.n_rows,
        "source": studio.table.source,
        "kinds": list(session.kinds),
        "annotator": session.annotator,
        "has_labels": labels is not None,
        "classes": classes,
        "takes_text": studio.table.encode is not None,
        "folder": str(studio.out),
    }


def question(studio: Studio, query: Query) -> Json:
    """Return the next question and the rows it is about."""
    try:
        found = studio.session.question(_annotator(studio, query))
    except NoQuestion as error:
        return {"question": None, "reason": str(error)}
    return _question(studio, found)


def state(studio: Studio, query: Query) -> Json:
    """Return what the session knows."""
    found = studio.session.state()
    certificate = found.certificate
    return {
        "n_answers": found.n_answers,
        "n_same": found.n_same,
        "n_different": found.n_different,
        "n_triplets": found.n_triplets,
        "n_skipped": found.n_skipped,
        "n_implied": found.n_implied,
        "n_consolidated": found.n_consolidated,
        "annotators": list(found.annotators),
        "n_held_out": found.n_held_out,
        "held_out": None if found.held_out is None else _held_out(found.held_out),
        "curve": [_held_out(point) for point in found.curve],
        "enough": {"reached": found.enough.reached, "sentence": found.enough.sentence},
        "contradictions": [
            {"kind": c.kind, "answers": [_answer(studio, answer) for answer in c.answers]}
            for c in found.contradictions[:50]
        ],
        "doubtful": [{**_answer(studio, d.answer), "probability": d.probability} for d in found.doubtful],
        "certificate": None
        if certificate is None
        else {"gap": certificate.relative_gap, "converged": certificate.converged},
        "weights": _weights(studio, studio.session.latest_metric_),
        "map_answers": None if studio.worker.positions is None else studio.worker.positions.n_answers,
        "busy": studio.worker.busy,
        "error": studio.worker.error,
    }


def colours(studio: Studio, query: Query) -> Json:
    """Return a code for every row by label, by group or by doubt, and the names of the codes."""
    by, items = query.get("by", "label"), studio.table.items
    if by == "label" and items.labels is not None:
        classes = sorted({label for label in items.labels if label})
        code = {label: k for k, label in enumerate(classes)}
        return {"codes": [code.get(label, -1) for label in items.labels], "names": classes}
    if by == "doubt":
        return {"codes": (studio.doubts() - 1).tolist(), "names": ["doubtful answer", "doubtful label"]}
    codes = studio.groups()
    return {"codes": codes.tolist(), "names": [f"group {k + 1}" for k in range(int(codes.max(initial=-1)) + 1)]}


def search(studio: Studio, query: Query) -> Json:
    """Return rows whose name or text contains a text."""
    return {"rows": [_brief(studio, row) for row in studio.table.items.find(query.get("text", "")[:500])]}


def neighbors(studio: Studio, query: Query) -> Json:
    """Return the nearest rows of a row, or of a typed text, before and after learning."""
    session, text = studio.session, query.get("text")
    if text is not None:
        if studio.table.encode is None:
            raise ValueError("these rows are not texts, so a typed text has no neighbours; choose a row.")
        point = studio.table.encode(text[:2_000])
        found = session.index.nearest(session.latest_metric_, point, 10)
        return {"row": None, "text": text[:2_000], **_neighbors(studio, found)}
    row = _whole(query.get("row"), "row")
    return {"row": _brief(studio, row), **_neighbors(studio, session.neighbors(row))}


def doubtful_labels(studio: Studio, query: Query) -> Json:
    """Return the rows whose labels look wrong, and what was decided about them; begin to look for them."""
    if studio.doubtful is None:
        return {"status": "no labels", "rows": [], "n_changed": 0, "n_dropped": 0}
    studio.doubtful.start()
    decided = studio.session.answers().labels
    rows = [
        {
            **item(studio, entry.row),
            "score": entry.score,
            "given": entry.given,
            "suggested": entry.suggested,
            "decision": decided[entry.row].answer if entry.row in decided else None,
            "new_label": decided[entry.row].label if entry.row in decided else "",
        }
        for entry in studio.doubtful.found
    ]
    given = [entry.answer for entry in decided.values()]
    counts: Json = {"n_changed": given.count("change"), "n_dropped": given.count("drop")}
    return {"status": studio.doubtful.status, "rows": rows, **counts}


def item(studio: Studio, row: int) -> Json:
    """Return a row as it is shown."""
    found = studio.table.items.item(row)
    fields = [{"name": f.name, "text": f.text, "n_hidden": f.n_hidden} for f in found.fields]
    return {"row": row, "id": found.id, "fields": fields, "has_picture": found.has_picture}


def map_bytes(studio: Studio) -> bytes:
    """Return float32 positions, x and y of every row before learning, then after; empty before the first map."""
    positions = studio.worker.positions
    if positions is None:
        return b""
    return np.concatenate([positions.before, positions.after]).astype("<f4").tobytes()


# -- writing ---------------------------------------------------------------------------------------------------------


def answer(studio: Studio, body: Body) -> Json:
    """Write an answer; return the next question."""
    rows = body.get("rows")
    if not isinstance(rows, list) or not all(isinstance(row, int) and not isinstance(row, bool) for row in rows):
        raise ValueError("rows must be a list of row numbers.")
    asked = Question(_text(body, "id"), _text(body, "kind"), tuple(rows), _text(body, "why"))
    studio.session.answer(asked, _text(body, "answer"), _annotator(studio, body))
    studio.worker.wake()
    return question(studio, {"annotator": _annotator(studio, body)})


def undo(studio: Studio, body: Body) -> Json:
    """Take back the latest answer; return the question it was about."""
    annotator = _annotator(studio, body)
    entry = studio.session.undo(annotator, id=_text(body, "id"))
    studio.worker.wake()
    if entry is None or entry.kind == "label":
        return {"undone": entry is not None, **question(studio, {"annotator": annotator})}
    again = Question(f"{entry.id}-{_text(body, 'id')}", entry.kind, entry.rows, "taken back: please answer again")
    return {"undone": True, **_question(studio, again)}


def judge_neighbor(studio: Studio, body: Body) -> Json:
    """Write that a row belongs, or does not, among the nearest of another."""
    if not isinstance(body.get("belongs"), bool):
        raise ValueError("belongs must be true or false.")
    row, neighbor = (_whole(body.get(name), name) for name in ("row", "neighbor"))
    belongs = bool(body["belongs"])
    entry = studio.session.judge_neighbor(row, neighbor, belongs, _annotator(studio, body), id=_text(body, "id"))
    studio.worker.wake()
    return {"rows": list(entry.rows)}


def decide_label(studio: Studio, body: Body) -> Json:
    """Write what is to become of a label."""
    row = _whole(body.get("row"), "row")
    studio.table.items.item(row)
    decision, label = _text(body, "decision"), _text(body, "label")
    if decision == "change" and not label:
        raise ValueError("a new label is wanted.")
    studio.session.decide_label(row, decision, label, _annotator(studio, body), id=_text(body, "id"))
    return doubtful_labels(studio, {})


def export(studio: Studio, body: Body) -> Json:
    """Write everything to take home; return the names of the files."""
    found = studio.export()
    return {
        "folder": str(found.folder),
        "files": list(found.files),
        "python": found.python,
        "command": found.command,
        "notes": list(found.notes),
    }


def correct(studio: Studio, body: Body) -> Json:
    """Write the corrected table; return its name."""
    return {"file": studio.correct(), "folder": str(studio.out)}


READ: dict[str, Callable[[Studio, Query], Json]] = {
    "setup": setup,
    "question": question,
    "state": state,
    "colours": colours,
    "search": search,
    "neighbors": neighbors,
    "doubtful": doubtful_labels,
}
WRITE: dict[str, Callable[[Studio, Body], Json]] = {
    "answer": answer,
    "undo": undo,
    "neighbor": judge_neighbor,
    "label": decide_label,
    "export": export,
    "correct": correct,
}


# -- parts -----------------------------------------------------------------------------------------------------------


def _question(studio: Studio, found: Question) -> Json:
    asked = {"id": found.id, "kind": found.kind, "rows": list(found.rows), "why": found.why}
    return {"question": asked, "items": [item(studio, row) for row in found.rows]}


def _answer(studio: Studio, found: Answer) -> Json:
    return {
        "kind": found.kind,
        "rows": [_brief(studio, row) for row in found.rows],
        "same": found.same,
        "by": found.by,
        "n_times": found.n_times,
    }


def _brief(studio: Studio, row: int) -> Json:
    items = studio.table.items
    label = "" if items.labels is None else items.labels[row]
    return {"row": row, "id": items.id_of(row), "text": items.summary(row), "label": label}


def _neighbors(studio: Studio, found: Neighbors) -> Json:
    sides = ((found.before, found.rank_after), (found.after, found.rank_before))
    before, after = (
        [{**_brief(studio, int(row)), "other_rank": int(rank)} for row, rank in zip(rows, ranks, strict=True)]
        for rows, ranks in sides
    )
    return {"before": before, "after": after}


def _held_out(found: HeldOut) -> Json:
    return {
        "n_answers": found.n_answers,
        "n_pairs": found.n_pairs,
        "before": found.before,
        "after": found.after,
        "margin": found.margin,
        "gain_margin": found.gain_margin,
    }


def _weights(studio: Studio, metric: Metric) -> list[Json]:
    """Return the columns whose weight in the metric has changed most: diag W relative to the ordinary distance."""
    names = studio.table.names
    if names is None or metric is studio.session.learning.ordinary:
        return []
    ratio = np.diag(metric.matrix) / np.diag(studio.session.learning.ordinary.matrix)
    order = np.argsort(-np.abs(np.log(np.maximum(ratio, 1e-12))), kind="stable")[:_MAX_WEIGHTS]
    return [{"name": names[k], "ratio": float(ratio[k])} for k in order]


def _annotator(studio: Studio, values: Query | Body) -> str:
    name = values.get("annotator", studio.session.annotator)
    if not isinstance(name, str):
        raise ValueError("annotator must be a text.")
    return name[:200]


def _text(body: Body, name: str) -> str:
    value = body.get(name, "")
    if not isinstance(value, str):
        raise ValueError(f"{name} must be a text.")
    return value


def _whole(value: object, name: str) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 12:
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ValueError(f"{name} must be the number of a row.")
