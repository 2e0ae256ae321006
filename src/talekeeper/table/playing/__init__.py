"""A game as it is played: who sits at the table, and one round after the other.

    seating   `Table`: a story with its seats and its game; `begin` makes one, `resume` takes one up again
    rounds    `Game`: a table played round by round; a person's turn can wait until tomorrow
    graph     the steps of a round            flight    what a round has come to before it is written
    vetting   answers are read before they are heard: what is told must be possible

`rounds` and `graph` need the extra `play`.
"""
