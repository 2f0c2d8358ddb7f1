#!/usr/bin/python3
"""Writes the outlines of the characters that pictures need: `outlines.py DejaVuSansMono.ttf > dejavu-sans-mono.outlines`.

Needs fonttools. One line a character: the character, a space, its outline as an SVG path of M, L, Q and Z in units of the
font, y upwards. Half units, which implied points of quadratic curves can have, are rounded.
"""
import sys

from fontTools.pens.basePen import BasePen
from fontTools.ttLib import TTFont

CHARACTERS = "".join(map(chr, range(0x21, 0x7F))) + "°±²³µ·×ΔΣμσ–—…≈≠≤≥→←↑↓−∞■▲●◆◇▼✓✗"


class Path(BasePen):
    def __init__(self, glyphs):
        super().__init__(glyphs)
        self.text = ""

    def add(self, verb, *points):
        self.text += verb + " ".join(f"{round(x)} {round(y)}" for x, y in points)

    def _moveTo(self, to):
        self.add("M", to)

    def _lineTo(self, to):
        self.add("L", to)

    def _qCurveToOne(self, control, to):
        self.add("Q", control, to)

    def _closePath(self):
        self.add("Z")


font = TTFont(sys.argv[1])
glyphs, names = font.getGlyphSet(), font.getBestCmap()
for character in CHARACTERS:
    if ord(character) not in names:
        sys.exit(f"the font has no {character!r}")
    glyph = glyphs[names[ord(character)]]
    assert glyph.width == 1233, character
    path = Path(glyphs)
    glyph.draw(path)
    print(character, path.text)
