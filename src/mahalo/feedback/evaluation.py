"""Evaluation of a query-side map on held-out searches, for documents with feedback and for documents without."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..evaluation import BeforeAfter
from .folds import WITH, WITHOUT


@dataclass(frozen=True)
class FeedbackEvaluation:
    """Held-out searches with frozen and with adapted queries. Print it for two tables.

    Every query is judged with the settings that searches of other folds chose, frozen vectors among them.

    Attributes
    ----------
    with_feedback : BeforeAfter or None
        Searches for documents that are also relevant to a query that was learned from; None if there were none.
    without_feedback : BeforeAfter or None
        Searches for documents without any feedback.
    decision : str
        Sentence that says what was chosen, and why.
    """

    with_feedback: BeforeAfter | None
    without_feedback: BeforeAfter | None
    decision: str

    @property
    def rows(self) -> dict[str, BeforeAfter]:
        """Comparisons by name, without those that could not be made."""
        both = {WITH: self.with_feedback, WITHOUT: self.without_feedback}
        return {name: one for name, one in both.items() if one is not None}

    @property
    def sentence(self) -> str:
        """Choice with its reason, and the verdict on both kinds of documents."""
        verdicts = [f"{name[0].upper()}{name[1:]}: {_lower(one.sentence)}" for name, one in self.rows.items()]
        return " ".join([self.decision, *verdicts])

    def __str__(self) -> str:
        tables = [f"{name}\n{one}" for name, one in self.rows.items()]
        return "\n\n".join([*tables, self.decision])

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; `from_dict` reads them."""
        return {"decision": self.decision, "rows": {name: one.to_dict() for name, one in self.rows.items()}}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> FeedbackEvaluation:
        """Read the values that `to_dict` returns; raise ValueError if they are damaged."""
        try:
            rows = {str(name): BeforeAfter.from_dict(one) for name, one in values["rows"].items()}
            return cls(rows.get(WITH), rows.get(WITHOUT), str(values["decision"]))
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"the evaluation stored with this model is damaged ({error}); fit it again.") from None


def _lower(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]
