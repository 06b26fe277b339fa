"""Callbacks of scikit-learn 1.9 and later, which are called for the tasks of a fit: stages, folds, solver steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from .progress import NO_TASK, Progress, Show, Task, progress_for

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator
    from sklearn.callback import CallbackContext

try:
    from sklearn.callback import CallbackSupportMixin
    from sklearn.callback import with_callbacks as _with_callbacks
except ImportError:  # scikit-learn before 1.9
    CallbackSupportMixin, _with_callbacks = object, None

Fit = TypeVar("Fit", bound=Callable)


def with_callbacks(fit: Fit) -> Fit:
    """Decorate the `fit` of a class with `CallbackMixin`: callbacks are torn down when it returns or raises."""
    return fit if _with_callbacks is None else _with_callbacks(fit)


class FitTask:
    """Task of a fit for which callbacks are called. Its subtasks follow each other: a new one ends the one before."""

    def __init__(self, estimator: BaseEstimator, context: CallbackContext) -> None:
        self._estimator, self._context = estimator, context
        self._subtask: FitTask | None = None
        self.has_ended = False

    def begin(self, name: str, n_subtasks: int | None = 0) -> FitTask:
        """Begin a subtask and return it; `n_subtasks` None means that their number is not known."""
        self.end_subtask()
        context = self._context.subcontext(task_name=name, max_subtasks=n_subtasks)
        context.call_on_fit_task_begin(estimator=self._estimator)
        self._subtask = FitTask(self._estimator, context)
        return self._subtask

    def end(self) -> bool:
        """End the task, after its last subtask; return True if a callback asks to stop what the task is a step of."""
        self.end_subtask()
        self.has_ended = True
        return bool(self._context.call_on_fit_task_end(estimator=self._estimator))

    def end_subtask(self) -> None:
        """End the last subtask if it has not ended."""
        if self._subtask is not None and not self._subtask.has_ended:
            self._subtask.end()

    @contextmanager
    def nested_fit(self, estimator: BaseEstimator, name: str) -> Iterator[None]:
        """Make the fit of another estimator, in the block, a subtask; callbacks that propagate follow it."""
        self.end_subtask()
        context = self._context.subcontext(task_name=name)
        with context.propagate_callback_context(estimator):
            context.call_on_fit_task_begin(estimator=self._estimator)
            yield
            context.call_on_fit_task_end(estimator=self._estimator)


class CallbackMixin(CallbackSupportMixin):
    """Progress of a fit, as lines of text for `verbose` and as tasks for the callbacks of `set_callbacks`."""

    verbose: int | Show

    @contextmanager
    def _fit_progress(self, X: object, y: object = None, **metadata: object) -> Iterator[Progress]:
        """Yield the reporter of a fit."""
        with self._fit_task(X, y, **metadata) as task, progress_for(self.verbose, task) as progress:
            yield progress

    @contextmanager
    def _fit_task(self, X: object, y: object = None, **metadata: object) -> Iterator[Task]:
        """Yield the task of a fit, which ends with the block; `metadata` that are None are left out."""
        if _with_callbacks is None:
            yield NO_TASK
            return
        given: dict[str, Any] = {name: value for name, value in metadata.items() if value is not None}
        known = {"estimator": self, "X": X, "y": y, "metadata": given or None}
        context = self._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(**known)
        task = FitTask(self, context)
        yield task
        task.end_subtask()
        context.call_on_fit_task_end(**known, reconstruction_attributes={})  # the estimator itself is fitted by now
