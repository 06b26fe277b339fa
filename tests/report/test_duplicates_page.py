"""The page of duplicates shows texts as text, and its style is the one that its policy allows."""

from __future__ import annotations

import base64
import hashlib
import re

import numpy as np

from mahalo.dedupe import Duplicates
from mahalo.report.duplicates import write_duplicates_page

HOSTILE = "</style><script>document.title='run'</script>"


def test_the_page_has_its_style_and_escapes_what_rows_say(tmp_path):
    found = Duplicates(
        pairs=np.array([[0, 2], [1, 3]]),
        probability=np.array([0.99, 0.8]),
        groups=np.array([0, 1, 0, 1, -1]),
        other_groups=None,
        threshold=0.5,
        expected_precision=0.895,
        n_candidates=4,
    )
    texts = ["a", HOSTILE, "b", "c\x00", "alone"]
    page = write_duplicates_page(tmp_path / "page.html", found, texts, texts).read_text(encoding="utf-8")
    style = re.search(r"<style>(.*?)</style>", page, re.S)[1]
    allowed = re.search(r"style-src 'sha256-([^']+)'", page)[1]
    assert base64.b64encode(hashlib.sha256(style.encode()).digest()).decode() == allowed
    assert ".pair > * {" in style and "<script" not in page and "alone" not in page
    rows = re.findall(r"<td>(\w+)</td><td>(.*?)</td>", page)
    assert [name for name, _ in rows] == ["1", "3", "0", "2"]  # the least probable group first
    assert rows[0][1] == HOSTILE.replace("<", "&lt;").replace(">", "&gt;").replace("'", "&#39;")
    assert rows[1][1] in ("c", "c\N{REPLACEMENT CHARACTER}") and "\x00" not in page
