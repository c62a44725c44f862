"""CSV files of 300 teams and 20,000 players, with quotes, commas, line breaks and letters beyond ASCII in them.

  players.py make FOLDER         writes teams.csv and players.csv into a new folder
  players.py compare ONE OTHER   fails unless both folders hold the same, whatever the ids are
"""
import csv
import os
import sys


def write(folder, name, columns, rows):
    with open(os.path.join(folder, name), 'w', newline='') as file:
        csv.writer(file).writerows([columns, *rows])


def make(folder):
    os.mkdir(folder)
    write(folder, 'teams.csv', ['id', 'name', 'city'], (
        [key * 7, f'Team "{key}", ñ', '' if key % 3 else f'City\n{key}'] for key in range(1, 301)))
    write(folder, 'players.csv', ['id', 'name', 'team_id', 'height'], (
        [key, f'Player {key}', (key % 300 + 1) * 7, key % 90 + 110.5] for key in range(1, 20001)))


def world(folder):
    """Name, height and team of each player, without ids."""
    def rows(name):
        with open(os.path.join(folder, name), newline='') as file:
            return list(csv.DictReader(file))
    teams = {row['id']: (row['name'], row['city']) for row in rows('teams.csv')}
    return sorted((row['name'], float(row['height']), teams[row['team_id']])
                  for row in rows('players.csv'))


order, *folders = sys.argv[1:]
if order == 'make':
    make(*folders)
elif world(folders[0]) != world(folders[1]):
    sys.exit(f'players: {folders[1]} does not hold what {folders[0]} holds')
