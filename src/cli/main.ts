#!/usr/bin/env node
import { processContext } from './context.js';
import { run } from './run.js';

process.exitCode = await run(process.argv.slice(2), processContext(process));
// What a slow reader has still not taken was given up, and must not hold the process.
if (process.stdout.writableLength > 0) process.exit();
