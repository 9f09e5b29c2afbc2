"""The page in a real browser: typed into, narrow as a phone, by keyboard alone."""

import re
import signal
from pathlib import Path

import pytest

from samples import reports, topics
from service import Service
from xtrellis import TrellisClassifier, TrellisTextClassifier

CHROMIUM = Path("/usr/bin/chromium")

if not CHROMIUM.exists():
    pytest.skip(f"no browser at {CHROMIUM}", allow_module_level=True)
sync_api = pytest.importorskip("playwright.sync_api")

PHONE = {"width": 360, "height": 740}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    clf = TrellisTextClassifier(TrellisClassifier(C=1.0, random_state=0))
    clf.fit(*reports(200)).save(folder / "texts")
    X, y = topics(n_classes=12, n_features=60, n_rows=240)
    TrellisClassifier(C=1.0, random_state=0).fit(X, y).save(folder / "rows")
    return folder


@pytest.fixture(scope="module")
def address(folder):
    service = Service(folder / "texts", "--port", 0)
    yield f"http://127.0.0.1:{service.port}/"
    service.stop(signal.SIGKILL)


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


@pytest.fixture
def page(browser):
    """A page whose errors, and whose requests to elsewhere, fail the test."""
    page, wrong = browser.new_page(viewport=PHONE), []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if _is_wrong(said) else None)
    page.on(
        "request",
        lambda request: (
            None
            if re.match(r"http://127\.0\.0\.1|data:", request.url)
            else wrong.append(request.url)
        ),
    )
    yield page
    page.close()
    assert wrong == []


def _is_wrong(said):
    refused = "status of 422"  # the browser logs every answer that is an error
    return said.type == "error" and refused not in said.text


def overflow(page):
    return page.evaluate("document.documentElement.scrollWidth - window.innerWidth")


def test_by_keyboard_alone_on_a_phone(page, address):
    text, noun = reports(200)[0][0], reports(200)[1][0]
    page.goto(address)
    assert overflow(page) <= 0
    page.wait_for_function("document.activeElement.id === 'text'")  # without a click
    page.keyboard.type(text)
    page.keyboard.press("Enter")
    page.wait_for_selector("#classes li")
    assert page.inner_text("#answer") == noun
    shares = [
        float(share.rstrip("%"))
        for share in page.locator("#classes .row span:last-child").all_inner_texts()
    ]
    assert shares == sorted(shares, reverse=True)
    widths = page.eval_on_selector_all("#classes .fill", "all => all.map(e => e.offsetWidth)")
    assert widths[0] == max(widths)
    assert noun in page.locator("#for li span:first-child").all_inner_texts()
    assert page.locator("#drawings svg .way").count() == 1
    assert page.locator("#drawings svg .looked").count() >= 1
    heights = page.eval_on_selector_all(
        "#drawings svg text", "all => all.map(e => e.getBoundingClientRect().height)"
    )
    assert min(heights) > 11, "letters too small to read"
    assert overflow(page) <= 0

    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "limit"
    page.keyboard.press("End")
    assert page.inner_text("#limit-shown") == "100%"
    assert page.inner_text("#answer") == "None of these"
    page.keyboard.press("Home")
    assert page.inner_text("#answer") == noun


def test_what_has_the_focus_can_be_seen(page, address):
    page.goto(address)
    page.wait_for_function("document.activeElement.id === 'text'")
    for wanted in ("go", "limit"):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.id") == wanted
        assert page.evaluate("getComputedStyle(document.activeElement).outlineWidth") == "3px"


def test_every_control_has_a_name(page, address):
    page.goto(address)
    assert page.get_by_label("Text", exact=True).count() == 1
    assert page.get_by_label(re.compile("Lowest probability")).count() == 1
    assert page.get_by_role("button", name="Classify").count() == 1


def test_markup_in_a_text_is_only_text(page, address):
    page.goto(address)
    page.fill("#text", "<img src=x onerror=alert(1)> fever")
    page.click("#go")
    page.wait_for_selector("#classes li")
    assert page.locator("#found img").count() == 0


def test_a_text_without_a_known_word_is_marked_as_a_guess(page, address):
    page.goto(address)
    page.fill("#text", "qwertz")
    page.click("#go")
    page.wait_for_selector("#unknown:not([hidden])")
    page.fill("#text", "fever")
    page.click("#go")
    page.wait_for_selector("#unknown", state="hidden")


def test_rows_of_numbers(page, folder):
    service = Service(folder / "rows", "--port", 0)
    try:
        page.goto(f"http://127.0.0.1:{service.port}/")
        page.get_by_label("Row", exact=True).fill("3:1 17:0.5")
        page.keyboard.press("Enter")
        page.wait_for_selector("#classes li")
        assert page.locator("#unknown").is_hidden()
        page.get_by_label("Row", exact=True).fill("600:1")
        page.keyboard.press("Enter")
        page.wait_for_selector("#problem:not([hidden])")
        assert page.inner_text("#problem").startswith("index 600 is out of range")
    finally:
        service.stop(signal.SIGKILL)


def test_the_description_of_the_interface(page, address):
    page.goto(f"{address}docs")
    page.wait_for_selector("text=POST /predict")
    assert overflow(page) <= 0
