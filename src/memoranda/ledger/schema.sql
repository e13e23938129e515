-- What happened in one home. Not derived: without this file the notes are whole, and their history is gone.

create table if not exists change (
  number integer primary key,     -- from 1, without gaps but for what was purged
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
