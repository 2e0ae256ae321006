"""What a player's words mean, and whom they are for.

secrecy     whom a line is for, and who is not to know of it      manners    the wordings by which a line is a secret
several     whether more than one thing is in a line              pledges    whether somebody gives their word, and to whom
address     to whom something is said, and what                   naming     who and what is named, where one is
understand  free text to intents                                  verbs      which verb a line has, by `verbs.toml`
questions   how players ask                                       spelling   words found, compared and mended
oddities    what no character would say: questions about the game, insults, being at a loss
"""
