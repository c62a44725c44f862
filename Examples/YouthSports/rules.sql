-- Who may see and change what:
--     martlet serve --data data --schema schema.sql --rules rules.sql

-- Everyone sees teams, players and events; only coaches change them.
CREATE POLICY everyone ON teams FOR SELECT USING (true);
CREATE POLICY everyone ON players FOR SELECT USING (true);
CREATE POLICY everyone ON events FOR SELECT USING (true);
CREATE POLICY everyone ON attendances FOR SELECT USING (true);
CREATE POLICY coaches ON teams TO coach USING (true);
CREATE POLICY coaches ON players TO coach USING (true);
CREATE POLICY coaches ON events TO coach USING (true);

-- Helpers note something about a player, and who came.
CREATE POLICY helpers ON players FOR UPDATE TO helper USING (true);
CREATE POLICY helpers ON attendances TO coach, helper USING (true);
GRANT SELECT ON players TO PUBLIC;
GRANT UPDATE (notes) ON players TO helper;
GRANT ALL ON players TO coach;

-- Health checks, and the staff's telephone numbers, are seen by coaches alone.
CREATE POLICY coaches ON staff TO coach USING (true);
CREATE POLICY coaches ON duties TO coach USING (true);
CREATE POLICY coaches ON screenings TO coach USING (true);
CREATE POLICY coaches ON measurements TO coach USING (true);
