"""The table: a game played on top of the memory.

    scenario    what a pack holds, and reading one          rules       conditions and effects, the little language of packs
    commands    what may be asked of the game               events      what happened, and who may know of it
    game        the state, folded from events               handlers    commands to events, or a refusal with its reason
    ledger      promises, items, deaths, secrets            dice        seeded throws
    brain       the port behind which someone speaks        scene       what one seat may know of the game
    cast        language models behind that port

Everything here but the cast is pure and needs no model: values in, values out, and the same seed tells the same story.
"""
