-- What happened in one home. Not derived: without this file the notes are whole, and their history is gone.

create table if not exists change (
  number integer primary key,     -- from 1, without gaps but for what was purged; beside notes in
                                  -- PostgreSQL, from 1,000,000,000 for files of this machine
  time text not null,             -- ISO 8601, UTC
  verb text not null,
  project text not null,          -- what the change is listed under
  path text not null,
  agent text,                     -- null: the owner
  face text,                      -- the interface it came through
  undoes integer,                 -- the change it takes back
  run integer,                    -- the first change of the run of a job that made it
  details text,                   -- JSON
  made_by text                    -- JSON: client, session, tool
);
create index if not exists change_agent on change (agent, number) where agent is not null;
create index if not exists change_place on change (project, path);
create index if not exists change_time on change (time);
create index if not exists change_run on change (run) where run is not null;
create index if not exists change_undoes on change (undoes) where undoes is not null;
-- Undos of several changes, whose numbers are in the details.
create index if not exists change_several on change (number)
  where undoes is not null and details is not null;

-- One file or folder a change touched; see Touched in change.py.
create table if not exists step (
  change integer not null,
  position integer not null,
  do text not null,
  project text not null,
  path text not null,
  dest text not null default '',  -- where a move goes
  old text,                       -- SHA-256 of the text before and after
  new text,
  mode integer,                   -- before
  scope text not null,
  link text not null default '',
  kept integer not null,          -- 0: the text before is not to be kept
  file text not null default '',  -- of a change of lines: the file used in place
  root text not null default '',  -- the folder of a project no other process would know
  size integer not null,
  made_by text,                   -- JSON: what more there is to say of where the text comes from
  primary key (change, position)
) without rowid;
create index if not exists step_path on step (path, project);
create index if not exists step_dest on step (dest, project) where dest <> '';
create index if not exists step_folder on step (project) where do = 'move' and old is null;
create index if not exists step_root on step (root) where root <> '';
create index if not exists step_scope on step (scope) where scope <> 'global';
-- The id of a memory is at the end of its file's name.
create index if not exists step_memory_id on step (substr(path, -11, 8))
  where project in ('categories', '.archive');
-- Ledgers of version 4 and before have this index, which left out the archive.
drop index if exists step_name_id;
create index if not exists step_private on step (change) where project = '.memoranda';
create index if not exists step_file on step (file, change) where file <> '';
create index if not exists step_old on step (old) where old is not null;
create index if not exists step_new on step (new) where new is not null;

-- Replaced and removed texts, as they were: what was erased can be looked for in the file. A large
-- one is a file named by its hash in texts/.
create table if not exists text (
  sha256 text primary key,
  data blob not null
);

-- Changes whose files may not have reached the disk: by number, with the boot they were made in.
create table if not exists unsynced (
  change integer primary key,
  batch integer not null,         -- the first change of the transaction
  boot text not null
);
-- What is needed to carry them out once more. Goes when the files are synced.
create table if not exists pending_step (
  change integer not null,
  position integer not null,
  root text not null,             -- absolute
  temp text not null,             -- the temporary file, and its folder in the project
  temp_folder text not null,
  mode integer,
  data blob,                      -- the new text; null: the temporary file was synced
  primary key (change, position)
);
-- A change of lines in a file used in place that is under way or not synced: JSON.
create table if not exists line_change (
  change integer primary key,
  record blob not null
);
-- A change that could not be carried out when it was found: its folder is out of reach.
create table if not exists waiting (
  change integer primary key
);
-- Folders in which a writer that died may have left temporary files.
create table if not exists temp_folder (
  project text not null,
  root text not null,
  path text not null,
  primary key (root, path)
) without rowid;

-- Where texts come from whose changes were purged.
create table if not exists origin (
  project text not null,
  path text not null,
  root text not null,
  new text not null,
  scope text not null,
  made_by text not null,
  primary key (new, project, path, root)
) without rowid;

-- What is being erased: a plan that every process may carry out to its end.
create table if not exists erasing (
  id integer primary key check (id = 1),
  plan text not null
);

-- Reads and uses that are in no header yet, by the id of a note.
create table if not exists read (
  key text primary key,
  count integer not null,         -- reads; 0: only a use
  read_at integer not null,       -- the last of them, in seconds since 1970, 0 for none
  used_at integer not null,       -- when it was last shown with its text, 0 for never
  restarted integer not null default 0  -- 1: what a database counted of it before is over
) without rowid;
-- Reads on their way to the database whose copy this home is.
create table if not exists sent_read (
  mark text not null,             -- the database knows by it whether they arrived
  key text not null,
  count integer not null,
  used_at integer not null,
  restarted integer not null,
  primary key (mark, key)
) without rowid;

-- What the owner answered, and what agents ask for. A step `set` writes a row, so undo takes it
-- back like a text.
create table if not exists review (
  kind text not null,             -- answer or request
  key text not null,              -- the question
  value text not null,            -- JSON
  primary key (kind, key)
) without rowid;

-- Who may come in over HTTP: one row each token, space, OAuth client, grant and short secret.
create table if not exists access (
  number integer primary key,     -- the order in which they were made
  section text not null,
  key text not null,
  value text not null,            -- JSON
  unique (section, key)
);
-- Calls of a token that may make only some a day.
create table if not exists day_calls (
  who text primary key,
  day text not null,              -- UTC
  calls integer not null
) without rowid;

-- Sessions of clients with hooks. May be deleted: then a session is told something twice.
create table if not exists session (
  client text not null,
  session text not null,          -- a hash of what the client calls it
  changed text not null,          -- ISO 8601, UTC
  saw text,                       -- until when it was told what others added
  primary key (client, session)
) without rowid;
create table if not exists session_item (
  client text not null,
  session text not null,
  kind text not null,             -- note: an id it was given; text: a hash of a line of it
  value text not null,
  primary key (client, session, kind, value)
) without rowid;

-- What agents got: one row a call that gave notes, the latest 20,000.
create table if not exists served (
  number integer primary key,
  time text not null,             -- ISO 8601, UTC
  agent text not null,
  how text not null,              -- the tool, or prompt or session start for what was told unasked
  asked text not null             -- what was asked for, its beginning
);
create index if not exists served_agent on served (agent, number);
create index if not exists served_time on served (time);
create table if not exists served_note (
  note text not null,             -- its id
  call integer not null,
  position integer not null,
  primary key (note, call)
) without rowid;
create index if not exists served_call on served_note (call, position);

-- Agents the owner paused.
create table if not exists paused (
  agent text primary key
) without rowid;

-- Files of the version before that are in these tables already, and are to be removed.
create table if not exists taken_over (
  name text primary key,
  inode integer not null,
  size integer not null           -- bytes of it that were taken over
) without rowid;
