"""Stories in files of other kinds: our own lines of JSON, lossless in both directions."""

from talekeeper.formats.exporting import export_story
from talekeeper.formats.importing import import_story

__all__ = ["export_story", "import_story"]
