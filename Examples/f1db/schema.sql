-- F1DB as tables: Formula 1 from 1950 on. Data: F1DB, https://www.f1db.com, CC BY 4.0.
-- One CSV file for each table; nullable wherever the data has gaps.
CREATE TABLE continents (
    id INTEGER PRIMARY KEY,
    slug TEXT NOT NULL UNIQUE,
    code TEXT NOT NULL,
    name TEXT NOT NULL,
    demonym TEXT
);
CREATE TABLE countries (
    id INTEGER PRIMARY KEY,
    slug TEXT NOT NULL UNIQUE,
    alpha2_code TEXT,
    alpha3_code TEXT,
    ioc_code TEXT,
    name TEXT NOT NULL,
    demonym TEXT,
    continent_id INTEGER REFERENCES continents(id) ON DELETE CASCADE
);
CREATE INDEX countries_by_continent ON countries(continent_id);
CREATE TABLE circuits (
    id INTEGER PRIMARY KEY,
    slug TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    full_name TEXT,
    previous_names TEXT,
    type TEXT,
    direction TEXT,
    place_name TEXT,
    country_id INTEGER REFERENCES countries(id) ON DELETE CASCADE,
    latitude REAL,
    longitude REAL,
    length_km REAL,
    turns INTEGER
);
CREATE INDEX circuits_by_country ON circuits(country_id);
CREATE TABLE circuit_layouts (
    id INTEGER PRIMARY KEY,
    slug TEXT NOT NULL,
    circuit_id INTEGER REFERENCES circuits(id) ON DELETE CASCADE,
    length_km REAL,
    turns INTEGER
);
CREATE INDEX circuit_layouts_by_circuit ON circuit_layouts(circuit_id);
CREATE TABLE grands_prix (
    id INTEGER PRIMARY KEY,
    slug TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    full_name TEXT,
    short_name TEXT,
    abbreviation TEXT,
    country_id INTEGER REFERENCES countries(id) ON DELETE SET NULL
);
CREATE INDEX grands_prix_by_country ON grands_prix(country_id);
CREATE TABLE constructors (
    id INTEGER PRIMARY KEY,
    slug TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    full_name TEXT,
    country_id INTEGER REFERENCES countries(id) ON DELETE SET NULL
);
CREATE INDEX constructors_by_country ON constructors(country_id);
CREATE TABLE engine_manufacturers (
    id INTEGER PRIMARY KEY,
    slug TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    country_id INTEGER REFERENCES countries(id) ON DELETE SET NULL
);
CREATE INDEX engine_manufacturers_by_country ON engine_manufacturers(country_id);
CREATE TABLE tyre_manufacturers (
    id INTEGER PRIMARY KEY,
    slug TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    country_id INTEGER REFERENCES countries(id) ON DELETE SET NULL
);
CREATE INDEX tyre_manufacturers_by_country ON tyre_manufacturers(country_id);
CREATE TABLE engines (
    id INTEGER PRIMARY KEY,
    slug TEXT NOT NULL,
    engine_manufacturer_id INTEGER REFERENCES engine_manufacturers(id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    full_name TEXT,
    capacity_l REAL,
    configuration TEXT,
    aspiration TEXT
);
CREATE INDEX engines_by_manufacturer ON engines(engine_manufacturer_id);
CREATE TABLE chassis (
    id INTEGER PRIMARY KEY,
    slug TEXT NOT NULL,
    constructor_id INTEGER REFERENCES constructors(id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    full_name TEXT
);
CREATE INDEX chassis_by_constructor ON chassis(constructor_id);
CREATE TABLE entrants (
    id INTEGER PRIMARY KEY,
    slug TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL
);
CREATE TABLE drivers (
    id INTEGER PRIMARY KEY,
    slug TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    first_name TEXT,
    last_name TEXT,
    full_name TEXT,
    abbreviation TEXT,
    permanent_number INTEGER,
    gender TEXT,
    date_of_birth TEXT,
    date_of_death TEXT,
    place_of_birth TEXT,
    birth_country_id INTEGER REFERENCES countries(id) ON DELETE SET NULL,
    nationality_country_id INTEGER REFERENCES countries(id) ON DELETE SET NULL,
    second_nationality_country_id INTEGER REFERENCES countries(id) ON DELETE SET NULL
);
CREATE INDEX drivers_by_birth_country ON drivers(birth_country_id);
CREATE INDEX drivers_by_nationality ON drivers(nationality_country_id);
CREATE INDEX drivers_by_second_nationality ON drivers(second_nationality_country_id);
CREATE TABLE seasons (
    id INTEGER PRIMARY KEY,
    year INTEGER NOT NULL UNIQUE
);
CREATE TABLE season_entries (
    id INTEGER PRIMARY KEY,
    season_id INTEGER REFERENCES seasons(id) ON DELETE CASCADE,
    entrant_id INTEGER REFERENCES entrants(id) ON DELETE CASCADE,
    country_id INTEGER REFERENCES countries(id) ON DELETE SET NULL,
    constructor_id INTEGER REFERENCES constructors(id) ON DELETE SET NULL,
    engine_manufacturer_id INTEGER REFERENCES engine_manufacturers(id) ON DELETE SET NULL,
    chassis_id INTEGER REFERENCES chassis(id) ON DELETE SET NULL,
    engine_id INTEGER REFERENCES engines(id) ON DELETE SET NULL,
    tyre_manufacturer_id INTEGER REFERENCES tyre_manufacturers(id) ON DELETE SET NULL
);
CREATE INDEX season_entries_by_season ON season_entries(season_id);
CREATE INDEX season_entries_by_entrant ON season_entries(entrant_id);
CREATE TABLE season_entry_drivers (
    id INTEGER PRIMARY KEY,
    season_entry_id INTEGER REFERENCES season_entries(id) ON DELETE CASCADE,
    driver_id INTEGER REFERENCES drivers(id) ON DELETE CASCADE,
    rounds TEXT,
    test_driver BOOLEAN
);
CREATE INDEX season_entry_drivers_by_entry ON season_entry_drivers(season_entry_id);
CREATE INDEX season_entry_drivers_by_driver ON season_entry_drivers(driver_id);
CREATE TABLE races (
    id INTEGER PRIMARY KEY,
    season_id INTEGER REFERENCES seasons(id) ON DELETE CASCADE,
    round INTEGER,
    date TEXT,
    time TEXT,
    grand_prix_id INTEGER REFERENCES grands_prix(id) ON DELETE SET NULL,
    official_name TEXT,
    qualifying_format TEXT,
    circuit_id INTEGER REFERENCES circuits(id) ON DELETE CASCADE,
    circuit_layout_id INTEGER REFERENCES circuit_layouts(id) ON DELETE SET NULL,
    circuit_type TEXT,
    direction TEXT,
    course_length_km REAL,
    turns INTEGER,
    laps INTEGER,
    distance_km REAL
);
CREATE INDEX races_by_season ON races(season_id);
CREATE INDEX races_by_circuit ON races(circuit_id);
CREATE INDEX races_by_circuit_layout ON races(circuit_layout_id);
CREATE TABLE session_results (
    id INTEGER PRIMARY KEY,
    race_id INTEGER REFERENCES races(id) ON DELETE CASCADE,
    session TEXT,
    position INTEGER,
    position_text TEXT,
    driver_number TEXT,
    driver_id INTEGER REFERENCES drivers(id) ON DELETE CASCADE,
    constructor_id INTEGER REFERENCES constructors(id) ON DELETE CASCADE,
    engine_manufacturer_id INTEGER REFERENCES engine_manufacturers(id) ON DELETE SET NULL,
    tyre_manufacturer_id INTEGER REFERENCES tyre_manufacturers(id) ON DELETE SET NULL,
    time TEXT,
    q1 TEXT,
    q2 TEXT,
    q3 TEXT,
    gap TEXT,
    interval TEXT,
    laps INTEGER
);
CREATE INDEX session_results_by_race ON session_results(race_id);
CREATE INDEX session_results_by_driver ON session_results(driver_id);
CREATE TABLE race_results (
    id INTEGER PRIMARY KEY,
    race_id INTEGER REFERENCES races(id) ON DELETE CASCADE,
    kind TEXT,
    position INTEGER,
    position_text TEXT,
    driver_number TEXT,
    driver_id INTEGER REFERENCES drivers(id) ON DELETE CASCADE,
    constructor_id INTEGER REFERENCES constructors(id) ON DELETE CASCADE,
    engine_manufacturer_id INTEGER REFERENCES engine_manufacturers(id) ON DELETE SET NULL,
    tyre_manufacturer_id INTEGER REFERENCES tyre_manufacturers(id) ON DELETE SET NULL,
    laps INTEGER,
    time TEXT,
    time_penalty TEXT,
    gap TEXT,
    interval TEXT,
    reason_retired TEXT,
    points REAL,
    grid_position TEXT,
    fastest_lap BOOLEAN
);
CREATE INDEX race_results_by_race ON race_results(race_id);
CREATE INDEX race_results_by_driver ON race_results(driver_id);
CREATE TABLE starting_grid (
    id INTEGER PRIMARY KEY,
    race_id INTEGER REFERENCES races(id) ON DELETE CASCADE,
    kind TEXT,
    position INTEGER,
    position_text TEXT,
    driver_number TEXT,
    driver_id INTEGER REFERENCES drivers(id) ON DELETE CASCADE,
    constructor_id INTEGER REFERENCES constructors(id) ON DELETE CASCADE,
    engine_manufacturer_id INTEGER REFERENCES engine_manufacturers(id) ON DELETE SET NULL,
    tyre_manufacturer_id INTEGER REFERENCES tyre_manufacturers(id) ON DELETE SET NULL,
    grid_penalty TEXT,
    time TEXT
);
CREATE INDEX starting_grid_by_race ON starting_grid(race_id);
CREATE TABLE fastest_laps (
    id INTEGER PRIMARY KEY,
    race_id INTEGER REFERENCES races(id) ON DELETE CASCADE,
    position INTEGER,
    driver_number TEXT,
    driver_id INTEGER REFERENCES drivers(id) ON DELETE CASCADE,
    constructor_id INTEGER REFERENCES constructors(id) ON DELETE CASCADE,
    engine_manufacturer_id INTEGER REFERENCES engine_manufacturers(id) ON DELETE SET NULL,
    tyre_manufacturer_id INTEGER REFERENCES tyre_manufacturers(id) ON DELETE SET NULL,
    lap INTEGER,
    time TEXT,
    gap TEXT
);
CREATE INDEX fastest_laps_by_race ON fastest_laps(race_id);
CREATE TABLE driver_standings (
    id INTEGER PRIMARY KEY,
    race_id INTEGER REFERENCES races(id) ON DELETE CASCADE,
    position INTEGER,
    position_text TEXT,
    driver_id INTEGER REFERENCES drivers(id) ON DELETE CASCADE,
    points REAL
);
CREATE INDEX driver_standings_by_race ON driver_standings(race_id);
CREATE TABLE constructor_standings (
    id INTEGER PRIMARY KEY,
    race_id INTEGER REFERENCES races(id) ON DELETE CASCADE,
    position INTEGER,
    position_text TEXT,
    constructor_id INTEGER REFERENCES constructors(id) ON DELETE CASCADE,
    engine_manufacturer_id INTEGER REFERENCES engine_manufacturers(id) ON DELETE SET NULL,
    points REAL
);
CREATE INDEX constructor_standings_by_race ON constructor_standings(race_id);
CREATE TABLE pit_stops (
    id INTEGER PRIMARY KEY,
    race_id INTEGER REFERENCES races(id) ON DELETE CASCADE,
    position INTEGER,
    driver_number TEXT,
    driver_id INTEGER REFERENCES drivers(id) ON DELETE CASCADE,
    constructor_id INTEGER REFERENCES constructors(id) ON DELETE CASCADE,
    engine_manufacturer_id INTEGER REFERENCES engine_manufacturers(id) ON DELETE SET NULL,
    tyre_manufacturer_id INTEGER REFERENCES tyre_manufacturers(id) ON DELETE SET NULL,
    stop INTEGER,
    lap INTEGER,
    time TEXT
);
CREATE INDEX pit_stops_by_race ON pit_stops(race_id);
