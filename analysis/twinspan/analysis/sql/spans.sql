-- Every span that was recorded, one row each, with every known column.
CREATE VIEW spans AS
SELECT {columns}
FROM recorded;
