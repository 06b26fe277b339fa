"""The page in a browser: keys and clicks, what is drawn, what is never run, and that nothing leaves the machine."""

from __future__ import annotations

import shutil

import pytest
from people import planted

pytest.importorskip("starlette", reason="the studio is served by starlette: pip install 'mahalo[studio]'")
from serving import HOSTILE, make_studio, served

playwright = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser: pip install playwright")

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]

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


@pytest.fixture
def opened(browser, tmp_path):
    """Serve a studio and open its page; at the end look whether anything went wrong or was asked of others."""
    troubles, closing = [], []

    def visit(context, address):
        page = context.new_page()
        own = address.split("/open")[0]
        page.on("console", lambda message: troubles.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", lambda request: None if request.url.startswith(own) else troubles.append(request.url))
        page.goto(address)
        page.wait_for_selector("body[data-ready]", timeout=60_000)
        return page

    def open_page(width=1280, scheme="light", **options):
        studio, y = make_studio(tmp_path, **options)
        serving = served(studio)
        address = serving.__enter__()
        closing.append(lambda: serving.__exit__(None, None, None))
        context = browser.new_context(viewport={"width": width, "height": 860}, color_scheme=scheme)
        closing.append(context.close)
        page = visit(context, address)
        page.studio, page.y, page.visit_again = studio, y, lambda: visit(context, address)
        return page

    yield open_page
    for close in reversed(closing):
        close()
    assert not troubles


def rows_shown(page):
    return [int(row) for row in page.locator("#items").get_attribute("data-rows").split(",")]


def answer(page, key, click=False):
    old = page.locator("#items").get_attribute("data-id")
    if click:
        page.locator(click).click()
    else:
        page.keyboard.press(key)
    page.wait_for_function("old => document.getElementById('items').dataset.id !== old", arg=old, timeout=60_000)


def answer_right(page, n, y=None):
    y = page.y if y is None else y
    for _ in range(n):
        i, j = rows_shown(page)
        answer(page, "s" if y[i] == y[j] else "d")


def test_keys_and_buttons_answer_and_undo(opened):
    page = opened()
    session = page.studio.session
    first = rows_shown(page)
    answer(page, "s")
    answer(page, "d")
    answer(page, " ")
    answer(page, None, click="[data-answer=second]")
    given = [(entry.kind, entry.answer) for entry in session.log.entries]
    assert given == [("pair", "same"), ("pair", "different"), ("pair", "skip"), ("pair", "different")]
    assert list(session.log.entries[0].rows) == first
    last = list(session.log.entries[-1].rows)
    answer(page, "u")
    assert session.log.entries[-1].kind == "undo" and rows_shown(page) == last
    answer(page, "s")
    assert session.answers().pairs[-1].same is True and len(session.answers().pairs) == 3
    page.locator("#find-text").evaluate("e => { document.getElementById('tab-neighbors').click(); e.focus(); }")
    page.keyboard.type("sd u")
    assert len(session.log.entries) == 6  # keys in a field answer nothing


def test_triplets_are_asked_by_the_page(opened):
    page = opened(kinds=("triplet",))
    assert len(rows_shown(page)) == 3 and "more like" in page.locator("#prompt").inner_text()
    answer(page, "s")
    assert page.studio.session.log.entries[0].answer == "first"


def test_answers_reach_the_map_the_counts_and_the_curve(opened):
    page = opened()
    answer_right(page, 31)
    page.wait_for_function("() => document.getElementById('counts').dataset.consolidated === '30'", timeout=60_000)
    page.wait_for_function("() => document.querySelectorAll('#weights tr').length === 12", timeout=60_000)
    n = page.studio.session.answers().n_answers  # a question that was asked again counts once
    page.wait_for_function("(n) => document.getElementById('counts').dataset.answers === n", arg=str(n), timeout=60_000)
    assert f"{n} (" in page.locator("#counts").inner_text() and "optimal" in page.locator("#counts").inner_text()
    page.select_option("#colour", "group")
    page.wait_for_function("() => document.querySelector('#legend li')?.textContent === 'group 1'")
    page.wait_for_function("() => document.getElementById('map-status').textContent === '120 rows'")
    drawn = page.evaluate("window.studio.frames.drawn")
    page.locator("#blend").fill("0")
    page.wait_for_function("n => window.studio.frames.drawn > n + 2", arg=drawn)
    coloured = """() => { const c = document.getElementById('map');
        const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
        const p = new Uint32Array(d.buffer); return p.filter((pixel) => pixel !== p[0]).length; }"""
    assert page.evaluate(coloured) > 500


def test_a_row_on_the_map_shows_its_neighbours_and_clicks_become_triplets(opened):
    page = opened()
    answer_right(page, 15)
    page.locator("#tab-neighbors").click()
    page.fill("#find-text", "text of row 7")
    page.press("#find-text", "Enter")
    page.locator("#found button").first.click()
    page.wait_for_selector(".sides ol li")
    assert page.locator(".sides ol").first.locator("li").count() == 10
    page.locator(".sides ol").nth(1).locator("li").nth(3).get_by_role("button", name="does not belong").click()
    page.wait_for_function("() => document.getElementById('status').textContent.startsWith('Noted')")
    entry = page.studio.session.log.entries[-1]
    assert entry.kind == "triplet" and entry.rows[0] == 7
    page.locator("#map").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_function(
        "() => document.querySelector('#neighbors strong').textContent !== '=row7: text of row 7 · short'"
    )


def test_hostile_cells_are_shown_and_not_run(opened):
    page = opened()
    page.locator("#tab-neighbors").click()
    page.fill("#find-text", "<script>")
    page.press("#find-text", "Enter")
    page.wait_for_selector(".sides ol li")
    assert HOSTILE in page.locator("#neighbors strong").inner_text() and page.title() == "mahalo studio"
    shown = page.evaluate("""async () => { const { itemBox } = await import('/static/question.js');
        const item = await (await fetch('/api/item/1')).json(); return itemBox(item).textContent; }""")
    assert "\x1b" not in shown and "\u202e" not in shown and "\u241b" in shown
    long = page.evaluate("""async () => { const { itemBox } = await import('/static/question.js');
        const item = await (await fetch('/api/item/2')).json(); return itemBox(item).textContent.length; }""")
    assert long < 30_000


def test_two_pages_share_a_log_without_doubles(opened):
    page = opened()
    other = page.visit_again()
    for k in range(6):
        answer(page, "s" if k % 2 else "d")
        answer(other, "d")
    entries = page.studio.session.log.entries
    assert len(entries) == 12 == len({entry.id for entry in entries})


def test_doubtful_labels_are_walked_through(opened):
    X, y = planted(150)
    y = y.copy()
    y[[5, 40, 77]] = (y[[5, 40, 77]] + 1) % 4
    page = opened(X=X, y=y)
    page.locator("#tab-labels").click()
    page.wait_for_selector("#labels .primary", timeout=120_000)
    found = {entry.row for entry in page.studio.doubtful.found}
    assert len(found & {5, 40, 77}) >= 2
    page.locator("#labels .primary").click()
    page.wait_for_function("() => document.getElementById('labels-status').textContent.includes('1 changed')")
    page.locator("#correct").click()
    page.wait_for_selector("#corrected a")
    row = page.studio.session.log.entries[-1].rows[0]
    changed = page.studio.session.log.entries[-1].label
    lines = (page.studio.out / "corrected.csv").read_text().splitlines()
    assert next(line for line in lines if line.startswith(f"'=row{row},")).endswith(changed)


def test_everything_is_taken_home(opened):
    page = opened(n=60)
    answer_right(page, 10)
    page.locator("#tab-home").click()
    page.locator("#export").click()
    page.wait_for_selector("#exported pre", timeout=120_000)
    with page.expect_download() as download:
        page.get_by_role("link", name="answers.csv").click()
    assert download.value.path().read_text().startswith("left,right,same\n'=row")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1024, 1600])
def test_pages_fit_their_window_and_axe_finds_no_serious_fault(opened, width, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe looks for faults of accessibility")
    page = opened(width, scheme)
    answer_right(page, 6)
    whole = "() => [...document.querySelectorAll('.item:not(.long)')].every((e) => e.scrollHeight <= e.clientHeight)"
    assert page.evaluate(whole)  # no column is hidden below the edge of a card
    for tab in ("ask", "neighbors", "labels", "home"):
        page.locator(f"#tab-{tab}").click()
        if tab == "neighbors":
            page.fill("#find-text", "text of row 7")
            page.press("#find-text", "Enter")
            page.wait_for_selector("#found button")
            page.locator("#found button").first.click()
            page.wait_for_selector(".sides ol li")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        found = axe.Axe().run(page).response["violations"]
        serious = [f["id"] + ": " + f["nodes"][0]["html"] for f in found if f["impact"] in ("serious", "critical")]
        assert serious == []
