-- reads: 1
-- writes: 1
-- What a replica counted is sent under a mark that stands in its log too, so that none is added twice. A mark is
-- removed when the log is.

create table commonplace.counted (
    space text collate "C" not null,
    mark uuid not null,
    primary key (space, mark)
);
alter table commonplace.counted enable row level security;
alter table commonplace.counted force row level security;
create policy one_space on commonplace.counted using (space = current_setting('commonplace.space', true));
