"""Draw the pictures of docs/studio.md in Chromium: `python docs/make_studio_pictures.py [folder]`.

A simulated person answers 80 questions about handwritten digits; the last picture of the series is also the README's.
With a folder, the page is also taken at three widths, light and dark, to be looked at.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright
from sklearn.datasets import load_digits

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "studio"))

from serving import served

from mahalo.studio import Session
from mahalo.studio.items import Items
from mahalo.studio.server.studio import Studio
from mahalo.studio.studio_table import StudioTable

IMAGES = Path(__file__).parent / "images"
SHOWN = (0, 20, 80)  # answers after which a picture is taken
WIDTH, HEIGHT = 1280, 800


def main() -> None:
    digits = load_digits()
    with sync_playwright() as play, tempfile.TemporaryDirectory() as work:
        browser = play.chromium.launch(
            executable_path=shutil.which("chromium"),
            args=["--no-sandbox", "--disable-gpu", "--force-device-scale-factor=1"],
        )
        with opened(browser, Path(work), digits, WIDTH, "light") as page:
            frames = []
            for k in range(SHOWN[-1] + 1):
                if k in SHOWN:
                    settle(page, k)
                    frames.append(page.screenshot())
                if k < SHOWN[-1]:
                    answer(page, digits.target)
            for k, frame in zip(SHOWN, frames, strict=True):
                save(IMAGES / f"studio-{k}.png", frame)
        for folder in map(Path, sys.argv[1:]):
            for scheme in ("light", "dark"):
                for width in (400, 1024, 1600):
                    with opened(browser, Path(work), digits, width, scheme) as page:
                        settle(page, SHOWN[-1])
                        for tab in ("ask", "neighbors", "labels", "home"):
                            page.locator(f"#tab-{tab}").click()
                            page.wait_for_timeout(1500)
                            page.screenshot(path=folder / f"{tab}-{width}-{scheme}.png", full_page=width == 400)
        browser.close()


@contextlib.contextmanager
def opened(browser: Browser, work: Path, digits: object, width: int, scheme: str) -> Iterator[Page]:
    """Serve the digits, with their pictures, and open the page."""
    images, X, y = digits.images, digits.data / 16.0, digits.target  # type: ignore[attr-defined]
    names = [f"digit-{k}.png" for k in range(len(X))]
    for name, image in zip(names, images, strict=True):
        if not (work / name).exists():
            pixels = 255 - np.uint8(np.minimum(255, 16 * image))
            Image.fromarray(pixels).resize((96, 96), Image.Resampling.NEAREST).save(work / name)
    items = Items(len(X), [f"digit {k}" for k in range(len(X))], {"picture": names}, [str(label) for label in y], work)
    studio = Studio(Session(X, log=work / "answers.jsonl"), StudioTable(items, source="digits.csv"), work / "home")
    with served(studio) as address:
        page = browser.new_page(viewport={"width": width, "height": HEIGHT}, color_scheme=scheme)  # type: ignore[arg-type]
        page.goto(address)
        page.wait_for_selector("body[data-ready]", timeout=120_000)
        yield page
        page.close()


def settle(page: Page, n: int) -> None:
    """Wait until the page shows what was learned from n answers, and the map of it."""
    page.wait_for_function(f"() => document.getElementById('counts').dataset.consolidated === '{n}'", timeout=120_000)
    page.wait_for_function(f"() => document.getElementById('counts').dataset.map === '{n}'", timeout=120_000)
    page.wait_for_timeout(2_000)


def answer(page: Page, y: np.ndarray) -> None:
    """Answer the question that is shown by its labels."""
    box = page.locator("#items")
    old = box.get_attribute("data-id")
    i, j = map(int, str(box.get_attribute("data-rows")).split(","))
    page.keyboard.press("s" if y[i] == y[j] else "d")
    page.wait_for_function("(old) => document.getElementById('items').dataset.id !== old", arg=old, timeout=60_000)


def save(path: Path, picture: bytes) -> None:
    """Write a PNG with a palette of 128 colours."""
    small = Image.open(BytesIO(picture)).convert("RGB").quantize(colors=128, dither=Image.Dither.NONE)
    small.save(path, format="png", optimize=True)


if __name__ == "__main__":
    main()
