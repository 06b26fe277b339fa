"""Diagram of a fitted learner in notebooks, with its certificate."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from importlib.resources import files
from string import Template

from ..solvers import Certificate


class CertificateDiagramMixin:
    """scikit-learn's diagram of an estimator, followed by the certificate once it is fitted."""

    @property
    def _repr_html_(self) -> Callable[[], str]:
        diagram = super()._repr_html_  # type: ignore[misc]  # AttributeError unless diagrams are displayed
        return lambda: diagram() + self._certificate_html()

    def _repr_mimebundle_(self, **kwargs: object) -> dict[str, str]:
        bundle = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        return {kind: text + self._certificate_html() * (kind == "text/html") for kind, text in bundle.items()}

    def _certificate_html(self) -> str:
        """Return a table of the certificate; empty before a fit."""
        certificate = self.__dict__.get("certificate_")
        if not isinstance(certificate, Certificate):
            return ""
        facts = {
            "primal": f"{certificate.primal:.6g}",
            "dual": f"{certificate.dual:.6g}",
            "relative_gap": f"{certificate.relative_gap:.1e}",
            "n_violated": f"{certificate.n_violated:,}",
            "n_constraints": f"{len(self.__dict__['duals_']):,}",
            "ended": "converged" if certificate.converged else "not converged",
        }
        template = files(__package__).joinpath("certificate.html").read_text(encoding="utf-8")
        return Template(template).substitute({name: escape(fact) for name, fact in facts.items()})
