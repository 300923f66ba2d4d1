// The pins of test/interop/pins.mjs with the newest RxJS 9, even a beta. It can change any time, so these tests only report.
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { installPackages, temporaryFolder } from '../apps/support.mjs';
import { testPins } from '../interop/in-node.mjs';
import { bridged, cold } from '../interop/pins.mjs';

const folder = temporaryFolder('rx-trade-feed-rxjs-');
let loaded;
const newest = () => {
  const load = async () => {
    writeFileSync(join(folder, 'package.json'), '{}');
    await installPackages(folder, ['rxjs@>=9.0.0-0']);
    const { resolve } = createRequire(join(folder, 'index.js'));
    console.log(`RxJS ${createRequire(import.meta.url)(resolve('rxjs/package.json')).version}`);
    return import(pathToFileURL(resolve('rxjs')));
  };
  return (loaded ??= load());
};

describe('the newest RxJS 9', () => {
  testPins(test, { ...bridged, ...cold }, newest, { todo: 'RxJS 9 is a beta' });
});
