"""The command line: every call of the front door, for people and (with `--json`) for scripts.

    app      which story is meant, how a command runs, what is shown, what an error looks like
    voices   the options that say which models speak, and what comes of them
    screen   safe text, wrapped; rules, tables, bars
    play     play, scenario (and terminal: what people see and type while they play; slash: what they type for the table;
             keyboard: how their lines are read)
    tell     init, append, note, enter, leave, session
    look     stories, seats, log, context, recall, brief, folds, branches, health, stats
    change   fold, rewind, adopt, fork, edit, forget, pin, unpin, override, regenerate, delete
    care     doctor, export, import, demo, bench
    serving  serve, tokens
    models   models get, list, check

The engine is imported by the commands that need it, so that `--help` is there at once.
"""

import sys

try:
    from talekeeper.cli import play, models, tell, look, change, care, serving  # isort: skip
    from talekeeper.cli.app import main
except KeyboardInterrupt:
    sys.stderr.write("error: stopped\n")
    sys.exit(130)

__all__ = ["care", "change", "look", "main", "models", "play", "serving", "tell"]
