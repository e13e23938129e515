-- reads: 5
-- writes: 5
-- A change and its steps are rows with the columns they have in every machine's ledger (ledger/schema.sql says what
-- each is), and texts have its names. Until here a change was one JSON line of `journal`. The change numbered 0 has
-- the origins of texts whose changes were purged: a step `origins` each.

create table memoranda.change (
    space text collate "C" not null,
    number bigint not null,
    id uuid not null,                        -- by which a writer asks whether its change was committed
    epoch bigint not null default 0,         -- of the space when the change was revised or taken over; 0: never
    time text not null,
    verb text not null,
    project text not null,
    path text not null,
    agent text,
    face text,
    undoes bigint,
    run bigint,
    details text,
    made_by text,
    primary key (space, number)
) partition by list (space);
create index on memoranda.change (space, id);
create index on memoranda.change (space, epoch) where epoch > 0;

create table memoranda.step (
    space text collate "C" not null,
    change bigint not null,
    position integer not null,
    "do" text not null,
    project text not null,
    path text not null,
    dest text not null,
    old text,
    new text,
    mode integer,
    scope text not null,
    link text not null,
    kept integer not null,
    file text not null,
    root text not null,
    size bigint not null,
    made_by text,
    primary key (space, change, position)
) partition by list (space);

alter table memoranda.blob rename to text;
alter table memoranda.text rename column body to data;

do $$
declare
    parent text;
    child record;
begin
    -- A home that was being moved here is moved anew, and nobody would drop these
    for child in
        select relname as name from pg_class where relnamespace = 'memoranda'::regnamespace and relkind = 'r'
            and relname ~ '^moving_(journal|blob)_[0-9a-f]{12}$'
    loop
        execute format('drop table memoranda.%I', child.name);
    end loop;
    for child in
        select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent = 'memoranda.text'::regclass
    loop
        execute format('alter table memoranda.%I rename to %I', child.name, 'text_' || right(child.name, 12));
    end loop;
    alter table memoranda.space no force row level security;
    for child in
        select c.relname as name, right(c.relname, 12) as suffix, pg_get_expr(c.relpartbound, c.oid) as bound
        from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent = 'memoranda.journal'::regclass
    loop
        -- The lines of every space, and not only of the one that this connection is about
        execute format('alter table memoranda.%I no force row level security', child.name);
        execute format(
            'create table memoranda.%I (like memoranda.change including all)', 'change_' || child.suffix
        );
        execute format('create table memoranda.%I (like memoranda.step including all)', 'step_' || child.suffix);
        -- The server has no text with a NUL in it. `\\u0000` is none: there a backslash is escaped. Every change gets the
        -- present epoch, since the version before did not note which changes it revised; so a replica that is of an
        -- epoch before fetches them all
        execute format(
            $sql$
            insert into memoranda.%I (space, number, id, epoch, time, verb, project, path, agent, face, undoes, run,
                details, made_by)
            select space, number, id, (select s.epoch from memoranda.space s where s.name = lines.space),
                line ->> 'time', line ->> 'verb', line ->> 'project', line ->> 'path',
                line ->> 'agent', line ->> 'face', (line ->> 'undoes')::bigint, (line ->> 'run')::bigint,
                (line -> 'details')::text, (line -> 'by')::text
            from (select space, number, id,
                    regexp_replace(convert_from(line, 'UTF8'), '(?<!\\)((?:\\\\)*)\\u0000', '\1\\u2400', 'g')::json as line
                from memoranda.%I) as lines
            $sql$,
            'change_' || child.suffix, child.name
        );
        execute format(
            $sql$
            insert into memoranda.%I (space, change, position, "do", project, path, dest, old, new, mode, scope, link,
                kept, file, root, size, made_by)
            select space, number, position - 1, file ->> 'do', file ->> 'project', file ->> 'path',
                coalesce(file ->> 'to', ''), file ->> 'old', file ->> 'new', (file ->> 'mode')::integer,
                coalesce(file ->> 'scope', 'global'), coalesce(file ->> 'link', ''),
                coalesce((file ->> 'kept')::boolean, true)::integer, coalesce(file ->> 'file', ''),
                coalesce(file ->> 'root', ''), coalesce((file ->> 'size')::bigint, 0), (file -> 'by')::text
            from (select space, number,
                    regexp_replace(convert_from(line, 'UTF8'), '(?<!\\)((?:\\\\)*)\\u0000', '\1\\u2400', 'g')::json as line
                from memoranda.%I) as lines,
                json_array_elements(line -> 'files') with ordinality as files (file, position)
            $sql$,
            'step_' || child.suffix, child.name
        );
        foreach parent in array array['change', 'step'] loop
            execute format('alter table memoranda.%I enable row level security', parent || '_' || child.suffix);
            execute format('alter table memoranda.%I force row level security', parent || '_' || child.suffix);
            execute format(
                'create policy one_space on memoranda.%I using (space = current_setting(''memoranda.space'', true))',
                parent || '_' || child.suffix
            );
            execute format(
                'alter table memoranda.%I attach partition memoranda.%I %s',
                parent, parent || '_' || child.suffix, child.bound
            );
        end loop;
    end loop;
    alter table memoranda.space force row level security;
    foreach parent in array array['change', 'step'] loop
        execute format('alter table memoranda.%I enable row level security', parent);
        execute format('alter table memoranda.%I force row level security', parent);
        execute format(
            'create policy one_space on memoranda.%I using (space = current_setting(''memoranda.space'', true))',
            parent
        );
    end loop;
end
$$;
drop table memoranda.journal;
