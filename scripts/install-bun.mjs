// Installs Bun from npm into `temp/bun`. After that, `npm run bench -- e2e` measures its WebSocket as well.
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { bunFolder, bunPackage, bunProgram } from './bun.mjs';

mkdirSync(bunFolder, { recursive: true });
execFileSync('npm', ['install', '--prefix', bunFolder, '--ignore-scripts', '--no-audit', '--no-fund', bunPackage], {
  stdio: 'inherit',
});
console.log(`Bun ${execFileSync(bunProgram, ['--version'], { encoding: 'utf8' }).trim()}`);
