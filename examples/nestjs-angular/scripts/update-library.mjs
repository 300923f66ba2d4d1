// Takes the library of this checkout anew: npm keeps the copy that it has, as long as its version is the same.
import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
rmSync(new URL('../node_modules/rx-trade-feed', import.meta.url), { recursive: true, force: true });
process.exitCode = spawnSync('npm', ['install'], { cwd: root, stdio: 'inherit' }).status ?? 1;
