"""What to say to a seat under a budget. Pure: values in, values out.

assembly     the whole of a context: the stable part, then the volatile ones in what is left
plan         the stable part: folds before a cut, raw turns behind it; recaps
cuts         where the cut is
paragraphs   folds as paragraphs that fit a room
recipe       the parts of a context, and how a budget is divided between them
clipping     what is too long by itself, cut with a marker
rendering    turns as lines, which cannot break out of their block
"""
