-- reads: 1
-- writes: 1
-- Row-level security of a parent does not hold for who names its partition: each has the policy of its own.

do $$
declare
    child regclass;
begin
    for child in
        select i.inhrelid::regclass from pg_inherits i
        where i.inhparent in (
            'memoranda.note'::regclass, 'memoranda.journal'::regclass,
            'memoranda.blob'::regclass, 'memoranda.access'::regclass
        )
    loop
        execute format('alter table %s enable row level security', child);
        execute format('alter table %s force row level security', child);
        execute format('drop policy if exists one_space on %s', child);
        execute format(
            'create policy one_space on %s using (space = current_setting(''memoranda.space'', true))',
            child
        );
    end loop;
end
$$;
