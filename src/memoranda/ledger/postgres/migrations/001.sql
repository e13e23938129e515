-- reads: 1
-- writes: 1
-- Every statement of memoranda names the space; the policies refuse the rows of another one all the same.

create table memoranda.space (
    name text collate "C" primary key,
    id uuid not null default gen_random_uuid(),
    last bigint not null default 0,          -- the number of the latest change
    epoch bigint not null default 0,         -- goes up when the journal is written anew
    files bigint not null default 0,         -- goes up when a shared file changes
    made_at timestamptz not null default now()
);

create table memoranda.note (
    space text collate "C" not null,
    project text collate "C" not null,
    path text collate "C" not null,
    kind text collate "C" not null check (kind in ('file', 'folder', 'link')),
    body bytea,                              -- of a file
    sha256 text collate "C",                 -- of a file
    link text,                               -- where a link leads
    mode integer,
    changed_ns bigint,                       -- nanoseconds since 1970, by the clock of the writer
    number bigint not null,                  -- the last change that touched the row
    primary key (space, project, path)
) partition by list (space);
create index on memoranda.note (space, number);

create table memoranda.journal (
    space text collate "C" not null,
    number bigint not null,
    id uuid not null,                        -- by which a writer asks whether its change was committed
    at timestamptz not null,                 -- by the clock of the writer; the order is that of the numbers
    line bytea not null,
    primary key (space, number)
) partition by list (space);
create index on memoranda.journal (space, id);

create table memoranda.blob (
    space text collate "C" not null,
    sha256 text collate "C" not null,
    body bytea not null,
    primary key (space, sha256)
) partition by list (space);

create table memoranda.access (
    space text collate "C" not null,
    id text collate "C" not null,            -- of a note
    count bigint not null default 0,
    used bigint not null default 0,          -- seconds since 1970
    primary key (space, id)
) partition by list (space);

create table memoranda.shared_file (
    space text collate "C" not null,
    name text collate "C" not null,
    data bytea not null,
    primary key (space, name)
);

do $$
declare
    name text;
begin
    foreach name in array array['note', 'journal', 'blob', 'access', 'shared_file'] loop
        execute format('alter table memoranda.%I enable row level security', name);
        execute format('alter table memoranda.%I force row level security', name);
        execute format(
            'create policy one_space on memoranda.%I using (space = current_setting(''memoranda.space'', true))',
            name
        );
    end loop;
end
$$;
alter table memoranda.space enable row level security;
alter table memoranda.space force row level security;
create policy one_space on memoranda.space using (name = current_setting('memoranda.space', true));
