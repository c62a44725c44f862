"""The PostgreSQL and the Redis that scripts/databases has started for this run."""
import os
import urllib.parse

import psycopg2

from machine import named


class Databases:
    def __init__(self):
        self.url = os.environ['POSTGRES_URL']
        self.redis = os.environ['REDIS_URL']
        # Who started us started them, too.
        self.processes = named(os.getppid(), 'postgres')[:1] + named(os.getppid(), 'redis')[:1]

    def of(self, name):
        return urllib.parse.urlsplit(self.url)._replace(path='/' + name).geturl()

    def connect(self, name=None):
        connection = psycopg2.connect(self.of(name) if name else self.url)
        connection.autocommit = True
        return connection

    def create(self, name):
        """A database of its own; its address."""
        with self.connect().cursor() as cursor:
            cursor.execute(f'CREATE DATABASE {name}')
        return self.of(name)

    def analyse(self, name):
        """What autovacuum would do a minute after the records came, in the midst of a run."""
        with self.connect(name).cursor() as cursor:
            cursor.execute('VACUUM ANALYZE')

    def version(self):
        with self.connect().cursor() as cursor:
            cursor.execute('SHOW server_version')
            return cursor.fetchone()[0]
