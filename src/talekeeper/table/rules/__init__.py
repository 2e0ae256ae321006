"""The rules of a game: pure functions from a scenario and a state.

conditions  what conditions and effects of a pack mean          handlers    commands to events, or a refusal with its reason
settling    all commands of a ruling, and what follows          plan        what could be done, and what it would lead to
contest     checks of a skill, and encounters                   dice        seeded throws
ledger      promises, items, deaths, secrets; what contradicts them (in other languages by `acts.toml`)
"""
