"""A real Chromium without a display, and one page of the live view in it."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import (
    Browser,
    BrowserType,
    ConsoleMessage,
    Page,
    expect,
    sync_playwright,
)

from cua_gym.bridge.serve import Served

PATIENCE_MS = 20_000


@contextmanager
def chromium() -> Iterator[Browser]:
    """The distribution's Chromium."""
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright, launched(playwright.chromium) as browser:
        yield browser


@contextmanager
def launched(kind: BrowserType) -> Iterator[Browser]:
    """A process of its own; one thread has one Playwright and any number of these."""
    path = shutil.which("chromium")
    assert path is not None, "the package chromium is absent; scripts/setup --test installs it"
    # Its sandbox does not work for root.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    browser = kind.launch(executable_path=path, args=arguments)
    try:
        yield browser
    finally:
        browser.close()


@contextmanager
def open_view(browser: Browser, served: Served, **options: Any) -> Iterator[Page]:
    """The page, showing the screen; whatever it complains of fails the test.

    Args:
        options: of `Browser.new_context`.
    """
    context = browser.new_context(**options)
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    faults: list[str] = []

    def hear(message: ConsoleMessage) -> None:
        if message.type == "error":
            faults.append(message.text)

    page.on("console", hear)
    page.on("pageerror", lambda error: faults.append(str(error)))
    try:
        page.goto(served.view_link)
        page.wait_for_selector("#steps li")
        holds(page, "newest !== null")
        yield page
        assert not faults
    finally:
        context.close()


def take_over(page: Page) -> None:
    """Press the button and wait until the machine is there."""
    page.click("#take")
    page.wait_for_selector("#give")


def holds(page: Page, expression: str) -> None:
    """Wait until an expression is true in the page, whose rules forbid Playwright's own way."""
    until(lambda: page.evaluate(expression), expression)


def until(condition: Callable[[], Any], what: str, timeout_s: float = 20.0) -> None:
    """Wait for something that happens outside the browser."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"after {timeout_s:g} s still not: {what}")
        time.sleep(0.02)


def spot(page: Page, x: int, y: int) -> tuple[float, float]:
    """Where the middle of the screen's pixel (x, y) is on the page."""
    box = page.locator("#screen").bounding_box()
    assert box is not None
    width, height = page.evaluate("[canvas.width, canvas.height]")
    return (
        box["x"] + (x + 0.5) * box["width"] / width,
        box["y"] + (y + 0.5) * box["height"] / height,
    )
