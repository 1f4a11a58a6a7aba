-- The revision of migrations/ that equals these files; `tenure migrate` goes on from there.
create table alembic_version (
  version_num varchar(32) not null,

  constraint alembic_version_pkc primary key (version_num)
);

insert into alembic_version (version_num) values ('0001');
