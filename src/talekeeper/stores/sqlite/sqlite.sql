-- Every statement of the SQLite store, by name. Migrations only append; a number in a name is the version the file has afterwards.
--
-- `pos` packs where an entry stands into one number: story (21 bits) | branch (18 bits) | seq (24 bits). The log is clustered by it, a
-- span is a range of it, and the search index knows an entry by it.

-- name: migration_1
CREATE TABLE stories (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant TEXT NOT NULL,
    user TEXT NOT NULL,
    session TEXT NOT NULL,
    rev INTEGER NOT NULL DEFAULT 1,
    calls INTEGER NOT NULL DEFAULT 0,
    tokens_in INTEGER NOT NULL DEFAULT 0,
    tokens_out INTEGER NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0,
    health TEXT,
    config TEXT NOT NULL,
    UNIQUE (tenant, user, session)
);
CREATE TABLE branches (
    story INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT NOT NULL, parent INTEGER, at INTEGER NOT NULL,
    PRIMARY KEY (story, id)
) WITHOUT ROWID;
CREATE TABLE channels (
    story INTEGER NOT NULL, id INTEGER NOT NULL, hearers TEXT NOT NULL,
    PRIMARY KEY (story, id)
) WITHOUT ROWID;
CREATE TABLE turns (
    pos INTEGER PRIMARY KEY,
    channel INTEGER NOT NULL, kind TEXT NOT NULL, speaker TEXT NOT NULL, voice TEXT NOT NULL, location TEXT, tokens INTEGER NOT NULL,
    counter TEXT NOT NULL, time REAL NOT NULL, id TEXT, extra TEXT, text TEXT NOT NULL
);
-- Entries that came in a crowd, in the order of arrival: a thousand stories that append one entry each touch a few dozen pages here and a
-- thousand in `turns`. They are put in their places later, many of a story at a time. Until then every reader looks into both tables.
CREATE TABLE arrivals (
    number INTEGER PRIMARY KEY,
    pos INTEGER NOT NULL UNIQUE,
    channel INTEGER NOT NULL, kind TEXT NOT NULL, speaker TEXT NOT NULL, voice TEXT NOT NULL, location TEXT, tokens INTEGER NOT NULL,
    counter TEXT NOT NULL, time REAL NOT NULL, id TEXT, extra TEXT, text TEXT NOT NULL
);
-- Only for entries that have an id of their own, and for those that target another.
CREATE TABLE ids (
    story INTEGER NOT NULL, id TEXT NOT NULL, pos INTEGER NOT NULL,
    PRIMARY KEY (story, id)
) WITHOUT ROWID;
CREATE TABLE targets (
    story INTEGER NOT NULL, target TEXT NOT NULL, pos INTEGER NOT NULL,
    PRIMARY KEY (story, target, pos)
) WITHOUT ROWID;
CREATE TABLE folds (
    story INTEGER NOT NULL, key TEXT NOT NULL, shape TEXT NOT NULL, sentences TEXT NOT NULL,
    PRIMARY KEY (story, key)
) WITHOUT ROWID;
CREATE TABLE texts (
    story INTEGER NOT NULL, key TEXT NOT NULL, branch INTEGER NOT NULL, born INTEGER NOT NULL, sentences TEXT NOT NULL,
    PRIMARY KEY (story, key, branch)
) WITHOUT ROWID;
CREATE TABLE snapshots (
    story INTEGER NOT NULL, branch INTEGER NOT NULL, seq INTEGER NOT NULL, state TEXT NOT NULL,
    PRIMARY KEY (story, branch, seq)
) WITHOUT ROWID;
-- A row per indexed entry, its rowid the entry's pos. Each token is "story.term.channel", so that posting lists belong to one story and
-- one channel, and a search reads nothing but postings. The sizes that FTS5 keeps per row tell which entries are indexed already.
CREATE VIRTUAL TABLE words USING fts5(tokens, content = '', detail = none, tokenize = "ascii tokenchars '_.-'");
-- Segments are merged eight at a time: what is indexed is written again once for every eightfold growth, and not for every fourfold.
INSERT INTO words (words, rank) VALUES ('automerge', 8);
CREATE VIRTUAL TABLE vocabulary USING fts5vocab(words, instance);
CREATE TABLE indexed (
    story INTEGER NOT NULL, channel INTEGER NOT NULL,
    PRIMARY KEY (story, channel)
) WITHOUT ROWID;
-- Erasures that were committed, and have not yet left the index's old segments, the slack of pages and the write-ahead log.
CREATE TABLE erasures (id INTEGER PRIMARY KEY);

-- Folds in the order in which they came, so that those of one checkpoint share pages; rows of a kilobyte would overflow in an index.
-- name: migration_2
CREATE TABLE folds_in_order (
    number INTEGER PRIMARY KEY, story INTEGER NOT NULL, key TEXT NOT NULL, shape TEXT NOT NULL, sentences TEXT NOT NULL
);
INSERT INTO folds_in_order (story, key, shape, sentences) SELECT story, key, shape, sentences FROM folds;
DROP TABLE folds;
ALTER TABLE folds_in_order RENAME TO folds;
CREATE UNIQUE INDEX fold_keys ON folds (story, key);

-- A crowd's arrivals, numbered so that they need no index: crowd (24 bits) | story (21 bits) | branch (18 bits). A crowd has one entry of a
-- branch at the most, so whoever looks for a branch's entries looks once into each crowd, of which there are few.
-- name: migration_3
INSERT INTO turns (pos, channel, kind, speaker, voice, location, tokens, counter, time, id, extra, text)
SELECT pos, channel, kind, speaker, voice, location, tokens, counter, time, id, extra, text FROM arrivals ORDER BY pos;
DROP TABLE arrivals;
CREATE TABLE crowds (number INTEGER PRIMARY KEY);
CREATE TABLE arrivals (
    number INTEGER PRIMARY KEY, pos INTEGER NOT NULL,
    channel INTEGER NOT NULL, kind TEXT NOT NULL, speaker TEXT NOT NULL, voice TEXT NOT NULL, location TEXT, tokens INTEGER NOT NULL,
    counter TEXT NOT NULL, time REAL NOT NULL, text TEXT NOT NULL
);

-- What was gathered over a fold after that was stored. A row of a kilobyte would overflow in an index, so it stands in none.
-- name: migration_4
CREATE TABLE gathered (fold INTEGER NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL);
CREATE UNIQUE INDEX gathered_over ON gathered (fold, name);

-- The earliest files hold snapshots, folds and an index that can no longer be read, or lack what is looked for in them today. All of it
-- follows from the log, and is made again. One knows these files by what their index was not yet told.
-- name: migration_5
DELETE FROM texts
WHERE json_array_length(sentences, '$[0]') < 5 AND NOT EXISTS (SELECT 1 FROM words_config WHERE k = 'automerge');
DELETE FROM snapshots WHERE NOT EXISTS (SELECT 1 FROM words_config WHERE k = 'automerge');
DELETE FROM gathered WHERE NOT EXISTS (SELECT 1 FROM words_config WHERE k = 'automerge');
DELETE FROM folds WHERE NOT EXISTS (SELECT 1 FROM words_config WHERE k = 'automerge');
DELETE FROM indexed WHERE NOT EXISTS (SELECT 1 FROM words_config WHERE k = 'automerge');
INSERT INTO words (words) SELECT 'delete-all' WHERE NOT EXISTS (SELECT 1 FROM words_config WHERE k = 'automerge');
INSERT INTO words (words, rank) VALUES ('automerge', 8);

-- name: story_by_key
SELECT id, rev, config, health, calls, tokens_in, tokens_out, failures FROM stories WHERE tenant = ? AND user = ? AND session = ?;

-- name: branches_of
SELECT id, name, parent, at FROM branches WHERE story = ?;

-- name: channels_of
SELECT id, hearers FROM channels WHERE story = ?;

-- name: keys
SELECT tenant, user, session FROM stories ORDER BY tenant, user, session;

-- name: keys_of_tenant
SELECT tenant, user, session FROM stories WHERE tenant = ? ORDER BY user, session;

-- name: newest_story
SELECT seq FROM sqlite_sequence WHERE name = 'stories';

-- name: insert_story
INSERT INTO stories (tenant, user, session, config) VALUES (?, ?, ?, ?);

-- name: head
SELECT rev, coalesce(
    nullif(
        max(
            coalesce((SELECT max(pos) FROM turns WHERE pos BETWEEN :first AND :last), 0),
            coalesce((SELECT max(pos) FROM crowds CROSS JOIN arrivals ON arrivals.number = crowds.number << 39 | (:first >> 24)), 0)
        ),
        0
    ) & 16777215,
    (SELECT at FROM branches WHERE story = :story AND id = :branch)
) FROM stories WHERE id = :story;

-- name: rev
SELECT rev FROM stories WHERE id = ?;

-- name: span
SELECT pos, kind, speaker, voice, text, channel, location, tokens, counter, time, id, extra FROM turns WHERE pos BETWEEN :first AND :last
UNION ALL
SELECT pos, kind, speaker, voice, text, channel, location, tokens, counter, time, NULL, NULL
FROM crowds CROSS JOIN arrivals ON arrivals.number = crowds.number << 39 | (:first >> 24) WHERE pos BETWEEN :first AND :last
ORDER BY pos;

-- name: positions
SELECT pos, kind, speaker, voice, text, channel, location, tokens, counter, time, turns.id, extra FROM json_each(:places) AS wanted CROSS JOIN turns ON pos = wanted.value
UNION ALL
SELECT pos, kind, speaker, voice, text, channel, location, tokens, counter, time, NULL, NULL
FROM json_each(:places) AS wanted CROSS JOIN crowds CROSS JOIN arrivals ON arrivals.number = crowds.number << 39 | (wanted.value >> 24)
WHERE pos = wanted.value AND NOT EXISTS (SELECT 1 FROM turns WHERE pos = wanted.value);

-- name: outlines
SELECT pos, kind, voice, channel, tokens, text = '', turns.id, extra FROM json_each(:places) AS wanted CROSS JOIN turns ON pos = wanted.value
UNION ALL
SELECT pos, kind, voice, channel, tokens, text = '', NULL, NULL
FROM json_each(:places) AS wanted CROSS JOIN crowds CROSS JOIN arrivals ON arrivals.number = crowds.number << 39 | (wanted.value >> 24)
WHERE pos = wanted.value AND NOT EXISTS (SELECT 1 FROM turns WHERE pos = wanted.value);

-- name: channels_to_index
SELECT pos, channel FROM (
    SELECT pos, channel FROM turns WHERE pos IN (SELECT value FROM json_each(:places))
    UNION ALL
    SELECT pos, channel
    FROM json_each(:places) AS wanted CROSS JOIN crowds CROSS JOIN arrivals ON arrivals.number = crowds.number << 39 | (wanted.value >> 24)
    WHERE pos = wanted.value AND NOT EXISTS (SELECT 1 FROM turns WHERE pos = wanted.value)
) WHERE pos NOT IN (SELECT id FROM words_docsize WHERE id IN (SELECT value FROM json_each(:places)));

-- name: positions_of_ids
SELECT ids.pos FROM json_each(:wanted) AS wanted CROSS JOIN ids ON ids.story = :story AND ids.id = wanted.value;

-- name: positions_targeting
SELECT targets.pos FROM json_each(:wanted) AS wanted CROSS JOIN targets ON targets.story = :story AND targets.target = wanted.value;

-- name: folds
SELECT folds.key, shape, sentences FROM json_each(:wanted) AS wanted CROSS JOIN folds ON folds.story = :story AND folds.key = wanted.value;

-- name: texts
SELECT texts.key, branch, born, sentences FROM json_each(:wanted) AS wanted CROSS JOIN texts ON texts.story = :story AND texts.key = wanted.value;

-- name: gathered
SELECT folds.key, name, gathered.value
FROM json_each(:wanted) AS wanted CROSS JOIN folds ON folds.story = :story AND folds.key = wanted.value CROSS JOIN gathered ON fold = number;

-- name: all_folds
SELECT key, shape, sentences FROM folds WHERE story = ?;

-- name: all_texts
SELECT key, branch, born, sentences FROM texts WHERE story = ?;

-- name: all_gathered
SELECT key, name, value FROM folds CROSS JOIN gathered ON fold = number WHERE story = ?;

-- name: extent
SELECT (SELECT count(*) FROM folds WHERE story = :story), (
    SELECT count(*) FROM json_each(:about) AS about CROSS JOIN targets ON targets.story = :story AND targets.target = about.value
);

-- name: snapshot
SELECT branch, seq, state FROM snapshots WHERE story = ? AND branch = ? AND seq BETWEEN ? AND ? ORDER BY seq DESC LIMIT 1;

-- name: insert_turn
INSERT INTO turns (pos, kind, speaker, voice, text, channel, location, tokens, counter, time, id, extra)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- A lone append, checked and committed in one statement: nothing is inserted where the story's revision is another by now.
-- name: insert_turn_alone
INSERT INTO turns (pos, kind, speaker, voice, text, channel, location, tokens, counter, time)
SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?
WHERE (SELECT rev FROM stories WHERE id = ?) = ?
AND NOT EXISTS (SELECT 1 FROM crowds CROSS JOIN arrivals ON arrivals.number = crowds.number << 39 | ? WHERE pos = ?);

-- name: insert_crowd
INSERT INTO crowds DEFAULT VALUES;

-- Nothing that is bound is NULL: Python looks for adapters of None first, which takes longer than the rest of the row.
-- name: insert_arrival
INSERT INTO arrivals (number, pos, kind, speaker, voice, text, channel, location, tokens, counter, time)
VALUES (?, ?, ?, ?, ?, ?, ?, nullif(?, char(0)), ?, ?, ?);

-- name: place_arrivals
INSERT INTO turns (pos, channel, kind, speaker, voice, location, tokens, counter, time, text)
SELECT pos, channel, kind, speaker, voice, location, tokens, counter, time, text
FROM crowds CROSS JOIN arrivals ON arrivals.number BETWEEN crowds.number << 39 | (:first >> 24) AND crowds.number << 39 | (:last >> 24)
ORDER BY pos;

-- name: clear_arrivals
DELETE FROM arrivals WHERE number IN (
    SELECT arrivals.number
    FROM crowds CROSS JOIN arrivals ON arrivals.number BETWEEN crowds.number << 39 | (:first >> 24) AND crowds.number << 39 | (:last >> 24)
);

-- name: arrivals
SELECT number FROM arrivals;

-- name: clear_crowds
DELETE FROM crowds WHERE NOT EXISTS (
    SELECT 1 FROM arrivals WHERE arrivals.number BETWEEN crowds.number << 39 AND (crowds.number + 1 << 39) - 1
);

-- name: count_crowds
SELECT count(*) FROM crowds;

-- name: insert_id
INSERT INTO ids (story, id, pos) VALUES (?, ?, ?);

-- name: insert_target
INSERT OR IGNORE INTO targets (story, target, pos) VALUES (?, ?, ?);

-- name: update_story
UPDATE stories SET
    rev = rev + :touch, calls = calls + :calls, tokens_in = tokens_in + :tokens_in, tokens_out = tokens_out + :tokens_out, failures = failures + :failures,
    config = coalesce(:config, config), health = coalesce(:health, health)
WHERE id = :story;

-- name: upsert_channel
INSERT INTO channels (story, id, hearers) VALUES (?, ?, ?) ON CONFLICT (story, id) DO UPDATE SET hearers = excluded.hearers;

-- name: upsert_branch
INSERT INTO branches (story, id, name, parent, at) VALUES (?, ?, ?, ?, ?) ON CONFLICT (story, id) DO UPDATE SET name = excluded.name;

-- name: insert_fold
INSERT OR IGNORE INTO folds (story, key, shape, sentences) VALUES (?, ?, ?, ?);

-- name: insert_text
INSERT OR IGNORE INTO texts (story, key, branch, born, sentences) VALUES (?, ?, ?, ?, ?);

-- name: insert_gathered
INSERT OR IGNORE INTO gathered (fold, name, value) SELECT number, ?, ? FROM folds WHERE story = ? AND key = ?;

-- name: insert_snapshot
INSERT OR IGNORE INTO snapshots (story, branch, seq, state) VALUES (?, ?, ?, ?);

-- name: insert_words
INSERT INTO words (rowid, tokens) VALUES (?, ?);

-- name: insert_indexed
INSERT OR IGNORE INTO indexed (story, channel) VALUES (?, ?);

-- name: search_channels
SELECT wanted.key, channel, (SELECT group_concat(rowid - :start) FROM words WHERE words MATCH '"' || wanted.value || '.' || channel || '"')
FROM json_each(:tokens) AS wanted CROSS JOIN indexed WHERE story = :story;

-- name: count_indexed
SELECT count(*) FROM indexed WHERE story = ?;

-- name: search_vocabulary
SELECT term, group_concat(doc - :start) FROM vocabulary WHERE term >= :token || '.' AND term < :token || '/' GROUP BY term;

-- name: erase_words
INSERT INTO words (words, rowid, tokens)
SELECT 'delete', doc, group_concat(term, ' ') FROM vocabulary
WHERE term >= :first AND term < :last AND (:places IS NULL OR doc IN (SELECT value FROM json_each(:places)))
GROUP BY doc;

-- name: erase_turn
UPDATE turns SET (kind, speaker, voice, text, channel, location, tokens, counter, time, id, extra) = (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
WHERE pos = ?;

-- name: erase_id
DELETE FROM ids WHERE story = ? AND id = ?;

-- name: erase_target
DELETE FROM targets WHERE story = ? AND target = ? AND pos = ?;

-- name: erase_gathered
DELETE FROM gathered WHERE fold = (SELECT number FROM folds WHERE story = ? AND key = ?);

-- name: erase_fold
DELETE FROM folds WHERE story = ? AND key = ?;

-- name: erase_texts
DELETE FROM texts WHERE story = ? AND key = ?;

-- name: erase_snapshots
DELETE FROM snapshots WHERE story = ?;

-- name: note_erasure
INSERT INTO erasures DEFAULT VALUES;

-- name: newest_erasure
SELECT max(id) FROM erasures;

-- name: clear_erasures
DELETE FROM erasures WHERE id <= ?;

-- name: delete_story
DELETE FROM turns WHERE pos BETWEEN :first AND :last;
DELETE FROM ids WHERE story = :story;
DELETE FROM targets WHERE story = :story;
DELETE FROM gathered WHERE fold IN (SELECT number FROM folds WHERE story = :story);
DELETE FROM folds WHERE story = :story;
DELETE FROM texts WHERE story = :story;
DELETE FROM snapshots WHERE story = :story;
DELETE FROM indexed WHERE story = :story;
DELETE FROM channels WHERE story = :story;
DELETE FROM branches WHERE story = :story;
DELETE FROM stories WHERE id = :story;

-- name: merge_words
INSERT INTO words (words, rank) VALUES ('merge', ?);
