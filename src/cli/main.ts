#!/usr/bin/env node
import { processContext } from './context.js';
import { run } from './program.js';

process.exitCode = await run(process.argv.slice(2), processContext(process));
// Discards what a slow reader hasn't read by now: it would keep the process alive.
if (process.stdout.writableLength > 0) process.exit();
