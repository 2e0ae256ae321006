"""A branch of a story in memory, in step with the store. All of it can be dropped at any time and made again.

hot         the branch, and its checkpoints: when what it derives is stored, and how
stepping    how its state keeps in step with the log, whoever writes it
reading     what it reads from the store
index       what it keeps of the search index
shared      what all branches of a story have in common
names       ids that tell a seat nothing it did not hear
turnstile   a lock that serves those who wait in order
"""
