// Imports a module, and prints the packages that this loads. All dependencies of the package are CommonJS, so Node stores them in this cache.
import { createRequire } from 'node:module';

await import(process.argv[2]);
const paths = Object.keys(createRequire(import.meta.url).cache);
const names = paths.flatMap((path) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? []);
console.log(JSON.stringify([...new Set(names)].sort()));
