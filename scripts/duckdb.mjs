// DuckDB, a database in a library. It is not a dependency of the project: the tests of docs/how-to/query-recordings.md install it from npm.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';

const version = '1.5.6-r.1';
const name = '@duckdb/node-api';
const folder = resolve(import.meta.dirname, '../temp/duckdb', version);

/** Installs DuckDB into `temp/duckdb`, unless it is there. */
export const installDuckDb = () => {
  if (existsSync(join(folder, 'node_modules', name))) return;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{}');
  execFileSync('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', `${name}@${version}`], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
};

/** Opens a database in memory. Returns a function that runs a statement and resolves with its rows, whose values are as in JSON. */
export const openDuckDb = async () => {
  const { DuckDBInstance } = createRequire(join(folder, 'package.json'))(name);
  const connection = await (await DuckDBInstance.create(':memory:')).connect();
  return async (statement) => (await connection.runAndReadAll(statement)).getRowObjectsJson();
};
