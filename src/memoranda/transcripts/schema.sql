-- The index of transcripts: derived, may be deleted at any time. It holds words to search by and where each turn is in
-- its source, never a text.

-- A file with transcripts, and how far it was read. `state` is the format's, as JSON; `trouble` why it is not read.
create table source (
  id       integer primary key,
  agent    text not null,
  format   text not null,
  path     text not null unique,
  stamp    text not null default '',
  state    text not null default '{}',
  trouble  text not null default ''
);
-- `began` and `ended` are seconds since 1970.
create table session (
  id      integer primary key,
  source  integer not null,
  name    text not null,
  folder  text not null,
  began   integer not null,
  ended   integer not null,
  unique (source, name)
);
create index session_name on session (name);
-- `exchange`: the turn of the person that began it, or this one. `mark`: of the text, to see that it is another.
-- `is_statement`: 1 where the person tells something, and does not only ask or give work.
create table turn (
  id        integer primary key autoincrement,
  session   integer not null,
  exchange  integer not null,
  kind      integer not null,
  time      integer not null,
  position  text not null,
  mark      integer not null,
  is_statement integer not null
);
create index turn_session on turn (session);
create virtual table turn_fts using fts5(
  words,
  content = '', tokenize = "porter unicode61 remove_diacritics 0 categories 'L* M* N* Co'"
);
-- Words are collected in memory before they are merged into the table: the first index takes half the time.
insert into turn_fts (turn_fts, rank) values ('hashsize', 16777216);

-- What a session teaches (lessons.py): `turn` is where it stands, `start` and `stop` which characters of it, `other` the
-- turn that mended what failed. `mark` is the same for the same lesson.
create table lesson (
  id       integer primary key,
  kind     integer not null,
  session  integer not null,
  turn     integer not null,
  other    integer,
  start    integer not null,
  stop     integer not null,
  time     integer not null,
  mark     integer not null
);
create index lesson_session on lesson (session);
create index lesson_mark on lesson (mark);
-- What a lesson is about: hashes of commands, names of packages and of code, errors.
create table anchor (
  term    integer not null,
  lesson  integer not null,
  primary key (term, lesson)
) without rowid;
create index anchor_lesson on anchor (lesson);
-- When a command, by its hash, worked for the last time: what failed before it may work now.
create table success (
  term  integer primary key,
  time  integer not null
);
