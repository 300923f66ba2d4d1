// Bun, whose native WebSocket `npm run bench -- e2e` compares. It is not a dependency of the project.
import { resolve } from 'node:path';

const name = `@oven/bun-${process.platform}-${process.arch}`;

/** The folder into which Bun is installed. */
export const bunFolder = resolve(import.meta.dirname, '../temp/bun');

/** The package from npm that contains the program. */
export const bunPackage = `${name}@1.4.5`;

/** The program. It exists only if Bun is installed. */
export const bunProgram = resolve(bunFolder, 'node_modules', name, 'bin/bun');
