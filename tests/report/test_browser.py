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
    """Pages about wine: with labels and hostile names, with pairs alone, and under a kernel."""
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
@pytest.mark.parametrize("name", ["labels", "pairs", "kernel"])
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
