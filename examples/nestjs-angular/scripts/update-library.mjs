// Installs the library of this checkout again. npm keeps its copy while the version is the same, so remove the copy first.
import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
rmSync(new URL('../node_modules/rx-trade-feed', import.meta.url), { recursive: true, force: true });
process.exitCode = spawnSync('npm', ['install'], { cwd: root, stdio: 'inherit' }).status ?? 1;
