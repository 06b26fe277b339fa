"""Write docs/cli.md from the commands themselves: `python docs/make_cli.py`."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import typer

from mahalo.cli.app import app

PAGE = Path(__file__).parent / "cli.md"

HEAD = """# The command line

<!-- Made by docs/make_cli.py from the code; change the code, then run it. -->

`pip install ".[cli,tables,report]"` installs the command `mahalo`; [tables](tables.md) is the page to begin with.

| exit code | |
|---|---|
| 0 | done |
| 1 | a fit did not converge (its model is written all the same), or a package is missing |
| 2 | an option, a file or a value in it is wrong; one line on standard error says which and what to do |
| 130 | interrupted |

A file is written whole or not at all, and an existing one only with `--force`. Progress, with the time left, is printed
on standard error after two seconds, and added to the file that `--log` names. With `--json`, standard output is one
JSON object. `mahalo --install-completion` makes your shell complete commands and options.
"""


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE.relative_to(PAGE.parents[1]))


def page() -> str:
    """Return the page for the commands of today."""
    group: Any = typer.main.get_command(app)
    commands = [command for command in group.commands.values() if not command.hidden]
    return HEAD + "".join(_section(command) for command in commands)


def _section(command: Any) -> str:
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option" and one.name != "help"]
    usage = " ".join(["mahalo", command.name, *(f"{one.metavar}{' ...' * (one.nargs == -1)}" for one in arguments)])
    needed = "".join(f" {one.opts[0]} {one.metavar}" for one in options if one.required)
    lines = [f"\n## mahalo {command.name}\n", f"    {usage}{needed} [options]\n", inspect.cleandoc(command.help) + "\n"]
    lines += ["| | |", "|---|---|"]
    lines += [f"| `{one.metavar}` | {_text(one)} |" for one in arguments]
    lines += [f"| {_names(one)} | {_text(one)} |" for one in options]
    return "\n".join(lines) + "\n"


def _names(option: Any) -> str:
    names = [name for name in (*option.opts, *option.secondary_opts) if name.strip()]
    takes = "" if option.is_flag else f" {option.metavar}"
    return ", ".join(f"`{name}{takes}`" for name in names)


def _text(parameter: Any) -> str:
    default = parameter.default
    shown = not (default is None or isinstance(default, bool) or callable(default) or parameter.required)
    return (parameter.help or "").replace("|", "\\|") + (f" Default: `{default}`." if shown else "")


if __name__ == "__main__":
    main()
