// Imports modules and prints the packages that this loads. All dependencies are CommonJS, so they end up in this cache.
import { createRequire } from 'node:module';

for (const name of process.argv.slice(2)) await import(name);
const paths = Object.keys(createRequire(import.meta.url).cache);
const names = paths.flatMap((path) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? []);
console.log(JSON.stringify([...new Set(names)].sort()));
