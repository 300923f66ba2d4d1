#!/usr/bin/env node
import { processContext } from './terminal.js';
import { run } from './program.js';

// All output has left, or its time is over: what a slow reader hasn't taken would keep the process alive.
process.exit(await run(process.argv.slice(2), processContext(process)));
