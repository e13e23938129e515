-- ~/.local/share/opencode/opencode.db
create table session (id text primary key, directory text, title text, time_created integer, time_updated integer);
create table message (id text primary key, session_id text, time_created integer, time_updated integer, data text);
create table part (id text primary key, message_id text, session_id text, data text);
insert into session values ('ses_1', '/work/lathe', 'lathe', 1784278800000, 1784278809000);
insert into message values ('msg_1', 'ses_1', 1784278801000, 0, '{"role": "user", "time": {"created": 1784278801000}}');
insert into message values ('msg_2', 'ses_1', 1784278802000, 0, '{"role": "assistant", "time": {"created": 1784278802000}}');
insert into part values ('prt_1', 'msg_1', 'ses_1', '{"type": "text", "text": "turn the spindle"}');
insert into part values ('prt_2', 'msg_1', 'ses_1', '{"type": "text", "text": "injected by the client", "synthetic": true}');
insert into part values ('prt_3', 'msg_2', 'ses_1', '{"type": "tool", "tool": "bash", "callID": "o1", "state": {"status": "completed", "input": {"command": "lathe spin --fast"}, "output": "belt slipped", "metadata": {"exit": 4}}}');
insert into part values ('prt_4', 'msg_2', 'ses_1', '{"type": "text", "text": "The belt slipped at full speed."}');
