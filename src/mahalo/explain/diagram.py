"""Diagram of a fitted estimator in notebooks, with its certificate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from importlib.resources import files
from string import Template
from typing import Protocol

from ..solvers import Certificate


class _Ended(Protocol):
    @property
    def converged(self) -> bool: ...


class CertificateDiagramMixin:
    """scikit-learn's diagram of an estimator, followed by `certificate_` once there is one."""

    @property
    def _repr_html_(self) -> Callable[[], str]:
        diagram = super()._repr_html_  # type: ignore[misc]  # AttributeError unless diagrams are displayed
        return lambda: diagram() + self._certificate_html()

    def _repr_mimebundle_(self, **kwargs: object) -> dict[str, str]:
        bundle = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        return {kind: text + self._certificate_html() * (kind == "text/html") for kind, text in bundle.items()}

    def _certificate_html(self) -> str:
        """Return a table of the certificate; empty if there is none."""
        certificate = getattr(self, "certificate_", None)
        return "" if certificate is None else certificate_table(certificate, self._certificate_rows())

    def _certificate_rows(self) -> dict[str, str]:
        """Return names and values of the rows of the certificate's table."""
        certificate: Certificate = self.certificate_  # type: ignore[attr-defined]
        duals = getattr(self, "duals_", None)
        n_constraints = "" if duals is None else f" of {len(duals):,}"
        basis = getattr(self, "certified_over_", "")
        over = f" over {basis}" if basis else ""
        return {
            "objective": f"{certificate.primal:.6g}",
            "lower bound on that of any metric" + over: f"{certificate.dual:.6g}",
            "relative gap": f"{certificate.relative_gap:.1e}",
            "violated constraints": f"{certificate.n_violated:,}{n_constraints}",
        }


def certificate_table(certificate: _Ended, rows: Mapping[str, str]) -> str:
    """Return an HTML table of escaped names and values under a caption that says how the fit ended."""
    table, row = (
        Template(files(__package__).joinpath(name).read_text(encoding="utf-8"))
        for name in ("certificate.html", "certificate_row.html")
    )
    filled = [row.substitute(name=escape(name), value=escape(value)) for name, value in rows.items()]
    ended = "converged" if certificate.converged else "not converged"
    return table.substitute(ended=ended, rows="".join(filled).rstrip("\n"))
