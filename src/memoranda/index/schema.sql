-- The index: derived from the notes on disk, may be deleted at any time. Any change here, in
-- writer.py, filters.py, features.py, text/tokens.py or note/links.py that alters what is stored raises SCHEMA_VERSION
-- (database.py).

-- `size`, `mtime_ns`, `inode`, `ctime_ns`: of the graph file that is the project, as it was when the index showed it; null
-- for a folder.
create table project (
  id       integer primary key,
  name     text not null unique,
  size     integer,
  mtime_ns integer,
  inode    integer,
  ctime_ns integer
);

-- `row` only ever grows, so its order is the order of change. Times are microseconds since 1970.
-- `own`: the permalink stands in the frontmatter. `base`: the derived permalink of a note that had
-- to take a number (`base` || '-1'), else null. `begins`, `ends`: from when until when it is valid, `limited`: not
-- all the time since it was written (filters.py). `suspicious`: a list of the gate's rules that saw injected
-- instructions in the text, else null. `provenance`: where the text comes from, as JSON; null: a file of another
-- program.
create table note (
  row          integer primary key autoincrement,
  project      integer not null,
  path         text not null,
  id           text not null,
  title        text not null,
  type         text not null,
  permalink    text not null,
  own          integer not null,
  base         text,
  etag         blob not null,
  size         integer not null,
  mtime_ns     integer not null,
  inode        integer not null,
  ctime_ns     integer not null,
  created      integer not null,
  changed      integer not null,
  updated      integer,
  date         text,
  phase        text,
  category     text,
  scope        text not null,
  source       text,
  expires      integer,
  access_count integer not null,
  version      integer not null,
  locked       integer not null,
  tags         text,
  aliases      text,
  links        text,
  warnings     text,
  begins       integer not null,
  ends         integer,
  limited      integer,
  suspicious   text,
  provenance   text
);
create unique index note_path on note (project, path);
create index note_id on note (id);
create index note_permalink on note (permalink);
-- With all that tells whom a list of the last changes shows, so that they are counted without their rows.
create index note_changed on note (changed, project, scope);
create index note_created on note (created);
create index note_base on note (base) where base is not null;
create index note_scope on note (scope) where scope <> 'global';
create index note_suspicious on note (row) where suspicious is not null;
create index note_expires on note (project, expires) where expires is not null;
create index note_limited on note (begins, ends) where limited;

-- How many notes lie in a folder at any depth ('' = the project), by scope, phase and category ('' for null).
create table tally (
  project  integer not null,
  folder   text not null,
  scope    text not null,
  phase    text not null,
  category text not null,
  notes    integer not null,
  primary key (project, folder, scope, phase, category)
) without rowid;

-- Files that are no notes (not text, a memory with a broken header), with their stamps: none is read again while it
-- is the same. `why` is empty where nobody need be told. `program`: the version of memoranda that failed at it, which is
-- its fault: another version reads it again. Empty where the file is at fault.
create table skipped (
  project  text not null,
  path     text not null,
  size     integer not null,
  mtime_ns integer not null,
  inode    integer not null,
  ctime_ns integer not null,
  why      text not null,
  program  text not null,
  primary key (project, path)
) without rowid;

-- Entries of project kv whose time is over and whose file waits for its removal: they are in no other
-- table, and so in no face. With their stamps, as a file that is known need not be read again.
create table expired (
  path      text primary key,
  size      integer not null,
  mtime_ns  integer not null,
  inode     integer not null,
  ctime_ns  integer not null,
  namespace text not null,
  key       text not null,
  scope     text not null
) without rowid;
create index expired_key on expired (key);

-- One row per note: the file's text, parted into frontmatter and body, and what is needed to take
-- the note's words out of the full-text tables again. `header` is JSON, which filters read faster than YAML;
-- null for notes without one. `fields` are the `key:: value` lines of the text as JSON, null where there are none. A long text has so many `passages`; the first one is in row 65536 * `row` of `passage`.
-- `folds`: folding changes more of it than the case of letters (listing.py). `chunks`: where it is cut for a search, three
-- numbers of 2 bytes for each chunk (features.py); null for a text of one chunk and for one with passages. `speakers`: who
-- says each chunk, as JSON; null where nobody is named.
create table text (
  row      integer primary key,
  front    text not null,
  header   text,
  fields   text,
  headings text not null,
  tags     text not null,
  facet    text not null,
  passages integer not null,
  folds    integer not null,
  chunks   blob,
  speakers text,
  text     text not null
);

-- Names a link could mean this note by, folded: contract 000b, 3.4.
create table note_fold (
  fold text not null,
  note integer not null,
  primary key (fold, note)
) without rowid;

-- Ids of notes that were merged into this one.
create table merged (
  id   text not null,
  note integer not null,
  primary key (id, note)
) without rowid;
create index merged_note on merged (note);

-- Ids of notes that this one supersedes; with `is_name` their names, as links have them.
create table superseded (
  id      text not null,
  note    integer not null,
  is_name integer not null,
  primary key (id, note)
) without rowid;
create index superseded_note on superseded (note);
create index superseded_name on superseded (note) where is_name;

-- What notes say that holds for one value at a time (claims.py, changes.py). `start` and `stop`: its sentence in the
-- body; 0 for an item of a list. `kind`: 0 if Review asks which of two holds, 1 if it ends what was said before, 2 if it
-- ends nothing.
create table claim (
  subject text not null,
  note    integer not null,
  name    text not null,
  value   text not null,
  line    integer not null,
  start   integer not null,
  stop    integer not null,
  kind    integer not null,
  primary key (subject, note, line)
) without rowid;
create index claim_note on claim (note);

create table link (
  note     integer not null,
  position integer not null,
  type     text not null,
  target   text not null,
  project  text,
  context  text,
  line     integer not null,
  fold     text,
  item     integer not null,
  rest     text not null,
  primary key (note, position)
) without rowid;
create index link_fold on link (fold);

-- The notes of project `graph` as entities (contract 002, 5), placeholders (`kind` null) among them.
-- `seq` only ever grows, so what changed since is found by it; `observations` is a JSON list.
create table entity (
  seq          integer primary key autoincrement,
  note         integer not null unique,
  created      integer not null,
  path         text not null,
  scope        text not null,
  name         text not null,
  kind         text,
  observations text not null
);
create index entity_order on entity (created, path);

create table passage (
  row   integer primary key,
  start integer not null,
  stop  integer not null
);

-- Notes with very many passages whose words are not all in `passage_fts` yet. `next`: the row of the first passage
-- that is missing there, as are those after it. `lacks_stems`: they are not in `stem_fts`, either (placing.py).
create table unplaced (
  note        integer primary key,
  next        integer not null,
  lacks_stems integer not null
);

-- The body comes first: the places of words in any other column cost two bytes more for each word.
create virtual table note_fts using fts5(
  body, title, headings, tags, address, facet,
  content = '', tokenize = "unicode61 remove_diacritics 0 categories 'L* M* N* Co'"
);
-- The same notes by name alone, so that a word of every body is still found quickly in titles.
create virtual table name_fts using fts5(
  title, headings, tags, facet,
  content = '', tokenize = "unicode61 remove_diacritics 0 categories 'L* M* N* Co'"
);
-- A table is asked segment by segment. In one as small as this, four of one size are merged rather than sixteen.
insert into name_fts (name_fts, rank) values ('crisismerge', 4);
-- Passages of long notes only, to find the place of a hit without reading the whole text.
create virtual table passage_fts using fts5(
  body,
  content = '', columnsize = 0, tokenize = "unicode61 remove_diacritics 0 categories 'L* M* N* Co'"
);

-- Ranking features of a note (features.py). Notes of one `conversation` (null: none) are in the order of `position`.
-- `words`: about how many there are; `question`: the share of questions in percent; `first_person`: how many such
-- pronouns, up to 4; `has_time`: it names a time; `is_long`: it is more than one chunk; `is_standing`: somebody says in it how
-- things are to be from now on (text/standing.py).
create table feature (
  row          integer primary key,
  conversation integer,
  position     integer not null,
  speaker      text,
  day          text not null,
  words        integer not null,
  question     integer not null,
  first_person integer not null,
  has_time     integer not null,
  is_long      integer not null,
  is_standing  integer not null
);
create index feature_conversation on feature (conversation, position, row) where conversation is not null;
create index feature_speaker on feature (speaker, conversation) where speaker is not null;
-- All words of a note by their stem: only whether it holds one is asked, never where or how often.
create virtual table stem_fts using fts5(
  words,
  content = '', columnsize = 0, detail = none, tokenize = "porter unicode61 remove_diacritics 0 categories 'L* M* N* Co'"
);
create virtual table stems using fts5vocab(stem_fts, row);
-- How many bytes of words a table collects in memory before it writes a segment. With 1 MB, the usual, an edit of a note of
-- 100,000 different words takes 1.5 times as long, because its words are written when they are taken out and when they
-- are put in.
insert into note_fts (note_fts, rank) values ('hashsize', 16777216);
insert into name_fts (name_fts, rank) values ('hashsize', 16777216);
insert into passage_fts (passage_fts, rank) values ('hashsize', 16777216);
insert into stem_fts (stem_fts, rank) values ('hashsize', 16777216);

-- The passages of a note as they are embedded (docs/semantic.md), filled in the background, in the order of the notes:
-- start, stop and key of each, 4, 4 and 8 bytes.
create table embedded (
  note  integer primary key,
  spans blob not null
);

-- What the planner should know from the start: without it, SQLite walks a whole project wherever the project
-- stands beside a name. The numbers are those of a vault of 100,000 notes.
-- Of one table only: what it finds in those of the full-text indexes, which hold next to nothing yet, would have the
-- planner scan them whole for every merge of segments, in this process even once it is deleted.
analyze project;
delete from sqlite_stat1;
insert into sqlite_stat1 (tbl, idx, stat) values
  ('note', 'note_path', '100000 20000 1'),
  ('note', 'note_id', '100000 1'),
  ('note', 'note_permalink', '100000 2'),
  ('note', 'note_changed', '100000 2 2 2'),
  ('note', 'note_created', '100000 2'),
  ('note', 'note_base', '1000 3'),
  ('note', 'note_scope', '1000 100'),
  ('note', 'note_expires', '1000 500 2'),
  ('note', 'note_limited', '1000 2 1'),
  ('note_fold', 'note_fold', '500000 2 1'),
  ('link', 'link', '300000 3 1'),
  ('link', 'link_fold', '300000 3'),
  ('superseded', 'superseded', '1000 2 1'),
  ('superseded', 'superseded_note', '1000 2'),
  ('claim', 'claim', '10000 2 1 1'),
  ('claim', 'claim_note', '10000 2'),
  ('feature', 'feature_conversation', '200000 20 1 1'),
  ('feature', 'feature_speaker', '200000 1000 2'),
  ('project', 'sqlite_autoindex_project_1', '6 1');
analyze sqlite_schema;
