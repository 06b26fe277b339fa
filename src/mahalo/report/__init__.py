"""What a learned metric looks like: one page for a browser, numbers on held-out rows, and pictures of them.

`write` makes the page and needs pandas, the extra ``mahalo[report]``; `evaluation` needs nothing beyond the library;
`figures` needs matplotlib, the extra ``mahalo[plots]``.
"""

from .page import write

__all__ = ["write"]
