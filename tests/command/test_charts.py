"""Charts are well-formed SVG whose marks are where the values say."""

from xml.etree import ElementTree

import pytest

from xtrellis.command.charts import bar_chart, line_chart


def test_points_are_placed_in_proportion():
    chart = line_chart([(0.0, 0.5), (0.5, 0.75), (1.0, 1.0)], "a < b", "c", y_range=(0.5, 1.0))
    circles = ElementTree.fromstring(chart).findall("circle")
    xs, ys = ([float(each.get(name)) for each in circles] for name in ("cx", "cy"))
    assert xs[1] - xs[0] == pytest.approx(xs[2] - xs[1], abs=0.2)
    assert ys[0] - ys[1] == pytest.approx(ys[1] - ys[2], abs=0.2)
    assert ys[0] > ys[2]
    assert [each.find("title").text for each in circles] == [
        "0.0%: 50.0%",
        "50.0%: 75.0%",
        "100.0%: 100.0%",
    ]


@pytest.mark.parametrize(
    ("lowest", "expected"),
    [
        (0.9, ["90.0%", "92.5%", "95.0%", "97.5%", "100.0%"]),
        (0.6, ["60%", "70%", "80%", "90%", "100%"]),
    ],
)
def test_numbers_of_an_axis_stand_where_they_say(lowest, expected):
    chart = ElementTree.fromstring(line_chart([(1.0, 1.0)], "a", "b", y_range=(lowest, 1.0)))
    numbers = [each.text for each in chart.findall("text") if each.get("text-anchor") == "end"]
    assert numbers == expected


def test_sizes_and_a_single_value_draw():
    chart = line_chart([(0.2, 0.2), (0.9, 0.8)], "a", "b", diagonal=True, sizes=[0.25, 1.0])
    radii = [float(each.get("r")) for each in ElementTree.fromstring(chart).findall("circle")]
    assert radii[0] < radii[1]
    ElementTree.fromstring(line_chart([(1.0, 1.0)], "a", "b", y_range=(1.0, 1.0)))


def test_bars_are_as_long_as_their_shares():
    chart = ElementTree.fromstring(bar_chart([("a & b", 0.5, "one"), ("c", 1.0, "two")]))
    half, whole = (float(each.get("width")) for each in chart.findall("rect[@class='bar']"))
    assert half == pytest.approx(whole / 2)
    assert "a & b" in chart.find("text").text
