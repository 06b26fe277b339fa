"""Write what the README's Python prints below it: `python docs/make_output.py`."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
START, END = "<!-- output:start -->", "<!-- output:end -->"


def main() -> None:
    README.write_text(page(), encoding="utf-8")
    print(README.name)


def page() -> str:
    """Return the README with the output of a new run between its marks."""
    text = README.read_text(encoding="utf-8")
    shown(text)
    block = f"{START}\n```text\n{printed(text)}```\n{END}"
    return re.sub(f"{START}.*?{END}", lambda _: block, text, flags=re.S)


def shown(text: str) -> str:
    """Return what stands between the marks of a page; raise ValueError unless they are there once."""
    found = re.findall(f"{START}\n(.*?){END}", text, flags=re.S)
    if len(found) != 1:
        raise ValueError(f"a page must have {START} and {END} once; got {len(found)} of them: mark where output goes")
    return found[0].removeprefix("```text\n").removesuffix("```\n")


def printed(text: str) -> str:
    """Run the Python blocks of a page as one program and return what they print."""
    out = io.StringIO()
    namespace: dict = {}
    with contextlib.redirect_stdout(out):
        for block in re.findall(r"^```python\n(.*?)^```", text, flags=re.M | re.S):
            exec(compile(block, README.name, "exec"), namespace)
    return out.getvalue()


if __name__ == "__main__":
    main()
