"""Stories in files of other kinds: our own lines of JSON, lossless in both directions.

jsonl       the lines, and what may be in them
exporting   a story, line by line, into a file
importing   a story out of a file, all of it or nothing
"""

from talekeeper.formats.exporting import export_story
from talekeeper.formats.importing import import_story

__all__ = ["export_story", "import_story"]
