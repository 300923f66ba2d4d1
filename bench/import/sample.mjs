// One sample: the CPU time and the duration of an import, or of opening a feed after the import.
// `node bench/import/sample.mjs <name>`
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { cpuNs } from '../support/cpu.mjs';

const dist = fileURLToPath(new URL('../../dist/', import.meta.url));
const built = (file) => pathToFileURL(join(dist, file)).href;
const packages = ['rxjs', 'io-ts', 'fp-ts/lib/Either.js', 'ws', 'undici'];

const load = async (modules) => {
  for (const each of modules) await import(each);
};

/** For each name: the modules that are imported before the clock starts, and those that are measured. */
const imports = {
  nothing: [[], []],
  rxjs: [[], ['rxjs']],
  'the dependencies': [[], packages],
  'ours alone': [packages, [built('index.js')]],
  ours: [[], [built('index.js')]],
  './operators': [[], [built('operators/index.js')]],
  './browser': [[], [built('browser/index.js')]],
  './relay': [[], [built('relay/index.js')]],
  './testing': [[], [built('testing/index.js')]],
};

/** Opens a feed of a service in another process, until its first frame. */
const opening = async (receiveIn) => {
  const { firstValueFrom } = await import('rxjs');
  const { tradeFeed$ } = await import(built('index.js'));
  const { startSender } = await import('../support/child.mjs');
  const settings = { framesPerSecond: 1_000, frameBytes: 256 };
  const { baseUrl, stop } = await startSender('paced-sender', [JSON.stringify(settings)]);
  const feed$ = tradeFeed$('market', { baseUrl, apiKey: 'bench', receiveIn });
  return { measured: () => firstValueFrom(feed$), stop };
};

const importing = async ([before, counted]) => {
  await load(before);
  return { measured: () => load(counted), stop: () => {} };
};

const name = process.argv[2];
const thread = { 'a feed': 'main', 'a feed in a worker': 'worker' }[name];
const { measured, stop } = await (thread ? opening(thread) : importing(imports[name]));
const from = { cpu: cpuNs(), wall: performance.now() };
await measured();
const cpuMs = cpuNs(from.cpu) / 1e6;
const wallMs = performance.now() - from.wall;
await stop();
console.log(JSON.stringify({ wallMs, cpuMs }));
process.exit();
