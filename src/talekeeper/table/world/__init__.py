"""The world of a game: values, and how they are written down.

scenario    what a pack holds          language    the little language in which packs say when something holds and what it does
events      what happened, and who may know of it      gamestate   the state of a game, folded from its events
commands    what may be asked of the game              wire        commands and events as JSON
phrases     the words that belong to no pack, from `phrases.toml`
"""
