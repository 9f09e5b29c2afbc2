"""Reports: pages that stand alone, and show texts as they are."""

from html.parser import HTMLParser

from matplotlib.figure import Figure

from xtrellis.command import report


class Sources(HTMLParser):
    """Addresses that a page asks for, and the tags it leaves open."""

    def __init__(self, page):
        super().__init__()
        self.sources, self.open = [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.sources += [value for name, value in attributes if name in ("src", "href")]
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_page_stands_alone_and_is_well_formed():
    figure = Figure()
    figure.subplots().plot([1, 2])
    parts = [
        report.heading("A < B & C"),
        report.paragraph("<script>alert(1)</script>"),
        report.table(("name", "value"), [("<b>", 1), ("x", 2)], best=1),
        report.side_by_side([report.picture(figure, 'a "line"')]),
    ]
    page = report.page("Title", parts)
    seen = Sources(page)
    assert seen.open == []
    assert len(seen.sources) == 1
    assert seen.sources[0].startswith("data:image/png;base64,")
    assert "<script>" not in page
    assert "A &lt; B &amp; C" in page
    assert page.count('class="best"') == 1
