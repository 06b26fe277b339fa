"""Learn a distance from what you know about your data, solved to the optimum and certified."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .version import VERSION

if TYPE_CHECKING:
    from .constraints import Constraints
    from .errors import InfeasibleError, NothingToLearnError, NotPositiveDefiniteError
    from .learner import MetricLearner
    from .metric import Metric, load
    from .online import OnlineMetricLearner
    from .report.display import MetricDisplay
    from .report.reliability import ReliabilityDisplay
    from .selection import MetricLearnerCV, MetricPath, metric_path
    from .selection.method_comparison import compare

__all__ = [
    "Constraints",
    "InfeasibleError",
    "Metric",
    "MetricDisplay",
    "MetricLearner",
    "MetricLearnerCV",
    "MetricPath",
    "NotPositiveDefiniteError",
    "NothingToLearnError",
    "OnlineMetricLearner",
    "ReliabilityDisplay",
    "compare",
    "load",
    "metric_path",
]

__version__ = VERSION

# Names are fetched when they are first asked for, so that `mahalo --help` need not wait for scikit-learn.
_ROOMS = {
    "constraints": ("Constraints",),
    "errors": ("InfeasibleError", "NothingToLearnError", "NotPositiveDefiniteError"),
    "learner": ("MetricLearner",),
    "metric": ("Metric", "load"),
    "online": ("OnlineMetricLearner",),
    "selection.method_comparison": ("compare",),
    "report.display": ("MetricDisplay",),
    "report.reliability": ("ReliabilityDisplay",),
    "selection": ("MetricLearnerCV", "MetricPath", "metric_path"),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}
# Rooms that need no import of their own either: mahalo.basis.BetweenBasis.
_BROUGHT = frozenset(
    {"basis", "coordinates", "kernels", "linalg", "losses", "persistence", "priors", "progress", "rows"}
    | {"evaluation", "explain", "solvers", "task", "validation", *(room for room in _ROOMS if "." not in room)}
    | {"active", "cluster", "compat", "dedupe", "embeddings", "feedback", "pairs", "report", "search"}
)


def __getattr__(name: str) -> Any:
    if name in _ROOM_OF:
        value = getattr(import_module(f".{_ROOM_OF[name]}", __name__), name)
    elif name in _BROUGHT:
        value = import_module(f".{name}", __name__)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_BROUGHT})
