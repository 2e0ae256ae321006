"""Scenario packs: adventures as files of TOML. Those that come with Talekeeper are in `scenarios/`.

reader      a file as a `Scenario`, with every problem found at once
fields      tables of TOML, read field by field
soundness   whether a pack that reads well can also be played
"""

from talekeeper.table.packs.reader import BadScenario, check, load, shipped

__all__ = ["BadScenario", "check", "load", "shipped"]
