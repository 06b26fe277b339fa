"""Options of several commands, declared once; nothing here takes time to import."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_type_hints

import typer
from typer.models import ArgumentInfo, OptionInfo

from ..tables.options import RowOptions
from ..workflows.options import LearningOptions
from .input_files import replace_standard_input

if TYPE_CHECKING:
    from .progress import ProgressDisplay

_ROWS, _LEARNING, _RESULT = "Rows", "Learning", "Output"
_KINDS = ".csv, .tsv, .parquet, .jsonl, .npy, .npz or .svm"


def _option(
    panel: str, metavar: str | None, help: str, *names: str, min: int | None = None, show_default: bool = True
) -> OptionInfo:
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=panel, min=min, show_default=show_default)


_row_option, _learning_option = partial(_option, _ROWS), partial(_option, _LEARNING)
result_option = partial(_option, _RESULT)


Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A file that `mahalo fit` or `metric.save` wrote.")]

_DATA = f"Rows: {_KINDS}; files, a folder, a glob in quotes"

# Options of `RowOptions`, by field.
_ROW_OPTIONS: dict[str, OptionInfo | ArgumentInfo] = {
    "data": typer.Argument(metavar="DATA", help=f"{_DATA}; - is standard input."),
    "label": _row_option("COLUMN", "Class column; unlabelled: empty, or −1 among numbers."),
    "labels": _row_option("FILE", "Classes, one a row: .npy, .txt or a table."),
    "id": _row_option("COLUMN", "Column that names rows."),
    "ids": _row_option("FILE", "Row names, one a row: .npy, .txt or a table."),
    "columns": _row_option("A,B,…", "Learn from these columns only; may be repeated.", "--columns"),
    "drop": _row_option("A,B,…", "Leave these columns out; may be repeated."),
    "text": _row_option(
        "A,B,…", "Learn from the texts in these columns, joined, and of others from `--columns` alone.", "--text"
    ),
    "encoder": _row_option("PATH", "Folder of the model that encodes texts. Default: wordllama."),
    "one_hot": _row_option("A,B,…", "A 0/1 column for each value of these; may be repeated.", "--one-hot"),
    "pairs": _row_option(
        "FILE", "Pairs of rows, by number from 0 or by id: two columns, and `same` or `label` (1 or 0) or `grade`."
    ),
    "triplets": _row_option(
        "FILE", "Triplets, three columns: the first row is more similar to the second than to the third."
    ),
    "impute": _row_option(
        "NAME", "Fill missing numbers by mean, median or knn of these rows; the model fills those of new rows."
    ),
    "encoding": _row_option("NAME", "Encoding of .csv, .tsv and .txt files, such as latin-1."),
    "sep": _row_option("CHAR", "Character between columns of .csv, .tsv and .txt, or tab, semicolon, pipe, space."),
    "json_lines": _row_option(
        None, "Standard input, and files of names without a known suffix, are JSON lines.", "--json-lines"
    ),
}
NOT_LEARNING = (
    "label",
    "labels",
    "columns",
    "drop",
    "one_hot",
    "text",
    "pairs",
    "triplets",
    "impute",
)  # rows for a fitted model


# Options of `LearningOptions`, by field.
_LEARNING_OPTIONS: dict[str, OptionInfo | ArgumentInfo] = {
    "embeddings": _learning_option(None, "Rows are vectors of an encoder, whose name is `--encoder`.", "--embeddings"),
    "standardise": _learning_option(
        None,
        "Keep the units of columns. Else they get mean 0 and deviation 1, unless embeddings or sparse.",
        " /--no-standardise",
        show_default=False,
    ),
    "gamma": _learning_option("NUMBER", "Weight of the constraints. Default: chosen by cross-validation."),
    "prior": _learning_option(
        "NAME", "Metric to start from: identity, diagonal, covariance or within. Default: chosen."
    ),
    "kernel": _learning_option(
        "NAME", "auto: all spaces are tried. Or linear, rbf, poly, cosine, … as in scikit-learn."
    ),
    "components": _learning_option("N", "Number of directions of the metric.", min=1),
    "holdout": _learning_option("NAME", "Choose and evaluate by held-out `rows`, or by unseen `classes`."),
    "scoring": _learning_option(
        "NAME", "Choose by accuracy, auc, map, precision@k or recall@k of held-out rows. Default: by the data."
    ),
    "seed": _learning_option("N", "Seed of folds, and of pairs that are drawn.", min=0),
}
_OPTIONS = {RowOptions: _ROW_OPTIONS, LearningOptions: _LEARNING_OPTIONS}


@dataclass(frozen=True)
class OutputOptions:
    """Form of the results, and the log."""

    force: Annotated[bool, result_option(None, "Write over a file that exists.", "--force")] = False
    json: Annotated[bool, result_option(None, "Print JSON on standard output.", "--json")] = False
    log: Annotated[Path | None, result_option("FILE", "Add progress and warnings to this file.")] = None

    @contextmanager
    def start(
        self, inputs: Sequence[str | Path | None], out: Path | None = None, suffixes: Sequence[str] | None = None
    ) -> Iterator[ProgressDisplay]:
        """Raise if `out` cannot be written; inside the block, show progress and warnings.

        `inputs` are the files of the command, which neither `out` nor the log may be; `suffixes` are those of `out`, by
        default of tables and arrays.
        """
        from ..tables.output_files import check_output
        from .progress import progress_display

        if out is not None:
            check_output(out, self.force, suffixes, inputs=inputs)
        with progress_display(self.log, inputs) as display:
            yield display


def expand_options(
    omit: Collection[str] = (), *, standard_input: bool = True
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator for commands whose parameters of the types above become one option for each field.

    Fields in `omit` are no options of the command and have their default. Unless `standard_input` is False, `-` is a
    file of standard input.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        parameters: list[inspect.Parameter] = []
        groups: dict[str, tuple[type, list[str]]] = {}
        hints = get_type_hints(command, include_extras=True)
        for parameter in inspect.signature(command).parameters.values():
            group = hints[parameter.name]
            if not (isinstance(group, type) and dataclasses.is_dataclass(group)):
                parameters.append(parameter.replace(annotation=group, kind=parameter.KEYWORD_ONLY))
                continue
            taken = {name: option for name, option in _parameters(group).items() if name not in omit}
            if "data" in taken and not standard_input:
                files = Annotated[list[str], typer.Argument(metavar="DATA", help=f"{_DATA}.")]
                taken["data"] = taken["data"].replace(annotation=files)
            groups[parameter.name] = (group, list(taken))
            parameters += taken.values()

        def run(**written: object) -> None:
            with replace_standard_input(written, allowed=standard_input) as values:
                made = {}
                for name, (group, names) in groups.items():
                    own = {field: values.pop(field) for field in names}
                    made[name] = group(**{field: value for field, value in own.items() if value is not None})
                command(**made, **values)

        run.__name__, run.__doc__, run.__module__ = command.__name__, command.__doc__, command.__module__
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorate


@cache
def _parameters(group: type) -> dict[str, inspect.Parameter]:
    """Return the parameters of a command for the fields of a group; a sequence is None where it is not written."""
    hints, options = get_type_hints(group, include_extras=True), _OPTIONS.get(group, {})
    parameters = {}
    for field in dataclasses.fields(group):
        name, annotation, default = field.name, hints[field.name], field.default
        if annotation == Sequence[str]:
            annotation, default = (list[str], inspect.Parameter.empty) if name == "data" else (list[str] | None, None)
        if name in options:
            annotation = Annotated[annotation, options[name]]
        parameters[name] = inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
        )
    return parameters


def options_on_command_line(context: typer.Context) -> dict[str, str]:
    """Return the options that the user wrote, by the name of their parameter."""
    found = {}
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name and source is not None and source.name == "COMMANDLINE":
            found[parameter.name] = [*parameter.opts, *parameter.secondary_opts][-1]
    return found


def with_texts(rows: RowOptions, learning: LearningOptions) -> LearningOptions:
    """Return the settings for the vectors of texts if rows are texts, else unchanged."""
    if not rows.text:
        return learning
    if learning.embeddings:
        raise ValueError("--text encodes sentences, --embeddings takes vectors that are encoded already; give one.")
    if rows.drop:
        raise ValueError(
            f"--text learns from its columns and those of --columns; leave --drop {','.join(rows.drop)} out."
        )
    return dataclasses.replace(learning, embeddings=True)
