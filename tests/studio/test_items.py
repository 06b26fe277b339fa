"""What people see of a row, and which pictures are served."""

from __future__ import annotations

import pytest

from mahalo.studio.items import Items

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


@pytest.fixture
def folder(tmp_path):
    inside = tmp_path / "table"
    inside.mkdir()
    (inside / "a.png").write_bytes(PNG)
    (inside / "page.png").write_bytes(b"<script>alert(1)</script>")
    (inside / "a.svg").write_bytes(b"<svg/>")
    (tmp_path / "secret.png").write_bytes(PNG)
    (inside / "link.png").symlink_to(tmp_path / "secret.png")
    (inside / "b.jpg").symlink_to(inside / "a.png")
    return inside


def test_fields_are_texts_and_long_ones_are_cut():
    items = Items(2, None, {"a": [1.23456789, None], "text": ["x" * 1_000_000, "<script>"]})
    first, second = items.item(0), items.item(1)
    assert [(f.name, len(f.text), f.n_hidden) for f in first.fields] == [("a", 7, 0), ("text", 20_000, 980_000)]
    assert [f.text for f in second.fields] == ["", "<script>"] and first.id == "0"
    assert len(items.summary(0)) < 300


def test_rows_are_found_by_name_then_by_text():
    items = Items(4, ["b", "ab", "c", "B2"], {"text": ["apple", "pear", "Abacus", None]})
    assert items.find("AB") == [1, 2] and items.find("b") == [0, 1, 2, 3]
    assert items.find("  ") == [] and items.find("zzz") == []


def test_only_raster_files_in_the_folder_of_the_table_are_pictures(folder):
    names = ["a.png", "b.jpg", "page.png", "../secret.png", "link.png", str(folder.parent / "secret.png"), "none.png"]
    items = Items(len(names), None, {"picture": names}, folder=folder)
    served = [items.picture(row) for row in range(len(names))]
    assert [found is not None for found in served] == [True, True, False, False, False, False, False]
    assert served[0].data == PNG and served[1].media_type == "image/png"
    assert items.item(0).has_picture and items.item(0).fields == ()  # the name of the file says nothing
    assert Items(1, None, {"picture": ["a.svg"]}, folder=folder).picture(0) is None
    assert Items(1, None, {"picture": ["a\0.png"]}, folder=folder).picture(0) is None
    with pytest.raises(ValueError, match="row must be a number from 0 to 6; got 7"):
        items.picture(7)
