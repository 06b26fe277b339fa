"""Runs one fit of metric-learn: `python peer_runner.py job.npz result.npz`, in the peer's environment.

The job holds arrays and, under "job", a JSON object with `algorithm`, `params`, `repeats` and `time_limit`;
the result holds the learned matrix (or transformation), the seconds of each fit, its sweeps, and whether the
time limit stopped it. Nothing of mahalo is imported: it is not installed there.

On bounds: metric-learn documents `bounds` as distances, but compares them with vᵀAv, the *squared* learned
distance (itml.py, `wtw`). So squared bounds are passed as they are, and both libraries solve one problem.
"""

import json
import signal
import sys
import time
import warnings
from importlib.metadata import version

import numpy as np


class TimeUp(Exception):
    pass


def _raise_time_up(signum, frame):
    raise TimeUp


def stopped_after(seconds, task):
    """Run task(); returns (elapsed, None), or (elapsed, traceback) if it was stopped by the time limit."""
    signal.signal(signal.SIGALRM, _raise_time_up)
    start = time.perf_counter()
    try:
        if seconds is not None:
            signal.setitimer(signal.ITIMER_REAL, seconds)
        task()
        return time.perf_counter() - start, None
    except TimeUp as stop:
        return time.perf_counter() - start, stop.__traceback__
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def local_variables(traceback, function):
    """Variables of the innermost call of `function` that the traceback went through; {} if there was none."""
    found = {}
    while traceback is not None:
        if traceback.tb_frame.f_code.co_name == function:
            found = traceback.tb_frame.f_locals
        traceback = traceback.tb_next
    return found


def itml(arrays, params, time_limit):
    from metric_learn import ITML

    model = ITML(**params)
    pairs = arrays["X"][arrays["pairs"]]
    sign, bounds = arrays["sign"].astype(int), arrays["bounds"].copy()
    seconds, stopped = stopped_after(time_limit, lambda: model.fit(pairs, sign, bounds=bounds))
    # The signal handler runs between bytecodes, so A is never half updated.
    state = local_variables(stopped, "_fit")
    if "A" in state:
        return {
            "matrix": state["A"].copy(),
            "seconds": seconds,
            "sweeps": state.get("it", 0),
            "stopped": True,
        }
    # n_iter_ is the index of the last sweep, not their number.
    return {
        "matrix": model.get_mahalanobis_matrix(),
        "seconds": seconds,
        "sweeps": model.n_iter_ + 1,
        "stopped": False,
    }


def lmnn(arrays, params, time_limit):
    from metric_learn import LMNN

    model = LMNN(**params)
    seconds, stopped = stopped_after(time_limit, lambda: model.fit(arrays["X"], arrays["y"]))
    state = local_variables(stopped, "fit")
    return {
        "matrix": state.get("L", model.components_),
        "seconds": seconds,
        "sweeps": state.get("it", getattr(model, "n_iter_", 0)),
        "stopped": stopped is not None,
    }


ALGORITHMS = {"itml": itml, "lmnn": lmnn}


def run(arrays, job):
    fit = ALGORITHMS[job["algorithm"]]
    results = [fit(arrays, job["params"], job["time_limit"]) for _ in range(job["repeats"])]
    return results[-1] | {"seconds": np.array([result["seconds"] for result in results])}


def main(job_path, result_path):
    warnings.simplefilter("ignore")  # metric-learn uses names that scikit-learn is about to retire
    with np.load(job_path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files if name != "job"}
        job = json.loads(str(file["job"]))
    versions = {name: version(name) for name in ("metric-learn", "scikit-learn", "numpy", "scipy")}
    np.savez(result_path, versions=json.dumps(versions), **run(arrays, job))


if __name__ == "__main__":
    main(*sys.argv[1:])
