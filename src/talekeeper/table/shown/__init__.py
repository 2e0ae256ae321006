"""What a seat is shown of the game.

scene     where it is, who is there, what it carries, owes and knows
choices   what it could do next: offers for players and for companions
prose     sentences out of templates, never the same one twice in a row
"""
