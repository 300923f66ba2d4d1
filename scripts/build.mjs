// Builds dist with TypeScript 7, then removes the files of deleted or renamed sources. Other programs may be reading dist, so the folder
// stays.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const tsc = ['node_modules/typescript-7/bin/tsc', '-p', 'tsconfig.build.json', '--singleThreaded'];
const { status } = spawnSync(process.execPath, tsc, { stdio: 'inherit' });

const entries = existsSync('dist') ? readdirSync('dist', { recursive: true, withFileTypes: true }) : [];
for (const entry of entries) {
  const file = join(entry.parentPath ?? entry.path, entry.name);
  const source = file.replace(/^dist/, 'src').replace(/(?:\.d)?\.(c?)[jt]s(?:\.map)?$/, '.$1ts');
  if (entry.isFile() && !existsSync(source)) rmSync(file);
}
process.exitCode = status ?? 1;
