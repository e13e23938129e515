-- reads: 1
-- writes: 1
-- What a replica counted is sent under a mark that stands in its log too, so that none is added twice. A mark is
-- removed when the log is.

create table memoranda.counted (
    space text collate "C" not null,
    mark uuid not null,
    primary key (space, mark)
);
alter table memoranda.counted enable row level security;
alter table memoranda.counted force row level security;
create policy one_space on memoranda.counted using (space = current_setting('memoranda.space', true));
