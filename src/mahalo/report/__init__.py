"""Reports: one HTML page about a learned metric, and displays in the manner of scikit-learn's.

`write` makes the page and needs jinja2 and pandas, the extra ``mahalo[report]``. `MetricDisplay` and
`ReliabilityDisplay` need matplotlib, the extra ``mahalo[plots]``.
"""

from .page import write

__all__ = ["write"]
