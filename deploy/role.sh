#!/bin/sh
# Run once, by the image of PostgreSQL, when the database is made: the servers call as a role that is no superuser, so
# that row-level security holds for it (docs/teams.md).
psql --no-psqlrc --set ON_ERROR_STOP=1 --set password="$POSTGRES_PASSWORD" --username "$POSTGRES_USER" <<'SQL'
create role memory login nosuperuser nobypassrls password :'password';
create database memory owner memory;
SQL
