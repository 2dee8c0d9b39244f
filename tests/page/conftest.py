"""Pages in a real browser: Chromium of the system, driven by Playwright, without a network."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

sys.path.insert(0, str(Path(__file__).parent))

from opened import PATIENCE_MS, Opened, PageOf


# A module's own: while Playwright runs, its event loop is that of this process, and no other test could start one.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start Chromium for the tests of a file."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("needs Chromium: apt install chromium")
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install --group test")
    with sync_api.sync_playwright() as playwright:
        # Chromium's sandbox refuses root.
        started = playwright.chromium.launch(executable_path=chromium, chromium_sandbox=os.geteuid() != 0)
        yield started
        started.close()


@pytest.fixture
def page_of(browser: Browser) -> Iterator[PageOf]:
    """Open a file as a reader does, in a window of its own, and watch its console and its requests."""
    contexts = []

    def opened(path: Path) -> Opened:
        context = browser.new_context(offline=True)
        contexts.append(context)
        context.set_default_timeout(PATIENCE_MS)
        result = Opened(context.new_page())
        result.page.on("console", lambda message: result.console.append(f"{message.type}: {message.text}"))
        result.page.on("pageerror", lambda error: result.console.append(f"error: {error}"))
        result.page.on("request", lambda request: result.requests.append(_short(request.url)))
        result.page.goto(path.absolute().as_uri())
        return result

    yield opened
    for context in contexts:
        context.close()


def _short(url: str) -> str:
    scheme = url.partition(":")[0]
    return f"{scheme}:" if scheme in {"data", "blob"} else url
