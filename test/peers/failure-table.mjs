// The failure table of the tests, for programs that Node runs without jest. The table is in TypeScript, which Node 20 does not run.
import { readFile } from 'node:fs/promises';
import { transform } from 'esbuild';

const source = await readFile(new URL('../support/failure-table.ts', import.meta.url), 'utf8');
const { code } = await transform(source, { loader: 'ts' });

export const { expectedFailure, failureTable } = await import(`data:text/javascript,${encodeURIComponent(code)}`);
