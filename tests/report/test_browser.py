"""The page in a browser: nothing leaves the machine, nothing fails, and what can be clicked does what it says."""

from __future__ import annotations

import csv
import io
import shutil

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from mahalo import Constraints, MetricLearner, MetricLearnerCV
from mahalo.report import write

playwright = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser: pip install playwright")

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
FORMULA = "=HYPERLINK(1)"
HOSTILE = "</script><script>document.title='run'</script>"

MANY = np.array([f"class {k % 20:02d}" for k in range(178)])

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed: nothing to open the page in"),
]


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Pages about wine: with labels and hostile names, with pairs alone, under a kernel, and with twenty classes."""
    folder = tmp_path_factory.mktemp("pages")
    data = load_wine()
    X, y = StandardScaler().fit_transform(data.data), np.array(["barolo", HOSTILE, FORMULA])[data.target]
    ids = [f"{'=-+@'[i % 4]}{i}, {HOSTILE}" for i in range(len(X))]
    names = [HOSTILE, *data.feature_names[1:]]
    pairs = Constraints.from_labels(y, pairs_per_class=40, random_state=0)
    return {
        "labels": write(
            MetricLearnerCV(gammas=[0.1, 1.0], kernel="linear").fit(X, y), X, y, folder / "a.html", names=names, ids=ids
        ),
        "pairs": write(MetricLearner().fit(X, constraints=pairs), X, None, folder / "b.html"),
        "kernel": write(MetricLearner(kernel="rbf").fit(X, y), X, y, folder / "c.html"),
        "classes": write(MetricLearner().fit(X, MANY), X, MANY, folder / "d.html"),
    }


@pytest.fixture
def opened(browser, pages):
    """Opens a page and, at the end, looks whether anything was asked for or went wrong."""
    troubles, contexts = [], []

    def opened(name, width=1200, scheme="light"):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        own = pages[name].as_uri()
        page.on("request", lambda request: None if own == request.url.split("#")[0] else asked(request.url))
        page.goto(own)
        return page

    def asked(url):
        if not url.startswith(("data:", "blob:")):
            troubles.append(url)

    yield opened
    for context in contexts:
        context.close()
    assert not troubles


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 900, 1600])
@pytest.mark.parametrize("name", ["labels", "pairs", "kernel", "classes"])
def test_pages_fit_their_window_and_draw_everything(opened, name, width, scheme):
    page = opened(name, width, scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.title() == "A learned distance · mahalo report"
    boxes = page.query_selector_all(".chart, .map")
    assert len(boxes) >= 6
    for box in boxes:
        assert box.query_selector("svg").bounding_box()["height"] > 60
    # what sticks out of its drawing cannot be read
    outside = """() => [...document.querySelectorAll('.chart svg')].flatMap((svg) => {
        const area = svg.getBoundingClientRect();
        return [...svg.querySelectorAll('text')].filter((text) => {
            const box = text.getBoundingClientRect();
            return box.left < area.left - 1 || box.right > area.right + 1;
        }).map((text) => text.textContent);
    })"""
    assert page.evaluate(outside) == []


def test_pointing_at_a_row_finds_it_in_both_maps(opened):
    page = opened("labels")
    page.locator("#map").scroll_into_view_if_needed()
    point = page.locator('.map[data-side="before"] .point').nth(17)
    point.scroll_into_view_if_needed()
    box = point.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    rings = page.locator(".map .ring")
    assert [rings.nth(k).get_attribute("visibility") for k in (0, 1)] == ["visible", "visible"]
    status = page.locator("#map-status").inner_text()
    assert page.locator("#tip").is_visible() and page.locator("#tip").inner_text() == status
    shown = int(status.split(",")[0][1:])
    after = page.locator('.map[data-side="after"] .point').nth(shown).bounding_box()
    ring = page.locator('.map[data-side="after"] .ring').bounding_box()
    centre = [b["x"] + b["width"] / 2 for b in (after, ring)] + [b["y"] + b["height"] / 2 for b in (after, ring)]
    assert abs(centre[0] - centre[1]) < 2 and abs(centre[2] - centre[3]) < 2
    page.mouse.move(2, 2)
    assert not page.locator("#tip").is_visible()
    assert rings.first.get_attribute("visibility") == "hidden"


def test_the_keyboard_goes_from_row_to_row(opened):
    page = opened("labels")
    page.locator('.map[data-side="after"]').focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.locator("#map-status").inner_text().startswith("-1,")
    page.keyboard.press("Escape")
    assert page.locator("#map-status").inner_text().startswith("Point at a row")


def test_choosing_a_class_dims_the_others_in_both_maps(opened):
    page = opened("labels")
    chip = page.get_by_role("button", name="barolo", exact=True)
    chip.click()
    assert chip.get_attribute("aria-pressed") == "true"
    n = load_wine().target.tolist().count(0)
    for side in ("before", "after"):
        points = page.locator(f'.map[data-side="{side}"] .point')
        assert points.count() - page.locator(f'.map[data-side="{side}"] .point.off').count() == n
    chip.click()
    assert page.locator(".point.off").count() == 0


def point_at(page, k, side="after", click=False):
    """Move the mouse to the k-th point of a map, and click where asked; return the number of the row found."""
    point = page.locator(f'.map[data-side="{side}"] .point').nth(k)
    point.scroll_into_view_if_needed()
    box = point.bounding_box()
    (page.mouse.click if click else page.mouse.move)(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    return int(page.locator("#map-status").inner_text().split(" · ")[0])


def test_pointing_at_a_row_lights_its_class_where_classes_are_many(opened):
    page = opened("classes")
    assert page.locator(".map .point.none").count() == 2 * len(MANY)  # no confetti
    row = point_at(page, 17)
    lit = page.eval_on_selector_all(
        '.map[data-side="before"] .point', "points => points.map(p => p.classList.contains('lit'))"
    )
    assert lit == (MANY[row] == MANY).tolist()
    page.mouse.move(2, 2)
    assert page.locator(".point.lit").count() == 0
    for name in ("class 03", "class 11"):
        page.get_by_role("button", name=name, exact=True).click()
    n = int(np.isin(MANY, ["class 03", "class 11"]).sum())
    assert page.locator(".map .point.k0, .map .point.k1").count() == 2 * n
    assert page.locator(".map .point.off").count() == 2 * (len(MANY) - n)
    assert page.locator(".chip path.k1").count() == 1


def test_lines_join_pairs_and_can_be_left_out(opened):
    page = opened("pairs")
    lines = page.locator('.map[data-side="after"] .pair-line')
    assert lines.count() == 240 and page.locator('.map[data-side="after"] .similar-line').count() == 120
    row = point_at(page, 17)
    drawn = page.evaluate("JSON.parse(document.getElementById('data').textContent).map.pairs")
    own = sum(row in drawn[k : k + 2] for k in range(0, len(drawn), 2))
    assert lines.count() - page.locator('.map[data-side="after"] .pair-line.faded').count() == own
    page.locator('[data-pairs="dissimilar"]').uncheck()
    assert page.locator(".map .dissimilar-line.hidden").count() == 2 * 120
    assert page.locator(".map .similar-line.hidden").count() == 0


def neighbours_of(page, side):
    return page.eval_on_selector_all(
        f'[data-neighbors="{side}"] li', "items => items.map(i => [...i.children].map(c => c.textContent))"
    )


def test_a_row_lists_its_nearest_rows_before_and_after(opened):
    page = opened("kernel", width=400)
    assert not page.locator("#neighbors").is_visible()
    row = point_at(page, 17, click=True)
    assert page.locator("#neighbors-of").inner_text().startswith(str(row))
    data = page.evaluate("JSON.parse(document.getElementById('data').textContent).map")
    part, lists = slice(10 * row, 10 * row + 10), data["neighbors"]
    for side, ranks, word in (("before", "rank_after", "now"), ("after", "rank_before", "was")):
        shown = neighbours_of(page, side)
        assert [int(name) for name, _, _ in shown] == lists[side][part]
        assert [label for _, label, _ in shown] == [data["classes"][data["codes"][k]] for k in lists[side][part]]
        for rank, (other, (_, _, change)) in enumerate(zip(lists[ranks][part], shown, strict=True), 1):
            nearer_after = other < rank if side == "before" else other > rank
            assert change == ("same rank" if other == rank else f"{'▲' if nearer_after else '▼'} {word} {other}")
    entered = sum(rank > 10 for rank in lists["rank_before"][part])
    assert page.locator("#neighbors-summary").inner_text().startswith(f"{entered} of the 10 nearest rows are new")
    assert page.locator('.map[data-side="after"] .point.near').count() == 10
    page.locator('[data-neighbors="after"] button').first.click()
    assert page.locator("#neighbors-of").inner_text().startswith(str(lists["after"][10 * row]))
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_a_row_is_found_by_its_name(opened):
    page = opened("labels")
    find = page.get_by_label("Find a row")
    find.fill("+6, ")
    assert page.locator("#neighbors-of").inner_text().startswith("+6, </script>")
    assert len(neighbours_of(page, "before")) == 10 and page.title() == "A learned distance · mahalo report"
    find.fill("no such row")
    assert page.get_by_text("No row on the maps has this name.").is_visible()
    assert not page.locator("#neighbors").is_visible()
    find.fill("")
    assert not page.get_by_text("No row on the maps has this name.").is_visible()


def test_tables_are_sorted_by_clicking_their_heads(opened):
    page = opened("labels")
    head = page.locator("#doubtful-rows th", has_text="Doubt")

    def values():
        return page.eval_on_selector_all(
            "#doubtful-rows tbody tr td:nth-child(4)", "cells => cells.map(c => +c.dataset.value)"
        )

    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "descending" and values() == sorted(values(), reverse=True)
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "ascending" and values() == sorted(values())
    label = page.locator("#doubtful-rows th", has_text="Label")
    label.get_by_role("button").click()
    assert [head.get_attribute("aria-sort"), label.get_attribute("aria-sort")] == ["none", "ascending"]


def test_a_row_of_a_table_is_shown_on_the_maps(opened):
    page = opened("labels")
    button = page.locator("#doubtful-rows button.show").first
    name = button.inner_text()
    button.click()
    assert page.locator(".map .ring").first.get_attribute("visibility") == "visible"
    assert page.locator("#map-status").inner_text().startswith(name[:20])


def test_downloads_are_whole_and_no_formulas(opened):
    page = opened("labels")
    with page.expect_download() as waiting:
        page.locator('button.download[data-table="doubtful-rows"]').click()
    assert waiting.value.suggested_filename == "doubtful-rows.csv"
    text = waiting.value.path().read_bytes().decode("utf-8-sig")
    head, *rows = csv.reader(io.StringIO(text))
    assert head == ["Row", "Label", "Looks like", "Doubt", "Neighbours"]
    assert len(rows) == page.locator("#doubtful-rows tbody tr").count() > 10
    assert all(HOSTILE in row[0] and 0.0 <= float(row[3]) <= 1.0 for row in rows)
    assert not [cell for row in rows for cell in row if cell[:1] in "=+-@\t\r"]
    assert "'" + FORMULA in {row[1] for row in rows} | {row[2] for row in rows}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark_follow_the_system_and_the_button(opened, scheme):
    page = opened("pairs", scheme=scheme)

    def lightness():
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(map(int, colour[4:-1].split(","))) / 3

    assert (lightness() > 200) == (scheme == "light")
    page.locator("#theme").click()
    assert (lightness() > 200) == (scheme == "dark")
    page.emulate_media(media="print")
    assert lightness() > 200  # paper is white


def test_windows_that_change_their_width_are_drawn_anew(opened):
    page = opened("labels", width=1200)
    page.set_viewport_size({"width": 420, "height": 800})
    page.wait_for_timeout(200)
    assert page.evaluate("document.documentElement.scrollWidth") <= 420
    svg = page.locator(".chart svg").first
    assert svg.get_attribute("viewBox").split()[2] == str(round(svg.bounding_box()["width"]))
