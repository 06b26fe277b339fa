"""Panels of a learned metric, for figures and for pages: maps, histograms, spectra, convergence, scores.

`overview` and the ``draw_`` functions draw with matplotlib, the extra ``mahalo[plots]``. The data classes of `charts`
are what the script of a page draws as SVG; `chart_assets` returns that script and its style. Both kinds of panels show
the same numbers: `neighbor_maps`, `pair_histograms` and `learned_spectrum` compute them once.
"""

from .charts import as_json, chart_assets
from .figure import new_figure, require_matplotlib, save
from .histogram import PairHistogram, pair_histograms
from .maps import aligned_plane, neighbor_maps, neighbor_plane
from .panels import (
    Convergence,
    draw_convergence,
    draw_distances,
    draw_maps,
    draw_path,
    draw_reliability,
    draw_scores,
    draw_spectrum,
    overview,
)
from .spectrum import Spectrum, learned_spectrum

__all__ = ["overview", "save"]
