"""Benchmarks: Talekeeper beside the limit of the machine and beside its peers, in one run.

engine      what one durable turn costs         crowd      many stories appending at once
systems     the limit, and Talekeeper           peers      other libraries; left out where they are not installed
footprint   what an import costs                workload   a story made for measuring
report      the table and the targets           plot       the picture
targets     what is to be reached, and what every report says of it

retention   what is still in a context          retained   its table and its targets
histories   real histories with questions       evidence   whether the turns that answer are there
memories    ours, and plain ones beside it      pasts      long pasts to remember from

server      many games on one server            players    who play them
table       a game that plays by itself
"""
