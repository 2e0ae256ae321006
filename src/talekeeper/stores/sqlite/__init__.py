"""Stories in one SQLite file: the default store, durable and shared by any number of processes.

    store    the face: the port's methods, on one event loop
    reads    everything that is asked of the file
    ledger   what a commit means in rows, and whether it holds
    writer   one thread that commits for all stories at once
    upkeep   another that checkpoints, sorts in and makes erasures physical
    file     opening, identity, migrations, errors
    rows     nouns to rows and back

Every statement is in `sqlite.sql`.
"""

from talekeeper.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
