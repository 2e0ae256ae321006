"""Summaries: how a run of turns becomes a shorter text, with or without a model.

    extractive    folds without a model: the sentences that a careful game master would write down
    choice        which of them go together into a fold, and what has been told already
    janitor       folds by a model: asked, timed, checked, repaired once, never trusted
    wrapping      what models put around an answer, and is no story
    faithful      what must survive a model, what is missing, and what nobody told
    refusal       what is no summary at all
    retelling     what a model has lost, told in the words of its sources

Reading, without a model; each builds on those below it:

    corrections   what corrects something or takes it back, and weighs more than that
    reversals     what takes back a state: who is alive after all, what pact is broken
    claims        what a sentence says of whom: what they are, can do, and what befell them
    threads       what a sentence opens, and what closes it: a promise, a threat, a gift, a death
    attribution   who said it, and how a fold says so
    speech        what is said: sentences that can stand alone, each with its speaker
    hearsay       who speaks what a seat quotes in its own turn
    persons       who is meant: a "he", the one who speaks a quotation
    somebody      whether a name is a person's, and whether anyone else may be meant
    posing        whether what someone says could pass for what another says
    quotations    the marks between which something is quoted
    salience      how telling a turn is by itself
    layout        Markdown: headings are no sentences, and the row of a table is one
    sentences     where a sentence ends, and the draft that it is until it stands in a fold
    names         the names and numbers in a sentence, and the known things
    words         the language of a text, and the marks of its words (`words.txt` lists them)

A new language is mostly lines in `words.txt`: the more groups it has there, the better its folds, and `stop` is what it is known by.
In `words` it needs a place among the Latin languages, or a look at its script; in `names` the endings of verbs (`_VERB_AFTER`), by which
a name at the beginning of a sentence is told from any other word. Without the rest it does: letters of its own (`words`), quotation marks
(`quotations`), what people say of themselves (`claims`), a word for "also" (`faithful`), how many tokens it takes (`extractive`), the
months (`recall.times`).
"""
