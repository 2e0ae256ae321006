"""The built-in storyteller: a brain that needs no model, no key and no network.

teller      `Storyteller`: each question goes to whoever answers it

rulings     the keeper: from what a player means to what the game is asked to do
case        one action before the keeper
dealings    rulings on what is done with people          doings      rulings on places, things, deeds, encounters, errands

companions  the characters that nobody plays             reminders   what a listener could bring up again
stage       the DM, who sets the scene                   narration   the narrator, who tells what came of a round
epilogue    how it ended
"""

from talekeeper.table.storyteller.teller import Storyteller

__all__ = ["Storyteller"]
