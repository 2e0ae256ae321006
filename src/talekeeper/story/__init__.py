"""A story, as those who hold one know it: what can be told, asked, undone and made of it.

story         the front door: one branch of one story; going back, branching, editing, forgetting
telling       how turns get into the log
remembering   what a seat is told of it: contexts, recall, briefs, recaps
folding       folds by a model, made behind the story
marking       what is noted beside the turns, and what is gathered over folds
recalling     from a question to the turns that answer it
tracing       what a fold or a block stands for
forgetting    what goes when a turn is forgotten
retelling     the newest turn, told again
replay        a branch as it was, or derived anew
residents     which stories are in memory, and what runs behind them
races         what to do where someone else was first
inside        what the faces of memory need of a story, and users should not count on
following     what has happened since a place in the log
"""
