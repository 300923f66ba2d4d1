#!/usr/bin/env node
import { run } from './program.js';
import { processContext } from './terminal.js';

const context = processContext(process);
process.exitCode = await run(process.argv.slice(2), context);
// After an interrupt: what a slow reader hasn't taken in time would keep the process alive.
if (context.stdout.writableLength + context.stderr.writableLength > 0) process.exit();
