"""Plots of the measured data, as SVG files."""

import math

import matplotlib

matplotlib.use("svg")
# Text stays text in the SVG, and the same data gives the same bytes.
matplotlib.rcParams.update(
    {"svg.fonttype": "none", "svg.hashsalt": "urlseen", "font.size": 9, "figure.dpi": 72}
)
from matplotlib import pyplot  # noqa: E402
from matplotlib.ticker import FuncFormatter, NullFormatter  # noqa: E402

from ..line import find, median, values  # noqa: E402
from .figures import number  # noqa: E402
from .limit import RATE, limit  # noqa: E402

OURS, LIMIT, OTHER = "#c0392b", "#2c3e50", "#95a5a6"
GROUPS = ("tab, 30 % unseen", "url, 30 % unseen")


def draw(data, folder):
    """Draws the plots whose data exists. Returns title and file name by section."""
    drawn = {}
    for section, title, name, plot, panels in (
        ("pipe", "Items a second, 30 % unseen", "pipe", pipe, 1),
        ("scaling", "Items a second by batch size", "batch", batch, 1),
        ("kernels", "Test-and-set, nanoseconds a key", "test-and-set", test_and_set, 1),
        ("growing", "Time of a batch of 1000 keys by the number of keys", "growing", growing, 3),
        ("latency", "Time of a single item through the daemon", "latency", latency, 1),
        ("lines", "Lines a second", "lines", lines, 1),
        ("stream", "Memory and speed by the number of lines", "stream", stream, 2),
    ):
        pyplot.close("all")
        size = (7.5, 1.2 + 2.4 * panels)
        figure, axes = pyplot.subplots(panels, figsize=size, sharex=True)
        if plot(data, axes):
            figure.axes[0].set_title(title)
            figure.tight_layout()
            path = folder / f"{name}.svg"
            figure.savefig(path, metadata={"Date": None})
            tidy(path)
            drawn[section] = (title, path.name)
    return drawn


def tidy(path):
    """Removes spaces at the ends of lines."""
    rows = path.read_text().splitlines()
    path.write_text("\n".join(row.rstrip() for row in rows) + "\n")


def pipe(data, axes):
    """Draws the rates of urlseen, of its limit and of peers, on a logarithmic axis."""
    found = []
    for group in GROUPS:
        measured = data.lines("pipe")
        kind = group.partition(",")[0]
        if best := limit(measured, group):
            found.append((f"mover, {kind}", values(measured, group, best, RATE), LIMIT))
            found.append((f"urlseen, {kind}", values(measured, group, "urlseen", RATE), OURS))
    for line in find(data.lines("peers"), "peers", None, RATE):
        found.append((line["case"], line["values"], OTHER))
    axes.set_xscale("log")
    return bars(axes, found)


def lines(data, axes):
    found = []
    for line in find(data.lines("lines"), "lines", None, "lines/s"):
        color = OURS if "urlseen" in line["case"] else OTHER
        found.append((line["case"], line["values"], color))
    return bars(axes, found)


def test_and_set(data, axes):
    found = []
    for line in find(data.lines("kernels"), None, None, "ns/key"):
        if line["group"].startswith("test-and-set"):
            case = f"{line['case']}, {line['group'].removeprefix('test-and-set ')}"
            is_limit = "limit" in case
            is_ours = case.startswith(("native", "two-choice"))
            color = OURS if is_ours else LIMIT if is_limit else OTHER
            found.append((case, line["values"], color))
    return bars(axes, found)


def bars(axes, found):
    """Draws a bar for each case: the median, with the lowest and the highest value."""
    if not found:
        return False
    for place, (_, measured, color) in enumerate(found):
        middle = median(measured)
        spread = [[middle - min(measured)], [max(measured) - middle]]
        axes.barh(place, middle, color=color, xerr=spread, error_kw={"elinewidth": 0.8})
        axes.annotate(
            number(middle), (max(measured), place), xytext=(4, 0), textcoords="offset points",
            va="center", fontsize=7,
        )
    axes.set_yticks(range(len(found)), [name for name, _, _ in found])
    axes.invert_yaxis()
    axes.margins(x=0.12)
    if axes.get_xscale() == "log":
        least = min(min(measured) for _, measured, _ in found)
        axes.set_xlim(left=10 ** math.floor(math.log10(least) - 0.3))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.spines[["top", "right"]].set_visible(False)
    return True


def batch(data, axes):
    """Draws the rates of urlseen and of the mover by batch size."""
    by_name = {"urlseen": [], "mover": []}
    for line in find(data.lines("scaling"), "batch size, tab, 30 % unseen", None, RATE):
        name = "urlseen" if line["case"].startswith("urlseen") else "mover"
        size = line["case"].removeprefix("urlseen, ").removeprefix("mover, batches of ")
        by_name[name].append((int(size.split(",")[0]), line["values"]))
    for (name, points), color in zip(by_name.items(), (OURS, LIMIT)):
        if points:
            middles = [median(measured) for _, measured in points]
            spread = [
                [middle - min(measured) for middle, (_, measured) in zip(middles, points)],
                [max(measured) - middle for middle, (_, measured) in zip(middles, points)],
            ]
            sizes = [size for size, _ in points]
            axes.errorbar(sizes, middles, spread, color=color, label=name, marker="o", capsize=2)
    if not by_name["urlseen"]:
        return False
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("items a batch")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return True


def latency(data, axes):
    """Draws the share of items that arrived within a number of milliseconds."""
    shares = data.facts("latency").get("shares", [])
    found = find(data.lines("latency"), None, "quantiles", "ms")
    for line, color in zip(found, (OURS, LIMIT)):
        axes.step(line["values"], [100 * share for share in shares], color=color,
                  label=line["group"])
    if not found:
        return False
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("milliseconds from push to pop")
    axes.set_ylabel("% of items")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return True


def growing(data, axes):
    """Draws the times of a batch in each interval of keys, for the largest filter that grew."""
    measured = data.lines("growing")
    keys = find(measured, None, "samples, keys", "keys")
    if not keys:
        return False
    largest = max(keys, key=lambda line: line["values"][-1])
    ends = largest["values"]
    # The intervals have the same length.
    begin = 2 * ends[0] - ends[1]
    for panel, figure in zip(axes, ("median", "p99.9", "longest")):
        for name, color in (("growing", OURS), ("of the final size", LIMIT)):
            times = values(measured, largest["group"], f"samples, {name}, {figure}", "µs/batch")
            panel.stairs(times, [begin, *ends], baseline=None, color=color, label=name)
        panel.set_ylabel(f"{figure}, µs")
    axes[2].set_yscale("log")
    low, high = axes[2].get_ylim()
    axes[2].set_ylim(10 ** math.floor(math.log10(low)), 10 ** math.ceil(math.log10(high)))
    return curves(axes, "keys")


def stream(data, axes):
    """Draws the memory and the speed of each filter by the number of lines so far."""
    measured = data.lines("stream")
    for kind, color in (("two-choice", OURS), ("native", LIMIT)):
        seconds, read, used = (
            values(measured, "stream", f"samples, {kind}", unit)
            for unit in ("seconds", "lines", "bytes")
        )
        if not seconds:
            return False
        axes[0].plot(read, [size / 1e9 for size in used], color=color, label=kind)
        rates = [
            (after - before) / (end - begin)
            for before, after, begin, end in zip(read, read[1:], seconds, seconds[1:])
        ]
        axes[1].plot(read[1:], rates, color=color, label=kind, linewidth=0.8)
    axes[0].set_ylabel("memory, GB")
    axes[1].set_ylabel("lines a second")
    for panel in axes:
        panel.axvline(data.facts("stream")["distinct"], color=OTHER, linestyle=":")
    return curves(axes, "lines")


def curves(axes, along):
    """Sets the axes of panels that share the axis of their numbers."""
    for panel in axes:
        if panel.get_yscale() != "log":
            panel.set_ylim(bottom=0)
        panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
        panel.yaxis.set_minor_formatter(NullFormatter())
        panel.spines[["top", "right"]].set_visible(False)
    axes[-1].xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes[-1].set_xlabel(along)
    axes[0].legend(frameon=False)
    return True
