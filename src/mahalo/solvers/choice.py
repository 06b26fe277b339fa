from functools import partial

from ..losses import LogDet
from .bregman import bregman
from .dual import dual
from .newton import newton


def solve(problem, method="auto", *, tol=1e-4, max_iter=None, start=None, on_step=None):
    logdet = type(problem.loss) is LogDet and problem.tilt is None
    if method == "auto":
        method = "newton" if logdet and not problem.hard else "dual"
    elif method != "dual" and not logdet:
        what = "a linear objective" if type(problem.loss) is LogDet else f"the loss {type(problem.loss).__name__}"
        raise ValueError(f"solver={method!r} cannot do {what}; use solver='dual' or 'auto'.")
    elif method == "newton" and problem.hard:
        raise ValueError("solver='newton' needs a finite gamma; for hard constraints use solver='dual' or 'auto'.")
    f = {
        "newton": newton,
        "dual": dual,
        "bregman": partial(bregman, on_kernel=problem.forms.n_rows <= min(200, problem.rank + 1)),
    }[method]
    return f(problem, tol=tol, max_iter=max_iter, start=start, on_step=on_step)
