#!/usr/bin/env node
// npm links the command when it installs the package, and npx keeps the link for later calls. It skips a missing file, so this file is not in
// dist: a clone has it before the first build.
import { existsSync } from 'node:fs';

const main = new URL('../dist/cli/main.js', import.meta.url);
if (existsSync(main)) await import(main.href);
else {
  console.error('rx-trade-feed: This clone is not built yet. Run npm run build, then the command again.');
  process.exitCode = 1;
}
