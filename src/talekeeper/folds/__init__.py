"""What a log adds up to. Pure: the same turns give the same folds, for ever.

state       the log's sum at its head: who is where, which chunks are open, on which folds each view stands
snapshots   that as JSON
trees       the folds of a view, eight smaller ones under each larger one
shelf       the folds in memory
nodes       a fold: its sources, its key, its texts
"""
