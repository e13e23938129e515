-- ~/.config/Cursor/User/globalStorage/state.vscdb
create table ItemTable (key text unique on conflict replace, value blob);
create table cursorDiskKV (key text unique on conflict replace, value blob);
insert into cursorDiskKV values ('composerData:comp-1', '{"composerId": "comp-1", "name": "cache", "createdAt": 1784278800000, "lastUpdatedAt": 1784278802000, "fullConversationHeadersOnly": [{"bubbleId": "b1", "type": 1}, {"bubbleId": "b2", "type": 2}]}');
insert into cursorDiskKV values ('bubbleId:comp-1:b2', '{"type": 2, "text": "The cache key omits the locale.", "toolFormerData": {"toolCallId": "x", "name": "run_terminal_cmd", "status": "completed", "rawArgs": "{\"command\": \"cachectl keys\"}", "result": "{\"output\": \"en\", \"exitCode\": 0}"}}');
insert into cursorDiskKV values ('bubbleId:comp-1:b1', '{"type": 1, "text": "Why is this stale?", "timestamp": 1784278801000, "workspaceProjectDir": "/work/cache"}');
insert into cursorDiskKV values ('composerData:broken', 'not json');
insert into cursorDiskKV values ('composerData:none', null);
insert into cursorDiskKV values ('composerData:comp-old', '{"composerId": "comp-old", "createdAt": 1784278000000, "lastUpdatedAt": 1784278002000, "conversation": [{"type": 1, "bubbleId": "i1", "text": "an older shape"}, {"type": 2, "bubbleId": "i2", "text": "still read"}]}');
