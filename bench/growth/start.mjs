// One sample: how long an import takes. `node bench/growth/start.mjs <name>`
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const dist = fileURLToPath(new URL('../../dist/', import.meta.url));
const ours = (file) => [pathToFileURL(join(dist, file)).href];
/** For each name: the modules that are imported before the clock starts, and the modules that are measured. */
const imports = {
  nothing: [[], []],
  rxjs: [[], ['rxjs']],
  'io-ts and fp-ts': [[], ['io-ts', 'fp-ts/lib/Either.js']],
  ws: [[], ['ws']],
  undici: [[], ['undici']],
  'ours alone': [['rxjs', 'io-ts', 'fp-ts/lib/Either.js', 'ws', 'undici'], ours('index.js')],
  'all of it': [[], ours('index.js')],
  './operators': [[], ours('operators/index.js')],
  './browser': [[], ours('browser/index.js')],
};
const [before, counted] = imports[process.argv[2]];
for (const each of before) await import(each);
const from = { cpu: process.cpuUsage(), wall: performance.now() };
for (const each of counted) await import(each);
const { user, system } = process.cpuUsage(from.cpu);
console.log(JSON.stringify({ wallMs: performance.now() - from.wall, cpuMs: (user + system) / 1e3 }));
