"""The server: stories over HTTP, for browsers and for any program that can speak JSON.

    app       wiring              gate      hosts, tokens, rates, sizes: what every request passes first
    auth      tokens and grants   door      which story and which view a request is about, and whether it may
    views     what is shown of a story, by seat; everything that leaves passes through it
    routes/   by noun             schemas   what goes over the wire (of games: game_schemas)
    room      a game in play      rooms     all of them        page/   the web table
    ids       addresses
    stream    what happens, as it happens          problems   errors, and which answer each becomes
    limits    how much            metrics   for Prometheus      run   listening and going down

Needs the extra `serve`.
"""
