"""The routes, by noun. `app` includes the router of each; what a request may see is decided by `door` and `views`, not here.

stories   stories, their seats, and who is where
turns     telling, listing, editing, forgetting
memory    contexts, recall, the folds behind them, marks
time      branches, going back, and the stream of what happens
play      games
care      health, statistics, copies
"""
