-- ~/.local/share/goose/sessions/sessions.db
create table sessions (id text primary key, name text not null default '', description text not null default '', working_dir text not null, created_at timestamp, updated_at timestamp);
create table messages (id integer primary key autoincrement, message_id text, session_id text not null, role text not null, content_json text not null, created_timestamp integer not null);
insert into sessions values ('20260724_2', 'demo', '', '/work/pond', '2026-07-24T11:00:00Z', '2026-07-24T11:00:02Z');
insert into messages values (1, 'u1', '20260724_2', 'user', '[{"type": "text", "text": "feed the geese"}]', 1784282401);
insert into messages values (2, 'a1', '20260724_2', 'assistant', '[{"type": "text", "text": "They are fed."}]', 1784282402);
