"""Log-log plots as SVG, written by hand: a row of panels over one legend."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

_COLOURS = ("#777777", "#c1272d", "#1b6ca8", "#e08a00", "#2e7d32", "#7b3fa0", "#00838f", "#8d6e63")
_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BOTTOM = 420, 340, 54, 40, 26, 40
_LEGEND_LINE = 20


@dataclass(frozen=True, slots=True)
class Curve:
    """One system: its (turns, value) points, all positive."""

    name: str
    points: Sequence[tuple[float, float]]
    bold: bool = False
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """One plot. All panels of a drawing have the same curves in the same order, so that one legend serves them all."""

    title: str
    curves: Sequence[Curve]


@dataclass(frozen=True, slots=True)
class _Axis:
    """Decades of values laid out from one pixel to another."""

    low: int
    high: int
    start: float
    end: float

    def at(self, value: float) -> float:
        return self.start + (math.log10(value) - self.low) / (self.high - self.low) * (self.end - self.start)

    def decades(self) -> list[int]:
        return list(range(self.low, self.high + 1))


def draw(panels: Sequence[Panel]) -> str:
    """The panels side by side, with a legend below."""
    curves = panels[0].curves if panels else []
    height = _HEIGHT + _LEGEND_LINE * len(curves) + 16
    width = _WIDTH * max(1, len(panels))
    body = [line for index, panel in enumerate(panels) for line in _panel(panel, index * _WIDTH)]
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="system-ui, sans-serif" font-size="12">'
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *body, *_legend(curves), "</svg>\n"])


def _panel(panel: Panel, offset: float) -> Iterable[str]:
    points = [point for curve in panel.curves for point in curve.points]
    x = _axis([turns for turns, _ in points], offset + _LEFT, offset + _WIDTH - _RIGHT)
    y = _axis([value for _, value in points], _HEIGHT - _BOTTOM, _TOP)
    yield f'<text x="{offset + _LEFT}" y="22" font-size="13" font-weight="600">{escape(panel.title)}</text>'
    for decade in x.decades():
        at = x.at(10.0**decade)
        yield f'<line x1="{at:.1f}" y1="{y.start}" x2="{at:.1f}" y2="{y.end}" stroke="#e4e4e4"/>'
        yield f'<text x="{at:.1f}" y="{y.start + 18}" text-anchor="middle">{_label(decade)}</text>'
    for decade in y.decades():
        at = y.at(10.0**decade)
        yield f'<line x1="{x.start}" y1="{at:.1f}" x2="{x.end}" y2="{at:.1f}" stroke="#e4e4e4"/>'
        yield f'<text x="{x.start - 6}" y="{at + 4:.1f}" text-anchor="end">{_label(decade)}</text>'
    yield f'<text x="{(x.start + x.end) / 2}" y="{y.start + 34}" text-anchor="middle" fill="#555555">turns in the story</text>'
    for index, curve in enumerate(panel.curves):
        yield from _curve(curve, _COLOURS[index % len(_COLOURS)], x, y)


def _curve(curve: Curve, colour: str, x: _Axis, y: _Axis) -> Iterable[str]:
    spots = [(x.at(turns), y.at(value)) for turns, value in curve.points]
    path = " ".join(f"{a:.1f},{b:.1f}" for a, b in spots)
    yield f'<polyline points="{path}" fill="none" {_stroke(curve, colour)}/>'
    for a, b in spots:
        yield f'<circle cx="{a:.1f}" cy="{b:.1f}" r="{4 if curve.bold else 3}" fill="{colour}"/>'


def _legend(curves: Sequence[Curve]) -> Iterable[str]:
    for index, curve in enumerate(curves):
        y, colour = _HEIGHT + 12 + _LEGEND_LINE * index, _COLOURS[index % len(_COLOURS)]
        weight = ' font-weight="600"' if curve.bold else ""
        yield f'<line x1="{_LEFT}" y1="{y}" x2="{_LEFT + 28}" y2="{y}" {_stroke(curve, colour)}/>'
        yield f'<text x="{_LEFT + 36}" y="{y + 4}"{weight}>{escape(curve.name)}</text>'


def _stroke(curve: Curve, colour: str) -> str:
    return f'stroke="{colour}" stroke-width="{3 if curve.bold else 1.5}"' + (' stroke-dasharray="6 4"' if curve.dashed else "")


def _label(decade: int) -> str:
    """1, 10, 100, 1k, … of a power of ten."""
    thousands = max(0, decade // 3)
    return f"{10.0 ** (decade - 3 * thousands):g}{('', 'k', 'M', 'G', 'T')[thousands]}"


def _axis(values: Sequence[float], start: float, end: float) -> _Axis:
    low = math.floor(math.log10(min(values)) + 1e-9)
    return _Axis(low, max(low + 1, math.ceil(math.log10(max(values)) - 1e-9)), start, end)
