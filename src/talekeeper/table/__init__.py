"""The table: a game played on top of the memory. A room may know the rooms below it:

    playing       a table, its rounds, and how they get into the story
    storyteller   who tells the story without a model: keeper, companions, narrator, DM      cast    language models that do
    meaning       what a player's words mean, and whom they are for
    shown         what a seat is shown: the scene, what it could do, and the sentences
    packs         scenarios, read from files and checked      brain    the port behind which someone speaks
    rules         what may happen in the game, what follows, and where dice decide
    world         what there is: a scenario, the state of a game, commands and events

Everything here but `playing` and the cast is pure and needs no model: values in, values out, and the same seed tells the same story.
"""
