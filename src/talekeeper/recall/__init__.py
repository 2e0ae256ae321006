"""What to recall. Pure: ranking knows what a seat heard, and nothing else.

ranking   which turns answer a question best
terms     words as they are indexed and sought
times     when something was, by story time
"""
